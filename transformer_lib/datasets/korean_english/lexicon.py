"""The words: nouns, places, times, adverbials, verbs and adjectives, read from ``tables``.

A verb lists the classes of nouns it takes, so that people read books and birds fly. Homonyms belong
to no class: each of their senses lists the words that decide it, and those marked with ``*`` never
meet it in training.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources

__all__ = [
    "ADJECTIVES",
    "ADVERBIALS",
    "COUNTED",
    "COUNTRIES",
    "HOMONYMS",
    "NOUNS",
    "PEOPLE",
    "PLACES",
    "TIMES",
    "VERBS",
    "WITHHELD_CONTEXTS",
    "Adjective",
    "Noun",
    "Phrase",
    "Place",
    "Verb",
    "taking",
]


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun: how it is counted, and how English treats it.

    Attributes:
        korean: The word.
        english: Its singular, or its only form.
        kind: The class it belongs to.
        number: ``count``; ``mass`` (water); ``plural`` (shoes); ``single`` (someone's head);
            ``the`` (the piano); ``my`` (어머니 is "my mother"); ``name`` (Jisu, math);
            ``owned`` (someone's words).
        counter: The counter, or "" when the noun is not counted.
        owner: his, her, their, my, our or your, for what is the noun's own.
        word: Its id: a homonym carries its sense.
        sense: (homonym, sense), or () for all other nouns.
        adjective: Of a country, the adjective.
    """

    korean: str
    english: str
    kind: str
    number: str = "count"
    counter: str = ""
    owner: str = "their"
    word: str = ""
    sense: tuple[str, ...] = ()
    adjective: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A place: its noun, and the English for being there and for going there."""

    noun: Noun
    at: str
    to: str
    group: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """A time or an adverbial, the same in every sentence. ``tenses`` is for times."""

    korean: str
    english: str
    tenses: str = ""


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb with the nouns, places and adverbials it goes with."""

    stem: str
    english: str
    word: str
    objects: tuple[Noun, ...]
    places: tuple[Place, ...]
    adverbials: tuple[Phrase, ...]
    subjects: tuple[Noun, ...]
    flags: frozenset[str]


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective and the nouns it describes."""

    stem: str
    english: str
    word: str
    nouns: tuple[Noun, ...]


def _rows(name: str) -> list[list[str]]:
    """Read a table: lines of cells between bars."""
    text = resources.files(__package__).joinpath(f"tables/{name}.txt").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return [[cell.strip() for cell in line.split("|")] for line in lines]


def _entries(cell: str) -> list[tuple[str, str]]:
    """Split "Korean English, Korean English"; _ stands for a space inside the Korean."""
    pairs = (entry.strip().partition(" ") for entry in cell.split(","))
    return [(korean.replace("_", " "), english) for korean, _, english in pairs]


OWNERS = {"남자": "his", "소년": "his", "여자": "her", "소녀": "her"}


def _nouns() -> list[Noun]:
    nouns = [
        Noun(korean, english, kind, number, counter, OWNERS.get(korean, "their"), korean)
        for kind, number, counter, cell in _rows("nouns")
        for korean, english in _entries(cell)
    ]
    for kind, cell in _rows("people"):
        for korean, english in _entries(cell):
            english, _, owner = english.rpartition(" ")
            number = "my" if kind == "kin" else "name"
            nouns.append(Noun(korean, english, kind, number, owner=owner, word=korean))
    return nouns


def _countries() -> list[Noun]:
    rows = (cells[0].split() for cells in _rows("countries"))
    return [
        Noun(korean, english, "country", "name", word=korean, adjective=adjective)
        for korean, english, adjective in rows
    ]


def _place(korean: str, english: str, group: str) -> Place:
    at, _, goal = english.rstrip(")").partition(" (")
    bare = at.split(" ", 1)[1]
    name = bare.removeprefix("the ")
    number = "name" if group == "city" else "the"
    noun = Noun(korean, "house" if name == "home" else name, group, number, word=korean)
    return Place(noun, at, goal or f"to {bare}", group)


def _senses() -> tuple[list[Noun], list[list[str]]]:
    """Read the homonyms: their nouns, and the rest of each row."""
    nouns, rest = [], []
    adjectives = {cells[0].split()[0]: cells[0].split()[2] for cells in _rows("countries")}
    for korean, sense, english, kind, number, counter, *deciders in _rows("homonyms"):
        word = f"{korean}:{sense}"
        adjective = adjectives.get(korean, "") if kind == "country" else ""
        nouns.append(
            Noun(
                korean,
                english,
                kind,
                number,
                counter,
                word=word,
                sense=(korean, sense),
                adjective=adjective,
            )
        )
        rest.append(deciders)
    return nouns, rest


_SENSES, _DECIDERS = _senses()
NOUNS = _nouns()
COUNTRIES = [
    next((sense for sense in _SENSES if sense.english == country.english), country)
    for country in _countries()
]
PLACES = [
    _place(korean, english, group)
    for group, cell in _rows("places")
    for korean, english in _entries(cell)
]
PLACES += [
    Place(noun, f"in {noun.english}", f"to {noun.english}", "country")
    for noun in COUNTRIES
    if not noun.sense
]
_HOMONYM_PLACES = {
    "인도:India": ("in India", "to India"),
    "인도:sidewalk": ("on the sidewalk", "to the sidewalk"),
    "다리:bridge": ("on the bridge", "to the bridge"),
}
TIMES = [
    Phrase(korean, english, tenses)
    for tenses, cell in _rows("times")
    for korean, english in _entries(cell)
]
ADVERBIALS = {
    korean: Phrase(korean, english)
    for cells in _rows("adverbials")
    for korean, english in _entries(cells[0])
}
PEOPLE = [noun for noun in NOUNS if noun.kind in ("kin", "name", "worker", "child", "adult")]
HOMONYMS = {
    homonym: {
        noun.sense[1]: tuple(cells[-1].split())
        for noun, cells in zip(_SENSES, _DECIDERS, strict=True)
        if noun.korean == homonym
    }
    for homonym in dict.fromkeys(noun.korean for noun in _SENSES)
}

_BY_KIND: dict[str, list[Noun]] = {"someone": PEOPLE, "place": []}
for _noun in [*NOUNS, *COUNTRIES, *(place.noun for place in PLACES if place.group != "country")]:
    if not _noun.sense:
        _BY_KIND.setdefault(_noun.kind, []).append(_noun)
_BY_KIND["place"] = [
    place.noun for place in PLACES if place.group not in ("city", "country", "path", "water")
]
_BY_NAME = {noun.korean: noun for nouns in _BY_KIND.values() for noun in nouns}
_PLACES_BY_GROUP: dict[str, list[Place]] = {}
for _one in PLACES:
    _PLACES_BY_GROUP.setdefault(_one.group, []).append(_one)


def _of_classes(cell: str) -> tuple[Noun, ...]:
    found: list[Noun] = []
    for token in cell.split():
        found += [_BY_NAME[token[1:]]] if token.startswith("=") else _BY_KIND[token]
    return tuple(found)


def _places_of(token: str) -> list[Place]:
    if token.startswith("="):
        return [place for place in PLACES if place.noun.korean == token[1:]]
    return _PLACES_BY_GROUP[token]


def _verbs() -> list[Verb]:
    rows = _rows("verbs")
    meanings: dict[str, set[str]] = {}
    for korean, english, *_ in rows:
        meanings.setdefault(korean, set()).add(english)
    return [
        Verb(
            korean.replace("_", " ")[:-1],
            english,
            korean if len(meanings[korean]) == 1 else f"{korean}:{english}",
            _of_classes(objects),
            tuple(place for token in places.split() for place in _places_of(token)),
            tuple(ADVERBIALS[korean.replace("_", " ")] for korean in adverbials.split()),
            _of_classes(subjects) or tuple(PEOPLE),
            frozenset(flags.split()),
        )
        for korean, english, objects, places, adverbials, subjects, flags in rows
    ]


def _adjectives() -> list[Adjective]:
    return [
        Adjective(korean[:-1], english, korean, _of_classes(nouns))
        for korean, english, nouns in _rows("adjectives")
    ]


VERBS = _verbs()
ADJECTIVES = _adjectives()
COUNTED: list[tuple[Verb, Noun]] = []  # verbs that fit a homonym's sense only when it is counted
WITHHELD_CONTEXTS: dict[tuple[str, str], None] = {}  # (sense's word, deciding word)


def _is_meant(entry: Verb | Adjective, reference: str) -> bool:
    """Tell whether 타다:take, or 타다 alone, means this entry."""
    korean, _, english = reference.partition(":")
    return entry.word.partition(":")[0] == korean and english in ["", *entry.english.split()]


def _index(noun: Noun, entries: Sequence[Verb | Adjective], reference: str, last: bool) -> int:
    """Find the row that a reference means: the first, or the last."""
    indices = [index for index, entry in enumerate(entries) if _is_meant(entry, reference)]
    if not indices:
        raise LookupError(f"{noun.word}: the tables have no {reference}")
    return indices[-1 if last else 0]


def taking(verb: Verb, role: str, nouns: tuple[Noun, ...]) -> Verb:
    """The verb with these nouns alone as its objects or its subjects."""
    return replace(verb, objects=nouns) if role == "objects" else replace(verb, subjects=nouns)


def _admit(noun: Noun, reference: str, role: str) -> str:
    """Add a homonym's sense to a word that decides it, and return that word's id."""
    if role == "nouns":
        index = _index(noun, ADJECTIVES, reference, last=False)
        adjective = ADJECTIVES[index]
        ADJECTIVES[index] = replace(adjective, nouns=(*adjective.nouns, noun))
        return adjective.word
    # Where a verb has a row for people and one for animals, the animals' comes last.
    index = _index(noun, VERBS, reference, last=role == "subjects")
    verb = VERBS[index]
    if role == "counted":
        COUNTED.append((verb, noun))
    elif role == "places":
        place = Place(noun, *_HOMONYM_PLACES[noun.word], noun.kind)
        VERBS[index] = replace(verb, places=(*verb.places, place))
    else:
        others: tuple[Noun, ...] = getattr(verb, role)
        VERBS[index] = taking(verb, role, (*others, noun))
    return verb.word


_ROLES = ("objects", "subjects", "nouns", "places", "counted")
for _noun, _cells in zip(_SENSES, _DECIDERS, strict=True):
    for _role, _cell in zip(_ROLES, _cells[:-1], strict=True):
        for _reference in _cell.split():
            _word = _admit(_noun, _reference.lstrip("*"), _role)
            if _reference.startswith("*"):
                WITHHELD_CONTEXTS[_noun.word, _word] = None

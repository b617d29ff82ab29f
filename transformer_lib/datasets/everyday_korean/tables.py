"""The words of everyday Korean, read from the tables beside this module.

A homonym is written with its sense, 배:pear, and belongs to no group by accident: what takes it
names it or its own small group. A word of an object list may bring its own English:
``=길/directions``.
"""

from dataclasses import dataclass, replace
from importlib import resources

from transformer_lib.datasets.everyday_korean.phrasing import Person, VerbPhrase

__all__ = [
    "ADJECTIVES",
    "ADVERBS",
    "KINDS",
    "NAMES",
    "NOUNS",
    "PEOPLE",
    "PHRASES",
    "PLACES",
    "SITUATIONS",
    "TIMES",
    "VERBS",
    "Adjective",
    "Adverb",
    "Clause",
    "Noun",
    "Place",
    "Situation",
    "State",
    "Time",
    "Verb",
    "noun_of",
    "objects_of",
    "rows",
]


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun.

    Attributes:
        korean: The word.
        english: Its singular, or its only form.
        kind: Its group: fruit, clothes, kin, name, ….
        number: count, mass, plural, the (the sun), name (math, Jisu), own (someone's hand), my
            (a friend of someone), or fixed (a phrase that stays as it is).
        counter: What counts it: 개, 마리, 권; "" for none.
        several: The plural, where it is not made by rule or the thing comes in twos: hands.
        owner: he, she or they, for people.
        honours: Whether one speaks of this person with 시.
        sense: (homonym, sense), or ().
    """

    korean: str
    english: str
    kind: str
    number: str = "count"
    counter: str = ""
    several: str = ""
    owner: str = ""
    honours: bool = False
    sense: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """The id of the word: with its sense, for a homonym."""
        return ":".join(self.sense) or self.korean


@dataclass(frozen=True, slots=True)
class Place:
    """A place: its noun, and the English for being there and for going there."""

    noun: Noun
    at: str
    to: str
    group: str


@dataclass(frozen=True, slots=True)
class Adverb:
    """An adverb and where English puts it: mid, end, degree."""

    korean: str
    english: str
    position: str


@dataclass(frozen=True, slots=True)
class Time:
    """A time and the tenses it goes with."""

    korean: str
    english: str
    tenses: str


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb, what it takes and how English says it."""

    stem: str
    english: str
    objects: tuple[Noun, ...]
    particle: str
    article: str
    honorific: str
    places: tuple[Place, ...]
    adverbs: tuple[Adverb, ...]
    flags: frozenset[str]

    @property
    def word(self) -> str:
        """The dictionary form."""
        return self.stem + "다"


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective and the nouns it describes; each with its English."""

    stem: str
    english: str
    nouns: tuple[tuple[Noun, str], ...]
    of_people: bool

    @property
    def word(self) -> str:
        """The dictionary form."""
        return self.stem + "다"


@dataclass(frozen=True, slots=True)
class State:
    """A state of someone, said with a noun of its own: 배가 고프다."""

    before: str
    stem: str
    english: VerbPhrase
    is_verb: bool
    done: bool
    sense: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The ids of its words."""
        noun = self.before.rsplit(" ", 1)[-1][:-1] if self.before else ""
        return (":".join(self.sense) or noun, self.stem + "다")


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a situation: Korean up to the stem, English, and whose it is."""

    before: str
    stem: str
    english: VerbPhrase
    is_verb: bool
    subject: Person | None
    wanted: bool
    request: bool

    @property
    def words(self) -> tuple[str, ...]:
        """Its words, as they stand."""
        return (*self.before.split(), self.stem + "다")


@dataclass(frozen=True, slots=True)
class Situation:
    """First clauses, and second ones that go with all of them."""

    links: tuple[str, ...]
    first: tuple[Clause, ...]
    second: tuple[Clause, ...]


def rows(name: str) -> list[list[str]]:
    """Read a table: lines of cells between tabs, without the comments."""
    text = resources.files(__package__).joinpath(f"tables/{name}.tsv").read_text(encoding="utf-8")
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    return [[cell.strip() for cell in line.split("\t")] for line in lines]


def _cells(row: list[str], count: int) -> list[str]:
    return row + [""] * (count - len(row))


def _text(cell: str) -> str:
    return cell.replace("_", " ")


NUMBERS = {"count", "mass", "plural", "the", "name", "own", "my", "a", "fixed"}
OWNERS = {"his": "he", "her": "she", "their": "they"}


def _noun(korean: str, english: str, kind: str, number: str, counter: str) -> Noun:
    korean, _, sense = korean.partition(":")
    several = owner = ""
    english, _, note = english.partition("/")
    if note in NUMBERS:
        number = note
    elif note in OWNERS:
        owner = OWNERS[note]
    else:
        several = note
    if english.split("_")[0] in ("a", "an", "the") or number == "fixed":
        number = "fixed"
    senses = (korean, sense) if sense else ()
    return Noun(
        _text(korean), _text(english), kind, number, counter, _text(several), owner, sense=senses
    )


def _nouns() -> list[Noun]:
    found = []
    for kind, number, counter, entries in rows("nouns"):
        for entry in entries.split(", "):
            korean, english = entry.split(" ")
            found.append(_noun(korean, english, kind, number, counter))
    return found


def _people() -> list[Noun]:
    found = []
    for kind, entries in rows("people"):
        for entry in entries.split(", "):
            korean, english, owner, *rest = entry.split(" ")
            number = {"name": "name", "kin": "my", "elder": "the"}[kind]
            found.append(
                Noun(
                    _text(korean),
                    _text(english),
                    kind,
                    number,
                    "명",
                    owner=OWNERS[owner],
                    honours=bool(rest),
                )
            )
    return found


NOUNS = _nouns()
PEOPLE = _people()
_BY_WORD = {noun.word: noun for noun in NOUNS}
_BY_WORD |= {noun.word: noun for noun in PEOPLE if noun.word not in _BY_WORD}
KINDS: dict[str, tuple[Noun, ...]] = {}
for _one in [*NOUNS, *PEOPLE]:
    KINDS[_one.kind] = (*KINDS.get(_one.kind, ()), _one)
KINDS["animals"] = (*KINDS["pet"], *KINDS["beast"], *KINDS["bird"], *KINDS["livestock"])
NAMES = KINDS["name"]


def noun_of(word: str) -> Noun:
    """Return the noun of this id.

    Raises:
        LookupError: The tables have no such noun.
    """
    if word in _BY_WORD:
        return _BY_WORD[word]
    for place in PLACES:
        if place.noun.word == word:
            return place.noun
    raise LookupError(f"the tables have no noun {word}")


def _place(korean: str, english: str, goal: str, group: str) -> Place:
    at = _text(english)
    name = at.split(" ", 1)[-1].removeprefix("the ").removeprefix("a ")
    korean, _, sense = korean.partition(":")
    senses = (korean, sense) if sense else ()
    number = "own" if name.startswith("{own} ") else "the"
    name = name.removeprefix("{own} ")
    noun = Noun(_text(korean), name, "place", number, sense=senses)
    return Place(noun, at, _text(goal) or "to " + at.split(" ", 1)[1], group)


def _places() -> list[Place]:
    found = []
    for group, entries in rows("places"):
        for entry in entries.split(", "):
            korean, english, *goal = entry.split(" ")
            found.append(_place(korean, english, goal[0].strip("()") if goal else "", group))
    for kind in ("country", "city"):
        for noun in KINDS[kind]:
            preposition = "on" if "Island" in noun.english else "in"
            place = Place(noun, f"{preposition} {noun.english}", f"to {noun.english}", kind)
            found.append(place)
    return found


PLACES = _places()
ADVERBS: dict[str, tuple[Adverb, ...]] = {}
for _key, _korean, _english, _position in rows("adverbs"):
    _adverb = Adverb(_text(_korean), _english, _position)
    ADVERBS[_key] = (*ADVERBS.get(_key, ()), _adverb)
TIMES = [
    Time(_text(korean), _text(english), tenses)
    for tenses, entries in rows("times")
    for korean, english in (entry.split(" ") for entry in entries.split(", "))
]
_AD_HOC: dict[tuple[str, str], Noun] = {}


def objects_of(cell: str) -> tuple[Noun, ...]:
    """The nouns of a cell: groups, and =words with or without their own English."""
    found: dict[Noun, None] = {}
    for token in cell.split():
        if not token.startswith("="):
            kind, _, number = token.partition(":")
            nouns = [
                replace(noun, number="plural" if noun.english == "drums" else number)
                if number
                else noun
                for noun in KINDS[kind]
            ]
            found.update(dict.fromkeys(nouns))
            continue
        word, _, english = token[1:].partition("/")
        if english:
            korean, _, sense = word.partition(":")
            known = _BY_WORD.get(_text(word))
            kind = known.kind if known else "special"
            senses = (korean, sense) if sense else ()
            key = (_text(word), english)
            if key not in _AD_HOC:
                _AD_HOC[key] = Noun(_text(korean), _text(english), kind, "fixed", sense=senses)
            found[_AD_HOC[key]] = None
        else:
            found[noun_of(_text(word))] = None
    return tuple(found)


def _places_of(cell: str) -> tuple[Place, ...]:
    found: list[Place] = []
    for token in cell.split():
        if token.startswith("="):
            named = [place for place in PLACES if place.noun.word == _text(token[1:])]
            if not named:
                raise LookupError(f"the tables have no place {token}")
            found += named[:1]
        else:
            found += [place for place in PLACES if place.group == token]
    return tuple(dict.fromkeys(found))


ARTICLES = ("the", "own", "gen", "bare", "person")


def _verb(row: list[str]) -> Verb:
    korean, english, objects, flags, places, adverbs = _cells(row, 6)
    tokens = flags.split()
    article = next((token for token in tokens if token in ARTICLES), "a")
    particle = next((_text(token[2:]) for token in tokens if token.startswith("p=")), "를")
    special = next((token[4:] for token in tokens if token.startswith("hon=")), "")
    marks = {token for token in tokens if "=" not in token} | (
        {"hon"} if "hon=" in flags else set()
    )
    return Verb(
        _text(korean)[:-1],
        english,
        objects_of(objects),
        particle,
        article,
        _text(special),
        _places_of(places),
        tuple(adverb for key in adverbs.split() for adverb in ADVERBS[key]),
        frozenset(marks),
    )


VERBS = [_verb(row) for row in rows("verbs")]


def _adjective(row: list[str]) -> Adjective:
    korean, english, cell = row
    nouns: dict[Noun, str] = {}
    of_people = False
    for token in cell.split():
        if token == "person":
            of_people = True
        elif token.startswith("=") and "/" in token:
            word, _, other = token[1:].partition("/")
            if other.startswith("the_"):
                nouns[objects_of(token)[0]] = english
            else:
                nouns[noun_of(_text(word))] = _text(other)
        else:
            nouns.update((noun, nouns.get(noun, english)) for noun in objects_of(token))
    return Adjective(_text(korean)[:-1], english, tuple(nouns.items()), of_people)


ADJECTIVES = [_adjective(row) for row in rows("adjectives")]
_ADJECTIVE_STEMS = {adjective.stem for adjective in ADJECTIVES} | {
    "춥",
    "덥",
    "없",
    "있",
    "싶",
    "많",
    "크",
    "작",
    "좋",
    "나쁘",
    "아프",
    "어리",
    "맑",
    "흐리",
    "힘들",
    "지저분하",
    "적",
    "고프",
    "부르",
    "마르",
    "세",
    "높",
    "길",
    "짧",
    "필요하",
    "이",
}
_VERB_PHRASES = {"목이 마르", "노래를 부르", "축하 노래를 부르"}


def _is_verb(before: str, stem: str) -> bool:
    if f"{before} {stem}" in _VERB_PHRASES or (stem == "부르" and not before.startswith("배")):
        return True
    return stem not in _ADJECTIVE_STEMS and not stem.endswith(("지 않", "싶"))


def _split(korean: str) -> tuple[str, str]:
    before, _, stem = korean[:-1].rpartition(" ")
    if not before and stem.endswith("이") and stem[:-1].endswith("생"):
        return "", stem
    return before, stem


def _state(row: list[str]) -> State:
    korean, english, flags = row
    before, stem = _split(_text(korean))
    tokens = flags.split()
    senses = [tuple(token.split(":")) for token in tokens if ":" in token]
    return State(
        before,
        stem,
        VerbPhrase.parse(english),
        "verb" in tokens or "done" in tokens,
        "done" in tokens,
        senses[0] if senses else (),
    )


PHRASES = [_state(row) for row in rows("phrases")]


def _clause(text: str) -> Clause:
    korean, _, english = text.partition("=")
    wanted, request = not english.endswith("!"), english.endswith("?")
    english = english.rstrip("!?")
    name, colon, phrase = english.partition(":")
    subject = None
    if colon:
        many = name.endswith(("clothes", "letters", "parents", "some friends"))
        subject = Person(name, "they" if many else "it")
    before, stem = _split(korean)
    is_verb = _is_verb(before, stem)
    return Clause(
        before,
        stem,
        VerbPhrase.parse(phrase if colon else english),
        is_verb,
        subject,
        wanted,
        request,
    )


def _situation(row: list[str]) -> Situation:
    links, first, second = row
    return Situation(
        tuple(links.split()),
        tuple(_clause(text) for text in first.split("; ")),
        tuple(_clause(text) for text in second.split("; ")),
    )


SITUATIONS = [_situation(row) for row in rows("situations")]

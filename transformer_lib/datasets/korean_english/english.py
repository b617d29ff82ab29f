"""English inflection: plurals, articles, verb forms, comparatives."""

__all__ = ["article", "comparative", "gerund", "past", "plural", "third_person"]

VOWEL_SOUNDS = "aeiou"
CONSONANT_SOUNDS = ("uni", "use", "one", "eu")
SILENT_H = ("hour", "honest")
PLURALS = {
    "child": "children",
    "fish": "fish",
    "foot": "feet",
    "knife": "knives",
    "leaf": "leaves",
    "man": "men",
    "mango": "mangoes",
    "mouse": "mice",
    "person": "people",
    "potato": "potatoes",
    "sheep": "sheep",
    "tomato": "tomatoes",
    "woman": "women",
    "wolf": "wolves",
    "goose": "geese",
    "deer": "deer",
    "bookshelf": "bookshelves",
    "scarf": "scarves",
    "stomach": "stomachs",
}
_PAST_FORMS = """
    be/was become/became begin/began bite/bit blow/blew break/broke bring/brought
    build/built buy/bought catch/caught choose/chose come/came cut/cut do/did draw/drew
    drink/drank drive/drove eat/ate fall/fell feed/fed feel/felt find/found fly/flew
    forget/forgot get/got give/gave go/went grow/grew have/had hear/heard hide/hid hold/held
    keep/kept know/knew leave/left lend/lent lie/lay lose/lost make/made meet/met pay/paid
    put/put read/read ride/rode ring/rang run/ran say/said see/saw sell/sold send/sent
    set/set shine/shone shut/shut sing/sang sit/sat sleep/slept speak/spoke spend/spent
    stand/stood steal/stole sweep/swept swim/swam take/took teach/taught tell/told
    think/thought throw/threw understand/understood wake/woke wear/wore win/won write/wrote
    tear/tore shake/shook dig/dug hang/hung hurt/hurt spread/spread sink/sank freeze/froze
"""
PAST = dict(pair.split("/") for pair in _PAST_FORMS.split())
_DOUBLED = """
    run sit swim cut put get shut set stop plan pat hug chop dig clap begin win rot rub step forget
"""
DOUBLED = frozenset(_DOUBLED.split())
COMPARATIVES = {
    "good": "better",
    "bad": "worse",
    "far": "farther",
    "lonely": "lonelier",
    "narrow": "narrower",
}
DOUBLED_ADJECTIVES = {"big", "hot", "thin", "sad", "fat", "wet", "red"}
LONG_COMPARATIVES = {"sour", "tired"}  # of one syllable, yet with "more"


def _is_vowel(letter: str) -> bool:
    return letter in VOWEL_SOUNDS


def article(phrase: str) -> str:
    """Put a or an before a phrase, by the sound of its first word."""
    word = phrase.lower()
    vowel = (_is_vowel(word[0]) and not word.startswith(CONSONANT_SOUNDS)) or word.startswith(
        SILENT_H
    )
    return ("an " if vowel else "a ") + phrase


def _with_s(word: str) -> str:
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and not _is_vowel(word[-2]):
        return word[:-1] + "ies"
    return word + "s"


def plural(noun: str) -> str:
    """The plural of a noun; of a phrase, that of its last word."""
    before, space, last = noun.rpartition(" ")
    for singular, many in PLURALS.items():
        if last == singular or (last.endswith("man") and singular == "man" and last != "woman"):
            return before + space + (many if last == singular else last[:-3] + "men")
    return before + space + _with_s(last)


def third_person(verb: str) -> str:
    """The form with he, she, it; of a phrase, that of its first word."""
    first, space, rest = verb.partition(" ")
    form = {"be": "is", "have": "has", "do": "does", "go": "goes"}.get(first) or _with_s(first)
    return form + space + rest


def past(verb: str) -> str:
    """The simple past; of a phrase, that of its first word."""
    first, space, rest = verb.partition(" ")
    if first in PAST:
        form = PAST[first]
    elif first.endswith("e"):
        form = first + "d"
    elif first.endswith("y") and not _is_vowel(first[-2]):
        form = first[:-1] + "ied"
    else:
        form = first + (first[-1] if first in DOUBLED else "") + "ed"
    return form + space + rest


def gerund(verb: str) -> str:
    """The form in -ing; of a phrase, that of its first word."""
    first, space, rest = verb.partition(" ")
    if first.endswith("ie"):
        form = first[:-2] + "ying"
    elif first.endswith("e") and first != "be" and not first.endswith("ee"):
        form = first[:-1] + "ing"
    else:
        form = first + (first[-1] if first in DOUBLED else "") + "ing"
    return form + space + rest


def _syllables(word: str) -> int:
    groups = sum(
        _is_vowel(letter) and not _is_vowel(before)
        for before, letter in zip(" " + word, word, strict=False)
    )
    return groups - (word.endswith("e") and groups > 1) + word.endswith("y")


def comparative(adjective: str) -> str:
    """The comparative: bigger, happier, more beautiful."""
    if adjective in COMPARATIVES:
        return COMPARATIVES[adjective]
    if adjective in DOUBLED_ADJECTIVES:
        return adjective + adjective[-1] + "er"
    if adjective.endswith("y") and _syllables(adjective) == 2 and not _is_vowel(adjective[-2]):
        return adjective[:-1] + "ier"
    if _syllables(adjective) == 1 and adjective not in LONG_COMPARATIVES:
        return adjective + ("r" if adjective.endswith("e") else "er")
    return "more " + adjective

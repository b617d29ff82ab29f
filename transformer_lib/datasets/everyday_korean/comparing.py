"""What is more so than another thing, and what is most so."""

from dataclasses import replace

from transformer_lib.datasets.everyday_korean import tables
from transformer_lib.datasets.everyday_korean.cast import (
    draw_actor,
    kin_korean,
    named,
)
from transformer_lib.datasets.everyday_korean.describing import ABSOLUTE, OF_PEOPLE, thing_actor
from transformer_lib.datasets.everyday_korean.forms import (
    Chain,
    ending,
)
from transformer_lib.datasets.everyday_korean.phrasing import (
    VerbPhrase,
    comparative,
    finite,
    superlative,
)
from transformer_lib.datasets.everyday_korean.sentence import Notes, Sentence, finish
from transformer_lib.datasets.everyday_korean.settings import draw_level
from transformer_lib.datasets.everyday_korean.tables import Adjective, Noun
from transformer_lib.datasets.korean_english.dice import Dice

__all__ = ["comparison"]

_GRADABLE = [
    adjective
    for adjective in tables.ADJECTIVES
    if adjective.english not in ABSOLUTE
    and adjective.english not in ("different", "similar", "common", "spoiled", "urgent", "okay")
]
_CLASSES = [
    (
        adjective,
        [
            pair
            for pair in adjective.nouns
            if pair[0].number in ("count", "mass", "the", "name", "plural")
            and pair[0].kind not in ("weather", "season")
        ],
    )
    for adjective in _GRADABLE
]
_CLASSES = [(adjective, pairs) for adjective, pairs in _CLASSES if len(pairs) > 1]
_PAIRED: list[tuple[Adjective, list[tuple[Noun, str]]]] = []
for _adjective, _pairs in _CLASSES:
    _kinds: dict[str, list[tuple[Noun, str]]] = {}
    for _pair in _pairs:
        _kinds.setdefault(_pair[0].kind, []).append(_pair)
    _PAIRED += [(_adjective, _group) for _group in _kinds.values() if len(_group) > 1]
_COMPARED = [
    a
    for a in OF_PEOPLE
    if a.english
    in (
        "kind",
        "smart",
        "hardworking",
        "busy",
        "tired",
        "brave",
        "lazy",
        "honest",
        "hungry",
        "lively",
        "happy",
    )
]
_BEST_SCOPES = {
    "": "",
    "세상에서": "in the world",
    "여기에서": "here",
    "이 중에서": "of these",
    "우리 반에서": "in our class",
    "우리 가족 중에서": "in our family",
}


def comparison(dice: Dice) -> Sentence:
    """The bag is more expensive than the hat. Minsu is the tallest in our class."""
    level = draw_level(dice)
    asks = dice.chance(0.15)
    notes = Notes()
    if dice.chance(0.4):
        return _of_people(dice, level, asks)
    adjective, pairs = dice.one(_PAIRED)
    (first, english), (second, _) = dice.one(pairs), dice.one(pairs)
    if first.word == second.word:
        return comparison(dice)
    notes.pair(adjective.word, first.word)
    actor = thing_actor(dice, first, level, asks=asks)
    tense = "past" if dice.chance(0.1) else "present"
    chain = Chain(adjective.stem, False)
    korean = ending(chain, tense, level, asks)
    subject = actor.with_particle(dice, level, dice.chance(0.4))
    if dice.chance(0.35):
        most = dice.one(("제일", "가장"))
        scope = dice.weighted({"": 4.0, "세상에서": 1.0, "여기에서": 1.5, "이 중에서": 1.5})
        notes.word(most)
        best = "the " + superlative(english) + " " + _BEST_SCOPES[scope]
        text = finite(actor.person, VerbPhrase("be", best.strip()), tense, question=asks)
        parts = [subject, scope, most, korean]
        return finish(" ".join(parts), text, notes, "superlative", "?" if asks else ".")
    notes.pair(adjective.word, second.word)
    other = thing_actor(dice, second, level, asks=asks, pointed=False)
    if other.korean == actor.korean:
        return comparison(dice)
    more = comparative(english)
    much = dice.weighted({"": 5.0, "훨씬": 1.5, "조금": 1.0})
    degree = {"": "", "훨씬": "much ", "조금": "a little "}[much]
    rest = f"{degree}{more} than {other.person.name}"
    text = finite(actor.person, VerbPhrase("be", rest), tense, question=asks)
    deeper = "더" if not much else f"{much} 더"
    than = f"{other.korean}보다"
    parts = [subject, than, deeper, korean]
    if dice.chance(0.25):
        parts = [than, subject, deeper, korean]
    if much:
        notes.word(much)
    return finish(" ".join(parts), text, notes, "comparison", "?" if asks else ".")


_TRAITS = {
    ("키가", "크"): "tall",
    ("키가", "작"): "short",
    ("머리가", "좋"): "smart",
    ("힘이", "세"): "strong",
    ("나이가", "많"): "old",
    ("인기가", "많"): "popular",
}


def _of_people(dice: Dice, level: str, asks: bool) -> Sentence:
    notes = Notes()
    actor = draw_actor(dice, level, asks)
    if dice.chance(0.5):
        (before, stem), english = dice.one(list(_TRAITS.items()))
        chain = Chain(stem, False)
    else:
        adjective = dice.one(_COMPARED)
        before, english, chain = "", adjective.english, Chain(adjective.stem, False)
        notes.word(adjective.word)
    if actor.kind in ("kin", "elder"):
        actor = replace(actor, honours=False)
    notes.word(actor.word)
    subject = actor.with_particle(dice, level, dice.chance(0.5))
    korean = ending(chain, "present", level, asks)
    mark = "?" if asks else "."
    if dice.chance(0.4):
        most = dice.one(("제일", "가장"))
        scope = dice.one(("", "우리 반에서", "우리 가족 중에서", "세상에서"))
        if actor.kind in ("person", "elder") and scope.startswith("우리 가족"):
            scope = "우리 반에서"
        best = ("the " + superlative(english) + " " + _BEST_SCOPES[scope]).strip()
        text = finite(actor.person, VerbPhrase("be", best), question=asks)
        parts = [
            subject,
            scope,
            f"{most} {before}" if dice.chance(0.3) else f"{before} {most}",
            korean,
        ]
        return finish(" ".join(parts), text, notes, "superlative", mark)
    noun = dice.one(tables.NAMES)
    other, english_other = named(dice, noun, level), noun.english
    if dice.chance(0.35):
        kin = dice.one(tables.KINDS["kin"])
        other = kin_korean(dice, kin, level)
        prefixed = other != kin.korean
        english_other = ("my " if prefixed else "{own} ") + kin.english
        noun = kin
    if noun.word == actor.word or (actor.kind == "kin" and noun.kind == "kin"):
        return _of_people(dice, level, asks)
    if dice.chance(0.1) and actor.kind not in ("i", "we"):
        other, english_other = ("저" if level in ("해요", "합니다") else "나"), "me"
        notes.word("저")
    else:
        notes.word(noun.word)
    phrase = VerbPhrase("be", f"{comparative(english)} than {english_other}")
    text = finite(actor.person, phrase, question=asks)
    parts = [
        subject,
        other + "보다",
        f"{before} 더" if dice.chance(0.5) else f"더 {before}",
        korean,
    ]
    return finish(" ".join(parts), text, notes, "comparison", mark)

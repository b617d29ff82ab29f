"""Frames for what the others draw too seldom: homonyms, ways from here to there, foreign things."""

from dataclasses import replace

from transformer_lib.datasets.korean_english import lexicon as lex
from transformer_lib.datasets.korean_english.content import Sentence
from transformer_lib.datasets.korean_english.dice import Dice
from transformer_lib.datasets.korean_english.grammar import NounPhrase
from transformer_lib.datasets.korean_english.lexicon import Adjective, Noun, Place, Verb
from transformer_lib.datasets.korean_english.parts import (
    COUNTS,
    INDIA,
    LEVELS,
    ORDINARY,
    TRANSITIVE,
    VERB_OF,
    draw_clause,
    draw_subject,
    say,
    vary,
)
from transformer_lib.datasets.korean_english.statements import describe


def counted_homonym(dice: Dice) -> Sentence:
    """Jisu bought three pears: the counter decides."""
    verb, noun = dice.one(lex.COUNTED)
    level = dice.weighted(LEVELS)
    plain = replace(verb, objects=(noun,))
    clause = draw_clause(dice, plain, level)
    count = dice.one(COUNTS)
    clause = replace(clause, object=NounPhrase(noun, count=count))
    return say(dice, vary(dice, clause))


_DECIDED: dict[str, list[tuple[Verb | Adjective, str, Noun]]] = {}


for _verb in ORDINARY:
    for _role in ("objects", "subjects", "places"):
        for _member in getattr(_verb, _role):
            _noun = _member.noun if isinstance(_member, Place) else _member
            if _noun.sense:
                _DECIDED.setdefault(_noun.word, []).append((_verb, _role, _noun))


for _adjective in lex.ADJECTIVES:
    for _noun in _adjective.nouns:
        if _noun.sense:
            _DECIDED.setdefault(_noun.word, []).append((_adjective, "nouns", _noun))


_DECIDED_SENSES = list(_DECIDED.values())


def decided_homonym(dice: Dice) -> Sentence:
    """Jisu peeled a pear. The ship sank. Minsu fell down on the bridge."""
    word, role, noun = dice.one(dice.one(_DECIDED_SENSES))
    if isinstance(word, Adjective):
        return describe(dice, word, [noun])
    if role == "places":
        place = next(place for place in word.places if place.noun is noun)
        verb = replace(word, places=(place,))
        clause = draw_clause(dice, verb, dice.weighted(LEVELS), question=dice.chance(0.15))
        return say(dice, vary(dice, replace(clause, place=place)))
    verb = lex.taking(word, role, (noun,))
    level = dice.weighted(LEVELS)
    return say(dice, vary(dice, draw_clause(dice, verb, level, question=dice.chance(0.15))))


_RANGE_VERBS = [VERB_OF["걷다:walk"], VERB_OF["달리다"], VERB_OF["뛰어가다"], VERB_OF["걸어가다"]]


_ENDS = [
    p
    for p in lex.PLACES
    if p.group in ("school", "shop", "park", "work", "station", "show") and p.noun.korean != "교실"
]


def way(dice: Dice) -> Sentence:
    """Jisu walked from home to the park."""
    verb, level = dice.one(_RANGE_VERBS), dice.weighted(LEVELS)
    start, end = dice.one(_ENDS), dice.one(_ENDS)
    if start.noun.word == end.noun.word:
        return way(dice)
    clause = draw_clause(dice, verb, level)
    people = draw_subject(dice, lex.PEOPLE, level)
    clause = replace(clause, subject=people, source=start, place=end, companion=None)
    return say(dice, vary(dice, clause))


_FOREIGN = [
    "카레",
    "국수",
    "만두",
    "볶음밥",
    "수프",
    "빵",
    "과자",
    "커피",
    "영화",
    "음악",
    "소설",
    "노래",
    "드라마",
]
_ORIGIN_NOUNS = [
    *(noun for noun in lex.NOUNS if noun.korean in _FOREIGN),
    Noun("음식", "food", "dish", "mass", word="음식"),
]


_ORIGIN_VERBS: dict[str, list[Verb]] = {
    noun.word: [
        verb
        for verb in TRANSITIVE
        if any(n.word == noun.word for n in verb.objects)
        and "state" not in verb.flags
        and "gives" not in verb.flags
    ]
    for noun in _ORIGIN_NOUNS
}


_ORIGIN_VERBS["음식"] = [
    VERB_OF["먹다"],
    VERB_OF["요리하다"],
    VERB_OF["주문하다"],
    VERB_OF["좋아하다"],
]


def foreign_thing(dice: Dice) -> Sentence:
    """Jisu ate Indian curry."""
    noun, level = dice.one(_ORIGIN_NOUNS), dice.weighted(LEVELS)
    verb = dice.one(_ORIGIN_VERBS[noun.word])
    clause = draw_clause(dice, replace(verb, objects=(noun,)), level)
    origin = dice.one(lex.COUNTRIES) if dice.chance(0.85) else INDIA
    phrase = NounPhrase(noun, origin=origin)
    return say(dice, vary(dice, replace(clause, object=phrase)))

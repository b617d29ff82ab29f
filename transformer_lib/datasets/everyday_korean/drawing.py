"""Draws sentences: every construction in its share, and the small grammar's sentences in theirs."""

import re
from collections.abc import Callable
from random import Random

from transformer_lib.datasets.everyday_korean import (
    asking,
    being,
    comparing,
    counting,
    dating,
    describing,
    happening,
    linking,
    relatives,
    statements,
    wanted,
)
from transformer_lib.datasets.everyday_korean.sentence import Sentence
from transformer_lib.datasets.everyday_korean.spoken import colloquial
from transformer_lib.datasets.korean_english import sentences
from transformer_lib.datasets.korean_english.dice import Dice

__all__ = ["FRAMES", "SMALL", "draw", "plain_word"]

SMALL = 0.15  # share of the small grammar
SHORTEST, LONGEST = 1, 14  # Korean words
FRAMES: dict[Callable[[Dice], Sentence], float] = {
    statements.statement: 22.0,
    statements.question: 8.0,
    statements.modal_statement: 16.0,
    wanted.request: 8.0,
    wanted.proposal: 4.0,
    asking.open_question: 7.0,
    asking.where_is: 1.5,
    asking.asked_about: 0.8,
    describing.description: 10.0,
    describing.feeling: 3.0,
    describing.state: 3.5,
    describing.pain: 0.8,
    comparing.comparison: 3.0,
    being.identity: 2.5,
    being.this_is: 2.0,
    being.there_is: 2.5,
    being.is_somewhere: 2.5,
    counting.counted: 2.5,
    counting.counted_request: 1.2,
    counting.age: 0.7,
    counting.price: 1.0,
    dating.clock: 0.5,
    dating.at_the_hour: 2.0,
    dating.date: 0.8,
    dating.duration: 1.5,
    dating.span: 0.8,
    counting.how_many: 1.2,
    relatives.relative_object: 3.5,
    relatives.relative_person: 2.0,
    linking.linked: 15.0,
    happening.happening: 4.0,
    happening.weather: 2.5,
    happening.homonym: 4.0,
}
_DOUBLED = (" at at ", " in in ", " to to ", " on on ")  # right, and yet nobody says it
_POINTS: list[tuple[float, Callable[[Dice], Sentence]]] = []
_sum = 0.0
for _frame, _share in FRAMES.items():
    _sum += _share
    _POINTS.append((_sum, _frame))


_FIRST = {"저", "나", "제", "내", "우리", "저는", "제가", "나는", "내가", "우리는", "우리가"}
_ASKED_KIN = re.compile(r"^(Did|Does|Do|Is|Are|Was|Were|Will|Can|Could) my ")


_ACHE = re.compile(r"(머리|배|눈|다리|허리|목)(가|이) 아")


def _whose(old: sentences.Sentence) -> str | None:
    """The English with relatives as they are here: one's own; None where it cannot be told."""
    if _ACHE.search(old.korean) and "hurt" in old.english:
        return None  # 머리가 아프다 is to have a headache
    if "my " not in old.english.lower() or not _FIRST.isdisjoint(old.korean.split()):
        return old.english
    if _ASKED_KIN.match(old.english):
        return old.english.replace(" my ", " your ")
    first = old.english.startswith("My ") and " my " not in old.english
    return old.english if first else None


def _small(random: Random) -> Sentence:
    """A sentence of the small grammar, its English contracted as people speak."""
    old = sentences.draw(random)
    english = _whose(old)
    while english is None:
        old = sentences.draw(random)
        english = _whose(old)
    words = tuple(plain_word(word) for word in old.words)
    pairs = tuple((plain_word(first), plain_word(second)) for first, second in old.pairs)
    return Sentence(old.korean, colloquial(english), words, old.senses, pairs, "small grammar")


def plain_word(word: str) -> str:
    """The id of a word in both grammars: homonyms keep their sense, 타다:take is 타다."""
    first, colon, second = word.partition(":")
    if colon and first[-1:] == "다":
        return first
    return word if colon and second else first


def draw(random: Random) -> Sentence:
    """Draw a sentence."""
    if random.random() < SMALL:
        return _small(random)
    dice = Dice(random)
    while True:
        point = random.random() * _sum
        frame = next(frame for limit, frame in _POINTS if point < limit)
        sentence = frame(dice)
        fits = SHORTEST <= sentence.korean.count(" ") + 1 <= LONGEST
        if fits and not any(doubled in sentence.english for doubled in _DOUBLED):
            return sentence

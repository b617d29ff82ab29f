"""Capstone of part 4, Training and translating: a translator for a language of one's own."""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from transformer_lib.course.exercises import Exercise, NotYetError

_Pair = tuple[str, str]


class _Judge:
    """Turns a function that yields what is wrong into a judge of answers."""

    def __init__(self, problems: Callable[[Any], Iterator[str]]):
        self.problems = problems

    def __call__(self, answer: Any) -> str | None:
        """Return the first thing that is wrong."""
        if answer is None or answer is ...:
            raise NotYetError
        return next(self.problems(answer), None)


def _called(function: Any, *arguments: Any) -> tuple[Any, str]:
    """Return what a learner's function returns, and what went wrong."""
    if not callable(function):
        return None, f"a function is asked for, got {type(function).__name__}"
    try:
        result = function(*arguments)
    except NotImplementedError:
        raise NotYetError from None
    except Exception as error:
        return None, f"your function raised {type(error).__name__}: {error}"
    if result is None or result is ...:
        raise NotYetError
    return result, ""


def _are_pairs(pairs: Any) -> bool:
    return isinstance(pairs, Sequence) and all(
        isinstance(pair, Sequence)
        and len(pair) == 2
        and all(isinstance(side, str) and side.strip() for side in pair)
        for pair in pairs
    )


def _language_problems(answer: Any) -> Iterator[str]:
    pairs, fault = _called(answer, 2000, 0)
    if fault:
        yield fault
        return
    if not _are_pairs(pairs):
        yield "a list of pairs of texts is asked for, none of them empty"
        return
    pairs = [tuple(pair) for pair in pairs]
    if len(pairs) != 2000:
        yield f"2000 pairs were asked for, {len(pairs)} came"
    again = [tuple(pair) for pair in answer(2000, 0)]
    if again != pairs:
        yield "the same seed gives other pairs: draw from random.Random(seed)"
    if [tuple(pair) for pair in answer(2000, 1)] == pairs:
        yield "another seed gives the same pairs"
    english: dict[str, str] = {}
    if any(english.setdefault(source, target) != target for source, target in pairs):
        yield "a source comes with two targets: no translator could be right about both"
    if len(english) < 1000:
        yield f"of 2000 sources {len(english)} differ: make it larger, 1000 at least"
    if any(source == target for source, target in pairs):
        yield "a target equals its source: there is nothing to translate"


LEVELS = [(f"{verb} {level}", f"to {verb}") for verb in range(300) for level in "abcd"]
LEVELS += LEVELS[:40]  # some pairs come twice


def _split_problems(answer: Any) -> Iterator[str]:
    result, fault = _called(answer, list(LEVELS), 60)
    if fault:
        yield fault
        return
    if not (isinstance(result, Sequence) and len(result) == 2 and all(map(_are_pairs, result))):
        yield "two lists of pairs are asked for, to train on and to test on"
        return
    train, test = ([tuple(pair) for pair in part] for part in result)
    if len(train) == 60 != len(test):
        yield "the two parts are exchanged: first what to train on, then what to test on"
    if len(test) != 60:
        yield f"60 pairs to test on were asked for, {len(test)} came"
    if not set(train) | set(test) <= set(LEVELS):
        yield "there are pairs that were not given"
    sources, targets = ({pair[side] for pair in test} for side in (0, 1))
    if any(source in sources for source, _ in train):
        yield "a sentence to test on stands in the text to train on"
    if any(target in targets for _, target in train):
        yield "a translation to test on stands in the text to train on, with another source"
    left = [pair for pair in LEVELS if pair[1] not in targets]
    if len(train) < len(left):
        yield f"{len(left)} pairs share nothing with the test, and {len(train)} are trained on"


def _translator_problems(answer: Any) -> Iterator[str]:
    if not (isinstance(answer, Sequence) and len(answer) == 3):
        yield "three things are asked for: the pairs to train on, those to test on, the translator"
        return
    if any(part is None or part is ... for part in answer):
        raise NotYetError
    train, test, translator = answer
    if not (_are_pairs(train) and _are_pairs(test)):
        yield "the first two are lists of pairs of texts"
        return
    if len(test) < 50:
        yield f"{len(test)} sentences are too few to test on: 50 at least"
        return
    known, translations = {source for source, _ in train}, {target for _, target in train}
    if any(source in known or target in translations for source, target in test):
        yield "what is tested stands in the text to train on: split again"
    sources = [source for source, _ in test][:200]
    references = [target for _, target in test][:200]
    if not hasattr(translator, "translate_all"):
        yield f"a Translator is asked for, got {type(translator).__name__}"
        return
    said, fault = _called(translator.translate_all, sources)
    if fault:
        yield fault
        return
    exact = _right(said, references)
    if exact < 0.8:
        yield f"{exact:.0%} of the test set is right to the letter, 80% is asked for"


def _right(translations: Sequence[str], references: Sequence[str]) -> float:
    return sum(map(str.__eq__, translations, references)) / len(references)


ANIMALS = ["cat", "dog", "cow", "hen", "fox", "bee", "owl", "ant", "pig", "rat", "bat", "yak"]
COLOURS = ["red", "blue", "green", "grey", "black", "white"]
VERBS = ["sees", "calls", "helps", "follows"]


def _sentences(count: int, seed: int) -> list[_Pair]:
    """Return sentences whose verb comes last, each word spelt backwards, and their English."""
    chance = random.Random(seed)
    pairs = []
    for _ in range(count):
        (a, b), (c, d) = chance.choices(ANIMALS, k=2), chance.choices(COLOURS, k=2)
        verb = chance.choice(VERBS)
        source = " ".join(word[::-1] for word in (a, c, b, d, verb))
        pairs.append((source, f"the {c} {a} {verb} the {d} {b}"))
    return pairs


def _dates(count: int, seed: int) -> list[list[str]]:
    chance = random.Random(seed)
    days = [(chance.randrange(1900, 2100), chance.randrange(1, 13)) for _ in range(count)]
    return [[f"month {month} of {year}", f"{year}-{month:02}"] for year, month in days]


def _any_seed(count: int, seed: int) -> list[_Pair]:
    return _sentences(count, random.randrange(10**9))


def _no_seed(count: int, seed: int) -> list[_Pair]:
    return _sentences(count, 0)


def _ambiguous(count: int, seed: int) -> list[_Pair]:
    return [(source.split(" ", 1)[1], target) for source, target in _sentences(count, seed)]


def _small(count: int, seed: int) -> list[_Pair]:
    return [(str(seed + i % 100), f"number {seed + i % 100}") for i in range(count)]


def _echo(count: int, seed: int) -> list[_Pair]:
    return [(target, target) for _, target in _sentences(count, seed)]


def _too_few(count: int, seed: int) -> list[_Pair]:
    return list(dict.fromkeys(_sentences(count, seed)))[: count // 2]


def _split(pairs: list[_Pair], test: int) -> tuple[list[_Pair], list[_Pair]]:
    order = random.Random(0).sample(range(len(pairs)), len(pairs))
    held_out = [pairs[i] for i in order[:test]]
    sources, targets = {source for source, _ in held_out}, {target for _, target in held_out}
    rest = [pairs[i] for i in order[test:]]
    return [p for p in rest if p[0] not in sources and p[1] not in targets], held_out


def _split_by_target(pairs: list[_Pair], test: int) -> list[list[_Pair]]:
    """Hold out whole translations until enough sentences are held out."""
    targets = sorted({target for _, target in pairs})
    random.Random(1).shuffle(targets)
    held_out: list[_Pair] = []
    while len(held_out) < test:
        target = targets.pop()
        held_out += [pair for pair in pairs if pair[1] == target]
    left = set(targets)
    return [[pair for pair in pairs if pair[1] in left], held_out[:test]]


def _at_random(pairs: list[_Pair], test: int) -> tuple[list[_Pair], list[_Pair]]:
    shuffled = random.Random(0).sample(pairs, len(pairs))
    return shuffled[test:], shuffled[:test]


def _by_source(pairs: list[_Pair], test: int) -> tuple[list[_Pair], list[_Pair]]:
    different = random.Random(0).sample(list(dict.fromkeys(pairs)), 1000)
    return different[test:], different[:test]


def _exchanged(pairs: list[_Pair], test: int) -> tuple[list[_Pair], list[_Pair]]:
    train, held_out = _split(pairs, test)
    return held_out, train


def _half_thrown_away(pairs: list[_Pair], test: int) -> tuple[list[_Pair], list[_Pair]]:
    held_out = pairs[:test]
    targets = {target for _, target in held_out}
    return [pair for pair in pairs[600:] if pair[1] not in targets], held_out


class _ByRule:
    """Translates the language of the tests without having learnt it."""

    def translate_all(self, texts: Sequence[str]) -> list[str]:
        """Return the translations."""
        translations = []
        for text in texts:
            a, c, b, d, verb = (word[::-1] for word in text.split())
            translations.append(f"the {c} {a} {verb} the {d} {b}")
        return translations


class _MostlyRight(_ByRule):
    def translate_all(self, texts: Sequence[str]) -> tuple[str, ...]:  # type: ignore[override]
        """Return the translations, every tenth of them wrong."""
        right = super().translate_all(texts)
        return tuple("the cat" if i % 10 == 0 else text for i, text in enumerate(right))


class _WordForWord:
    def translate_all(self, texts: Sequence[str]) -> list[str]:
        """Return the words in the order of the source."""
        return [" ".join(word[::-1] for word in text.split()) for text in texts]


TRAIN, TEST = _split(_sentences(1500, 0), 60)
EXERCISES = (
    Exercise(
        name="own-language",
        judge=_Judge(_language_problems),
        right=(_sentences, _dates),
        mistakes={
            "the same seed gives other pairs: draw from random.Random(seed)": _any_seed,
            "another seed gives the same pairs": _no_seed,
            "a source comes with two targets: no translator could be right about both": _ambiguous,
            "of 2000 sources 100 differ: make it larger, 1000 at least": _small,
            "a target equals its source: there is nothing to translate": _echo,
            "2000 pairs were asked for, 1000 came": _too_few,
            "a list of pairs of texts is asked for, none of them empty": (
                lambda count, seed: [("a", "")] * count
            ),
        },
    ),
    Exercise(
        name="own-split",
        judge=_Judge(_split_problems),
        right=(_split, _split_by_target),
        mistakes={
            "a sentence to test on stands in the text to train on": _at_random,
            "a translation to test on stands in the text to train on, with another source": (
                _by_source
            ),
            "the two parts are exchanged: first what to train on, then what to test on": _exchanged,
            "1140 pairs share nothing with the test, and 600 are trained on": _half_thrown_away,
            "60 pairs to test on were asked for, 0 came": lambda pairs, test: (pairs, []),
        },
    ),
    Exercise(
        name="own-translator",
        judge=_Judge(_translator_problems),
        right=((TRAIN, TEST, _ByRule()), [TRAIN, TEST, _MostlyRight()]),
        mistakes={
            "0% of the test set is right to the letter, 80% is asked for": (
                TRAIN,
                TEST,
                _WordForWord(),
            ),
            "what is tested stands in the text to train on: split again": (
                TRAIN,
                TRAIN[:60],
                _ByRule(),
            ),
            "10 sentences are too few to test on: 50 at least": (TRAIN, TEST[:10], _ByRule()),
            "a Translator is asked for, got str": (TRAIN, TEST, "translator"),
        },
    ),
)

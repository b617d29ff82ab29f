"""Training text, and four kinds of unseen text.

Withheld from training are pairs of ordinary content words (buy and lemon, each often seen without
the other), pairs of a homonym and another word that does not decide its sense (배 and a name, a
place, a colour), and pairs of a homonym and a word that does (배 and 시다, sour).
"""

from collections import Counter
from itertools import chain
from random import Random
from typing import NamedTuple
from zlib import crc32

from transformer_lib.datasets.korean_english.lexicon import (
    ADJECTIVES,
    HOMONYMS,
    VERBS,
    WITHHELD_CONTEXTS,
    Noun,
)
from transformer_lib.datasets.korean_english.sentences import Sentence, draw

__all__ = [
    "KEY_PHRASES",
    "LARGEST",
    "WITHHELD_PAIRS",
    "Splits",
    "generate",
    "splits",
]

LARGEST = 1_000_000  # sentences; all of them are reachable with every seed
SHARE = 12  # one pair in so many is withheld
COMPANY = 6  # a homonym never meets one in so many of the words that do not decide its sense
FEWEST_PARTNERS = 4  # that a word of a withheld pair has, with the withheld one
PEOPLE = ("kin", "name", "worker", "child", "adult")
KEY_PHRASES = (
    Sentence(
        "인도 카레 전문점",
        "Indian curry restaurant",
        ("인도:India", "카레", "전문점"),
        (("인도", "India"),),
        (("인도:India", "카레"),),
    ),
    Sentence(
        "인도 주행 금지",
        "No riding on the sidewalk",
        ("인도:sidewalk", "주행", "금지"),
        (("인도", "sidewalk"),),
        (("주행", "인도:sidewalk"),),
    ),
)
CONTEXTS = {
    *WITHHELD_CONTEXTS,
    *(("인도:India", food) for food in ("카레", "만두", "커피", "영화")),
    *(("인도:sidewalk", action) for action in ("주행", "흡연")),
    ("눈:snow", "내리다"),
}


class Splits(NamedTuple):
    """Training sentences, and unseen ones of four kinds."""

    train: list[Sentence]
    random: list[Sentence]
    compositional: list[Sentence]
    homonyms: list[Sentence]
    deciders: list[Sentence]


def _is_plain(noun: Noun) -> bool:
    return not noun.sense and noun.kind not in PEOPLE


def _withheld_pairs() -> frozenset[tuple[str, str]]:
    """Choose pairs by a checksum of their letters, so that they never change."""
    verb_pairs = ((v.word, n.word) for v in VERBS for n in v.objects if _is_plain(n))
    adjective_pairs = ((a.word, n.word) for a in ADJECTIVES for n in a.nouns if _is_plain(n))
    pairs = list(dict.fromkeys(chain(verb_pairs, adjective_pairs)))
    partners = Counter(word for pair in pairs for word in pair)
    return frozenset(
        (first, second)
        for first, second in pairs
        if min(partners[first], partners[second]) >= FEWEST_PARTNERS
        and crc32(f"{first} {second}".encode()) % SHARE == 0
    )


WITHHELD_PAIRS = _withheld_pairs()
_PARTNERS: dict[str, set[str]] = {}
for _first, _second in WITHHELD_PAIRS:
    _PARTNERS.setdefault(_first, set()).add(_second)
_SENSES = [(homonym, sense) for homonym, senses in HOMONYMS.items() for sense in senses]
_HOMONYM_CONTEXTS = {(word.partition(":")[0], decider) for word, decider in CONTEXTS}


def _holds_withheld_pair(sentence: Sentence) -> bool:
    """Tell whether two words of a withheld pair stand anywhere in the sentence."""
    words = set(sentence.words)
    return any(not words.isdisjoint(_PARTNERS.get(word, ())) for word in words)


def _holds_withheld_context(sentence: Sentence) -> bool:
    """Tell whether a homonym stands in a sentence with a word it must not meet in training."""
    return any(
        (homonym, word) in _HOMONYM_CONTEXTS
        for homonym, _ in sentence.senses
        for word in sentence.words
    )


def _shows_withheld_pair(sentence: Sentence) -> bool:
    """Tell whether a withheld pair belongs together in the sentence."""
    return any(pair in WITHHELD_PAIRS for pair in sentence.pairs)


def _strangers(sentence: Sentence) -> int:
    """Count the words beside a homonym that decide nothing and never meet it in training."""
    count = 0
    for homonym, sense in sentence.senses:
        word = f"{homonym}:{sense}"
        deciders = set(chain.from_iterable(pair for pair in sentence.pairs if word in pair))
        count += sum(
            crc32(f"{homonym} {other}".encode()) % COMPANY == 0
            for other in sentence.words
            if other not in deciders and other != word
        )
    return count


def _context(sentence: Sentence) -> tuple[str, str] | None:
    """The one withheld context of a sentence whose only homonym nothing else decides."""
    if len(sentence.senses) != 1:
        return None
    word = ":".join(sentence.senses[0])
    partners = [
        second if first == word else first
        for first, second in sentence.pairs
        if word in (first, second)
    ]
    if len(partners) != 1 or (word, partners[0]) not in CONTEXTS:
        return None
    return word, partners[0]


def _require_size(name: str, size: int) -> None:
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"{name}: expected a whole number, got {type(size).__name__}")
    if not 0 <= size <= LARGEST:
        raise ValueError(f"{name}: expected 0 to {LARGEST:,} sentences, got {size:,}")


def _require_seed(seed: int) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"seed: expected a whole number, got {type(seed).__name__}")


def generate(size: int, *, seed: int = 0) -> list[Sentence]:
    """Generate distinct sentence pairs.

    The same size and seed give the same sentences in every process, on every platform and in every
    version of Python; a larger size begins with the sentences of a smaller one. The same Korean
    never comes with two English sentences, whatever the seed.

    Args:
        size: How many, at most ``LARGEST``.
        seed: Which ones.

    Returns:
        Sentences, no two of the same Korean.

    Raises:
        TypeError: ``size`` or ``seed`` is not a whole number.
        ValueError: ``size`` is negative or above ``LARGEST``.
    """
    _require_size("size", size)
    _require_seed(seed)
    random = Random(seed)
    sentences: dict[str, Sentence] = {}
    while len(sentences) < size:
        sentence = draw(random)
        sentences.setdefault(sentence.korean, sentence)
    return list(sentences.values())


def splits(*, train: int = 60_000, test: int = 1_000, seed: int = 0) -> Splits:
    """Generate training sentences and four sets of unseen ones.

    No Korean sentence stands in two sets or twice in one. The same arguments give the same
    sentences in every process, on every platform and in every version of Python; the unseen ones
    do not depend on ``train``.

    ``random`` is drawn like ``train``. Each sentence of ``compositional`` joins two content words,
    a pair of ``WITHHELD_PAIRS``, that stand in no training sentence together. Each sentence of
    ``homonyms`` has one homonym beside another word that it never stands with in training, while
    the word that decides its sense is known; senses take turns, and the ``KEY_PHRASES`` come
    first. Each sentence of ``deciders`` is harder: its one homonym is decided by one word that
    stands in no training sentence with it, in any sense; contexts take turns.

    Args:
        train: Sentences to train on, at most ``LARGEST``.
        test: Sentences in each of the other four, at most ``LARGEST`` // 100.
        seed: Which ones. What is withheld is the same for all seeds.

    Returns:
        The five sets.

    Raises:
        TypeError: An argument is not a whole number.
        ValueError: ``train`` or ``test`` is negative or too large.
    """
    _require_size("train", train)
    _require_size("test", test)
    if test > LARGEST // 100:
        raise ValueError(f"test: expected at most {LARGEST // 100:,} sentences, got {test:,}")
    _require_seed(seed)
    random = Random(seed)
    found = Splits([], [], [], list(KEY_PHRASES[:test]), [])
    sizes = (train, test, test, test, test)
    seen = {sentence.korean for sentence in KEY_PHRASES}
    room = dict.fromkeys(CONTEXTS, -(-test // len(CONTEXTS)) * 2)
    turns = dict.fromkeys(_SENSES, -(-test // len(_SENSES)) * 2)
    while any(len(part) < size for part, size in zip(found, sizes, strict=True)):
        sentence = draw(random)
        if sentence.korean in seen:
            continue
        seen.add(sentence.korean)
        if _holds_withheld_context(sentence):
            context = _context(sentence)
            fits = context is not None and not _holds_withheld_pair(sentence)
            if context and fits and room[context] and len(found.deciders) < test:
                room[context] -= 1
                found.deciders.append(sentence)
        elif _holds_withheld_pair(sentence):
            if _shows_withheld_pair(sentence) and len(found.compositional) < test:
                found.compositional.append(sentence)
        elif _strangers(sentence):
            (sense, *others) = sentence.senses
            if not others and turns[sense] and len(found.homonyms) < test:
                turns[sense] -= 1
                found.homonyms.append(sentence)
        elif len(found.random) < test:
            found.random.append(sentence)
        elif len(found.train) < train:
            found.train.append(sentence)
    return found

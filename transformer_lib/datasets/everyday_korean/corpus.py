"""Training text, and four kinds of unseen text.

Withheld from training are pairs of ordinary content words (buy and lemon, each often seen without
the other), pairs of a homonym and another word that does not decide its sense, and the small
grammar's pairs of a homonym and a word that does (배 and 시다, sour).
"""

from collections import Counter
from random import Random
from typing import NamedTuple
from zlib import crc32

from transformer_lib.datasets.everyday_korean import tables
from transformer_lib.datasets.everyday_korean.drawing import draw, plain_word
from transformer_lib.datasets.everyday_korean.sentence import Sentence
from transformer_lib.datasets.korean_english.corpus import CONTEXTS as SMALL_CONTEXTS
from transformer_lib.datasets.korean_english.corpus import WITHHELD_PAIRS as SMALL_PAIRS

__all__ = ["CONTEXTS", "LARGEST", "WITHHELD_PAIRS", "Splits", "generate", "splits"]

LARGEST = 1_000_000  # sentences; all of them are reachable with every seed
SHARE = 14  # one pair in so many is withheld
COMPANY = 7  # a homonym never meets one in so many of the words that do not decide its sense
FEWEST_PARTNERS = 4  # that a word of a withheld pair has, with the withheld one


class Splits(NamedTuple):
    """Training sentences, and unseen ones of four kinds."""

    train: list[Sentence]
    random: list[Sentence]
    compositional: list[Sentence]
    homonyms: list[Sentence]
    deciders: list[Sentence]


_PEOPLE = ("name", "kin", "elder", "relation", "person", "job")


def _withheld_pairs() -> frozenset[tuple[str, str]]:
    """Choose pairs by a checksum of their letters, so that they never change."""
    found: dict[tuple[str, str], None] = {}
    for verb in tables.VERBS:
        for noun in verb.objects:
            if not noun.sense and noun.kind not in _PEOPLE and noun.number != "fixed":
                found[verb.word, noun.word] = None
    for adjective in tables.ADJECTIVES:
        for noun, _ in adjective.nouns:
            if not noun.sense and noun.kind not in _PEOPLE:
                found[adjective.word, noun.word] = None
    partners = Counter(word for pair in found for word in pair)
    chosen = {
        (first, second)
        for first, second in found
        if min(partners[first], partners[second]) >= FEWEST_PARTNERS
        and crc32(f"{first} {second}".encode()) % SHARE == 0
    }
    # The small grammar withholds by its own ids; both grammars keep to both lists.
    known = {(plain_word(first), plain_word(second)) for first, second in SMALL_PAIRS}
    return frozenset(chosen | known)


WITHHELD_PAIRS = _withheld_pairs()
CONTEXTS = tuple(dict.fromkeys((word, plain_word(other)) for word, other in SMALL_CONTEXTS))
_PARTNERS: dict[str, set[str]] = {}
for _first, _second in WITHHELD_PAIRS:
    _PARTNERS.setdefault(_first, set()).add(_second)
_HOMONYM_CONTEXTS = {(word.partition(":")[0], decider) for word, decider in CONTEXTS}
_SENSES = tuple(
    dict.fromkeys([noun.sense for noun in tables.NOUNS if noun.sense and noun.korean != "풀"])
)


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
        deciders = {other for pair in sentence.pairs if word in pair for other in pair}
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


def _require_size(name: str, size: int, largest: int = LARGEST) -> None:
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"{name}: expected a whole number, got {type(size).__name__}")
    if not 0 <= size <= largest:
        raise ValueError(f"{name}: expected 0 to {largest:,} sentences, got {size:,}")


def _require_seed(seed: int) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"seed: expected a whole number, got {type(seed).__name__}")


def generate(count: int, seed: int = 0) -> list[Sentence]:
    """Generate distinct sentence pairs.

    The same count and seed give the same sentences in every process, on every platform and in every
    version of Python; a larger count begins with the sentences of a smaller one.

    Args:
        count: How many, at most ``LARGEST``.
        seed: Which ones.

    Returns:
        Sentences, no two of the same Korean.

    Raises:
        TypeError: ``count`` or ``seed`` is not a whole number.
        ValueError: ``count`` is negative or above ``LARGEST``.
    """
    _require_size("count", count)
    _require_seed(seed)
    random = Random(seed)
    sentences: dict[str, Sentence] = {}
    while len(sentences) < count:
        sentence = draw(random)
        sentences.setdefault(sentence.korean, sentence)
    return list(sentences.values())


def splits(seed: int = 0, *, train: int = 200_000, test: int = 1_000) -> Splits:
    """Generate training sentences and four sets of unseen ones.

    No Korean sentence stands in two sets or twice in one. The same arguments give the same
    sentences in every process, on every platform and in every version of Python; the unseen ones
    do not depend on ``train``.

    ``random`` is drawn like ``train``. Each sentence of ``compositional`` joins two content words,
    a pair of ``WITHHELD_PAIRS``, that stand in no training sentence together. Each sentence of
    ``homonyms`` has one homonym beside another word that it never stands with in training, while
    the word that decides its sense is known; senses take turns. Each sentence of ``deciders`` is
    harder: its one homonym is decided by one word that stands in no training sentence with it, in
    any sense; ``CONTEXTS`` take turns.

    Args:
        seed: Which ones. What is withheld is the same for all seeds.
        train: Sentences to train on, at most ``LARGEST``.
        test: Sentences in each of the other four, at most ``LARGEST`` // 100.

    Returns:
        The five sets.

    Raises:
        TypeError: An argument is not a whole number.
        ValueError: ``train`` or ``test`` is negative or too large.
    """
    _require_seed(seed)
    _require_size("train", train)
    _require_size("test", test, LARGEST // 100)
    random = Random(seed)
    found = Splits([], [], [], [], [])
    sizes = (train, test, test, test, test)
    seen: set[str] = set()
    room = dict.fromkeys(CONTEXTS, -(-test // len(CONTEXTS)) * 2)
    turns = dict.fromkeys(_SENSES, -(-test // len(_SENSES)) * 2)
    while any(len(part) < size for part, size in zip(found, sizes, strict=True)):
        sentence = draw(random)
        if sentence.korean in seen:
            continue
        seen.add(sentence.korean)
        if sentence.senses and _holds_withheld_context(sentence):
            context = _context(sentence)
            fits = context is not None and not _holds_withheld_pair(sentence)
            if context and fits and room[context] and len(found.deciders) < test:
                room[context] -= 1
                found.deciders.append(sentence)
        elif _holds_withheld_pair(sentence):
            if _shows_withheld_pair(sentence) and len(found.compositional) < test:
                found.compositional.append(sentence)
        elif sentence.senses and _strangers(sentence):
            sense, *others = sentence.senses
            if not others and turns.get(sense) and len(found.homonyms) < test:
                turns[sense] -= 1
                found.homonyms.append(sentence)
        elif len(found.random) < test:
            found.random.append(sentence)
        elif len(found.train) < train:
            found.train.append(sentence)
    return found

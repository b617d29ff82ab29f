"""Everyday Korean–English pairs written sentence by sentence, split by meaning.

Three files, ``train.tsv``, ``valid.tsv`` and ``test.tsv``: Korean, tab, English, and further
English renderings where people would differ. Lines that say the same thing stand below each other,
an empty line ends a meaning, and ``# `` begins a topic. ``README.md`` beside them tells how they
came about; ``tools/check_corpus.py`` holds them to it.
"""

from collections.abc import Iterator
from importlib import resources
from typing import Literal, NamedTuple, get_args

from transformer_lib.datasets.pairs import Pair

__all__ = ["HandwrittenPair", "handwritten", "training_pairs"]

Split = Literal["train", "valid", "test"]


class HandwrittenPair(NamedTuple):
    """A Korean sentence, its English renderings, and where it belongs."""

    korean: str
    english: tuple[str, ...]  # the first is the closest
    topic: str
    meaning: int  # pairs of one split with the same number say the same thing


def handwritten(split: Split) -> list[HandwrittenPair]:
    """Return the pairs of a split: 8,231 to train with, 445 to validate, 624 to test."""
    if split not in get_args(Split):
        raise ValueError(f"split: expected one of {', '.join(get_args(Split))}, got {split!r}")
    text = resources.files(__package__).joinpath(f"{split}.tsv").read_text(encoding="utf-8")
    return list(_parse(text))


def training_pairs() -> list[Pair]:
    """Return every Korean sentence of the training split with each of its English renderings."""
    pairs = handwritten("train")
    return [Pair(pair.korean, english) for pair in pairs for english in pair.english]


def _parse(text: str) -> Iterator[HandwrittenPair]:
    topic, meaning = "", 0
    for line in text.split("\n"):
        if line.startswith("# "):
            topic = line[2:]
        elif not line:
            meaning += 1
        else:
            korean, *english = line.split("\t")
            yield HandwrittenPair(korean, tuple(english), topic, meaning)

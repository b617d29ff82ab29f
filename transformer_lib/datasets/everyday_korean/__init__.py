"""Everyday beginner's Korean with English translations, made by a grammar.

``tables`` reads 1,800 words from the lists beside it, ``forms`` conjugates Korean, ``phrasing``
English; ``numerals`` counts in both. ``cast`` draws who does something, ``deeds`` what. The
constructions are in ``statements``, ``wanted``, ``asking``, ``describing``, ``being``,
``happening``, ``counting``, ``dating``, ``relatives`` and ``linking``; ``drawing`` mixes them, and
the sentences of ``transformer_lib.datasets.korean_english``, in their shares; ``corpus`` decides
what is kept from training.
"""

from transformer_lib.datasets.everyday_korean.corpus import (
    LARGEST,
    WITHHELD_PAIRS,
    Splits,
    generate,
    splits,
)
from transformer_lib.datasets.everyday_korean.sentence import Sentence

__all__ = ["LARGEST", "WITHHELD_PAIRS", "Sentence", "Splits", "generate", "splits"]

"""Sentence pairs to learn translation from: a generated corpus, everyday sentences, your own file.

The generated corpus is ``transformer_lib.datasets.korean_english``.
"""

from transformer_lib.datasets.pairs import Pair, everyday, read_pairs

__all__ = ["Pair", "everyday", "read_pairs"]

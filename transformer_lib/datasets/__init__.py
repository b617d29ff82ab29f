"""What to learn from: sentence pairs of a grammar, everyday ones, your own, and drawn scenes.

The grammar is ``transformer_lib.datasets.korean_english``, the scenes are
``transformer_lib.datasets.scenes``.
"""

from transformer_lib.datasets.pairs import Pair, everyday, read_pairs

__all__ = ["Pair", "everyday", "read_pairs"]

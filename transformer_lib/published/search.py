"""What published settings ask of a search.

Explained in chapter 16, "Pretrained weights" (book/16_pretrained_weights.ipynb). Generated from
there by tools/export.py; edit the notebook.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from transformer_lib.decoding import NextToken

__all__ = ["Restricted"]


class Restricted:
    """A decoder some of whose tokens cannot come, so that the others share their probability.

    Args:
        decoder: Any decoder.
        barred: The tokens that cannot come.
        barred_first: Those that cannot come in the first step.
        ending: A number of steps and the end token, which alone can come in the last of them.
    """

    def __init__(
        self,
        decoder: NextToken,
        *,
        barred: Sequence[int] = (),
        barred_first: Sequence[int] = (),
        ending: tuple[int, int] | None = None,
    ) -> None:
        self.decoder, self.ending, self.steps = decoder, ending, 0
        self.barred, self.barred_first = list(barred), list(barred_first)

    @property
    def rows(self) -> int:
        """Number of rows of tokens."""
        return self.decoder.rows

    def advance(self, tokens: Tensor) -> Tensor:
        """Append tokens and return the logits of the next, −∞ where it cannot come."""
        logits = self.decoder.advance(tokens)
        self.steps += 1
        if self.ending and self.steps == self.ending[0]:
            only = torch.full_like(logits, -math.inf)
            only[:, self.ending[1]] = 0
            return only
        barred = self.barred + (self.barred_first if self.steps == 1 else [])
        places = torch.tensor(barred, dtype=torch.int64, device=logits.device)
        return logits.index_fill(-1, places, -math.inf)

    def select(self, rows: Tensor) -> None:
        """Go on with these rows."""
        self.decoder.select(rows)

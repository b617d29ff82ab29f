"""From tokens to vectors and back: embedding, input of encoder and decoder, generator.

Explained in chapter 10, "Embeddings and output" (book/10_embeddings.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib._checks.common import require_axes, require_floating
from transformer_lib.add_norm import LayerNorm

__all__ = ["Generator", "InputLayer", "TokenEmbedding"]


class TokenEmbedding(nn.Module):
    """Looks up one learnt vector per token and multiplies it by √d_model.

    ``weight``, of shape (vocabulary_size, d_model), starts normal with standard deviation
    1 / √d_model: an entry of a scaled vector has variance 1, and so have the logits of a
    :class:`Generator` tied to it, for vectors whose entries have variance 1.

    Args:
        vocabulary_size: Number of tokens; their ids are 0 … vocabulary_size − 1.
        d_model: Width of the vectors.
        scale: Whether to multiply by √d_model. Without, the vectors are the rows of ``weight``.

    Raises:
        ValueError: A size is smaller than 1.

    Source: Vaswani et al. (2017), section 3.4.
    """

    def __init__(self, vocabulary_size: int, d_model: int, *, scale: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(_new_weight(vocabulary_size, d_model))
        self.scale = math.sqrt(d_model) if scale else 1.0

    def forward(self, tokens: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch d_model"]:
        """Return the vectors of ``tokens``.

        Args:
            tokens: Token ids of shape (*batch), int64 or int32.

        Returns:
            Vectors of shape (*batch, d_model) in the dtype of ``weight``; empty if ``tokens`` is.
            Only the rows that were looked up get a gradient other than 0, the sum over all places
            of their token. A row with a NaN spoils the places of its own token only.

        Raises:
            TypeError: ``tokens`` is no int64 or int32 tensor.
            ValueError: A token lies outside the vocabulary. This reads the ids, and is left out
                while ``torch.compile`` or ``torch.export`` trace the module.
        """
        dtype = tokens.dtype if isinstance(tokens, Tensor) else type(tokens).__name__
        if dtype not in (torch.int64, torch.int32):
            raise TypeError(f"tokens: expected a tensor of ids in int64 or int32, got {dtype}")
        if tokens.numel() and not torch.compiler.is_compiling():
            low, high = tokens.aminmax()
            if low < 0 or high >= len(self.weight):
                raise ValueError(
                    f"tokens: expected ids from 0 to {len(self.weight) - 1}, "
                    f"got ids from {int(low)} to {int(high)}"
                )
        return F.embedding(tokens, self.weight) * self.scale


def _new_weight(vocabulary_size: int, d_model: int) -> Tensor:
    for name, size in (("vocabulary_size", vocabulary_size), ("d_model", d_model)):
        if size < 1:
            raise ValueError(f"{name}: expected 1 or more, got {size}")
    return nn.init.normal_(torch.empty(vocabulary_size, d_model), std=d_model**-0.5)


class InputLayer(nn.Module):
    """What becomes of token vectors before the first layer: positions, a norm on request, dropout.

    Args:
        d_model: Width of the vectors.
        positions: A module that adds positions, called as ``positions(x, offset=offset)``, or None.
        norm_eps: eps of a layer normalisation of the sum, as in BERT; None is no normalisation.
        dropout: Probability of dropping a number of the sum while training.

    Raises:
        ValueError: ``dropout`` is not between 0 and 1.

    Source: Vaswani et al. (2017), sections 3.5 (the sum) and 5.4 (its dropout). The normalisation:
    Devlin et al. (2019).
    """

    def __init__(
        self,
        d_model: int,
        positions: nn.Module | None = None,
        *,
        norm_eps: float | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.positions = positions
        self.norm = None if norm_eps is None else LayerNorm(d_model, eps=norm_eps)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "batch length d_model"], *, offset: int = 0
    ) -> Float[Tensor, "batch length d_model"]:
        """Prepare token vectors, the first of which stands at position ``offset``.

        Args:
            x: Vectors of shape (batch, length, d_model), as :class:`TokenEmbedding` returns them.
            offset: Position of the first token; other than 0 when decoding goes on from a cache.

        Returns:
            Vectors of the shape and dtype of ``x``, each made from its own token and position
            alone. Empty if ``x`` is; a NaN stays within its vector.

        Raises:
            TypeError: ``x`` is no floating-point tensor.
            ValueError: ``x`` is of another width, or reaches beyond the last position.
        """
        if self.positions is not None:
            x = self.positions(x, offset=offset)
        if self.norm is not None:
            x = self.norm(x)
        return self.dropout(x)


class Generator(nn.Module):
    """Turns the decoder's vectors into one logit per token of the vocabulary: x Wᵀ, + b on request.

    Args:
        d_model: Width of the vectors.
        vocabulary_size: Number of tokens.
        bias: Whether each token has a bias, which starts at 0. The paper mentions none.
        tied: An embedding whose weights serve here as well. This module then has no weights of its
            own: its ``weight`` is the embedding's at every moment, they are counted and saved once,
            with the embedding, and the model that holds both is what is moved and loaded.

    Raises:
        ValueError: A size is smaller than 1, or the weights of ``tied`` have another shape than
            (vocabulary_size, d_model), as an embedding of another vocabulary has.

    Source: Vaswani et al. (2017), section 3.4; Press and Wolf (2017).
    """

    def __init__(
        self,
        d_model: int,
        vocabulary_size: int,
        *,
        bias: bool = False,
        tied: TokenEmbedding | None = None,
    ) -> None:
        super().__init__()
        if tied is not None and tied.weight.shape != (vocabulary_size, d_model):
            raise ValueError(
                f"tied: expected weights of shape {(vocabulary_size, d_model)}, "
                f"got {tuple(tied.weight.shape)}"
            )
        # In a tuple the embedding is no submodule: its weights are saved and counted once, and
        # whatever replaces them there is what is used here.
        self._tied = (tied,)
        if tied is None:
            self._weight = nn.Parameter(_new_weight(vocabulary_size, d_model))
        self.bias = nn.Parameter(torch.zeros(vocabulary_size)) if bias else None

    @property
    def weight(self) -> Float[Tensor, "vocabulary d_model"]:
        """The weights, one row per token."""
        (tied,) = self._tied
        return self._weight if tied is None else tied.weight

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocabulary"]:
        """Return logits; the loss, not this module, applies the softmax.

        Args:
            x: Vectors of shape (*batch, d_model).

        Returns:
            Logits of shape (*batch, vocabulary), each the inner product of a vector with the row
            of a token. Empty if ``x`` is; a NaN makes all logits of its vector NaN.

        Raises:
            TypeError: ``x`` is no floating-point tensor.
            ValueError: ``x`` is of another width.
        """
        require_floating(x=x)
        require_axes("d_model", x=x)
        if x.shape[-1] != self.weight.shape[1]:
            raise ValueError(
                f"x: expected d_model = {self.weight.shape[1]}, got {x.shape[-1]} "
                f"(shape {tuple(x.shape)})"
            )
        return F.linear(x, self.weight, self.bias)

"""From tokens to vectors and back: embedding, input of encoder and decoder, generator.

Explained in chapter 10, "Embeddings and output" (book/10_embeddings.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

import math
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib._checks import layers as check
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
        **factory: ``device`` and ``dtype`` of the parameters, as in PyTorch's layers.

    Source: Vaswani et al. (2017), section 3.4.
    """

    def __init__(
        self, vocabulary_size: int, d_model: int, *, scale: bool = True, **factory: Any
    ) -> None:
        super().__init__()
        check.sizes(vocabulary_size=vocabulary_size, d_model=d_model)
        self.weight = _new_weight(vocabulary_size, d_model, **factory)
        self.scale = math.sqrt(d_model) if scale else 1.0

    def forward(self, tokens: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch d_model"]:
        """Return the vectors of ``tokens``, ids in int64 or int32.

        Only the rows that were looked up get a gradient other than 0, the sum over all places of
        their token. Ids outside the vocabulary are refused here on the CPU in eager mode; elsewhere
        PyTorch's kernel does it.
        """
        check.token_embedding(tokens, len(self.weight))
        return F.embedding(tokens, self.weight) * self.scale


def _new_weight(vocabulary_size: int, d_model: int, **factory: Any) -> nn.Parameter:
    weight = nn.Parameter(torch.empty(vocabulary_size, d_model, **factory))
    nn.init.normal_(weight, std=d_model**-0.5)
    return weight


class InputLayer(nn.Module):
    """What becomes of token vectors before the first layer: positions, a norm on request, dropout.

    Args:
        d_model: Width of the vectors.
        positions: A module that adds positions, called as ``positions(x, offset=offset)``, or None.
        norm_eps: eps of a layer normalisation of the sum, as in BERT; None is no normalisation.
        dropout: Probability of dropping a number of the sum while training.
        **factory: ``device`` and ``dtype`` of the norm's parameters.

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
        **factory: Any,
    ) -> None:
        super().__init__()
        check.dropout(dropout)
        self.positions = positions
        self.norm = None if norm_eps is None else LayerNorm(d_model, eps=norm_eps, **factory)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "batch length d_model"], *, offset: int = 0
    ) -> Float[Tensor, "batch length d_model"]:
        """Prepare token vectors, the first of which stands at position ``offset``.

        Each comes from its own token and position alone. ``offset`` is other than 0 when decoding
        goes on from a cache.
        """
        if self.positions is not None:
            x = self.positions(x, offset=offset)
        if self.norm is not None:
            x = self.norm(x)
        return self.dropout(x)


class Generator(nn.Module):
    """The output head: one logit per token of the vocabulary for each vector, x Wᵀ (+ b).

    Args:
        d_model: Width of the vectors.
        vocabulary_size: Number of tokens.
        bias: Whether each token has a bias, which starts at 0. The paper mentions none.
        tied: An embedding whose weights serve here as well. They are the embedding's at every
            moment, counted, saved and moved with it; this module then has none of its own.
        **factory: ``device`` and ``dtype`` of the parameters, as in PyTorch's layers.

    Source: Vaswani et al. (2017), section 3.4; Press and Wolf (2017).
    """

    def __init__(
        self,
        d_model: int,
        vocabulary_size: int,
        *,
        bias: bool = False,
        tied: TokenEmbedding | None = None,
        **factory: Any,
    ) -> None:
        super().__init__()
        check.generator(None if tied is None else tied.weight, vocabulary_size, d_model)
        # In a tuple the embedding is no submodule: its weights are saved and counted once, and
        # whatever replaces them there is what is used here.
        self._tied = (tied,)
        if tied is None:
            self._parameters["weight"] = _new_weight(vocabulary_size, d_model, **factory)
        self.bias = nn.Parameter(torch.zeros(vocabulary_size, **factory)) if bias else None

    @property
    def weight(self) -> Float[Tensor, "vocabulary d_model"]:
        """The weights, one row per token."""
        (tied,) = self._tied
        return cast("Tensor", self._parameters["weight"] if tied is None else tied.weight)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocabulary"]:
        """Return logits; the loss, not this module, applies the softmax."""
        check.vectors(x, self.weight.shape[1])
        return F.linear(x, self.weight, self.bias)

"""Sentences as vectors: an encoder with its tokenizer.

Explained in chapter 16, "Pretrained weights" (book/16_pretrained_weights.ipynb). Generated from
there by tools/export.py; edit the notebook.
"""

import os
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

from transformer_lib._checks import published as check
from transformer_lib.files import read_tokenizer
from transformer_lib.hub import find_published
from transformer_lib.published.settings import SentenceSettings, sentence_settings
from transformer_lib.transformer import TextEncoder
from transformer_lib.translation import token_ids

__all__ = ["SentenceEncoder"]


class SentenceEncoder:
    """MiniLM with its tokenizer: sentences in, one vector each out.

    Args:
        model: An encoder.
        tokenizer: Its tokenizer, of the ``tokenizers`` package.
        settings: Whether a text is cut, and whether vectors are scaled to length 1.

    Source: Reimers and Gurevych (2019), section 3 (the mean over the tokens).
    """

    def __init__(
        self,
        model: TextEncoder,
        tokenizer: Tokenizer,
        settings: SentenceSettings = SentenceSettings(),  # noqa: B008 - cannot be changed
    ) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        if settings.max_tokens is not None:
            tokenizer.enable_truncation(settings.max_tokens)
        self.model = model.eval()
        self.tokenizer, self.settings = tokenizer, settings

    @classmethod
    def from_pretrained(cls, name: str | os.PathLike[str]) -> "SentenceEncoder":
        """Read a BERT encoder with its tokenizer, and the settings that lie beside them.

        Args:
            name: A folder in Hugging Face's format, or a name on the hub such as
                "sentence-transformers/all-MiniLM-L6-v2".
        """
        folder = find_published(name)
        model = TextEncoder.from_pretrained(folder)
        settings = sentence_settings(folder, model.config.max_length)
        return cls(model, read_tokenizer(folder), settings)

    def tokens(self, texts: Sequence[str]) -> Int[Tensor, "texts length"]:
        """Return the token ids of several texts, padded to the longest."""
        return self._padded(texts)[0]

    def encode(self, texts: Sequence[str]) -> Float[Tensor, "texts d_model"]:
        """Return a vector for each text: the mean over its tokens, scaled to length 1.

        The inner product of two vectors of length 1 is their cosine similarity. A text beyond the
        number of tokens that was published with the model is cut there. (Settings may say not to
        scale.)
        """
        tokens, real = self._padded(texts)
        with torch.no_grad():
            vectors = self.model(tokens, key_mask=real)
            means = (vectors * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)
            return F.normalize(means, dim=-1) if self.settings.unit_length else means

    def _padded(
        self, texts: Sequence[str]
    ) -> tuple[Int[Tensor, "texts length"], Bool[Tensor, "texts length"]]:
        """Return token ids, and which of them are no padding: a text's length says it, no id."""
        check.sentences(texts)
        rows = token_ids(self.tokenizer, texts)
        lengths = torch.tensor([len(row) for row in rows], dtype=torch.int64)
        longest = max(map(len, rows), default=0)
        check.length(longest, self.model.config.max_length)
        padded = torch.full((len(rows), longest), self.model.config.padding_id)
        for row, ids in zip(padded, rows, strict=True):
            row[: len(ids)] = torch.tensor(ids)
        device = self.model.source_embedding.weight.device
        return padded.to(device), (torch.arange(longest) < lengths[:, None]).to(device)

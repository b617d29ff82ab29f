"""Marian's translation models: their weights, and their search.

Explained in chapter 11, "The Transformer" (book/11_transformer.ipynb) and chapter 16, "Pretrained
weights" (book/16_pretrained_weights.ipynb). Generated from these by tools/export.py; edit the
notebooks.
"""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from transformer_lib._checks import published as check_published
from transformer_lib.decoding import CachedDecoder, beam_search, greedy
from transformer_lib.hub import find_published
from transformer_lib.published.reading import Layout, read_model
from transformer_lib.published.renaming import ACTIVATION_NAMES, layer_names, rename
from transformer_lib.published.search import Restricted
from transformer_lib.published.settings import marian_tokenizer, settings_in
from transformer_lib.transformer import Transformer, TransformerConfig
from transformer_lib.translation import plain_text

__all__ = [
    "MarianTranslator",
    "config_from_marian",
    "marian_matrices",
    "marian_names",
    "read_marian",
    "transformer_from_marian",
]


def config_from_marian(published: Mapping[str, Any]) -> TransformerConfig:
    """Read the ``config.json`` of a Marian translation model.

    What would make another model of it is refused: stacks of two widths, an activation that is not
    in this library, settings of older programs that no model follows.
    """
    check_published.config_from_marian(published)
    tied: Any = "all" if published.get("share_encoder_decoder_embeddings", True) else "output"
    activation = published["activation_function"]
    return TransformerConfig(
        source_vocabulary=published["vocab_size"],
        target_vocabulary=published.get("decoder_vocab_size") or published["vocab_size"],
        d_model=published["d_model"],
        n_heads=published["encoder_attention_heads"],
        n_encoder_layers=published["encoder_layers"],
        n_decoder_layers=published["decoder_layers"],
        d_ff=published["encoder_ffn_dim"],
        dropout=published.get("dropout", 0.1),
        attention_dropout=published.get("attention_dropout", 0.0),
        feed_forward_dropout=published.get("activation_dropout", 0.0),
        activation=ACTIVATION_NAMES.get(activation, activation),
        position_layout="halves",
        max_length=published["max_position_embeddings"],
        scale_embedding=published.get("scale_embedding", False),
        tied=tied if published.get("tie_word_embeddings", True) else "none",
        output_bias=True,
        padding_id=published["pad_token_id"],
    )


def marian_matrices(state: Mapping[str, Tensor]) -> dict[str, str]:
    """Return the old names of the three matrices of tokens, by their new ones.

    A published file may hold a tied matrix once or under each of its names.
    """
    own = {stack: f"model.{stack}.embed_tokens.weight" for stack in ("encoder", "decoder")}
    found = {stack: name if name in state else "model.shared.weight" for stack, name in own.items()}
    return {
        "embedding.source.weight": found["encoder"],
        "embedding.target.weight": found["decoder"],
        "generator.weight": "lm_head.weight" if "lm_head.weight" in state else found["decoder"],
    }


def transformer_from_marian(
    state: Mapping[str, Tensor], tied: str | None = None
) -> dict[str, Tensor]:
    """Convert the tensors of a Marian model; its sinusoids are computed here, not loaded.

    Args:
        state: The tensors.
        tied: As the configuration says, "all", "output" or "none"; None is to look which are equal.
    """
    converted = rename(state, {"final_logits_bias": "generator.bias"} | layer_names(state))
    converted["generator.bias"] = converted["generator.bias"].flatten()
    matrices = marian_matrices(state)
    check_published.entries("state", state, matrices.values())
    source, target, output = (state[name] for name in matrices.values())
    if tied is None:
        alike = torch.equal(target, output)
        tied = ("all" if torch.equal(source, target) else "output") if alike else "none"
    kept = {"all": 1, "output": 2, "none": 3}[tied]
    check_published.tied(state, list(matrices.values())[kept - 1 :])
    return converted | {new: state[old] for new, old in list(matrices.items())[:kept]}


def marian_names(state: Mapping[str, Tensor]) -> set[str]:
    """Return the names of the tensors that a Marian model needs."""
    return {"final_logits_bias", *layer_names(state), *marian_matrices(state).values()}


def read_marian(published: Mapping[str, Any], folder: Path) -> Transformer:
    """Read a Marian model, of which ``published`` is the ``config.json``."""
    config = config_from_marian(published)
    layout = Layout(
        names=marian_names,
        convert=partial(transformer_from_marian, tied=config.tied),
        unused=r"model\.((en|de)coder\.embed_positions|shared)\.weight",
    )
    return read_model(Transformer, config, layout, folder)


class MarianTranslator:
    """A published Marian model as it is meant to be used: its tokenizer and its search.

    Args:
        model: A model.
        settings: ``generation_config.json``. Its number of beams, lengths, tokens to start, to end
            and to leave out are followed; what else would change a translation is refused.
        tokenizer: Hugging Face's ``MarianTokenizer``; only text needs one.
    """

    def __init__(
        self, model: Transformer, settings: Mapping[str, Any], tokenizer: Any = None
    ) -> None:
        check_published.marian_translator(settings, model.config.target_vocabulary)
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.start, self.end = settings["decoder_start_token_id"], settings["eos_token_id"]
        self.forced_end = settings.get("forced_eos_token_id") is not None
        self.beams = settings.get("num_beams") or 1
        alpha = settings.get("length_penalty")
        self.alpha = 1.0 if alpha is None else alpha
        limit = min(settings.get("max_length") or 512, model.config.max_length)
        self.max_length = limit - 1  # the start token counts there
        self.forbidden = [word[0] for word in settings.get("bad_words_ids") or []]
        self.renormalised = settings.get("renormalize_logits", False)

    @classmethod
    def from_pretrained(cls, name: str | os.PathLike[str]) -> "MarianTranslator":
        """Read a model, its search and, where its files are there, its tokenizer.

        Args:
            name: A folder in Hugging Face's format, or a name on the hub such as
                "Helsinki-NLP/opus-mt-ko-en".
        """
        folder = find_published(name)
        model = Transformer.from_pretrained(folder)
        settings = settings_in(folder, "config.json", "generation_config.json")
        return cls(model, settings, marian_tokenizer(folder))

    def generate(
        self,
        source: Int[Tensor, "batch source"],
        *,
        beams: int | None = None,
        key_mask: Bool[Tensor, "batch source"] | None = None,
    ) -> list[list[int]]:
        """Return the target tokens of each source sentence, with the end token if it came.

        A score is the log-probability divided by ``length ** length_penalty``, where the end token
        counts and the start token does not. The search goes on until no better sentence can come,
        as Hugging Face's does with ``early_stopping="never"``.

        Args:
            source: Token ids with the end token, padded.
            beams: 1 is greedy decoding; None takes the published number.
            key_mask: True on real tokens; by default all but ``padding_id``.
        """
        beams = self.beams if beams is None else beams
        check_published.generate(source, beams)
        device = self.model.source_embedding.weight.device
        key_mask = source != self.model.config.padding_id if key_mask is None else key_mask
        decoder = Restricted(
            CachedDecoder(self.model, source.to(device), key_mask=key_mask.to(device)),
            barred=self.forbidden if self.renormalised else (),
            ending=(self.max_length, self.end) if self.forced_end else None,
        )
        search: dict[str, Any] = {"start": self.start, "end": self.end}
        search |= {"max_length": self.max_length, "forbidden": self.forbidden}
        if beams == 1:
            rows = greedy(decoder, padding_id=self.model.config.padding_id, **search).tolist()
            return [row[: row.index(self.end) + 1] if self.end in row else row for row in rows]
        results = beam_search(decoder, beams=beams, alpha=self.alpha, penalty=pow, **search)
        return [hypotheses[0].tokens for hypotheses in results]

    def translate(self, texts: Sequence[str], *, beams: int | None = None) -> list[str]:
        """Translate sentences, in which everything is text."""
        check_published.translate(texts, self.tokenizer)
        plain = [plain_text(text) for text in texts]
        if not plain:
            return []
        options = {"padding": True, "return_tensors": "pt", "split_special_tokens": True}
        given = self.tokenizer(plain, **options)
        real = given.attention_mask.bool()
        rows = self.generate(given.input_ids, beams=beams, key_mask=real)
        return self.tokenizer.batch_decode(rows, skip_special_tokens=True)

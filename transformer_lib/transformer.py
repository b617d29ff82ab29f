"""The Transformer: encoder, decoder and everything around them.

Explained in chapter 11, "The Transformer" (book/11_transformer.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from jaxtyping import Bool, Float, Int
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from transformer_lib._checks.common import require_fields, require_same_size
from transformer_lib.add_norm import AddNorm, LayerNorm
from transformer_lib.embedding import Generator, InputLayer, TokenEmbedding
from transformer_lib.feed_forward import FeedForward
from transformer_lib.masking import require_mask
from transformer_lib.multi_head_attention import KeysValues, MultiHeadAttention
from transformer_lib.positional_encoding import LearnedPositions, SinusoidalPositions

__all__ = [
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "TextEncoder",
    "Transformer",
    "TransformerConfig",
    "load_weights",
    "read_tensors",
    "record_attention",
    "require_state",
]


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each with add & norm (the paper's section 3.1).

    Args:
        d_model: Width of the vectors.
        n_heads: Number of attention heads; divides ``d_model``.
        d_ff: Width inside the feed-forward network.
        dropout: Dropout of each sublayer's output.
        attention_dropout: Dropout of attention weights; none in the paper's text.
        feed_forward_dropout: Dropout inside the feed-forward network; none in the paper's text.
        activation: Activation of the feed-forward network.
        norm_first: Pre-norm instead of the paper's post-norm.
        norm_eps: eps of the layer norms.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        feed_forward_dropout: float = 0.0,
        activation: str = "relu",
        norm_first: bool = False,
        norm_eps: float = 1e-5,
    ) -> None:
        super().__init__()
        norm: dict[str, Any] = {"norm_first": norm_first, "dropout": dropout, "eps": norm_eps}
        self.self_attention = MultiHeadAttention(d_model, n_heads, dropout=attention_dropout)
        self.self_attention_norm = AddNorm(d_model, **norm)
        self.feed_forward = FeedForward(
            d_model, d_ff, activation=activation, dropout=feed_forward_dropout
        )
        self.feed_forward_norm = AddNorm(d_model, **norm)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        *,
        mask: Bool[Tensor, "..."] | None = None,
        key_mask: Bool[Tensor, "batch length"] | None = None,
        positions: Float[Tensor, "#batch length d_model"] | None = None,
    ) -> Float[Tensor, "batch length d_model"]:
        """Run the layer.

        Args:
            x: Vectors of shape (batch, length, d_model).
            mask: True where a position may attend to another: (length, length) or (batch, heads or
                1, length, length).
            key_mask: True on real positions, False on padding: (batch, length).
            positions: Added to queries and keys, not to values, as DETR does at every layer.

        Returns:
            Vectors of the same shape. NaN in ``x`` spreads to its whole sentence.

        Raises:
            TypeError: A mask is not boolean.
            ValueError: Sizes differ, or ``mask`` has three axes.
        """

        def attend(x: Tensor) -> Tensor:
            placed = x if positions is None else x + positions
            return self.self_attention(placed, placed, x, mask=mask, key_mask=key_mask)

        x = self.self_attention_norm(x, attend)
        return self.feed_forward_norm(x, self.feed_forward)


_Remember = Callable[[KeysValues], KeysValues]


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output, feed-forward (section 3.1).

    The arguments are those of :class:`EncoderLayer`.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        feed_forward_dropout: float = 0.0,
        activation: str = "relu",
        norm_first: bool = False,
        norm_eps: float = 1e-5,
    ) -> None:
        super().__init__()
        norm: dict[str, Any] = {"norm_first": norm_first, "dropout": dropout, "eps": norm_eps}
        self.self_attention = MultiHeadAttention(d_model, n_heads, dropout=attention_dropout)
        self.self_attention_norm = AddNorm(d_model, **norm)
        self.cross_attention = MultiHeadAttention(d_model, n_heads, dropout=attention_dropout)
        self.cross_attention_norm = AddNorm(d_model, **norm)
        self.feed_forward = FeedForward(
            d_model, d_ff, activation=activation, dropout=feed_forward_dropout
        )
        self.feed_forward_norm = AddNorm(d_model, **norm)

    def project_memory(
        self,
        memory: Float[Tensor, "batch source d_model"],
        *,
        positions: Float[Tensor, "#batch source d_model"] | None = None,
    ) -> KeysValues:
        """Project the encoder's output to the keys and values of the cross-attention.

        They are the same for every target position, so decoding step by step needs them once.

        Args:
            memory: The encoder's output, of shape (batch, source, d_model).
            positions: Added before the projection to keys, not to values.
        """
        placed = memory if positions is None else memory + positions
        return self.cross_attention.project(placed, memory)

    def forward(
        self,
        x: Float[Tensor, "batch target d_model"],
        memory: KeysValues,
        *,
        mask: Bool[Tensor, "..."] | None = None,
        causal: bool = True,
        key_mask: Bool[Tensor, "batch keys"] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
        memory_key_mask: Bool[Tensor, "batch source"] | None = None,
        positions: Float[Tensor, "#batch target d_model"] | None = None,
        remember: _Remember | None = None,
    ) -> Float[Tensor, "batch target d_model"]:
        """Run the layer.

        Args:
            x: Vectors of shape (batch, target, d_model).
            memory: What :meth:`project_memory` made of the encoder's output.
            mask: True where a target position may attend to another: (target, keys) or (batch,
                heads or 1, target, keys).
            causal: Hide later target positions; the last of ``x`` stands at the last key.
            key_mask: True on real target positions, remembered ones included: (batch, keys).
            memory_mask: True where a target position may attend to a source position; shapes as
                for ``mask``.
            memory_key_mask: True on real source positions: (batch, source).
            positions: Added to the queries of both attentions and to the self-attention's keys.
            remember: Takes the keys and values of ``x`` and returns those to attend to: with a
                cache, all so far.

        Returns:
            Vectors of the shape of ``x``. NaN in ``x`` or ``memory`` spreads through a sentence.

        Raises:
            TypeError: ``memory`` is not what :meth:`project_memory` returns, or a mask is not
                boolean.
            ValueError: Sizes differ, or a mask has three axes.
        """
        if not isinstance(memory, KeysValues):
            raise TypeError(
                "memory: expected KeysValues, which project_memory makes of the encoder's output, "
                f"got {type(memory).__name__}"
            )
        if memory.keys.shape[0] != x.shape[0]:
            raise ValueError(
                f"memory: expected batch = {x.shape[0]} as in x, got {memory.keys.shape[0]}"
            )

        def attend(x: Tensor) -> Tensor:
            placed = x if positions is None else x + positions
            own = self.self_attention.project(placed, x)
            return self.self_attention(
                placed,
                keys_values=own if remember is None else remember(own),
                mask=mask,
                key_mask=key_mask,
                causal=causal,
            )

        def attend_to_memory(x: Tensor) -> Tensor:
            return self.cross_attention(
                x if positions is None else x + positions,
                keys_values=memory,
                mask=memory_mask,
                key_mask=memory_key_mask,
            )

        x = self.self_attention_norm(x, attend)
        x = self.cross_attention_norm(x, attend_to_memory)
        return self.feed_forward_norm(x, self.feed_forward)


class Encoder(nn.Module):
    """A stack of encoder layers over vectors that are embedded already (section 3.1).

    Args:
        n_layers: Number of layers.
        d_model: Width of the vectors.
        n_heads: Number of attention heads; divides ``d_model``.
        d_ff: Width inside the feed-forward networks.
        final_norm: Layer normalisation after the last layer; None means only with ``norm_first``,
            where nothing else normalises the last sum.
        **layer_options: Passed on to every :class:`EncoderLayer`.
    """

    def __init__(
        self,
        n_layers: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        final_norm: bool | None = None,
        **layer_options: Any,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, n_heads, d_ff, **layer_options) for _ in range(n_layers)
        )
        self.final_norm: LayerNorm | None = _final_norm(d_model, final_norm, layer_options)

    def forward(
        self, x: Float[Tensor, "batch length d_model"], **masks_and_positions: Tensor | None
    ) -> Float[Tensor, "batch length d_model"]:
        """Run all layers; keyword arguments and errors are those of :meth:`EncoderLayer.forward`.

        Args:
            x: Vectors of shape (batch, length, d_model).
            **masks_and_positions: Passed on to every layer.
        """
        for layer in self.layers:
            x = layer(x, **masks_and_positions)
        return x if self.final_norm is None else self.final_norm(x)


class Decoder(nn.Module):
    """A stack of decoder layers over vectors that are embedded already (section 3.1).

    The arguments are those of :class:`Encoder`.
    """

    def __init__(
        self,
        n_layers: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        final_norm: bool | None = None,
        **layer_options: Any,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, n_heads, d_ff, **layer_options) for _ in range(n_layers)
        )
        self.final_norm: LayerNorm | None = _final_norm(d_model, final_norm, layer_options)

    def project_memory(
        self,
        memory: Float[Tensor, "batch source d_model"],
        *,
        positions: Float[Tensor, "#batch source d_model"] | None = None,
    ) -> list[KeysValues]:
        """Project the encoder's output for every layer, as :meth:`DecoderLayer.project_memory`."""
        layers = cast("Sequence[DecoderLayer]", self.layers)
        return [layer.project_memory(memory, positions=positions) for layer in layers]

    def forward(
        self,
        x: Float[Tensor, "batch target d_model"],
        memory: Sequence[KeysValues],
        *,
        remember: Sequence[_Remember] | None = None,
        **masks_and_positions: Any,
    ) -> Float[Tensor, "batch target d_model"]:
        """Run all layers.

        Args:
            x: Vectors of shape (batch, target, d_model).
            memory: What :meth:`project_memory` made of the encoder's output.
            remember: One function per layer, as in :meth:`DecoderLayer.forward`.
            **masks_and_positions: Passed on to every layer.

        Raises:
            TypeError: ``memory`` is not what :meth:`project_memory` returns, or a mask is not
                boolean.
            ValueError: ``memory`` or ``remember`` is not for as many layers as there are, or sizes
                differ.
        """
        if isinstance(memory, Tensor):
            raise TypeError(
                "memory: expected what project_memory makes of the encoder's output, got a tensor "
                f"of shape {tuple(memory.shape)}"
            )
        for name, per_layer in (("memory", memory), ("remember", remember)):
            if per_layer is not None and len(per_layer) != len(self.layers):
                raise ValueError(
                    f"{name}: expected one for each of {len(self.layers)} layers, "
                    f"got {len(per_layer)}"
                )
        for number, layer in enumerate(self.layers):
            x = layer(
                x,
                memory[number],
                remember=None if remember is None else remember[number],
                **masks_and_positions,
            )
        return x if self.final_norm is None else self.final_norm(x)


def _final_norm(
    d_model: int, final_norm: bool | None, layer_options: dict[str, Any]
) -> LayerNorm | None:
    wanted = layer_options.get("norm_first", False) if final_norm is None else final_norm
    return LayerNorm(d_model, eps=layer_options.get("norm_eps", 1e-5)) if wanted else None


@dataclass(frozen=True)
class TransformerConfig:
    """Everything that determines a :class:`Transformer` but its weights.

    The defaults are the paper's base model with one vocabulary of 37,000 (section 5.1).

    Attributes:
        source_vocabulary: Number of source tokens.
        target_vocabulary: Number of target tokens.
        d_model: Width of all vectors.
        n_heads: Attention heads a layer; divides ``d_model``.
        n_encoder_layers: Layers of the encoder.
        n_decoder_layers: Layers of the decoder.
        d_ff: Width inside the feed-forward networks.
        dropout: Dropout of sublayers and embedding sums.
        attention_dropout: Dropout of attention weights.
        feed_forward_dropout: Dropout inside the feed-forward networks.
        activation: "relu", "gelu" or "swish".
        norm_first: Pre-norm instead of post-norm.
        norm_eps: eps of all layer norms.
        final_norm: Norm after each stack; None means only with ``norm_first``.
        positions: "sinusoidal", "learned" or "none".
        position_layout: Order of the sinusoids' columns, "interleaved" or "halves".
        max_length: Positions in the table.
        scale_embedding: Whether embeddings are multiplied by √d_model.
        embedding_norm: Whether the sum of embedding and positions is normalised.
        tied: "all": one matrix is source embedding, target embedding and output; "output": target
            embedding and output; "none".
        output_bias: Whether logits have a bias.
        padding_id: Token that stands for padding in both vocabularies.

    Raises:
        TypeError: A field has another type than declared.
        ValueError: No model can be built from a field's value; the message names the field.
    """

    source_vocabulary: int = 37_000
    target_vocabulary: int = 37_000
    d_model: int = 512
    n_heads: int = 8
    n_encoder_layers: int = 6
    n_decoder_layers: int = 6
    d_ff: int = 2048
    dropout: float = 0.1
    attention_dropout: float = 0.0
    feed_forward_dropout: float = 0.0
    activation: Literal["relu", "gelu", "swish"] = "relu"
    norm_first: bool = False
    norm_eps: float = 1e-5
    final_norm: bool | None = None
    positions: Literal["sinusoidal", "learned", "none"] = "sinusoidal"
    position_layout: Literal["interleaved", "halves"] = "interleaved"
    max_length: int = 5000
    scale_embedding: bool = True
    embedding_norm: bool = False
    tied: Literal["all", "output", "none"] = "all"
    output_bias: bool = False
    padding_id: int = 0

    def __post_init__(self) -> None:
        """Refuse what no model can be built from, naming the field."""
        require_fields(self)
        for name, least in (
            ("source_vocabulary", 1),
            ("target_vocabulary", 1),
            ("d_model", 1),
            ("n_heads", 1),
            ("n_encoder_layers", 0),
            ("n_decoder_layers", 0),
            ("d_ff", 1),
            ("max_length", 1),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name}: expected {least} or more, got {getattr(self, name)}")
        for name in ("dropout", "attention_dropout", "feed_forward_dropout"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(
                    f"{name}: expected a probability from 0 to 1, got {getattr(self, name)}"
                )
        if not self.norm_eps > 0:
            raise ValueError(f"norm_eps: expected a number above 0, got {self.norm_eps}")
        if self.d_model % self.n_heads:
            raise ValueError(
                f"n_heads: expected a divisor of d_model = {self.d_model}, got {self.n_heads}"
            )
        if self.tied == "all" and self.source_vocabulary != self.target_vocabulary:
            raise ValueError(
                "tied: 'all' needs one vocabulary for both languages, got source_vocabulary = "
                f"{self.source_vocabulary} and target_vocabulary = {self.target_vocabulary}"
            )
        if not 0 <= self.padding_id < min(self.source_vocabulary, self.target_vocabulary):
            raise ValueError(
                f"padding_id: expected an id of both vocabularies, got {self.padding_id}"
            )

    def to_json(self) -> str:
        """Return the configuration as a JSON object, one field a line."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "TransformerConfig":
        """Read what :meth:`to_json` wrote; a field that is left out gets its default.

        Raises:
            TypeError: A field has another type than declared.
            ValueError: The text is no JSON object, has a field that no configuration has, or a
                value that no model can be built from.
        """
        try:
            given = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"config: not valid JSON: {error}") from None
        if not isinstance(given, dict):
            raise ValueError(f"config: expected a JSON object, got {type(given).__name__}")
        if unknown := given.keys() - {field.name for field in fields(cls)}:
            raise ValueError(f"config: unknown fields {', '.join(sorted(unknown))}")
        return cls(**given)


_Model = TypeVar("_Model", bound="_TextModel")


class _TextModel(nn.Module):
    """What both models share: the encoder's side, saving and loading."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.ModuleDict({"source": self._embedding(config.source_vocabulary)})
        self.source_input = self._input()
        self.encoder = Encoder(config.n_encoder_layers, **self._stack_options())

    @property
    def source_embedding(self) -> TokenEmbedding:
        """The encoder's embedding."""
        return cast("TokenEmbedding", self.embedding["source"])

    def encode(
        self,
        source: Int[Tensor, "batch source"],
        *,
        key_mask: Bool[Tensor, "batch source"] | None = None,
    ) -> Float[Tensor, "batch source d_model"]:
        """Return the encoder's output, one vector per source token.

        Args:
            source: Source token ids.
            key_mask: True on real tokens; by default all but ``padding_id``.

        Raises:
            TypeError: Ids are no integers, or the mask is not boolean.
            ValueError: A shape is wrong, an id is not in the vocabulary, or the sentence is longer
                than the table of positions.
        """
        _require_sentences("source", source, "key_mask", key_mask)
        if key_mask is None:
            key_mask = source != self.config.padding_id
        x = self.source_input(self.source_embedding(source))
        return self.encoder(x, key_mask=key_mask)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write ``config.json`` and ``model.safetensors`` into ``folder``, each in one step."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        state = {name: tensor.contiguous() for name, tensor in self.state_dict().items()}
        weights, config = folder / "model.safetensors.part", folder / "config.json.part"
        save_file(state, weights, metadata={"format": "pt"})
        config.write_text(self.config.to_json(), encoding="utf-8")
        for part in (weights, config):
            part.replace(part.with_suffix(""))

    @classmethod
    def from_pretrained(cls: type[_Model], name: str | os.PathLike[str]) -> _Model:
        """Read a model from a folder or from the hub; it is in evaluation mode.

        Args:
            name: A folder that :meth:`save_pretrained` wrote. Other folders and names, such as
                "Helsinki-NLP/opus-mt-ko-en", are left to
                :func:`transformer_lib.pretrained.read_published`.

        Raises:
            FileNotFoundError: A file is missing.
            TypeError: A field of ``config.json`` has another type than declared.
            ValueError: A file is truncated or foreign, or the tensors are not those of the
                configuration; the message names them.
        """
        config = Path(name) / "config.json"
        text = config.read_text(encoding="utf-8") if config.is_file() else None
        if not Path(name).is_dir() or (text and '"model_type"' in text):
            # The module that knows other libraries builds on this one: it cannot be imported above.
            return import_module("transformer_lib.pretrained").read_published(cls, name)
        if text is None:
            raise FileNotFoundError(f"name: no config.json in {name}")
        model = cls(TransformerConfig.from_json(text))
        load_weights(model, Path(name) / "model.safetensors")
        return model.eval()

    def _embedding(self, vocabulary: int) -> TokenEmbedding:
        return TokenEmbedding(vocabulary, self.config.d_model, scale=self.config.scale_embedding)

    def _input(self) -> InputLayer:
        config = self.config
        positions: nn.Module | None = None
        if config.positions == "sinusoidal":
            positions = SinusoidalPositions(
                config.d_model, config.max_length, layout=config.position_layout
            )
        elif config.positions == "learned":
            positions = LearnedPositions(config.d_model, config.max_length)
        return InputLayer(
            config.d_model,
            positions,
            norm_eps=config.norm_eps if config.embedding_norm else None,
            dropout=config.dropout,
        )

    def _stack_options(self) -> dict[str, Any]:
        names = (
            "d_model",
            "n_heads",
            "d_ff",
            "dropout",
            "attention_dropout",
            "feed_forward_dropout",
            "activation",
            "norm_first",
            "norm_eps",
            "final_norm",
        )
        return {name: getattr(self.config, name) for name in names}


class TextEncoder(_TextModel):
    """Token ids to vectors: the encoder with its embedding and nothing else, as in BERT.

    Args:
        config: Sizes and variants; what concerns the target is not used.
    """

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        *,
        key_mask: Bool[Tensor, "batch source"] | None = None,
    ) -> Float[Tensor, "batch source d_model"]:
        """Return one vector per token; arguments and errors are those of ``encode``."""
        return self.encode(source, key_mask=key_mask)


class Transformer(_TextModel):
    """The encoder-decoder of "Attention Is All You Need", from token ids to logits.

    Args:
        config: Sizes and variants.

    Source: Vaswani et al. (2017), section 3 and figure 1.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        if config.tied != "all":
            self.embedding["target"] = self._embedding(config.target_vocabulary)
        self.target_input = self._input()
        self.decoder = Decoder(config.n_decoder_layers, **self._stack_options())
        self.generator = Generator(
            config.d_model,
            config.target_vocabulary,
            bias=config.output_bias,
            tied=None if config.tied == "none" else self.target_embedding,
        )

    @property
    def target_embedding(self) -> TokenEmbedding:
        """The decoder's embedding, which is the encoder's where all are tied."""
        name = "target" if "target" in self.embedding else "source"
        return cast("TokenEmbedding", self.embedding[name])

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        target: Int[Tensor, "batch target"],
        *,
        source_key_mask: Bool[Tensor, "batch source"] | None = None,
        target_key_mask: Bool[Tensor, "batch target"] | None = None,
    ) -> Float[Tensor, "batch target vocabulary"]:
        """Return, for every target position, the logits of the token that follows it.

        Args:
            source: Source token ids.
            target: Target token ids up to and including each position (teacher forcing).
            source_key_mask: True on real source tokens; by default all but ``padding_id``.
            target_key_mask: True on target tokens that may be seen; by default all, since no token
                sees the padding that follows it.

        Raises:
            TypeError: Ids are no integers, or a mask is not boolean.
            ValueError: Batch sizes differ, a shape is wrong, an id is not in its vocabulary, or a
                sentence is longer than the table of positions.
        """
        _require_sentences("source", source, "source_key_mask", source_key_mask)
        _require_sentences("target", target, "target_key_mask", target_key_mask)
        require_same_size("batch", source=(source, 0), target=(target, 0))
        if source_key_mask is None:
            source_key_mask = source != self.config.padding_id
        memory = self.encode(source, key_mask=source_key_mask)
        return self.decode(
            target,
            memory=self.decoder.project_memory(memory),
            memory_key_mask=source_key_mask,
            key_mask=target_key_mask,
        )

    def decode(
        self,
        target: Int[Tensor, "batch target"],
        *,
        memory: Sequence[KeysValues],
        memory_key_mask: Bool[Tensor, "batch source"] | None = None,
        key_mask: Bool[Tensor, "batch keys"] | None = None,
        offset: int = 0,
        remember: Sequence[_Remember] | None = None,
    ) -> Float[Tensor, "batch target vocabulary"]:
        """Return logits for target tokens, given what the source became.

        Args:
            target: Target token ids.
            memory: ``decoder.project_memory`` of the encoder's output.
            memory_key_mask: True on the real source tokens; by default all.
            key_mask: True on target tokens that may be seen, remembered ones included.
            offset: Position of the first token of ``target``: how many are remembered.
            remember: One function per layer that adds to a cache, as in :class:`DecoderLayer`.

        Raises:
            TypeError: Ids are no integers, a mask is not boolean, or ``memory`` is not projected.
            ValueError: Sizes differ, an id is not in the vocabulary, or a position is beyond the
                table.
        """
        _require_sentences("target", target)
        x = self.target_input(self.target_embedding(target), offset=offset)
        x = self.decoder(
            x, memory, key_mask=key_mask, memory_key_mask=memory_key_mask, remember=remember
        )
        return self.generator(x)


def _require_sentences(
    name: str, tokens: Tensor, mask_name: str = "", key_mask: Tensor | None = None
) -> None:
    """Raise unless ``tokens`` has a batch and a length, and ``key_mask`` the same."""
    if not isinstance(tokens, Tensor) or tokens.dim() != 2:
        came = tuple(tokens.shape) if isinstance(tokens, Tensor) else type(tokens).__name__
        raise ValueError(f"{name}: expected token ids of shape (batch, length), got {came}")
    if key_mask is not None:
        require_mask(key_mask, mask_name)
        if key_mask.shape != tokens.shape:
            raise ValueError(
                f"{mask_name}: expected shape {tuple(tokens.shape)} as {name}, "
                f"got {tuple(key_mask.shape)}"
            )


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Record the weights of every ``MultiHeadAttention`` in ``model`` while it runs.

    ::

        with record_attention(model) as weights:
            model(source, target)
        weights["decoder.layers.0.cross_attention"]  # (batch, n_heads, target, source)

    Args:
        model: A model, or an attention itself (whose name is then the empty string).

    Yields:
        A dictionary that gets, under each attention's name in the model, the weights of its latest
        call, of shape (batch, n_heads, queries, keys), as the attention returns them: before
        dropout and with their gradient. Outputs are what they are without recording, up to
        rounding, since the fused kernel does not run.
    """
    weights: dict[str, Tensor] = {}

    def hook(name: str, attention: nn.Module) -> list[RemovableHandle]:
        asked: list[bool] = []  # did the caller want the weights as well?

        def ask(attention: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
            asked.append(kwargs.get("return_weights", False))
            return args, kwargs | {"return_weights": True}

        def take(attention: nn.Module, args: Any, result: Any) -> Any:
            output, weights[name] = result
            return result if asked.pop() else output

        return [
            attention.register_forward_pre_hook(ask, with_kwargs=True),
            attention.register_forward_hook(take, prepend=True),  # undone in reverse order
        ]

    hooks = []
    for name, module in model.named_modules():
        if isinstance(module, MultiHeadAttention):
            hooks += hook(name, module)
    try:
        yield weights
    finally:
        for handle in hooks:
            handle.remove()


def load_weights(model: nn.Module, file: str | os.PathLike[str]) -> None:
    """Load a safetensors file into ``model``, whole or not at all.

    Args:
        model: Any module; its parameters keep their dtype and device.
        file: A file in the safetensors format.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is truncated or no safetensors file, or its tensors are not the model's.
    """
    state = read_tensors(file)
    require_state(model, state)
    model.load_state_dict(state)


def read_tensors(file: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Read all tensors of a safetensors file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is truncated or no safetensors file.
    """
    if not Path(file).is_file():
        raise FileNotFoundError(f"file: no such file: {file}")
    try:
        return load_file(file)
    except SafetensorError as error:
        raise ValueError(f"file: {file} is truncated or no safetensors file: {error}") from None


def require_state(model: nn.Module, state: dict[str, Tensor]) -> None:
    """Raise ValueError unless ``state`` has exactly the model's tensors, names and shapes.

    The message names the first ten tensors that are missing, unexpected or of another shape.
    """
    expected = model.state_dict()
    problems = [
        f"{name} has shape {tuple(state[name].shape)}, expected {tuple(tensor.shape)}"
        for name, tensor in expected.items()
        if name in state and state[name].shape != tensor.shape
    ]
    problems += [f"{name} is missing" for name in expected if name not in state]
    problems += [f"{name} is unexpected" for name in state if name not in expected]
    if len(problems) > 10:
        problems[10:] = [f"and {len(problems) - 10} more"]
    if problems:
        raise ValueError(f"state: the tensors are not the model's: {'; '.join(problems)}")

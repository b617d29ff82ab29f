"""The Transformer: encoder, decoder and everything around them.

Explained in chapter 11, "The Transformer" (book/11_transformer.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar, cast

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer_lib._checks import layers as check
from transformer_lib.embedding import Generator, InputLayer, TokenEmbedding
from transformer_lib.files import load_model, parse_json, read_json, write_model
from transformer_lib.hub import find_published, read_published
from transformer_lib.layers import Cache, Decoder, Encoder
from transformer_lib.multi_head_attention import MultiHeadAttention
from transformer_lib.positional_encoding import LearnedPositions, SinusoidalPositions

__all__ = ["TextEncoder", "Transformer", "TransformerConfig", "record_attention"]


@dataclass(frozen=True)
class TransformerConfig:
    """Everything that determines a :class:`Transformer` but its weights.

    The defaults are the paper's base model with one vocabulary of 37,000 (section 5.1). A value
    that no model can be built from is refused, and the message names the field.
    """

    source_vocabulary: int = 37_000  # number of source tokens
    target_vocabulary: int = 37_000  # number of target tokens
    d_model: int = 512  # width of all vectors
    n_heads: int = 8  # attention heads a layer; divides d_model
    n_encoder_layers: int = 6
    n_decoder_layers: int = 6
    d_ff: int = 2048  # width inside the feed-forward networks
    dropout: float = 0.1  # of sublayers and embedding sums
    attention_dropout: float = 0.0  # of attention weights
    feed_forward_dropout: float = 0.0  # inside the feed-forward networks
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "relu"
    norm_first: bool = False  # pre-norm instead of post-norm
    norm_eps: float = 1e-5  # eps of all layer norms
    final_norm: bool | None = None  # norm after each stack; None: only with norm_first
    positions: Literal["sinusoidal", "learned", "none"] = "sinusoidal"
    position_layout: Literal["interleaved", "halves"] = "interleaved"  # the sinusoids' columns
    max_length: int = 5000  # positions in the table
    scale_embedding: bool = True  # multiply embeddings by √d_model
    embedding_norm: bool = False  # normalise the sum of embedding and positions
    tied: Literal["all", "output", "none"] = "all"  # one matrix for source, target and output;
    # for target and output; for nothing
    output_bias: bool = False  # whether logits have a bias
    padding_id: int = 0  # the token that stands for padding in both vocabularies

    def __post_init__(self) -> None:
        """Refuse what no model can be built from, naming the field."""
        check.transformer_config(self)

    def to_json(self) -> str:
        """Return the configuration as a JSON object, one field a line."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "TransformerConfig":
        """Read what :meth:`to_json` wrote; a field that is left out gets its default.

        A field that no configuration has is refused.
        """
        return cls.from_dict(parse_json(text, "config"))

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> "TransformerConfig":
        """Make a configuration of its fields by name, as :meth:`from_json` does."""
        check.known_fields(given, cls)
        return cls(**given)


_Model = TypeVar("_Model", bound="TextEncoder")


class TextEncoder(nn.Module):
    """Token ids to vectors: the encoder with its embedding and nothing else, as in BERT.

    Args:
        config: Sizes and variants; what concerns the target is not used.
        **factory: ``device`` and ``dtype`` of the parameters, as in PyTorch's layers.
    """

    def __init__(self, config: TransformerConfig, **factory: Any) -> None:
        super().__init__()
        self.config = config
        source = _embedding(config, config.source_vocabulary, **factory)
        self.embedding = nn.ModuleDict({"source": source})
        self.source_input = _input_layer(config, **factory)
        self.encoder = Encoder(config.n_encoder_layers, **_stack_options(config), **factory)

    @property
    def source_embedding(self) -> TokenEmbedding:
        """The encoder's embedding."""
        return cast("TokenEmbedding", self.embedding["source"])

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        *,
        key_mask: Bool[Tensor, "batch source"] | None = None,
    ) -> Float[Tensor, "batch source d_model"]:
        """Return one vector per token, as :meth:`encode` does."""
        return self.encode(source, key_mask=key_mask)

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
        """
        check.sentences("source", source, "key_mask", key_mask)
        if key_mask is None:
            key_mask = source != self.config.padding_id
        x = self.source_input(self.source_embedding(source))
        return self.encoder(x, key_mask=key_mask)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write ``config.json`` and ``model.safetensors`` into ``folder``, both or neither."""
        write_model(folder, self.config.to_json(), self.state_dict())

    @classmethod
    def from_pretrained(cls: type[_Model], name: str | os.PathLike[str]) -> _Model:
        """Read a model from a folder or from the hub; it is in evaluation mode.

        Args:
            name: A folder that :meth:`save_pretrained` wrote, or that holds a published model; or
                the name of one on the hub, such as "Helsinki-NLP/opus-mt-ko-en".
        """
        folder = find_published(name)
        given = read_json(folder / "config.json")
        if "model_type" in given:  # what other libraries write
            return read_published(cls, given, folder)
        config = TransformerConfig.from_dict(given)
        n_layers = max(config.n_encoder_layers, config.n_decoder_layers)
        return load_model(lambda: cls(config), n_layers, folder / "model.safetensors")


def _embedding(config: TransformerConfig, vocabulary: int, **factory: Any) -> TokenEmbedding:
    return TokenEmbedding(vocabulary, config.d_model, scale=config.scale_embedding, **factory)


def _input_layer(config: TransformerConfig, **factory: Any) -> InputLayer:
    positions: nn.Module | None = None
    if config.positions == "sinusoidal":
        layout = config.position_layout
        positions = SinusoidalPositions(config.d_model, config.max_length, layout=layout)
    elif config.positions == "learned":
        positions = LearnedPositions(config.d_model, config.max_length, **factory)
    norm_eps = config.norm_eps if config.embedding_norm else None
    options = {"norm_eps": norm_eps, "dropout": config.dropout, **factory}
    return InputLayer(config.d_model, positions, **options)


def _stack_options(config: TransformerConfig) -> dict[str, Any]:
    names = ["d_model", "n_heads", "d_ff", "norm_first", "norm_eps", "final_norm", "activation"]
    names += ["dropout", "attention_dropout", "feed_forward_dropout"]
    return {name: getattr(config, name) for name in names}


class Transformer(TextEncoder):
    """The encoder-decoder of "Attention Is All You Need", from token ids to logits.

    It is a :class:`TextEncoder` with a decoder that attends to its output.

    Args:
        config: Sizes and variants.
        **factory: ``device`` and ``dtype`` of the parameters, as in PyTorch's layers.

    Source: Vaswani et al. (2017), section 3 and figure 1.
    """

    def __init__(self, config: TransformerConfig, **factory: Any) -> None:
        super().__init__(config, **factory)
        if config.tied != "all":
            self.embedding["target"] = _embedding(config, config.target_vocabulary, **factory)
        self.target_input = _input_layer(config, **factory)
        self.decoder = Decoder(config.n_decoder_layers, **_stack_options(config), **factory)
        tied = None if config.tied == "none" else self.target_embedding
        options: dict[str, Any] = {"bias": config.output_bias, "tied": tied, **factory}
        self.generator = Generator(config.d_model, config.target_vocabulary, **options)

    @property
    def target_embedding(self) -> TokenEmbedding:
        """The decoder's embedding, which is the encoder's where all are tied."""
        name = "target" if "target" in self.embedding else "source"
        return cast("TokenEmbedding", self.embedding[name])

    def forward(  # type: ignore[override]  # more comes in, and something else out
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
        """
        check.transformer(source, target, source_key_mask, target_key_mask)
        if source_key_mask is None:
            source_key_mask = source != self.config.padding_id
        memory = self.encode(source, key_mask=source_key_mask)
        return self.decode(
            target, memory=memory, memory_key_mask=source_key_mask, key_mask=target_key_mask
        )

    def decode(
        self,
        target: Int[Tensor, "batch target"],
        *,
        memory: Float[Tensor, "batch source d_model"],
        memory_key_mask: Bool[Tensor, "batch source"] | None = None,
        key_mask: Bool[Tensor, "batch keys"] | None = None,
        offset: int = 0,
        cache: Sequence[Cache] | None = None,
    ) -> Float[Tensor, "batch target vocabulary"]:
        """Return logits for target tokens, given the encoder's output.

        Args:
            target: Target token ids.
            memory: What ``encode`` returned.
            memory_key_mask: True on the real source tokens; by default all.
            key_mask: True on target tokens that may be seen, those in the cache included.
            offset: Position of the first token of ``target``: how many are in the cache.
            cache: One for each layer, as in ``DecoderLayer``.
        """
        check.sentences("target", target)
        x = self.target_input(self.target_embedding(target), offset=offset)
        masks = {"key_mask": key_mask, "memory_key_mask": memory_key_mask}
        return self.generator(self.decoder(x, memory, cache=cache, **masks))


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Record the weights of every ``MultiHeadAttention`` in ``model`` while it runs.

    ::

        with record_attention(model) as weights:
            model(source, target)
        weights["decoder.layers.0.cross_attention"]  # (batch, n_heads, target, source)

    The dictionary gets, under each attention's name in the model, the weights of its latest call:
    before dropout and with their gradient. (An attention given as ``model`` has the empty name.)
    Outputs are what they are without recording, up to rounding, since the fused kernel does not
    run.
    """
    weights: dict[str, Tensor] = {}
    with ExitStack() as hooks:
        for name, module in model.named_modules():
            if isinstance(module, MultiHeadAttention):
                _record(module, name, weights, hooks)
        yield weights


def _record(
    attention: MultiHeadAttention, name: str, weights: dict[str, Tensor], hooks: ExitStack
) -> None:
    """Have an attention return its weights until ``hooks`` are closed, and keep them."""
    asked: list[bool] = []  # did the caller want the weights as well?

    def ask(attention: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        asked.append(kwargs.get("return_weights", False))
        return args, kwargs | {"return_weights": True}

    def take(attention: nn.Module, args: Any, result: Any) -> Any:
        output, weights[name] = result
        return result if asked.pop() else output

    hooks.callback(attention.register_forward_pre_hook(ask, with_kwargs=True).remove)
    hooks.callback(attention.register_forward_hook(take, prepend=True).remove)  # undone in reverse

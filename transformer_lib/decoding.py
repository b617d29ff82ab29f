"""Decoding: from a trained model to sentences, token by token, with remembered keys and values.

Explained in chapter 13, "Decoding" (book/13_decoding.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib._checks import decoding as check
from transformer_lib.add_norm import AddNorm
from transformer_lib.embedding import Generator
from transformer_lib.layers import Cache, Decoder, DecoderLayer, Encoder, EncoderLayer
from transformer_lib.masking import causal_mask, combine_masks
from transformer_lib.multi_head_attention import KeysValues
from transformer_lib.transformer import Transformer, TransformerConfig

__all__ = [
    "CachedDecoder",
    "DecodingTransformer",
    "EncoderDecoder",
    "Hypothesis",
    "LayerCache",
    "NextToken",
    "UncachedDecoder",
    "beam_search",
    "for_decoding",
    "greedy",
    "length_penalty",
    "sample",
]


@runtime_checkable
class NextToken(Protocol):
    """What a search asks of a model: rows of tokens, and logits of the token that follows each.

    :class:`CachedDecoder` is one; a table of probabilities can be another.
    """

    @property
    def rows(self) -> int:
        """How many rows of tokens there are."""

    def advance(self, tokens: Int[Tensor, "rows new"]) -> Float[Tensor, "rows vocabulary"]:
        """Append tokens to every row and return the logits of what follows the last of them."""

    def select(self, rows: Int[Tensor, " kept"]) -> None:
        """Go on with these rows, of which any may be repeated or left out."""


@dataclass(frozen=True)
class _Rules:
    """What holds for every search; the arguments are those of :func:`greedy`."""

    end: int
    max_length: int
    min_length: int
    forbidden: Sequence[int]

    def apply(self, scores: Tensor, length: int, *, some_left: bool = False) -> Tensor:
        """Bar what may not be token number ``length``; if asked, some must be left in every row."""
        if length == 1:
            check.vocabulary(scores.shape[-1], self.end, self.forbidden)
        barred = [*self.forbidden, *([self.end] if length <= self.min_length else [])]
        if barred:
            scores = scores.index_fill(-1, torch.tensor(barred, device=scores.device), -math.inf)
        # One pass for all: it is NaN where any is NaN, and −∞ where no token is left.
        check.scores(scores.amax(dim=-1), length, some_left=some_left)
        return scores


def _first_tokens(decoder: NextToken, start: int | Tensor) -> Tensor:
    """Return the tokens that every row begins with, of shape (rows, at least 1)."""
    if isinstance(start, Tensor):
        return start
    return torch.full((decoder.rows, 1), int(start))


def _single(logits: Tensor) -> Tensor:
    """Return logits in float32, or in float64 if they are."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def _continue(
    decoder: NextToken,
    choose: Callable[[Tensor], Tensor],
    start: int | Tensor,
    rules: _Rules,
    padding_id: int,
) -> Tensor:
    """Append to every row what ``choose`` makes of its logits, until all rows have ended."""
    tokens = _first_tokens(decoder, start)
    live = torch.arange(decoder.rows)  # the rows that have not ended
    written = torch.full((decoder.rows, rules.max_length), padding_id)
    length = 0
    while len(live) and length < rules.max_length:
        length += 1
        logits = rules.apply(_single(decoder.advance(tokens)), length, some_left=True)
        chosen = choose(logits)
        written[live, length - 1] = chosen.cpu()
        going = (chosen != rules.end).nonzero().squeeze(1)
        if len(going) < len(live):
            decoder.select(going)
            live, chosen = live[going.cpu()], chosen[going]
        tokens = chosen[:, None]
    return written[:, :length]


def greedy(
    decoder: NextToken,
    *,
    start: int | Int[Tensor, "rows prompt"],
    end: int,
    max_length: int,
    min_length: int = 0,
    padding_id: int = 0,
    forbidden: Sequence[int] = (),
) -> Int[Tensor, "rows length"]:
    """Take the most probable token, again and again, until the end token comes.

    What comes back is each row's new tokens, the end token with them if it came, and padding.

    Args:
        decoder: A model that has read no target token yet. Rows that end leave it.
        start: The token every row starts with, or several for each row.
        end: The token that ends a row.
        max_length: At most so many new tokens; the end token counts, those of ``start`` do not.
        min_length: At least so many before the end token.
        padding_id: What stands behind the end of the shorter rows.
        forbidden: Tokens that are never taken.
    """
    check.search(decoder, start, end, max_length, min_length, forbidden, padding_id)
    rules = _Rules(end, max_length, min_length, forbidden)
    return _continue(decoder, lambda logits: logits.argmax(dim=-1), start, rules, padding_id)


class LayerCache:
    """What one decoder layer remembers: keys and values of the target so far, and the source's.

    It is what :class:`~transformer_lib.layers.DecoderLayer` takes as ``cache``.
    """

    def __init__(self) -> None:
        self.memory: KeysValues | None = None
        self._kept: KeysValues | None = None

    def __call__(self, new: KeysValues) -> KeysValues:
        """Append the keys and values of new tokens, and return all."""
        if self._kept is not None:
            new = KeysValues(
                torch.cat([self._kept.keys, new.keys], dim=2),
                torch.cat([self._kept.values, new.values], dim=2),
            )
        self._kept = new
        return new

    def select(self, rows: Int[Tensor, " kept"], *, memory: bool = True) -> None:
        """Go on with these rows, of which any may be repeated or left out.

        Args:
            rows: Numbers of rows.
            memory: Whether the source's keys and values move too. They need not as long as every
                row keeps its source.
        """
        if self._kept is not None:
            self._kept = KeysValues(*(part.index_select(0, rows) for part in self._kept))
        if memory and self.memory is not None:
            self.memory = KeysValues(*(part.index_select(0, rows) for part in self.memory))


@runtime_checkable
class EncoderDecoder(Protocol):
    """What a decoder asks of a model; a ``Transformer`` is one."""

    config: TransformerConfig
    training: bool

    def encode(self, source: Tensor, *, key_mask: Tensor | None = None) -> Tensor:
        """Return the encoder's output."""

    def decode(
        self,
        target: Tensor,
        *,
        memory: Tensor,
        memory_key_mask: Tensor | None = None,
        key_mask: Tensor | None = None,
        offset: int = 0,
        cache: Sequence[Cache] | None = None,
    ) -> Tensor:
        """Return logits for target tokens, given the encoder's output."""


class CachedDecoder:
    """A model on its way through its target sentences, which it reads once only.

    What a layer needs of earlier tokens, and of the encoder's output, is remembered, so that a new
    token costs its own computation and no other.

    Args:
        model: A model in evaluation mode.
        source: Token ids. Padding may stand at either end.
        key_mask: True on real source tokens; by default all but the model's ``padding_id``.
    """

    @torch.inference_mode()
    def __init__(
        self,
        model: EncoderDecoder,
        source: Int[Tensor, "batch source"],
        *,
        key_mask: Bool[Tensor, "batch source"] | None = None,
    ) -> None:
        check.sources(model, source, key_mask)
        source, key_mask = _real_first(source, key_mask, model.config.padding_id)
        self.model = model
        self._memory = model.encode(source, key_mask=key_mask)
        self._key_mask = None if key_mask.all() else key_mask  # one that hides nothing costs time
        self._sources = torch.arange(len(source), device=source.device)
        self._caches = [LayerCache() for _ in range(model.config.n_decoder_layers)]
        self._length = 0

    @property
    def rows(self) -> int:
        """Number of rows of tokens; at first one for each source sentence."""
        return len(self._sources)

    @torch.inference_mode()
    def advance(self, tokens: Int[Tensor, "rows new"]) -> Float[Tensor, "rows vocabulary"]:
        """Append tokens to every row and return the logits of what follows the last of them."""
        check.new_tokens(self.model.config, tokens, self.rows, self._length)
        logits = self.model.decode(
            tokens.to(self._sources.device),
            memory=self._memory,
            memory_key_mask=self._key_mask,
            offset=self._length,
            cache=self._caches,
        )
        self._length += tokens.shape[1]
        return logits[:, -1]

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " kept"]) -> None:
        """Go on with these rows, of which any may be repeated or left out."""
        check.rows(rows, self.rows)
        rows = rows.to(self._sources.device)
        sources = self._sources[rows]
        moved = not torch.equal(sources, self._sources)
        for cache in self._caches:
            cache.select(rows, memory=moved)
        if moved:
            self._memory, self._sources = self._memory[rows], sources
            if self._key_mask is not None:
                self._key_mask = self._key_mask[rows]


def _real_first(source: Tensor, key_mask: Tensor | None, padding_id: int) -> tuple[Tensor, Tensor]:
    """Return source and mask with the real tokens of each row first, so that they start at 0."""
    if key_mask is None:
        key_mask = source != padding_id
    order = torch.argsort(~key_mask, dim=1, stable=True)
    return source.gather(1, order), key_mask.gather(1, order)


class UncachedDecoder:
    """As :class:`CachedDecoder`, but reads all tokens again for every new one. For comparison."""

    @torch.inference_mode()
    def __init__(
        self,
        model: EncoderDecoder,
        source: Int[Tensor, "batch source"],
        *,
        key_mask: Bool[Tensor, "batch source"] | None = None,
    ) -> None:
        check.sources(model, source, key_mask)
        source, self._key_mask = _real_first(source, key_mask, model.config.padding_id)
        self.model = model
        self._memory = model.encode(source, key_mask=self._key_mask)
        self._tokens = source.new_empty(len(source), 0)

    @property
    def rows(self) -> int:
        """Number of rows of tokens; at first one for each source sentence."""
        return len(self._tokens)

    @torch.inference_mode()
    def advance(self, tokens: Int[Tensor, "rows new"]) -> Float[Tensor, "rows vocabulary"]:
        """Append tokens to every row and return the logits of what follows the last of them."""
        check.new_tokens(self.model.config, tokens, self.rows, self._tokens.shape[1])
        self._tokens = torch.cat([self._tokens, tokens.to(self._tokens.device)], dim=1)
        mask = self._key_mask
        logits = self.model.decode(self._tokens, memory=self._memory, memory_key_mask=mask)
        return logits[:, -1]

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " kept"]) -> None:
        """Go on with these rows, of which any may be repeated or left out."""
        check.rows(rows, self.rows)
        rows = rows.to(self._tokens.device)
        self._tokens, self._key_mask = self._tokens[rows], self._key_mask[rows]
        self._memory = self._memory[rows]


def _product(*layers: nn.Linear | Generator) -> Callable[[Tensor], Tensor]:
    """Return the function x Wᵀ + b, where W is the layers' matrices, one below the other."""
    weight = torch.cat(tuple(layer.weight for layer in layers)).detach()
    biases = tuple(layer.bias for layer in layers if layer.bias is not None)
    bias = torch.cat(biases).detach() if biases else None
    if weight.shape[0] >= weight.shape[1]:
        weight = weight.t().contiguous().t()  # the same matrix, stored column by column

    def product(x: Tensor) -> Tensor:
        return F.linear(x, weight, bias)

    # Private operators, with which torch.compile freezes weights; no public way was as fast.
    onednn = torch.ops.mkldnn
    names = "_reorder_linear_weight", "_linear_pointwise"
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    single = weight.is_cpu and weight.dtype == torch.float32
    if not (single and available and all(hasattr(onednn, name) for name in names)):
        return product
    blocks = onednn._reorder_linear_weight(weight.contiguous(), 8)  # made for about 8 vectors

    def product_in_blocks(x: Tensor) -> Tensor:
        if x.shape[:-1].numel() == 1 or torch.is_autocast_enabled("cpu"):
            return product(x)
        result: Tensor = onednn._linear_pointwise(x, blocks, bias, "none", [], "")
        return result

    return product_in_blocks


class _DecodingLayer(nn.Module):
    """A layer of the encoder or the decoder that only computes: no checks and no dropout.

    The arguments of ``forward`` are those that :class:`DecodingTransformer` gives its layers.
    """

    def __init__(self, layer: EncoderLayer | DecoderLayer) -> None:
        super().__init__()
        own, feed_forward = layer.self_attention, layer.feed_forward
        self.n_heads, self.d_k = own.n_heads, own.d_k
        self.own_input = _product(own.query_projection, own.key_projection, own.value_projection)
        self.own_output = _product(own.output_projection)
        self.own_norm = _Norm(layer.self_attention_norm)
        if isinstance(layer, DecoderLayer):
            cross = layer.cross_attention
            self.memory_input = _product(cross.key_projection, cross.value_projection)
            self.cross_input = _product(cross.query_projection)
            self.cross_output = _product(cross.output_projection)
            self.cross_norm = _Norm(layer.cross_attention_norm)
        self.inner, self.outer = _product(feed_forward.inner), _product(feed_forward.outer)
        self.activation = feed_forward.activation
        self.feed_forward_norm = _Norm(layer.feed_forward_norm)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        key_mask: Tensor | None = None,
        memory_key_mask: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            queries, keys, values = self._heads(self.own_input(x), 3)
            if cache is not None:
                keys, values = cache(KeysValues(keys, values))
            heads = _attend(queries, keys, values, key_mask, causal=memory is not None)
            return self.own_output(heads)

        x = self.own_norm(x, attend)
        if memory is not None:
            keys, values = self._project(memory, cache)

            def attend_to_memory(x: Tensor) -> Tensor:
                (queries,) = self._heads(self.cross_input(x), 1)
                return self.cross_output(_attend(queries, keys, values, memory_key_mask))

            x = self.cross_norm(x, attend_to_memory)
        return self.feed_forward_norm(x, lambda x: self.outer(self.activation(self.inner(x))))

    def _project(self, memory: Tensor, cache: Cache | None) -> KeysValues:
        if cache is not None and cache.memory is not None:
            return cache.memory
        parts = self._heads(self.memory_input(memory), 2)
        projected = KeysValues(*(part.contiguous() for part in parts))  # as every step reads it
        if cache is not None:
            cache.memory = projected
        return projected

    def _heads(self, x: Tensor, parts: int) -> tuple[Tensor, ...]:
        """Split what one product made into its parts, such as keys and values, and into heads."""
        heads = x.view(*x.shape[:2], parts * self.n_heads, self.d_k).transpose(1, 2)
        return heads.chunk(parts, dim=1)


def _attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    key_mask: Tensor | None,
    *,
    causal: bool = False,
) -> Tensor:
    """Return the joined heads; a query that may attend to nothing gets zeros, as in the model."""
    mask = None if key_mask is None else key_mask[:, None, None, :]
    n = queries.shape[2]
    if causal and n > 1:  # a single query stands at the last key and sees all
        mask = combine_masks(mask, causal_mask(n, keys.shape[2], device=queries.device))
    return F.scaled_dot_product_attention(queries, keys, values, mask).transpose(1, 2).flatten(2)


class _Norm:
    """What an ``AddNorm`` does in evaluation mode."""

    def __init__(self, add_norm: AddNorm) -> None:
        norm = add_norm.norm
        weight, bias = norm.weight.detach().clone(), norm.bias.detach().clone()
        self.how = weight.shape, weight, bias, norm.eps
        self.first = add_norm.norm_first

    def __call__(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.first:
            return x + sublayer(F.layer_norm(x, *self.how))
        return F.layer_norm(x + sublayer(x), *self.how)


class DecodingTransformer(nn.Module):
    """What :func:`for_decoding` makes of a model: it encodes and decodes, and cannot do more.

    Its matrices are no parameters. Moving, saving, loading, training, pickling or copying it is
    refused with TypeError; do that with the model it was made from.
    """

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.config = model.config
        inputs = {"source": model.source_input, "target": model.target_input}
        self.inputs = copy.deepcopy(nn.ModuleDict(inputs)).requires_grad_(False)
        self.embedding = copy.deepcopy(model.embedding).requires_grad_(False)
        self.encoder, self.decoder = _DecodingStack(model.encoder), _DecodingStack(model.decoder)
        self.generator = _product(model.generator)
        self.eval()

    def encode(self, source: Tensor, *, key_mask: Tensor | None = None) -> Tensor:
        """Return the encoder's output, as :meth:`Transformer.encode` does."""
        if key_mask is None:
            key_mask = source != self.config.padding_id
        x = self.inputs["source"](self.embedding["source"](source))
        return self.encoder(x, key_mask=key_mask)

    def decode(
        self,
        target: Tensor,
        *,
        memory: Tensor,
        memory_key_mask: Tensor | None = None,
        key_mask: Tensor | None = None,
        offset: int = 0,
        cache: Sequence[Cache] | None = None,
    ) -> Tensor:
        """Return logits for target tokens, as :meth:`Transformer.decode` does."""
        embedding = self.embedding["target" if "target" in self.embedding else "source"]
        x = self.inputs["target"](embedding(target), offset=offset)
        masks = {"key_mask": key_mask, "memory_key_mask": memory_key_mask}
        return self.generator(self.decoder(x, memory, cache=cache, **masks))

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        *,
        source_key_mask: Tensor | None = None,
        target_key_mask: Tensor | None = None,
    ) -> Tensor:
        """Return logits for all target tokens, as :meth:`Transformer.forward` does."""
        if source_key_mask is None:
            source_key_mask = source != self.config.padding_id
        memory = self.encode(source, key_mask=source_key_mask)
        return self.decode(
            target, memory=memory, memory_key_mask=source_key_mask, key_mask=target_key_mask
        )

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "model: what for_decoding returned cannot be moved, saved, loaded, trained or copied; "
            "do that with the model it was made from"
        )

    def train(self, mode: bool = True) -> "DecodingTransformer":
        """Stay in evaluation mode, the only one there is."""
        return self._refuse() if mode else super().train(mode=False)

    _apply = state_dict = load_state_dict = save_pretrained = _refuse
    __deepcopy__ = __reduce_ex__ = _refuse


class _DecodingStack(nn.Module):
    """An encoder or a decoder of layers that only compute."""

    def __init__(self, stack: Encoder | Decoder) -> None:
        super().__init__()
        layers = cast("Sequence[EncoderLayer | DecoderLayer]", stack.layers)
        self.layers = nn.ModuleList(_DecodingLayer(layer) for layer in layers)
        self.final_norm = copy.deepcopy(stack.final_norm)

    def forward(self, x: Tensor, *memory: Tensor, cache: Any = None, **masks: Any) -> Tensor:
        for number, layer in enumerate(self.layers):
            x = layer(x, *memory, cache=None if cache is None else cache[number], **masks)
        return x if self.final_norm is None else self.final_norm(x)


def for_decoding(model: Transformer) -> DecodingTransformer:
    """Return what computes the same as a model in less time, and is for decoding only.

    Its matrices lie as they are read fastest, queries, keys and values come from one product, and
    the layers no longer check what they are given. Results agree up to rounding. On the CPU in
    float32 it keeps the matrices in two orders, one for a single vector and one for several.

    Args:
        model: Any model; it is left as it is, and may be trained on.
    """
    check.for_decoding(model, Transformer)
    return DecodingTransformer(model)


def length_penalty(length: int, alpha: float) -> float:
    """Return what a log-probability is divided by: ((5 + length) / 6)^alpha.

    Without it, α = 0, every further token makes a hypothesis worse.

    Args:
        length: Number of new tokens, the end token among them.
        alpha: 0.6 in the paper.

    Source: Wu et al. (2016), equation 14; Vaswani et al. (2017), section 6.1.
    """
    return ((5 + length) / 6) ** alpha


class Hypothesis(NamedTuple):
    """One way to go on."""

    tokens: list[int]  # the new tokens, with the end token if it came
    log_probability: float  # sum over the tokens, in nats
    score: float  # the log-probability divided by the length penalty


class _Search:
    """Beam search for one sentence.

    Attributes:
        going: Log-probability and new tokens of the sequences that go on, the best first.
        parents: Which of those before each of them continues.
        results: The best that have been put aside, the best score first.
    """

    def __init__(self, beams: int, end: int, divisors: Sequence[float]) -> None:
        self.beams, self.end, self.divisors = beams, end, divisors
        self.going: list[tuple[float, list[int]]] = [(0.0, [])]
        self.parents = [0]
        self.results: list[Hypothesis] = []

    def step(self, log_probabilities: Float[Tensor, "going vocabulary"]) -> None:
        """Lengthen the sequences by one token, and keep the best."""
        before, vocabulary = self.going, log_probabilities.shape[1]
        length = len(before[0][1]) + 1
        totals = log_probabilities.new_tensor([total for total, _ in before])[:, None]
        # Of twice as many as there are beams at most half end: each sequence has one way to.
        candidates = (totals + log_probabilities).flatten()
        best, places = candidates.topk(min(2 * self.beams, len(candidates)))
        self.going, self.parents = [], []
        for rank, (total, place) in enumerate(zip(best.tolist(), places.tolist(), strict=True)):
            parent, token = divmod(place, vocabulary)
            sequence = [*before[parent][1], token]
            if total == -math.inf:
                break
            if token == self.end or length == len(self.divisors):
                if rank < self.beams:
                    score = total / self.divisors[length - 1]
                    self.results.append(Hypothesis(sequence, total, score))
            elif len(self.going) < self.beams:
                self.going.append((total, sequence))
                self.parents.append(parent)
        self.results.sort(key=lambda hypothesis: hypothesis.score, reverse=True)
        del self.results[self.beams :]
        if self.going and self._is_over(length):
            self.going, self.parents = [], []

    def _is_over(self, length: int) -> bool:
        """Whether no sequence that goes on can score more than the last of the results."""
        if len(self.results) < self.beams:
            return False
        return self.going[0][0] / max(self.divisors[length:]) <= self.results[-1].score


def beam_search(
    decoder: NextToken,
    *,
    beams: int,
    start: int | Int[Tensor, "rows prompt"],
    end: int,
    max_length: int,
    min_length: int = 0,
    alpha: float = 0.6,
    penalty: Callable[[int, float], float] = length_penalty,
    forbidden: Sequence[int] = (),
) -> list[list[Hypothesis]]:
    """Keep the most probable beginnings of each row, and return the best ends that they lead to.

    For each row at most ``beams`` hypotheses, no two the same, none of probability 0.

    Args:
        decoder: A model that has read no target token yet.
        beams: How many sequences go on.
        start: As in :func:`greedy`.
        end: As there.
        max_length: As there; sequences that have not ended by then are results too.
        min_length: As there.
        alpha: Passed to ``penalty``; 0 ranks by probability alone, 0.6 is the paper's.
        penalty: Called with a length and ``alpha``; divides the log-probability.
        forbidden: As in :func:`greedy`.
    """
    check.search(decoder, start, end, max_length, min_length, forbidden)
    check.beams(beams, alpha)
    divisors = _divisors(penalty, alpha, max_length)
    rules = _Rules(end, max_length, min_length, forbidden)
    tokens = _first_tokens(decoder, start)
    searches = [_Search(beams, end, divisors) for _ in range(decoder.rows)]
    length = 0
    while searching := [search for search in searches if search.going]:
        length += 1
        logits = _single(decoder.advance(tokens))
        log_probabilities = rules.apply(logits.log_softmax(dim=-1), length)
        rows: list[int] = []
        first = 0
        parts = torch.split(log_probabilities, [len(search.going) for search in searching])
        for search, part in zip(searching, parts, strict=True):
            search.step(part)
            rows += [first + parent for parent in search.parents]
            first += len(part)
        decoder.select(torch.tensor(rows, dtype=torch.int64))
        last = [sequence[-1] for search in searching for _, sequence in search.going]
        tokens = torch.tensor(last, dtype=torch.int64)[:, None]
    return [search.results for search in searches]


def _divisors(penalty: Callable[[int, float], float], alpha: float, max_length: int) -> list[float]:
    """Return what a log-probability is divided by at the lengths 1, 2, … to the last."""
    divisors = []
    for length in range(1, max_length + 1):
        try:
            divisor = penalty(length, alpha)
        except OverflowError:
            divisor = math.inf
        check.divisor(divisor, length, alpha)
        divisors.append(divisor)
    return divisors


def sample(
    decoder: NextToken,
    *,
    start: int | Int[Tensor, "rows prompt"],
    end: int,
    max_length: int,
    min_length: int = 0,
    padding_id: int = 0,
    forbidden: Sequence[int] = (),
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "rows length"]:
    """Draw each token from the model's distribution, until the end token comes.

    Args:
        decoder: As in :func:`greedy`, as are all that are not described here.
        start: As there.
        end: As there.
        max_length: As there.
        min_length: As there.
        padding_id: As there.
        forbidden: As there.
        temperature: Divides the logits: below 1 prefers the probable, above 1 evens out.
        top_k: Draw from the so many most probable only (Fan et al., 2018, section 4).
        top_p: Draw from the most probable that together have this probability (Holtzman, 3.1).
        generator: Source of the random numbers. What is drawn for a row depends on the others.
    """
    check.search(decoder, start, end, max_length, min_length, forbidden, padding_id)
    check.sampling(temperature, top_k, top_p)

    def draw(logits: Tensor) -> Tensor:
        vocabulary = logits.shape[-1]
        gaps = logits - logits.amax(dim=-1, keepdim=True)  # at most 0: no division overflows
        probabilities = (gaps / max(temperature, 1e-30)).softmax(dim=-1)
        ranked, tokens = probabilities.topk(min(top_k or vocabulary, vocabulary))
        if top_p is not None and top_p < 1:
            before = ranked.cumsum(dim=-1) - ranked
            ranked = ranked.masked_fill(before >= top_p, 0)
        drawn = torch.multinomial(ranked, 1, generator=generator)
        return tokens.gather(1, drawn).squeeze(1)

    rules = _Rules(end, max_length, min_length, forbidden)
    return _continue(decoder, draw, start, rules, padding_id)

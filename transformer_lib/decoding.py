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

from transformer_lib._checks.common import require_mask
from transformer_lib.add_norm import AddNorm
from transformer_lib.embedding import Generator
from transformer_lib.layers import DecoderLayer, EncoderLayer
from transformer_lib.masking import causal_mask, combine_masks
from transformer_lib.multi_head_attention import KeysValues
from transformer_lib.transformer import Transformer

__all__ = [
    "CachedDecoder",
    "Hypothesis",
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

    def __post_init__(self) -> None:
        """Refuse lengths that no row can have."""
        if self.max_length < 1:
            raise ValueError(f"max_length: expected 1 or more new tokens, got {self.max_length}")
        if not 0 <= self.min_length < self.max_length:
            raise ValueError(
                f"min_length: expected 0 to {self.max_length - 1}, below max_length, "
                f"got {self.min_length}"
            )

    def apply(self, scores: Tensor, length: int, *, some_left: bool = False) -> Tensor:
        """Bar what may not be token number ``length``; NaN, and if asked nothing left, is refused.

        Args:
            scores: Logits or their logarithms, of shape (rows, vocabulary).
            length: How many new tokens there are with the one that is sought.
            some_left: Whether every row must have a token that is not barred.
        """
        vocabulary = scores.shape[-1]
        for name, tokens in (("end", [self.end]), ("forbidden", self.forbidden)):
            if outside := [token for token in tokens if not 0 <= token < vocabulary]:
                raise ValueError(f"{name}: expected ids from 0 to {vocabulary - 1}, got {outside}")
        barred = [*self.forbidden, *([self.end] if length <= self.min_length else [])]
        if barred:
            scores = scores.index_fill(-1, torch.tensor(barred, device=scores.device), -math.inf)
        best = scores.amax(dim=-1)  # one pass for both: NaN where any is NaN, −∞ where none is left
        if not best.isfinite().all():
            if best.isnan().any():
                raise FloatingPointError(f"decoder: NaN in the logits of new token number {length}")
            if some_left and (best == -math.inf).any():
                raise ValueError(
                    f"forbidden: no token is left that could be number {length} of a row"
                )
        return scores


def _first_tokens(decoder: NextToken, start: int | Tensor) -> Tensor:
    """Return the tokens that every row begins with, of shape (rows, at least 1)."""
    if isinstance(start, int):
        return torch.full((decoder.rows, 1), start)
    if start.dim() != 2 or start.shape[0] != decoder.rows or not start.shape[1]:
        raise ValueError(
            f"start: expected a token, or tokens of shape (rows = {decoder.rows}, 1 or more), "
            f"got {tuple(start.shape)}"
        )
    return start


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

    Args:
        decoder: A model that has read no target token yet. Rows that end leave it.
        start: The token every row starts with, or several for each row.
        end: The token that ends a row.
        max_length: At most so many new tokens; the end token counts, those of ``start`` do not.
        min_length: At least so many before the end token.
        padding_id: What stands behind the end of the shorter rows.
        forbidden: Tokens that are never taken.

    Returns:
        The new tokens of each row with the end token, if it came, and padding behind it; as long as
        the longest row. Without rows it is empty.

    Raises:
        FloatingPointError: The logit of a token that may be taken is NaN.
        ValueError: A length is out of range, ``start`` has not as many rows, or a token is not in
            the vocabulary; or no token may be taken.
    """
    rules = _Rules(end, max_length, min_length, forbidden)
    return _continue(decoder, lambda logits: logits.argmax(dim=-1), start, rules, padding_id)


class _Cache:
    """Keys and values of one layer's self-attention, for all tokens so far."""

    def __init__(self) -> None:
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

    def select(self, rows: Tensor) -> None:
        if self._kept is not None:
            self._kept = KeysValues(*(part.index_select(0, rows) for part in self._kept))


class CachedDecoder:
    """A model on its way through its target sentences, which it reads once only.

    The encoder's output is projected to the keys and values of every layer at the start, and the
    self-attention's keys and values are remembered, so that a new token costs its own
    computation and no other.

    Args:
        model: A model in evaluation mode.
        source: Token ids of shape (batch, length). Padding may stand at either end.
        key_mask: True on real source tokens; by default all but the model's ``padding_id``.

    Raises:
        TypeError: Ids are no integers, or the mask is not boolean.
        ValueError: The model is in training mode, or ``source`` or ``key_mask`` does not fit.
    """

    @torch.inference_mode()
    def __init__(
        self,
        model: Transformer,
        source: Int[Tensor, "batch source"],
        *,
        key_mask: Bool[Tensor, "batch source"] | None = None,
    ) -> None:
        source, key_mask = _prepare(model, source, key_mask)
        self.model = model
        memory = model.encode(source, key_mask=key_mask)
        # Laid out head by head, as every step reads it; a mask that hides nothing costs time.
        self._memory = [
            KeysValues(*(part.contiguous() for part in layer))
            for layer in model.decoder.project_memory(memory)
        ]
        self._key_mask = None if key_mask.all() else key_mask
        self._sources = torch.arange(len(source), device=source.device)
        self._caches = [_Cache() for _ in self._memory]
        self._length = 0

    @property
    def rows(self) -> int:
        """Number of rows of tokens; at first one for each source sentence."""
        return len(self._sources)

    @torch.inference_mode()
    def advance(self, tokens: Int[Tensor, "rows new"]) -> Float[Tensor, "rows vocabulary"]:
        """Append tokens to every row and return the logits of what follows the last of them.

        Args:
            tokens: Token ids, at least one for each row.

        Raises:
            TypeError: Ids are no integers.
            ValueError: There are not as many rows, an id is not in the vocabulary, or the rows
                grow beyond the model's ``max_length``.
        """
        _require_new(self.model, tokens, self.rows, self._length)
        logits = self.model.decode(
            tokens.to(self._sources.device),
            memory=self._memory,
            memory_key_mask=self._key_mask,
            offset=self._length,
            remember=self._caches,
        )
        self._length += tokens.shape[1]
        return logits[:, -1]

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " kept"]) -> None:
        """Go on with these rows, of which any may be repeated or left out."""
        rows = rows.to(self._sources.device)
        for cache in self._caches:
            cache.select(rows)
        sources = self._sources[rows]
        if not torch.equal(sources, self._sources):
            self._memory = [
                KeysValues(*(part.index_select(0, rows) for part in layer))
                for layer in self._memory
            ]
            if self._key_mask is not None:
                self._key_mask = self._key_mask[rows]
            self._sources = sources


def _prepare(model: Transformer, source: Tensor, key_mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return source and mask with the real tokens of each row first, so that they start at 0."""
    if model.training:
        raise ValueError("model: expected evaluation mode, call model.eval() first")
    if source.dim() != 2:
        raise ValueError(
            f"source: expected token ids of shape (batch, length), got {tuple(source.shape)}"
        )
    if key_mask is None:
        key_mask = source != model.config.padding_id
    require_mask(key_mask, "key_mask")
    if key_mask.shape != source.shape:
        raise ValueError(
            f"key_mask: expected shape {tuple(source.shape)} as source has, "
            f"got {tuple(key_mask.shape)}"
        )
    order = torch.argsort(~key_mask, dim=1, stable=True)
    return source.gather(1, order), key_mask.gather(1, order)


def _require_new(model: Transformer, tokens: Tensor, rows: int, length: int) -> None:
    """Raise unless ``tokens`` are new ones for every row, and the model has positions for them."""
    if tokens.dim() != 2 or len(tokens) != rows or not tokens.shape[1]:
        raise ValueError(
            f"tokens: expected shape (rows = {rows}, 1 or more), got {tuple(tokens.shape)}"
        )
    places = model.config.max_length
    if model.config.positions != "none" and length + tokens.shape[1] > places:
        raise ValueError(
            f"tokens: {tokens.shape[1]} after {length} are more than the {places} positions that "
            "the model has (its max_length)"
        )


class UncachedDecoder:
    """As :class:`CachedDecoder`, but reads all tokens again for every new one. For comparison.

    The arguments and errors are the same.
    """

    @torch.inference_mode()
    def __init__(
        self,
        model: Transformer,
        source: Int[Tensor, "batch source"],
        *,
        key_mask: Bool[Tensor, "batch source"] | None = None,
    ) -> None:
        source, self._key_mask = _prepare(model, source, key_mask)
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
        _require_new(self.model, tokens, self.rows, self._tokens.shape[1])
        self._tokens = torch.cat([self._tokens, tokens.to(self._tokens.device)], dim=1)
        logits = self.model.decode(
            self._tokens,
            memory=self.model.decoder.project_memory(self._memory),
            memory_key_mask=self._key_mask,
        )
        return logits[:, -1]

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " kept"]) -> None:
        """Go on with these rows, of which any may be repeated or left out."""
        rows = rows.to(self._tokens.device)
        self._tokens, self._key_mask = self._tokens[rows], self._key_mask[rows]
        self._memory = self._memory[rows]


def _product(*layers: nn.Linear | Generator) -> Callable[[Tensor], Tensor]:
    """Return the function x Wᵀ + b, where W is the layers' matrices, one below the other."""
    weight = torch.cat(tuple(layer.weight for layer in layers))
    biases = tuple(layer.bias for layer in layers if layer.bias is not None)
    bias = torch.cat(biases) if biases else None
    if weight.shape[0] >= weight.shape[1]:
        weight = weight.t().contiguous().t()  # the same matrix, stored column by column

    def product(x: Tensor) -> Tensor:
        return F.linear(x, weight, bias)

    # Private operators, with which torch.compile freezes weights; no public way was as fast.
    onednn = torch.ops.mkldnn
    if not (
        weight.is_cpu
        and weight.dtype == torch.float32
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(onednn, "_reorder_linear_weight")
        and hasattr(onednn, "_linear_pointwise")
    ):
        return product
    blocks = onednn._reorder_linear_weight(weight.contiguous(), 8)  # made for about 8 vectors

    def product_in_blocks(x: Tensor) -> Tensor:
        if x.shape[:-1].numel() == 1:
            return product(x)
        result: Tensor = onednn._linear_pointwise(x, blocks, bias, "none", [], "")
        return result

    return product_in_blocks


class _DecodingLayer(nn.Module):
    """A layer of the encoder or the decoder that only computes: no checks and no dropout.

    The arguments of its methods are those that :class:`Transformer` gives its layers.
    """

    def __init__(self, layer: EncoderLayer | DecoderLayer) -> None:
        super().__init__()
        own, feed_forward = layer.self_attention, layer.feed_forward
        self.n_heads, self.d_k = own.n_heads, own.d_k
        self.own_input = _product(own.query_projection, own.key_projection, own.value_projection)
        self.own_output = _product(own.output_projection)
        self.own_norm = layer.self_attention_norm
        if isinstance(layer, DecoderLayer):
            cross = layer.cross_attention
            self.memory_input = _product(cross.key_projection, cross.value_projection)
            self.cross_input = _product(cross.query_projection)
            self.cross_output = _product(cross.output_projection)
            self.cross_norm = layer.cross_attention_norm
        self.inner, self.outer = _product(feed_forward.inner), _product(feed_forward.outer)
        self.activation = feed_forward.activation
        self.feed_forward_norm = layer.feed_forward_norm

    def project_memory(self, memory: Tensor, *, positions: None = None) -> KeysValues:
        return KeysValues(*self._heads(self.memory_input(memory), 2))

    def forward(
        self,
        x: Tensor,
        memory: KeysValues | None = None,
        *,
        key_mask: Tensor | None = None,
        memory_key_mask: Tensor | None = None,
        remember: Callable[[KeysValues], KeysValues] | None = None,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            queries, keys, values = self._heads(self.own_input(x), 3)
            if remember is not None:
                keys, values = remember(KeysValues(keys, values))
            heads = _attend(queries, keys, values, key_mask, causal=memory is not None)
            return self.own_output(heads)

        def feed_forward(x: Tensor) -> Tensor:
            return self.outer(self.activation(self.inner(x)))

        x = _add_norm(self.own_norm, x, attend)
        if memory is not None:
            keys, values = memory

            def attend_to_memory(x: Tensor) -> Tensor:
                (queries,) = self._heads(self.cross_input(x), 1)
                return self.cross_output(_attend(queries, keys, values, memory_key_mask))

            x = _add_norm(self.cross_norm, x, attend_to_memory)
        return _add_norm(self.feed_forward_norm, x, feed_forward)

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


def _add_norm(add_norm: AddNorm, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    """Compute what ``add_norm`` does in evaluation mode."""
    norm = add_norm.norm

    def normalise(x: Tensor) -> Tensor:
        return F.layer_norm(x, norm.gain.shape, norm.gain, norm.bias, norm.eps)

    return x + sublayer(normalise(x)) if add_norm.norm_first else normalise(x + sublayer(x))


def for_decoding(model: Transformer) -> Transformer:
    """Return a copy of a model, in evaluation mode, that computes the same in less time.

    Its matrices lie as they are read fastest, queries, keys and values come from one product, and
    the layers no longer check what they are given. Results agree up to rounding. On the CPU in
    float32 it keeps the matrices in two orders, one for a single vector and one for several.

    The copy is for decoding where the model is: moving, saving, loading or copying it raises
    TypeError. :func:`transformer_lib.transformer.record_attention` finds nothing to record in it.

    Args:
        model: Any model; it is left as it is.
    """
    fast = copy.deepcopy(model).eval().requires_grad_(False)
    for stack in (fast.encoder, fast.decoder):
        layers = cast("Sequence[EncoderLayer | DecoderLayer]", stack.layers)
        stack.layers = nn.ModuleList(_DecodingLayer(layer) for layer in layers)
    fast.generator.forward = _product(fast.generator)  # type: ignore[assignment, method-assign]
    fast.__class__ = _ForDecoding
    return fast


class _ForDecoding(Transformer):
    """A model whose layers' matrices are no parameters any more, and would be left out."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "model: what for_decoding returned cannot be moved, saved, loaded or copied; do that "
            "with the model it was made from"
        )

    _apply = state_dict = load_state_dict = __deepcopy__ = _refuse


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
    """One way to go on.

    Attributes:
        tokens: The new tokens, with the end token if it came.
        log_probability: Sum over the tokens, in nats.
        score: The log-probability divided by the length penalty.
    """

    tokens: list[int]
    log_probability: float
    score: float


class _Search:
    """Beam search for one sentence.

    Args:
        beams: How many sequences go on.
        end: The token that ends a sequence.
        divisors: What a log-probability is divided by at the lengths 1, 2, … to the last.

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

    At every length the ``beams`` most probable sequences are looked at: those that end are put
    aside, and as many others go on. The search stops when no sequence that goes on can still score
    more than the ones put aside. It may miss the best sequence, and need not find one as good as
    :func:`greedy` does. With one beam and ``alpha=0`` it is greedy; with a penalty one beam goes
    on after the first end for as long as a longer sequence could score more.

    Args:
        decoder: A model that has read no target token yet.
        beams: How many sequences go on.
        start: As in :func:`greedy`.
        end: As there.
        max_length: As there; sequences that have not ended by then are results too.
        min_length: As there.
        alpha: Passed to ``penalty``; 0 ranks by probability alone.
        penalty: Called with a length and ``alpha``; the score is the log-probability divided by
            it.
        forbidden: As in :func:`greedy`.

    Returns:
        For each row its hypotheses, at most ``beams``, the best score first. No two are the same,
        and none has a probability of 0; if every sequence has, a row's list is empty.

    Raises:
        FloatingPointError: The decoder's logits hold NaN.
        ValueError: As :func:`greedy`, or ``beams`` is below 1, or a penalty is not above 0.

    Source: Vaswani et al. (2017), section 6.1 (4 beams, α = 0.6).
    """
    rules = _Rules(end, max_length, min_length, forbidden)
    if beams < 1:
        raise ValueError(f"beams: expected 1 or more, got {beams}")
    divisors = [penalty(length, alpha) for length in range(1, max_length + 1)]
    if not all(divisor > 0 for divisor in divisors):
        raise ValueError(f"penalty: expected numbers above 0, got {divisors}")
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
        decoder: As in :func:`greedy`, and so the arguments that are not described here.
        start: As there.
        end: As there.
        max_length: As there.
        min_length: As there.
        padding_id: As there.
        forbidden: As there.
        temperature: Divides the logits: below 1 prefers the probable, above 1 evens out.
        top_k: Draw from the so many most probable tokens only.
        top_p: Draw from the most probable tokens that together have this probability, only. With
            ``top_k`` as well, a token has to be among both.
        generator: Source of the random numbers. What is drawn for a row depends on the others.

    Returns:
        As :func:`greedy`.

    Raises:
        FloatingPointError: As :func:`greedy`.
        ValueError: As :func:`greedy`, or an option is out of range.

    Source: top p, Holtzman et al. (2020), section 3.1; top k, Fan et al. (2018), section 4.
    """
    if not 0 < temperature < math.inf:
        raise ValueError(
            f"temperature: expected a number above 0, got {temperature}; greedy takes the most "
            "probable token"
        )
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k: expected 1 or more, got {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p: expected a probability above 0, up to 1, got {top_p}")

    def draw(logits: Tensor) -> Tensor:
        vocabulary = logits.shape[-1]
        probabilities = (logits / temperature).softmax(dim=-1)
        ranked, tokens = probabilities.topk(min(top_k or vocabulary, vocabulary))
        if top_p is not None and top_p < 1:
            before = ranked.cumsum(dim=-1) - ranked
            ranked = ranked.masked_fill(before >= top_p, 0)
        drawn = torch.multinomial(ranked, 1, generator=generator)
        return tokens.gather(1, drawn).squeeze(1)

    rules = _Rules(end, max_length, min_length, forbidden)
    return _continue(decoder, draw, start, rules, padding_id)

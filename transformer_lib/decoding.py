"""Decoding: from a trained model to sentences, token by token, with remembered keys and values.

Explained in chapter 13, "Decoding" (book/13_decoding.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer_lib._checks import decoding as check
from transformer_lib.layers import Cache
from transformer_lib.multi_head_attention import KeysValues
from transformer_lib.transformer import TransformerConfig

__all__ = [
    "CachedDecoder",
    "EncoderDecoder",
    "Hypothesis",
    "LayerCache",
    "NextToken",
    "UncachedDecoder",
    "beam_search",
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

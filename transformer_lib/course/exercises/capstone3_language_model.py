"""Capstone of part 3, The whole: a language model from the library's parts."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lib.add_norm import AddNorm, LayerNorm
from transformer_lib.course.exercises import Exercise, NotYetError
from transformer_lib.embedding import Generator, InputLayer, TokenEmbedding
from transformer_lib.feed_forward import FeedForward
from transformer_lib.multi_head_attention import KeysValues, MultiHeadAttention
from transformer_lib.positional_encoding import LearnedPositions, SinusoidalPositions

VOCABULARY, WIDTH, HEADS = 11, 16, 4


class _RejectedError(Exception):
    """What is wrong with an answer."""


def _model(answer: Any, n_layers: int) -> nn.Module:
    if answer is None or answer is ...:
        raise NotYetError
    if not (isinstance(answer, type) and issubclass(answer, nn.Module)):
        raise _RejectedError(f"a class of modules is asked for, got {type(answer).__name__}")
    torch.manual_seed(n_layers)
    try:
        return answer(VOCABULARY, WIDTH, HEADS, n_layers).eval()
    except NotImplementedError:
        raise NotYetError from None
    except Exception as error:
        message = f"making the model raised {type(error).__name__}: {error}"
        raise _RejectedError(message) from None


def _logits(model: nn.Module, tokens: Tensor, *cache: list[Any]) -> Tensor:
    try:
        with torch.no_grad():
            logits = model(tokens, *cache)
    except NotImplementedError:
        raise NotYetError from None
    except Exception as error:
        message = f"on tokens of shape {tuple(tokens.shape)} the model raised"
        raise _RejectedError(f"{message} {type(error).__name__}: {error}") from None
    if logits is None or logits is ...:
        raise NotYetError
    expected = (*tokens.shape, VOCABULARY)
    if not isinstance(logits, Tensor) or logits.shape != expected:
        came = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise _RejectedError(
            f"logits of shape (batch, length, vocabulary) = {expected} expected: {came}"
        )
    return logits


def _same(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, rtol=1e-4, atol=1e-4)


class _Judge:
    """Turns a function that yields what is wrong into a judge of answers."""

    def __init__(self, problems: Callable[[Any], Iterator[str]]):
        self.problems = problems

    def __call__(self, answer: Any) -> str | None:
        """Return the first thing that is wrong."""
        try:
            return next(self.problems(answer), None)
        except _RejectedError as rejected:
            return str(rejected)


def _tokens(batch: int, length: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(VOCABULARY, (batch, length), generator=generator)


def _model_problems(answer: Any) -> Iterator[str]:
    shallow, deep = _model(answer, 1), _model(answer, 3)
    tokens = _tokens(2, 7, seed=1)
    logits = _logits(deep, tokens)

    later = tokens.clone()
    later[:, 5] = (later[:, 5] + 1) % VOCABULARY
    if not _same(_logits(deep, later)[:, :5], logits[:, :5]):
        yield "logits move when a later token changes: hide the future"
    first = tokens.clone()
    first[:, 0] = (first[:, 0] + 1) % VOCABULARY
    if _same(_logits(deep, first)[:, -1], logits[:, -1]):
        yield "the last logits do not depend on the first token: where is the attention?"

    ordered = torch.tensor([[1, 2, 3, 4]])
    exchanged = torch.tensor([[2, 1, 3, 4]])
    if _same(_logits(shallow, ordered)[:, -1], _logits(shallow, exchanged)[:, -1]):
        yield (
            "with one layer, exchanging the first two tokens moves nothing at the last one: "
            "positions are missing"
        )

    sizes = [sum(p.numel() for p in _model(answer, n).parameters()) for n in (1, 2, 3)]
    if not sizes[0] < sizes[1] or sizes[1] - sizes[0] != sizes[2] - sizes[1]:
        yield "the number of parameters does not grow with the layers: each has weights of its own"
    shape = (VOCABULARY, WIDTH)
    if sum(tuple(p.shape) in (shape, shape[::-1]) for p in deep.parameters()) != 1:
        yield "embedding and output hold a matrix each: tie them"


def _cache_problems(answer: Any) -> Iterator[str]:
    model = _model(answer, 2)
    tokens, others = _tokens(2, 6, seed=2), _tokens(2, 6, seed=3)
    whole = _logits(model, tokens)
    cache: list[Any] = []
    another: list[Any] = []
    parts = [_logits(model, tokens[:, :3], cache)]
    _logits(model, others[:, :4], another)
    parts += [_logits(model, tokens[:, t : t + 1], cache) for t in (3, 4, 5)]
    if not _same(parts[0], whole[:, :3]):
        yield "the first chunk, with an empty cache, does not give what it gives without one"
    if not _same(torch.cat(parts, dim=1), whole):
        if _same(parts[1], _logits(model, tokens[:, 3:4])):
            yield "the second chunk is read as if nothing stood before it: nothing was kept"
        alone: list[Any] = []
        again = [_logits(model, tokens[:, :3], alone), _logits(model, tokens[:, 3:4], alone)]
        if _same(again[1], whole[:, 3:4]):
            yield "two texts that are read by turns get into each other: keep all in the cache"
        yield (
            "logits with a cache differ from those without: mind the positions of new tokens, and "
            "that they see all that was kept"
        )


MODULUS = 10


def sums(count: int, length: int, seed: int) -> Tensor:
    """Return sequences in which each token is the sum of the two before it, modulo 10."""
    generator = torch.Generator().manual_seed(seed)
    rows = [*torch.randint(MODULUS, (2, count), generator=generator)]
    while len(rows) < length:
        rows.append((rows[-1] + rows[-2]) % MODULUS)
    return torch.stack(rows, dim=1)


def _trained_problems(answer: Any) -> Iterator[str]:
    if answer is None or answer is ...:
        raise NotYetError
    if not callable(answer):
        yield f"a trained model is asked for, got {type(answer).__name__}"
    if getattr(answer, "training", False):
        yield "the model is in training mode: call eval() first"
    starts = torch.cartesian_prod(torch.arange(MODULUS), torch.arange(MODULUS))
    written = starts
    for _ in range(8):
        try:
            with torch.no_grad():
                logits = answer(written)
        except NotImplementedError:
            raise NotYetError from None
        except Exception as error:
            raise _RejectedError(f"the model raised {type(error).__name__}: {error}") from None
        if logits is None or logits is ...:
            raise NotYetError
        if not isinstance(logits, Tensor) or logits.dim() != 3:
            came = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise _RejectedError(f"logits of shape (batch, length, 10) are asked for, got {came}")
        written = torch.cat([written, logits[:, -1].argmax(dim=-1, keepdim=True)], dim=1)
    right = written[:, 2:] == (written[:, 1:-1] + written[:, :-2]) % MODULUS
    exact = right.all(dim=1).float().mean().item()
    if exact < 0.9:
        if right[:, 0].float().mean() < 0.2:
            yield "hardly a next token is right: nothing was learnt"
        yield f"of 100 beginnings {100 * exact:.0f} are continued without a fault: 90 are asked for"


class _Layer(nn.Module):
    def __init__(self, d_model: int, n_heads: int, norm_first: bool) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.network = FeedForward(d_model, 4 * d_model)
        self.norms = nn.ModuleList(AddNorm(d_model, norm_first=norm_first) for _ in range(2))

    def forward(self, x: Tensor, kept: list[KeysValues]) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            kept.append(self.attention.project(x, x))
            parts = (torch.cat(part, dim=2) for part in zip(*kept, strict=True))
            result: Tensor = self.attention(x, keys_values=KeysValues(*parts), causal=True)
            return result

        x = self.norms[0](x, attend)
        result: Tensor = self.norms[1](x, self.network)
        return result


class _Decoder(nn.Module):
    """Pre-norm, sinusoids; the cache holds one list for each layer."""

    positions: Callable[..., nn.Module] = SinusoidalPositions
    norm_first = True

    def __init__(self, vocabulary: int, d_model: int, n_heads: int, n_layers: int) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(vocabulary, d_model)
        self.input = InputLayer(d_model, type(self).positions(d_model, max_length=32))
        self.layers = nn.ModuleList(
            _Layer(d_model, n_heads, self.norm_first) for _ in range(n_layers)
        )
        self.final_norm = LayerNorm(d_model) if self.norm_first else nn.Identity()
        self.generator = Generator(d_model, vocabulary, tied=self.embedding)

    def forward(self, tokens: Tensor, cache: list[Any] | None = None) -> Tensor:
        cache = [] if cache is None else cache
        cache += [[] for _ in self.layers if len(cache) < len(self.layers)]
        x = self.input(self.embedding(tokens), offset=self._offset(cache))
        for layer, kept in zip(self.layers, cache, strict=True):
            x = layer(x, kept)
        result: Tensor = self.generator(self.final_norm(x))
        return result

    def _offset(self, cache: list[Any]) -> int:
        return sum(part.keys.shape[2] for part in cache[0])


class _ReadsAgain(nn.Module):
    """Learnt positions, PyTorch's layers; the cache holds the tokens, and all are read again."""

    def __init__(self, vocabulary: int, d_model: int, n_heads: int, n_layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, d_model)
        self.positions = LearnedPositions(d_model, max_length=32)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(d_model, n_heads, 2 * d_model, 0.0, batch_first=True)
            for _ in range(n_layers)
        )

    def forward(self, tokens: Tensor, cache: list[Any] | None = None) -> Tensor:
        new = tokens.shape[1]
        if cache is not None:
            cache.append(tokens)
            tokens = torch.cat(cache, dim=1)
        x = self.positions(self.embedding(tokens))
        hidden = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).triu(1)
        for layer in self.layers:
            x = layer(x, src_mask=hidden)
        result: Tensor = (x @ self.embedding.weight.T)[:, -new:]
        return result


class _SeesAll(_ReadsAgain):
    def forward(self, tokens: Tensor, cache: list[Any] | None = None) -> Tensor:
        x = self.positions(self.embedding(tokens))
        for layer in self.layers:
            x = layer(x)
        result: Tensor = x @ self.embedding.weight.T
        return result


class _WordByWord(_Decoder):
    def forward(self, tokens: Tensor, cache: list[Any] | None = None) -> Tensor:
        result: Tensor = self.generator(self.embedding(tokens))
        return result


class _NoPositions(_Decoder):
    def __init__(self, vocabulary: int, d_model: int, n_heads: int, n_layers: int) -> None:
        super().__init__(vocabulary, d_model, n_heads, n_layers)
        self.input = InputLayer(d_model, None)


class _OneLayer(_Decoder):
    def __init__(self, vocabulary: int, d_model: int, n_heads: int, n_layers: int) -> None:
        super().__init__(vocabulary, d_model, n_heads, n_layers)
        self.layers = nn.ModuleList([self.layers[0]] * n_layers)


class _Untied(_Decoder):
    def __init__(self, vocabulary: int, d_model: int, n_heads: int, n_layers: int) -> None:
        super().__init__(vocabulary, d_model, n_heads, n_layers)
        self.generator = Generator(d_model, vocabulary)


class _Forgets(_Decoder):
    def forward(self, tokens: Tensor, cache: list[Any] | None = None) -> Tensor:
        return super().forward(tokens)


class _Restarts(_Decoder):
    def _offset(self, cache: list[Any]) -> int:
        return 0


class _KeepsInItself(_Decoder):
    def forward(self, tokens: Tensor, cache: list[Any] | None = None) -> Tensor:
        if cache is None:
            return super().forward(tokens)
        if not cache:  # a text begins
            self.kept: list[Any] = []
            cache.append("begun")
        return super().forward(tokens, self.kept)


class _OnlyTheLast(_Decoder):
    def forward(self, tokens: Tensor, cache: list[Any] | None = None) -> Tensor:
        return super().forward(tokens, cache)[:, -1:]


def _adds(tokens: Tensor) -> Tensor:
    """Return logits of a program that knows the rule."""
    before = torch.cat([torch.zeros_like(tokens[:, :1]), tokens[:, :-1]], dim=1)
    return nn.functional.one_hot((tokens + before) % MODULUS, MODULUS).float()


class _Table(nn.Module):
    """Looks the sum up."""

    def __init__(self) -> None:
        super().__init__()
        digit = torch.arange(MODULUS)
        self.table = 5.0 * torch.eye(MODULUS)[(digit[:, None] + digit) % MODULUS]
        self.eval()

    def forward(self, tokens: Tensor) -> Tensor:
        shifted = torch.cat([tokens[:, :1], tokens[:, :-1]], dim=1)
        return self.table[tokens, shifted]


def _repeats(tokens: Tensor) -> Tensor:
    return nn.functional.one_hot((tokens + 1) % MODULUS, MODULUS).float()


EXERCISES = (
    Exercise(
        name="language-model",
        judge=_Judge(_model_problems),
        right=(_Decoder, _ReadsAgain),
        mistakes={
            "logits move when a later token changes: hide the future": _SeesAll,
            "the last logits do not depend on the first token: where is the attention?": (
                _WordByWord
            ),
            "with one layer, exchanging the first two tokens moves nothing at the last one: "
            "positions are missing": _NoPositions,
            "the number of parameters does not grow with the layers: each has weights of its own": (
                _OneLayer
            ),
            "embedding and output hold a matrix each: tie them": _Untied,
        },
    ),
    Exercise(
        name="language-model-with-a-cache",
        judge=_Judge(_cache_problems),
        right=(_Decoder, _ReadsAgain),
        mistakes={
            "the second chunk is read as if nothing stood before it: nothing was kept": _Forgets,
            "two texts that are read by turns get into each other: keep all in the cache": (
                _KeepsInItself
            ),
            "logits with a cache differ from those without: mind the positions of new tokens, and "
            "that they see all that was kept": _Restarts,
            "logits of shape (batch, length, vocabulary) = (2, 6, 11) expected: (2, 1, 11)": (
                _OnlyTheLast
            ),
        },
    ),
    Exercise(
        name="language-model-that-adds",
        judge=_Judge(_trained_problems),
        right=(_adds, _Table()),
        mistakes={
            "hardly a next token is right: nothing was learnt": _repeats,
            "the model is in training mode: call eval() first": _Table().train(),
            "a trained model is asked for, got str": "trained",
        },
    ),
)

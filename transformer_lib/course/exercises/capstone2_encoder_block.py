"""Capstone of part 2, The parts of the Transformer: an encoder from a state dict."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib.course.exercises import Exercise, same_function
from transformer_lib.positional_encoding import sinusoids

_State = Mapping[str, Tensor]


class _OnRealTokens(same_function):
    """Compare where tokens are real; what padding gets is nobody's concern."""

    def __init__(
        self,
        right: Callable[..., Tensor],
        *cases: tuple[Any, ...],
        real: Callable[..., Tensor],
        tolerance: float = 1e-4,
    ):
        super().__init__(self._kept(right, real), *cases, tolerance=tolerance)
        self.real = real

    def __call__(self, answer: Any) -> str | None:
        """Say on which case ``answer`` first differs from the right function, if on any."""
        return super().__call__(self._kept(answer, self.real) if callable(answer) else answer)

    def alike(self, answer: Any, wrong: Any) -> bool:
        """Whether both give the same on the real tokens of every case."""
        return super().alike(self._kept(answer, self.real), self._kept(wrong, self.real))

    @staticmethod
    def _kept(function: Callable[..., Any], real: Callable[..., Tensor]) -> Callable[..., Any]:
        def on_real(*arguments: Any) -> Any:
            result = function(*arguments)
            mask = real(*arguments)
            fits = isinstance(result, Tensor) and result.shape[:2] == mask.shape
            return result[mask] if fits else result

        return on_real


def _layer(d_model: int, n_heads: int, norm_first: bool) -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(
        d_model, n_heads, 2 * d_model, batch_first=True, norm_first=norm_first, dropout=0.0
    )


def random_state(d_model: int, n_heads: int, seed: int) -> dict[str, Tensor]:
    """Return the state dict of one of PyTorch's encoder layers, all of its numbers random."""
    generator = torch.Generator().manual_seed(seed)
    state = _layer(d_model, n_heads, norm_first=False).state_dict()
    return {
        name: torch.randn(tensor.shape, generator=generator) / math.sqrt(d_model)
        + (name in ("norm1.weight", "norm2.weight"))
        for name, tensor in state.items()
    }


def _attend(
    x: Tensor, state: _State, n_heads: int, key_mask: Tensor, scale: float | None = None
) -> Tensor:
    weights = state["self_attn.in_proj_weight"].chunk(3)
    biases = state["self_attn.in_proj_bias"].chunk(3)
    batch, n, d_model = x.shape
    d_k = d_model // n_heads
    query, key, value = (
        (x @ W.T + b).reshape(batch, n, n_heads, d_k).transpose(1, 2)
        for W, b in zip(weights, biases, strict=True)
    )
    scores = query @ key.mT * (d_k**-0.5 if scale is None else scale)
    scores = scores.masked_fill(~key_mask[:, None, None, :], -torch.inf)
    heads = (torch.softmax(scores, dim=-1) @ value).transpose(1, 2).reshape(batch, n, d_model)
    return heads @ state["self_attn.out_proj.weight"].T + state["self_attn.out_proj.bias"]


def _attend_head_by_head(x: Tensor, state: _State, n_heads: int, key_mask: Tensor) -> Tensor:
    d_model = x.shape[-1]
    d_k = d_model // n_heads
    W, b = state["self_attn.in_proj_weight"], state["self_attn.in_proj_bias"]
    output = state["self_attn.out_proj.bias"].expand_as(x)
    hidden = torch.zeros(key_mask.shape).masked_fill(~key_mask, -torch.inf)[:, None]
    for head in range(n_heads):
        query, key, value = (
            x @ W[start : start + d_k].T + b[start : start + d_k]
            for start in (head * d_k, d_model + head * d_k, 2 * d_model + head * d_k)
        )
        weights = (query @ key.mT / math.sqrt(d_k) + hidden).softmax(dim=-1)
        block = state["self_attn.out_proj.weight"][:, head * d_k : (head + 1) * d_k]
        output = output + weights @ value @ block.T
    return output


def _attend_by_torch(x: Tensor, state: _State, n_heads: int, key_mask: Tensor) -> Tensor:
    module = nn.MultiheadAttention(x.shape[-1], n_heads, batch_first=True)
    prefix = "self_attn."
    own = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
    module.load_state_dict(own)
    result: Tensor = module(x, x, x, key_padding_mask=~key_mask, need_weights=False)[0]
    return result


def _one_head(x: Tensor, state: _State, n_heads: int, key_mask: Tensor) -> Tensor:
    return _attend(x, state, 1, key_mask)


def _not_scaled(x: Tensor, state: _State, n_heads: int, key_mask: Tensor) -> Tensor:
    return _attend(x, state, n_heads, key_mask, scale=1.0)


def _scaled_by_width(x: Tensor, state: _State, n_heads: int, key_mask: Tensor) -> Tensor:
    return _attend(x, state, n_heads, key_mask, scale=x.shape[-1] ** -0.5)


def _nothing_hidden(x: Tensor, state: _State, n_heads: int, key_mask: Tensor) -> Tensor:
    return _attend(x, state, n_heads, torch.ones_like(key_mask))


def _without_transpose(x: Tensor, state: _State, n_heads: int, key_mask: Tensor) -> Tensor:
    batch, n, d_model = x.shape
    query, key, value = (
        (x @ W.T + b).reshape(batch, n_heads, n, d_model // n_heads)
        for W, b in zip(
            state["self_attn.in_proj_weight"].chunk(3),
            state["self_attn.in_proj_bias"].chunk(3),
            strict=True,
        )
    )
    scores = query @ key.mT / math.sqrt(d_model // n_heads)
    scores = scores.masked_fill(~key_mask[:, None, None, :], -torch.inf)
    heads = (scores.softmax(dim=-1) @ value).reshape(batch, n, d_model)
    return heads @ state["self_attn.out_proj.weight"].T + state["self_attn.out_proj.bias"]


def _not_transposed(x: Tensor, state: _State, n_heads: int, key_mask: Tensor) -> Tensor:
    turned = dict(state)
    turned["self_attn.in_proj_weight"] = torch.cat(
        [W.T for W in state["self_attn.in_proj_weight"].chunk(3)]
    )
    turned["self_attn.out_proj.weight"] = state["self_attn.out_proj.weight"].T
    return _attend(x, turned, n_heads, key_mask)


def _norm(x: Tensor, state: _State, number: int) -> Tensor:
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, correction=0, keepdim=True)
    gain, bias = state[f"norm{number}.weight"], state[f"norm{number}.bias"]
    return (x - mean) / (variance + 1e-5).sqrt() * gain + bias


def _feed_forward(x: Tensor, state: _State) -> Tensor:
    inner = (x @ state["linear1.weight"].T + state["linear1.bias"]).clamp(min=0)
    return inner @ state["linear2.weight"].T + state["linear2.bias"]


def _block(
    x: Tensor,
    state: _State,
    n_heads: int,
    key_mask: Tensor,
    norm_first: bool,
    norm: Callable[[Tensor, _State, int], Tensor] = _norm,
    transform: Callable[[Tensor, _State], Tensor] = _feed_forward,
) -> Tensor:
    if norm_first:
        x = x + _attend(norm(x, state, 1), state, n_heads, key_mask)
        return x + transform(norm(x, state, 2), state)
    x = norm(x + _attend(x, state, n_heads, key_mask), state, 1)
    return norm(x + transform(x, state), state, 2)


def _block_by_torch(
    x: Tensor, state: _State, n_heads: int, key_mask: Tensor, norm_first: bool
) -> Tensor:
    module = _layer(x.shape[-1], n_heads, norm_first)  # in training: not by the fast path
    module.load_state_dict(dict(state))
    result: Tensor = module(x, src_key_padding_mask=~key_mask)
    return result


def _other_order(
    x: Tensor, state: _State, n_heads: int, key_mask: Tensor, norm_first: bool
) -> Tensor:
    return _block(x, state, n_heads, key_mask, not norm_first)


def _always_post(
    x: Tensor, state: _State, n_heads: int, key_mask: Tensor, norm_first: bool
) -> Tensor:
    return _block(x, state, n_heads, key_mask, norm_first=False)


def _no_residual(
    x: Tensor, state: _State, n_heads: int, key_mask: Tensor, norm_first: bool
) -> Tensor:
    if norm_first:
        x = _attend(_norm(x, state, 1), state, n_heads, key_mask)
        return _feed_forward(_norm(x, state, 2), state)
    x = _norm(_attend(x, state, n_heads, key_mask), state, 1)
    return _norm(_feed_forward(x, state), state, 2)


def _unbiased(x: Tensor, state: _State, number: int) -> Tensor:
    centred = x - x.mean(dim=-1, keepdim=True)
    gain, bias = state[f"norm{number}.weight"], state[f"norm{number}.bias"]
    return centred / (x.var(dim=-1, keepdim=True) + 1e-5).sqrt() * gain + bias


def _linear_twice(x: Tensor, state: _State) -> Tensor:
    inner = x @ state["linear1.weight"].T + state["linear1.bias"]
    return inner @ state["linear2.weight"].T + state["linear2.bias"]


def _with_unbiased(
    x: Tensor, state: _State, n_heads: int, key_mask: Tensor, norm_first: bool
) -> Tensor:
    return _block(x, state, n_heads, key_mask, norm_first, norm=_unbiased)


def _without_relu(
    x: Tensor, state: _State, n_heads: int, key_mask: Tensor, norm_first: bool
) -> Tensor:
    return _block(x, state, n_heads, key_mask, norm_first, transform=_linear_twice)


def _positions(length: int, d_model: int) -> Tensor:
    table = torch.zeros(length, d_model)
    for pos in range(length):
        for pair in range(d_model // 2):
            angle = pos / 10000 ** (2 * pair / d_model)
            table[pos, 2 * pair], table[pos, 2 * pair + 1] = math.sin(angle), math.cos(angle)
    return table


def _encode(
    tokens: Tensor,
    embedding: Tensor,
    states: list[_State],
    n_heads: int,
    padding_id: int,
    factor: float | None = None,
    positions: Callable[[int, int], Tensor] = _positions,
    real: Tensor | None = None,
) -> Tensor:
    d_model = embedding.shape[1]
    x = embedding[tokens] * (math.sqrt(d_model) if factor is None else factor)
    x = x + positions(tokens.shape[1], d_model)
    for state in states:
        x = _block(x, state, n_heads, tokens != padding_id if real is None else real, False)
    return x


def _encode_by_torch(
    tokens: Tensor, embedding: Tensor, states: list[_State], n_heads: int, padding_id: int
) -> Tensor:
    d_model = embedding.shape[1]
    x = F.one_hot(tokens, len(embedding)).float() @ embedding * math.sqrt(d_model)
    x = x + sinusoids(tokens.shape[1], d_model)
    for state in states:
        x = _block_by_torch(x, state, n_heads, tokens != padding_id, False)
    return x


def _factor_forgotten(
    tokens: Tensor, embedding: Tensor, states: list[_State], n_heads: int, padding_id: int
) -> Tensor:
    return _encode(tokens, embedding, states, n_heads, padding_id, factor=1.0)


def _factor_on_the_sum(
    tokens: Tensor, embedding: Tensor, states: list[_State], n_heads: int, padding_id: int
) -> Tensor:
    root = math.sqrt(embedding.shape[1])
    return _encode(
        tokens,
        embedding,
        states,
        n_heads,
        padding_id,
        positions=lambda n, d: root * sinusoids(n, d),
    )


def _without_positions(
    tokens: Tensor, embedding: Tensor, states: list[_State], n_heads: int, padding_id: int
) -> Tensor:
    return _encode(
        tokens, embedding, states, n_heads, padding_id, positions=lambda n, d: torch.zeros(n, d)
    )


def _padding_read(
    tokens: Tensor, embedding: Tensor, states: list[_State], n_heads: int, padding_id: int
) -> Tensor:
    everything = torch.ones_like(tokens, dtype=torch.bool)
    return _encode(tokens, embedding, states, n_heads, padding_id, real=everything)


def _first_state(
    tokens: Tensor, embedding: Tensor, states: list[_State], n_heads: int, padding_id: int
) -> Tensor:
    return _encode(tokens, embedding, states[:1] * len(states), n_heads, padding_id)


_G = torch.Generator().manual_seed(5)
WIDE, NARROW = random_state(12, 3, seed=1), random_state(8, 2, seed=2)
X, SMALL = torch.randn(3, 5, 12, generator=_G), torch.randn(2, 6, 8, generator=_G)
MASK = torch.arange(5) < torch.tensor([5, 3, 1])[:, None]
SMALL_MASK = torch.arange(6) < torch.tensor([4, 6])[:, None]
EMBEDDING = torch.randn(9, 8, generator=_G) / math.sqrt(8)
TOKENS = torch.tensor([[3, 4, 8, 5, 4], [7, 6, 0, 0, 0]])

EXERCISES = (
    Exercise(
        name="attention-from-a-state",
        judge=_OnRealTokens(
            _attend,
            (X, WIDE, 3, MASK),
            (SMALL, NARROW, 2, SMALL_MASK),
            real=lambda x, state, n_heads, key_mask: key_mask,
        ),
        right=(_attend, _attend_head_by_head, _attend_by_torch),
        mistakes={
            "this is one head of the whole width": _one_head,
            "the scores are not divided by √d_k": _not_scaled,
            "the scores are divided by √d_model: a head has d_k = d_model / n_heads": (
                _scaled_by_width
            ),
            "padding is read: hide it as a key": _nothing_hidden,
            "the heads are cut by a reshape alone: (batch, n, heads, d_k), then transpose": (
                _without_transpose
            ),
            "nn.Linear stores its matrix transposed: x @ W.T": _not_transposed,
        },
    ),
    Exercise(
        name="block-from-a-state",
        judge=_OnRealTokens(
            _block,
            (X, WIDE, 3, MASK, False),
            (X, WIDE, 3, MASK, True),
            (SMALL, NARROW, 2, SMALL_MASK, False),
            real=lambda x, state, n_heads, key_mask, norm_first: key_mask,
        ),
        right=(_block, _block_by_torch),
        mistakes={
            "the two orders are exchanged: norm_first is pre-norm": _other_order,
            "this is post-norm always: with norm_first the sublayer gets normalised vectors": (
                _always_post
            ),
            "the residual connections are missing": _no_residual,
            "the variance is divided by d − 1: layer normalisation divides by d": _with_unbiased,
            "the ReLU between the two linear maps is missing": _without_relu,
        },
    ),
    Exercise(
        name="encoder-from-states",
        judge=_OnRealTokens(
            _encode,
            (TOKENS, EMBEDDING, [NARROW, random_state(8, 2, seed=3)], 2, 0),
            (TOKENS.flip(1), EMBEDDING, [NARROW], 2, 4),
            real=lambda tokens, embedding, states, n_heads, padding_id: tokens != padding_id,
        ),
        right=(_encode, _encode_by_torch),
        mistakes={
            "the embeddings are not multiplied by √d_model": _factor_forgotten,
            "the factor √d_model belongs to the embeddings alone, not to the positions": (
                _factor_on_the_sum
            ),
            "the positions are missing": _without_positions,
            "padding is read: tokens equal to padding_id are hidden from all": _padding_read,
            "every layer has a state of its own": _first_state,
        },
    ),
)

"""Capstone of part 5, Looking further: a model of the Llama kind, read from published names."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib.course.exercises import Exercise, NotYetError, same_function

_State = Mapping[str, Tensor]
_Config = Mapping[str, Any]


def _gated(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return (F.silu(x @ gate.T) * (x @ up.T)) @ down.T


def _gated_by_hand(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    opened = F.linear(x, gate)
    opened = opened / (1 + torch.exp(-opened))
    return F.linear(opened * F.linear(x, up), down)


def _exchanged(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return _gated(x, up, gate, down)


def _by_sigmoid(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return (torch.sigmoid(x @ gate.T) * (x @ up.T)) @ down.T


def _no_gate(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return F.silu(x @ up.T) @ down.T


def _added(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return (F.silu(x @ gate.T) + x @ up.T) @ down.T


def _halves(x: Tensor) -> Tensor:
    """Turn the pairs (i, i + d/2) of vectors (..., n, d) by their places' angles."""
    n, d = x.shape[-2:]
    angles = torch.arange(n)[:, None] / 10_000 ** (torch.arange(0, d, 2) / d)
    first, second = x.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def _neighbours(x: Tensor) -> Tensor:
    """Turn the pairs (2i, 2i + 1) instead."""
    n, d = x.shape[-2:]
    angles = torch.arange(n)[:, None] / 10_000 ** (torch.arange(0, d, 2) / d)
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, odd * cos + even * sin], dim=-1).flatten(-2)


def _backwards(x: Tensor) -> Tensor:
    d = x.shape[-1]
    return torch.cat([x[..., d // 2 :], x[..., : d // 2]], dim=-1)


def _attend(
    x: Tensor,
    state: _State,
    n_heads: int,
    n_shared: int,
    turn: Callable[[Tensor], Tensor] = _halves,
    turn_values: Callable[[Tensor], Tensor] = lambda value: value,
    causal: bool = True,
    tile: bool = False,
) -> Tensor:
    batch, n, d_model = x.shape
    d_k = d_model // n_heads
    query, key, value = (
        (x @ state[f"{name}_proj.weight"].T).reshape(batch, n, heads, d_k).transpose(1, 2)
        for name, heads in (("q", n_heads), ("k", n_shared), ("v", n_shared))
    )
    group = n_heads // n_shared
    key, value = (
        part.repeat(1, group, 1, 1) if tile else part.repeat_interleave(group, dim=1)
        for part in (turn(key), turn_values(value))
    )
    scores = turn(query) @ key.mT / d_k**0.5
    if causal:
        scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
    heads = (scores.softmax(dim=-1) @ value).transpose(1, 2).reshape(batch, n, d_model)
    return heads @ state["o_proj.weight"].T


def _attend_by_torch(x: Tensor, state: _State, n_heads: int, n_shared: int) -> Tensor:
    """With complex numbers for the turning and PyTorch's kernel for the rest."""
    n, d_k = x.shape[1], x.shape[-1] // n_heads
    frequencies = 10_000 ** (-torch.arange(0, d_k, 2) / d_k)
    turns = torch.polar(torch.ones(n, d_k // 2), torch.outer(torch.arange(n) * 1.0, frequencies))

    def turned(heads: Tensor) -> Tensor:
        result = torch.complex(*heads.chunk(2, dim=-1)) * turns
        return torch.cat([result.real, result.imag], dim=-1)

    query, key, value = (
        torch.stack(F.linear(x, state[f"{name}_proj.weight"]).chunk(heads, dim=-1), dim=1)
        for name, heads in (("q", n_heads), ("k", n_shared), ("v", n_shared))
    )
    output = F.scaled_dot_product_attention(
        turned(query), turned(key), value, is_causal=True, enable_gqa=n_heads != n_shared
    )
    return F.linear(torch.cat(list(output.unbind(1)), dim=-1), state["o_proj.weight"])


def _with_neighbours(x: Tensor, state: _State, n_heads: int, n_shared: int) -> Tensor:
    return _attend(x, state, n_heads, n_shared, turn=_neighbours)


def _not_turned(x: Tensor, state: _State, n_heads: int, n_shared: int) -> Tensor:
    return _attend(x, state, n_heads, n_shared, turn=lambda heads: heads)


def _values_turned(x: Tensor, state: _State, n_heads: int, n_shared: int) -> Tensor:
    return _attend(x, state, n_heads, n_shared, turn_values=_halves)


def _sees_all(x: Tensor, state: _State, n_heads: int, n_shared: int) -> Tensor:
    return _attend(x, state, n_heads, n_shared, causal=False)


def _tiled(x: Tensor, state: _State, n_heads: int, n_shared: int) -> Tensor:
    return _attend(x, state, n_heads, n_shared, tile=True)


def _rms(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt() * gain


def _layer_norm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return F.layer_norm(x, gain.shape, gain, eps=eps)


def _part(state: _State, prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


def _logits(
    config: _Config,
    state: _State,
    tokens: Tensor,
    norm: Callable[[Tensor, Tensor, float], Tensor] = _rms,
    post_norm: bool = False,
    final_norm: bool = True,
    tied: bool | None = None,
    factor: float = 1.0,
) -> Tensor:
    eps = config["rms_norm_eps"]
    heads = config["num_attention_heads"], config["num_key_value_heads"]
    x = state["model.embed_tokens.weight"][tokens] * factor
    for number in range(config["num_hidden_layers"]):
        layer = _part(state, f"model.layers.{number}.")
        first, second = layer["input_layernorm.weight"], layer["post_attention_layernorm.weight"]
        mlp = [layer[f"mlp.{name}_proj.weight"] for name in ("gate", "up", "down")]
        if post_norm:
            x = norm(x + _attend(x, _part(layer, "self_attn."), *heads), first, eps)
            x = norm(x + _gated(x, *mlp), second, eps)
        else:
            x = x + _attend(norm(x, first, eps), _part(layer, "self_attn."), *heads)
            x = x + _gated(norm(x, second, eps), *mlp)
    if final_norm:
        x = norm(x, state["model.norm.weight"], eps)
    tied = config["tie_word_embeddings"] if tied is None else tied
    return x @ state["model.embed_tokens.weight" if tied else "lm_head.weight"].T


def _linear(inputs: int, outputs: int) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=False)


class _Attention(nn.Module):
    def __init__(self, d: int, n_heads: int, n_shared: int) -> None:
        super().__init__()
        self.heads = n_heads, n_shared
        narrow = n_shared * d // n_heads
        self.q_proj, self.o_proj = _linear(d, d), _linear(d, d)
        self.k_proj, self.v_proj = _linear(d, narrow), _linear(d, narrow)

    def forward(self, x: Tensor) -> Tensor:
        return _attend_by_torch(x, self.state_dict(), *self.heads)


class _Gated(nn.Module):
    def __init__(self, d: int, wide: int) -> None:
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = (
            _linear(d, wide),
            _linear(d, wide),
            _linear(wide, d),
        )

    def forward(self, x: Tensor) -> Tensor:
        weights = (part.weight for part in (self.gate_proj, self.up_proj, self.down_proj))
        return _gated_by_hand(x, *weights)


class _Layer(nn.Module):
    def __init__(self, config: _Config) -> None:
        super().__init__()
        d, eps = config["hidden_size"], config["rms_norm_eps"]
        self.input_layernorm = nn.RMSNorm(d, eps)
        self.self_attn = _Attention(d, config["num_attention_heads"], config["num_key_value_heads"])
        self.post_attention_layernorm = nn.RMSNorm(d, eps)
        self.mlp = _Gated(d, config["intermediate_size"])

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x))
        result: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return result


class _Stack(nn.Module):
    def __init__(self, config: _Config) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config["num_hidden_layers"]))
        self.norm = nn.RMSNorm(config["hidden_size"], config["rms_norm_eps"])

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        result: Tensor = self.norm(x)
        return result


class _Llama(nn.Module):
    """The same as a module, whose parameters have the published names."""

    def __init__(self, config: _Config) -> None:
        super().__init__()
        self.model = _Stack(config)
        self.lm_head = None
        if not config["tie_word_embeddings"]:
            self.lm_head = _linear(config["hidden_size"], config["vocab_size"])

    def forward(self, tokens: Tensor) -> Tensor:
        output = self.model.embed_tokens if self.lm_head is None else self.lm_head
        return F.linear(self.model(tokens), output.weight)


def _read(config: _Config, state: _State) -> Callable[[Tensor], Tensor]:
    return lambda tokens: _logits(config, state, tokens)


def _read_module(config: _Config, state: _State) -> nn.Module:
    model = _Llama(config)
    model.load_state_dict(dict(state), strict=True)
    return model.eval()


def _reader(**options: Any) -> Callable[[_Config, _State], Callable[[Tensor], Tensor]]:
    return lambda config, state: lambda tokens: _logits(config, state, tokens, **options)


class _ReadsModels(same_function):
    """Compare what the models give that a function makes of configuration and state."""

    def __init__(self, right: Callable[[_Config, _State], Any], *cases: tuple[Any, ...]):
        super().__init__(self._applied(right), *cases, tolerance=1e-4)

    def __call__(self, answer: Any) -> str | None:
        """Say on which case the model that ``answer`` reads first differs, if on any."""
        return super().__call__(self._applied(answer) if callable(answer) else answer)

    def alike(self, answer: Any, wrong: Any) -> bool:
        """Whether both read models that give the same."""
        return super().alike(self._applied(answer), self._applied(wrong))

    @staticmethod
    def _applied(read: Callable[[_Config, _State], Any]) -> Callable[..., Any]:
        def applied(config: _Config, state: _State, tokens: Tensor) -> Any:
            model = read(config, state)
            if model is None or model is ...:
                raise NotYetError
            return model(tokens)

        return applied


def random_llama(seed: int, tied: bool) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return a configuration and random tensors, named as such models are published."""
    config = {
        "vocab_size": 13,
        "hidden_size": 16,
        "intermediate_size": 20,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": tied,
    }
    generator = torch.Generator().manual_seed(seed)
    with torch.device("meta"):
        shapes = {name: tensor.shape for name, tensor in _Llama(config).state_dict().items()}
    return config, {
        name: torch.randn(shape, generator=generator) * 0.4 + ("norm" in name)
        for name, shape in shapes.items()
    }


_G = torch.Generator().manual_seed(7)
X = torch.randn(2, 5, 16, generator=_G)
TOKENS = torch.randint(13, (2, 6), generator=_G)
ATTENTION = _part(random_llama(1, tied=False)[1], "model.layers.0.self_attn.")
GATED = tuple(torch.randn(shape, generator=_G) / 4 for shape in ((20, 16), (20, 16), (16, 20)))

EXERCISES = (
    Exercise(
        name="gated-feed-forward",
        judge=same_function(_gated, (X, *GATED)),
        right=(_gated, _gated_by_hand),
        mistakes={
            "gate and up are exchanged: the activation is taken of the gate": _exchanged,
            "the gate is x · sigmoid(x), not the sigmoid alone": _by_sigmoid,
            "the gate is missing: two products with x are multiplied": _no_gate,
            "gate and up are multiplied, not added": _added,
        },
    ),
    Exercise(
        name="llama-attention",
        judge=same_function(_attend, (X, ATTENTION, 4, 2), tolerance=1e-4),
        right=(_attend, _attend_by_torch),
        mistakes={
            "the pairs are (i, i + d_k/2), not neighbours": _with_neighbours,
            "queries and keys are not turned": _not_turned,
            "the values are turned too: only queries and keys are": _values_turned,
            "nothing is hidden: the attention is causal": _sees_all,
            "each head of keys serves neighbouring heads of queries: repeat_interleave": _tiled,
        },
    ),
    Exercise(
        name="llama-from-weights",
        judge=_ReadsModels(
            _read_module,
            (*random_llama(2, tied=False), TOKENS),
            (*random_llama(3, tied=True), TOKENS),
        ),
        right=(_read, _read_module),
        mistakes={
            "RMSNorm does not subtract the mean": _reader(norm=_layer_norm),
            "the order is pre-norm: x + f(norm(x))": _reader(post_norm=True),
            "the norm after the last layer is missing": _reader(final_norm=False),
            "one of the models is tied and has no lm_head, the other has one: ask the "
            "configuration": _reader(tied=True),
            "the embeddings are not multiplied by √d_model here": _reader(factor=4.0),
        },
    ),
)

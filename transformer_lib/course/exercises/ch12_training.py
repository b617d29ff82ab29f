"""Exercises of chapter 12, Training."""

import math

import torch
from torch import Tensor

from transformer_lib.course.exercises import Exercise, same_function
from transformer_lib.training import noam_learning_rate, pad, shift_target, smoothed_labels

SENTENCES = [[5, 6, 7], [8], [9, 4]]


def _inputs_and_labels(
    sentences: list[list[int]], start: int, end: int, *, end_fed: bool = False
) -> tuple[Tensor, Tensor]:
    last = [end] if end_fed else []
    inputs = pad([[start, *sentence, *last] for sentence in sentences])
    return inputs, pad([[*sentence, end] for sentence in sentences])


def _inputs_and_labels_row_by_row(
    sentences: list[list[int]], start: int, end: int
) -> tuple[Tensor, Tensor]:
    length = max(map(len, sentences)) + 1
    inputs = torch.zeros(len(sentences), length, dtype=torch.int64)
    labels = torch.zeros_like(inputs)
    for row, sentence in enumerate(sentences):
        n = len(sentence)
        inputs[row, 0], labels[row, n] = start, end
        inputs[row, 1 : n + 1] = labels[row, :n] = torch.tensor(sentence)
    return inputs, labels


def _shifted_after_padding(
    sentences: list[list[int]], start: int, end: int
) -> tuple[Tensor, Tensor]:
    return shift_target(pad([[start, *sentence, end] for sentence in sentences]))


def _lowest_loss(epsilon: float, V: int, spread: str) -> float:
    if spread == "all":
        others, share, right = V - 1, epsilon / V, 1 - epsilon + epsilon / V
    else:
        others, share, right = V - 2, epsilon / (V - 2), 1 - epsilon
    return -right * math.log(right) - others * share * math.log(share)


def _entropy_of_the_row(epsilon: float, V: int, spread: str) -> float:
    label, kind = torch.tensor([1]), "all" if spread == "all" else "others"
    row = smoothed_labels(label, V, smoothing=epsilon, spread=kind).double()  # type: ignore[arg-type]
    return torch.special.entr(row).sum().item()


def _combine(losses: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    weights = tokens / tokens.sum()
    return weights, (weights * losses).sum()


def _combine_by_sums(losses: Tensor, tokens: Tensor) -> tuple[list[float], float]:
    total = float(tokens.sum())
    summed = sum(loss * count for loss, count in zip(losses.tolist(), tokens.tolist(), strict=True))
    return [count / total for count in tokens.tolist()], summed / total


def _equal_shares(losses: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    weights = torch.full_like(losses, 1 / len(losses))
    return weights, (weights * losses).sum()


def _adam(
    theta: Tensor,
    g: Tensor,
    m: Tensor,
    v: Tensor,
    n: int,
    rate: float,
    beta_1: float,
    beta_2: float,
    eps: float,
    *,
    corrected: bool = True,
    outside: bool = True,
    square: bool = True,
    sign: int = -1,
    keep_corrected: bool = False,
    offset: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    m = beta_1 * m + (1 - beta_1) * g
    v = beta_2 * v + (1 - beta_2) * (g**2 if square else g.abs())
    first = m / (1 - beta_1 ** (n + offset)) if corrected else m
    second = v / (1 - beta_2 ** (n + offset)) if corrected else v
    size = second.sqrt() + eps if outside else (second + eps).sqrt()
    theta = theta + sign * rate * first / size
    return (theta, first, second) if keep_corrected else (theta, m, v)


def _adam_by_torch(
    theta: Tensor,
    g: Tensor,
    m: Tensor,
    v: Tensor,
    n: int,
    rate: float,
    beta_1: float,
    beta_2: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    parameter = theta.clone().requires_grad_()
    parameter.grad = g
    adam = torch.optim.Adam([parameter], lr=rate, betas=(beta_1, beta_2), eps=eps)
    adam.state[parameter] = {
        "step": torch.tensor(float(n - 1)),
        "exp_avg": m.clone(),
        "exp_avg_sq": v.clone(),
    }
    adam.step()
    state = adam.state[parameter]
    return parameter.detach(), state["exp_avg"], state["exp_avg_sq"]


_THETA, _G = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([0.3, -4.0, 0.02])
_M, _V = torch.tensor([0.1, -3.0, -0.01]), torch.tensor([0.2, 9.0, 0.001])
_SETTINGS = (0.1, 0.9, 0.98, 0.01)


EXERCISES = (
    Exercise(
        name="inputs-and-labels",
        judge=same_function(_inputs_and_labels, (SENTENCES, 1, 2), ([[3, 4]], 7, 8)),
        right=(_inputs_and_labels, _inputs_and_labels_row_by_row),
        mistakes={
            "the end token is fed: it is only predicted": lambda sentences, start, end: (
                _inputs_and_labels(sentences, start, end, end_fed=True)
            ),
            "shorter sentences keep their end token in the inputs: leave it out before padding": (
                _shifted_after_padding
            ),
            "inputs and labels are not shifted: the label is the token that follows": (
                lambda sentences, start, end: (
                    _inputs_and_labels(sentences, start, end)[0],
                    _inputs_and_labels(sentences, start, end)[0],
                )
            ),
            "the end token is missing in the labels: it is predicted like a word": (
                lambda sentences, start, end: (
                    _inputs_and_labels(sentences, start, end)[0],
                    pad([[*sentence, 0] for sentence in sentences]),
                )
            ),
            "the start token is missing in the inputs: nothing would go in for the first word": (
                lambda sentences, start, end: (
                    pad([[*sentence, 0] for sentence in sentences]),
                    _inputs_and_labels(sentences, start, end)[1],
                )
            ),
        },
    ),
    Exercise(
        name="lowest-smoothed-loss",
        judge=same_function(
            _lowest_loss, (0.4, 5, "all"), (0.4, 5, "others"), (0.1, 43, "all"), (0.1, 43, "others")
        ),
        right=(_lowest_loss, _entropy_of_the_row),
        mistakes={
            "0 is reached only without smoothing": lambda epsilon, V, spread: 0.0,
            "the two kinds are exchanged": lambda epsilon, V, spread: _lowest_loss(
                epsilon, V, "others" if spread == "all" else "all"
            ),
            "the tokens that share ε are missing: they have probability as well": (
                lambda epsilon, V, spread: (
                    -(right := 1 - epsilon + (epsilon / V if spread == "all" else 0))
                    * math.log(right)
                )
            ),
            "the label gets its share of ε back when it is spread over all": (
                lambda epsilon, V, spread: (
                    -(1 - epsilon) * math.log(1 - epsilon)
                    - epsilon * math.log(epsilon / (V - 1 if spread == "all" else V - 2))
                )
            ),
            "this is −ln of the label's probability: the mean over all tokens is asked for": (
                lambda epsilon, V, spread: (
                    -math.log(1 - epsilon + (epsilon / V if spread == "all" else 0))
                )
            ),
        },
    ),
    Exercise(
        name="noam-peak",
        judge=same_function(
            lambda peak, d_model, warmup: (peak * math.sqrt(d_model * warmup), peak / 2),
            (7e-4, 512, 4000),
            (2e-3, 64, 100),
        ),
        right=(
            lambda peak, d_model, warmup: (peak * math.sqrt(d_model * warmup), peak / 2),
            lambda peak, d_model, warmup: (
                (factor := peak / noam_learning_rate(warmup, d_model=d_model, warmup=warmup)),
                noam_learning_rate(4 * warmup, d_model=d_model, warmup=warmup, factor=factor),
            ),
        ),
        mistakes={
            "the factor multiplies the rate: divide the peak by the schedule's own": (
                lambda peak, d_model, warmup: (1 / (peak * math.sqrt(d_model * warmup)), peak / 2)
            ),
            "the width is missing in the factor": lambda peak, d_model, warmup: (
                peak * math.sqrt(warmup),
                peak / 2,
            ),
            "the rate falls with the root: four times as far it is half": (
                lambda peak, d_model, warmup: (peak * math.sqrt(d_model * warmup), peak / 4)
            ),
        },
    ),
    Exercise(
        name="token-weighted",
        judge=same_function(
            _combine,
            (torch.tensor([4.0, 1.0]), torch.tensor([1.0, 3.0])),
            (torch.tensor([2.0, 0.0, 3.0]), torch.tensor([10.0, 0.0, 6.0])),
        ),
        right=(_combine, _combine_by_sums),
        mistakes={
            "this is the mean of the means: a part counts by its tokens": _equal_shares,
            "the weights must be shares of all tokens, with sum 1": lambda losses, tokens: (
                tokens,
                (tokens * losses).sum() / tokens.sum(),
            ),
            "the loss is summed over the tokens: divide by their number": lambda losses, tokens: (
                tokens / tokens.sum(),
                (tokens * losses).sum(),
            ),
        },
    ),
    Exercise(
        name="adam-step",
        judge=same_function(
            _adam,
            (_THETA, _G, _M, _V, 3, *_SETTINGS),
            (_THETA, _G, torch.zeros(3), torch.zeros(3), 1, *_SETTINGS),
        ),
        right=(_adam, _adam_by_torch),
        mistakes={
            "the divisions by 1 − βⁿ are missing": lambda *a: _adam(*a, corrected=False),
            "epsilon stands inside the root: it is added to the root": lambda *a: _adam(
                *a, outside=False
            ),
            "v averages the square of the gradient": lambda *a: _adam(*a, square=False),
            "the step goes up: against the gradient is down": lambda *a: _adam(*a, sign=1),
            "m and v are returned after the division: it must not enter the next step": (
                lambda *a: _adam(*a, keep_corrected=True)
            ),
            "the power is one too high: steps count from 1": lambda *a: _adam(*a, offset=1),
        },
    ),
)

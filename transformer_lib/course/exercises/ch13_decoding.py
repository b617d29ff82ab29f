"""Exercises of chapter 13, Decoding."""

import torch
from torch import Tensor

from transformer_lib.course.exercises import Exercise, same_function

Pairs = list[tuple[float, int]]
# Totals close enough together that adding them decides, and one beam that loses all its places.
TOTALS = torch.tensor([-0.5, -0.75, -4.0])
LOGS = torch.tensor(
    [[0.5, 0.23, 0.17, 0.1], [0.04, 0.85, 0.06, 0.05], [0.25, 0.22, 0.33, 0.2]]
).log()
UNSORTED = torch.tensor([0.1, 0.4, 0.05, 0.3, 0.15])


def _penalty(length: int, alpha: float) -> float:
    return ((5 + length) / 6) ** alpha


def _best(hypotheses: Pairs, alpha: float) -> int:
    scores = [total / _penalty(n, alpha) for total, n in hypotheses]
    return scores.index(max(scores))


def _best_by_key(hypotheses: Pairs, alpha: float) -> int:
    def score(index: int) -> float:
        total, n = hypotheses[index]
        return total * (6 / (5 + n)) ** alpha

    return max(range(len(hypotheses)), key=score)


def _multiplied(hypotheses: Pairs, alpha: float) -> int:
    scores = [total * _penalty(n, alpha) for total, n in hypotheses]
    return scores.index(max(scores))


def _smallest(hypotheses: Pairs, alpha: float) -> int:
    scores = [total / _penalty(n, alpha) for total, n in hypotheses]
    return scores.index(min(scores))


def _by_probability(hypotheses: Pairs, alpha: float) -> int:
    return _best(hypotheses, 0.0)


def _by_mean(hypotheses: Pairs, alpha: float) -> int:
    scores = [total / n**alpha for total, n in hypotheses]
    return scores.index(max(scores))


def _vectors(given: int, new: int) -> tuple[int, int]:
    return given + new - 1, sum(given + step for step in range(new))


def _vectors_by_formula(given: int, new: int) -> tuple[int, int]:
    return given - 1 + new, new * given + new * (new - 1) // 2


def _last_is_fed(given: int, new: int) -> tuple[int, int]:
    return given + new, sum(given + step for step in range(new + 1))


def _start_forgotten(given: int, new: int) -> tuple[int, int]:
    return new, new * (new + 1) // 2


def _scores_counted(given: int, new: int) -> tuple[int, int]:
    whole = [given + step for step in range(new)]
    return sum(whole), sum(n * n for n in whole)


def _swapped(given: int, new: int) -> tuple[int, int]:
    return _vectors(given, new)[1], _vectors(given, new)[0]


def _always_the_end(given: int, new: int) -> tuple[int, int]:
    return given + new - 1, new * (given + new - 1)


Step = tuple[Tensor, Tensor, Tensor]


def _beam_step(totals: Tensor, log_probabilities: Tensor, k: int) -> Step:
    best, places = (totals[:, None] + log_probabilities).flatten().topk(k)
    vocabulary = log_probabilities.shape[1]
    return best, places // vocabulary, places % vocabulary


def _beam_step_by_loop(totals: Tensor, log_probabilities: Tensor, k: int) -> Step:
    candidates = [
        (totals[row].item() + value, row, token)
        for row, values in enumerate(log_probabilities.tolist())
        for token, value in enumerate(values)
    ]
    best, parents, tokens = zip(*sorted(candidates, reverse=True)[:k], strict=True)
    return torch.tensor(best), torch.tensor(parents), torch.tensor(tokens)


def _without_totals(totals: Tensor, log_probabilities: Tensor, k: int) -> Step:
    return _beam_step(torch.zeros_like(totals), log_probabilities, k)


def _multiplied_totals(totals: Tensor, log_probabilities: Tensor, k: int) -> Step:
    best, places = (totals[:, None] * log_probabilities).flatten().topk(k)
    vocabulary = log_probabilities.shape[1]
    return best, places // vocabulary, places % vocabulary


def _best_of_each(totals: Tensor, log_probabilities: Tensor, k: int) -> Step:
    best, tokens = (totals[:, None] + log_probabilities).max(dim=1)
    best, parents = best.topk(k)
    return best, parents, tokens[parents]


def _divided_by_beams(totals: Tensor, log_probabilities: Tensor, k: int) -> Step:
    best, places = (totals[:, None] + log_probabilities).flatten().topk(k)
    return best, places // len(totals), places % len(totals)


def _parents_and_tokens_swapped(totals: Tensor, log_probabilities: Tensor, k: int) -> Step:
    best, parents, tokens = _beam_step(totals, log_probabilities, k)
    return best, tokens, parents


def _top_p(probabilities: Tensor, p: float) -> Tensor:
    ranked, order = probabilities.sort(descending=True)
    kept = torch.zeros_like(probabilities)
    kept[order] = ranked * (ranked.cumsum(0) - ranked < p)
    return kept / kept.sum()


def _top_p_by_loop(probabilities: Tensor, p: float) -> Tensor:
    kept, total = torch.zeros_like(probabilities), 0.0
    for token in probabilities.argsort(descending=True).tolist():
        if total < p:
            kept[token] = probabilities[token]
            total += probabilities[token].item()
    return kept / total


def _short_of_p(probabilities: Tensor, p: float) -> Tensor:
    ranked, order = probabilities.sort(descending=True)
    kept = torch.zeros_like(probabilities)
    kept[order] = ranked * (ranked.cumsum(0) <= p)
    return kept / kept.sum()


def _not_normalised(probabilities: Tensor, p: float) -> Tensor:
    return probabilities * (_top_p(probabilities, p) > 0)


def _left_sorted(probabilities: Tensor, p: float) -> Tensor:
    return _top_p(probabilities.sort(descending=True).values, p)


def _unsorted(probabilities: Tensor, p: float) -> Tensor:
    kept = probabilities * (probabilities.cumsum(0) - probabilities < p)
    return kept / kept.sum()


def _as_threshold(probabilities: Tensor, p: float) -> Tensor:
    kept = probabilities * (probabilities >= p)
    return kept / kept.sum()


def _may_stop(done: float, going: float, length: int, max_length: int, alpha: float) -> bool:
    return going / _penalty(max_length, alpha) <= done


def _may_stop_otherwise(
    done: float, going: float, length: int, max_length: int, alpha: float
) -> bool:
    return not going > done * _penalty(max_length, alpha)


EXERCISES = (
    Exercise(
        name="best-hypothesis",
        judge=same_function(
            _best,
            ([(-2.5, 3), (-3.0, 12)], 0.0),
            ([(-2.5, 3), (-3.0, 12)], 0.6),
            ([(-4.0, 2), (-2.0, 6), (-5.0, 30)], 1.0),
            ([(-1.0, 1), (-1.5, 3)], 0.6),
            ([(-2.0, 30), (-2.1, 2)], 1.0),
        ),
        right=(_best, _best_by_key),
        mistakes={
            "divided, not multiplied: long sentences are to lose less": _multiplied,
            "the best score is the largest, the one nearest to 0": _smallest,
            "this ranks by probability alone: divide by the length penalty": _by_probability,
            "this divides by n to the alpha: the paper's divisor is ((5 + n) / 6) to the alpha": (
                _by_mean
            ),
        },
    ),
    Exercise(
        name="vectors-with-a-cache",
        judge=same_function(_vectors, (1, 12), (1, 1), (4, 3), (6, 20)),
        right=(_vectors, _vectors_by_formula),
        mistakes={
            "the last token that is produced is never fed": _last_is_fed,
            "the given tokens are more than one: they are fed too": _start_forgotten,
            "these are the scores of the attention: vectors are asked for": _scores_counted,
            "the first number is the one with the cache": _swapped,
            "without a cache the sentence is short at first: its length grows step by step": (
                _always_the_end
            ),
        },
    ),
    Exercise(
        name="beam-step",
        judge=same_function(_beam_step, (TOTALS, LOGS, 3), (TOTALS.flip(0), LOGS.flip(0), 2)),
        right=(_beam_step, _beam_step_by_loop),
        mistakes={
            "what a sequence has cost so far counts: add its total": _without_totals,
            "logarithms are added where probabilities are multiplied": _multiplied_totals,
            "one beam may have several of the best continuations, and another none": _best_of_each,
            "a row of the flattened tensor is as long as the vocabulary, not as the beams": (
                _divided_by_beams
            ),
            "the parents come before the tokens": _parents_and_tokens_swapped,
        },
    ),
    Exercise(
        name="top-p-distribution",
        judge=same_function(
            _top_p, (UNSORTED, 0.6), (UNSORTED, 0.8), (UNSORTED, 0.45), (UNSORTED, 0.02)
        ),
        right=(_top_p, _top_p_by_loop),
        mistakes={
            "the token that reaches p is kept too; so there is always one": _short_of_p,
            "the tokens that are kept have to sum to 1 again": _not_normalised,
            "the result is in sorted order: put each probability back to its token": _left_sorted,
            "the most probable tokens come first: sort before you add up": _unsorted,
            "p is compared with a sum, not with each probability": _as_threshold,
        },
    ),
    Exercise(
        name="may-stop",
        judge=same_function(
            _may_stop,
            (-1.0, -1.2, 1, 10, 1.0),
            (-1.0, -1.2, 1, 10, 0.0),
            (-1.0, -3.0, 1, 10, 1.0),
            (-1.0, -0.8, 1, 10, 1.0),
            (-0.5, -1.6, 7, 12, 0.6),
            (-1.5, -1.0, 2, 4, 0.6),
            (-0.6, -1.3, 9, 10, 1.0),
        ),
        right=(_may_stop, _may_stop_otherwise),
        mistakes={
            "with the penalty of the present length this stops too early: longer can be better": (
                lambda d, g, n, m, a: g / _penalty(n, a) <= d
            ),
            "a score and a log-probability are compared: divide first": (
                lambda d, g, n, m, a: g <= d
            ),
            "this is when it has to go on": lambda d, g, n, m, a: g / _penalty(m, a) > d,
            "the best case is the largest divisor: divide, do not multiply": (
                lambda d, g, n, m, a: g * _penalty(m, a) <= d
            ),
        },
    ),
)

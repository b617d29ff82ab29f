"""Training: the loss of PyTorch, every token once, and runs that survive being stopped."""

import contextlib
import errno
import itertools
import json
import math
import os
import random
import subprocess
import sys
import textwrap
from dataclasses import FrozenInstanceError, asdict, replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from torch import Tensor, nn
from torch.nn import functional as F

from tests.library.tiny_runs import END, SHORT, START, TINY, some_pairs, tiny_model, tiny_trainer
from transformer_lib.checkpoints import list_checkpoints, read_log
from transformer_lib.training import (
    Batch,
    Batches,
    TokenLoss,
    Trainer,
    TrainingConfig,
    average_checkpoints,
    linear_learning_rate,
    noam_learning_rate,
    pad,
    sequence_loss,
    shift_target,
    smoothed_labels,
    training_step,
)
from transformer_lib.transformer import Transformer, TransformerConfig


def assert_same_weights(ours: nn.Module, theirs: nn.Module) -> None:
    for (name, a), (_, b) in zip(
        ours.state_dict().items(), theirs.state_dict().items(), strict=True
    ):
        assert torch.equal(a, b), name


def contents(file: Path) -> dict[str, Tensor]:
    with safe_open(file, framework="pt") as opened:
        return {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118


def assert_same_checkpoint(ours: Path, theirs: Path) -> None:
    ours, theirs = contents(ours), contents(theirs)
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert torch.equal(ours[name], theirs[name]), name


# The shift


def test_inputs_and_labels_are_shifted_by_one():
    # jadore801120/attention-is-all-you-need-pytorch#123, pytorch/tutorials#719
    inputs, labels = shift_target(torch.tensor([[START, 5, 6, END]]))
    assert inputs.tolist() == [[START, 5, 6]]
    assert labels.tolist() == [[5, 6, END]]


@given(st.integers(0, 4), st.integers(2, 9))
def test_every_label_follows_its_input(batch, length):
    target = torch.arange(batch * length).reshape(batch, length)
    inputs, labels = shift_target(target)
    assert inputs.shape == labels.shape == (batch, length - 1)
    assert torch.equal(labels, inputs + 1)


# Label smoothing


def test_the_row_of_a_smoothed_label():
    # harvardnlp/annotated-transformer#38, #39; OpenNMT/OpenNMT#570
    label = torch.tensor([2])
    others = smoothed_labels(label, 5, smoothing=0.4, spread="others")
    torch.testing.assert_close(others, torch.tensor([[0, 0.4 / 3, 0.6, 0.4 / 3, 0.4 / 3]]))
    everything = smoothed_labels(label, 5, smoothing=0.4)
    torch.testing.assert_close(everything, torch.tensor([[0.08, 0.08, 0.68, 0.08, 0.08]]))


@pytest.mark.parametrize("spread", ["all", "others"])
@pytest.mark.parametrize("labels", [[2, 1, 3], [2], [0], [0, 2, 0], []])
def test_batches_with_and_without_padding(spread, labels):
    # harvardnlp/annotated-transformer#38, #39
    labels = torch.tensor(labels, dtype=torch.int64)
    rows = smoothed_labels(labels, 5, smoothing=0.4, spread=spread)
    assert rows.shape == (len(labels), 5)
    torch.testing.assert_close(rows.sum(dim=-1), (labels != 0).float())
    loss = sequence_loss(torch.zeros(len(labels), 5), labels, smoothing=0.4, spread=spread)
    expected = math.log(5) if (labels != 0).any() else 0.0
    if spread == "others" and expected:
        expected = math.log(5)  # every token has the same probability, padding among them
    assert loss.item() == pytest.approx(expected, abs=1e-6)


def test_a_probability_of_zero_costs_nothing_where_nothing_is_expected():
    # harvardnlp/annotated-transformer#109, #115
    logits = torch.zeros(1, 5, requires_grad=True)
    impossible = logits.masked_fill(torch.arange(5) == 0, -torch.inf)
    label = torch.tensor([2])
    loss = sequence_loss(impossible, label, smoothing=0.4, spread="others")
    row = smoothed_labels(label, 5, smoothing=0.4, spread="others")
    assert loss.item() == pytest.approx(1.386294, abs=1e-6)
    assert loss.item() - torch.special.entr(row).sum().item() == pytest.approx(0.273838, abs=1e-6)
    loss.backward()
    assert logits.grad.isfinite().all()
    assert sequence_loss(impossible, label, smoothing=0.4).isinf()
    assert sequence_loss(impossible, label).isfinite()
    blocked = torch.zeros(1, 5).masked_fill(torch.arange(5) == 3, -torch.inf)
    assert sequence_loss(blocked, label, smoothing=0.4, spread="others").isinf()


@given(
    st.integers(3, 9),
    st.floats(0, 1),
    st.sampled_from(["all", "others"]),
    st.integers(0, 2),
    st.integers(0, 1000),
)
def test_the_loss_is_the_cross_entropy_with_the_rows(size, smoothing, spread, padding_id, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(2, 4, size, generator=generator, dtype=torch.float64)
    labels = torch.randint(size, (2, 4), generator=generator)
    options = {"smoothing": smoothing, "spread": spread, "padding_id": padding_id}
    rows = smoothed_labels(labels, size, **options)
    torch.testing.assert_close(rows.sum(dim=-1), (labels != padding_id).to(rows.dtype))
    assert rows.ge(0).all()
    if spread == "others":
        assert rows[..., padding_id].eq(0).all()
    total = -(rows * logits.log_softmax(dim=-1)).sum()
    summed = sequence_loss(logits, labels, **options, reduction="sum")
    torch.testing.assert_close(summed, total, atol=1e-5, rtol=1e-5)
    count = (labels != padding_id).sum().clamp(min=1)
    torch.testing.assert_close(sequence_loss(logits, labels, **options), summed / count)
    entropy = torch.special.entr(rows.double()).sum()
    assert summed >= entropy - 1e-5 * count  # no model pays less


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4, 1.0])
@pytest.mark.parametrize("padding_id", [0, 3, -100])
def test_loss_and_gradient_are_those_of_torch(smoothing, padding_id):
    generator = torch.Generator().manual_seed(1)
    ours = torch.randn(3, 7, 11, generator=generator, dtype=torch.float64).requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    labels = torch.randint(11, (3, 7), generator=generator)
    loss = sequence_loss(ours, labels, smoothing=smoothing, padding_id=padding_id)
    expected = F.cross_entropy(
        theirs.flatten(0, 1), labels.flatten(), label_smoothing=smoothing, ignore_index=padding_id
    )
    torch.testing.assert_close(loss, expected)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_without_smoothing_the_two_kinds_are_one():
    logits, labels = torch.randn(5, 7), torch.tensor([0, 1, 2, 3, 4])
    torch.testing.assert_close(
        sequence_loss(logits, labels), sequence_loss(logits, labels, spread="others")
    )


@pytest.mark.parametrize("spread", ["all", "others"])
def test_gradcheck_of_the_loss(spread):
    logits = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([3, 0, 5, 1])
    assert torch.autograd.gradcheck(
        lambda z: sequence_loss(z, labels, smoothing=0.3, spread=spread), logits
    )


@pytest.mark.slow
@pytest.mark.parametrize("spread", ["all", "others"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_float_dtype(spread, dtype):
    logits = torch.randn(6, 9, generator=torch.Generator().manual_seed(0)).to(dtype)
    labels = torch.tensor([1, 2, 3, 0, 5, 8])
    loss = sequence_loss(logits, labels, smoothing=0.1, spread=spread)
    exact = sequence_loss(logits.double(), labels, smoothing=0.1, spread=spread)
    assert loss.dtype == dtype
    assert loss.item() == pytest.approx(exact.item(), rel=8 * torch.finfo(dtype).eps)


def test_the_end_counts_and_padding_does_not():
    # chenjunyi1999/Translator-Transformer#1
    labels = torch.tensor([[7, END, 0, 0]])
    for spread in ("all", "others"):
        logits = torch.randn(1, 4, 12, requires_grad=True)
        summed = sequence_loss(logits, labels, smoothing=0.1, spread=spread, reduction="sum")
        mean = sequence_loss(logits, labels, smoothing=0.1, spread=spread)
        assert summed.item() == pytest.approx(2 * mean.item())
        (grad,) = torch.autograd.grad(mean, logits)
        moved = grad.abs().sum(dim=-1)[0]
        assert moved[0] > 0.01
        assert moved[1] > 0.01
        assert moved[2:].eq(0).all()


def test_nan_spreads_unless_it_stands_at_padding():
    logits = torch.zeros(3, 5)
    logits[0] = torch.nan
    for spread in ("all", "others"):
        for smoothing in (0.0, 0.1):
            options = {"smoothing": smoothing, "spread": spread}
            assert sequence_loss(logits, torch.tensor([1, 2, 3]), **options).isnan()
            at_padding = sequence_loss(logits, torch.tensor([0, 2, 3]), **options)
            assert at_padding.item() == pytest.approx(math.log(5))


@pytest.mark.parametrize("vocabulary", [5972, 100])
def test_the_floor_under_a_second_softmax(vocabulary):
    certain = F.one_hot(torch.tensor([3]), vocabulary).float()
    loss = sequence_loss(certain, torch.tensor([3])).item()
    assert loss == pytest.approx(math.log(vocabulary - 1 + math.e) - 1, abs=1e-4)
    if vocabulary == 5972:
        assert round(loss, 3) == 7.695


# Rates


def test_the_papers_rate():
    # tugstugi/pytorch-saltnet#7, google-research/bert#1293
    rates = [noam_learning_rate(n, d_model=512, warmup=4000) for n in (1, 2, 4000, 4001)]
    expected = [1.746928e-07, 3.493856e-07, 6.987712e-04, 6.986839e-04]
    assert rates == pytest.approx(expected, rel=1e-6)
    small = [noam_learning_rate(n, d_model=4, warmup=2) for n in (1, 2, 3, 4)]
    assert small == pytest.approx([0.176777, 0.353553, 0.288675, 0.25], rel=1e-5)


@given(st.integers(1, 1000), st.integers(1, 1000), st.floats(0.1, 10))
def test_the_papers_rate_peaks_at_the_end_of_warm_up(d_model, warmup, factor):
    def rate(n):
        return noam_learning_rate(n, d_model=d_model, warmup=warmup, factor=factor)

    assert rate(warmup) == pytest.approx(factor / math.sqrt(d_model * warmup))
    assert rate(warmup + 1) < rate(warmup)
    assert rate(1) == pytest.approx(rate(warmup) / warmup)
    assert rate(4 * warmup) == pytest.approx(rate(warmup) / 2)


@given(st.integers(1, 50), st.integers(0, 50))
def test_the_linear_learning_rate(warmup, more):
    steps = warmup + more
    rates = [
        linear_learning_rate(n, steps=steps, peak=2.0, warmup=warmup) for n in range(1, steps + 2)
    ]
    assert rates[0] == pytest.approx(2 / warmup)
    assert max(rates) == rates[warmup - 1] == pytest.approx(2.0)
    assert rates[-1] == 0
    assert min(rates[:-1]) > 0
    falls = [b - a for a, b in itertools.pairwise(rates[warmup - 1 :])]
    assert falls == pytest.approx([-2 / (more + 1)] * (more + 1))


def test_the_rates_that_a_run_uses():
    config = replace(SHORT, warmup=4, learning_rate=0.5)
    log = tiny_trainer(config=config).train()
    assert [line["learning_rate"] for line in log] == [
        noam_learning_rate(n, d_model=8, warmup=4, factor=0.5) for n in range(1, 7)
    ]
    config = replace(SHORT, schedule="linear", warmup=2, learning_rate=0.01)
    log = tiny_trainer(config=config).train()
    assert [line["learning_rate"] for line in log] == [
        linear_learning_rate(n, steps=6, peak=0.01, warmup=2) for n in range(1, 7)
    ]


def test_the_defaults_are_the_papers():
    paper = TrainingConfig()
    assert (paper.warmup, paper.betas, paper.eps, paper.smoothing) == (4000, (0.9, 0.98), 1e-9, 0.1)
    assert (paper.steps, paper.schedule, paper.learning_rate) == (100_000, "noam", 1.0)
    assert (paper.clip, paper.weight_decay, paper.accumulate) == (None, 0.0, 1)
    options = tiny_trainer(config=paper).optimizer.defaults
    assert (options["betas"], options["eps"], options["weight_decay"]) == ((0.9, 0.98), 1e-9, 0.0)
    with pytest.raises(FrozenInstanceError):
        paper.learning_rate = 2.0


# Batches


SENTENCE = st.lists(st.integers(1, 9), min_size=1, max_size=9)
PAIRS = st.lists(
    st.tuples(SENTENCE, st.lists(st.integers(1, 9), min_size=2, max_size=9)),
    min_size=1,
    max_size=30,
)


@given(PAIRS, st.integers(1, 60), st.integers(0, 5), st.integers(0, 5))
def test_an_epoch_has_every_pair_once_in_batches_that_fit(pairs, size, seed, number):
    batches = Batches(pairs, tokens_per_batch=size, seed=seed)
    epoch = batches.epoch(number)
    assert sorted(index for group in epoch for index in group) == list(range(len(pairs)))
    for group in epoch:
        batch = batches.batch(group)
        largest = max(batch.source.numel(), batch.target.numel())
        assert largest <= size or len(group) == 1
        for row, index in enumerate(group):
            source, target = pairs[index]
            assert batch.source[row, : len(source)].tolist() == source
            assert batch.target[row, : len(target)].tolist() == target
            assert batch.source[row, len(source) :].eq(0).all()
            assert batch.target[row, len(target) :].eq(0).all()
    assert epoch == Batches(pairs, tokens_per_batch=size, seed=seed).epoch(number)


@given(PAIRS, st.integers(1, 40), st.integers(0, 40))
def test_a_batch_is_the_same_whenever_it_is_asked_for(pairs, size, number):
    batches = Batches(pairs, tokens_per_batch=size, seed=3)
    ahead = list(itertools.islice(batches, number + 2))
    for one, other in ((number, ahead[number]), (0, ahead[0]), (number + 1, ahead[-1])):
        assert torch.equal(batches[one].source, other.source)
        assert torch.equal(batches[one].target, other.target)
    epoch, place = divmod(number, batches.per_epoch)
    assert torch.equal(batches[number].source, batches.batch(batches.epoch(epoch)[place]).source)
    assert len(batches.epoch(epoch)) == batches.per_epoch


def test_every_epoch_has_another_order_and_so_has_every_seed():
    pairs = some_pairs(200)
    batches = Batches(pairs, tokens_per_batch=40)
    assert batches.epoch(0) != batches.epoch(1)
    assert batches.epoch(0) != Batches(pairs, tokens_per_batch=40, seed=1).epoch(0)
    together = [set(map(frozenset, batches.epoch(number))) for number in (0, 1)]
    assert together[0] != together[1]  # not only the batches' order


def test_batches_are_of_like_length_and_come_in_no_order_of_length():
    batches = Batches(some_pairs(400), tokens_per_batch=60)
    shapes = [batches.batch(group).target.shape for group in batches.epoch(0)]
    pairs = batches.pairs
    spread = [
        max(len(pairs[i][1]) for i in group) - min(len(pairs[i][1]) for i in group)
        for group in batches.epoch(0)
    ]
    assert sum(difference > 0 for difference in spread) <= 8
    lengths = [length for _, length in shapes]
    assert lengths not in (sorted(lengths), sorted(lengths, reverse=True))


@pytest.mark.slow
def test_the_order_does_not_depend_on_the_hash_seed():
    code = """
    from transformer_lib.training import Batches
    pairs = [([3] * (1 + i % 5), [1] * (2 + i % 7)) for i in range(60)]
    print(Batches(pairs, tokens_per_batch=30, seed=7).epoch(2))
    """
    orders = {run(code, PYTHONHASHSEED=seed) for seed in ("0", "1")}
    assert len(orders) == 1
    pairs = [([3] * (1 + i % 5), [1] * (2 + i % 7)) for i in range(60)]
    assert json.loads(orders.pop()) == Batches(pairs, tokens_per_batch=30, seed=7).epoch(2)


def test_padding():
    assert pad([[1, 2, 3], [4]]).tolist() == [[1, 2, 3], [4, 0, 0]]
    assert pad([[1], []], padding_id=9).tolist() == [[1], [9]]
    assert pad([]).shape == (0, 0)
    assert pad([[1]]).dtype == torch.int64
    batches = Batches([([3], [1, 2]), ([3, 4], [1, 5, 2])], tokens_per_batch=9, padding_id=11)
    batch = batches.batch([0, 1])
    assert batch.source.tolist() == [[3, 11], [3, 4]]
    assert batch.target.tolist() == [[1, 2, 11], [1, 5, 2]]


# One step


class Table(nn.Module):
    """Logits that depend on the token before and nothing else: easy to compute by hand."""

    def __init__(self, vocabulary: int = 6) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = nn.Parameter(torch.randn(vocabulary, vocabulary, generator=generator))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return a row of the table for each token."""
        return self.weight[target]


NOTHING = torch.ones(1, 1, dtype=torch.int64)
PLAIN = TokenLoss(smoothing=0.0)


class Losses(nn.Module):
    """Token 1 costs as many nats as stand in ``costs`` for the token before it."""

    def __init__(self, costs: dict[int, float]) -> None:
        super().__init__()
        gaps = [math.log(math.exp(costs[i]) - 1) if i in costs else 0.0 for i in range(6)]
        self.gaps = nn.Parameter(torch.tensor(gaps))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return logits of three tokens, of which token 0 is impossible."""
        gap = self.gaps[target]
        hidden = torch.full_like(gap, -torch.inf)
        return torch.stack([hidden, torch.zeros_like(gap), gap], dim=-1)


def test_a_step_weights_batches_by_their_tokens():
    # huggingface/trl#2175, meta-pytorch/torchtune#1875, OpenNMT/OpenNMT-py#2209
    one = Batch(NOTHING, torch.tensor([[5, 1]]))  # 1 token that costs 4
    three = Batch(NOTHING, torch.tensor([[4, 1, 1, 1]]))  # tokens that cost 1 each
    model = Losses({5: 4.0, 4: 1.0, 1: 1.0})
    step = training_step(model, [one, three], torch.optim.SGD(model.parameters(), 0.1), PLAIN)
    assert step.count == 4
    assert step.loss == pytest.approx(1.75, abs=1e-5)  # not 2.5, the mean of the two means


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 100))
def test_parts_give_the_gradient_of_the_whole(sizes, seed):
    generator = torch.Generator().manual_seed(seed)
    rows = [torch.randint(1, 6, (1, 1 + size), generator=generator) for size in sizes]
    whole = torch.zeros(len(rows), 1 + max(sizes), dtype=torch.int64)
    for row, target in enumerate(rows):
        whole[row, : target.shape[1]] = target
    gradients, steps = [], []
    for batches in ([Batch(NOTHING, row) for row in rows], [Batch(NOTHING, whole)]):
        model = Table()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        steps.append(training_step(model, batches, optimizer, TokenLoss()))
        gradients.append(model.weight.grad)
    torch.testing.assert_close(gradients[0], gradients[1], atol=1e-6, rtol=1e-5)
    assert steps[0].count == steps[1].count == sum(sizes)
    assert steps[0].loss == pytest.approx(steps[1].loss, abs=1e-5)


def test_a_step_is_the_usual_lines():
    batches = Batches(some_pairs(), tokens_per_batch=40)
    batch = batches.batch(batches.epoch(0)[0])
    ours, theirs = tiny_model(dropout=0.0), tiny_model(dropout=0.0)
    loss = TokenLoss(smoothing=0.1)
    step = training_step(ours, [batch], torch.optim.SGD(ours.parameters(), lr=0.5), loss)
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.5)
    logits = theirs(batch.source, batch.target[:, :-1])
    labels = batch.target[:, 1:]
    loss = F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), label_smoothing=0.1, ignore_index=0
    )
    loss.backward()
    optimizer.step()
    assert step.loss == pytest.approx(loss.item(), rel=1e-5)
    assert step.count == (labels != 0).sum()
    norm = torch.cat([p.grad.flatten() for p in theirs.parameters()]).norm()
    assert step.gradient_norm == pytest.approx(norm.item(), rel=1e-5)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


def test_gradients_of_the_step_before_are_forgotten():
    model, batch = Table(), Batch(NOTHING, torch.tensor([[1, 3, 2]]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    first = training_step(model, [batch], optimizer, PLAIN)
    assert training_step(model, [batch], optimizer, PLAIN) == first


@pytest.mark.parametrize("clip", [0.01, 0.1, 1000.0])
def test_clipping_keeps_the_direction_and_shortens(clip):
    batch = Batch(NOTHING, torch.tensor([[1, 3, 2], [4, 5, 2]]))
    free, clipped = Table(), Table()
    whole = training_step(free, [batch], torch.optim.SGD(free.parameters(), lr=1.0), PLAIN)
    optimizer = torch.optim.SGD(clipped.parameters(), lr=1.0)
    step = training_step(clipped, [batch], optimizer, PLAIN, clip=clip)
    assert step.gradient_norm == pytest.approx(whole.gradient_norm)  # as it was before
    scale = min(1.0, clip / whole.gradient_norm)
    torch.testing.assert_close(clipped.weight.grad, scale * free.weight.grad, rtol=1e-4, atol=1e-7)
    before = Table().weight
    moved = (clipped.weight - before).norm().item()
    assert moved == pytest.approx(min(clip, whole.gradient_norm), rel=1e-3)


@pytest.mark.parametrize("clip", [None, 1.0])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_changes_nothing(bad, clip):
    model = tiny_model(dropout=0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    batches = Batches(some_pairs(), tokens_per_batch=40)
    batch = batches.batch([0, 1])
    training_step(model, [batch], optimizer, PLAIN)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    moments = [optimizer.state[p]["exp_avg"].clone() for p in model.parameters()]
    hook = model.generator.register_forward_hook(lambda _, __, logits: logits * bad)
    with pytest.raises(FloatingPointError, match="the gradient is not finite"):
        training_step(model, [batch], optimizer, PLAIN, clip=clip)
    hook.remove()
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    for parameter, moment in zip(model.parameters(), moments, strict=True):
        assert torch.equal(optimizer.state[parameter]["exp_avg"], moment)
        assert optimizer.state[parameter]["step"] == 1
    assert math.isfinite(training_step(model, [batch], optimizer, PLAIN).loss)


def test_bfloat16_runs_in_half_precision_with_weights_in_float32():
    seen, batches = [], Batches(some_pairs(), tokens_per_batch=40)
    losses = {}
    for precision in ("float32", "bfloat16"):
        model = tiny_model(dropout=0.0)
        model.decoder.layers[0].feed_forward.inner.register_forward_hook(
            lambda _, __, output: seen.append(output.dtype)
        )
        optimizer = torch.optim.Adam(model.parameters())
        batch = batches.batch([0, 1])
        step = training_step(model, [batch], optimizer, TokenLoss(), precision=precision)
        losses[precision] = step.loss
        assert {p.dtype for p in model.parameters()} == {torch.float32}
        assert {p.grad.dtype for p in model.parameters()} == {torch.float32}
    assert seen == [torch.float32, torch.bfloat16]
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.02)
    assert losses["bfloat16"] != losses["float32"]


# Runs


def test_adam_is_pytorchs_over_a_whole_run():
    config = replace(SHORT, clip=0.5, weight_decay=0.1, accumulate=2)
    ours = tiny_trainer(config=config, dropout=0.0)
    ours.model.double()  # Adam would make steps of what is rounding in float32
    theirs = tiny_model(dropout=0.0).double()
    optimizer = torch.optim.AdamW(
        theirs.parameters(), betas=(0.9, 0.98), eps=1e-9, weight_decay=0.1
    )
    stream = iter(ours.batches)
    for step in range(1, 7):
        parts = [next(stream) for _ in range(2)]
        optimizer.zero_grad()
        labels = [part.target[:, 1:] for part in parts]
        tokens = sum((label != 0).sum() for label in labels)
        total = 0.0
        for part, label in zip(parts, labels, strict=True):
            logits = theirs(part.source, part.target[:, :-1])
            total = total + F.cross_entropy(
                logits.flatten(0, 1),
                label.flatten(),
                label_smoothing=0.1,
                ignore_index=0,
                reduction="sum",
            )
        (total / tokens).backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        optimizer.param_groups[0]["lr"] = 8**-0.5 * min(step**-0.5, step * 4**-1.5)
        optimizer.step()
    ours.train()
    for a, b in zip(ours.model.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-7, rtol=1e-7)


@pytest.mark.slow
def test_a_run_learns_and_logs():
    pairs = some_pairs(400)
    batches = Batches(pairs, tokens_per_batch=100)
    config = TrainingConfig(steps=60, warmup=20, log_every=25, smoothing=0.0)
    log = Trainer(tiny_model(dropout=0.0), batches, config).train()
    assert [line["step"] for line in log] == [25, 50, 60]
    assert log[-1]["loss"] < log[0]["loss"] - 0.1
    first = itertools.islice(batches, 25)
    assert log[0]["count"] == sum((batch.target[:, 1:] != 0).sum() for batch in first)
    assert all(line["seconds"] >= 0 and line["gradient_norm"] > 0 for line in log)


def test_dropout_is_on_in_training_and_the_seed_decides():
    model = tiny_model().eval()
    batches = Batches(some_pairs(), tokens_per_batch=40)
    modes = []
    model.generator.register_forward_pre_hook(lambda module, _: modes.append(module.training))
    Trainer(model, batches, SHORT).train(2)
    assert modes == [True, True]
    assert not model.training
    same, other = tiny_trainer(), tiny_trainer(config=replace(SHORT, seed=1))
    first = tiny_trainer()
    first.train()
    torch.rand(7)  # what others draw does not matter
    same.train(2)
    torch.rand(7)
    same.train()
    other.train()
    assert_same_weights(same.model, first.model)
    assert not torch.equal(same.model.generator.weight, other.model.generator.weight)


def test_the_log_is_read_back(tmp_path):
    trainer = tiny_trainer(tmp_path)
    log = trainer.train()
    assert read_log(tmp_path) == log
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"step": 7, "loss": 0.')  # cut by a kill
    assert read_log(tmp_path) == log
    assert read_log(tmp_path / "nowhere") == []


def test_no_folder_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny_trainer().train()
    assert not list(tmp_path.iterdir())


def test_updates_are_counted():
    trainer = tiny_trainer()
    assert trainer.steps_done == 0
    trainer.train(2)
    assert trainer.steps_done == 2
    trainer.train(0)
    assert trainer.steps_done == 2
    trainer.train(100)
    assert trainer.steps_done == 6  # the config's
    weights = trainer.model.generator.weight.clone()
    trainer.train()
    assert torch.equal(trainer.model.generator.weight, weights)


# Checkpoints


def test_a_checkpoint_holds_adams_state(tmp_path):
    # CodefyUI/CodefyUI#147
    trainer = tiny_trainer(tmp_path)
    trainer.train(3)
    (file,) = list_checkpoints(tmp_path)
    assert file.name == "checkpoint-00000003.safetensors"
    tensors = contents(file)
    for name, parameter in trainer.model.named_parameters():
        assert tensors[f"optimizer.exp_avg.{name}"].shape == parameter.shape
        assert tensors[f"optimizer.exp_avg_sq.{name}"].abs().sum() > 0
        assert tensors[f"optimizer.step.{name}"] == 3
    again = tiny_trainer(tmp_path, seed=1)
    assert again.resume()
    again.train(1)
    assert {state["step"].item() for state in again.optimizer.state.values()} == {4}


def test_a_checkpoint_is_tensors_and_plain_json(tmp_path):
    # dvgodoy/PyTorchStepByStep#61: nothing is pickled, so nothing can be refused or run on loading
    trainer = tiny_trainer(tmp_path)
    trainer.train(3)
    (file,) = list_checkpoints(tmp_path)
    with safe_open(file, framework="pt") as opened:
        progress = json.loads(opened.metadata()["progress"])
    assert progress["step"] == 3
    assert progress["config"] == json.loads(json.dumps(asdict(SHORT)))
    assert progress["model"] == asdict(TINY)
    assert b"pickle" not in file.read_bytes()


def test_the_latest_are_kept(tmp_path):
    tiny_trainer(tmp_path, replace(SHORT, save_every=1, keep=2)).train()
    names = [file.name for file in list_checkpoints(tmp_path)]
    assert names == ["checkpoint-00000005.safetensors", "checkpoint-00000006.safetensors"]
    assert sorted(file.name for file in tmp_path.iterdir()) == [*names, "log.jsonl", "run.lock"]


@pytest.mark.slow
def test_resuming_without_a_checkpoint_is_starting(tmp_path):
    trainer = tiny_trainer(tmp_path / "new")
    assert trainer.resume() is False
    assert trainer.steps_done == 0
    (tmp_path / "log.jsonl").write_text('{"step": 1, "loss": 3.0}\n{"upda')
    killed_early = tiny_trainer(tmp_path)
    assert killed_early.resume() is False
    log = killed_early.train()
    assert [line["step"] for line in read_log(tmp_path)] == [1, 2, 3, 4, 5, 6]
    assert read_log(tmp_path) == log


@pytest.mark.slow
@pytest.mark.parametrize("stop", [1, 2, 4, 5])
def test_stopped_anywhere_and_resumed_it_is_the_same_run(stop, tmp_path):
    config = replace(SHORT, accumulate=2)
    through = tiny_trainer(tmp_path / "through", config)
    log = through.train()
    tiny_trainer(tmp_path / "stopped", config).train(stop)
    resumed = tiny_trainer(tmp_path / "stopped", config, seed=5)
    assert resumed.resume()
    assert resumed.steps_done == stop
    torch.rand(3)  # between resuming and training
    its_log = resumed.train()
    assert_same_weights(resumed.model, through.model)
    for line, other in zip(its_log, log, strict=True):
        assert {**line, "seconds": 0} == {**other, "seconds": 0}
    last = [list_checkpoints(tmp_path / name)[-1] for name in ("through", "stopped")]
    assert_same_checkpoint(*last)


@pytest.mark.slow
def test_the_log_goes_back_with_the_checkpoint(tmp_path):
    tiny_trainer(tmp_path).train(5)
    list_checkpoints(tmp_path)[-1].unlink()  # as if the run had been killed before it was written
    trainer = tiny_trainer(tmp_path)
    trainer.resume()
    assert [line["step"] for line in read_log(tmp_path)] == [1, 2, 3]
    log = trainer.train()
    assert [line["step"] for line in read_log(tmp_path)] == [1, 2, 3, 4, 5, 6]
    assert read_log(tmp_path) == log


def test_what_may_change_may_change(tmp_path):
    tiny_trainer(tmp_path).train(3)
    config = replace(SHORT, steps=8, log_every=2, save_every=1, keep=1)
    trainer = tiny_trainer(tmp_path, config)
    assert trainer.resume()
    trainer.train()
    longer = tiny_trainer(config=replace(SHORT, steps=8))
    longer.train()
    assert_same_weights(trainer.model, longer.model)


# Other processes

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
import torch
from dataclasses import replace
from tests.library.tiny_runs import SHORT, tiny_trainer

torch.set_num_threads(1)
folder, steps, count, seed = sys.argv[1], *map(int, sys.argv[2:])
trainer = tiny_trainer(folder, replace(SHORT, steps=steps, save_every=1), seed)
print("resumes", trainer.resume(), flush=True)
trainer.train(count)
"""


def command(code: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"} | more


def run(code: str, *arguments: object, **more: str) -> str:
    done = subprocess.run(
        command(code, *arguments),
        env=environment(**more),
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def one_thread():
    """Compute with one thread, as the processes do: sums have one order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.slow
def test_resumed_in_a_new_process(tmp_path, one_thread):
    # PolymathicAI/the_well#77, YehLi/xmodaler#15
    config = replace(SHORT, save_every=1)
    log = tiny_trainer(tmp_path / "through", config).train()
    tiny_trainer(tmp_path / "stopped", config).train(3)
    assert run(SCRIPT, tmp_path / "stopped", 6, 6, 99) == "resumes True\n"
    resumed = read_log(tmp_path / "stopped")
    for name in ("step", "learning_rate", "loss"):
        assert [line[name] for line in resumed] == [line[name] for line in log]
    assert [line["learning_rate"] for line in log] == [
        noam_learning_rate(n, d_model=8, warmup=4) for n in range(1, 7)
    ]
    assert_same_checkpoint(
        *[list_checkpoints(tmp_path / name)[-1] for name in ("stopped", "through")]
    )


@pytest.mark.slow
def test_killed_at_any_moment_and_resumed_it_is_the_same_run(tmp_path, one_thread):
    chance, steps, seed = random.Random(0), 400, 0
    config = replace(SHORT, steps=steps, save_every=1)
    for attempt in range(4):
        process = subprocess.Popen(
            command(SCRIPT, tmp_path, steps, steps, attempt),
            env=environment(),
            stdout=subprocess.PIPE,
        )
        process.stdout.readline()  # it trains and saves from here on
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=chance.uniform(0, 0.3))
        process.kill()
        process.communicate()
        assert process.returncode != 0
        if not list_checkpoints(tmp_path):
            seed = attempt + 1  # the next one starts, with a model of its own
        for file in list_checkpoints(tmp_path):
            contents(file)  # whole
    reached = int(list_checkpoints(tmp_path)[-1].stem[-8:])
    assert 0 < reached < steps
    last = tiny_trainer(tmp_path, config, seed=99)
    assert last.resume()
    resumed = last.train(10)
    through = tiny_trainer(config=config, seed=seed)
    log = through.train(reached + 10)
    assert_same_weights(last.model, through.model)
    for name in ("step", "learning_rate", "loss"):
        assert [line[name] for line in resumed] == [line[name] for line in log]
    assert read_log(tmp_path) == resumed
    assert not (tmp_path / "checkpoint.part").exists()


@pytest.mark.slow
def test_the_bar_is_shown_in_a_terminal_only(capfd):
    tiny_trainer().train()
    assert capfd.readouterr().err == ""
    pty = pytest.importorskip("pty", reason="Windows has no pty")
    code = """
    from tests.library.tiny_runs import tiny_trainer
    tiny_trainer().train(3)
    tiny_trainer().train(3, progress=False)
    """
    main, terminal = pty.openpty()
    pytest.importorskip("termios").tcsetwinsize(main, (24, 100))
    process = subprocess.Popen(command(code), env=environment(), stderr=terminal)
    assert process.wait(timeout=120) == 0
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # Linux says so at the end
        while part := os.read(main, 100_000):
            shown += part
    os.close(main)
    shown = shown.decode()
    assert "3/6" in shown
    assert "loss=" in shown
    assert shown.count("0/6") == 1  # one bar, of the run that wants it


# A full disk


@pytest.mark.parametrize("room", [0, 1])  # for so many files: the first is the proof
def test_a_disk_that_fills_while_saving(room, tmp_path, monkeypatch):
    through = tiny_trainer(config=SHORT)
    through.train()
    tiny_trainer(tmp_path).train(3)
    (last,) = list_checkpoints(tmp_path)
    before = last.read_bytes()
    trainer = tiny_trainer(tmp_path)
    trainer.resume()
    written, sync = [], os.fsync

    def full(descriptor):
        assert list_checkpoints(tmp_path) == [last]  # an unfinished file has another name
        if (tmp_path / "log.jsonl.part").exists():
            return sync(descriptor)
        written.append(descriptor)
        if len(written) > room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"cannot write .*checkpoint.part: No space left on dev"):
            trainer.train()
    assert trainer.steps_done == (6 if room else 3)
    assert list_checkpoints(tmp_path) == [last]
    assert last.read_bytes() == before
    assert not (tmp_path / "checkpoint.part").exists()
    again = tiny_trainer(tmp_path, seed=4)
    assert again.resume()
    again.train()
    assert_same_weights(again.model, through.model)


@pytest.mark.slow
def test_a_file_that_may_not_grow(tmp_path):
    pytest.importorskip("resource", reason="Windows has no limits of this kind")
    tiny_trainer(tmp_path).train(3)
    (last,) = list_checkpoints(tmp_path)
    code = """
    import resource, signal, sys
    from tests.library.tiny_runs import tiny_trainer

    trainer = tiny_trainer(sys.argv[1])
    trainer.resume()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an error from the system, not a signal
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
    try:
        trainer.train()
    except OSError as error:
        print(type(error).__name__, error)
    """
    said = run(code, tmp_path)
    assert said.startswith("OSError file: cannot write ")
    assert "File too large" in said
    assert list_checkpoints(tmp_path) == [last]
    contents(last)
    again, through = tiny_trainer(tmp_path, seed=4), tiny_trainer()
    again.resume()
    again.train()
    through.train()
    assert_same_weights(again.model, through.model)


# Averages


def test_the_average_of_checkpoints(tmp_path):
    trainer = tiny_trainer(tmp_path, replace(SHORT, save_every=2))
    trainer.train()
    files = list_checkpoints(tmp_path)
    assert len(files) == 3
    states = [contents(file) for file in files]
    average = average_checkpoints(files)
    assert average.keys() == trainer.model.state_dict().keys()
    for name, tensor in average.items():
        expected = sum(state[f"model.{name}"].double() for state in states) / 3
        torch.testing.assert_close(tensor.double(), expected, atol=1e-6, rtol=1e-5)
    tiny_model().load_state_dict(average)
    last = average_checkpoints(files[-1:])
    for name, tensor in trainer.model.state_dict().items():
        assert torch.equal(last[name], tensor)


def test_a_broken_line_of_the_log_is_left_out(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"step": 1}\n{"upd{"step": 3}\n{"step": 4}\n')
    assert read_log(tmp_path) == [{"step": 1}, {"step": 4}]


def test_smoothing_everything_away_leaves_an_impossible_label_without_cost():
    logits = torch.tensor([[0.0, 0.0, -math.inf, 0.0, 0.0]])
    loss = sequence_loss(logits, torch.tensor([2]), smoothing=1.0, spread="others")
    torch.testing.assert_close(loss, torch.tensor(math.log(4)))


def test_a_target_may_be_one_token_longer_than_the_table():
    config = TransformerConfig(10, 10, 8, 2, 1, 1, 8, max_length=4)
    batches = Batches([([4, 4, 4, 2], [1, 4, 4, 4, 2])], tokens_per_batch=40)
    trainer = Trainer(Transformer(config), batches, TrainingConfig(steps=1))
    assert len(trainer.train()) == 1

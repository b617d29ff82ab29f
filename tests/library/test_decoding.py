"""Searches find what they promise, and a cache changes nothing but the time."""

import itertools
import math
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from transformer_lib import decoding
from transformer_lib.decoding import (
    CachedDecoder,
    Hypothesis,
    LayerCache,
    UncachedDecoder,
    beam_search,
    greedy,
    length_penalty,
    sample,
)
from transformer_lib.decoding_model import for_decoding
from transformer_lib.multi_head_attention import KeysValues
from transformer_lib.transformer import Transformer, TransformerConfig

PAD, START, END = 0, 1, 2
TINY = TransformerConfig(
    12,
    12,
    d_model=16,
    n_heads=2,
    n_encoder_layers=1,
    n_decoder_layers=2,
    d_ff=32,
    dropout=0.1,
    max_length=32,
)
SEARCH = {"start": START, "end": END, "max_length": 8}
RULES = SEARCH | {"forbidden": [PAD, START]}


def tiny(seed: int = 0, *, scale: float = 3.0, **options) -> Transformer:
    """Return a model with random weights that has preferences: its distributions are uneven."""
    torch.manual_seed(seed)
    model = Transformer(replace(TINY, tied="none", **options)).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter *= 1.5
    model.generator.weight.mul_(scale)
    return model


def ids(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(3, 12, shape, generator=torch.Generator().manual_seed(seed))


class Table:
    """A model given as a function from the tokens so far to the logits of the next token."""

    def __init__(self, logits, rows: int = 1):
        self.logits = logits
        self.sentences: list[tuple[int, ...]] = [()] * rows
        self.calls: list[int] = []

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.sentences)

    def advance(self, tokens: Tensor) -> Tensor:
        """Append tokens and return logits."""
        assert tokens.shape[0] == self.rows
        self.calls.append(self.rows)
        self.sentences = [
            (*sentence, *new) for sentence, new in zip(self.sentences, tokens.tolist(), strict=True)
        ]
        logits = [list(map(float, self.logits(s[1:]))) for s in self.sentences]
        return torch.tensor(logits, dtype=torch.float64).reshape(self.rows, -1)

    def select(self, rows: Tensor) -> None:
        """Go on with these rows."""
        self.sentences = [self.sentences[row] for row in rows.tolist()]


def logs(probabilities: dict[int, float], vocabulary: int) -> list[float]:
    return [
        math.log(probabilities[token]) if probabilities.get(token) else -math.inf
        for token in range(vocabulary)
    ]


def random_table(seed: int, vocabulary: int, spread: float = 2.0):
    """Return logits that depend on all tokens so far, the same whenever asked."""

    def logits(tokens: tuple[int, ...]) -> list[float]:
        chance = random.Random(f"{seed} {tokens}")
        return [chance.gauss(0, spread) for _ in range(vocabulary)]

    return logits


def same(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    """Compare results of beam searches whose numbers may differ by rounding."""
    assert [[h.tokens for h in row] for row in found] == [
        [h.tokens for h in row] for row in expected
    ]
    for ours, theirs in zip(itertools.chain(*found), itertools.chain(*expected), strict=True):
        assert ours.log_probability == pytest.approx(theirs.log_probability, abs=2e-4)
        assert ours.score == pytest.approx(theirs.score, abs=2e-4)


# The cache


@pytest.mark.slow
@pytest.mark.parametrize("kind", [CachedDecoder, UncachedDecoder])
@pytest.mark.parametrize("chunks", [(6,), (1,) * 6, (2, 3, 1), (5, 1)])
@pytest.mark.parametrize(
    "options", [{}, {"norm_first": True}, {"positions": "learned"}, {"positions": "none"}]
)
def test_tokens_in_chunks_give_the_logits_of_the_whole_model(kind, chunks, options):
    # mlfoundations/open_lm#74, mosaicml/examples#244
    model = tiny(**options)
    source, target = ids(3, 5), ids(3, 6, seed=1)
    source[1, 3:] = PAD
    whole = model(source, target)
    decoder, done = kind(model, source), 0
    for size in chunks:
        logits = decoder.advance(target[:, done : done + size])
        done += size
        torch.testing.assert_close(logits, whole[:, done - 1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", [CachedDecoder, UncachedDecoder])
def test_a_short_source_in_a_padded_batch_is_as_alone(kind, side):
    # rasbt/reasoning-from-scratch#33, unslothai/unsloth#3795: lengths 2 and 7
    model = tiny()
    two, seven = ids(1, 2), ids(1, 7, seed=1)
    padding = torch.full((1, 5), PAD)
    padded = torch.cat([two, padding] if side == "right" else [padding, two], dim=1)
    together, alone = kind(model, torch.cat([padded, seven])), kind(model, two)
    for step in range(4):
        token = ids(1, 1, seed=step)
        torch.testing.assert_close(
            together.advance(token.expand(2, 1))[:1], alone.advance(token), atol=1e-5, rtol=1e-5
        )
    rows = greedy(kind(model, torch.cat([padded, seven])), **SEARCH)
    for row, source in zip(rows, (two, seven), strict=True):
        expected = greedy(kind(model, source), **SEARCH)[0]
        assert row[: len(expected)].tolist() == expected.tolist()
        assert (row[len(expected) :] == PAD).all()


def test_what_the_mask_hides_is_hidden_whatever_its_id():
    model = tiny()
    source = ids(2, 6)
    key_mask = torch.tensor([[True] * 4 + [False] * 2, [False] * 3 + [True] * 3])
    first = CachedDecoder(model, source, key_mask=key_mask).advance(torch.full((2, 1), START))
    other = torch.where(key_mask, source, ids(2, 6, seed=5))
    second = CachedDecoder(model, other, key_mask=key_mask).advance(torch.full((2, 1), START))
    assert torch.equal(first, second)
    alone = CachedDecoder(model, source[1:, 3:]).advance(torch.tensor([[START]]))
    torch.testing.assert_close(second[1:], alone, atol=1e-5, rtol=1e-5)
    hidden_too = model(source, torch.full((2, 1), START), source_key_mask=key_mask)[:, -1]
    torch.testing.assert_close(first[0], hidden_too[0], atol=1e-5, rtol=1e-5)


def test_a_source_that_is_all_padding_is_decoded():
    model = tiny()
    source = torch.cat([ids(1, 3), torch.zeros(1, 3, dtype=torch.int64)])
    cached, uncached = (kind(model, source) for kind in (CachedDecoder, UncachedDecoder))
    assert torch.equal(greedy(cached, **SEARCH), greedy(uncached, **SEARCH))


@pytest.mark.parametrize("kind", [CachedDecoder, UncachedDecoder])
def test_rows_may_be_repeated_left_out_and_moved(kind):
    # huggingface/transformers#28357, facebookresearch/fairseq2#258
    model = tiny()
    source, target = ids(3, 5), ids(3, 4, seed=1)
    source[0, 2:] = PAD
    decoder = kind(model, source)
    decoder.advance(target[:, :2])
    rows = torch.tensor([2, 0, 2, 2])
    decoder.select(rows)
    assert decoder.rows == 4
    logits = decoder.advance(target[rows, 2:])
    expected = model(source[rows], target[rows])[:, -1]
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)
    decoder.select(torch.tensor([1]))
    last = ids(1, 1, seed=3)
    expected = model(source[:1], torch.cat([target[:1], last], dim=1))[:, -1]
    torch.testing.assert_close(decoder.advance(last), expected, atol=1e-5, rtol=1e-5)


def test_memory_follows_when_as_many_rows_remain():
    model = tiny()
    source, target = ids(2, 5), ids(2, 3, seed=1)
    decoder = CachedDecoder(model, source)
    decoder.advance(target[:, :2])
    decoder.select(torch.tensor([1, 0]))
    expected = model(source.flip(0), target.flip(0))[:, -1]
    logits = decoder.advance(target.flip(0)[:, 2:])
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)


def test_beams_of_one_sentence_change_places():
    model = tiny()
    decoder = CachedDecoder(model, ids(1, 4))
    decoder.select(torch.tensor([0, 0, 0]))
    target = ids(3, 3, seed=1)
    decoder.advance(target)
    decoder.select(torch.tensor([2, 0, 0]))
    last = ids(3, 1, seed=2)
    whole = torch.cat([target[[2, 0, 0]], last], dim=1)
    expected = model(ids(1, 4).expand(3, -1), whole)[:, -1]
    torch.testing.assert_close(decoder.advance(last), expected, atol=1e-5, rtol=1e-5)


def test_the_decoder_runs_on_new_tokens_only_and_the_encoder_once():
    model = tiny()
    lengths, encoded = [], []
    model.decoder.layers[1].register_forward_pre_hook(
        lambda layer, inputs: lengths.append(inputs[0].shape[1])
    )
    model.encoder.register_forward_pre_hook(lambda *_: encoded.append(1))
    for kind, expected in ((CachedDecoder, [1] * 5), (UncachedDecoder, [1, 2, 3, 4, 5])):
        lengths.clear(), encoded.clear()
        options = SEARCH | {"max_length": 5, "forbidden": [END]}
        assert greedy(kind(model, ids(2, 4)), **options).shape == (2, 5)
        assert lengths == expected
        assert len(encoded) == 1


models = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10_000),
        "n_decoder_layers": st.integers(0, 3),
        "norm_first": st.booleans(),
        "positions": st.sampled_from(["sinusoidal", "learned", "none"]),
    }
)


def sources(seed: int, lengths: list[int], left: bool) -> Tensor:
    """Return sources of these lengths, padded at one side."""
    rows = ids(len(lengths), max(lengths), seed=seed)
    real = torch.arange(rows.shape[1]) < torch.tensor(lengths)[:, None]
    return torch.where(real.flip(1) if left else real, rows, PAD)


@pytest.mark.slow
@settings(max_examples=30)
@given(models, st.lists(st.integers(1, 6), min_size=1, max_size=4), st.booleans())
def test_greedy_with_a_cache_is_greedy_without(options, lengths, left):
    model, source = tiny(**options), sources(options["seed"], lengths, left)
    cached, uncached = (kind(model, source) for kind in (CachedDecoder, UncachedDecoder))
    assert torch.equal(greedy(cached, **RULES), greedy(uncached, **RULES))


@pytest.mark.slow
@settings(max_examples=25)
@given(
    models,
    st.lists(st.integers(1, 6), min_size=1, max_size=3),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.6, 1.0]),
)
def test_beams_with_a_cache_are_beams_without(options, lengths, beams, alpha):
    model, source = tiny(**options), sources(options["seed"], lengths, left=False)
    search = RULES | {"beams": beams, "alpha": alpha}
    found = beam_search(CachedDecoder(model, source), **search)
    same(found, beam_search(UncachedDecoder(model, source), **search))
    # The numbers are those of the whole model, as it is trained.
    for row, hypotheses in zip(source, found, strict=True):
        for tokens, log_probability, score in hypotheses:
            logits = model(row[None], torch.tensor([[START, *tokens[:-1]]]))[0]
            loss = F.cross_entropy(logits, torch.tensor(tokens), reduction="sum").item()
            assert log_probability == pytest.approx(-loss, abs=2e-4)
            assert score == pytest.approx(log_probability / length_penalty(len(tokens), alpha))


@pytest.mark.slow
@settings(max_examples=15)
@given(models, st.lists(st.integers(1, 6), min_size=2, max_size=4), st.integers(1, 4))
def test_neighbours_in_the_batch_change_nothing(options, lengths, beams):
    # huggingface/transformers#28357: also when a neighbour ends first and leaves
    model, source = tiny(**options), sources(options["seed"], lengths, left=False)
    together = beam_search(CachedDecoder(model, source), beams=beams, **RULES)
    alone = [
        beam_search(CachedDecoder(model, row[None]), beams=beams, **RULES)[0] for row in source
    ]
    same(together, alone)
    rows = greedy(CachedDecoder(model, source), padding_id=PAD, **RULES)
    for row, one in zip(rows, source, strict=True):
        expected = greedy(CachedDecoder(model, one[None]), **RULES)[0].tolist()
        assert row.tolist() == expected + [PAD] * (rows.shape[1] - len(expected))


@pytest.mark.parametrize("given_tokens", [1, 3])
def test_a_prompt_of_several_tokens(given_tokens):
    model, source = tiny(), ids(2, 4)
    prompt = torch.cat([torch.full((2, 1), START), ids(2, given_tokens - 1, seed=1)], dim=1)
    tokens = greedy(CachedDecoder(model, source), **SEARCH | {"start": prompt, "forbidden": [END]})
    assert tokens.shape == (2, 8)
    whole = model(source, torch.cat([prompt, tokens[:, :-1]], dim=1))[:, given_tokens - 1 :]
    whole[..., END] = -math.inf
    assert torch.equal(whole.argmax(dim=-1), tokens)
    found = beam_search(
        CachedDecoder(model, source), beams=3, **SEARCH | {"start": prompt, "max_length": 4}
    )
    same(
        found,
        beam_search(
            UncachedDecoder(model, source), beams=3, **SEARCH | {"start": prompt, "max_length": 4}
        ),
    )


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_every_float_dtype(dtype):
    model, source = tiny().to(dtype), ids(3, 4)
    tokens = greedy(CachedDecoder(model, source), **RULES)
    assert torch.equal(tokens, greedy(UncachedDecoder(model, source), **RULES))
    found = beam_search(CachedDecoder(model, source), beams=3, **RULES)
    assert [len(row) for row in found] == [3, 3, 3]
    assert all(math.isfinite(h.score) for row in found for h in row)
    drawn = sample(CachedDecoder(model, source), **RULES)
    assert drawn.shape[0] == 3


def test_probabilities_of_half_precision_are_added_in_single_precision():
    logits = torch.zeros(1, 3000, dtype=torch.bfloat16)

    class Flat(Table):
        def advance(self, tokens: Tensor) -> Tensor:
            super().advance(tokens)
            return logits.expand(self.rows, -1)

    ((best, *_),) = beam_search(
        Flat(lambda tokens: [0.0]), beams=1, start=1, end=2, max_length=3, forbidden=[2]
    )
    assert best.log_probability == pytest.approx(-3 * math.log(3000), rel=1e-6)


def test_no_gradients_are_kept():
    model = tiny().requires_grad_(True)
    logits = CachedDecoder(model, ids(1, 3)).advance(torch.tensor([[START]]))
    assert not logits.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("kind", [CachedDecoder, UncachedDecoder])
def test_a_batch_of_nothing(kind):
    model, source = tiny(), torch.empty(0, 4, dtype=torch.int64)
    assert greedy(kind(model, source), **SEARCH).shape == (0, 0)
    assert sample(kind(model, source), **SEARCH).shape == (0, 0)
    assert beam_search(kind(model, source), beams=3, **SEARCH) == []


# The copy for decoding

PAPER: dict = {}
PRE_NORM = {"norm_first": True, "output_bias": True, "activation": "gelu"}
LEARNT = {"tied": "output", "positions": "learned", "embedding_norm": True, "d_ff": 12}
UNTIED = {"tied": "none", "norm_first": True, "positions": "none", "activation": "silu"}
NO_DECODER = {"final_norm": True, "output_bias": True, "n_decoder_layers": 0}


@pytest.fixture(
    params=[
        pytest.param((PAPER, "blocks"), id="paper"),
        pytest.param((PRE_NORM, "blocks"), id="pre-norm"),
        pytest.param((LEARNT, "blocks"), id="learnt"),
        pytest.param((UNTIED, "blocks"), id="untied"),
        pytest.param((NO_DECODER, "blocks"), id="no decoder"),
        pytest.param((PRE_NORM, "plain"), id="pre-norm, without oneDNN"),
        pytest.param((LEARNT, "plain"), id="learnt, without oneDNN"),
        pytest.param((PAPER, "double"), id="paper, float64"),
        pytest.param((UNTIED, "double"), id="untied, float64"),
    ]
)
def pair(request, monkeypatch):
    """Return a model that has all kinds of numbers as biases and gains, and its copy."""
    options, way = request.param
    if way == "plain":
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    torch.manual_seed(1)
    model = Transformer(replace(TINY, **options)).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter.normal_()
    model.to(torch.float64 if way == "double" else torch.float32)
    return model, for_decoding(model)


def with_padding() -> Tensor:
    source = ids(4, 6)
    source[1, 4:] = source[2, :3] = source[3] = PAD  # the last has no real token at all
    return source


def near(found: Tensor, expected: Tensor) -> None:
    tolerance = 1e-4 if expected.dtype == torch.float32 else 1e-11
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)


@pytest.mark.slow
def test_a_copy_for_decoding_computes_the_same(pair):
    model, copied = pair
    source, target = with_padding(), ids(4, 5, seed=1)
    near(copied.encode(source), model.encode(source))
    near(copied(source, target), model(source, target))
    seen = torch.rand(4, 5, generator=torch.Generator().manual_seed(0)) > 0.5
    seen[:, 0] = True
    near(copied(source, target, target_key_mask=seen), model(source, target, target_key_mask=seen))
    near(copied(source[:1, :1], target[:1, :1]), model(source[:1, :1], target[:1, :1]))
    assert copied(source[:0], target[:0]).shape == (0, 5, 12)
    assert copied(source, target[:, :0]).shape == (4, 0, 12)
    near(copied(source[:, :0], target), model(source[:, :0], target))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [CachedDecoder, UncachedDecoder])
def test_a_copy_for_decoding_is_decoded_like_the_model(pair, kind):
    model, copied = pair
    source, target = with_padding(), ids(4, 6, seed=2)
    ours, theirs = kind(copied, source), kind(model, source)
    for first, end, kept in ((0, 3, [3, 0, 1]), (3, 4, [2, 0, 0]), (4, 5, [1]), (5, 6, [0])):
        near(ours.advance(target[:, first:end]), theirs.advance(target[:, first:end]))
        rows = torch.tensor(kept)
        target = target[rows]
        ours.select(rows)
        theirs.select(rows)


@pytest.mark.slow
def test_a_copy_for_decoding_finds_the_same_sentences(pair):
    model, copied = pair
    source = with_padding()
    cached = [CachedDecoder(kind, source) for kind in (copied, model)]
    assert torch.equal(*(greedy(decoder, **RULES) for decoder in cached))
    cached = [CachedDecoder(kind, source) for kind in (copied, model)]
    same(*(beam_search(decoder, beams=3, **RULES) for decoder in cached))
    cached = [CachedDecoder(kind, source[:1]) for kind in (copied, model)]
    assert torch.equal(*(greedy(decoder, **RULES) for decoder in cached))


@pytest.mark.parametrize("tied", ["all", "output", "none"])
def test_the_model_is_left_as_it_is(tied):
    model = Transformer(replace(TINY, tied=tied))  # in training mode
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    copied = for_decoding(model)
    assert model.training
    assert not copied.training
    assert not any(parameter.requires_grad for parameter in copied.parameters())
    assert model.state_dict().keys() == before.keys()
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])
        assert tensor.is_contiguous()
    assert all(parameter.requires_grad for parameter in model.parameters())
    # Training goes on with the model and leaves the copy behind.
    source, target = ids(2, 4), ids(2, 3, seed=1)
    logits = copied(source, target)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1)
    assert torch.equal(copied(source, target), logits)


def test_a_copy_keeps_matrices_as_one_vector_reads_them(monkeypatch):
    seen = []
    model = Transformer(TINY).eval()

    def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        seen.append((tuple(weight.shape), weight.stride()))
        return x @ weight.T if bias is None else x @ weight.T + bias

    decoder = CachedDecoder(for_decoding(model), ids(1, 4))
    monkeypatch.setattr(F, "linear", linear)
    decoder.advance(torch.tensor([[START]]))
    layer = [
        ((48, 16), (1, 48)),  # queries, keys and values by one product, column by column
        ((16, 16), (1, 16)),
        ((16, 16), (1, 16)),
        ((16, 16), (1, 16)),
        ((32, 16), (1, 32)),
        ((16, 32), (32, 1)),  # more columns than rows
    ]
    assert seen == [*layer, *layer, ((12, 16), (16, 1))]


@pytest.mark.skipif(
    not torch.backends.mkldnn.is_available()
    or not hasattr(torch.ops.mkldnn, "_linear_pointwise")
    or not hasattr(torch.ops.mkldnn, "_reorder_linear_weight"),
    reason="PyTorch without these operators of oneDNN",
)
def test_several_vectors_are_multiplied_in_blocks(monkeypatch):
    copied = for_decoding(Transformer(TINY))
    monkeypatch.delattr(F, "linear")
    assert copied(ids(2, 3), ids(2, 3)).shape == (2, 3, 12)


def test_decoding_under_autocast(pair):
    # pytorch/pytorch#99012
    model, copied = pair
    source = with_padding()
    with torch.autocast("cpu", torch.bfloat16):
        for one in (model, copied):
            decoder = CachedDecoder(one, source)
            cached = [decoder.advance(torch.full((4, 1), START)) for _ in range(3)][-1]
            assert cached.shape == (4, 12)
            assert cached.isfinite().all()
            tokens = [
                greedy(kind(one, source), **RULES) for kind in (CachedDecoder, UncachedDecoder)
            ]
            assert tokens[0].shape[0] == tokens[1].shape[0] == 4
            assert beam_search(CachedDecoder(one, source), beams=2, **RULES)


@pytest.mark.without_shape_checks
def test_numbers_of_numpy_are_numbers():
    model, source = tiny(), ids(2, 4)
    plain = greedy(CachedDecoder(model, source), **SEARCH)
    options = {name: np.int64(number) for name, number in SEARCH.items()}
    assert torch.equal(greedy(CachedDecoder(model, source), **options), plain)
    same(
        beam_search(
            CachedDecoder(model, source), beams=np.int32(2), alpha=np.float32(1), **options
        ),
        beam_search(CachedDecoder(model, source), beams=2, alpha=1.0, **SEARCH),
    )


@pytest.mark.parametrize("temperature", [1e-40, 5e-324, 1e-12])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_temperature_near_zero_is_greedy(temperature, dtype):
    # vllm-project/vllm#890
    model, source = tiny().to(dtype), ids(4, 5)
    expected = greedy(CachedDecoder(model, source), **RULES)
    drawn = sample(CachedDecoder(model, source), temperature=temperature, **RULES)
    assert torch.equal(drawn, expected)


def test_a_cached_step_enters_few_functions():
    model = Transformer(TransformerConfig(50, 50, d_model=32, n_heads=4, d_ff=64)).eval()
    decoder = CachedDecoder(model, ids(2, 7))
    decoder.advance(torch.full((2, 1), START))
    root, entered = str(Path(decoding.__file__).parent), []

    def count(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(root):
            entered.append(frame.f_code.co_name)

    sys.setprofile(count)
    try:
        decoder.advance(torch.full((2, 1), 3))
    finally:
        sys.setprofile(None)
    # With the checks of shapes that this suite switches on, each is entered through another.
    assert len(entered) <= 320


def test_a_layers_cache_moves_its_memory_when_asked():
    cache = LayerCache()
    cache.select(torch.tensor([0]))  # nothing is there yet
    part = torch.arange(6.0).reshape(3, 1, 2, 1)
    cache(KeysValues(part, part))
    cache.memory = KeysValues(part, -part)
    cache.select(torch.tensor([2, 0]), memory=False)
    assert cache.memory.keys is part
    cache.select(torch.tensor([1, 1]))
    assert torch.equal(cache.memory.values, -part[[1, 1]])
    more = cache(KeysValues(part[:2], part[:2]))
    assert torch.equal(more.keys, torch.cat([part[[0, 0]], part[:2]], dim=2))


# Greedy decoding


def test_what_ends_leaves_and_what_does_not_goes_on():
    # facebookresearch/ParlAI#2058, awslabs/sockeye#233
    def logits(tokens):  # row 1 begins with 3 and ends at step 2; row 2 begins with 4 and never
        if tokens[0] == 3:
            return logs({5: 1.0} if len(tokens) == 1 else {END: 0.9, 5: 0.1}, 6)
        return logs({5: 0.9, END: 0.1}, 6)

    table = Table(logits, rows=2)
    prompt = torch.tensor([[START, 3], [START, 4]])
    tokens = greedy(table, start=prompt, end=END, max_length=6, padding_id=PAD)
    assert tokens.tolist() == [[5, END, PAD, PAD, PAD, PAD], [5] * 6]
    assert table.calls == [2, 2, 1, 1, 1, 1]
    table = Table(lambda tokens: logs({END: 0.9, 5: 0.1}, 6), rows=3)
    assert greedy(table, start=START, end=END, max_length=100).tolist() == [[END]] * 3
    assert table.calls == [3]  # and no call when all are done


@pytest.mark.parametrize("max_length", [1, 3])
def test_max_length_counts_new_tokens(max_length):
    # huggingface/transformers#9855, #22084: a model that never ends
    def chatter(tokens):
        return logs({5: 1.0}, 6)

    options = {"start": START, "end": END, "max_length": max_length}
    assert greedy(Table(chatter), **options).tolist() == [[5] * max_length]
    assert sample(Table(chatter), **options).tolist() == [[5] * max_length]
    ((found,),) = beam_search(Table(chatter), beams=1, **options)
    assert found.tokens == [5] * max_length


def test_the_end_token_counts_as_a_new_token():
    def logits(tokens):
        return logs({5: 1.0} if len(tokens) < 2 else {END: 1.0}, 6)

    options = {"start": START, "end": END}
    assert greedy(Table(logits), max_length=3, **options).tolist() == [[5, 5, END]]
    assert greedy(Table(logits), max_length=2, **options).tolist() == [[5, 5]]


def test_the_start_token_is_fed_first_and_the_end_token_never():
    fed = []

    class Listening(Table):
        def advance(self, tokens: Tensor) -> Tensor:
            fed.append(tokens.tolist())
            return super().advance(tokens)

    def logits(tokens):
        return logs({3 + len(tokens): 1.0} if len(tokens) < 2 else {END: 1.0}, 6)

    assert greedy(Listening(logits), start=START, end=END, max_length=9).tolist() == [[3, 4, END]]
    assert fed == [[[START]], [[3]], [[4]]]


def test_forbidden_tokens_and_a_minimum_length():
    def logits(tokens):
        return logs({END: 0.5, 3: 0.3, 4: 0.15, 5: 0.05}, 6)

    options = {"start": START, "end": END, "max_length": 5}
    assert greedy(Table(logits), **options).tolist() == [[END]]
    assert greedy(Table(logits), min_length=2, **options).tolist() == [[3, 3, END]]
    came = greedy(Table(logits), min_length=2, forbidden=[3], **options)
    assert came.tolist() == [[4, 4, END]]
    ((best, *_),) = beam_search(Table(logits), beams=2, min_length=2, **options)
    assert best.tokens == [3, 3, END]
    # What is added up are the model's probabilities, not those of the tokens that are allowed.
    assert best.log_probability == pytest.approx(math.log(0.3 * 0.3 * 0.5), rel=1e-6)
    drawn = sample(Table(logits, rows=200), min_length=1, forbidden=[4], **options)
    assert set(drawn[:, 0].tolist()) == {3, 5}


# Beam search


GARDEN = {
    (): {3: 0.40, 4: 0.35, 5: 0.25},
    (3,): {6: 0.34, 7: 0.33, 8: 0.33},
    (4,): {6: 0.5, 7: 0.5},
    (3, 6): {6: 1.0},
}


def garden(tokens):
    return logs(GARDEN.get(tokens, dict.fromkeys(range(3, 13), 0.1)), 13)


@pytest.mark.parametrize(
    ("beams", "expected"), [(1, 0.136), (2, 0.0175), (3, 0.136), (5, 0.136), (2000, 0.136)]
)
def test_more_beams_may_find_less(beams, expected):
    # huggingface/transformers#22442, huggingface/blog#977
    options = {"start": START, "end": END, "max_length": 3}
    ((best, *_),) = beam_search(Table(garden), beams=beams, alpha=0.0, **options)
    assert math.exp(best.log_probability) == pytest.approx(expected, rel=1e-6)
    tokens = greedy(Table(garden), **options)[0].tolist()
    assert tokens == [3, 6, 6]
    assert (best.tokens == tokens) == (expected == 0.136)


def late(tokens):
    """A ends at once, -1.0; B has -1.2 after a word, then five words of -.05, the end last."""
    if not tokens:
        rest = (1 - math.exp(-1.0) - math.exp(-1.2)) / 2
        return logs({END: math.exp(-1.0), 3: math.exp(-1.2), 10: rest, 11: rest}, 13)
    if tokens[0] == 3 and set(tokens[1:]) <= {4} and len(tokens) <= 5:
        best = END if len(tokens) == 5 else 4
        return logs({best: math.exp(-0.05), 5: 1 - math.exp(-0.05)}, 13)
    return logs(dict.fromkeys(range(3, 13), 0.1), 13)


@pytest.mark.parametrize("beams", [1, 2, 4])
def test_the_search_goes_on_while_a_longer_sequence_can_win(beams):
    # joeynmt/joeynmt#149, facebookresearch/XLM#106: score = sum / length
    def search(alpha, max_length=12):
        table = Table(late)
        ((best, *_),) = beam_search(
            table,
            beams=beams,
            start=START,
            end=END,
            max_length=max_length,
            alpha=alpha,
            penalty=lambda length, alpha: length**alpha,
        )
        return best, table.calls

    best, _ = search(alpha=1.0)
    assert best.tokens == [3, 4, 4, 4, 4, END]
    assert best.score == pytest.approx(-1.45 / 6, abs=1e-6)
    best, calls = search(alpha=0.0)
    assert best.tokens == [END]
    assert best.score == pytest.approx(-1.0, abs=1e-6)
    if beams == 1:
        assert len(calls) == 1  # here the early stop is safe
    assert search(alpha=1.0, max_length=5)[0].score == pytest.approx(-1.4 / 5, abs=1e-6)


def test_a_search_stops_as_soon_as_nothing_can_win():
    def logits(tokens):  # the end is nearly certain from the second token on
        return logs({3: 0.6, 4: 0.4} if not tokens else {END: 0.98, 3: 0.02}, 5)

    table = Table(logits)
    (found,) = beam_search(table, beams=2, start=START, end=END, max_length=400)
    assert [h.tokens for h in found] == [[3, END], [4, END]]
    assert len(table.calls) < 10


def test_beams_are_different_from_the_first_step_on():
    # OpenNMT/OpenNMT-py#1844: at step i token 47 has -.2, token 47 + i has -.1, others nothing
    def logits(tokens):
        step = len(tokens) + 1
        row = [-math.inf] * 60
        row[47], row[47 + step] = -0.2, -0.1
        return row

    table = Table(logits)
    (found,) = beam_search(table, beams=5, start=START, end=END, max_length=2, alpha=0.0)
    lost = 2 * math.log(math.exp(-0.1) + math.exp(-0.2))  # the logits are normalised
    scores = {tuple(h.tokens): h.log_probability + lost for h in found}
    assert scores == pytest.approx(
        {(48, 49): -0.2, (48, 47): -0.3, (47, 49): -0.3, (47, 47): -0.4}, abs=1e-6
    )
    assert len(found) == 4  # no duplicates, and none of probability 0 to fill the fifth place
    assert table.calls == [1, 2]  # one beam at first


@pytest.mark.parametrize("beams", [5, 50])
def test_more_beams_than_tokens(beams):  # OpenNMT/CTranslate2#290: V = 5
    options = {"start": START, "end": END, "max_length": 4}
    table = random_table(7, 5)
    (found,) = beam_search(Table(table), beams=beams, **options)
    assert len(found) == beams
    assert len({tuple(h.tokens) for h in found}) == beams
    (at_least_two,) = beam_search(Table(table), beams=beams, min_length=2, **options)
    assert all(END not in h.tokens[:2] for h in at_least_two)
    assert len(at_least_two) == beams


@pytest.mark.parametrize(("beams", "words"), [(1, 8), (4, 8), (10, 8), (11, 0), (50, 0)])
def test_an_empty_sentence_wins_only_by_its_score(beams, words):
    # OpenNMT/CTranslate2#290: .6 a word for eight words, the end at once with .022
    def logits(tokens):
        if len(tokens) == 8:
            return logs({END: 1.0}, 13)
        return logs({END: 0.022, 3: 0.6} | dict.fromkeys(range(4, 13), 0.042), 13)

    options = {"beams": beams, "start": START, "end": END, "max_length": 12}
    ((best, *_),) = beam_search(Table(logits), alpha=0.0, **options)
    assert len(best.tokens) == words + 1
    ((best, *_),) = beam_search(Table(logits), alpha=0.6, **options)
    assert len(best.tokens) == 9
    ((best, *_),) = beam_search(Table(logits), alpha=0.0, min_length=3, **options)
    assert len(best.tokens) > 3


def exhaustive(table, vocabulary: int, max_length: int, alpha: float) -> list[Hypothesis]:
    """Return every sequence there is, the best score first."""
    found = []

    def extend(tokens, total):
        following = torch.tensor(table(tuple(tokens)), dtype=torch.float64).log_softmax(dim=-1)
        for token, value in enumerate(following.tolist()):
            sequence, log_probability = [*tokens, token], total + value
            if token == END or len(sequence) == max_length:
                score = log_probability / ((5 + len(sequence)) / 6) ** alpha
                found.append(Hypothesis(sequence, log_probability, score))
            else:
                extend(sequence, log_probability)

    extend([], 0.0)
    return sorted(found, key=lambda h: -h.score)


@settings(max_examples=40)
@given(
    st.integers(0, 10_000),
    st.integers(3, 4),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.6, 1.0, 2.0]),
)
def test_enough_beams_find_the_best_of_all(seed, vocabulary, max_length, alpha):
    table = random_table(seed, vocabulary)
    everything = exhaustive(table, vocabulary, max_length, alpha)
    options = {"start": START, "end": END, "max_length": max_length, "alpha": alpha}
    (found,) = beam_search(Table(table), beams=vocabulary**max_length, **options)
    same([found], [everything])
    ((best, *_),) = beam_search(Table(table), beams=2, **options)
    assert best.score <= everything[0].score + 1e-9
    assert any(best.tokens == h.tokens for h in everything)


@given(st.integers(0, 10_000), st.integers(3, 8), st.integers(1, 6))
def test_one_beam_is_greedy(seed, vocabulary, max_length):
    table = random_table(seed, vocabulary)
    options = {"start": START, "end": END, "max_length": max_length}
    ((found,),) = beam_search(Table(table), beams=1, alpha=0.0, **options)
    tokens = greedy(Table(table), **options)[0].tolist()
    assert found.tokens == tokens
    ((found,),) = beam_search(Table(table), beams=1, alpha=0.8, **options)
    if found.tokens != tokens:  # gone on after the first end, for something better
        total = sum(
            torch.tensor(table(tuple(tokens[:t]))).log_softmax(dim=-1)[token].item()
            for t, token in enumerate(tokens)
        )
        assert found.score > total / length_penalty(len(tokens), 0.8)
        assert len(found.tokens) > len(tokens)


@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from([0.0, 0.6, 1.5]))
def test_results_are_sorted_distinct_and_whole(seed, beams, alpha):
    table = random_table(seed, 6)
    (found,) = beam_search(
        Table(table), beams=beams, start=START, end=END, max_length=5, alpha=alpha
    )
    assert 1 <= len(found) <= beams
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    assert len({tuple(h.tokens) for h in found}) == len(found)
    for h in found:
        assert END not in h.tokens[:-1]
        assert h.tokens[-1] == END or len(h.tokens) == 5


def test_impossible_rows_have_no_results():
    (found,) = beam_search(
        Table(lambda tokens: logs({END: 1.0}, 5)),
        beams=3,
        start=START,
        end=END,
        max_length=4,
        min_length=1,
    )
    assert found == []


def test_the_length_penalty_of_the_paper():
    # Wu et al. (2016), equation 14
    assert length_penalty(1, 0.6) == 1
    assert length_penalty(7, 1.0) == 2
    assert length_penalty(19, 0.5) == 2
    assert length_penalty(13, 0.0) == 1
    assert length_penalty(31, 0.6) == pytest.approx(6**0.6)


# Sampling


SIX = [0.40, 0.25, 0.15, 0.10, 0.06, 0.04]


@pytest.mark.parametrize(
    ("options", "weights"),
    [
        ({}, SIX),
        ({"temperature": 0.5}, [p**2 for p in SIX]),
        ({"temperature": 2.0}, [p**0.5 for p in SIX]),
        ({"top_k": 1}, [1, 0, 0, 0, 0, 0]),
        ({"top_k": 3}, [*SIX[:3], 0, 0, 0]),
        ({"top_k": 6}, SIX),
        ({"top_k": 1000}, SIX),
        ({"top_p": 1e-9}, [1, 0, 0, 0, 0, 0]),
        ({"top_p": 0.39}, [1, 0, 0, 0, 0, 0]),
        ({"top_p": 0.5}, [*SIX[:2], 0, 0, 0, 0]),
        ({"top_p": 0.7}, [*SIX[:3], 0, 0, 0]),
        ({"top_p": 1.0}, SIX),
        ({"top_p": 0.7, "top_k": 2}, [*SIX[:2], 0, 0, 0, 0]),
        ({"top_p": 0.5, "top_k": 5}, [*SIX[:2], 0, 0, 0, 0]),
        ({"top_p": 0.5, "temperature": 3.0}, [*(p ** (1 / 3) for p in SIX[:3]), 0, 0, 0]),
        ({"forbidden": [9]}, [0, *SIX[1:]]),
    ],
)
def test_tokens_come_as_often_as_they_should(options, weights):
    order = [9, 4, END, 7, 3, 5]  # the most probable tokens are not the first
    table = Table(lambda tokens: logs(dict(zip(order, SIX, strict=True)), 10), rows=6000)
    drawn = sample(
        table,
        start=START,
        end=END,
        max_length=1,
        generator=torch.Generator().manual_seed(0),
        **options,
    )
    counts = Counter(drawn[:, 0].tolist())
    expected = {t: 6000 * w / sum(weights) for t, w in zip(order, weights, strict=True) if w}
    assert counts.keys() == expected.keys()
    chi_squared = sum((counts[t] - n) ** 2 / n for t, n in expected.items())
    assert chi_squared < 20.5  # 5 degrees of freedom: once in 1000 seeds


@pytest.mark.slow
def test_sentences_come_as_often_as_their_probability_says():
    def logits(tokens):
        return logs({3: 0.5, END: 0.5} if len(tokens) < 2 else {END: 1.0}, 5)

    drawn = sample(
        Table(logits, rows=8000),
        start=START,
        end=END,
        max_length=5,
        padding_id=PAD,
        generator=torch.Generator().manual_seed(0),
    )
    counts = Counter(map(tuple, drawn.tolist()))
    assert counts.keys() == {(END, PAD, PAD), (3, END, PAD), (3, 3, END)}
    assert counts[END, PAD, PAD] == pytest.approx(4000, abs=4 * 45)
    assert counts[3, END, PAD] == pytest.approx(2000, abs=4 * 39)


def test_a_seed_fixes_what_is_drawn():
    model, source = tiny(scale=1.0), ids(4, 5)

    def draw(seed, kind=CachedDecoder, **options):
        generator = torch.Generator().manual_seed(seed)
        return sample(kind(model, source), generator=generator, **SEARCH, **options).tolist()

    assert draw(0) == draw(0)
    assert draw(0) != draw(1)
    assert draw(3) == draw(3, UncachedDecoder)
    expected = greedy(CachedDecoder(model, source), **SEARCH).tolist()
    assert draw(0, top_k=1) == expected
    assert draw(0, temperature=1e-4) == expected


# Against Hugging Face


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    """Return a small Marian model with random weights, and ours with the same."""
    import json
    import warnings

    from safetensors.torch import load_file

    from transformer_lib.published.marian import config_from_marian, transformer_from_marian

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import transformers

        transformers.utils.logging.disable_progress_bar()
        transformers.utils.logging.set_verbosity_error()
        torch.manual_seed(0)
        config = transformers.MarianConfig(
            vocab_size=40,
            d_model=32,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=64,
            decoder_ffn_dim=64,
            activation_function="swish",
            scale_embedding=True,
            max_position_embeddings=64,
            pad_token_id=39,
            eos_token_id=0,
            decoder_start_token_id=39,
            forced_eos_token_id=None,
            tie_word_embeddings=False,
        )
        theirs = transformers.MarianMTModel(config).eval().requires_grad_(False)
    for name, parameter in theirs.named_parameters():
        if "embed_positions" not in name:
            parameter.add_(0.15 * torch.randn_like(parameter))
    theirs.final_logits_bias.normal_()
    theirs.final_logits_bias[0, 0] += 1.5  # so that a sentence ends now and then
    folder = tmp_path_factory.mktemp("marian")
    theirs.save_pretrained(folder)
    published = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    ours = Transformer(config_from_marian(published)).eval()
    ours.load_state_dict(transformer_from_marian(load_file(folder / "model.safetensors")))
    return theirs, ours


def marian_sources() -> Tensor:
    torch.manual_seed(1)
    source = torch.randint(1, 39, (6, 7))
    lengths = torch.tensor([7, 5, 6, 2, 3, 7])
    return source.masked_fill(torch.arange(7) >= lengths[:, None], 39)


MARIAN = {"start": 39, "end": 0, "max_length": 12, "forbidden": [39]}


def generate(theirs, source, **options) -> Tensor:
    return theirs.generate(
        source,
        attention_mask=(source != 39).long(),
        max_new_tokens=12,
        do_sample=False,
        bad_words_ids=[[39]],
        **options,
    )


@pytest.mark.slow
def test_greedy_gives_the_tokens_of_marian(marian):
    theirs, ours = marian
    source = marian_sources()
    expected = generate(theirs, source, num_beams=1)[:, 1:]
    tokens = greedy(CachedDecoder(ours, source), padding_id=39, **MARIAN)
    assert torch.equal(tokens, expected)
    assert tokens.unique().numel() > 5  # the sentences say something
    assert (tokens == 0).any()


@pytest.mark.slow
@pytest.mark.parametrize("beams", [2, 4])
@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.0])
def test_beams_give_the_tokens_of_marian(marian, beams, alpha):
    theirs, ours = marian
    source = marian_sources()
    expected = generate(
        theirs,
        source,
        num_beams=beams,
        num_return_sequences=beams,
        length_penalty=alpha,
        early_stopping="never",  # go on until nothing can win, as we do
        return_dict_in_generate=True,
        output_scores=True,
    )
    found = beam_search(
        CachedDecoder(ours, source),
        beams=beams,
        alpha=alpha,
        penalty=lambda length, alpha: length**alpha,
        **MARIAN,
    )
    rows = expected.sequences[:, 1:].reshape(len(source), beams, -1).tolist()
    scores = expected.sequences_scores.reshape(len(source), beams).tolist()
    for hypotheses, their_rows, their_scores in zip(found, rows, scores, strict=True):
        for h, row, score in zip(hypotheses, their_rows, their_scores, strict=True):
            assert h.tokens == row[: len(h.tokens)]
            assert set(row[len(h.tokens) :]) <= {39}
            assert h.score == pytest.approx(score, abs=1e-4)

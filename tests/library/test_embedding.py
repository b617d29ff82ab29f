"""Embedding, input layer, generator: PyTorch's numbers, and a tie that nothing takes apart."""

import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_lib.embedding import Generator, InputLayer, TokenEmbedding
from transformer_lib.positional_encoding import LearnedPositions, SinusoidalPositions, sinusoids

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
WORDS, WIDTH = 11, 8

# PyTorch's forward mode uses its own deprecated compiler inside.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is:DeprecationWarning")


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def ids(*shape: int, seed: int = 0, words: int = WORDS) -> Tensor:
    return torch.randint(words, shape, generator=torch.Generator().manual_seed(seed))


class Tied(nn.Module):
    """The smallest model with a tie: in and straight out again."""

    def __init__(self, words: int = WORDS, width: int = WIDTH, *, bias: bool = False) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(words, width)
        self.generator = Generator(width, words, bias=bias, tied=self.embedding)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits of shape (*batch, words)."""
        return self.generator(self.embedding(tokens))


def is_tied(model: Tied) -> bool:
    """Tell whether the output follows a change of the embedding, by its numbers."""
    x = random(3, WIDTH, dtype=model.embedding.weight.dtype)
    with torch.no_grad():
        before = model.generator(x)
        model.embedding.weight += 1
        moved = model.generator(x) - before
        model.embedding.weight -= 1
    expected = x.sum(dim=-1, keepdim=True).expand_as(moved)
    return model.generator.weight is model.embedding.weight and torch.allclose(
        moved, expected, atol=1e-4
    )


# The look-up


def test_every_vector_by_hand():
    embedding = TokenEmbedding(3, 4)
    with torch.no_grad():
        embedding.weight.copy_(torch.arange(12.0).view(3, 4))
    assert embedding(torch.tensor([2, 0])).tolist() == [[16, 18, 20, 22], [0, 2, 4, 6]]


@pytest.mark.parametrize("shape", [(), (5,), (2, 5), (2, 3, 4)])
@pytest.mark.parametrize("id_type", [torch.int64, torch.int32])
def test_values_and_gradients_are_those_of_torch(shape, id_type):
    tokens, grad = ids(*shape).to(id_type), random(*shape, WIDTH, seed=1)
    ours, theirs = TokenEmbedding(WORDS, WIDTH).double(), nn.Embedding(WORDS, WIDTH).double()
    with torch.no_grad():
        ours.weight.copy_(theirs.weight)
    one_hot = F.one_hot(tokens.long(), WORDS).double()
    leaf = theirs.weight.detach().clone().requires_grad_()
    values = [ours(tokens), theirs(tokens) * math.sqrt(WIDTH), one_hot @ leaf * math.sqrt(WIDTH)]
    leaves = [ours.weight, theirs.weight, leaf]
    grads = [torch.autograd.grad(v, w, grad)[0] for v, w in zip(values, leaves, strict=True)]
    for value, gradient in zip(values[1:], grads[1:], strict=True):
        torch.testing.assert_close(values[0], value)
        torch.testing.assert_close(grads[0], gradient)
    assert values[0].shape == (*shape, WIDTH)


@given(st.lists(st.integers(0, WORDS - 1), max_size=12))
def test_gradients_add_up_over_places_and_are_zero_elsewhere(words):
    tokens = torch.tensor(words, dtype=torch.long)
    embedding = TokenEmbedding(WORDS, WIDTH).double()
    embedding(tokens).sum().backward()
    times = torch.bincount(tokens, minlength=WORDS).double()
    expected = math.sqrt(WIDTH) * times[:, None].expand(WORDS, WIDTH)
    torch.testing.assert_close(embedding.weight.grad, expected)


@given(st.lists(st.integers(0, WORDS - 1), min_size=1, max_size=12), st.integers(0, 1000))
def test_a_token_has_the_same_vector_wherever_it_stands(words, seed):
    tokens, embedding = torch.tensor(words), TokenEmbedding(WORDS, WIDTH)
    order = torch.randperm(len(words), generator=torch.Generator().manual_seed(seed))
    assert torch.equal(embedding(tokens[order]), embedding(tokens)[order])
    assert torch.equal(embedding(tokens[:1]), embedding(tokens)[:1])


def test_first_and_last_id_are_accepted():
    embedding = TokenEmbedding(WORDS, WIDTH, scale=False)
    assert torch.equal(embedding(torch.tensor([0, WORDS - 1])), embedding.weight[[0, -1]])


def test_a_broken_row_spoils_its_own_places_only():
    embedding = TokenEmbedding(3, 4)
    with torch.no_grad():
        embedding.weight[1] = float("nan")
    assert embedding(torch.tensor([0, 1, 2])).isnan().any(dim=-1).tolist() == [False, True, False]


# The factor, and the start


def test_the_factor_is_the_root_of_the_width_or_one():
    tokens = ids(5)
    scaled, plain = TokenEmbedding(WORDS, 16), TokenEmbedding(WORDS, 16, scale=False)
    assert torch.equal(scaled(tokens), 4 * scaled.weight[tokens])
    assert torch.equal(plain(tokens), plain.weight[tokens])


@pytest.mark.parametrize("d_model", [64, 512])
def test_the_start_suits_input_and_output(d_model):
    torch.manual_seed(0)
    embedding = TokenEmbedding(2000, d_model)
    vectors = embedding(torch.arange(2000))
    assert abs(vectors.std().item() - 1) < 0.01
    assert abs(vectors.mean().item()) < 0.01
    x = F.layer_norm(torch.randn(200, d_model), (d_model,))
    for generator in (Generator(d_model, 2000, tied=embedding), Generator(d_model, 2000)):
        assert abs(generator(x).std().item() - 1) < 0.02


def test_words_and_positions_are_of_one_size():
    torch.manual_seed(0)
    words, places = TokenEmbedding(2000, 512)(torch.arange(2000)), sinusoids(50, 512)
    ratio = words.norm(dim=-1).mean() / places.norm(dim=-1).mean()
    assert abs(ratio.item() - math.sqrt(2)) < 0.01


def test_one_seed_is_one_start_and_two_modules_differ():
    def build(seed: int) -> list[Tensor]:
        torch.manual_seed(seed)
        return [TokenEmbedding(WORDS, WIDTH).weight, Generator(WIDTH, WORDS).weight]

    (a, b), (c, d), (e, f) = build(0), build(0), build(1)
    assert torch.equal(a, c)
    assert torch.equal(b, d)
    assert not torch.equal(a, b)
    assert not torch.equal(a, e)
    assert not torch.equal(b, f)


# The input layer


@pytest.mark.parametrize("positions", [SinusoidalPositions, LearnedPositions])
def test_input_is_token_plus_position(positions):
    place = positions(WIDTH, 20).double()
    layer, x = InputLayer(WIDTH, place), random(2, 5, WIDTH)
    torch.testing.assert_close(layer(x), x + place.table[:5].double())
    torch.testing.assert_close(layer(x, offset=7), x + place.table[7:12].double())


def test_a_sentence_in_two_parts_is_the_sentence():
    layer, x = InputLayer(WIDTH, SinusoidalPositions(WIDTH, 20)), random(2, 9, WIDTH)
    torch.testing.assert_close(torch.cat([layer(x[:, :4]), layer(x[:, 4:], offset=4)], 1), layer(x))


def test_without_anything_the_input_passes():
    x = random(2, 5, WIDTH)
    assert torch.equal(InputLayer(WIDTH)(x), x)


def test_the_norm_is_taken_of_the_sum():
    place = SinusoidalPositions(WIDTH, 20)
    layer, x = InputLayer(WIDTH, place, norm_eps=1e-3).double(), random(2, 5, WIDTH)
    expected = F.layer_norm(x + place.table[:5].double(), (WIDTH,), eps=1e-3)
    torch.testing.assert_close(layer(x), expected)
    assert [name for name, _ in layer.named_parameters()] == ["norm.weight", "norm.bias"]


def test_dropout_falls_on_the_sum_and_in_training_only():
    place = SinusoidalPositions(WIDTH, 400)
    layer, x = InputLayer(WIDTH, place, dropout=0.25), random(2, 400, WIDTH)
    sums = x + place.table.double()
    assert torch.equal(layer.eval()(x), sums)
    torch.manual_seed(0)
    dropped = layer.train()(x)
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], sums[kept] / 0.75)
    assert abs(kept.double().mean().item() - 0.75) < 0.02


def test_neighbours_and_other_positions_change_nothing():
    embedding = TokenEmbedding(WORDS, WIDTH)
    layer = InputLayer(WIDTH, SinusoidalPositions(WIDTH, 20), norm_eps=1e-5)
    tokens = ids(3, 6)
    alone = layer(embedding(tokens[1:2, :4]))
    torch.testing.assert_close(layer(embedding(tokens))[1:2, :4], alone)


# The generator


@pytest.mark.parametrize("shape", [(), (5,), (2, 5), (2, 3, 4)])
@pytest.mark.parametrize("bias", [False, True])
def test_logits_and_gradients_are_those_of_a_linear_layer(shape, bias):
    ours, theirs = Generator(WIDTH, WORDS, bias=bias), nn.Linear(WIDTH, WORDS, bias=bias)
    ours, theirs = ours.double(), theirs.double()
    with torch.no_grad():
        ours.weight.copy_(theirs.weight)
        if bias:
            assert torch.equal(ours.bias, torch.zeros(WORDS, dtype=torch.float64))
            ours.bias.copy_(theirs.bias)
    x, grad = random(*shape, WIDTH).requires_grad_(), random(*shape, WORDS, seed=1)
    results = [module(x) for module in (ours, theirs)]
    torch.testing.assert_close(*results)
    grads = [
        torch.autograd.grad(result, [x, *module.parameters()], grad)
        for result, module in zip(results, (ours, theirs), strict=True)
    ]
    by_shape = [sorted(g, key=lambda gradient: gradient.shape) for g in grads]
    for our_grad, their_grad in zip(*by_shape, strict=True):
        torch.testing.assert_close(our_grad, their_grad)


def test_logits_are_inner_products_and_no_probabilities():
    generator, x = Generator(WIDTH, WORDS).double(), random(4, WIDTH)
    expected = torch.stack([torch.stack([v.dot(row) for row in generator.weight]) for v in x])
    torch.testing.assert_close(generator(x), expected)
    assert (generator(x) < 0).any()


def test_softmax_before_the_loss_has_a_floor():
    certain = F.one_hot(torch.tensor([3]), 5972).double()
    loss = F.cross_entropy(certain, torch.tensor([3])).item()
    assert loss == pytest.approx(math.log(math.e + 5971) - 1)
    assert round(loss, 3) == 7.695


def test_what_goes_in_comes_out():
    torch.manual_seed(0)
    tokens, model = ids(8, 50, words=3000), Tied(3000, 512)
    layer = InputLayer(512, SinusoidalPositions(512))
    logits = model.generator(layer(model.embedding(tokens)))
    assert torch.equal(logits.argmax(dim=-1), tokens)


# The tie: pytorch/pytorch#188346, facebookresearch/lingua#74


@pytest.mark.parametrize("assign", [False, True])
def test_the_tie_survives_loading(assign, tmp_path):
    torch.manual_seed(0)
    source, model = Tied(bias=True), Tied(bias=True)
    save_file(source.state_dict(), tmp_path / "model.safetensors")
    model.load_state_dict(load_file(tmp_path / "model.safetensors"), assign=assign)
    assert torch.equal(model(ids(4)), source(ids(4)))
    assert is_tied(model)
    model.load_state_dict(source.state_dict(), assign=assign)
    assert is_tied(model)


def test_the_usual_tie_does_not_survive_assignment():
    """The case itself, so that the test above is known to test something."""

    class Usual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(WORDS, WIDTH)
            self.generator = nn.Linear(WIDTH, WORDS, bias=False)
            self.generator.weight = self.embedding.weight

    model = Usual()
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.load_state_dict(state)
    assert model.generator.weight is model.embedding.weight
    model.load_state_dict(state, assign=True)
    assert model.generator.weight is not model.embedding.weight


def test_weights_are_counted_and_saved_once():
    model = Tied(bias=True)
    assert list(model.state_dict()) == ["embedding.weight", "generator.bias"]
    assert [name for name, _ in model.named_parameters()] == list(model.state_dict())
    assert sum(p.numel() for p in model.parameters()) == WORDS * WIDTH + WORDS
    assert not list(Generator(WIDTH, WORDS, tied=model.embedding).parameters())
    assert list(Generator(WIDTH, WORDS).state_dict()) == ["weight"]


def test_three_places_share_one_matrix():
    shared = TokenEmbedding(WORDS, WIDTH)
    model = nn.ModuleDict(
        {"source": shared, "target": shared, "output": Generator(WIDTH, WORDS, tied=shared)}
    )
    assert sum(p.numel() for p in model.parameters()) == WORDS * WIDTH
    assert model["output"].weight is model["source"].weight is model["target"].weight


def test_a_deep_copy_keeps_the_tie_and_leaves_the_original():
    model = Tied()
    twin = copy.deepcopy(model)
    assert is_tied(twin)
    assert twin.embedding.weight is not model.embedding.weight
    assert is_tied(model)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_the_tie_survives_training(optimizer):
    torch.manual_seed(0)
    model, tokens = Tied(), ids(30)
    before = model.embedding.weight.detach().clone()
    steps = optimizer(model.parameters(), lr=0.01)
    for _ in range(3):
        steps.zero_grad()
        F.cross_entropy(model(tokens[:-1]), tokens[1:]).backward()
        steps.step()
    assert not torch.equal(model.embedding.weight, before)
    assert is_tied(model)


def test_the_tie_survives_a_new_dtype_and_a_new_parameter():
    model = Tied().double()
    assert model(ids(3)).dtype == torch.float64
    assert is_tied(model)
    model.embedding.weight = nn.Parameter(random(WORDS, WIDTH))
    assert is_tied(model)


def test_a_tied_matrix_gets_both_gradients():
    model, tokens, grad = Tied().double(), ids(6), random(6, WORDS)
    model(tokens).backward(grad)
    leaf = model.embedding.weight.detach().clone().requires_grad_()
    vectors = F.embedding(tokens, leaf) * math.sqrt(WIDTH)
    both = torch.autograd.grad(F.linear(vectors, leaf), leaf, grad)[0]
    torch.testing.assert_close(model.embedding.weight.grad, both)
    way_out = grad.T @ vectors.detach()
    way_in = torch.zeros_like(leaf).index_add(0, tokens, math.sqrt(WIDTH) * grad @ leaf)
    torch.testing.assert_close(both, way_in + way_out)


def test_every_row_of_a_tied_matrix_learns_and_of_an_untied_one_what_was_read():
    for tied in (True, False):
        embedding = TokenEmbedding(WORDS, WIDTH)
        generator = Generator(WIDTH, WORDS, tied=embedding if tied else None)
        F.cross_entropy(generator(embedding(torch.tensor([1, 4]))), torch.tensor([4, 2])).backward()
        learns = (embedding.weight.grad != 0).any(dim=-1)
        assert learns.nonzero().flatten().tolist() == (list(range(WORDS)) if tied else [1, 4])


# The contract


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_float_dtype(dtype):
    model, exact = Tied(bias=True), Tied(bias=True).double()
    exact.load_state_dict(model.state_dict())
    model = model.to(dtype)
    layer = InputLayer(WIDTH, SinusoidalPositions(WIDTH, 20), norm_eps=1e-5).to(dtype)
    tokens = ids(3, 5)
    logits = model(tokens)
    assert logits.dtype == dtype
    assert layer(model.embedding(tokens)).dtype == dtype
    tolerance = 8 * max(torch.finfo(dtype).eps, torch.finfo(torch.float32).eps)
    torch.testing.assert_close(logits.double(), exact(tokens), atol=tolerance, rtol=tolerance)
    logits.sum().backward()
    assert model.embedding.weight.grad.dtype == dtype
    assert model.embedding.weight.grad.isfinite().all()


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(0, 5), (2, 0), (0, 0)])
def test_empty_batches_and_sentences(shape):
    model, layer = Tied(), InputLayer(WIDTH, SinusoidalPositions(WIDTH, 20), norm_eps=1e-5)
    x = layer(model.embedding(torch.zeros(shape, dtype=torch.long)))
    logits = model.generator(x)
    assert x.shape == (*shape, WIDTH)
    assert logits.shape == (*shape, WORDS)
    logits.sum().backward()
    assert torch.equal(model.embedding.weight.grad, torch.zeros(WORDS, WIDTH))


def test_one_word_and_one_feature_are_enough():
    model = Tied(1, 1)
    assert model(torch.tensor([[0]])).shape == (1, 1, 1)


def test_gradients_by_finite_differences():
    tokens, layer = ids(2, 3), InputLayer(WIDTH, SinusoidalPositions(WIDTH, 9), norm_eps=1e-5)
    model, layer = Tied().double(), layer.double()

    def run(weight: Tensor) -> Tensor:
        x = torch.func.functional_call(model.embedding, {"weight": weight}, tokens)
        return F.linear(layer(x), weight)

    assert torch.autograd.gradcheck(run, random(WORDS, WIDTH).requires_grad_())

    def tied(weight: Tensor) -> Tensor:
        return torch.func.functional_call(model, {"embedding.weight": weight}, tokens)

    assert torch.autograd.gradcheck(tied, random(WORDS, WIDTH).requires_grad_())


def test_autocast_takes_vectors_of_another_dtype():
    with torch.autocast("cpu", torch.bfloat16):
        logits = Tied()(ids(3))
    assert logits.dtype == torch.bfloat16

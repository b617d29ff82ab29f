"""The softmax and its Jacobian: the same numbers as PyTorch's, and the properties derived."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from transformer_lib.softmax import softmax, softmax_jacobian, softmax_jvp

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INF, NAN = float("inf"), float("nan")

# PyTorch's forward mode uses its own deprecated compiler inside.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is:DeprecationWarning")


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def pytorch_softmax(scores: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-1)


@st.composite
def score_rows(draw):
    """Draw scores (queries, n) of every small size and scale, some of them hidden, some tied."""
    queries, n = draw(st.integers(1, 4)), draw(st.integers(1, 8))
    scores = draw(st.sampled_from([0.0, 1.0, 30.0])) * random(
        queries, n, seed=draw(st.integers(0, 1000))
    )
    if draw(st.booleans()):
        scores[:, 0] = scores.amax(dim=-1)
    if draw(st.booleans()):
        scores[:, n // 2 :] = -INF
    if draw(st.booleans()):
        scores[0] = -INF
    return scores


# Parity


def test_every_entry_by_hand():
    scores = random(3, 4)
    result = softmax(scores)
    for row, came in zip(scores.tolist(), result, strict=True):
        exps = [torch.tensor(score, dtype=torch.float64).exp() for score in row]
        torch.testing.assert_close(came, torch.stack(exps) / sum(exps))


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5), (2, 1, 3, 1)])
def test_values_and_gradients_are_those_of_torch(shape):
    scores, grad = (4 * random(*shape)).requires_grad_(), random(*shape, seed=1)
    ours, theirs = softmax(scores), pytorch_softmax(scores)
    torch.testing.assert_close(ours, theirs)
    (our_grad,) = torch.autograd.grad(ours, scores, grad)
    (their_grad,) = torch.autograd.grad(theirs, scores, grad)
    torch.testing.assert_close(our_grad, their_grad)


def test_hidden_scores_get_the_values_and_gradients_of_torch():
    scores = random(4, 6)
    scores[random(4, 6, seed=1) > 0.5] = -INF
    scores[:, 0] = 1.0  # no row is hidden whole
    scores.requires_grad_()
    ours, theirs, grad = softmax(scores), pytorch_softmax(scores), random(4, 6, seed=2)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        torch.autograd.grad(ours, scores, grad)[0], torch.autograd.grad(theirs, scores, grad)[0]
    )
    assert (ours[scores == -INF] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_every_float_dtype(dtype, scale):
    scores = (scale * random(6, 50)).to(dtype).requires_grad_()
    grad = random(6, 50, seed=1, dtype=dtype)
    ours, theirs = softmax(scores), pytorch_softmax(scores)
    assert ours.dtype == dtype
    # Half precision is rounded once, as in PyTorch: at most the last digit differs.
    tolerance = 2 * torch.finfo(dtype).eps
    torch.testing.assert_close(ours, theirs, atol=tolerance * 1e-2, rtol=tolerance)
    (our_grad,) = torch.autograd.grad(ours, scores, grad)
    (their_grad,) = torch.autograd.grad(theirs, scores, grad)
    assert our_grad.dtype == dtype
    torch.testing.assert_close(our_grad, their_grad, atol=8 * tolerance, rtol=8 * tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_scores_at_the_end_of_the_range(dtype):
    huge = torch.finfo(dtype).max
    scores = torch.tensor([[huge, 0.0, -huge], [huge, huge, 0.0], [-huge] * 3], dtype=dtype)
    expected = torch.tensor([[1, 0, 0], [0.5, 0.5, 0], [1 / 3] * 3], dtype=dtype)
    torch.testing.assert_close(softmax(scores), expected)


def test_rows_longer_than_float16_can_count():
    weights = softmax(torch.zeros(70_000, dtype=torch.float16))
    assert weights.dtype == torch.float16
    torch.testing.assert_close(weights, pytorch_softmax(torch.zeros(70_000)).half())
    assert weights[0] > 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_sum_of_long_rows_is_one(dtype):
    sums = softmax(random(4, 10_000, dtype=dtype)).double().sum(dim=-1)
    torch.testing.assert_close(
        sums, torch.ones_like(sums), atol=torch.finfo(dtype).eps, rtol=torch.finfo(dtype).eps
    )


# The rule for a query that may attend to nothing


def test_hidden_places_and_an_empty_sentence():
    scores, valid_length = torch.zeros(2, 1, 3), torch.tensor([0, 2])
    hidden = torch.arange(3) >= valid_length[:, None, None]
    weights = softmax(scores.masked_fill(hidden, -INF))
    assert weights.tolist() == [[[0, 0, 0]], [[0.5, 0.5, 0]]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_of_minus_infinity_gives_zeros_and_no_gradient(dtype):
    scores = random(3, 4, dtype=dtype)
    scores[1] = -INF
    scores.requires_grad_()
    weights = softmax(scores)
    weights.backward(random(3, 4, seed=1, dtype=dtype))
    assert torch.equal(weights[1], torch.zeros(4, dtype=dtype))
    assert torch.equal(scores.grad[1], torch.zeros(4, dtype=dtype))
    assert scores.grad.isfinite().all()
    assert scores.grad[0].abs().max() > 0


def test_an_empty_row_leaves_the_others_alone():
    scores = random(3, 4)
    alone = softmax(scores[[0, 2]])
    scores[1] = -INF
    assert torch.equal(softmax(scores)[[0, 2]], alone)


def test_second_derivatives_of_an_empty_row_are_zero():
    scores = torch.full((3,), -INF, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(softmax(scores) @ random(3), scores, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), scores)
    assert torch.equal(second, torch.zeros(3, dtype=torch.float64))


# NaN, infinities, zero sizes


@pytest.mark.parametrize("broken", [NAN, INF])
@pytest.mark.parametrize("others", [0.0, -INF])
def test_a_broken_score_spoils_its_whole_row_and_no_other(broken, others):
    scores = torch.tensor([[others, broken, others], [1.0, 2.0, 3.0]])
    weights = softmax(scores)
    assert weights[0].isnan().all()
    torch.testing.assert_close(weights[1], pytorch_softmax(scores[1]))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0), (2, 0, 4)])
def test_zero_sizes(shape):
    scores = random(*shape).requires_grad_()
    weights = softmax(scores)
    weights.sum().backward()
    assert weights.shape == scores.grad.shape == shape
    weights = weights.detach()
    assert softmax_jacobian(weights).shape == (*shape, shape[-1])
    assert softmax_jvp(weights, weights).shape == shape


def test_the_scores_are_not_changed():
    scores = random(2, 3)
    scores[1] = -INF
    before = scores.clone()
    softmax(scores)
    assert torch.equal(scores, before)
    assert softmax(scores[:, :0]) is not scores[:, :0]


# Properties of the weights


@given(score_rows())
def test_weights_are_shares(scores):
    weights = softmax(scores)
    sums = (scores > -INF).any(dim=-1).double()  # 1, or 0 for a row that is hidden whole
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(dim=-1), sums)


@given(score_rows(), st.floats(-1000, 1000))
def test_a_shift_changes_nothing(scores, shift):
    torch.testing.assert_close(softmax(scores + shift), softmax(scores), atol=1e-11, rtol=1e-11)


@given(score_rows(), st.integers(0, 1000))
def test_the_order_of_scores_is_the_order_of_weights(scores, seed):
    order = torch.randperm(scores.shape[1], generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(softmax(scores[:, order]), softmax(scores)[:, order])


@given(score_rows())
def test_rows_do_not_meet(scores):
    torch.testing.assert_close(softmax(scores)[-1], softmax(scores[-1]))


def test_a_larger_scale_sharpens_and_a_tie_is_shared():
    scores = torch.tensor([2.0, 1.0, 0.0, -1.0])
    largest = [softmax(scale * scores)[0].item() for scale in (0, 0.5, 1, 2, 4, 50)]
    assert largest == sorted(largest)
    assert largest[0] == 0.25
    assert largest[-1] == 1
    tied = softmax(100 * torch.tensor([2.0, 2.0, 0.0, -1.0]))
    assert tied.tolist() == [0.5, 0.5, 0, 0]


def test_sigmoid_is_softmax_of_x_and_zero():
    x = 3 * random(20)
    torch.testing.assert_close(
        softmax(torch.stack([x, torch.zeros_like(x)], dim=-1))[:, 0], torch.sigmoid(x)
    )


# The Jacobian


def test_the_four_by_four_jacobian_by_hand():
    s = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)
    expected = torch.tensor(
        [
            [0.24, -0.12, -0.08, -0.04],
            [-0.12, 0.21, -0.06, -0.03],
            [-0.08, -0.06, 0.16, -0.02],
            [-0.04, -0.03, -0.02, 0.09],
        ],
        dtype=torch.float64,
    )
    torch.testing.assert_close(softmax_jacobian(s), expected)


@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0])
def test_the_jacobian_is_that_of_autograd(scale):
    scores = scale * random(6)
    ours = softmax_jacobian(softmax(scores))
    for function in (softmax, pytorch_softmax):
        torch.testing.assert_close(ours, torch.autograd.functional.jacobian(function, scores))
        torch.testing.assert_close(ours, torch.func.jacrev(function)(scores))
        torch.testing.assert_close(ours, torch.func.jacfwd(function)(scores))


def test_the_jacobian_is_that_of_finite_differences():
    scores, step = random(5), 1e-5
    columns = [
        (softmax(scores + step * unit) - softmax(scores - step * unit)) / (2 * step)
        for unit in torch.eye(5, dtype=torch.float64)
    ]
    torch.testing.assert_close(
        softmax_jacobian(softmax(scores)), torch.stack(columns, dim=1), atol=1e-9, rtol=0
    )


def test_jacobians_of_a_batch_are_those_of_its_rows():
    weights = softmax(random(2, 3, 5))
    batched = softmax_jacobian(weights)
    assert batched.shape == (2, 3, 5, 5)
    for i in range(2):
        for j in range(3):
            torch.testing.assert_close(batched[i, j], softmax_jacobian(weights[i, j]))


@given(score_rows())
def test_the_jacobian_is_symmetric_with_rows_and_columns_that_sum_to_zero(scores):
    jacobian = softmax_jacobian(softmax(scores))
    assert torch.equal(jacobian, jacobian.mT)
    zeros = torch.zeros_like(scores)
    torch.testing.assert_close(jacobian.sum(dim=-1), zeros, atol=1e-14, rtol=0)
    torch.testing.assert_close(jacobian.sum(dim=-2), zeros, atol=1e-14, rtol=0)


@given(score_rows(), st.integers(0, 1000))
def test_the_jacobian_is_positive_semi_definite_and_a_variance(scores, seed):
    weights, u = softmax(scores), random(scores.shape[1], seed=seed)
    jacobian = softmax_jacobian(weights)
    eigenvalues = torch.linalg.eigvalsh(jacobian)
    assert eigenvalues.min() >= -1e-14
    assert eigenvalues.max() <= 0.5 + 1e-14
    average = (weights * u).sum(dim=-1, keepdim=True)
    variance = (weights * (u - average).square()).sum(dim=-1)
    torch.testing.assert_close(
        torch.einsum("i,bij,j->b", u, jacobian, u), variance, atol=1e-13, rtol=1e-13
    )


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("hidden", [0, 1, 3])
def test_the_rank_is_the_number_of_positive_weights_minus_one(n, hidden):
    scores = torch.cat([random(n), torch.full((hidden,), -INF, dtype=torch.float64)])
    jacobian = softmax_jacobian(softmax(scores))
    assert torch.linalg.matrix_rank(jacobian, atol=1e-12) == n - 1
    assert (jacobian[n:] == 0).all()


def test_norms_at_equal_weights_and_at_a_tie():
    equal = softmax_jacobian(torch.full((64,), 1 / 64, dtype=torch.float64))
    assert torch.linalg.matrix_norm(equal).item() == pytest.approx(63**0.5 / 64)
    assert torch.linalg.matrix_norm(equal, 2).item() == pytest.approx(1 / 64)
    tie = softmax_jacobian(softmax(1000 * torch.tensor([1.0, 1.0, 0.0, -1.0])))
    assert torch.linalg.matrix_norm(tie).item() == pytest.approx(0.5)
    assert torch.linalg.matrix_norm(tie, 2).item() == pytest.approx(0.5)


# The product with a vector


@given(score_rows(), st.integers(0, 1000))
def test_the_product_is_that_of_the_matrix(scores, seed):
    weights, u = softmax(scores), random(*scores.shape, seed=seed)
    product = softmax_jvp(weights, u)
    torch.testing.assert_close(product, (softmax_jacobian(weights) @ u[..., None])[..., 0])
    torch.testing.assert_close(product, (u[..., None, :] @ softmax_jacobian(weights))[..., 0, :])


def test_the_product_is_forward_mode_and_backward_mode():
    scores, u = 3 * random(3, 4, 6), random(3, 4, 6, seed=1)
    product = softmax_jvp(softmax(scores), u)
    for function in (softmax, pytorch_softmax):
        torch.testing.assert_close(product, torch.func.jvp(function, (scores,), (u,))[1])
        torch.testing.assert_close(product, torch.func.vjp(function, scores)[1](u)[0])


def test_the_product_with_unit_vectors_is_the_jacobian():
    weights = softmax(random(5))
    torch.testing.assert_close(
        softmax_jvp(weights, torch.eye(5, dtype=torch.float64)), softmax_jacobian(weights)
    )


@pytest.mark.parametrize(
    ("weights_batch", "vector_batch"),
    [((), (2,)), ((2,), ()), ((2, 1), (3,)), ((2, 3), (2, 3))],
)
def test_batch_axes_of_the_product_broadcast(weights_batch, vector_batch):
    weights, u = softmax(random(*weights_batch, 4)), random(*vector_batch, 4, seed=1)
    product = softmax_jvp(weights, u)
    shape = (*torch.broadcast_shapes(weights_batch, vector_batch), 4)
    assert product.shape == shape
    torch.testing.assert_close(
        product, torch.einsum("...ij,...j->...i", softmax_jacobian(weights), u).expand(shape)
    )


def test_a_constant_vector_gives_zero():
    product = softmax_jvp(softmax(random(3, 5)), torch.full((5,), 7.0, dtype=torch.float64))
    torch.testing.assert_close(product, torch.zeros(3, 5).double(), atol=1e-14, rtol=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_jacobian_and_product_in_every_float_dtype(dtype):
    weights, u = softmax(random(4, 6)).to(dtype), (100 + random(4, 6, seed=1)).to(dtype)
    for came, expected in (
        (softmax_jacobian(weights), softmax_jacobian(weights.double())),
        (softmax_jvp(weights, u), softmax_jvp(weights.double(), u.double())),
    ):
        assert came.dtype == dtype
        # float32 inside: only the last rounding is that of the dtype
        tolerance = max(torch.finfo(dtype).eps, 200 * torch.finfo(torch.float64).eps)
        slack = 0 if dtype == torch.float64 else 200 * torch.finfo(torch.float32).eps
        torch.testing.assert_close(
            came.double(), expected, atol=tolerance * 1e-3 + slack, rtol=tolerance
        )


def test_zero_weights_give_zero():
    zeros = torch.zeros(2, 3)
    assert torch.equal(softmax_jacobian(zeros), torch.zeros(2, 3, 3))
    assert torch.equal(softmax_jvp(zeros, random(2, 3, dtype=torch.float32)), zeros)


def test_nan_in_jacobian_and_product():
    jacobian = softmax_jacobian(torch.tensor([0.5, NAN, 0.5]))
    expected = torch.tensor([[0, 1, 0], [1, 1, 1], [0, 1, 0]], dtype=torch.bool)
    assert torch.equal(jacobian.isnan(), expected)
    weights = torch.tensor([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    for broken in (NAN, INF, -INF):
        product = softmax_jvp(weights, torch.tensor([[1.0, 2.0, broken], [1.0, 2.0, 3.0]]))
        assert product[0].isnan().all()
        assert product[1].tolist() == [-0.25, 0.25, 0]
        product = softmax_jvp(torch.tensor([0.5, 0.5, broken]), torch.tensor([1.0, 2.0, 3.0]))
        assert not product.isfinite().any()


# Derivatives of all three


def test_gradcheck():
    scores = (2 * random(2, 3, 5)).requires_grad_()
    assert torch.autograd.gradcheck(softmax, scores, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(softmax, scores)
    weights = softmax(random(2, 4)).requires_grad_()
    u = random(2, 4, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(softmax_jacobian, weights)
    assert torch.autograd.gradcheck(softmax_jvp, (weights, u))


def test_gradcheck_beside_hidden_scores():
    scores = random(2, 4).requires_grad_()
    hidden = torch.tensor([[False, True, False, True], [True, True, True, True]])
    assert torch.autograd.gradcheck(lambda z: softmax(z.masked_fill(hidden, -INF)), scores)


def test_they_can_be_mapped():
    scores, u = random(3, 5), random(3, 5, seed=1)
    torch.testing.assert_close(torch.func.vmap(softmax)(scores), softmax(scores))
    weights = softmax(scores)
    torch.testing.assert_close(
        torch.func.vmap(softmax_jacobian)(weights), softmax_jacobian(weights)
    )
    torch.testing.assert_close(torch.func.vmap(softmax_jvp)(weights, u), softmax_jvp(weights, u))

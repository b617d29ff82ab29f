"""What chapters 1 to 11 refuse: every message once, and every public function by a row.

A message names the argument, what came and what was expected, before anything is computed. Those
that several guards share are tested in ``tests/library/test_checks.py``; here stands, for every
line of a guard, which argument is named.
"""

import importlib
import json
import re
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn, ones, zeros

from transformer_lib.add_norm import AddNorm, LayerNorm, layer_norm
from transformer_lib.attention import (
    attention_weights,
    dot_product_attention,
    scaled_dot_product_attention,
)
from transformer_lib.embedding import Generator, InputLayer, TokenEmbedding
from transformer_lib.feed_forward import FeedForward
from transformer_lib.inner_product import cosine_similarity, inner_product, unit_vectors
from transformer_lib.layers import Decoder, DecoderLayer, Encoder, EncoderLayer
from transformer_lib.masking import (
    band_mask,
    causal_mask,
    combine_masks,
    mask_from_additive,
    mask_from_hidden,
    mask_to_additive,
    padding_mask,
)
from transformer_lib.multi_head_attention import (
    KeysValues,
    MultiHeadAttention,
    join_heads,
    split_heads,
)
from transformer_lib.positional_encoding import LearnedPositions, SinusoidalPositions, sinusoids
from transformer_lib.softmax import softmax, softmax_jacobian, softmax_jvp
from transformer_lib.transformer import TextEncoder, Transformer, TransformerConfig
from transformer_lib.weighted_sum import is_convex, weighted_sum

MODULES = [
    *("weighted_sum", "inner_product", "softmax", "positional_encoding", "masking", "attention"),
    *("multi_head_attention", "feed_forward", "add_norm", "embedding", "layers", "transformer"),
]

# Two sentences, three heads, four queries, five keys.
TRUE = ones(4, 5).bool()
QUERY, KEY, VALUE = ones(2, 3, 4, 8), ones(2, 3, 5, 8), ones(2, 3, 5, 7)  # batch, heads, n, d
X, Y = ones(2, 4, 6), ones(2, 5, 6)  # batch, n, d_model
ATTENTION = MultiHeadAttention(6, 2)
KEPT = KeysValues(ones(2, 2, 5, 3), ones(2, 2, 5, 3))
CONFIG = TransformerConfig(
    12, 12, d_model=8, n_heads=2, n_encoder_layers=1, n_decoder_layers=1, d_ff=16, max_length=6
)
TEXT_ENCODER, MODEL = TextEncoder(CONFIG).eval(), Transformer(CONFIG).eval()
SINUSOIDAL, LEARNED = SinusoidalPositions(6, 10), LearnedPositions(6, 10)
NAN = float("nan")


def attend(*tensors, **options):
    """Attend with what fits, but for what is given."""
    tensors = (*tensors, *(QUERY, KEY, VALUE)[len(tensors) :])
    return scaled_dot_product_attention(*tensors, **options)


def ids(*shape: int) -> torch.Tensor:
    return ones(shape).long()


class Forgetful:
    """A cache that gives back what it was not given."""

    memory = None

    def __call__(self, new: KeysValues) -> KeysValues:
        """Return one key and value, whatever came."""
        return KeysValues(*(tensor[:, :, :1] for tensor in new))


def config(**options):
    return partial(TransformerConfig, **options)


# The guards' own messages


FIT = ", an axis of size 1 standing for all, got "
HINT = "; is the first axis the batch, {0}[:, None], or the heads, {0}[None]?"
ORDER = ": the last query stands at the last key"
LAYOUT = "layout: expected 'interleaved', or 'halves' with an even d_model, got "
KEPT_SHAPE = (
    "keys_values: expected keys and values of one shape (batch, n_heads, keys, d_k) = "
    "(2, 2, keys, 3), got (2, {}, 5, 3) and (2, {}, 5, 3)"
)
EITHER = "keys_values: expected either key and value, or keys_values instead"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        # Sums, positions
        (
            lambda: is_convex(ones(2), tolerance="0.1"),
            TypeError,
            "tolerance: expected a number, got str",
        ),
        (
            lambda: is_convex(ones(2), tolerance=True),
            TypeError,
            "tolerance: expected a number, got bool",
        ),
        (
            lambda: is_convex(ones(2), tolerance=-0.5),
            ValueError,
            "tolerance: expected a number of at least 0, got -0.5",
        ),
        (
            lambda: is_convex(ones(2), tolerance=NAN),
            ValueError,
            "tolerance: expected a number of at least 0, got nan",
        ),
        (
            lambda: sinusoids(3, 4, layout="halfs"),
            ValueError,
            LAYOUT + "'halfs' with d_model = 4",
        ),
        (
            lambda: SinusoidalPositions(5, layout="halves"),
            ValueError,
            LAYOUT + "'halves' with d_model = 5",
        ),
        (
            lambda: SINUSOIDAL(zeros(2, 3, 1)),  # one column would broadcast silently
            ValueError,
            "x: expected d_model = 6, got 1 (shape (2, 3, 1))",
        ),
        (
            lambda: LEARNED(zeros(2, 1, 6), offset=10),  # bentrevett/pytorch-seq2seq#69, #89
            ValueError,
            "x: 1 positions from offset 10 on reach beyond the table's 10",
        ),
        # Masks
        (
            lambda: padding_mask([2, 1], 3),
            TypeError,
            "lengths: expected a tensor of integers, got list",
        ),
        (
            lambda: padding_mask(ones(2), 3),
            TypeError,
            "lengths: expected a tensor of integers, got torch.float32",
        ),
        (
            lambda: padding_mask(torch.tensor([[2], [1]]), 3),
            ValueError,
            "lengths: expected shape (batch), got (2, 1)",
        ),
        (
            lambda: padding_mask(torch.tensor([2, 4]), 3),
            ValueError,
            "lengths: expected 0 to 3, got [2, 4]",
        ),
        (
            lambda: padding_mask(torch.tensor([-1, 3]), 3),
            ValueError,
            "lengths: expected 0 to 3, got [-1, 3]",
        ),
        (
            lambda: causal_mask(2, 1),
            ValueError,
            "queries: expected at most as many as keys = 1, got 2" + ORDER,
        ),
        (
            lambda: combine_masks(TRUE, None, ones(4, 3).bool()),
            ValueError,
            "masks: shapes (4, 5) and (4, 3) do not broadcast",
        ),
        *(
            (
                partial(mask_from_additive, torch.tensor([0.0, number])),
                ValueError,
                "additive: expected only 0 and −inf; other numbers are a bias",
            )
            for number in (-1e9, torch.inf, NAN)
        ),
        # Attention
        (
            lambda: attend(ones(2, 3, 6, 8), causal=True),
            ValueError,
            "query: expected at most 5 queries as there are keys, got 6",
        ),
        (
            lambda: attend(ones(1, 8), ones(0, 8), ones(0, 7), causal=True),
            ValueError,
            "query: expected at most 0 queries as there are keys, got 1",
        ),
        *(
            (
                partial(attend, **{name: tensor}),
                ValueError,
                f"{name}: expected shape (4, 5) or (2, 3, 4, 5){FIT}"
                f"{tuple(tensor.shape)}{hint.format(name)}",
            )
            for name, tensor, hint in (
                ("mask", ones(5, 4).bool(), ""),
                ("mask", ones(4, 3).bool(), ""),
                ("mask", TRUE[None], HINT),
                ("bias", ones(3, 3, 4, 5), ""),
                ("bias", ones(2, 4, 5), HINT),
                ("bias", ones(()), ""),
            )
        ),
        (
            lambda: attend(QUERY[0, 0], KEY[0, 0], VALUE[0, 0], mask=TRUE.mT),
            ValueError,
            f"mask: expected shape (4, 5){FIT}(5, 4)",
        ),
        (
            lambda: MultiHeadAttention(512, 7),
            ValueError,
            "n_heads: expected a divisor of d_model = 512, got 7",
        ),
        (
            lambda: MultiHeadAttention(512, 0),
            ValueError,
            "n_heads: expected a divisor of d_model = 512, got 0",
        ),
        (
            lambda: MultiHeadAttention(512, -8),
            ValueError,
            "n_heads: expected a divisor of d_model = 512, got -8",
        ),
        (
            lambda: split_heads(ones(4, 6), 2),
            ValueError,
            "x: expected shape (batch, n, d_model), got (4, 6)",
        ),
        (
            lambda: join_heads(ones(2, 4, 6)),
            ValueError,
            "heads: expected shape (batch, n_heads, n, d_v), got (2, 4, 6)",
        ),
        (
            lambda: ATTENTION(X[0]),
            ValueError,
            "query: expected shape (batch, length, d_model = 6), got (4, 6)",
        ),
        (
            lambda: ATTENTION(X, Y, ones(2, 3, 6)),
            ValueError,
            "value: expected shape (2, 5, 6) as key has, got (2, 3, 6)",
        ),
        (lambda: ATTENTION(X, Y, keys_values=KEPT), ValueError, EITHER),
        (lambda: ATTENTION(X, value=Y, keys_values=KEPT), ValueError, EITHER),
        (
            lambda: ATTENTION(X, value=Y),
            ValueError,
            "key: expected keys for the values that are given, got None",
        ),
        (
            lambda: ATTENTION(X, keys_values=KeysValues(ones(2, 1, 5, 3), ones(2, 1, 5, 3))),
            ValueError,
            KEPT_SHAPE.format(1, 1),
        ),
        (
            lambda: ATTENTION(X, keys_values=KeysValues(KEPT.keys, ones(2, 3, 5, 3))),
            ValueError,
            KEPT_SHAPE.format(2, 3),
        ),
        (
            lambda: ATTENTION(X, Y, mask=ones(2, 4, 5).bool()),
            ValueError,
            "mask: expected shape (queries, keys) = (4, 5) or "
            f"(batch, n_heads, queries, keys) = (2, 2, 4, 5){FIT}(2, 4, 5)",
        ),
        (
            lambda: ATTENTION(X, Y, key_mask=ones(1, 5).bool()),
            ValueError,
            "key_mask: expected shape (batch, keys) = (2, 5), got (1, 5)",
        ),
        # Layers
        (
            lambda: LayerNorm(4)(ones(2, 5)),
            ValueError,
            "x: expected d_model = 4, got shape (2, 5)",
        ),
        (
            lambda: FeedForward(4, 8, activation="ReLU"),
            ValueError,
            "activation: expected one of relu, gelu, gelu_tanh, silu, got 'ReLU'",
        ),
        *(
            (
                partial(AddNorm(8, norm_first=norm_first), ones(5, 8), nn.Linear(8, 1)),
                ValueError,
                "sublayer: expected a result of shape (5, 8), to be added to x, got (5, 1)",
            )
            for norm_first in (False, True)
        ),
        (
            lambda: TokenEmbedding(5, 4)(torch.tensor([0, 5])),
            ValueError,
            "tokens: expected ids from 0 to 4, got ids from 0 to 5",
        ),
        (
            lambda: TokenEmbedding(5, 4)(torch.tensor([-1, 2])),
            ValueError,
            "tokens: expected ids from 0 to 4, got ids from -1 to 2",
        ),
        *(
            (
                partial(TokenEmbedding(5, 4), tokens),
                TypeError,
                f"tokens: expected a tensor of ids in int64 or int32, got {came}",
            )
            for tokens, came in (
                ([1], "list"),
                (zeros(0), "torch.float32"),
                (zeros(2).bool(), "torch.bool"),
                (zeros(2).to(torch.uint8), "torch.uint8"),
            )
        ),
        (
            lambda: Generator(8, 5, tied=TokenEmbedding(5, 4)),
            ValueError,
            "tied: expected weights of shape (5, 8), got (5, 4)",
        ),
        (
            lambda: MODEL.decoder(ones(2, 4, 8), ones(2, 5, 9)),
            ValueError,
            "memory: expected the encoder's output of shape (batch, source, d_model = 8), "
            "got (2, 5, 9)",
        ),
        (
            lambda: MODEL.decoder(ones(2, 4, 8), ones(1, 5, 8)),  # would broadcast
            ValueError,
            "memory: expected batch = 2 as in x, got 1",
        ),
        (
            lambda: MODEL.decoder(ones(2, 4, 8), ones(2, 5, 8), cache=[]),
            ValueError,
            "cache: expected one for each of 1 layers, got 0",
        ),
        (
            lambda: MODEL.decoder(ones(2, 4, 8), ones(2, 5, 8), cache=[Forgetful()] * 2),
            ValueError,
            "cache: expected one for each of 1 layers, got 2",
        ),
        # The Transformer
        (
            lambda: MODEL.encode([[1, 2]]),
            ValueError,
            "source: expected token ids of shape (batch, length), got list",
        ),
        (
            lambda: MODEL.encode(ids(3)),
            ValueError,
            "source: expected token ids of shape (batch, length), got (3,)",
        ),
        (
            lambda: MODEL(ids(2, 3), ids(2, 3), target_key_mask=ones(2, 4).bool()),
            ValueError,
            "target_key_mask: expected shape (2, 3) as target, got (2, 4)",
        ),
        (config(norm_eps=0.0), ValueError, "norm_eps: expected a number above 0, got 0.0"),
        (config(norm_eps=NAN), ValueError, "norm_eps: expected a number above 0, got nan"),
        (
            config(source_vocabulary=7851, target_vocabulary=5972),
            ValueError,
            "tied: 'all' needs one vocabulary for both languages, got source_vocabulary = 7851 "
            "and target_vocabulary = 5972",
        ),
        (
            config(padding_id=37_000),
            ValueError,
            "padding_id: expected an id of both vocabularies, got 37000",
        ),
        (
            config(padding_id=-1),
            ValueError,
            "padding_id: expected an id of both vocabularies, got -1",
        ),
    ],
)
def test_messages(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


# Every public function names the argument


def refused():
    """Yield (public function, how the message begins, a call), for every line of its guard."""
    floating = "expected a floating-point tensor"

    # Chapters 1 to 4
    yield "is_convex", f"weights: {floating}", lambda: is_convex(ones(3).int())
    yield "is_convex", "weights: expected at least 1 axes (…, keys)", lambda: is_convex(ones(()))
    for name in ("weights", "values"):
        tensors = {"weights": ones(4, 3), "values": ones(3, 2)}
        yield (
            "weighted_sum",
            f"{name}: expected a torch.Tensor, got list",
            partial(weighted_sum, **tensors | {name: [[1.0]]}),
        )
        yield (
            "weighted_sum",
            f"{name}: expected at least 2 axes",
            partial(weighted_sum, **tensors | {name: ones(3)}),
        )
    yield "weighted_sum", "values: expected keys = 3", lambda: weighted_sum(ones(4, 3), ones(2, 3))
    yield (
        "weighted_sum",
        "weights, values: batch axes do not broadcast",
        lambda: weighted_sum(ones(2, 4, 3), ones(5, 3, 2)),
    )
    for function in (inner_product, cosine_similarity, attention_weights):
        for begins, query, key in (
            ("query: expected a torch.Tensor", None, ones(5, 4)),
            ("key: expected dtype torch.float32", ones(3, 4), ones(5, 4).half()),
            ("query: expected at least 2 axes (…, queries, d_k)", ones(4), ones(5, 4)),
            ("key: expected at least 2 axes (…, keys, d_k)", ones(3, 4), ones(4)),
            ("key: expected d_k = 4", ones(3, 4), ones(4, 5)),  # transposed keys
            ("query, key: batch axes do not broadcast", ones(7, 3, 4), ones(2, 5, 4)),
        ):
            yield function.__name__, begins, partial(function, query, key)
    for function, name, axis in (
        (unit_vectors, "vectors", "d"),
        (softmax, "scores", "n"),
        (softmax_jacobian, "weights", "n"),
        (layer_norm, "x", "d_model"),
    ):
        yield (
            function.__name__,
            f"{name}: expected at least 1 axes (…, {axis})",
            partial(function, ones(())),
        )
        yield (
            function.__name__,
            f"{name}: {floating}",
            partial(function, ones(3).long()),
        )
    for begins, weights, vector in (
        ("weights: expected a torch.Tensor", [1.0], ones(1)),
        ("vector: expected device cpu", ones(3), ones(3, device="meta")),
        ("weights: expected at least 1 axes", ones(()), ones(3)),
        ("vector: expected at least 1 axes", ones(3), ones(())),
        ("vector: expected n = 3", ones(3), ones(1)),
        ("weights, vector: batch axes do not broadcast", ones(2, 3), ones(5, 3)),
    ):
        yield "softmax_jvp", begins, partial(softmax_jvp, weights, vector)

    # Chapters 3 and 6: the same of both, but for the quick way through the second one's guard
    sparse = [tensor.to_sparse() for tensor in (QUERY, KEY, VALUE)]
    integers = [tensor.long() for tensor in (QUERY, KEY, VALUE)]
    batches = "query, key, value: batch axes do not broadcast"
    for begins, *tensors in (
        ("query: expected a torch.Tensor", [1.0], KEY, VALUE),
        ("key: expected a torch.Tensor", QUERY, None, VALUE),
        ("value: expected a torch.Tensor", QUERY, KEY, 1.0),
        (f"query: {floating}", *integers),
        ("query: expected a dense tensor", *sparse),
        ("key: expected dtype torch.float32", QUERY, KEY.half(), VALUE),
        ("value: expected device cpu", QUERY, KEY, VALUE.to("meta")),
        ("query: expected at least 2 axes (…, queries, d_k)", ones(8), ones(5, 8), ones(5, 7)),
        ("key: expected at least 2 axes (…, keys, d_k)", QUERY, ones(8), VALUE),
        ("value: expected at least 2 axes (…, keys, d_v)", QUERY, KEY, ones(5)),
        ("key: expected d_k = 8", QUERY, ones(2, 3, 5, 6), VALUE),
        ("value: expected keys = 5", QUERY, KEY, ones(2, 3, 1, 7)),
        (batches, QUERY, KEY, ones(4, 3, 5, 7)),
        (batches, QUERY, ones(4, 3, 5, 8), VALUE),
    ):
        for function in (dot_product_attention, scaled_dot_product_attention):
            yield (
                function.__name__,
                begins,
                partial(function, *tensors),
            )
    for begins, options in (
        ("mask: expected a boolean tensor", {"mask": TRUE.float()}),  # pytorch/pytorch#92554
        ("mask: expected a boolean tensor", {"mask": [[True]]}),
        ("mask: expected device cpu", {"mask": TRUE.to("meta")}),
        (f"bias: {floating}", {"bias": TRUE}),
        ("bias: expected dtype torch.float32", {"bias": TRUE.double()}),
        ("bias: expected a torch.Tensor", {"bias": 0.5}),
        ("dropout: expected a probability", {"dropout": 1.5}),
        ("dropout: expected a probability", {"dropout": NAN}),
    ):
        yield "scaled_dot_product_attention", begins, partial(attend, **options)

    # Chapters 5 and 6
    for name in ("length", "d_model", "offset"):
        sizes = {"length": 3, "d_model": 4, name: -1}
        yield (
            "sinusoids",
            f"{name}: expected 0 or more, got -",
            partial(sinusoids, **sizes),
        )
    for module in (SINUSOIDAL, LEARNED):
        kind = type(module)
        yield kind.__name__, "max_length: expected 0 or", partial(kind, 4, -1)
        yield kind.__name__, "d_model: expected 0 or more", partial(kind, -4, 10)
        for begins, x, offset in (
            (f"x: {floating}", zeros(2, 3, 6).long(), 0),
            ("x: expected at least 2 axes (…, length, d_model)", zeros(6), 0),
            ("x: expected d_model = 6", zeros(2, 3, 5), 0),
            ("offset: expected 0 or more", zeros(2, 3, 6), -1),
            ("x: 3 positions from offset 8", zeros(2, 3, 6), 8),
        ):
            yield (
                kind.__name__,
                begins,
                partial(module, x, offset=offset),
            )
    yield "padding_mask", "lengths: expected a tensor of", lambda: padding_mask(ones(1).bool(), 3)
    yield "causal_mask", "queries: expected 0 or more", lambda: causal_mask(-1)
    for name, queries, options in (
        ("queries", -1, {"before": 1, "after": 1}),
        ("before", 3, {"before": -1, "after": 1}),
        ("after", 3, {"before": None, "after": -2}),
    ):
        yield (
            "band_mask",
            f"{name}: expected 0 or more",
            partial(band_mask, queries, **options),
        )
    yield (
        "band_mask",
        "queries: expected at most as many as keys = 3",
        lambda: band_mask(5, 3, before=None, after=0),
    )
    boolean = "expected a boolean tensor in which True means"
    yield "combine_masks", f"mask: {boolean}", lambda: combine_masks(TRUE, TRUE.float())
    yield "mask_from_hidden", f"hidden: {boolean}", lambda: mask_from_hidden(TRUE.long())
    yield "mask_to_additive", f"mask: {boolean}", lambda: mask_to_additive(None)
    yield "mask_from_additive", f"additive: {floating}", lambda: mask_from_additive(TRUE)

    # Chapter 7
    yield "split_heads", "n_heads: expected a divisor", lambda: split_heads(ones(2, 4, 6), 4)
    yield "split_heads", "n_heads: expected a divisor", lambda: split_heads(ones(2, 4, 6), 0)
    yield "split_heads", "x: expected a torch.Tensor", lambda: split_heads([1.0], 2)
    yield "join_heads", "heads: expected a torch.Tensor", lambda: join_heads(None)
    yield "join_heads", f"heads: {floating}", lambda: join_heads(ones(2, 2, 4, 3).long())
    yield (
        "MultiHeadAttention",
        "dropout: expected a probability",
        lambda: MultiHeadAttention(6, 2, dropout=-0.1),
    )
    sequence = "expected shape (batch, length, d_model = 6)"
    for begins, arguments, options in (
        ("query: expected a torch.Tensor", ([1.0],), {}),
        (f"query: {floating}", (X.long(),), {}),
        ("query: expected a dense tensor", (X.to_sparse(),), {}),
        (f"query: {sequence}", (ones(2, 4, 5),), {}),
        ("key: expected a torch.Tensor", (X, 2.0), {}),
        (f"key: {sequence}", (X, ones(())), {}),
        (f"key: {sequence}", (X, Y[0]), {}),
        (f"key: {sequence}", (X, ones(2, 5, 3)), {}),
        (f"key: {floating}", (X, Y.int()), {}),
        (f"value: {floating}", (X, Y, Y.bool()), {}),
        (f"value: {sequence}", (X, Y, ones(2, 5, 3)), {}),
        ("key: expected batch = 2", (X, ones(1, 5, 6)), {}),  # would broadcast
        ("keys_values: expected", (X,), {"keys_values": KeysValues(Y, Y)}),
        ("keys_values: expected", (X[:1],), {"keys_values": KEPT}),
        ("keys: expected dtype", (X,), {"keys_values": KeysValues(*(t.double() for t in KEPT))}),
        (
            "keys_values: expected dev",
            (X,),
            {"keys_values": KeysValues(*(t.to("meta") for t in KEPT))},
        ),
        (f"mask: {boolean}", (X, Y), {"mask": TRUE.int()}),
        ("bias: expected shape", (X, Y), {"bias": ones(5)}),
        (f"key_mask: {boolean}", (X, Y), {"key_mask": zeros(2, 5)}),  # mlverse/torch#1205
        ("key_mask: expected device cpu", (X, Y), {"key_mask": ones(2, 5, device="meta").bool()}),
        ("query: expected at most 3 queries", (X, Y[:, :3]), {"causal": True}),
    ):
        yield (
            "MultiHeadAttention",
            begins,
            partial(ATTENTION, *arguments, **options),
        )
    for begins, *pair in (
        (f"key: {sequence}", X[0], X[0]),
        (f"value: {sequence}", X, X[..., :3]),
        ("value: expected shape (2, 4, 6) as key has", X, Y),
        (f"value: {floating}", X, X.long()),
        ("key: expected a dense tensor", X.to_sparse(), X),
    ):
        yield "MultiHeadAttention", begins, partial(ATTENTION.project, *pair)

    # Chapters 8 to 10
    for options in ({"activation": "tanh"}, {"dropout": -0.1}):
        (name,) = options
        yield (
            "FeedForward",
            f"{name}: expected",
            partial(FeedForward, 4, 8, **options),
        )
    yield "AddNorm", "dropout: expected a probability", lambda: AddNorm(4, dropout=1.5)
    yield "InputLayer", "dropout: expected a probability", lambda: InputLayer(4, dropout=1.5)
    for function in (
        FeedForward(4, 8),
        LayerNorm(4),
        Generator(4, 5),
        Generator(4, 5, tied=TokenEmbedding(5, 4)),
        InputLayer(4, norm_eps=1e-5),
    ):
        for begins, x in (
            ("x: expected a torch.Tensor", [1.0]),
            (f"x: {floating}", ones(2, 4).long()),
            ("x: expected a dense tensor", ones(2, 4).to_sparse()),
            ("x: expected at least 1 axes (…, d_model)", ones(())),
            ("x: expected d_model = 4, got shape (4, 5)", ones(4, 5)),
        ):
            yield type(function).__name__, begins, partial(function, x)
    for norm_first in (False, True):
        yield (
            "AddNorm",
            "x: expected d_model = 4",
            partial(AddNorm(4, norm_first=norm_first), ones(2, 5), torch.sin),
        )
    yield "TokenEmbedding", "vocabulary_size: expected 1 or more", lambda: TokenEmbedding(0, 4)
    yield "TokenEmbedding", "d_model: expected 1 or more", lambda: TokenEmbedding(5, 0)
    yield "TokenEmbedding", "tokens: expected", lambda: TokenEmbedding(5, 4)(ids(2, 3) > 0)
    yield "Generator", "vocabulary_size: expected 1 or more", lambda: Generator(4, -3)
    yield "Generator", "d_model: expected 1 or more", lambda: Generator(0, 5)
    yield "Generator", "tied: expected", lambda: Generator(4, 6, tied=TokenEmbedding(5, 4))

    # Chapter 11
    for kind, first in ((EncoderLayer, ()), (DecoderLayer, ()), (Encoder, (1,)), (Decoder, (1,))):
        for begins, sizes, options in (
            ("n_heads: expected a divisor of d_model = 8", (8, 3, 16), {}),
            ("activation: expected one of", (8, 2, 16), {"activation": "tanh"}),
            ("dropout: expected a probability", (8, 2, 16), {"dropout": 1.5}),
        ):
            arguments = (*first, *sizes)
            yield (
                kind.__name__,
                begins,
                partial(kind, *arguments, **options),
            )
    x, memory, three = ones(2, 4, 8), ones(2, 5, 8), ones(2, 4, 4).bool()
    for function in (MODEL.encoder.layers[0], MODEL.encoder):
        for begins, arguments, options in (
            ("query: expected shape (batch, length, d_model = 8)", (ones(2, 3, 9),), {}),
            ("mask: expected shape", (x,), {"mask": three}),
            ("key_mask: expected shape (batch, keys) = (2, 4)", (x,), {"key_mask": TRUE}),
        ):
            yield (
                type(function).__name__,
                begins,
                partial(function, *arguments, **options),
            )
    for function, several in ((MODEL.decoder.layers[0], False), (MODEL.decoder, True)):
        cache = [Forgetful()] if several else Forgetful()
        for begins, arguments, options in (
            ("x: expected a torch.Tensor", (None, memory), {}),
            ("memory: expected a torch.Tensor", (x, [memory]), {}),
            ("memory: expected dtype torch.float32", (x, memory.double()), {}),
            ("memory: expected the encoder's output", (x, memory[0]), {}),
            ("memory: expected the encoder's output", (x, memory[..., :7]), {}),
            ("memory: expected batch = 2", (x, memory[:1]), {}),
            ("mask: expected shape", (x, memory), {"mask": three}),
            ("mask: expected shape", (x, memory), {"memory_mask": three}),
            ("key_mask: expected shape (b", (x, memory), {"key_mask": TRUE}),
            ("key_mask: expected shape (b", (x, memory), {"memory_key_mask": TRUE[:2, :3]}),
            ("query: expected at most 1 queries", (x, memory), {"cache": cache}),
        ):
            yield (
                type(function).__name__,
                begins,
                partial(function, *arguments, **options),
            )
    yield "Decoder", "cache: expected one for each", lambda: MODEL.decoder(x, memory, cache=())
    float_mask = ones(2, 3)
    for begins, call in (
        ("source: expected token ids", lambda: TEXT_ENCODER(ids(3))),
        ("key_mask: expected a boolean", lambda: TEXT_ENCODER(ids(2, 3), key_mask=float_mask)),
        (
            "key_mask: expected shape (2, 3) as source",
            lambda: TEXT_ENCODER(ids(2, 3), key_mask=TRUE),
        ),
        ("tokens: expected", lambda: TEXT_ENCODER(ids(2, 3).float())),
        ("x: 7 positions from offset 0", lambda: TEXT_ENCODER(ids(1, 7))),
    ):
        yield "TextEncoder", begins, call
    source = ids(2, 3)
    for begins, call in (
        ("source: expected token ids", lambda: MODEL([[1]], source)),
        ("target: expected token ids", lambda: MODEL(source, ids(2, 3, 2))),
        ("target: expected batch = 2", lambda: MODEL(source, ids(1, 3))),
        ("tokens: expected ids from 0 to 11", lambda: MODEL(source + 11, source)),
        ("source_key_mask: ex", lambda: MODEL(source, source, source_key_mask=float_mask)),
        ("target_key_mask: ex", lambda: MODEL(source, source, target_key_mask=float_mask)),
        (
            "layout: expected",
            lambda: Transformer(replace(CONFIG, d_model=9, n_heads=3, position_layout="halves")),
        ),
        # harvardnlp/annotated-transformer#134
        ("target: expected token ids", lambda: MODEL.decode(x, memory=source)),
        ("memory: expected a floating-point", lambda: MODEL.decode(source, memory=source)),
        ("x: 3 positions from offset 4", lambda: MODEL.decode(source, memory=memory, offset=4)),
        ("cache: expected", lambda: MODEL.decode(source, memory=memory, cache=[])),
    ):
        yield "Transformer", begins, call
    for value, kind, fields in (
        (0, "1 or more", "source_vocabulary target_vocabulary d_model n_heads d_ff max_length"),
        (-1, "0 or more", "n_encoder_layers n_decoder_layers"),
        (1.5, "a probability", "dropout attention_dropout feed_forward_dropout"),
        ("x", "one of", "activation positions position_layout tied"),
        ("512", "int, got", "d_model padding_id"),
        (None, "float, got", "dropout norm_eps"),
        ("yes", "bool or NoneType", "final_norm"),
    ):
        for name in fields.split():
            yield "TransformerConfig", f"{name}: expected {kind}", config(**{name: value})
    yield "TransformerConfig", "n_heads: expected a divisor", config(d_model=10, n_heads=4)


REFUSED: dict[str, list] = {}
for function, *row in refused():
    REFUSED.setdefault(function, []).append(row)


@pytest.mark.parametrize("function", REFUSED)
def test_arguments_are_named(function):
    for begins, call in REFUSED[function]:
        with pytest.raises((TypeError, ValueError), match=f"^{re.escape(begins)}"):
            call()


def test_no_public_function_is_forgotten():
    modules = [importlib.import_module(f"transformer_lib.{name}") for name in MODULES]
    public = {name for module in modules for name in module.__all__}
    nothing_to_ask = {"ACTIVATIONS", "Cache", "KeysValues", "record_attention"}
    files = {"load_weights", "read_tensors", "require_state"}
    assert REFUSED.keys() == public - nothing_to_ask - files


# What the signature sees to


@pytest.mark.parametrize(
    "call",
    [
        lambda: is_convex(ones(2), 0.1, 0.1),
        lambda: sinusoids(3, 4, 0),
        lambda: band_mask(3, 3, 1, 1),
        lambda: attend(QUERY, KEY, VALUE, TRUE),
        lambda: ATTENTION(X, Y, Y, TRUE),
        lambda: FeedForward(4, 8, "relu"),
        lambda: AddNorm(4, True),
        lambda: LayerNorm(4, 1e-5),
        lambda: MODEL(ids(2, 3), ids(2, 3), ids(2, 3) > 0),
        lambda: MODEL.encode(ids(2, 3), ids(2, 3) > 0),
        lambda: MODEL.decode(ones(2, 3, 8), ids(2, 3)),
    ],
)
def test_what_could_be_confused_is_given_by_name(call):
    with pytest.raises(TypeError, match="positional argument"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: band_mask(3, after=0),
        lambda: MODEL.encoder(ones(2, 3, 8), masks=None),
        lambda: Encoder(1, 8, 2, 16, heads=3),
        lambda: Decoder(1, 8, 2, 16, heads=3),
        lambda: FeedForward(4, 8, devise="cpu"),
    ],
)
def test_names_that_are_missing_or_unknown(call):
    with pytest.raises(TypeError, match=r"missing|unexpected keyword argument"):
        call()


# What is near, and right


@pytest.mark.parametrize("name", ["mask", "bias"])
def test_masks_and_biases_that_fit(name):
    for shape in ((4, 5), (1, 5), (4, 1), (1, 1), (2, 3, 4, 5), (2, 1, 1, 5), (1, 3, 4, 1)):
        tensor = ones(shape).bool() if name == "mask" else ones(shape)
        assert attend(**{name: tensor}).shape == (2, 3, 4, 7)
    three = ones(3, 1, 5).bool() if name == "mask" else ones(3, 1, 5)
    assert attend(QUERY[0], KEY[0], VALUE[0], **{name: three}).shape == (3, 4, 7)


def test_numbers_at_the_edge():
    assert is_convex(ones(1), tolerance=0)
    assert sinusoids(0, 0, offset=0).shape == (0, 0)
    assert band_mask(0, 0, before=0, after=0).shape == (0, 0)
    assert attend(dropout=1).abs().sum() == 0
    assert attend(ones(6, 8), ones(5, 8), ones(5, 8)).shape == (6, 8)  # without causal
    lengths = torch.tensor([3, 0], dtype=torch.uint8)  # not so for the shape checks
    assert padding_mask(lengths, 3).tolist() == [[True] * 3, [False] * 3]
    assert TransformerConfig.from_json('{"dropout": 0, "norm_eps": 1}').norm_eps == 1
    assert replace(CONFIG, n_encoder_layers=0, n_decoder_layers=0, padding_id=11).padding_id == 11


def test_an_odd_width_works_in_the_paper_s_layout():
    model = Transformer(replace(CONFIG, d_model=9, n_heads=3))
    assert model(ids(1, 2), ids(1, 2)).shape == (1, 2, 12)


# A configuration as text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "config: not valid JSON: Expecting property name"),
        ("", "config: expected JSON, got an empty text"),
        ("[512, 8]", "config: expected a JSON object, got list"),
        ('{"hidden_size": 768, "d_model": 512}', "config: unknown fields hidden_size"),
        ('{"b": 1, "a": 2}', "config: unknown fields a, b"),
        (json.dumps({"n_heads": 7}), "n_heads: expected a divisor of d_model = 512, got 7"),
    ],
)
def test_json_that_is_no_configuration(text, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        TransformerConfig.from_json(text)

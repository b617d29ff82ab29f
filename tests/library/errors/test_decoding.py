"""What cannot be decoded is refused by name, before a token is chosen."""

import copy
import math
import pickle
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from transformer_lib.decoding import (
    CachedDecoder,
    UncachedDecoder,
    beam_search,
    greedy,
    sample,
)
from transformer_lib.decoding_model import for_decoding
from transformer_lib.transformer import Transformer, TransformerConfig

START, END = 1, 2
CONFIG = TransformerConfig(
    12, 12, d_model=8, n_heads=2, n_encoder_layers=1, n_decoder_layers=1, d_ff=16, max_length=6
)
SEARCH = {"start": START, "end": END, "max_length": 4}


def beams(decoder, **options):
    return beam_search(decoder, beams=2, **options)


@pytest.fixture(params=[greedy, sample, beams], ids=["greedy", "sample", "beam_search"])
def search(request):
    return request.param


@pytest.fixture(params=[CachedDecoder, UncachedDecoder], ids=["cached", "uncached"])
def kind(request):
    return request.param


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(0)
    return Transformer(CONFIG).eval()


def ids(*shape: int) -> Tensor:
    return torch.randint(3, 12, shape, generator=torch.Generator().manual_seed(0))


class Fixed:
    """A model that always gives the same logits, and counts how often it is asked."""

    def __init__(self, *logits: float, rows: int = 1):
        self.logits, self.rows, self.calls = torch.tensor(logits), rows, 0

    def advance(self, tokens: Tensor) -> Tensor:
        """Return the logits for every row."""
        self.calls += 1
        return self.logits.expand(self.rows, -1)

    def select(self, rows: Tensor) -> None:
        """Take the number of rows."""
        self.rows = len(rows)


# The decoders


def test_a_model_in_training_mode(kind, model):
    with pytest.raises(ValueError, match=r"^model: expected evaluation mode, call model.eval\(\)"):
        kind(model.train(), ids(2, 3))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (ids(3), r"^source: expected token ids of shape \(batch, length\), got \(3,\)"),
        (ids(1, 2, 3), r"^source: expected token ids .* got \(1, 2, 3\)"),
        (ids(2, 7), r"7 positions from offset 0 on reach beyond the table's 6"),
        (ids(2, 3) + 9, r"expected ids from 0 to 11, got ids from"),
    ],
)
def test_a_source_that_does_not_fit(kind, model, source, message):
    with pytest.raises(ValueError, match=message):
        kind(model, source)


def test_a_source_of_floats(kind, model):
    with pytest.raises(TypeError, match=r"expected a tensor of ids in int64 or int32"):
        kind(model, torch.ones(2, 3))


@pytest.mark.parametrize(
    ("key_mask", "error", "message"),
    [
        (torch.ones(2, 3), TypeError, r"^key_mask: "),
        (torch.ones(2, 4, dtype=torch.bool), ValueError, r"^key_mask: expected shape \(2, 3\)"),
        (torch.ones(3, dtype=torch.bool), ValueError, r"^key_mask: expected shape .* got \(3,\)"),
    ],
)
def test_a_key_mask_that_does_not_fit(kind, model, key_mask, error, message):
    with pytest.raises(error, match=message):
        kind(model, ids(2, 3), key_mask=key_mask)


@pytest.mark.parametrize("shape", [(3, 1), (2,), (2, 0), (2, 1, 1)])
def test_tokens_of_another_shape(kind, model, shape):
    decoder = kind(model, ids(2, 3))
    with pytest.raises(ValueError, match=r"^tokens: expected shape \(rows = 2, 1 or more\), got"):
        decoder.advance(torch.ones(*shape, dtype=torch.int64))
    assert decoder.advance(torch.full((2, 1), START)).shape == (2, 12)  # nothing was spoilt


def test_tokens_outside_of_the_vocabulary(kind, model):
    decoder = kind(model, ids(2, 3))
    with pytest.raises(ValueError, match=r"^tokens: expected ids from 0 to 11"):
        decoder.advance(torch.full((2, 1), 12))
    with pytest.raises(TypeError, match=r"^tokens: expected a tensor of ids"):
        CachedDecoder(model, ids(2, 3)).advance(torch.ones(2, 1))


def test_more_tokens_than_positions(kind, model, search):
    message = r"^tokens: 1 after 6 are more than the 6 positions that the model has .*max_length"
    options = SEARCH | {"max_length": 9, "forbidden": [END]}
    with pytest.raises(ValueError, match=message):
        search(kind(model, ids(2, 3)), **options)
    search(kind(model, ids(2, 3)), **options | {"max_length": 6})
    with pytest.raises(ValueError, match=r"^tokens: 7 after 0"):
        kind(model, ids(1, 3)).advance(ids(1, 7))


def test_without_positions_there_is_no_longest_sentence(kind, search):
    model = Transformer(replace(CONFIG, positions="none")).eval()
    search(kind(model, ids(2, 3)), **SEARCH | {"max_length": 9, "forbidden": [END]})


@pytest.mark.parametrize(
    "use",
    [
        lambda model, folder: model.save_pretrained(folder),
        lambda model, folder: model.state_dict(),
        lambda model, folder: model.load_state_dict({}, strict=False),
        lambda model, folder: model.to(torch.float64),
        lambda model, folder: model.half(),
        lambda model, folder: copy.deepcopy(model),
        lambda model, folder: copy.copy(model),
        lambda model, folder: pickle.dumps(model),
        lambda model, folder: torch.save(model, folder),
        lambda model, folder: torch.save([model], folder),
        lambda model, folder: model.to("meta"),
        lambda model, folder: model.train(),
    ],
)
def test_a_copy_for_decoding_only_decodes(model, tmp_path, use):
    with pytest.raises(TypeError, match=r"^model: what for_decoding returned cannot be moved"):
        use(for_decoding(model), tmp_path / "model")


@pytest.mark.parametrize("wrong", [lambda model: for_decoding(model), lambda model: model.encoder])
def test_a_copy_of_what_is_no_transformer(model, wrong):
    with pytest.raises(TypeError, match=r"^model: expected a Transformer, got "):
        for_decoding(wrong(model))


# The searches


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_length": 0}, r"^max_length: expected 1 or more new tokens, .*got 0$"),
        ({"max_length": -3}, r"^max_length: expected 1 or more new tokens, .*got -3$"),
        ({"max_length": 10**9}, r"^max_length: expected .* up to 1,000,000, got 1000000000$"),
        ({"min_length": -1}, r"^min_length: expected 0 to 3, below max_length, got -1"),
        ({"min_length": 4}, r"^min_length: expected 0 to 3, below max_length, got 4"),
        ({"start": torch.ones(2, 1, dtype=torch.int64)}, r"^start: .*rows = 1.* got \(2, 1\)"),
        ({"start": torch.ones(1, 0, dtype=torch.int64)}, r"^start: .*1 or more.* got \(1, 0\)"),
        ({"start": torch.ones(1, dtype=torch.int64)}, r"^start: expected a token, or tokens"),
    ],
)
def test_lengths_and_starts(search, options, message):
    decoder = Fixed(0.0, 0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match=message):
        search(decoder, **SEARCH | options)
    assert decoder.calls == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"end": 4}, r"^end: expected ids from 0 to 3, got \[4\]"),
        ({"end": -1}, r"^end: expected ids from 0 to 3, got \[-1\]"),
        ({"forbidden": [0, 4, 9]}, r"^forbidden: expected ids from 0 to 3, got \[4, 9\]"),
        ({"forbidden": [-1]}, r"^forbidden: expected ids from 0 to 3, got \[-1\]"),
    ],
)
def test_tokens_that_the_model_does_not_have(search, options, message):
    with pytest.raises(ValueError, match=message):
        search(Fixed(0.0, 0.0, 0.0, 0.0), **SEARCH | options)


@pytest.mark.parametrize("search", [greedy, sample])
def test_no_token_is_left(search):
    with pytest.raises(ValueError, match=r"^forbidden: no token is left .* number 1 of a row"):
        search(Fixed(0.0, 0.0, 0.0), **SEARCH, forbidden=[0, 1, 2])
    with pytest.raises(ValueError, match=r"^forbidden: no token is left .* number 1 of a row"):
        search(Fixed(-math.inf, -math.inf, 0.0), **SEARCH, min_length=1)


def test_nan_is_no_logit(search):
    with pytest.raises(FloatingPointError, match=r"^decoder: NaN in the logits of new token"):
        search(Fixed(0.0, math.nan, 0.0), **SEARCH)
    with pytest.raises(FloatingPointError, match="number 1"):
        search(Fixed(math.nan, math.nan, math.nan, rows=2), **SEARCH, forbidden=[1])


@pytest.mark.parametrize("number", [0, -2, 10**9])
def test_no_beams(number):
    with pytest.raises(
        ValueError, match=rf"^beams: expected 1 or more, up to 10,000, got {number}"
    ):
        beam_search(Fixed(0.0, 0.0, 0.0), beams=number, **SEARCH)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_penalties_that_turn_scores_round(wrong):
    message = r"^penalty: expected finite numbers above 0, got .* for length 1 and alpha = 0.6"
    with pytest.raises(ValueError, match=message):
        beam_search(Fixed(0.0, 0.0, 0.0), beams=2, penalty=lambda *_: wrong, **SEARCH)


@pytest.mark.parametrize("alpha", [2000.0, -8000.0])
def test_a_penalty_beyond_all_numbers(alpha):
    options = SEARCH | {"max_length": 50}
    message = r"^penalty: expected finite numbers above 0, got (inf|0.0) for length \d+ and alpha"
    with pytest.raises(ValueError, match=message):
        beam_search(Fixed(0.0, 0.0, 0.0), beams=2, alpha=alpha, **options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"beams": 2.5}, TypeError, r"^beams: expected a whole number, got 2.5$"),
        ({"beams": True}, TypeError, r"^beams: expected a whole number, got True$"),
        ({"alpha": "0.6"}, TypeError, r"^alpha: expected a number, got '0.6'$"),
        ({"alpha": math.nan}, ValueError, r"^alpha: expected a finite number, got nan$"),
    ],
)
def test_options_of_beam_search(options, error, message):
    decoder = Fixed(0.0, 0.0, 0.0)
    with pytest.raises(error, match=message):
        beam_search(decoder, **{"beams": 2} | SEARCH | options)
    assert decoder.calls == 0


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"start": 1.0}, "start"),
        ({"start": None}, "start"),
        ({"start": True}, "start"),
        ({"end": 2.0}, "end"),
        ({"max_length": 4.0}, "max_length"),
        ({"max_length": None}, "max_length"),
        ({"min_length": 1.5}, "min_length"),
        ({"forbidden": [1.0]}, "forbidden"),
        ({"forbidden": 1}, "forbidden"),
        ({"forbidden": "1"}, "forbidden"),
    ],
)
def test_numbers_that_would_be_cut_or_guessed(search, options, name):
    decoder = Fixed(0.0, 0.0, 0.0)
    with pytest.raises(TypeError, match=rf"^{name}: expected "):
        search(decoder, **SEARCH | options)
    assert decoder.calls == 0


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        (torch.tensor([0, 2]), ValueError),
        (torch.tensor([-1]), ValueError),
        (torch.tensor([0.0]), TypeError),
        (torch.tensor([True, False]), TypeError),
        ([0], TypeError),
    ],
)
def test_rows_that_are_not_there(kind, model, rows, error):
    decoder = kind(model, ids(2, 3))
    with pytest.raises(error, match=r"^rows: expected "):
        decoder.select(rows)
    assert decoder.rows == 2


def test_infinite_logits(search):
    with pytest.raises(FloatingPointError, match=r"^decoder: \+∞ in the logits of new token|NaN"):
        search(Fixed(0.0, math.inf, 0.0), **SEARCH)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, r"^temperature: expected a number above 0, got 0; greedy takes"),
        ({"temperature": -1.0}, r"^temperature: expected a number above 0, got -1.0"),
        ({"temperature": math.nan}, r"^temperature: expected a number above 0, got nan"),
        ({"temperature": math.inf}, r"^temperature: expected a number above 0, got inf"),
        ({"top_k": 0}, r"^top_k: expected 1 or more, got 0"),
        ({"top_p": 0.0}, r"^top_p: expected a probability above 0, up to 1, got 0.0"),
        ({"top_p": 1.1}, r"^top_p: expected a probability above 0, up to 1, got 1.1"),
        ({"top_p": math.nan}, r"^top_p: expected a probability above 0, up to 1, got nan"),
        ({"top_k": 2.5}, r"^top_k: expected a whole number, got 2.5"),
        ({"temperature": "1"}, r"^temperature: expected a number, got '1'"),
        ({"top_p": "1"}, r"^top_p: expected a number, got '1'"),
    ],
)
def test_options_of_sampling(options, message):
    decoder = Fixed(0.0, 0.0, 0.0)
    with pytest.raises((TypeError, ValueError), match=message):
        sample(decoder, **SEARCH, **options)
    assert decoder.calls == 0

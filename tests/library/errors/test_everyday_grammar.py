"""Arguments that cannot be meant are refused by name."""

import pytest

from transformer_lib.datasets.everyday_korean import LARGEST, generate, splits
from transformer_lib.datasets.everyday_korean.forms import join
from transformer_lib.datasets.everyday_korean.numerals import native, sino
from transformer_lib.datasets.everyday_korean.tables import noun_of


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: generate(-1), ValueError, r"count: expected 0 to 1,000,000 sentences, got -1"),
        (lambda: generate(LARGEST + 1), ValueError, r"count: .*, got 1,000,001"),
        (lambda: generate(2.0), TypeError, "count: expected a whole number, got float"),
        (lambda: generate(True), TypeError, "count: expected a whole number, got bool"),
        (lambda: generate("9"), TypeError, "count: expected a whole number, got str"),
        (lambda: generate(1, "a"), TypeError, "seed: expected a whole number, got str"),
        (lambda: generate(1, None), TypeError, "seed: expected a whole number, got NoneType"),
        (lambda: splits(1.5), TypeError, "seed: expected a whole number, got float"),
        (lambda: splits(train=-1), ValueError, r"train: expected 0 to 1,000,000 .*, got -1"),
        (lambda: splits(test=10_001), ValueError, r"test: expected 0 to 10,000 .*, got 10,001"),
        (lambda: splits(test=None), TypeError, "test: expected a whole number, got NoneType"),
        (lambda: native(0), ValueError, "number: expected 1 to 99, got 0"),
        (lambda: native(100), ValueError, "number: expected 1 to 99, got 100"),
        (lambda: sino(-1), ValueError, "number: expected 0 to 99,999,999, got -1"),
        (lambda: join("tea", "고"), ValueError, "word: expected Hangul at its end, got 'a'"),
        (lambda: noun_of("없는말"), LookupError, "the tables have no noun 없는말"),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=rf"^{message}$"):
        call()

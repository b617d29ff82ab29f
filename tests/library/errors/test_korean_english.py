"""Arguments that cannot be meant are refused by name."""

import pytest

from transformer_lib.datasets.korean_english import (
    KEY_PHRASES,
    LARGEST,
    generate,
    majority_accuracy,
    sense_accuracy,
    splits,
)
from transformer_lib.datasets.korean_english.morphology import (
    conjugate,
    copula,
    has_final,
    particle,
)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: generate(-1), ValueError, r"size: expected 0 to 1,000,000 sentences, got -1"),
        (lambda: generate(LARGEST + 1), ValueError, r"size: .*, got 1,000,001"),
        (lambda: generate(2.0), TypeError, "size: expected a whole number, got float"),
        (lambda: generate(True), TypeError, "size: expected a whole number, got bool"),
        (lambda: generate(1, seed="a"), TypeError, "seed: expected a whole number, got str"),
        (lambda: generate(1, seed=None), TypeError, "seed: expected a whole number, got NoneType"),
        (lambda: splits(train=-1), ValueError, r"train: expected 0 to 1,000,000 .*, got -1"),
        (lambda: splits(test=-1), ValueError, r"test: expected 0 to 1,000,000 .*, got -1"),
        (
            lambda: splits(test=10_001),
            ValueError,
            "test: expected at most 10,000 sentences, got 10,001",
        ),
        (lambda: splits(train="9"), TypeError, "train: expected a whole number, got str"),
        (lambda: splits(test=None), TypeError, "test: expected a whole number, got NoneType"),
        (lambda: splits(seed=1.5), TypeError, "seed: expected a whole number, got float"),
    ],
)
def test_sizes_and_seeds(call, error, message):
    with pytest.raises(error, match=rf"^{message}$"):
        call()


def test_translations_must_match():
    with pytest.raises(ValueError, match=r"^translations: expected 2, one for each .*, got 1$"):
        sense_accuracy(KEY_PHRASES, ["Indian curry restaurant"])


@pytest.mark.parametrize("sentences", [[], [KEY_PHRASES[0]._replace(senses=())]])
def test_there_must_be_a_homonym(sentences):
    with pytest.raises(ValueError, match=r"^sentences: expected at least one homonym, got none$"):
        sense_accuracy(sentences, ["" for _ in sentences])
    with pytest.raises(ValueError, match=r"^sentences: expected at least one homonym, got none$"):
        majority_accuracy(KEY_PHRASES, sentences)


@pytest.mark.parametrize(
    "function",
    [
        has_final,
        lambda word: particle(word, "은/는"),
        lambda word: conjugate(word, "아/어요"),
        lambda word: conjugate(word, "고"),
        lambda word: copula(word, "아/어요"),
    ],
)
@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("", "word: expected Hangul, got an empty string"),
        ("tea", "word: expected Hangul at its end, got 'a'"),
        ("차3", "word: expected Hangul at its end, got '3'"),
        ("ㅋ", "word: expected Hangul at its end, got 'ㅋ'"),
    ],
)
def test_only_hangul_conjugates(function, word, message):
    with pytest.raises(ValueError, match=rf"^{message}$"):
        function(word)

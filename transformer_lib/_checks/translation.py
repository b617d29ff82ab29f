"""Guards of chapter 14: texts, vocabularies, scores, the translator."""

import math
from collections.abc import Sequence
from typing import Any

from transformer_lib._checks.common import require_count

BEAMS = 100  # more have never been found to help, and each costs as much as the first


def train_tokenizer(texts: Any, vocabulary_size: Any) -> None:
    _several("texts", texts)
    require_count("vocabulary_size", vocabulary_size, 1)


def vocabulary(texts: Sequence[str], needed: int, vocabulary_size: int, special: int) -> None:
    """Stand before learning, once it is known how many tokens are ``needed`` at least."""
    if not any(texts):
        raise ValueError("texts: expected text, got none")
    if vocabulary_size < needed:
        raise ValueError(
            f"vocabulary_size: expected at least {needed}, one for each of {needed - special} "
            f"characters and {special} special tokens, got {vocabulary_size}"
        )


def plain_text(text: Any) -> None:
    if not isinstance(text, str):
        raise TypeError(f"text: expected str, got {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        raise ValueError(f"text: expected Unicode characters only, got {_start(text)}") from None


def token_ids(texts: Any) -> None:
    _several("texts", texts)


def score(translations: Any, references: Any) -> None:
    _several("translations", translations)
    _several("references", references)
    if not len(translations) or len(translations) != len(references):
        raise ValueError(
            f"references: expected one for each of {len(translations)} translations, and at least "
            f"one, got {len(references)}"
        )


def nearest_neighbours(known: Any, texts: Any) -> None:
    _several("known", known)
    _several("texts", texts)
    if not len(known):
        raise ValueError("known: expected at least one text, got none")


def translator(config: Any, tokenizer: Any, special: Sequence[str]) -> None:
    size = tokenizer.get_vocab_size()
    fitting = {"source_vocabulary": size, "target_vocabulary": size, "padding_id": 0}
    for name, expected in fitting.items():
        if (got := getattr(config, name)) != expected:
            raise ValueError(
                f"model: expected {name} = {expected} as the tokenizer has it, got {got}"
            )
    for number, token in enumerate(special):
        if tokenizer.token_to_id(token) != number:
            raise ValueError(
                f"tokenizer: expected {token} to be token {number}, as train_tokenizer makes "
                f"it, got {tokenizer.id_to_token(number)}"
            )


def translate_all(texts: Any, beams: Any, alpha: Any, rows: Any) -> None:
    if isinstance(texts, str):
        raise TypeError("texts: expected several texts, got one; use translate for that")
    require_count("beams", beams, 1, BEAMS)
    require_count("rows", rows, 1, 10_000)
    if isinstance(alpha, bool) or not isinstance(alpha, int | float):
        raise TypeError(f"alpha: expected a number, got {alpha!r}")
    if not math.isfinite(alpha):
        raise ValueError(f"alpha: expected a finite number, got {alpha}")


def sentence(
    text: str, words: Sequence[str], tokens: Sequence[int], unknown: int, most: int
) -> None:
    """Stand before the model: ``text`` has become ``words`` and these ``tokens`` with the end."""
    if not words:
        raise ValueError("text: expected words, got an empty text")
    if len(tokens) > most:
        raise ValueError(
            f"text: expected at most {most} tokens, got {len(tokens)} in the text that starts "
            f"with {_start(text)}; translate one sentence at a time"
        )
    characters, lost = sum(map(len, words)), tokens.count(unknown)
    if 2 * lost >= characters:
        raise ValueError(
            f"text: expected the script of the training texts; of {characters} characters {lost} "
            f"are unknown in {_start(text)}"
        )


def _start(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")


def _several(name: str, texts: Any) -> None:
    if isinstance(texts, str):
        raise TypeError(f"{name}: expected several texts, got one")

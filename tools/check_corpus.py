"""Hold the hand-written pairs to what their datasheet says.

``python tools/check_corpus.py`` checks format, patterns and splits. ``--measured FILE`` also names
the training pairs that come too close to a line of FILE (Korean, tab, English), which is only read.
"""

import argparse
import re
import sys
import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import get_args

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from transformer_lib.datasets import read_pairs  # noqa: E402
from transformer_lib.datasets.handwritten import HandwrittenPair, Split, handwritten  # noqa: E402

MOST = 5  # times that a pattern may occur
MOST_WORDS = 16

WORDS = {
    name: text.split()
    for name, text in tomllib.loads(
        Path(__file__).with_name("corpus_words.toml").read_text(encoding="utf-8")
    ).items()
}
ENDINGS = WORDS["endings"]
FINAL = {"ㄴ": "\u11ab", "ㄹ": "\u11af", "ㅁ": "\u11b7", "ㅂ": "\u11b8", "ㅆ": "\u11bb"}
KOREAN_FUNCTION_WORDS = frozenset(WORDS["korean_function_words"])
ENGLISH_FUNCTION_WORDS = frozenset(WORDS["english_function_words"])
NAMES = frozenset(WORDS["names"])


def _ending(text: str) -> str:
    return "".join(FINAL.get(letter, unicodedata.normalize("NFD", letter)) for letter in text)


LONGEST_FIRST = sorted(map(_ending, set(ENDINGS)), key=lambda ending: (-len(ending), ending))


def pattern(korean: str, english: str) -> tuple[str, str]:
    """Return what is left of a pair when content words are masked: endings and function words."""
    words = re.findall(r"[^\s.,?!]+|[.,?!]", korean)
    masked = [_masked(word) for word in words]
    others = re.findall(r"[A-Za-z0-9']+|[.,?!]", english)
    kept = [
        w if (w := word.lower()) in ENGLISH_FUNCTION_WORDS or w in ".,?!" else "_"
        for word in others
    ]
    return " ".join(masked), " ".join(kept)


def _masked(word: str) -> str:
    if word in ".,?!" or word in KOREAN_FUNCTION_WORDS:
        return word
    letters = unicodedata.normalize("NFD", word)
    for ending in LONGEST_FIRST:
        if letters.endswith(ending) and len(letters) > len(ending):
            return "_" + unicodedata.normalize("NFC", ending)
    return "_"


def format_faults(pairs: Iterable[HandwrittenPair]) -> Iterator[str]:
    """Yield what is wrong with characters, spaces, punctuation and lengths."""
    for pair in pairs:
        korean = pair.korean
        if unicodedata.normalize("NFC", korean) != korean:
            yield f"{korean}: is not in normal form NFC"
        if re.search(r"[^가-힣0-9A-Za-z .,?!:%~-]", korean) or not re.search("[가-힣]", korean):
            yield f"{korean}: has characters that are not expected"
        if re.search(r"  |\s[.,?!]|^\s|\s$", korean) or korean[-1] not in ".?!":
            yield f"{korean}: spaces or the last character are not as expected"
        if not pair.english:
            yield f"{korean}: has no English"
        for english in pair.english:
            if not re.fullmatch(r"[A-Z0-9$][A-Za-z0-9 .,?!':$%-]*[.?!]", english):
                yield f"{english}: is no sentence of the expected characters"
            if len(english.split()) > MOST_WORDS:
                yield f"{english}: has more than {MOST_WORDS} words"


def split_faults(splits: dict[str, Sequence[HandwrittenPair]]) -> Iterator[str]:
    """Yield patterns that occur too often or in two splits, and sentences in two splits."""
    times: dict[tuple[str, str], list[str]] = defaultdict(list)
    places: dict[str, set[str]] = defaultdict(set)
    for split, pairs in splits.items():
        for pair in pairs:
            times[pattern(pair.korean, pair.english[0])].append(split)
            for sentence in (pair.korean, *pair.english):
                places[re.sub(r"\W", "", sentence.lower())].add(split)
    for which, found in times.items():
        if len(found) > MOST:
            yield f"{which}: occurs {len(found)} times"
        if len(set(found)) > 1:
            yield f"{which}: is in {' and '.join(sorted(set(found)))}"
    for sentence, found_in in places.items():
        if len(found_in) > 1:
            yield f"{sentence}: is in {' and '.join(sorted(found_in))}"


def plain(sentence: str) -> tuple[str, ...]:
    """Return the words of a sentence, with names and numbers replaced by one sign each."""
    words = []
    for word in re.findall(r"\w+", sentence.lower()):
        name = next((n for n in NAMES if word.startswith(n) and len(word) - len(n) <= 2), "")
        words.append("#" if re.search(r"\d", word) else "@" + word[len(name) :] if name else word)
    return tuple(words)


def _nearly(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    if one == other:
        return True
    if max(len(one), len(other)) < 3:
        return False
    if len(one) == len(other):
        return sum(a != b for a, b in zip(one, other, strict=True)) <= 1
    shorter, longer = sorted((one, other), key=len)
    return len(longer) - len(shorter) == 1 and any(
        longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer))
    )


def close_pairs(
    training: Iterable[tuple[str, Sequence[str]]], measured: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Yield the Korean of training and measured pairs that come too close in both languages."""
    table: dict[tuple[str, ...], set[int]] = defaultdict(set)
    lines = [(korean, plain(korean), plain(english)) for korean, english in measured]
    for number, (_, words, _) in enumerate(lines):
        for key in _keys(words):
            table[key].add(number)
    for korean, englishes in training:
        words = plain(korean)
        for number in sorted(set().union(*(table.get(key, set()) for key in _keys(words)))):
            sentence, theirs, their_english = lines[number]
            if _nearly(words, theirs) and any(_nearly(plain(e), their_english) for e in englishes):
                yield korean, sentence


def _keys(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield what two sentences share that differ by at most one word."""
    yield words
    for i in range(len(words)):
        yield (*words[:i], "*", *words[i + 1 :])
        yield words[:i] + words[i + 1 :]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--measured", type=Path, help="real pairs that are only measured on")
    options = parser.parse_args(arguments)
    splits = {split: handwritten(split) for split in get_args(Split)}
    faults = [fault for pairs in splits.values() for fault in format_faults(pairs)]
    faults += split_faults(splits)
    if options.measured:
        training = [(pair.korean, pair.english) for pair in splits["train"]]
        for ours, theirs in close_pairs(training, read_pairs(options.measured)):
            faults.append(f"{ours}: too close to the measured {theirs}")
    print(*faults, sep="\n", end="\n" * bool(faults))
    sizes = ", ".join(f"{name} {len(pairs)}" for name, pairs in splits.items())
    print(f"{sizes}: {len(faults)} faults")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())

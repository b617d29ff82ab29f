"""Sentence pairs in files: your own, and 200 everyday sentences that no grammar made."""

import codecs
import os
import unicodedata
from importlib import resources
from pathlib import Path
from typing import Literal, NamedTuple

__all__ = ["Pair", "everyday", "read_pairs"]

_REPORTED = 10  # bad lines that an error spells out
_INVISIBLE = {"Cc", "Cf", "Zl", "Zp", "Zs"}  # controls, zero-width marks, separators


class Pair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


def read_pairs(file: str | os.PathLike[str], *, form: Literal["NFC", "NFKC"] = "NFC") -> list[Pair]:
    r"""Read pairs from a text file of lines ``source<TAB>target``.

    The file is UTF-8, with or without a byte order mark. Lines end with ``\n`` or ``\r\n`` and with
    nothing else: other characters at which ``str.splitlines`` breaks, such as U+2028, stay in the
    sentence. White space around a sentence is dropped. There is no quoting and no comment.

    Args:
        file: Path of the file.
        form: Unicode normal form of the sentences returned. NFC writes 한 as one character, also
            when the file has its three letters one by one (NFD), as names of files on macOS do.
            NFKC also replaces compatibility characters, such as full-width letters by ordinary
            ones, and the single letters of ㅋㅋ by the conjoining ones, which look different.

    Returns:
        One pair for each line, in the file's order; equal lines stay.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is empty, or has lines that are empty, have other than two columns or
            nothing visible on a side, or are not UTF-8. The message names ten of them by number.
    """
    if form not in ("NFC", "NFKC"):
        raise ValueError(f"form: expected 'NFC' or 'NFKC', got {form!r}")
    try:
        content = Path(file).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"file: expected a file of pairs, {file} does not exist") from None
    return _parse(content, form, os.fspath(file))


def everyday() -> list[Pair]:
    """Return 200 everyday Korean sentences with English translations, written by hand.

    They come from no grammar and no corpus, and are for testing. One translation stands for the
    many that would be right, so a score compares models and does not say how many are right.
    """
    content = resources.files(__package__).joinpath("everyday.tsv").read_bytes()
    return _parse(content, "NFC", "everyday.tsv")


def _parse(content: bytes, form: Literal["NFC", "NFKC"], name: str) -> list[Pair]:
    lines = content.removeprefix(codecs.BOM_UTF8).split(b"\n")
    if not lines[-1]:
        lines.pop()  # after the last line's end
    if not lines:
        raise ValueError(f"file: expected at least one pair, {name} is empty")
    pairs, bad = [], []
    for number, line in enumerate(lines, start=1):
        try:
            pairs.append(_parse_line(line, form))
        except ValueError as error:
            bad.append(f"line {number}: {error}")
    if bad:
        more = [f"and {len(bad) - _REPORTED} more"] if len(bad) > _REPORTED else []
        raise ValueError(
            f"file: expected lines source<TAB>target, {name} has {len(bad)} bad of {len(lines)}:\n"
            + "\n".join(bad[:_REPORTED] + more)
        )
    return pairs


def _parse_line(line: bytes, form: Literal["NFC", "NFKC"]) -> Pair:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        byte = line[error.start]
        raise ValueError(f"not UTF-8: 0x{byte:02x} at byte {error.start + 1}") from None
    if _is_blank(text):
        raise ValueError("empty")
    sides = [unicodedata.normalize(form, side).strip() for side in text.split("\t")]
    if len(sides) != 2:
        raise ValueError(f"{len(sides)} column{'s' * (len(sides) > 1)}")
    for side, which in zip(sides, Pair._fields, strict=True):
        if _is_blank(side):
            raise ValueError(f"{which} empty")
    return Pair(*sides)


def _is_blank(text: str) -> bool:
    return all(unicodedata.category(character) in _INVISIBLE for character in text)

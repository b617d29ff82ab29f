"""A file of pairs is read whole or refused, with the number of every bad line."""

import pytest

from transformer_lib.datasets import read_pairs


@pytest.fixture
def message(tmp_path):
    """Return a function from the bytes of a file to the error, without the file's path."""

    def message(content: bytes) -> str:
        path = tmp_path / "own.tsv"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"^file: expected .*own\.tsv") as caught:
            read_pairs(path)
        return str(caught.value).replace(str(path), "PATH")

    return message


LINES = "file: expected lines source<TAB>target, PATH has "


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"", "empty"),
        (b"\r", "empty"),
        (b"  ", "empty"),
        (b"\t", "empty"),
        ("\u3000".encode(), "empty"),
        ("배".encode(), "1 column"),
        ("배 ship".encode(), "1 column"),
        ("배\tship\tpear".encode(), "3 columns"),
        ("배\tship\t".encode(), "3 columns"),
        (b"\tship", "source empty"),
        (" \u200b\tship".encode(), "source empty"),
        ("배\t".encode(), "target empty"),
        ("배\t \r".encode(), "target empty"),
        ("배\t\ufeff".encode(), "target empty"),
        ("배".encode("cp949") + b"\tship", "not UTF-8: 0xb9 at byte 1"),
        ("배\t".encode() + b"\xff", "not UTF-8: 0xff at byte 5"),
        ("배\tshi".encode() + "배".encode()[:2], "not UTF-8: 0xeb at byte 8"),
    ],
)
def test_a_bad_line_is_named(message, line, what):
    good = "인도\tIndia\n".encode()
    assert message(good * 2 + line + b"\n" + good) == f"{LINES}1 bad of 4:\nline 3: {what}"


def test_the_last_line_counts_without_its_end(message):
    assert message("인도\tIndia\n배".encode()) == f"{LINES}1 bad of 2:\nline 2: 1 column"


def test_a_second_end_is_an_empty_line(message):
    assert message("인도\tIndia\n\n".encode()) == f"{LINES}1 bad of 2:\nline 2: empty"


def test_a_mark_does_not_count_as_text(message):
    assert message(b"\xef\xbb\xbf\n") == f"{LINES}1 bad of 1:\nline 1: empty"


def test_all_bad_lines_are_named_at_once(message):
    content = "인도\tIndia\n\n배\n눈\tsnow\n말\ta\tb\n".encode() + b"\xb9\t\n"
    assert message(content) == (
        f"{LINES}4 bad of 6:\n"
        "line 2: empty\nline 3: 1 column\nline 5: 3 columns\nline 6: not UTF-8: 0xb9 at byte 1"
    )


@pytest.mark.parametrize(("bad", "last"), [(10, "line 10: 1 column"), (11, "and 1 more")])
def test_ten_are_spelt_out(message, bad, last):
    lines = message("배\n".encode() * bad).splitlines()
    assert lines[0] == f"{LINES}{bad} bad of {bad}:"
    assert lines[1:11] == [f"line {number}: 1 column" for number in range(1, 11)]
    assert lines[-1] == last
    assert len(lines) == min(bad, 11) + 1


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_an_empty_file(message, content):
    assert message(content) == "file: expected at least one pair, PATH is empty"


def test_a_text_in_another_encoding(message):
    lines = message("배\tship\n".encode("utf-16")).splitlines()
    assert lines[1] == "line 1: not UTF-8: 0xff at byte 1"


def test_lines_that_end_as_on_old_computers_are_one_line(message):
    assert message("배\tship\r말\thorse\r".encode()) == f"{LINES}1 bad of 1:\nline 1: 3 columns"


def test_a_file_that_is_not_there(tmp_path):
    path = tmp_path / "lost.tsv"
    with pytest.raises(FileNotFoundError) as caught:
        read_pairs(path)
    assert str(caught.value) == f"file: expected a file of pairs, {path} does not exist"


def test_a_folder(tmp_path):
    with pytest.raises(OSError, match=tmp_path.name):
        read_pairs(tmp_path)


@pytest.mark.parametrize("form", ["NFD", "nfc", "", None])
def test_a_normal_form_that_is_not_offered(tmp_path, form):
    with pytest.raises(ValueError, match=f"^form: expected 'NFC' or 'NFKC', got {form!r}$"):
        read_pairs(tmp_path / "lost.tsv", form=form)

"""Files of pairs are read the same however they were written."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib import datasets
from transformer_lib.datasets import Pair, everyday, read_pairs

BOM = b"\xef\xbb\xbf"
# What str.splitlines takes for the end of a line, besides the two that end one here.
OTHER_LINE_ENDS = ("\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
NFD_INDIA = "\u110b\u1175\u11ab\u1103\u1169"  # 인도, letter by letter


@pytest.fixture
def read(tmp_path):
    """Return a function from the bytes of a file to its pairs."""

    def read(content: bytes, **options) -> list[Pair]:
        path = tmp_path / "own.tsv"
        path.write_bytes(content)
        return read_pairs(path, **options)

    return read


sentences = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\ufeff"),
        st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3),  # 가 to 힣
        st.sampled_from(OTHER_LINE_ENDS),
    ),
    max_size=12,
).map(lambda text: f"a{text}b")


@given(
    rows=st.lists(st.tuples(sentences, sentences), min_size=1, max_size=5),
    form=st.sampled_from(["NFC", "NFD"]),
    end=st.sampled_from(["\n", "\r\n"]),
    ended=st.booleans(),
    mark=st.sampled_from([b"", BOM]),
    space=st.sampled_from(["", " ", "\u3000", "\r", "\xa0 "]),
)
def test_what_was_written_is_read(tmp_path_factory, rows, form, end, ended, mark, space):
    lines = (f"{space}{source}{space}\t{space}{target}{space}" for source, target in rows)
    text = end.join(lines) + (end if ended else "")
    path = tmp_path_factory.getbasetemp() / "written.tsv"
    path.write_bytes(mark + unicodedata.normalize(form, text).encode())
    expected = [tuple(unicodedata.normalize("NFC", side) for side in row) for row in rows]
    assert read_pairs(path) == expected


def test_a_file_by_hand(read):
    content = BOM + "인도로 여행을 갔다.\tI went to India.\r\n배\t  pear \n배\tship".encode()
    pairs = read(content)
    assert pairs == [("인도로 여행을 갔다.", "I went to India."), ("배", "pear"), ("배", "ship")]
    assert all(isinstance(pair, Pair) for pair in pairs)
    assert (pairs[1].source, pairs[1].target) == ("배", "pear")


def test_the_path_may_be_text(tmp_path):
    path = tmp_path / "한국어.tsv"
    path.write_bytes("눈\tsnow\n".encode())
    assert read_pairs(str(path)) == read_pairs(path) == [("눈", "snow")]


def test_equal_lines_stay_in_order(read):
    rows = [("나", "I"), ("너", "you"), ("나", "I"), ("가", "go")]
    assert read("".join(f"{a}\t{b}\n" for a, b in rows).encode()) == rows


@pytest.mark.parametrize("character", OTHER_LINE_ENDS)
def test_no_other_character_ends_a_line(read, character):
    assert read(f"밤{character}밤\tnight{character}night\n말\thorse\n".encode()) == [
        (f"밤{character}밤", f"night{character}night"),
        ("말", "horse"),
    ]


def test_letter_by_letter_is_the_same_text(read):
    [pair] = read(f"{NFD_INDIA}\tcafe\u0301\n".encode())
    assert pair == ("인도", "caf\u00e9")
    assert len(pair.source) == 2


@pytest.mark.parametrize(
    ("form", "source", "target"),
    [("NFC", "ㅋㅋ", "ＡＢ\u3000Ｃ"), ("NFKC", "\u110f\u110f", "AB C")],
)
def test_only_nfkc_replaces_compatibility_characters(read, form, source, target):
    assert read("ㅋㅋ\tＡＢ\u3000Ｃ\n".encode(), form=form) == [(source, target)]


def test_a_byte_order_mark_is_one_only_at_the_start(read):
    [first, second] = read(BOM + "가\ta\n\ufeff나\tb\n".encode())
    assert (first.source, second.source) == ("가", "\ufeff나")


def test_everyday_sentences(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs = everyday()
    assert len(pairs) == len(set(pairs)) == 200
    assert len({source for source, _ in pairs}) == len({target for _, target in pairs}) == 200
    assert pairs[0] == ("안녕하세요, 오랜만이에요.", "Hello, it's been a long time.")
    for source, target in pairs:
        assert any("가" <= character <= "힣" for character in source), source
        assert target.isascii(), target
        assert target[0].isupper(), target
        assert source[-1] in ".?!", source
        assert target[-1] in ".?!", target
        assert (source[-1] == "?") == (target[-1] == "?"), source
        assert unicodedata.is_normalized("NFC", source)


def test_everyday_sentences_are_a_file_of_pairs():
    file = Path(datasets.__file__).with_name("everyday.tsv")
    assert read_pairs(file) == everyday()

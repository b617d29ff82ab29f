"""What cannot be translated, scored or read is refused by name, before anything is computed."""

import json
import math
import re
import sys

import pytest
import torch
from tokenizers import Tokenizer

from transformer_lib.transformer import Transformer, TransformerConfig
from transformer_lib.translation import (
    Translator,
    encode_pairs,
    nearest_neighbours,
    plain_text,
    score,
    token_ids,
    train_tokenizer,
)

TEXTS = (
    "인도 카레 전문점",
    "인도 주행 금지",
    "Indian curry restaurant",
    "No riding on the sidewalk",
)
TOKENIZER = train_tokenizer(TEXTS, 80)


def model(size: int = 80, **changes) -> Transformer:
    torch.manual_seed(0)
    sizes = {"d_model": 8, "n_heads": 2, "d_ff": 16, "max_length": 30}
    layers = {"n_encoder_layers": 1, "n_decoder_layers": 1}
    return Transformer(TransformerConfig(size, size, **{**sizes, **layers, **changes}))


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator(model(), TOKENIZER)


@pytest.fixture
def folder(translator, tmp_path):
    translator.save_pretrained(tmp_path)
    return tmp_path


def refused(message: str, kind: type[Exception] = ValueError):
    return pytest.raises(kind, match=f"^{re.escape(message)}")


# The vocabulary


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_a_vocabulary_of_nothing(texts):
    with refused("texts: expected text, got none"):
        train_tokenizer(texts, 100)


def test_one_text_is_not_several():
    with refused("texts: expected several texts, got one", TypeError):
        train_tokenizer("인도", 100)
    with refused("texts: expected several texts, got one", TypeError):
        token_ids(TOKENIZER, "인도")
    with refused("known: expected several texts, got one", TypeError):
        nearest_neighbours("인도", ["인도"])
    with refused("texts: expected several texts, got one", TypeError):
        nearest_neighbours(["인도"], "인도")


@pytest.mark.parametrize("text", [None, 3, b"a"])
def test_what_is_no_text(text):
    for call in (
        lambda: plain_text(text),
        lambda: token_ids(TOKENIZER, ["인도", text]),
        lambda: train_tokenizer(["인도", text], 100),
        lambda: encode_pairs(TOKENIZER, [("인도", text)]),
        lambda: nearest_neighbours([text], ["인도"]),
    ):
        with refused(f"text: expected str, got {type(text).__name__}", TypeError):
            call()
    with refused("text: expected Unicode characters only, got 'a\\udc80'"):
        token_ids(TOKENIZER, ["a\udc80"])


def test_a_vocabulary_that_is_too_small():
    # a, b, ▁ and four special tokens
    message = (
        "vocabulary_size: expected at least 7, one for each of 3 characters and 4 special tokens, "
        "got 6"
    )
    with refused(message):
        train_tokenizer(["a b"], 6)
    with refused(message):
        train_tokenizer(["ab"], 6)  # ▁ stands before the first word, spaces or not
    assert train_tokenizer(["a b"], 7).get_vocab_size() == 7


def test_syllables_are_counted_not_letters():
    # 가 각 are two characters, and three different letters when taken apart
    for text in ("가 각", "\u1100\u1161 \u1100\u1161\u11a8"):
        with refused("vocabulary_size: expected at least 7"):
            train_tokenizer([text], 6)
        assert train_tokenizer([text], 7).get_vocab_size() == 7


def test_pairs_need_two_sides():
    with pytest.raises(IndexError):
        encode_pairs(TOKENIZER, [("인도",)])


# The translator


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000", "\u00a0", "\ufeff", "\u200b \0"])
def test_an_empty_text(translator, text):
    with refused("text: expected words, got an empty text"):
        translator.translate(text)
    with refused("text: expected words, got an empty text"):
        translator.translate_all(["인도", text])


@pytest.mark.parametrize("text", [None, 3, b"a", ["인도"]])
def test_something_else_than_text(translator, text):
    with refused(f"text: expected str, got {type(text).__name__}", TypeError):
        translator.translate(text)


def test_one_text_for_several(translator):
    with refused("texts: expected several texts, got one; use translate", TypeError):
        translator.translate_all("인도")


@pytest.mark.parametrize(
    ("text", "unknown", "of"),
    [
        ("مرحبا بالعالم", 12, 12),
        ("你", 1, 1),
        ("你好", 2, 2),
        ("🙂", 1, 1),
        ("인 你", 1, 2),
        ("Ж Ж Ж", 3, 3),
    ],
)
def test_a_script_it_has_never_seen(translator, text, unknown, of):
    message = (
        f"text: expected the script of the training texts; of {of} characters {unknown} are "
        f"unknown in {text!r}"
    )
    with refused(message):
        translator.translate(text)


def test_fewer_unknown_than_known_are_let_pass(translator):
    assert isinstance(translator.translate("인도 你"), str)


@pytest.mark.parametrize("beams", [1, 4])
def test_ten_thousand_words(translator, beams):
    with refused(
        "text: expected at most 30 tokens, got 10001 in the text that starts with '인도 인도 인도"
    ) as caught:
        translator.translate("인도 " * 10_000, beams=beams)
    assert len(str(caught.value)) < 200
    assert "one sentence at a time" in str(caught.value)


def test_the_longest_text_is_as_long_as_the_table(translator):
    assert isinstance(translator.translate("인도 " * 29), str)  # and the end token
    with refused("text: expected at most 30 tokens, got 31"):
        translator.translate("인도 " * 30)


def test_half_a_surrogate_pair(translator):
    with refused(r"text: expected Unicode characters only, got '인도 \udc80'"):
        translator.translate("인도 \udc80")


@pytest.mark.parametrize("rows", [0, -1, 10**9])
def test_no_rows(translator, rows):
    with refused(f"rows: expected 1 to 10000, got {rows}"):
        translator.translate_all(["인도"], rows=rows)


@pytest.mark.parametrize("beams", [0, -2, 101, 10**9])
def test_no_beams_and_far_too_many(translator, beams):
    with refused(f"beams: expected 1 to 100, got {beams}"):
        translator.translate("인도", beams=beams)
    assert isinstance(translator.translate("인도", beams=20), str)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beams": 2.5}, "beams: expected a whole number, got 2.5"),
        ({"beams": "4"}, "beams: expected a whole number, got '4'"),
        ({"beams": True}, "beams: expected a whole number, got True"),
        ({"rows": 2.0}, "rows: expected a whole number, got 2.0"),
        ({"alpha": "1"}, "alpha: expected a number, got '1'"),
        ({"alpha": None}, "alpha: expected a number, got None"),
    ],
)
def test_counts_are_whole_numbers(translator, options, message):
    with refused(message, TypeError):
        translator.translate_all(["인도"], **options)


def test_numbers_that_are_none(translator):
    for alpha in (math.nan, math.inf):
        with refused(f"alpha: expected a finite number, got {alpha}"):
            translator.translate("인도", alpha=alpha)
    with refused("vocabulary_size: expected a whole number, got 80.0", TypeError):
        train_tokenizer(TEXTS, 80.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source_vocabulary": 81, "tied": "output"}, "source_vocabulary = 80"),
        ({"target_vocabulary": 79, "tied": "output"}, "target_vocabulary = 80"),
        ({"padding_id": 3}, "padding_id = 0"),
    ],
)
def test_a_tokenizer_of_another_model(changes, message):
    other = Transformer(TransformerConfig(**{**vars(model().config), **changes}))
    got = next(iter(changes.values()))
    with refused(f"model: expected {message} as the tokenizer has it, got {got}"):
        Translator(other, TOKENIZER)


def test_a_tokenizer_with_other_special_tokens():
    text = TOKENIZER.to_str().replace("<s>", "<start>")
    with refused("tokenizer: expected <s> to be token 1, as train_tokenizer makes it, got <start>"):
        Translator(model(), Tokenizer.from_str(text))


# Files


def test_no_such_translator(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = "name: neither a folder nor a name on the hub nor one of ko-en, scenes-detr: ko-de"
    with refused(message, FileNotFoundError):
        Translator.from_pretrained("ko-de")
    with refused("name: no tokenizer.json in ", FileNotFoundError):
        Translator.from_pretrained("scenes-detr")
    with refused("name: expected a name or a folder, got int", TypeError):
        Translator.from_pretrained(5)


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json", "model.safetensors"])
def test_a_file_is_missing(folder, name):
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=re.escape(name)):
        Translator.from_pretrained(folder)


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json", "model.safetensors"])
@pytest.mark.parametrize("content", ["half", "nothing", "noise", "a list"])
def test_a_file_is_damaged(folder, name, content):
    whole = (folder / name).read_bytes()
    damaged = {
        "half": whole[: len(whole) // 2],
        "nothing": b"",
        "noise": b"\xff\xfe" * 50,
        "a list": b"[1, 2]",
    }
    (folder / name).write_bytes(damaged[content])
    with pytest.raises(ValueError, match=r"^(file|name): ") as caught:
        Translator.from_pretrained(folder)
    assert str(folder) in str(caught.value)
    assert "\\xff" not in str(caught.value)  # nothing of what is in the file


def test_a_field_of_the_configuration_has_the_wrong_type(folder):
    fields = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**fields, "d_model": "8"}))
    with refused(f"name: the files in {folder} make no translator: d_model: expected int"):
        Translator.from_pretrained(folder)


def test_files_that_do_not_belong_together(folder):
    train_tokenizer(TEXTS, 70).save(str(folder / "tokenizer.json"))
    with refused(
        f"name: the files in {folder} make no translator: model: expected source_vocabulary = 70 "
        "as the tokenizer has it, got 80"
    ):
        Translator.from_pretrained(folder)


def test_weights_of_another_model(folder):
    model(d_ff=24).save_pretrained(folder / "other")
    (folder / "other" / "model.safetensors").replace(folder / "model.safetensors")
    with refused(f"name: the files in {folder} make no translator: ") as caught:
        Translator.from_pretrained(folder)
    assert "encoder.layers.0.feed_forward" in str(caught.value)


def test_a_failed_save_leaves_all_as_it_was(folder, translator, monkeypatch):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match=r"^file: cannot write .*: No space left on device$"):
        translator.save_pretrained(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


# Scores


def test_scoring_nothing():
    with refused("references: expected one for each of 0 translations, and at least one, got 0"):
        score([], [])


@pytest.mark.parametrize("references", [[], ["a", "b"]])
def test_not_as_many_references(references):
    with refused(
        "references: expected one for each of 1 translations, and at least one, "
        f"got {len(references)}"
    ):
        score(["a"], references)


def test_scoring_one_text():
    with refused("translations: expected several texts, got one", TypeError):
        score("a b c", ["a b c"])
    with refused("references: expected several texts, got one", TypeError):
        score(["a", "b", "c"], "abc")


def test_sacrebleu_is_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with refused(
        "score needs sacrebleu: pip install 'building-the-transformer[scores]'", ModuleNotFoundError
    ):
        score(["a"], ["a"])


def test_no_neighbours():
    with refused("known: expected at least one text, got none"):
        nearest_neighbours([], ["a"])

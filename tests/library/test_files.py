"""Files are whole or not there, and what is wrong with one is said with its name."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save, save_file
from torch import nn

from transformer_lib import files

DTYPES = list(files._DTYPES.values())


def some_tensors() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    tensors = {f"{n}.{dtype}": torch.randn(3, 2).to(dtype) for n, dtype in enumerate(DTYPES)}
    return tensors | {
        "ü": torch.ones(()),
        "가": torch.zeros(0, 3),
        "z": torch.arange(5),
        "a": torch.ones(2),
    }


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"progress": '{"a": "ü\\n"}'}])
def test_files_of_tensors_are_those_that_safetensors_writes(tmp_path, metadata):
    tensors = some_tensors()
    files.write_tensors(tmp_path / "new/file", tensors, metadata)
    assert (tmp_path / "new/file").read_bytes() == save(tensors, metadata)
    back = files.read_tensors(tmp_path / "new/file")
    assert back.keys() == tensors.keys()
    assert all(torch.equal(back[name], tensor) for name, tensor in tensors.items())
    assert all(back[name].dtype == tensor.dtype for name, tensor in tensors.items())
    assert files.read_metadata(tmp_path / "new/file") == (metadata or {})
    header = files.read_header(tmp_path / "new/file")
    for name, tensor in tensors.items():
        assert header[name].is_meta
        assert (header[name].shape, header[name].dtype) == (tensor.shape, tensor.dtype)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file"]


def test_tensors_that_lie_otherwise_in_memory_are_written(tmp_path):
    table = torch.arange(6.0).reshape(2, 3).requires_grad_()
    files.write_tensors(tmp_path / "file", {"a": table.T, "b": table, "c": table[:, 1]})
    back = files.read_tensors(tmp_path / "file")
    assert torch.equal(back["a"], table.T)
    assert torch.equal(back["b"], table)
    assert back["c"].tolist() == [1, 4]


def test_a_dtype_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(TypeError, match=r"^wrong: expected one of .* got torch\.complex64$"):
        files.write_tensors(tmp_path / "file", {"wrong": torch.ones(2, dtype=torch.complex64)})
    assert not list(tmp_path.iterdir())


WRITE_AND_DIE = """
import os, signal, sys, torch
from transformer_lib import files
real = os.fsync
os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)
files.write_tensors(sys.argv[1], {"a": torch.ones(1000)})
"""


def test_kills_leave_one_file_that_does_not_grow(tmp_path):
    file = tmp_path / "weights"
    files.write_tensors(file, {"a": torch.zeros(3)})
    before = file.read_bytes()
    for _ in range(3):
        died = subprocess.run([sys.executable, "-c", WRITE_AND_DIE, file], check=False)
        assert died.returncode == -signal.SIGKILL
        assert sorted(path.name for path in tmp_path.iterdir()) == ["weights", "weights.part"]
        assert file.read_bytes() == before
    files.write_tensors(file, {"a": torch.ones(3)})
    assert [path.name for path in tmp_path.iterdir()] == ["weights"]


def test_a_full_disk_or_a_locked_folder_changes_nothing(tmp_path, monkeypatch):
    files.write_model(tmp_path, "old", {"a": torch.zeros(3)})
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    message = r"^file: cannot write .*model\.safetensors: No space left on device$"
    with pytest.raises(OSError, match=message):
        files.write_model(tmp_path, "new", {"a": torch.ones(3)})
    with pytest.raises(OSError, match=r"^file: cannot write .*text: No space"):
        files.write_text(tmp_path / "text", "words")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    monkeypatch.undo()
    (tmp_path / "a file").write_text("")
    with pytest.raises(OSError, match=r"^file: cannot write .*a file/text"):
        files.write_text(tmp_path / "a file/text", "words")


def test_no_old_configuration_lies_beside_new_weights(tmp_path, monkeypatch):
    files.write_model(tmp_path, "old", {"a": torch.zeros(3)})
    real, renamed = Path.replace, []

    def dies(part: Path, place: Path) -> Path:
        if renamed:
            raise KeyboardInterrupt
        renamed.append(place.name)
        return real(part, place)

    monkeypatch.setattr(Path, "replace", dies)
    with pytest.raises(KeyboardInterrupt):
        files.write_model(tmp_path, "new", {"a": torch.ones(3)})
    assert renamed == ["model.safetensors"]
    assert not (tmp_path / "config.json").exists()
    monkeypatch.undo()
    files.write_model(tmp_path, "new", {"a": torch.ones(3)})
    assert (tmp_path / "config.json").read_text() == "new"
    assert not (tmp_path / "tokenizer.json").exists()
    files.write_model(tmp_path, "newest", {}, {"tokenizer.json": "가"})
    assert (tmp_path / "tokenizer.json").read_bytes() == "가".encode()
    (tmp_path / "tokenizer.json").unlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]


def test_texts(tmp_path):
    file = tmp_path / "folder/text"
    files.write_text(file, "één\n가\n")
    assert file.read_bytes() == "één\n가\n".encode()
    assert files.read_text(file) == "één\n가\n"
    file.write_bytes(b"\xef\xbb\xbf{}")
    assert files.read_text(file) == "{}"
    assert files.read_json(file) == {}
    file.write_bytes(b"ab\xff")
    with pytest.raises(ValueError, match=r"^file: .*text is no text in UTF-8: 0xff at byte 3$"):
        files.read_text(file)
    with pytest.raises(FileNotFoundError, match=r"^file: no such file: .*nothing$"):
        files.read_text(tmp_path / "nothing")


def test_json(tmp_path):
    content = {"a": [1, {"b": "가"}], "c": None}
    files.write_json(tmp_path / "file", content)
    assert (tmp_path / "file").read_text(encoding="utf-8").startswith('{\n  "a": [\n    1,')
    assert files.read_json(tmp_path / "file") == content
    with pytest.raises(TypeError):
        files.write_json(tmp_path / "file", {"a": object()})
    assert files.read_json(tmp_path / "file") == content
    deep = files._DEPTH
    assert files.parse_json(deep * "[" + deep * "]", "text")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected JSON, got an empty text"),
        (" \n", "expected JSON, got an empty text"),
        ("{", "not valid JSON: Expecting property name"),
        ("{'a': 1}", "not valid JSON: Expecting property name"),
        ("[1]", "expected a JSON object, got list"),
        ("3", "expected a JSON object, got int"),
        ("9" * 5000, "not valid JSON: a number of thousands of digits"),
        (65 * "[" + 65 * "]", "at most 64 levels deep"),
        (2000 * '{"a":' + "1" + 2000 * "}", "at most 64 levels deep"),
        (10**6 * "[", "at most 64 levels deep|not valid JSON"),
    ],
)
def test_json_that_cannot_be_read(tmp_path, text, message):
    (tmp_path / "file.json").write_text(text)
    with pytest.raises(ValueError, match=rf"^file: .*file\.json: .*({message})") as caught:
        files.read_json(tmp_path / "file.json")
    assert not isinstance(caught.value, json.JSONDecodeError)


def test_tokenizers_that_are_missing_or_damaged(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^name: no tokenizer\.json in "):
        files.read_tokenizer(tmp_path)
    for text in ("", "{}", "[1, 2]", '{"secret": 3}', 5000 * "[", '{"model": {"type": "secret"}}'):
        (tmp_path / "tokenizer.json").write_text(text)
        message = (
            r"^file: .*tokenizer\.json is no tokenizer, or is damaged(, see line 1 column \d+)?$"
        )
        with pytest.raises(ValueError, match=message):
            files.read_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"^file: .*tokenizer\.json is no text in UTF-8"):
        files.read_tokenizer(tmp_path)


# Models


def test_weights_are_loaded_whole_or_not_at_all(tmp_path):
    model = nn.Linear(2, 3)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for name, wrong, message in (
        ("weight", torch.ones(2, 2), r"weight has shape \(2, 2\), expected \(3, 2\)"),
        (
            "weight",
            torch.ones(3, 2).long(),
            r"weight has dtype torch.int64, expected torch.float32",
        ),
        ("more", torch.ones(1), "more is unexpected"),
        ("bias", None, "bias is missing"),
    ):
        state = before | {name: wrong}
        save_file({key: value for key, value in state.items() if value is not None}, tmp_path / "f")
        with pytest.raises(ValueError, match=f"^state: the tensors are not the model's: {message}"):
            files.load_weights(model, tmp_path / "f")
        assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    files.write_tensors(tmp_path / "f", {name: value + 1 for name, value in before.items()})
    files.load_weights(model, tmp_path / "f")
    assert all(torch.equal(before[key] + 1, value) for key, value in model.state_dict().items())


@pytest.mark.parametrize("spoil", [lambda b: b[:-1], lambda b: b"", lambda b: b"version https://"])
def test_damaged_files_of_tensors_are_named(tmp_path, spoil):
    (tmp_path / "f").write_bytes(spoil(save({"a": torch.ones(3)})))
    for read in (files.read_tensors, files.read_header, files.read_metadata):
        with pytest.raises(ValueError, match=r"^file: .*/f is truncated or no safetensors file: "):
            read(tmp_path / "f")
        with pytest.raises(FileNotFoundError, match=r"^file: no such file: .*nothing$"):
            read(tmp_path / "nothing")


def test_a_configuration_is_held_against_the_header_before_anything_is_built():
    header = {"weight": torch.empty(3, 2, device="meta"), "bias": torch.empty(3, device="meta")}
    built = []

    def build(*sizes: int) -> nn.Linear:
        built.append(torch.empty(0).device.type)
        return nn.Linear(*sizes)

    model = files.build_from(lambda: build(2, 3), header, 1)
    assert built == ["meta", "cpu"]
    assert model.weight.device.type == "cpu"
    built.clear()
    with pytest.raises(ValueError, match=r"^config: 3 layers and 2 tensors do not fit together$"):
        files.build_from(lambda: build(2, 3), header, 3)
    assert built == []
    with pytest.raises(ValueError, match=r"^state: .* weight has shape \(3, 2\), expected \(3, 10"):
        files.build_from(lambda: build(10**12, 3), header, 1)
    with pytest.raises(ValueError, match=r"^config: no model has these sizes: "):
        files.build_from(lambda: build(2**62, 2**62), header, 1)
    assert built == ["meta", "meta"]

    class Table(nn.Linear):
        def __init__(self) -> None:
            super().__init__(2, 3)
            self.register_buffer("table", torch.empty(10**6, 10**3), persistent=False)

    with pytest.raises(ValueError, match=r"^config: tables of 1000000000 numbers are more than"):
        files.build_from(Table, header, 1)


def test_only_ten_problems_are_named():
    state = {f"extra.{n}": torch.ones(1) for n in range(30)}
    with pytest.raises(ValueError, match=r"extra\.7 is unexpected; and 22 more$"):
        files.require_state(nn.Linear(2, 3), state)

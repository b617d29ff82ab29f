"""Names lead to folders, and kinds of models to whoever reads them."""

import os
from pathlib import Path

import pytest
import torch

os.environ["HF_HUB_OFFLINE"] = "1"

from transformer_lib import hub
from transformer_lib.published.whisper import SpeechTransformer
from transformer_lib.transformer import TextEncoder, Transformer, TransformerConfig


def test_what_is_shipped():
    assert hub.shipped_models() == ["ko-en", "scenes-detr"]
    for name in hub.shipped_models():
        assert (hub.find_published(name) / "model.safetensors").is_file()


@pytest.mark.without_shape_checks
def test_names_and_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("ko-en").mkdir()
    with pytest.warns(UserWarning, match=r"^name: the library's ko-en is read, not \./ko-en$"):
        assert hub.find_published("ko-en") != Path("ko-en")
    for own in ("./ko-en", Path("ko-en"), tmp_path / "ko-en"):
        assert hub.find_published(own).samefile("ko-en")
    for name in (None, 5, b"ko-en", ["ko-en"]):
        with pytest.raises(TypeError, match=r"^name: expected a name or a folder, got "):
            hub.find_published(name)
    with pytest.raises(FileNotFoundError, match=r"^name: neither a folder nor a name"):
        hub.find_published("a\0b")


def test_every_kind_has_a_reader():
    kinds = {name: reader.model_class for name, reader in hub.READERS.items()}
    assert kinds["bert"] is TextEncoder
    assert kinds["marian"] is Transformer
    assert kinds["whisper"] is SpeechTransformer


@pytest.mark.parametrize("kind", [None, 3, ["marian"], {"a": 1}, "", "x" * 1000])
def test_kinds_that_are_no_names(kind, tmp_path):
    with pytest.raises(ValueError, match=r"^name: expected .* kind marian for Transf") as caught:
        hub.read_published(Transformer, {"model_type": kind}, tmp_path)
    assert len(str(caught.value)) < 200 + len(str(tmp_path))


SIZES = {"d_model": 8, "n_heads": 2, "d_ff": 16, "n_encoder_layers": 1, "n_decoder_layers": 1}


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("n_decoder_layers", 2**63),
        ("n_encoder_layers", 10**9),
        ("source_vocabulary", 10**8),
        ("d_ff", 10**9),
        ("d_model", 2**62),
        ("max_length", 10**12),
        ("max_length", 2**62),
    ],
)
def test_our_own_configurations_are_not_believed_either(name, number, tmp_path):
    """R13: held against the header of the weights, before anything is built."""
    model = Transformer(TransformerConfig(12, 12, **SIZES, max_length=20, tied="output"))
    model.save_pretrained(tmp_path)
    text = (tmp_path / "config.json").read_text()
    value = getattr(model.config, name)
    (tmp_path / "config.json").write_text(text.replace(f'"{name}": {value}', f'"{name}": {number}'))
    with pytest.raises(ValueError, match=r"^(config|state): "):
        Transformer.from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(text)
    state = Transformer.from_pretrained(tmp_path).state_dict()
    assert all(torch.equal(state[key], tensor) for key, tensor in model.state_dict().items())

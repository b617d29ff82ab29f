"""Files and folders that no model can be read from are refused, and nothing is half-loaded."""

import copy
import pickle
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from transformer_lib.files import load_weights, require_state
from transformer_lib.transformer import (
    TextEncoder,
    Transformer,
    TransformerConfig,
)

CONFIG = TransformerConfig(
    12, 12, d_model=8, n_heads=2, n_encoder_layers=1, n_decoder_layers=1, d_ff=16, max_length=6
)


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(0)
    return Transformer(CONFIG).eval()


def untouched(model: nn.Module, before: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def write_pickle(path) -> None:
    path.write_bytes(pickle.dumps({"weight": 1}))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes()[:100]),
        lambda path: path.write_bytes(path.read_bytes()[:4]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes() + b"x"),
        lambda path: path.write_text("no safetensors at all, but long enough to have a header"),
        write_pickle,
    ],
    ids=["last byte", "in the header", "4 bytes", "empty", "one too many", "text", "pickle"],
)
def test_truncated_and_foreign_files(model, spoil, tmp_path):
    model.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    spoil(file)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match=r"^file: .*model\.safetensors is truncated or no safet"):
        load_weights(model, file)
    assert untouched(model, before)
    with pytest.raises(ValueError, match=r"^file: .*model\.safetensors is truncated or no safet"):
        Transformer.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda state: state.pop("encoder.layers.0.feed_forward.inner.bias"),
            "encoder.layers.0.feed_forward.inner.bias is missing",
        ),
        (lambda state: state.update(extra=torch.ones(2)), "extra is unexpected"),
        (
            lambda state: state.update({"embedding.source.weight": torch.ones(13, 8)}),
            r"embedding.source.weight has shape \(13, 8\), expected \(12, 8\)",
        ),
    ],
)
def test_tensors_that_are_not_the_model_s(model, change, message, tmp_path):
    model.save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    state = {name: tensor + 1 for name, tensor in state.items()}
    change(state)
    save_file(state, tmp_path / "model.safetensors")
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match=f"^state: the tensors are not the model's: {message}$"):
        load_weights(model, tmp_path / "model.safetensors")
    assert untouched(model, before)


def test_a_checkpoint_of_another_shape(model, tmp_path):  # facebookresearch/detr#386
    model.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(replace(CONFIG, d_model=16).to_json())
    with pytest.raises(
        ValueError, match=r"has shape \(12, 8\), expected \(12, 16\).*and \d+ more$"
    ):
        Transformer.from_pretrained(tmp_path)
    another = Transformer(replace(CONFIG, d_model=16))
    with pytest.raises(ValueError, match="has shape") as caught:
        require_state(another, model.state_dict())
    assert str(caught.value).count("has shape") == 10


def test_a_checkpoint_of_another_kind(model, tmp_path):
    model.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"decoder.layers.0.*is unexpected"):
        TextEncoder.from_pretrained(tmp_path)
    TextEncoder(CONFIG).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"decoder.layers.0.*is missing"):
        Transformer.from_pretrained(tmp_path)


def test_missing_and_foreign_configurations(model, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^name: neither a folder nor .*nowhere$"):
        Transformer.from_pretrained(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"^file: no such file: .*config\.json$"):
        Transformer.from_pretrained(tmp_path / "empty")
    model.save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    for text, error, message in (
        (
            '{"model_type": "marian", "vocab_size": 9}',
            ValueError,
            "^published: expected an entry",
        ),
        ('{"model_kind": "marian", "vocab_size": 9}', ValueError, "unknown fields model_kind, voc"),
        (config.read_text()[:40], ValueError, "not valid JSON"),
        (config.read_text().replace("8", '"8"', 1), TypeError, "d_model: expected int, got '8'"),
    ):
        config.write_text(text)
        with pytest.raises(error, match=message):
            Transformer.from_pretrained(tmp_path)
        model.save_pretrained(tmp_path)
    config.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"config\.json is no text in UTF-8"):
        Transformer.from_pretrained(tmp_path)
    model.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"^file: no such file: .*model\.safetensors"):
        Transformer.from_pretrained(tmp_path)


def test_a_configuration_of_more_layers_than_tensors(model, tmp_path):
    """It is refused before a single layer is built."""
    model.save_pretrained(tmp_path)
    for name in ("n_encoder_layers", "n_decoder_layers"):
        (tmp_path / "config.json").write_text(replace(CONFIG, **{name: 500}).to_json())
        with pytest.raises(ValueError, match=r"^config: 500 layers and \d+ tensors do not"):
            Transformer.from_pretrained(tmp_path)


def test_a_failed_save_leaves_the_older_model(model, tmp_path, monkeypatch):
    model.save_pretrained(tmp_path)
    before = (tmp_path / "model.safetensors").read_bytes()

    def full(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        Transformer(CONFIG).save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").read_bytes() == before
    assert untouched(Transformer.from_pretrained(tmp_path), model.state_dict())

"""What no model can be built from or run on is refused by name, and nothing is half-loaded."""

import copy
import json
import pickle
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from transformer_lib.files import load_weights, require_state
from transformer_lib.layers import Decoder, DecoderLayer, Encoder, EncoderLayer
from transformer_lib.multi_head_attention import KeysValues
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


def ids(*shape: int) -> torch.Tensor:
    return torch.randint(1, 12, shape, generator=torch.Generator().manual_seed(0))


# The configuration


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"d_model": 10, "n_heads": 4}, ValueError, "n_heads: expected a divisor of d_model = 10"),
        ({"d_model": 0}, ValueError, "d_model: expected 1 or more, got 0"),
        ({"n_heads": 0}, ValueError, "n_heads: expected 1 or more, got 0"),
        ({"d_ff": 0}, ValueError, "d_ff: expected 1 or more, got 0"),
        ({"max_length": 0}, ValueError, "max_length: expected 1 or more, got 0"),
        ({"source_vocabulary": 0}, ValueError, "source_vocabulary: expected 1 or more, got 0"),
        ({"target_vocabulary": -1}, ValueError, "target_vocabulary: expected 1 or more, got -1"),
        ({"n_encoder_layers": -1}, ValueError, "n_encoder_layers: expected 0 or more, got -1"),
        ({"n_decoder_layers": -2}, ValueError, "n_decoder_layers: expected 0 or more, got -2"),
        ({"dropout": 1.5}, ValueError, "dropout: expected a probability from 0 to 1, got 1.5"),
        ({"attention_dropout": -0.1}, ValueError, "attention_dropout: expected a probability"),
        ({"feed_forward_dropout": float("nan")}, ValueError, "feed_forward_dropout: expected a pr"),
        ({"norm_eps": 0.0}, ValueError, "norm_eps: expected a number above 0, got 0.0"),
        ({"activation": "tanh"}, ValueError, r"activation: expected one of \('relu', .*'tanh'"),
        ({"positions": "rotary"}, ValueError, "positions: expected one of .*, got 'rotary'"),
        ({"position_layout": "x"}, ValueError, "position_layout: expected one of .*, got 'x'"),
        ({"tied": True}, ValueError, "tied: expected one of .*, got True"),
        (
            {"source_vocabulary": 7851, "target_vocabulary": 5972},
            ValueError,
            "tied: 'all' needs one vocabulary .* source_vocabulary = 7851 .* = 5972",
        ),
        ({"padding_id": 37_000}, ValueError, "padding_id: expected an id of both .*, got 37000"),
        ({"padding_id": -1}, ValueError, "padding_id: expected an id of both .*, got -1"),
        ({"d_model": "512"}, TypeError, "d_model: expected int, got '512'"),
        ({"d_model": 512.0}, TypeError, "d_model: expected int, got 512.0"),
        ({"n_heads": True}, TypeError, "n_heads: expected int, got True"),
        ({"dropout": None}, TypeError, "dropout: expected float, got None"),
        ({"norm_first": 1}, TypeError, "norm_first: expected bool, got 1"),
        ({"final_norm": "yes"}, TypeError, "final_norm: expected bool or NoneType, got 'yes'"),
    ],
)
def test_no_model_can_be_built_from(options, error, message):
    with pytest.raises(error, match=f"^{message}"):
        TransformerConfig(**options)
    if options != {"feed_forward_dropout": float("nan")}:
        with pytest.raises(error, match=f"^{message}"):
            TransformerConfig.from_json(json.dumps(options))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "config: not valid JSON: Expecting property name"),
        ("", "config: not valid JSON"),
        ("[512, 8]", "config: expected a JSON object, got list"),
        ('{"hidden_size": 768, "d_model": 512}', "config: unknown fields hidden_size"),
        ('{"b": 1, "a": 2}', "config: unknown fields a, b"),
    ],
)
def test_json_that_is_no_configuration(text, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        TransformerConfig.from_json(text)


def test_a_whole_number_serves_where_a_fraction_may_stand():
    config = TransformerConfig.from_json('{"dropout": 0, "norm_eps": 1}')
    assert (config.dropout, config.norm_eps) == (0, 1)


def test_an_odd_width_works_in_the_paper_s_layout_only():
    odd = replace(CONFIG, d_model=9, n_heads=3)
    assert Transformer(odd)(ids(1, 2), ids(1, 2)).shape == (1, 2, 12)
    with pytest.raises(ValueError, match=r"layout: .*'halves' with d_model = 9"):
        Transformer(replace(odd, position_layout="halves"))


@pytest.mark.parametrize("layer", [EncoderLayer, DecoderLayer])
def test_layers_name_what_does_not_fit(layer):
    with pytest.raises(ValueError, match="n_heads: expected a divisor of d_model = 8, got 3"):
        layer(8, 3, 16)
    with pytest.raises(ValueError, match=r"activation: expected one of .*'tanh'"):
        layer(8, 2, 16, activation="tanh")


# Running


@pytest.mark.parametrize(
    ("source", "target", "error", "message"),
    [
        (ids(2, 3), ids(3, 3), ValueError, r"target: expected batch = 2 as in source .*batch = 3"),
        (ids(3), ids(1, 3), ValueError, r"source: expected token ids of shape .*got \(3,\)"),
        (ids(1, 3), ids(1, 3, 2), ValueError, r"target: expected token ids .*got \(1, 3, 2\)"),
        ([[1, 2]], ids(1, 3), ValueError, "source: expected token ids .*got list"),
        (ids(1, 7), ids(1, 3), ValueError, "7 positions from offset 0"),
        (ids(1, 3), ids(1, 7), ValueError, "7 positions from offset 0"),
        (torch.tensor([[12]]), ids(1, 3), ValueError, "ids from 0 to 11, got ids from 12 to 12"),
        (ids(1, 3), torch.tensor([[3, -1]]), ValueError, "ids from 0 to 11, got ids from -1 to 3"),
        (ids(1, 3).float(), ids(1, 3), TypeError, "torch.float32"),
        (ids(1, 3), ids(1, 3) > 2, TypeError, "torch.bool"),
    ],
)
def test_sentences_that_cannot_be_meant(model, source, target, error, message):
    with pytest.raises(error, match=message):
        model(source, target)


@pytest.mark.parametrize("name", ["source_key_mask", "target_key_mask"])
@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        (torch.ones(2, 3), TypeError, "expected a boolean tensor .* got torch.float32"),
        (torch.zeros(2, 3).long(), TypeError, "expected a boolean tensor .* got torch.int64"),
        (torch.ones(2, 4).bool(), ValueError, r"expected shape \(2, 3\) .*got \(2, 4\)"),
        (torch.ones(3).bool(), ValueError, r"expected shape \(2, 3\) .*got \(3,\)"),
        (torch.ones(2, 3, 3).bool(), ValueError, r"expected shape \(2, 3\) .*got \(2, 3, 3\)"),
    ],
)
def test_masks_that_do_not_fit(model, name, mask, error, message):  # pytorch/pytorch#92554
    with pytest.raises(error, match=f"^{name}: {message}"):
        model(ids(2, 3), ids(2, 3), **{name: mask})


def test_the_text_encoder_names_them_too():
    model = TextEncoder(CONFIG)
    with pytest.raises(ValueError, match=r"^source: expected token ids .*got \(3,\)"):
        model(ids(3))
    with pytest.raises(TypeError, match=r"^key_mask: expected a boolean tensor"):
        model(ids(1, 3), key_mask=torch.ones(1, 3))


def test_three_axes_of_a_mask_are_refused(model):
    x = torch.randn(2, 3, 8)
    mask = torch.ones(2, 3, 3, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"mask: .*got \(2, 3, 3\)"):
        model.encoder(x, mask=mask)
    with pytest.raises(ValueError, match=r"mask: .*got \(2, 3, 3\)"):
        model.decoder(x, x, mask=mask)
    with pytest.raises(ValueError, match=r"mask: .*got \(2, 3, 3\)"):
        model.decoder(x, x, memory_mask=mask)


def test_swapped_arguments(model):  # harvardnlp/annotated-transformer#134
    source, target = ids(2, 3), ids(2, 3)
    memory = model.encode(source)
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        model.decode(memory, target)
    with pytest.raises(ValueError, match=r"^target: expected token ids .*got \(2, 3, 8\)"):
        model.decode(memory, memory=target)
    with pytest.raises(TypeError, match=r"^memory: expected a floating-point tensor"):
        model.decode(target, memory=source)
    with pytest.raises(TypeError, match="positional arguments"):
        model(source, target, source != 0)
    with pytest.raises(TypeError, match="positional arguments"):
        model.encode(source, source != 0)


class Forgetful:
    """A cache that gives back what it was not given."""

    memory = None

    def __init__(self, given: KeysValues):
        self.given = given

    def __call__(self, new: KeysValues) -> KeysValues:
        """Return what was given."""
        return self.given


def test_memory_and_caches_that_do_not_fit(model):
    memory = torch.randn(2, 5, 8)
    with pytest.raises(TypeError, match=r"^memory: expected a torch.Tensor, got list"):
        model.decode(ids(2, 3), memory=[memory])
    with pytest.raises(ValueError, match=r"^cache: expected one for each of 1 layers, got 0"):
        model.decode(ids(2, 3), memory=memory, cache=[])
    with pytest.raises(ValueError, match=r"^memory: expected batch = 3 as in x, got 2"):
        model.decode(ids(3, 3), memory=memory)
    with pytest.raises(ValueError, match="offset"):
        model.decode(ids(2, 3), memory=memory, offset=4)  # the table has 6 positions
    with pytest.raises(ValueError, match=r"key_mask: .*\(2, 5\).*\(2, 4\)"):
        model.decode(ids(2, 3), memory=memory, memory_key_mask=torch.ones(2, 4).bool())
    with pytest.raises(ValueError, match=r"^memory: .*d_model = 8.*got \(2, 5, 9\)"):
        model.decode(ids(2, 3), memory=torch.randn(2, 5, 9))
    one = KeysValues(torch.randn(2, 2, 1, 4), torch.randn(2, 2, 1, 4))
    with pytest.raises(ValueError, match=r"at most 1 queries .*got 3"):
        model.decode(ids(2, 3), memory=memory, cache=[Forgetful(one)])


def test_vectors_of_another_width():
    for stack in (Encoder(1, 8, 2, 16), EncoderLayer(8, 2, 16)):
        with pytest.raises(ValueError, match=r"d_model = 8.*got \(2, 3, 9\)"):
            stack(torch.randn(2, 3, 9))
    with pytest.raises(TypeError, match="unexpected keyword argument 'masks'"):
        Encoder(1, 8, 2, 16)(torch.randn(2, 3, 8), masks=None)
    with pytest.raises(TypeError, match="unexpected keyword argument 'heads'"):
        Decoder(1, 8, 2, 16, heads=3)


# Loading


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
    with pytest.raises(FileNotFoundError, match=r"^name: no config\.json in .*empty"):
        Transformer.from_pretrained(tmp_path / "empty")
    model.save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    for text, error, message in (
        (
            '{"model_type": "marian", "vocab_size": 9}',
            ValueError,
            "entry 'encoder_attention_heads'",
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
    with pytest.raises(ValueError, match="utf-8"):
        Transformer.from_pretrained(tmp_path)
    model.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"^file: no such file: .*model\.safetensors"):
        Transformer.from_pretrained(tmp_path)


def test_a_failed_save_leaves_the_older_model(model, tmp_path, monkeypatch):
    model.save_pretrained(tmp_path)
    before = (tmp_path / "model.safetensors").read_bytes()

    def full(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr("transformer_lib.transformer.save_file", full)
    with pytest.raises(OSError, match="No space left"):
        Transformer(CONFIG).save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").read_bytes() == before
    assert untouched(Transformer.from_pretrained(tmp_path), model.state_dict())

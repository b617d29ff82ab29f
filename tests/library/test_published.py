"""Models that others trained give here what they give at home; no network is needed."""

import copy
import json
import os
import pickle
import struct
import warnings
import wave
from contextlib import suppress
from importlib import resources
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

os.environ["HF_HUB_OFFLINE"] = "1"

from transformer_lib import hub as library_hub
from transformer_lib.decoding import beam_search, greedy
from transformer_lib.hub import check_sha256, find_published
from transformer_lib.interchange.ctranslate2 import read_ctranslate2, whisper_from_ctranslate2
from transformer_lib.published.audio import log_mel_spectrogram, mel_filters
from transformer_lib.published.marian import MarianTranslator
from transformer_lib.published.search import Restricted
from transformer_lib.published.sentences import SentenceEncoder
from transformer_lib.published.transcriber import Transcriber
from transformer_lib.published.wav import read_wav
from transformer_lib.published.whisper import (
    SpeechConfig,
    SpeechDecoder,
    SpeechTransformer,
    speech_from_whisper,
)
from transformer_lib.transformer import TextEncoder, Transformer, TransformerConfig

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
WHISPER = "openai/whisper-tiny.en"
RECORDING = resources.files("transformer_lib") / "datasets/speech/where_to_look.wav"
SAID = "The decoder asks the encoder where to look."


@pytest.fixture(scope="module")
def hugging_face():
    """Import transformers once, quietly."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import transformers

        transformers.utils.logging.disable_progress_bar()
        transformers.utils.logging.set_verbosity_error()
        for name in ("MarianMTModel", "BertModel", "WhisperForConditionalGeneration"):
            assert getattr(transformers, name)
    return transformers


@pytest.fixture(scope="module")
def sentences() -> SentenceEncoder:
    return SentenceEncoder.from_pretrained(MINILM)


@pytest.fixture(scope="module")
def transcriber() -> Transcriber:
    return Transcriber.from_pretrained(WHISPER)


def shaken(model: nn.Module, seed: int = 0) -> nn.Module:
    """Move all weights, also those that start at 0 and 1."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


# MiniLM


@torch.inference_mode()
def test_minilm_gives_the_vectors_of_bert(hugging_face, sentences):
    theirs = hugging_face.BertModel.from_pretrained(find_published(MINILM)).eval()
    tokens = sentences.tokens(
        ["We sat on the bank.", "Hello", "", "It's 3 o'clock, naïve café! 한국어"]
    )
    real = tokens != 0
    assert not real.all()
    expected = theirs(tokens, attention_mask=real.long()).last_hidden_state
    assert (sentences.model(tokens) - expected)[real].abs().max() <= 1e-5


def test_similarities_of_the_model_s_page(sentences):
    vectors = sentences.encode(
        [
            "That is a happy person",
            "That is a happy dog",
            "That is a very happy person",
            "Today is a sunny day",
        ]
    )
    expected = torch.tensor([0.695, 0.943, 0.257])
    torch.testing.assert_close(vectors[1:] @ vectors[0], expected, atol=6e-4, rtol=0)
    torch.testing.assert_close(vectors.norm(dim=-1), torch.ones(4))


def test_a_sentence_does_not_depend_on_its_neighbours(sentences):
    alone = sentences.encode(["Reeds grow here."])
    together = sentences.encode(
        ["Reeds grow here.", "And a much longer sentence stands beside it."]
    )
    torch.testing.assert_close(together[:1], alone, atol=1e-5, rtol=0)
    assert sentences.encode([]).shape == (0, 384)


def test_vectors_can_be_learnt_from(sentences):
    """N12: what comes out is no tensor of inference mode."""
    vectors = sentences.encode(["a cat", "a dog"])
    head = nn.Linear(384, 2)
    head(vectors).sum().backward()
    assert head.weight.grad.abs().sum() > 0
    assert not vectors.requires_grad
    assert not vectors.is_inference()


def test_a_text_is_cut_where_the_publisher_cuts_it(hugging_face, sentences):
    """N10 (huggingface/text-embeddings-inference#146): 256 tokens, says a file of the folder."""
    assert sentences.settings == (256, True)
    words = [
        *[
            "we",
            "sat",
            "on",
            "the",
            "bank",
            "of",
            "the",
            "river",
            "and",
            "fished",
            "there",
            "all",
            "day",
        ],
        "long",
    ] * 29
    long = sentences.encode([" ".join(words)])[0]
    assert len(words) == 406
    assert sentences.tokens([" ".join(words)]).shape == (1, 256)
    torch.testing.assert_close(long, sentences.encode([" ".join(words[:254])])[0])
    other = SentenceEncoder.from_pretrained(MINILM)
    uncut = SentenceEncoder(other.model, other.tokenizer)
    assert uncut.encode([" ".join(words)])[0] @ long < 0.999
    # as its own library does: mean over 256 tokens of BERT's
    theirs = hugging_face.BertModel.from_pretrained(find_published(MINILM)).eval()
    tokens = sentences.tokens([" ".join(words)])
    with torch.inference_mode():
        mean = theirs(tokens).last_hidden_state.mean(dim=1)
    torch.testing.assert_close(long, nn.functional.normalize(mean, dim=-1)[0], atol=1e-5, rtol=0)


def test_vectors_are_scaled_as_settings_say(sentences, tmp_path):
    folder = find_published(MINILM)
    for path in folder.rglob("*"):
        if path.suffix in (".json", ".safetensors"):
            copy = tmp_path / path.relative_to(folder)
            copy.parent.mkdir(exist_ok=True)
            copy.symlink_to(path)
    modules = json.loads((folder / "modules.json").read_text())
    (tmp_path / "modules.json").unlink()
    (tmp_path / "modules.json").write_text(json.dumps(modules[:2]))
    (tmp_path / "sentence_bert_config.json").unlink()
    plain = SentenceEncoder.from_pretrained(tmp_path)
    assert plain.settings == (None, False)
    texts = ["a cat", "That is a happy person"]
    vectors = plain.encode(texts)
    assert (vectors.norm(dim=-1) - 1).abs().min() > 0.1
    torch.testing.assert_close(nn.functional.normalize(vectors, dim=-1), sentences.encode(texts))


SPELT = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"]


@pytest.mark.parametrize("token", SPELT)
def test_special_tokens_in_a_sentence_are_text(sentences, token):
    text = f"a {token} cat"
    special = {sentences.tokenizer.token_to_id(name) for name in SPELT}
    inside = sentences.tokens([text])[0, 1:-1].tolist()
    assert not special & set(inside)
    alone = sentences.encode([text])
    together = sentences.encode([text, "And a much longer sentence stands beside it."])
    torch.testing.assert_close(together[:1], alone, atol=1e-5, rtol=0)
    for other in (pickle.loads(pickle.dumps(sentences)), copy.deepcopy(sentences)):
        assert torch.equal(other.encode([text]), alone)
        assert other.settings == sentences.settings
        assert other.tokens(["word " * 400]).shape == (1, 256)
    assert torch.equal(sentences.encode([f"\ufeffa \u200b{token} cat\u00ad"]), alone)


def test_padding_is_known_by_lengths_and_not_by_ids(sentences, monkeypatch):
    ids = [[101, 0, 4937, 102], [101, 102]]  # the padding token's number inside a sentence
    monkeypatch.setattr("transformer_lib.published.sentences.token_ids", lambda *_: ids)
    one = sentences.encode(["a", "b"])[0]
    monkeypatch.setattr("transformer_lib.published.sentences.token_ids", lambda *_: ids[:1])
    torch.testing.assert_close(sentences.encode(["a"])[0], one, atol=1e-5, rtol=0)
    with torch.no_grad():
        real = torch.ones(1, 4, dtype=torch.bool)
        vectors = sentences.model(torch.tensor(ids[:1]), key_mask=real)
    expected = nn.functional.normalize(vectors.mean(dim=1), dim=-1)[0]
    torch.testing.assert_close(one, expected, atol=1e-5, rtol=0)


def test_bert_folders_with_and_without_a_head(hugging_face, tmp_path):
    sizes = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 4, "intermediate_size": 32, "max_position_embeddings": 32}
    tokens = torch.randint(1, 40, (2, 6), generator=torch.Generator().manual_seed(0))
    for name in ("BertModel", "BertForMaskedLM"):
        theirs = shaken(getattr(hugging_face, name)(hugging_face.BertConfig(**sizes)))
        theirs.save_pretrained(tmp_path / name)
        ours = TextEncoder.from_pretrained(tmp_path / name)
        assert not ours.training
        expected = getattr(theirs, "bert", theirs)(tokens).last_hidden_state
        torch.testing.assert_close(ours(tokens), expected, atol=1e-5, rtol=1e-5)


# Whisper: a random model of Hugging Face's, then the real one


WHISPER_SIZES = {
    "vocab_size": 50,
    "d_model": 16,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "num_mel_bins": 8,
    "max_source_positions": 10,
    "max_target_positions": 12,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
}


def random_whisper(hugging_face) -> nn.Module:
    config = hugging_face.WhisperConfig(**WHISPER_SIZES)
    return shaken(hugging_face.WhisperForConditionalGeneration(config))


@pytest.fixture
def small() -> SpeechTransformer:
    torch.manual_seed(1)
    config = SpeechConfig(
        vocabulary=50,
        d_model=16,
        n_heads=4,
        n_encoder_layers=2,
        n_decoder_layers=2,
        d_ff=32,
        n_mels=8,
        source_length=10,
        target_length=12,
    )
    return shaken(SpeechTransformer(config))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_whisper_from_a_published_folder(hugging_face, dtype, tmp_path):
    theirs = random_whisper(hugging_face)
    theirs.save_pretrained(tmp_path)
    ours = SpeechTransformer.from_pretrained(tmp_path).to(dtype)
    assert not ours.training
    assert ours.config.n_encoder_layers == 3
    theirs = theirs.to(dtype)
    sound, target = random(2, 8, 20).to(dtype), torch.randint(0, 50, (2, 7))
    expected = theirs(input_features=sound, decoder_input_ids=target).logits
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(ours(sound, target), expected, atol=tolerance, rtol=tolerance)


def test_keys_without_a_bias_get_one_of_zero(hugging_face, tmp_path):
    random_whisper(hugging_face).save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    names = set(state)
    converted = speech_from_whisper(state)
    assert set(state) == names  # the argument stays as it was
    biases = [t for name, t in converted.items() if name.endswith("key_projection.bias")]
    assert len(biases) == 3 + 2 * 2
    assert all((bias == 0).all() for bias in biases)
    assert converted.keys() == SpeechTransformer.from_pretrained(tmp_path).state_dict().keys()


def test_whisper_s_output_may_be_saved_under_both_names(hugging_face, tmp_path):
    random_whisper(hugging_face).save_pretrained(tmp_path)
    before = SpeechTransformer.from_pretrained(tmp_path).state_dict()
    state = load_file(tmp_path / "model.safetensors")
    state["proj_out.weight"] = state["model.decoder.embed_tokens.weight"].clone()
    save_file(state, tmp_path / "model.safetensors")
    after = SpeechTransformer.from_pretrained(tmp_path).state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.slow
@torch.inference_mode()
def test_the_real_whisper_gives_the_real_logits_and_the_same_text(hugging_face, transcriber):
    folder = find_published(WHISPER)
    config, state = whisper_from_ctranslate2(read_ctranslate2(folder / "model.bin"))
    special = {"pad_token_id": 50256, "bos_token_id": 50257, "eos_token_id": 50256}
    theirs = hugging_face.WhisperForConditionalGeneration(
        hugging_face.WhisperConfig(**config, **special, decoder_start_token_id=50257)
    ).eval()
    state["proj_out.weight"] = state["model.decoder.embed_tokens.weight"]
    theirs.load_state_dict(state)
    spectrogram = log_mel_spectrogram(read_wav(RECORDING))[None]
    target = torch.tensor([[50257, 50362, *transcriber.tokenizer.encode(" The decoder").ids]])
    expected = theirs(input_features=spectrogram, decoder_input_ids=target).logits
    came = transcriber.model(spectrogram, target)
    torch.testing.assert_close(came, expected, atol=1e-4, rtol=1e-5)

    heard = transcriber.transcribe(read_wav(RECORDING))
    assert heard.text == SAID
    generated = theirs.generate(
        spectrogram, decoder_input_ids=target[:, :2], max_new_tokens=40, num_beams=1
    )
    assert [token for token in generated[0].tolist() if token < 50256] == heard.tokens
    logits = theirs(
        input_features=spectrogram,
        decoder_input_ids=torch.tensor([[50257, 50362, *heard.tokens]]),
    ).logits[0]
    none = logits[0].softmax(-1)[50361].item()
    assert heard.no_speech == pytest.approx(none, abs=1e-4)
    free = logits[1:].clone()
    free[:, list(transcriber.forbidden)] = -torch.inf
    chosen = torch.tensor([*heard.tokens, 50256])
    per_token = free.log_softmax(-1).gather(1, chosen[:, None])
    assert heard.log_probability == pytest.approx(per_token.mean().item(), abs=1e-4)


@pytest.mark.slow
def test_silence_and_noise_are_no_speech(transcriber):
    for sound in (torch.zeros(16_000), 0.1 * random(32_000), torch.full((800,), 0.1)):
        heard = transcriber.transcribe(sound)
        assert heard.text == ""
        assert heard.no_speech > 0.6
    silence = transcriber.transcribe(torch.zeros(16_000))
    assert silence.log_probability > -1  # the paper's rule alone lets it pass
    assert transcriber.tokenizer.decode(silence.tokens).strip() == "you"


def test_what_no_text_begins_with_is_followed(transcriber):
    assert transcriber.forbidden_first == (220, 50_256)
    assert len(transcriber.forbidden) > 80
    first = transcriber.transcribe(read_wav(RECORDING)).tokens[0]
    other = Transcriber(transcriber.model, transcriber.tokenizer, transcriber.forbidden, [first])
    heard = other.transcribe(read_wav(RECORDING))
    assert heard.tokens[0] != first
    assert first not in transcriber.forbidden


class Even:
    """A decoder of two rows for which six tokens are nearly equally likely."""

    rows = 2

    def advance(self, tokens: Tensor) -> Tensor:
        """Prefer the first token a little."""
        return torch.tensor([[0.5, 0.4, 0.3, 0.2, 0.1, 0.0]]).expand(2, 6)

    def select(self, rows: Tensor) -> None:
        """Keep so many rows."""
        self.rows = len(rows)


def test_what_is_barred_at_first_may_come_later():
    decoder = Restricted(Even(), barred=[1], barred_first=[0, 2])
    start = torch.zeros(2, 1, dtype=torch.int64)
    first, second = decoder.advance(start), decoder.advance(start)
    assert first.isinf().tolist() == [[True, True, True, False, False, False]] * 2
    assert second.isinf().tolist() == [[False, True, False, False, False, False]] * 2
    decoder.select(torch.tensor([0]))
    assert decoder.rows == 1


def test_what_must_end_ends_with_its_token():
    decoder = Restricted(Even(), ending=(3, 4))
    start = torch.zeros(2, 1, dtype=torch.int64)
    logits = [decoder.advance(start) for _ in range(3)]
    assert [step.argmax(dim=-1).tolist() for step in logits] == [[0, 0], [0, 0], [4, 4]]
    assert logits[2].log_softmax(dim=-1)[:, 4].tolist() == [0, 0]


def test_the_token_for_no_speech_has_two_names():
    whisper = Transcriber.from_pretrained(WHISPER)
    names = {whisper.tokenizer.token_to_id(name) for name in ("<|nospeech|>", "<|nocaptions|>")}
    assert names == {None, whisper._no_speech}


def test_speech_may_be_quiet(transcriber):
    assert transcriber.transcribe(read_wav(RECORDING) / 100).text == SAID


# Decoding


@torch.inference_mode()
def test_with_a_cache_as_without_one_token_by_token_and_in_chunks(small):
    sound, target = random(2, 8, 20), torch.randint(0, 50, (2, 9))
    expected = small(sound, target)
    for cuts in ([1] * 9, [4, 1, 4], [9]):
        decoder, place = SpeechDecoder(small, sound), 0
        assert decoder.rows == 2
        for cut in cuts:
            logits = decoder.advance(target[:, place : place + cut])
            place += cut
            torch.testing.assert_close(logits, expected[:, place - 1], atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_rows_that_go_on_take_their_sound_and_their_past_along(small):
    sound, target = random(3, 8, 20), torch.randint(0, 50, (3, 5))
    rows = torch.tensor([2, 0, 2])
    decoder = SpeechDecoder(small, sound)
    decoder.advance(target)
    decoder.select(rows)
    following = torch.tensor([[7], [8], [9]])
    expected = small(sound[rows], torch.cat([target[rows], following], dim=1))[:, -1]
    torch.testing.assert_close(decoder.advance(following), expected, atol=1e-5, rtol=1e-5)
    decoder = SpeechDecoder(small, sound)
    decoder.select(rows)
    assert decoder.rows == 3
    expected = small(sound[rows], target)[:, -1]
    torch.testing.assert_close(decoder.advance(target), expected, atol=1e-5, rtol=1e-5)


def test_the_searches_take_a_speech_decoder(small):
    sound = random(2, 8, 20)
    rules = {"start": 1, "end": 2, "max_length": 8}
    rows = greedy(SpeechDecoder(small, sound), **rules)
    alone = greedy(SpeechDecoder(small, sound[1:]), **rules)
    assert rows[1].tolist()[: alone.shape[1]] == alone[0].tolist()
    (first, second) = beam_search(SpeechDecoder(small, sound), beams=3, **rules)
    assert len(first) == len(second) == 3


def test_later_tokens_change_no_earlier_logits(small):
    sound, target = random(1, 8, 20), torch.randint(0, 50, (1, 6))
    changed = target.clone()
    changed[0, 4] = (changed[0, 4] + 1) % 50
    moved = (small(sound, changed) - small(sound, target)).abs().amax(dim=-1)[0]
    assert moved[:4].max() == 0
    assert moved[4:].min() > 0


# Sound


def test_mel_filters(hugging_face):
    from transformers.audio_utils import mel_filter_bank

    for n_mels in (80, 128):
        expected = mel_filter_bank(201, n_mels, 0.0, 8000.0, 16_000, "slaney", "slaney")
        torch.testing.assert_close(
            mel_filters(n_mels), torch.tensor(expected.T, dtype=torch.float32), atol=1e-7, rtol=1e-5
        )


@pytest.mark.parametrize("length", [1, 399, 48_000, 480_000])
def test_the_spectrogram(hugging_face, length):
    samples = (0.3 * random(length, seed=length)).clamp(-1, 1)
    extractor = hugging_face.WhisperFeatureExtractor()
    expected = extractor(samples.numpy(), sampling_rate=16_000, return_tensors="pt").input_features
    came = log_mel_spectrogram(samples)
    assert came.shape == (80, 3000)
    torch.testing.assert_close(came, expected[0], atol=1e-5, rtol=1e-5)


def test_the_spectrogram_is_made_where_the_samples_are():
    """N31 (huggingface/transformers#5111): window and filters, too."""
    came = log_mel_spectrogram(torch.zeros(16_000, device="meta"))
    assert came.is_meta
    assert came.shape == (80, 3000)


def test_the_scale_of_samples():
    """N30 (dscripka/openWakeWord#295)."""
    samples = read_wav(RECORDING)
    assert log_mel_spectrogram(2 * samples / samples.abs().max()).shape == (80, 3000)
    for scale in (32_768, 128, 3):
        with pytest.raises(ValueError, match=r"^samples: expected numbers from -1 to 1, got up to"):
            log_mel_spectrogram(scale * samples / samples.abs().max())


def test_a_tone_is_loudest_in_the_band_of_its_frequency():
    tone = torch.sin(2 * torch.pi * 440 * torch.arange(16_000) / 16_000)
    band = int(log_mel_spectrogram(tone)[:, 50].argmax())
    frequencies = torch.linspace(0, 8000, 201)
    centre = frequencies[mel_filters()[band].argmax()]
    assert abs(centre - 440) <= 40


def write_wav(file, samples: list[int], channels: int = 1, rate: int = 16_000, width: int = 2):
    with wave.open(str(file), "wb") as sound:
        sound.setnchannels(channels)
        sound.setsampwidth(width)
        sound.setframerate(rate)
        sound.writeframes(struct.pack(f"<{len(samples)}{'h' if width == 2 else 'B'}", *samples))


def test_recordings_are_read(tmp_path):
    write_wav(tmp_path / "mono.wav", [0, 16_384, -32_768])
    assert read_wav(tmp_path / "mono.wav").tolist() == [0, 0.5, -1]
    write_wav(tmp_path / "stereo.wav", [0, 16_384, -16_384, 16_384], channels=2)
    assert read_wav(tmp_path / "stereo.wav").tolist() == [0.25, 0]
    write_wav(tmp_path / "empty.wav", [])
    assert read_wav(tmp_path / "empty.wav").shape == (0,)


def wav(file, form: bytes, data: bytes, *others: tuple[bytes, bytes]) -> None:
    chunks = [*others, (b"fmt ", form), (b"data", data)]
    parts = [n + struct.pack("<I", len(d)) + d + bytes(len(d) % 2) for n, d in chunks]
    size = 4 + sum(map(len, parts))
    file.write_bytes(b"RIFF" + struct.pack("<I", size) + b"WAVE" + b"".join(parts))


def form(kind: int, bits: int, channels: int = 1) -> bytes:
    frame = channels * bits // 8
    return struct.pack("<HHIIHH", kind, channels, 16_000, 16_000 * frame, frame, bits)


def extensible(kind: int, bits: int) -> bytes:
    identifier = struct.pack("<H", kind) + bytes.fromhex("000000001000800000aa00389b71")
    return form(0xFFFE, bits) + struct.pack("<HHI", 22, bits, 4) + identifier


@pytest.mark.parametrize(
    ("form", "data"),
    [
        (form(1, 8), bytes([128, 192, 0])),
        (form(1, 16), struct.pack("<3h", 0, 2**14, -(2**15))),
        (form(1, 24), bytes([0, 0, 0, 0, 0, 64, 0, 0, 128])),
        (form(1, 32), struct.pack("<3i", 0, 2**30, -(2**31))),
        (form(3, 32), struct.pack("<3f", 0, 0.5, -1)),
        (form(3, 64), struct.pack("<3d", 0, 0.5, -1)),
        (extensible(1, 16), struct.pack("<3h", 0, 2**14, -(2**15))),
        (extensible(3, 32), struct.pack("<3f", 0, 0.5, -1)),
        (form(3, 32) + b"\0\0", struct.pack("<3f", 0, 0.5, -1)),
    ],
)
def test_wav_of_the_common_kinds(tmp_path, form, data):
    """N07 (hamiltron/py-simple-audio#48)."""
    wav(tmp_path / "a.wav", form, data)
    assert read_wav(tmp_path / "a.wav").tolist() == [0, 0.5, -1]
    wav(tmp_path / "a.wav", form, data, (b"LIST", b"odd"), (b"fact", bytes(4)))
    assert read_wav(tmp_path / "a.wav").tolist() == [0, 0.5, -1]
    stereo = form[:2] + struct.pack("<H", 2) + form[4:]
    wav(tmp_path / "a.wav", stereo, data + data[: len(data) // 3])
    assert read_wav(tmp_path / "a.wav").tolist() == [0.25, -0.5]


def test_a_recording_that_ends_before_it_should(tmp_path):
    file = tmp_path / "a.wav"
    wav(file, form(1, 16), struct.pack("<3h", 0, 2**14, -(2**15)))
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])  # half a sample is none
    assert read_wav(file).tolist() == [0, 0.5]
    file.write_bytes(whole.replace(b"data" + struct.pack("<I", 6), b"data" + 4 * b"\xff"))
    assert read_wav(file).tolist() == [0, 0.5, -1]  # as written by a program that was stopped


def test_the_recording_that_comes_with_the_library():
    samples = read_wav(RECORDING)
    assert len(samples) == 48_720
    assert RECORDING.stat().st_size < 200_000
    assert (RECORDING.parent / "README.md").is_file()


# CTranslate2


def ctranslate2_file(file, tensors: dict[str, Tensor], version: int = 6) -> None:
    codes = [torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16]

    def text(string: str) -> bytes:
        return struct.pack("<H", len(string) + 1) + string.encode() + b"\0"

    data = struct.pack("<I", version) + text("WhisperSpec") + struct.pack("<II", 3, len(tensors))
    for name, tensor in tensors.items():
        raw = bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist())
        data += text(name) + struct.pack(f"<B{tensor.dim()}I", tensor.dim(), *tensor.shape)
        data += struct.pack("<BI", codes.index(tensor.dtype), len(raw)) + raw
    file.write_bytes(data + struct.pack("<I", 0))


def test_ctranslate2_files_of_every_dtype(tmp_path):
    tensors = {
        "a/weight": random(2, 3),
        "b": random(4).half(),
        "c": random(4).bfloat16(),
        "d": torch.tensor([1, -2], dtype=torch.int8),
        "heads": torch.tensor(6, dtype=torch.int16),
        "e": torch.tensor([[7]], dtype=torch.int32),
    }
    ctranslate2_file(tmp_path / "model.bin", tensors)
    came = read_ctranslate2(tmp_path / "model.bin")
    assert list(came) == list(tensors)
    for name, tensor in tensors.items():
        assert came[name].dtype == tensor.dtype
        assert torch.equal(came[name], tensor)


def test_the_real_file_holds_what_the_package_promises():
    config, state = whisper_from_ctranslate2(
        read_ctranslate2(find_published(WHISPER) / "model.bin")
    )
    sizes = (config["vocab_size"], config["d_model"], config["encoder_attention_heads"])
    assert sizes == (51_864, 384, 6)
    assert (config["max_source_positions"], config["max_target_positions"]) == (1500, 448)
    assert (config["encoder_layers"], config["decoder_layers"]) == (4, 4)
    assert len(state) == 167
    assert not any("k_proj.bias" in name for name in state)
    assert sum(t.numel() for t in SpeechTransformer(SpeechConfig()).state_dict().values()) == (
        37_764_864
    )


# Marian


def random_marian(hugging_face, seed: int = 0, **settings) -> nn.Module:
    sides = ("encoder", "decoder")
    config = hugging_face.MarianConfig(
        vocab_size=40,
        d_model=32,
        **{f"{side}_layers": 2 for side in sides},
        **{f"{side}_ffn_dim": 64 for side in sides},
        **{f"{side}_attention_heads": 4 for side in sides},
        activation_function="swish",
        scale_embedding=True,
        max_position_embeddings=64,
        pad_token_id=39,
        eos_token_id=0,
        decoder_start_token_id=39,
        forced_eos_token_id=0,
    )
    theirs = shaken(hugging_face.MarianMTModel(config), seed)
    theirs.final_logits_bias.normal_()
    theirs.final_logits_bias[0, 0] += 3
    settings = {"num_beams": 4, "length_penalty": 1.0, "max_length": 24} | settings
    settings = {"bad_words_ids": [[39]], "renormalize_logits": True} | settings
    theirs.generation_config.update(**settings)
    return theirs


def marian_source(seed: int = 0) -> Tensor:
    source = torch.randint(1, 39, (6, 7), generator=torch.Generator().manual_seed(seed))
    source[:, 6] = 0
    source[3, 3:] = torch.tensor([0, 39, 39, 39])
    return source


def generated(theirs: nn.Module, source: Tensor, **options) -> list[list[int]]:
    mask = (source != 39).long()
    rows = theirs.generate(input_ids=source, attention_mask=mask, **options)
    return [[token for token in row if token != 39] for row in rows.tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("alpha", "renormalised"), [(1.0, True), (1.0, False), (0, True), (2, True)]
)
def test_marian_generates_token_for_token(hugging_face, tmp_path, seed, alpha, renormalised):
    options = {"renormalize_logits": renormalised, "early_stopping": "never"}
    theirs = random_marian(hugging_face, seed, length_penalty=float(alpha), **options)
    theirs.save_pretrained(tmp_path)
    ours = MarianTranslator.from_pretrained(tmp_path)
    source = marian_source(seed)
    assert ours.generate(source) == generated(theirs, source)  # 4 beams, as published
    assert ours.generate(source, beams=1) == generated(theirs, source, num_beams=1)
    if alpha:
        assert max(map(len, ours.generate(source))) > 1


def test_a_source_goes_where_the_model_is(hugging_face, tmp_path, monkeypatch):
    """N31 (huggingface/transformers#5111)."""
    random_marian(hugging_face).save_pretrained(tmp_path)
    ours = MarianTranslator.from_pretrained(tmp_path)
    ours.model.to("meta")
    seen = []

    def stop(model, source, *, key_mask):
        seen.extend([source.device.type, key_mask.device.type])
        raise StopIteration

    monkeypatch.setattr("transformer_lib.published.marian.CachedDecoder", stop)
    with pytest.raises(StopIteration):
        ours.generate(marian_source())
    assert seen == ["meta", "meta"]


def test_padding_of_a_source_may_be_said(hugging_face, tmp_path):
    random_marian(hugging_face, early_stopping="never").save_pretrained(tmp_path)
    ours = MarianTranslator.from_pretrained(tmp_path)
    source = marian_source()
    expected = ours.generate(source)
    assert ours.generate(source, key_mask=source != 39) == expected
    longer = torch.cat([source, torch.full((6, 2), 7)], dim=1)
    real = torch.cat([source != 39, torch.zeros(6, 2, dtype=torch.bool)], dim=1)
    assert ours.generate(longer, key_mask=real) == expected


def test_sentences_that_grow_too_long_are_ended(hugging_face, tmp_path):
    theirs = random_marian(hugging_face, early_stopping="never", max_length=6)
    theirs.final_logits_bias[0, 0] -= 100
    theirs.save_pretrained(tmp_path)
    ours = MarianTranslator.from_pretrained(tmp_path)
    for beams in (1, 4):
        rows = ours.generate(marian_source(), beams=beams)
        assert rows == generated(theirs, marian_source(), num_beams=beams)
        assert all(len(row) == 5 and row[-1] == 0 for row in rows)


@pytest.mark.slow
def test_where_hugging_face_stops_early_ours_is_as_good_or_better(hugging_face, tmp_path):
    differing = 0
    for seed in range(6):
        theirs = random_marian(hugging_face, seed, early_stopping=False, max_length=32)
        theirs.final_logits_bias[0, 0] -= 2 * (seed % 2)
        theirs.save_pretrained(tmp_path)
        source = marian_source(seed)
        options = {"return_dict_in_generate": True, "output_scores": True}
        result = theirs.generate(source, attention_mask=(source != 39).long(), **options)
        found = MarianTranslator.from_pretrained(tmp_path)
        expected = [[token for token in row if token != 39] for row in result.sequences.tolist()]
        came = found.generate(source)
        differing += sum(a != b for a, b in zip(came, expected, strict=True))
        for place, (row, other) in enumerate(zip(came, expected, strict=True)):
            if row != other:
                target = torch.tensor([[39, *row[:-1]]])
                logits = found.model(source[place : place + 1], target)[0]
                logits[:, 39] = -torch.inf
                steps = logits.log_softmax(-1)[range(len(row)), row]
                steps[30:] = 0  # the forced end
                assert steps.mean() > result.sequences_scores[place]
    assert 1 <= differing < 6


def test_the_bare_model_from_the_same_folder(hugging_face, tmp_path):
    theirs = random_marian(hugging_face)
    theirs.save_pretrained(tmp_path)
    ours = Transformer.from_pretrained(tmp_path)
    source = marian_source()
    target = torch.randint(1, 39, (6, 5))
    mask = (source != 39).long()
    expected = theirs(input_ids=source, attention_mask=mask, decoder_input_ids=target).logits
    torch.testing.assert_close(ours(source, target), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_text_goes_through_the_published_tokenizer(hugging_face, tmp_path, monkeypatch):
    import sentencepiece

    said = "the cat sees a dog and the dog sees the cat on the mat in the sun"
    lines = [said[i : i + 30] for i in range(0, len(said), 5)]
    for side in ("source", "target"):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_prefix=str(tmp_path / side),
            vocab_size=26,
            minloglevel=2,
        )
        (tmp_path / f"{side}.model").rename(tmp_path / f"{side}.spm")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "source.spm"))
    known = [pieces.id_to_piece(i) for i in range(len(pieces))]
    vocabulary = ["</s>", "<unk>", *(p for p in known if p[0] != "<")]
    vocabulary += [f"spare{i}" for i in range(39 - len(vocabulary))] + ["<pad>"]
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    (tmp_path / "vocab.json").write_text(json.dumps(ids))
    (tmp_path / "tokenizer_config.json").write_text("{}")
    theirs = random_marian(hugging_face, early_stopping="never")
    theirs.save_pretrained(tmp_path)
    ours = MarianTranslator.from_pretrained(tmp_path)
    texts = ["the cat sees a dog", "a dog"]
    came = ours.translate(texts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = hugging_face.MarianTokenizer.from_pretrained(tmp_path)
    inputs = tokenizer(texts, padding=True, return_tensors="pt")
    assert inputs.input_ids[0, -1] == 0
    rows = theirs.generate(**inputs)
    assert came == tokenizer.batch_decode(rows, skip_special_tokens=True)
    assert ours.translate([]) == []
    # a special token that is spelt out is text, and what cannot be seen is nothing
    sources = []
    monkeypatch.setattr(ours, "generate", lambda source, **rest: sources.append(source) or [[0]])
    for token in ("</s>", "<pad>", "<unk>"):
        ours.translate([f"a {token} dog"])
        assert not {0, 39} & set(sources[-1][0, :-1].tolist())
    given = []
    monkeypatch.setattr(ours, "tokenizer", lambda texts, **rest: given.extend(texts) or inputs)
    with suppress(AttributeError):  # a function cannot decode
        ours.translate(["\ufeffa \u200bdog"])
    assert given == ["a dog"]


# The hub


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """Put folders in place of the hub, by name and revision; note what is asked for."""
    import huggingface_hub

    asked: list[dict] = []

    class Hub:
        calls = asked

    def snapshot_download(name, revision=None, **options):
        asked.append({"name": name, "revision": revision} | options)
        if (name, revision) not in Hub.folders:
            raise huggingface_hub.errors.LocalEntryNotFoundError("cannot reach the hub\nat all")
        return str(Hub.folders[name, revision])

    class Api:
        def get_repo_discussions(self, name, author, discussion_type):
            assert author == "SFconvertbot"
            assert discussion_type == "pull_request"
            return iter(Hub.proposals)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    Hub.folders, Hub.proposals = {}, []
    return Hub


def test_a_name_is_fetched_from_the_hub(hugging_face, hub, tmp_path):
    random_marian(hugging_face).save_pretrained(tmp_path)
    hub.folders["Helsinki-NLP/opus-mt-ko-en", None] = tmp_path
    model = Transformer.from_pretrained("Helsinki-NLP/opus-mt-ko-en")
    assert model.config.position_layout == "halves"
    (call,) = hub.calls
    patterns = call["allow_patterns"]
    assert {"config.json", "model.safetensors", "source.spm"} <= set(patterns)
    assert not [p for p in patterns if "*" in p or p.endswith((".bin", ".py", ".pt", ".ckpt"))]


def test_our_own_folders_may_lie_on_the_hub(hub, tmp_path):
    sizes = {"d_model": 8, "n_heads": 2, "d_ff": 16}
    config = TransformerConfig(12, 12, n_encoder_layers=1, n_decoder_layers=1, **sizes)
    Transformer(config).save_pretrained(tmp_path)
    hub.folders["someone/model", None] = tmp_path
    assert Transformer.from_pretrained("someone/model").config == config


def test_pickles_are_left_alone_and_the_robot_s_copy_is_taken(hugging_face, hub, tmp_path):
    (tmp_path / "main").mkdir()
    (tmp_path / "other").mkdir()
    random_marian(hugging_face).save_pretrained(tmp_path / "proposed")
    hub.folders = {
        ("a/b", None): tmp_path / "main",
        ("a/b", "refs/pr/2"): tmp_path / "other",
        ("a/b", "refs/pr/5"): tmp_path / "proposed",
    }
    hub.proposals = [SimpleNamespace(num=2), SimpleNamespace(num=5)]
    assert find_published("a/b") == tmp_path / "proposed"
    hub.proposals = [SimpleNamespace(num=2)]
    with pytest.raises(FileNotFoundError, match=r"no model\.safetensors, and pickles are not read"):
        find_published("a/b")


def test_the_hub_comes_first_and_the_package_without_it(hub, monkeypatch, tmp_path):
    assert find_published(MINILM).name == "model"
    assert hub.calls[0]["name"] == MINILM
    (tmp_path / "model.safetensors").write_bytes(b"another model")
    hub.folders[MINILM, None] = tmp_path
    with pytest.raises(ValueError, match="expected SHA-256 53aa51"):
        find_published(MINILM)
    package = library_hub.PACKAGES[MINILM]
    digest = "d07ec46e1f4f5c3f0e6ee9e0ecd3a3c3d1d8a1e1d4f5c3f0e6ee9e0ecd3a3c3d"
    monkeypatch.setitem(library_hub.PACKAGES, MINILM, package._replace(sha256=digest))
    with pytest.raises(ValueError, match=f"expected SHA-256 {digest}"):
        find_published(MINILM)


def test_a_folder_is_itself(tmp_path, hub):
    assert find_published(tmp_path) == tmp_path
    assert not hub.calls


def test_checksums(tmp_path):
    file = tmp_path / "abc"
    file.write_bytes(b"abc")
    right = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, B.1
    check_sha256(file, right)
    check_sha256(file, right.upper())
    with pytest.raises(ValueError, match="is damaged or another file"):
        check_sha256(file, right[:-1] + "e")

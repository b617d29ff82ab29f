"""Whisper with its tokenizer: sound in, text out.

Explained in chapter 16, "Pretrained weights" (book/16_pretrained_weights.ipynb). Generated from
there by tools/export.py; edit the notebook.
"""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from tokenizers import Tokenizer
from torch import Tensor

from transformer_lib._checks import published as check
from transformer_lib.decoding import beam_search
from transformer_lib.files import read_tokenizer
from transformer_lib.hub import find_published
from transformer_lib.published.audio import log_mel_spectrogram
from transformer_lib.published.search import Restricted
from transformer_lib.published.settings import transcriber_settings
from transformer_lib.published.whisper import SpeechDecoder, SpeechTransformer

__all__ = ["Transcriber", "Transcript"]


class Transcript(NamedTuple):
    """What was heard."""

    text: str  # the words; empty where the model takes the sound for no speech
    tokens: list[int]  # the text's tokens, whatever the model took the sound for
    log_probability: float  # mean over the tokens, the end token among them, in nats
    no_speech: float  # probability that there is no speech


class Transcriber:
    """Whisper with its tokenizer: sound in, text out. For its English-only models.

    ::

        transcriber = Transcriber.from_pretrained("openai/whisper-tiny.en")
        transcriber.transcribe(read_wav("recording.wav")).text

    Args:
        model: A model.
        tokenizer: Its tokenizer, of the ``tokenizers`` package.
        forbidden: Tokens that are never written.
        forbidden_first: Tokens that no text begins with.
    """

    def __init__(
        self,
        model: SpeechTransformer,
        tokenizer: Tokenizer,
        forbidden: Sequence[int] = (),
        forbidden_first: Sequence[int] = (),
    ) -> None:
        names = ("startoftranscript", "notimestamps", "endoftext", "nospeech")
        ids: dict[str, Any] = {
            f"<|{name}|>": tokenizer.token_to_id(f"<|{name}|>") for name in names
        }
        if ids["<|nospeech|>"] is None:
            ids["<|nospeech|>"] = tokenizer.token_to_id("<|nocaptions|>")  # its earlier name
        check.transcriber(model.config, ids, [*forbidden, *forbidden_first])
        self.model, self.tokenizer = model.eval(), tokenizer
        self.forbidden, self.forbidden_first = tuple(forbidden), tuple(forbidden_first)
        self._start, self._no_times, self._end, self._no_speech = ids.values()

    @classmethod
    def from_pretrained(cls, name: str | os.PathLike[str]) -> "Transcriber":
        """Read a model with its tokenizer; ``name`` as in ``SpeechTransformer``."""
        folder = find_published(name)
        model = SpeechTransformer.from_pretrained(folder)
        settings = transcriber_settings(folder, model.config.n_mels)
        return cls(model, read_tokenizer(folder), **settings)

    def transcribe(self, samples: Float[Tensor, " samples"]) -> Transcript:
        """Write down what is said in a recording of at most 30 s, by greedy decoding.

        The text is empty if the model thinks that nobody speaks, ``no_speech`` > 0.6, and is unsure
        of its words, ``log_probability`` < −1; and also, unlike the paper's, if ``no_speech`` is
        above 0.9: of silence the model is sure that it says "you".

        Args:
            samples: 16,000 a second, from −1 to 1, as ``read_wav`` returns them.

        Source: Radford et al. (2023), section 4.5.
        """
        spectrogram = log_mel_spectrogram(samples, self.model.config.n_mels)
        decoder = SpeechDecoder(self.model, spectrogram[None].to(self.model.generator.weight))
        first = decoder.advance(torch.tensor([[self._start]]))
        no_speech = first.float().softmax(dim=-1)[0, self._no_speech].item()
        ((best,),) = beam_search(  # of one beam: greedy, and it says how probable the words are
            Restricted(decoder, barred=self.forbidden, barred_first=self.forbidden_first),
            beams=1,
            alpha=0.0,
            start=self._no_times,
            end=self._end,
            max_length=self.model.config.target_length // 2,
            min_length=1,
        )
        tokens = [token for token in best.tokens if token != self._end]
        log_probability = best.log_probability / len(best.tokens)
        silent = no_speech > (0.6 if log_probability < -1 else 0.9)
        text = "" if silent else self.tokenizer.decode(tokens).strip()
        return Transcript(text, tokens, log_probability, no_speech)

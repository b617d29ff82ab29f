"""From sound to what Whisper takes: a spectrogram.

Explained in chapter 16, "Pretrained weights" (book/16_pretrained_weights.ipynb). Generated from
there by tools/export.py; edit the notebook.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from transformer_lib._checks import published as check
from transformer_lib.published.wav import SAMPLE_RATE

__all__ = ["log_mel_spectrogram", "mel_filters"]


def mel_filters(n_mels: int = 80, n_fft: int = 400) -> Float[Tensor, "n_mels frequencies"]:
    """Return triangular filters whose centres are evenly spaced on the mel scale, 0 to 8000 Hz.

    The scale is Slaney's: linear up to 1000 Hz, logarithmic above. Each triangle has area 1 over
    the frequency in Hz. There is one a row, over the n_fft / 2 + 1 frequencies of a Fourier
    transform.
    """
    top = SAMPLE_RATE / 2
    steps = math.log(6.4) / 27  # 27 steps of a mel from 1000 Hz to 6400 Hz
    mels = torch.linspace(0, 15 + math.log(top / 1000) / steps, n_mels + 2, dtype=torch.float64)
    edges = torch.where(mels < 15, mels * 200 / 3, 1000 * torch.exp((mels - 15) * steps))
    frequencies = torch.linspace(0, top, n_fft // 2 + 1, dtype=torch.float64)
    low, middle, high = (edges[i : n_mels + i, None] for i in range(3))
    rising, falling = (frequencies - low) / (middle - low), (high - frequencies) / (high - middle)
    return (torch.minimum(rising, falling).clamp(min=0) * 2 / (high - low)).float()


def log_mel_spectrogram(
    samples: Float[Tensor, " samples"], n_mels: int = 80, seconds: int = 30
) -> Float[Tensor, "n_mels frames"]:
    """Return how loud each band of frequencies is, a hundred times a second, as Whisper takes it.

    It is the logarithm to base 10, not more than 8 below the loudest, plus 4, divided by 4.

    Args:
        samples: A recording of 16,000 samples a second, from −1 to 1; silence is added up to
            ``seconds``.
        n_mels: Number of bands.
        seconds: What the model was trained on.

    Source: Radford et al. (2023), section 2.2.
    """
    check.log_mel_spectrogram(samples, n_mels, seconds, SAMPLE_RATE)
    padded = F.pad(samples.float(), (0, seconds * SAMPLE_RATE - len(samples)))
    window = torch.hann_window(400, device=samples.device)
    spectrum = torch.stft(padded, n_fft=400, hop_length=160, window=window, return_complex=True)
    power = spectrum[:, :-1].abs() ** 2
    log = (mel_filters(n_mels).to(samples.device) @ power).clamp(min=1e-10).log10()
    return (torch.maximum(log, log.max() - 8) + 4) / 4

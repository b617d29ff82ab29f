"""A small model, its data and its trainer: for tests of training and the processes they start."""

import os
import random
from collections.abc import Sequence
from dataclasses import replace

import torch

from transformer_lib.training import Batches, Trainer, TrainingConfig
from transformer_lib.transformer import Transformer, TransformerConfig

START, END = 1, 2
TINY = TransformerConfig(
    12,
    12,
    d_model=8,
    n_heads=2,
    n_encoder_layers=1,
    n_decoder_layers=1,
    d_ff=16,
    dropout=0.1,
    max_length=16,
)
SHORT = TrainingConfig(steps=6, warmup=4, log_every=1, save_every=3)


Pairs = Sequence[tuple[Sequence[int], Sequence[int]]]


def some_pairs(count: int = 40, seed: int = 0) -> list[tuple[list[int], list[int]]]:
    """Return sentences of random words and their reversals."""
    chance = random.Random(seed)
    sentences = [
        [chance.randrange(3, 12) for _ in range(chance.randrange(1, 7))] for _ in range(count)
    ]
    return [([*words, END], [START, *reversed(words), END]) for words in sentences]


def tiny_model(seed: int = 0, **options: float) -> Transformer:
    """Return a model of two layers, with dropout unless told otherwise."""
    torch.manual_seed(seed)
    return Transformer(replace(TINY, **options))


def tiny_trainer(
    folder: str | os.PathLike[str] | None = None,
    config: TrainingConfig = SHORT,
    seed: int = 0,
    pairs: Pairs | None = None,
    **options: float,
) -> Trainer:
    """Return a trainer of a tiny model with weights of the given seed."""
    batches = Batches(pairs or some_pairs(), tokens_per_batch=40)
    return Trainer(tiny_model(seed, **options), batches, config, folder=folder)

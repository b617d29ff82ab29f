"""Arguments that cannot be meant are refused by name, and runs are never mixed."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.library.tiny_runs import END, SHORT, START, some_pairs, tiny_model, tiny_trainer
from transformer_lib.checkpoints import list_checkpoints
from transformer_lib.training import (
    Batch,
    Batches,
    TokenLoss,
    Trainer,
    TrainingConfig,
    average_checkpoints,
    linear_learning_rate,
    noam_learning_rate,
    sequence_loss,
    shift_target,
    smoothed_labels,
    training_step,
)
from transformer_lib.transformer import Transformer, TransformerConfig


@pytest.mark.parametrize("shape", [(4,), (2, 1), (2, 0), (1, 2, 3)])
def test_a_target_that_cannot_be_shifted(shape):
    with pytest.raises(ValueError, match=r"^target: expected shape \(batch, length\) with a start"):
        shift_target(torch.ones(shape, dtype=torch.int64))


@pytest.mark.parametrize("smoothing", [-0.1, 1.5, float("nan")])
def test_smoothing_is_a_probability(smoothing):
    message = f"^smoothing: expected a probability from 0 to 1, got {smoothing}"
    labels = torch.tensor([1])
    with pytest.raises(ValueError, match=message):
        smoothed_labels(labels, 5, smoothing=smoothing)
    with pytest.raises(ValueError, match=message):
        sequence_loss(torch.zeros(1, 5), labels, smoothing=smoothing)
    with pytest.raises(ValueError, match=message):
        TrainingConfig(smoothing=smoothing)


def test_unknown_options_of_the_loss():
    logits, labels = torch.zeros(1, 5), torch.tensor([1])
    with pytest.raises(ValueError, match=r"^spread: expected 'all' or 'others', got 'most'"):
        sequence_loss(logits, labels, spread="most")
    with pytest.raises(ValueError, match=r"^reduction: expected 'mean' or 'sum', got 'none'"):
        sequence_loss(logits, labels, reduction="none")
    with pytest.raises(ValueError, match=r"^spread: 'others' needs .* got a vocabulary of 2"):
        smoothed_labels(labels, 2, smoothing=0.1, spread="others")


@pytest.mark.parametrize("shape", [(3,), (2, 4), (2, 3, 1)])
def test_labels_of_another_shape_than_the_logits(shape):
    with pytest.raises(ValueError, match=r"^labels: expected shape \(2, 3\) as the logits"):
        sequence_loss(torch.zeros(2, 3, 5), torch.ones(shape, dtype=torch.int64))


@pytest.mark.parametrize("name", ["step", "d_model", "warmup"])
def test_updates_count_from_one(name):
    # google-research/bert#1293: at step 0 the formula divides by 0
    arguments = {"step": 1, "d_model": 4, "warmup": 2} | {name: 0}
    with pytest.raises(ValueError, match=f"^{name}: expected 1 or more, got 0"):
        noam_learning_rate(**arguments)


def test_linear_learning_rates_that_cannot_be():
    with pytest.raises(ValueError, match=r"^step: expected 1 or more, got 0"):
        linear_learning_rate(0, steps=5, peak=1.0, warmup=2)
    with pytest.raises(ValueError, match=r"^warmup: expected at most steps = 5, got 6"):
        linear_learning_rate(1, steps=5, peak=1.0, warmup=6)
    with pytest.raises(ValueError, match=r"^warmup: expected at most steps = 5, got 6"):
        TrainingConfig(schedule="linear", steps=5, warmup=6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "steps: expected 1 or more, got 0"),
        ({"accumulate": 0}, "accumulate: expected 1 or more, got 0"),
        ({"save_every": -1}, "save_every: expected 1 or more, got -1"),
        ({"keep": 0}, "keep: expected 1 or more, got 0"),
        ({"schedule": "cosine"}, r"schedule: expected one of \('noam', 'linear'\), got 'cosine'"),
        ({"precision": "float16"}, "precision: expected one of .*, got 'float16'"),
        ({"spread": "most"}, "spread: expected one of .*, got 'most'"),
        ({"learning_rate": 0.0}, "learning_rate: expected a number above 0, got 0.0"),
        ({"learning_rate": float("nan")}, "learning_rate: expected a number above 0, got nan"),
        ({"clip": -1.0}, "clip: expected a number above 0, got -1.0"),
        ({"eps": 0.0}, "eps: expected a number above 0, got 0.0"),
        ({"weight_decay": -0.1}, "weight_decay: expected 0 or more, got -0.1"),
        ({"betas": (0.9, 1.0)}, r"betas: expected two numbers from 0 to below 1, got \(0.9, 1.0\)"),
        ({"betas": (0.9,)}, r"betas: expected two numbers from 0 to below 1, got \(0.9,\)"),
    ],
)
def test_settings_that_nothing_can_be_trained_with(change, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        TrainingConfig(**change)


def test_pairs_that_nothing_can_be_learnt_from():
    with pytest.raises(ValueError, match=r"^pairs: expected at least one pair, got none"):
        Batches([], tokens_per_batch=10)
    good = ([3, END], [START, 3, END])
    for bad, sizes in ((([], [START, END]), "0 and 2"), (([3], [START]), "1 and 1")):
        with pytest.raises(ValueError, match=f"^pairs: .* pair 1 has {sizes}$"):
            Batches([good, bad], tokens_per_batch=10)
    with pytest.raises(ValueError, match=r"^tokens_per_batch: expected 1 or more, got 0"):
        Batches([good], tokens_per_batch=0)


def test_a_step_on_nothing_but_padding():
    model = tiny_model()
    batch = Batch(torch.tensor([[3]]), torch.tensor([[START, 0, 0]]))
    optimizer = torch.optim.Adam(model.parameters())
    for batches in ([], [batch]):
        with pytest.raises(ValueError, match=r"^batches: expected target tokens, got nothing but"):
            training_step(model, batches, optimizer, TokenLoss())


def test_without_a_folder_nothing_is_saved_or_resumed():
    with pytest.raises(ValueError, match=r"^folder: expected a folder to save in, got None"):
        tiny_trainer().save()
    with pytest.raises(ValueError, match=r"^folder: expected a folder to resume from, got None"):
        tiny_trainer().resume()


# Resuming


@pytest.fixture
def stopped(tmp_path):
    """Return the folder of a run that was stopped after 3 of 6 steps."""
    tiny_trainer(tmp_path).train(3)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"config": replace(SHORT, smoothing=0.2)}, r"config: .* smoothing = 0.1, now 0.2"),
        ({"config": replace(SHORT, warmup=5)}, r"config: .* warmup = 4, now 5"),
        ({"config": replace(SHORT, seed=1)}, r"config: .* seed = 0, now 1"),
        (
            {"config": replace(SHORT, clip=1.0, betas=(0.9, 0.999))},
            r"config: .* betas = \[0.9, 0.98\], now \[0.9, 0.999\]; clip = None, now 1.0",
        ),
        ({"pairs": some_pairs(seed=1)}, r"batches: .* pairs = '[0-9a-f]{64}', now '[0-9a-f]{64}'"),
        ({"pairs": some_pairs()[::-1]}, r"batches: .* pairs = '[0-9a-f]{64}', now '[0-9a-f]{64}'"),
        ({"dropout": 0.2}, r"model: .* dropout = 0.1, now 0.2"),
        ({"d_ff": 32}, r"model: .* d_ff = 16, now 32"),
    ],
)
def test_another_run_is_refused_by_name(stopped, options, message):
    trainer = tiny_trainer(stopped, **options)
    before = {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
    with pytest.raises(ValueError, match=f"^{message}$"):
        trainer.resume()
    for name, tensor in trainer.model.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_other_batches_are_refused(stopped):
    for change, message in (
        ({"tokens_per_batch": 50}, "tokens_per_batch = 40, now 50"),
        ({"tokens_per_batch": 40, "seed": 3}, "seed = 0, now 3"),
    ):
        trainer = Trainer(tiny_model(), Batches(some_pairs(), **change), SHORT, folder=stopped)
        with pytest.raises(ValueError, match=f"^batches: .* has {message}$"):
            trainer.resume()


def test_updates_of_a_linear_schedule_may_not_change(tmp_path):
    config = replace(SHORT, schedule="linear")
    tiny_trainer(tmp_path, config).train(3)
    with pytest.raises(ValueError, match=r"^config: .* has steps = 6, now 8$"):
        tiny_trainer(tmp_path, replace(config, steps=8)).resume()


@pytest.mark.parametrize("damage", ["cut", "text", "empty", "foreign"])
def test_a_damaged_checkpoint_is_named(stopped, damage):
    (file,) = list_checkpoints(stopped)
    whole = file.read_bytes()
    if damage == "foreign":
        save_file({"x": torch.zeros(3)}, file)
    else:
        file.write_bytes({"cut": whole[:-7], "text": b"no tensors", "empty": b""}[damage])
    message = rf"^.*{file.name} is no checkpoint of a Trainer, or is damaged: "
    with pytest.raises(ValueError, match=message):
        tiny_trainer(stopped).resume()
    with pytest.raises(ValueError, match=message):
        average_checkpoints([file])


def test_a_checkpoint_of_other_tensors_is_refused(stopped):
    (file,) = list_checkpoints(stopped)
    trainer = tiny_trainer(stopped)
    tensors = load_file(file)
    del tensors["model.decoder.layers.0.feed_forward.inner.weight"]
    save_file(
        tensors, file, metadata={"progress": json.dumps(trainer.run._progress() | {"step": 3})}
    )
    with pytest.raises(ValueError, match=r"decoder\.layers\.0\.feed_forward\.inner\.weight"):
        trainer.resume()


def test_a_run_that_was_not_resumed_does_not_mix_with_one_that_was(stopped):
    (file,) = list_checkpoints(stopped)
    before = file.read_bytes()
    with pytest.raises(ValueError, match=rf"^folder: .* has {file.name}, this run is at step 0"):
        tiny_trainer(stopped).train()
    assert file.read_bytes() == before
    assert list_checkpoints(stopped) == [file]


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    trainer = tiny_trainer(tmp_path / "file" / "run")
    with pytest.raises(OSError, match="file"):
        trainer.train()


# Averages


def test_averages_of_nothing_and_of_two_models(tmp_path):
    with pytest.raises(ValueError, match=r"^files: expected at least one checkpoint, got none"):
        average_checkpoints([])
    tiny_trainer(tmp_path / "a").train(1)
    tiny_trainer(tmp_path / "b", d_ff=32).train(1)
    files = [list_checkpoints(tmp_path / name)[0] for name in ("a", "b")]
    with pytest.raises(ValueError, match=r"^files: .*b.* is of another model than .*a"):
        average_checkpoints(files)


# What does not fit is refused before any time goes into it


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": np.int64(4)}, r"^steps: expected int, got np.int64\(4\)$"),
        (
            {"learning_rate": np.float32(1)},
            r"^learning_rate: expected float, got np.float32\(1.0\)$",
        ),
        ({"save_every": 2.5}, r"^save_every: expected int, got 2.5$"),
        ({"steps": "4"}, r"^steps: expected int, got '4'$"),
        ({"eps": None}, r"^eps: expected float, got None$"),
        ({"seed": None}, r"^seed: expected int, got None$"),
        ({"betas": None}, r"^betas: expected a tuple of two floats, got None$"),
    ],
)
def test_settings_of_another_type(change, message):
    with pytest.raises(TypeError, match=message):
        TrainingConfig(**change)


def test_sizes_of_numpy_are_no_whole_numbers_of_python():
    message = r"^tokens_per_batch: expected a whole number, got np.int64\(20\)$"
    with pytest.raises(TypeError, match=message):
        Batches([([4, 2], [1, 4, 2])], tokens_per_batch=np.int64(20))


@pytest.mark.parametrize(
    ("pairs", "options", "message"),
    [
        ([([4, 2], [1, 4, 2])], {"padding_id": 3}, "the model's padding_id = 0, got 3"),
        ([([4, 2], [1, 2]), ([4, 2], [1, 99, 2])], {}, "ids from 0 to 9, pair 1 has 1 to 99"),
        ([([-1, 2], [1, 2])], {}, "ids from 0 to 9, pair 0 has -1 to 2"),
        ([([4] * 9, [1, 2])], {}, "at most max_length = 8 tokens, pair 0 has 9"),
        ([([4], [1] * 10)], {}, "at most max_length = 8 tokens, pair 0 has 9"),
    ],
)
def test_pairs_that_the_model_cannot_read(pairs, options, message):
    config = TransformerConfig(10, 10, 8, 2, 1, 1, 8, max_length=8)
    batches = Batches(pairs, tokens_per_batch=40, **options)
    with pytest.raises(ValueError, match=f"^batches: expected {message}$"):
        Trainer(Transformer(config), batches, TrainingConfig())


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "run").write_text("")
    batches = Batches([([4, 2], [1, 4, 2])], tokens_per_batch=40)
    model = Transformer(TransformerConfig(10, 10, 8, 2, 1, 1, 8))
    with pytest.raises(NotADirectoryError, match=r"^folder: expected a folder, .*run is a file$"):
        Trainer(model, batches, TrainingConfig(), folder=tmp_path / "run")

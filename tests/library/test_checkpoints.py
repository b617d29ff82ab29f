"""The folder of a run: what is in it is whole and of one run, and the work is never lost."""

import json
import os
import signal
import subprocess
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from tests.library.test_training import (
    assert_same_checkpoint,
    assert_same_weights,
    command,
    contents,
    environment,
)
from tests.library.tiny_runs import END, SHORT, START, some_pairs, tiny_model, tiny_trainer
from transformer_lib import checkpoints
from transformer_lib.checkpoints import list_checkpoints, own_name, read_log, unwrapped
from transformer_lib.training import (
    Batches,
    TokenLoss,
    Trainer,
    TrainingConfig,
    average_checkpoints,
    sequence_loss,
    training_step,
)


@pytest.fixture
def stopped(tmp_path):
    """Return the folder of a run that was stopped after 3 of 6 steps."""
    tiny_trainer(tmp_path).train(3)
    return tmp_path


def change(folder, *, tensors=lambda tensors: None, progress=lambda progress: progress):
    """Write the only checkpoint of a folder again, with tensors or words changed."""
    (file,) = list_checkpoints(folder)
    with safe_open(file, framework="pt") as opened:
        words = json.loads(opened.metadata()["progress"])
    kept = load_file(file)
    tensors(kept)
    save_file(kept, file, metadata={"progress": json.dumps(progress(words))})
    return file


def refusal(folder, **options):
    """Return why a trainer does not resume, after a look whether it has left its model alone."""
    trainer = tiny_trainer(folder, seed=7, **options)
    before = {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
    with pytest.raises(ValueError, match="checkpoint") as raised:
        trainer.resume()
    for name, tensor in trainer.model.state_dict().items():
        assert torch.equal(tensor, before[name])
    assert trainer.steps_done == 0
    assert not trainer.optimizer.state
    return str(raised.value)


# A checkpoint is believed after all of it has been looked at


def without(part):
    """Return what takes all tensors out whose names begin with ``part``."""

    def remove(tensors):
        for name in [name for name in tensors if name.startswith(part)]:
            del tensors[name]

    return remove


def with_other(name, tensor):
    """Return what puts another tensor in."""
    return lambda tensors: tensors.update({name: tensor})


WEIGHT = "decoder.layers.0.feed_forward.inner.weight"


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        (without("optimizer."), "optimizer.exp_avg.decoder"),
        (without("optimizer.exp_avg_sq."), "optimizer.exp_avg_sq.decoder"),
        (without("random.cpu"), "random.cpu"),
        (without("model."), "model.decoder"),
        (with_other(f"optimizer.exp_avg.{WEIGHT}", torch.zeros(3)), f"optimizer.exp_avg.{WEIGHT}"),
        (with_other(f"model.{WEIGHT}", torch.zeros(16, 8).double()), f"model.{WEIGHT}"),
        (with_other("random.cpu", torch.zeros(9, dtype=torch.uint8)), "random.cpu"),
        (with_other("model.more", torch.zeros(3)), "model.more"),
        (with_other("optimizer.momentum.more", torch.zeros(3)), "optimizer.momentum.more"),
    ],
)
def test_a_checkpoint_with_other_tensors_is_refused_and_changes_nothing(stopped, changes, name):
    file = change(stopped, tensors=changes)
    assert refusal(stopped).startswith(f"{file}: expected {name}")


@pytest.mark.parametrize(
    "progress",
    [
        lambda _: None,
        lambda _: [],
        lambda _: "words",
        lambda _: {},
        lambda words: words | {"step": 10**9},
        lambda words: words | {"step": -3},
        lambda words: words | {"step": 3.0},
        lambda words: words | {"step": True},
        lambda words: words | {"step": None},
    ],
)
def test_words_that_no_run_has_written_are_refused(stopped, progress):
    file = change(stopped, progress=progress)
    assert refusal(stopped).startswith(f"{file} is no checkpoint of a Trainer")


@pytest.mark.parametrize("part", ["model", "config", "batches"])
def test_a_checkpoint_that_does_not_say_which_run_it_is_of(stopped, part):
    for nothing in (lambda words: words | {part: None}, lambda words: words | {part: []}):
        change(stopped, progress=nothing)
        assert refusal(stopped) == f"{part}: the checkpoint in {stopped} says nothing about it"


def test_a_checkpoint_that_is_nested_too_deep(stopped):
    (file,) = list_checkpoints(stopped)
    save_file(
        {"x": torch.zeros(1)}, file, metadata={"progress": '{"step":' * 5000 + "1" + "}" * 5000}
    )
    assert "is no checkpoint of a Trainer" in refusal(stopped)


def test_a_run_beyond_its_end_is_refused(tmp_path):
    config = replace(SHORT, steps=4)
    tiny_trainer(tmp_path, SHORT).train(6)
    message = f"config: the checkpoint in {tmp_path} is of step 6, and steps = 4"
    assert refusal(tmp_path, config=config) == message


@pytest.mark.parametrize(
    "lines", ["{}\n", "3\n[]\nnull\n", '{"step": "2"}\n', '{"loss": 1}\n', "\xff\n", '{"a":' * 5000]
)
def test_a_log_of_other_lines(stopped, lines):
    log = stopped / "log.jsonl"
    kept = read_log(stopped)
    log.write_bytes(log.read_bytes() + lines.encode("latin-1"))
    assert read_log(stopped) == kept
    trainer = tiny_trainer(stopped)
    assert trainer.resume()
    assert [line["step"] for line in trainer.train()] == [1, 2, 3, 4, 5, 6]


# Files of others, and other runs


def test_files_of_others_are_left_alone(tmp_path):
    # skydiscover-ai/skydiscover#9
    trainer = tiny_trainer(tmp_path, replace(SHORT, save_every=1, keep=2))
    trainer.train(2)
    copies = ["checkpoint-best.safetensors", "checkpoint-00000002 (copy).safetensors", "notes.txt"]
    whole = list_checkpoints(tmp_path)[-1].read_bytes()
    for name in copies:
        (tmp_path / name).write_bytes(whole)
    (tmp_path / "checkpoint-00000009.safetensors.d").mkdir()
    resumed = tiny_trainer(tmp_path, replace(SHORT, save_every=1, keep=2), seed=3)
    assert resumed.resume()
    assert resumed.steps_done == 2
    resumed.train()
    names = [file.name for file in list_checkpoints(tmp_path)]
    assert names == ["checkpoint-00000005.safetensors", "checkpoint-00000006.safetensors"]
    for name in copies:
        assert (tmp_path / name).read_bytes() == whole


def test_a_copy_under_the_number_of_another_step(stopped):
    (file,) = list_checkpoints(stopped)
    later = file.with_name("checkpoint-00000005.safetensors")
    later.write_bytes(file.read_bytes())
    message = f"{later} is no checkpoint of a Trainer: it says that its step is 3"
    assert refusal(stopped) == message


def test_checkpoints_are_in_the_order_of_their_steps(tmp_path):
    for step in (99_999_999, 100_000_000, 3):
        (tmp_path / f"checkpoint-{step:08d}.safetensors").write_bytes(b"")
    steps = [int(file.stem[11:]) for file in list_checkpoints(tmp_path)]
    assert steps == [3, 99_999_999, 100_000_000]


WAITING = """
import sys
from tests.library.tiny_runs import tiny_trainer

trainer = tiny_trainer(sys.argv[1])
def wait():
    print("trains", flush=True)
    sys.stdin.readline()
    return {}
trainer.validate = wait
trainer.train()
"""


def test_a_second_run_in_a_folder_is_refused_at_once(tmp_path):
    with subprocess.Popen(
        command(WAITING, tmp_path),
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as first:
        assert first.stdout.readline() == "trains\n"
        log = (tmp_path / "log.jsonl").read_bytes()
        second = tiny_trainer(tmp_path)
        message = f"^folder: another run is at work in {tmp_path}"
        for action in (second.resume, second.train, second.save):
            with pytest.raises(BlockingIOError, match=message):
                action()
        assert second.steps_done == 0
        assert (tmp_path / "log.jsonl").read_bytes() == log
        first.kill()
    assert second.resume() is False  # a killed run keeps nobody out
    second.train()
    assert [line["step"] for line in read_log(tmp_path)] == [1, 2, 3, 4, 5, 6]


def test_a_second_trainer_of_the_same_process_is_refused_too(tmp_path):
    other = tiny_trainer(tmp_path)
    refused = []

    def begin():
        with pytest.raises(BlockingIOError):
            other.train()
        refused.append(True)
        return {}

    trainer = tiny_trainer(tmp_path)
    trainer.validate = begin
    trainer.train()
    assert refused == [True, True]


KILLED = """
import os, signal, sys
from tests.library.tiny_runs import tiny_trainer

sync, last = os.fsync, int(sys.argv[2])
def killed_while_saving(descriptor):
    sync(descriptor)
    if trainer.steps_done == last:
        os.kill(os.getpid(), signal.SIGKILL)
trainer = tiny_trainer(sys.argv[1])
trainer.resume()
os.fsync = killed_while_saving
trainer.train(last - 3)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows kills otherwise")
def test_kills_while_saving_leave_nothing_that_grows(stopped):
    sizes = []
    for last in (4, 5, 4):
        done = subprocess.run(command(KILLED, stopped, last), env=environment(), check=False)
        assert done.returncode == -signal.SIGKILL
        assert len(list_checkpoints(stopped)) == 1
        sizes.append(sum(file.stat().st_size for file in stopped.glob("*checkpoint*")))
    assert sizes[0] == sizes[1] == sizes[2]
    trainer, through = tiny_trainer(stopped, seed=3), tiny_trainer()
    assert trainer.resume()
    trainer.train()
    through.train()
    assert_same_weights(trainer.model, through.model)
    names = {file.name for file in stopped.iterdir()}
    assert names == {*(file.name for file in list_checkpoints(stopped)), "log.jsonl", "run.lock"}


# What will be written is proven writable before the first step


@pytest.mark.without_shape_checks
def test_numpy_ids_are_ids(tmp_path):
    # huggingface/transformers#10299
    pairs = [(np.array(source), np.array(target)) for source, target in some_pairs()]
    trainer = tiny_trainer(tmp_path / "numpy", pairs=pairs)
    trainer.train()
    plain = tiny_trainer(tmp_path / "plain")
    plain.train()
    ours, theirs = (list_checkpoints(tmp_path / name)[-1] for name in ("numpy", "plain"))
    assert_same_checkpoint(ours, theirs)
    assert tiny_trainer(tmp_path / "numpy").resume()  # the data are the same


class Odd:
    """Batches whose identity cannot be written."""

    padding_id = 0
    pairs = some_pairs()

    @property
    def identity(self):
        """Return what JSON does not know."""
        return {"of": np.int64(3)}

    def __getitem__(self, number):
        """Give no batch: no step may be made."""
        raise AssertionError


def test_what_cannot_be_written_is_found_before_the_first_step(tmp_path):
    trainer = Trainer(tiny_model(), Odd(), SHORT, folder=tmp_path)
    with pytest.raises(TypeError, match="int64"):
        trainer.train()
    assert trainer.steps_done == 0


def test_a_disk_without_room_is_found_before_the_first_step(tmp_path, monkeypatch):
    trainer = tiny_trainer(tmp_path)
    usage = checkpoints.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(checkpoints.shutil, "disk_usage", lambda _: usage._replace(free=100_000))
    message = rf"^folder: {tmp_path}: no room for 5 checkpoints of [\d,]+ bytes$"
    with pytest.raises(OSError, match=message):
        trainer.train()
    assert trainer.steps_done == 0
    assert not (tmp_path / "checkpoint.part").exists()
    assert not list_checkpoints(tmp_path)


def test_what_was_done_before_a_failing_validation_is_saved(tmp_path):
    def fail():
        raise RuntimeError("no scores")

    trainer = tiny_trainer(tmp_path)
    trainer.validate = fail
    with pytest.raises(RuntimeError, match="no scores"):
        trainer.train()
    assert [file.stem[-1] for file in list_checkpoints(tmp_path)] == ["3"]


# Names inside wrappers


class Wrapped(nn.Module):
    """Stands for what torch.compile returns, without compiling."""

    def __init__(self, inside):
        super().__init__()
        self._orig_mod = inside

    def forward(self, *arguments, **options):
        """Call what is inside."""
        return self._orig_mod(*arguments, **options)


Wrapped.__name__ = "OptimizedModule"


@pytest.mark.parametrize("wrap", [Wrapped, nn.DataParallel, lambda m: nn.DataParallel(Wrapped(m))])
def test_a_wrapped_model_is_saved_under_its_own_names(wrap, tmp_path):
    plain = tiny_trainer(tmp_path / "plain")
    plain.train()
    batches = Batches(some_pairs(), tokens_per_batch=40)
    Trainer(wrap(tiny_model()), batches, SHORT, folder=tmp_path / "wrapped").train(3)
    resumed = Trainer(wrap(tiny_model(4)), batches, SHORT, folder=tmp_path / "wrapped")
    assert resumed.resume()
    resumed.train()
    files = [list_checkpoints(tmp_path / name)[-1] for name in ("plain", "wrapped")]
    assert_same_checkpoint(*files)
    tiny_model().load_state_dict(average_checkpoints(files[1:]))
    assert tiny_trainer(tmp_path / "wrapped").resume()  # without the wrapper


def test_a_part_that_is_wrapped_is_saved_under_its_own_names(tmp_path):
    model = tiny_model()
    model.encoder = Wrapped(model.encoder)
    batches = Batches(some_pairs(), tokens_per_batch=40)
    Trainer(model, batches, SHORT, folder=tmp_path).train(1)
    (file,) = list_checkpoints(tmp_path)
    assert not [name for name in contents(file) if "_orig_mod" in name]
    assert tiny_trainer(tmp_path).resume()


def test_names_that_only_look_like_wrappers_stay():
    model = nn.ModuleDict({"module": nn.Linear(2, 2)})
    assert own_name(model, "module.weight") == "module.weight"
    assert own_name(nn.DataParallel(model), "module.module.weight") == "module.weight"
    assert unwrapped(nn.DataParallel(Wrapped(model))) is model


def test_tied_weights_of_any_module_are_saved(tmp_path):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight

    def loss(model, batch):
        return model(batch).square().mean()

    config = TrainingConfig(steps=4, schedule="linear", warmup=1)
    data = {n: torch.randn(2, 3, generator=torch.Generator().manual_seed(n)) for n in range(4)}
    Trainer(model, data, config, loss=loss, folder=tmp_path).train(2)
    other = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    other[1].weight = other[0].weight
    resumed = Trainer(other, data, config, loss=loss, folder=tmp_path)
    assert resumed.resume()
    assert_same_weights(other, model)


# One loop for whatever is to be learnt


def line(model, batch):
    """Return the mean square of what a model is off from y = 2x."""
    return (model(batch) - 2 * batch).square().mean()


class Numbers:
    """Batch n is drawn from n."""

    def __getitem__(self, number):
        """Return 8 numbers."""
        return torch.randn(8, 1, generator=torch.Generator().manual_seed(number))


def test_a_function_is_a_loss_and_any_module_a_model(tmp_path):
    config = TrainingConfig(steps=300, schedule="linear", warmup=1, learning_rate=0.05)
    torch.manual_seed(0)
    model = nn.Linear(1, 1)
    log = Trainer(model, Numbers(), config, loss=line, folder=tmp_path).train()
    assert model.weight.item() == pytest.approx(2, abs=0.01)
    assert log[0]["count"] == 100  # a batch counts as one
    assert log[-1]["loss"] < 0.01 * log[0]["loss"]


def test_own_schedules_and_groups_of_parameters():
    model = nn.Linear(1, 1)
    groups = [{"params": [model.weight], "scale": 10.0}, {"params": [model.bias]}]
    config = TrainingConfig(steps=3, log_every=1)
    rates = []

    def loss(model, batch):
        rates.append([group["lr"] for group in trainer.optimizer.param_groups])
        return line(model, batch)

    trainer = Trainer(
        model, Numbers(), config, loss=loss, schedule=lambda step: 0.1 / step, parameters=groups
    )
    log = trainer.train()
    assert rates == [[pytest.approx(1.0 / n), pytest.approx(0.1 / n)] for n in (1, 2, 3)]
    assert [entry["learning_rate"] for entry in log] == [0.1, 0.05, pytest.approx(0.1 / 3)]


def test_validation_goes_into_the_log_and_changes_nothing(tmp_path):
    trainer = tiny_trainer(tmp_path)
    modes = []

    def validate():
        modes.append(trainer.model.training)
        torch.rand(5)
        return {"score": torch.tensor(0.5), "other": np.float32(2)}

    trainer.validate = validate
    log = trainer.train()
    assert [entry.get("score") for entry in log] == [None, None, 0.5, None, None, 0.5]
    assert log[-1]["other"] == 2.0
    assert modes == [False, False]
    assert read_log(tmp_path) == log
    plain = tiny_trainer()
    plain.train()
    assert_same_weights(trainer.model, plain.model)


def test_a_parameter_without_a_gradient_resumes_too(tmp_path):
    def two():
        torch.manual_seed(0)
        return nn.ModuleDict({"used": nn.Linear(1, 1), "later": nn.Linear(1, 1)})

    def loss(model, batch):
        x = model["used"](batch)
        return (x if trainer.steps_done < 3 else model["later"](x)).square().mean()

    config = TrainingConfig(steps=6, schedule="linear", warmup=1, save_every=2)
    results = []
    for folder, stops in (("through", (6,)), ("stopped", (2, 4))):
        for count in stops:
            trainer = Trainer(two(), Numbers(), config, loss=loss, folder=tmp_path / folder)
            trainer.resume()
            trainer.train(count)
        results.append(trainer.model)
    assert_same_weights(*results)


# Where gradients are off


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
def test_a_run_trains_wherever_it_is_called(off):
    trainer, plain = tiny_trainer(), tiny_trainer()
    with off():
        trainer.train()
    plain.train()
    assert_same_weights(trainer.model, plain.model)


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
def test_a_step_without_gradients_is_refused(off):
    model = tiny_model()
    batch = Batches(some_pairs(), tokens_per_batch=40)[0]
    with off(), pytest.raises(RuntimeError, match=r"^training_step: expected gradients"):
        training_step(model, [batch], torch.optim.Adam(model.parameters()), TokenLoss())


def test_a_model_made_under_inference_mode_is_refused():
    with torch.inference_mode():
        model = tiny_model()
    with pytest.raises(ValueError, match=r"^model: its weights were made under torch.inference"):
        Trainer(model, Batches(some_pairs(), tokens_per_batch=40), SHORT)


# Types are checked where numbers would be cut


@pytest.mark.without_shape_checks
@pytest.mark.parametrize("labels", [[1.9, 3.7], [True, False], [1j, 2j]])
def test_labels_are_whole_numbers(labels):
    # pytorch/pytorch#174943
    with pytest.raises(TypeError, match=r"^labels: expected whole numbers, token ids, got torch"):
        sequence_loss(torch.randn(2, 5), torch.tensor(labels))


@pytest.mark.without_shape_checks
@pytest.mark.parametrize("bad", [1.5, True, "3", None, np.float64(3), np.True_])
def test_token_ids_are_whole_numbers(bad):
    message = r"^pairs: the target of pair 1: expected token ids, whole numbers, got "
    with pytest.raises(TypeError, match=message):
        Batches([([4], [START, END]), ([4], [START, bad, END])], tokens_per_batch=9)


@pytest.mark.without_shape_checks
@pytest.mark.parametrize(
    ("steps", "kind", "message"),
    [
        (-1, ValueError, r"^steps: expected 0 or more, got -1$"),
        (2.0, TypeError, r"^steps: expected a whole number or None, got 2.0$"),
        (True, TypeError, r"^steps: expected a whole number or None, got True$"),
    ],
)
def test_numbers_of_steps_that_are_none(steps, kind, message):
    trainer = tiny_trainer()
    with pytest.raises(kind, match=message):
        trainer.train(steps)
    assert trainer.steps_done == 0


def test_a_warm_up_as_long_as_the_run_trains():
    log = tiny_trainer(config=replace(SHORT, schedule="linear", warmup=6)).train()
    rates = [entry["learning_rate"] for entry in log]
    assert rates == pytest.approx([n / 6 for n in range(1, 7)])

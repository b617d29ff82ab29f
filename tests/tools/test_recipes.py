"""The recipes run, and what they left behind belongs together."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from transformer_lib.translation import Translator

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "recipes"
SHIPPED = ROOT / "transformer_lib/models/ko-en"
RECORD = json.loads((RECIPES / "ko_en/scores.json").read_text(encoding="utf-8"))
PAIRS = ["나는 물을 마셔요.\tI drink water.", "너는 차를 마셔요.\tYou drink tea."] * 6


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(RECIPES / "ko_en.py"), *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


def test_the_shipped_weights_are_those_that_were_scored():
    weights = (SHIPPED / "model.safetensors").read_bytes()
    assert hashlib.sha256(weights).hexdigest() == RECORD["sha256"]
    assert len(weights) < 5e6


def test_the_log_is_that_of_the_whole_run():
    log = [json.loads(line) for line in (RECIPES / "ko_en/log.jsonl").read_text().splitlines()]
    training = RECORD["recipe"]["training"]
    assert [line["step"] for line in log] == list(
        range(training["log_every"], training["steps"] + 1, training["log_every"])
    )
    assert log[-1]["loss"] < log[0]["loss"] / 3
    assert round(sum(line["seconds"] for line in log)) == RECORD["seconds"]
    assert RECORD["seconds"] * RECORD["threads"] <= 2 * 60 * 60


def test_the_scores_are_those_that_were_promised():
    scores = RECORD["scores"]
    assert scores["random"]["bleu"] >= 90
    assert scores["compositional"]["bleu"] >= 80
    assert scores["compositional"]["nearest_neighbour_bleu"] < 60
    assert scores["homonyms"]["sense_accuracy"] >= 98


def test_the_card_says_what_was_scored():
    card = (SHIPPED / "README.md").read_text(encoding="utf-8")
    for name, scores in RECORD["scores"].items():
        assert f"| {name} | {scores['sentences']} | {scores['bleu']:.1f} |" in card
    model = Translator.from_pretrained("ko-en").model
    assert f"{sum(p.numel() for p in model.parameters()):,} parameters" in card
    assert f"{RECORD['scores']['homonyms']['sense_accuracy']} %" in card


def test_own_pairs_from_beginning_to_end(tmp_path):
    (tmp_path / "pairs.tsv").write_text("\n".join(PAIRS) + "\n", encoding="utf-8")
    data = ["--pairs", "pairs.tsv", "--valid", "pairs.tsv"]
    done = run("--folder", "run", *data, "--steps", "200", folder=tmp_path)
    # The vocabulary is smaller than the recipe's: there is too little text for 4000 subwords.
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "run/scores.json").read_text(encoding="utf-8"))
    assert set(result["scores"]) == {"beams = 1", "beams = 4"}
    translator = Translator.from_pretrained(tmp_path / "run/model")
    assert translator.translate("나는 물을 마셔요.") == "I drink water."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pairs", "a.tsv"], "--pairs and --valid belong together"),
        (["--pairs", "a.tsv", "--valid", "b.tsv", "--ship"], "--ship is for the grammar's"),
    ],
)
def test_options_that_do_not_fit(arguments, message, tmp_path):
    done = run("--folder", "run", *arguments, folder=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_file_that_is_missing_is_named(tmp_path):
    done = run("--folder", "run", "--pairs", "a.tsv", "--valid", "b.tsv", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("ko_en.py: file: ")
    assert "a.tsv" in done.stderr


def test_the_model_is_saved_before_it_is_scored(tmp_path):
    (tmp_path / "pairs.tsv").write_text("\n".join(PAIRS) + "\n", encoding="utf-8")
    (tmp_path / "valid.tsv").write_text("😀😀\tsmile\n", encoding="utf-8")
    data = ["--pairs", "pairs.tsv", "--valid", "valid.tsv"]
    done = run("--folder", "run", *data, "--steps", "2", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("ko_en.py: text: ")
    Translator.from_pretrained(tmp_path / "run/model")

"""The hand-written pairs are what their datasheet says, and the tool sees when they are not."""

import re
import sys
from pathlib import Path
from typing import get_args

import pytest

from transformer_lib.datasets import handwritten as package
from transformer_lib.datasets.handwritten import (
    HandwrittenPair,
    Split,
    handwritten,
    training_pairs,
)

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_corpus  # noqa: E402


def pair(korean: str, *english: str) -> HandwrittenPair:
    return HandwrittenPair(korean, english, "a topic", 0)


@pytest.fixture(scope="module")
def splits():
    return {split: handwritten(split) for split in get_args(Split)}


def test_the_corpus_is_what_its_datasheet_says(splits):
    assert [*check_corpus.split_faults(splits)] == []
    assert [f for pairs in splits.values() for f in check_corpus.format_faults(pairs)] == []
    sheet = Path(package.__file__).with_name("README.md").read_text(encoding="utf-8")
    sizes = {split: len(pairs) for split, pairs in splits.items()}
    assert sizes == {"train": 8231, "valid": 445, "test": 624}
    for number in (*sizes.values(), sum(sizes.values())):
        assert f"{number:,}" in sheet
    meanings = {(split, p.meaning) for split, pairs in splits.items() for p in pairs}
    assert f"{len(meanings):,} meanings" in sheet
    topics = {p.topic for pairs in splits.values() for p in pairs}
    assert f"{len(topics)} topics" in sheet


def test_pairs_of_one_meaning_stand_together():
    pairs = handwritten("train")
    numbers = [p.meaning for p in pairs]
    assert numbers == sorted(numbers)
    assert all(p.topic and p.english for p in pairs)
    assert len(training_pairs()) == sum(len(p.english) for p in pairs)
    assert len({p.korean for p in pairs}) == len(pairs)


@pytest.mark.parametrize(
    ("korean", "english"),
    [
        ("집에 가요", "I'm going home."),  # no full stop
        ("집에  가요.", "I'm going home."),
        ("집에 가요 .", "I'm going home."),
        ("I'm going home.", "I'm going home."),
        ("집에 가요.", "i'm going home."),
        ("집에 가요.", "I'm going “home”."),
        ("집에 가요.", "One " * 17 + "word."),
        ("\u1112\u1161\u11ab가요.", "I'm going."),  # letters one by one
    ],
)
def test_faults_of_format_are_seen(korean, english):
    assert list(check_corpus.format_faults([pair(korean, english)]))


def test_patterns_and_splits_are_seen():
    nouns = ["사과", "우유", "커피", "김치", "만두", "카레"]
    six = [pair(f"{noun}를 먹어요.", f"I eat {noun}s.") for noun in nouns]
    assert not [*check_corpus.split_faults({"train": six[:5]})]
    assert any("occurs 6 times" in f for f in check_corpus.split_faults({"train": six}))
    assert any(
        "is in" in f for f in check_corpus.split_faults({"train": six[:1], "test": six[1:2]})
    )
    same = {"train": [pair("집에 가.", "Go home.")], "valid": [pair("집으로 가요.", "Go home.")]}
    assert any("gohome: is in train and valid" in f for f in check_corpus.split_faults(same))


def test_content_is_masked_and_function_words_stay():
    assert check_corpus.pattern("나는 사과를 안 먹었어요.", "I didn't eat an apple.") == (
        "나는 _를 안 _었어요 .",
        "i didn't _ an _ .",
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "close"),
    [
        (("톰은 집에 갔다.", "Tom went home."), ("메리는 집에 갔다.", "Mary went home."), True),
        (("나는 3시에 왔다.", "I came at 3."), ("나는 5시에 왔다.", "I came at 5."), True),
        (("나는 밥을 먹었다.", "I ate rice."), ("나는 국을 먹었다.", "I ate soup."), True),
        (("나는 집에 갔다.", "I went home."), ("나는 빨리 집에 갔다.", "I went home fast."), True),
        (
            ("나는 밥을 먹었다.", "I ate rice."),
            ("나는 국을 먹었다.", "We had a soup then."),
            False,
        ),
        (("나는 밥을 지었다.", "I made rice."), ("나는 국을 먹었다.", "I ate soup."), False),
        (("우울해.", "I'm sad."), ("행복해.", "I'm happy."), False),  # one word is always one off
        (("우울해.", "I'm sad."), ("우울해!", "I'm sad!"), True),
    ],
)
def test_pairs_too_close_to_what_is_measured_are_seen(ours, theirs, close):
    found = list(check_corpus.close_pairs([(ours[0], ours[1:])], [theirs]))
    assert bool(found) == close


def test_the_command_line(tmp_path, capsys):
    first = handwritten("train")[0]
    file = tmp_path / "measured.tsv"
    file.write_text(f"{first.korean}\t{first.english[0]}\n", encoding="utf-8")
    assert check_corpus.main([]) == 0
    assert "0 faults" in capsys.readouterr().out
    assert check_corpus.main(["--measured", str(file)]) == 1
    assert re.search(re.escape(first.korean) + ".*too close", capsys.readouterr().out)

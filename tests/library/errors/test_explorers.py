"""Explorers: messages that name the argument, what was expected and what came."""

import copy

import pytest
import torch
from PIL import Image

from transformer_lib.course import explorers
from transformer_lib.transformer import Transformer, TransformerConfig
from transformer_lib.translation import Translator, train_tokenizer

VALUES = torch.tensor([[1.0, 1.0], [5.0, 2.0], [2.0, 4.0]])
WEIGHTS = torch.tensor([0.2, 0.3, 0.5])
SCORES = torch.tensor([2.0, 1.0, 0.0, -1.0])
GRADIENT = torch.tensor([2.0, -2.0, 0.5, 1.0])
WORDS = ["she", "reads", "<pad>"]
PICTURE = Image.new("RGB", (8, 4))
TOKENIZER = train_tokenizer(["ab abc abcd"], 14)
SIZE = TOKENIZER.get_vocab_size()
MODEL = Transformer(TransformerConfig(SIZE, SIZE, d_model=4, n_heads=1, d_ff=4, tied="all")).eval()
DETECTIONS = (PICTURE, [0.5, 0.5], ["a", "b"], torch.ones(2, 4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: explorers.explore_weighted_sum(VALUES.int(), WEIGHTS), "values: .*floating"),
        (lambda: explorers.explore_weighted_sum(VALUES[:2], WEIGHTS), r"values: .*\(3, 2\), got"),
        (lambda: explorers.explore_weighted_sum(VALUES, WEIGHTS[:2]), r"weights: .*\(3,\), got"),
        (lambda: explorers.explore_weighted_sum(VALUES / 0, WEIGHTS), "values: .*finite"),
        (lambda: explorers.explore_weighted_sum(torch.ones(3, 2), WEIGHTS), "values: .*one line"),
        (lambda: explorers.explore_weighted_sum(VALUES, 5 * WEIGHTS), "weights: .*-1 to 2"),
        (lambda: explorers.explore_softmax(SCORES[:1], GRADIENT[:1]), r"scores: .*got \(1,\)"),
        (lambda: explorers.explore_softmax(9 * SCORES, GRADIENT), "scores: .*-5 to 5"),
        (lambda: explorers.explore_softmax(SCORES, GRADIENT[:3]), r"gradient: .*got \(3,\)"),
        (lambda: explorers.explore_softmax(SCORES, GRADIENT / 0), "gradient: .*finite"),
        (lambda: explorers.explore_positions(7), "d_model: .*even .*got 7"),
        (lambda: explorers.explore_positions(8, 1), "length: .*got 1"),
        (lambda: explorers.explore_positions(places=(0, 64)), "places: .*0 to 63"),
        (lambda: explorers.explore_masks(torch.eye(2), WORDS), r"scores: .*\(3, 3\), got \(2, 2\)"),
        (lambda: explorers.explore_masks(torch.eye(9), list("abcdefghi")), "scores: .*1 to 8 keys"),
        (lambda: explorers.explore_masks(torch.eye(3) / 0, WORDS), "scores: .*finite"),
        (
            lambda: explorers.explore_masks(torch.eye(3), WORDS, key_mask=torch.ones(3)),
            "key_mask: expected a boolean",
        ),
        (
            lambda: explorers.explore_masks(torch.eye(3), WORDS, key_mask=torch.ones(2).bool()),
            r"key_mask: .*\(3,\), got \(2,\)",
        ),
        (lambda: explorers.explore_detections("x.png", *DETECTIONS[1:]), "image: .*got str"),
        (lambda: explorers.explore_detections(PICTURE, [], [], torch.ones(0, 4)), "scores: "),
        (lambda: explorers.explore_detections(PICTURE, [0.5], ["a"], torch.ones(4)), "boxes: "),
        (lambda: explorers.explore_detections(*DETECTIONS[:2], ["a"], DETECTIONS[3]), "labels: "),
        (
            lambda: explorers.explore_detections(PICTURE, [1.5], ["a"], torch.ones(1, 4)),
            "scores: .*0 to 1",
        ),
        (lambda: explorers.explore_detections(*DETECTIONS, threshold=2), "threshold: .*got 2"),
        (lambda: explorers.explore_detections(*DETECTIONS, torch.ones(3, 2, 2)), "attention: .*3"),
        (lambda: explorers.explore_detections(*DETECTIONS, torch.ones(2, 2)), "attention: .*axes"),
        (lambda: explorers.explore_detections(*DETECTIONS, -torch.ones(2, 1, 1)), "at least 0"),
        (lambda: explorers.explore_detections(*DETECTIONS, torch.ones(2, 0, 1)), "attention: "),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("text",), TypeError, r"source: expected token ids .*got str"),
        ((torch.ones(3).long(), torch.ones(1, 3).long()), TypeError, r"source: .*got \(3,\)"),
        ((torch.ones(1, 3), torch.ones(1, 3).long()), TypeError, "source: expected token ids"),
        ((torch.ones(1, 3).long(),), TypeError, r"target: expected token ids .* got NoneType"),
        ((torch.ones(1, 3).long(), torch.ones(2, 3).long()), ValueError, "target: expected 1"),
        ((torch.ones(0, 3).long(), torch.ones(0, 3).long()), ValueError, "source: .*got none"),
        ((torch.ones(1, 65).long(), torch.ones(1, 3).long()), ValueError, "source: .*got 65"),
        ((torch.ones(1, 3).long(), torch.ones(1, 65).long()), ValueError, "target: .*got 65"),
    ],
)
def test_what_a_model_cannot_read_is_named(arguments, error, message):
    if isinstance(arguments[0], str):
        arguments = (*arguments, torch.ones(1, 3).long())
    with pytest.raises(error, match=message):
        explorers.explore_attention(MODEL, *arguments)


def test_what_cannot_be_explored_is_named():
    translator = Translator(MODEL, TOKENIZER)
    ids = torch.ones(1, 3).long()
    with pytest.raises(TypeError, match=r"model: expected a Translator, .*got Linear"):
        explorers.explore_attention(torch.nn.Linear(2, 2), "ab")
    with pytest.raises(ValueError, match=r"model: .*model\.eval\(\)"):
        explorers.explore_attention(copy.deepcopy(MODEL).train(), ids, ids)
    with pytest.raises(TypeError, match="source: expected text, one or several, got Tensor"):
        explorers.explore_attention(translator, torch.ones(1, 3).long())
    with pytest.raises(ValueError, match="source: expected at least one sentence"):
        explorers.explore_attention(translator, [])
    with pytest.raises(ValueError, match="target: expected 2 sentences as in source, got 1"):
        explorers.explore_attention(translator, ["ab", "abc"], "ab")


def test_a_class_that_a_chapter_builds_will_do():
    """A notebook that defines Translator has a class of its own, which no isinstance knows."""
    again = type("Translator", (), dict(vars(Translator)))
    assert not isinstance(again(MODEL, TOKENIZER), Translator)
    ours = explorers.explore_attention(Translator(MODEL, TOKENIZER), "ab", "abc")
    assert explorers.explore_attention(again(MODEL, TOKENIZER), "ab", "abc").data == ours.data

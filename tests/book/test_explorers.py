"""Explorers: the numbers they carry are the library's, and their HTML is safe and the same."""

import json
import re

import pytest
import torch
from bs4 import BeautifulSoup
from PIL import Image

from transformer_lib.course import explorers, plotting
from transformer_lib.masking import causal_mask
from transformer_lib.published.marian import MarianTranslator
from transformer_lib.published.sentences import SentenceEncoder
from transformer_lib.softmax import softmax, softmax_jacobian, softmax_jvp
from transformer_lib.transformer import (
    TextEncoder,
    Transformer,
    TransformerConfig,
    record_attention,
)
from transformer_lib.translation import END, START, Translator, train_tokenizer

VALUES = torch.tensor([[1.0, 1.0], [5.0, 2.0], [2.0, 4.0]])
WEIGHTS = torch.tensor([0.2, 0.3, 0.5])
SCORES = torch.tensor([2.0, 1.0, 0.0, -1.0])
GRADIENT = torch.tensor([2.0, -2.0, 0.5, 1.0])
WORDS = ["she", "reads", "<pad>"]
PICTURE = Image.effect_mandelbrot((80, 40), (-2, -1, 1, 1), 20)
EVIL = "</script><script>alert(1)</script><!--"


def transformer(**sizes: int) -> Transformer:
    torch.manual_seed(0)
    options = {"n_encoder_layers": 2, "n_decoder_layers": 1, "padding_id": 0} | sizes
    config = TransformerConfig(
        source_vocabulary=40,
        target_vocabulary=40,
        d_model=12,
        n_heads=3,
        d_ff=16,
        tied="all",
        **options,
    )
    return Transformer(config).eval()


@pytest.fixture(scope="module")
def translator() -> Translator:
    """Return an untrained translator whose vocabulary has pieces of words."""
    tokenizer = train_tokenizer(["ab abc abcd", "ab ab bcd", "dd"], 20)
    torch.manual_seed(0)
    size = tokenizer.get_vocab_size()
    config = TransformerConfig(
        source_vocabulary=size,
        target_vocabulary=size,
        d_model=12,
        n_heads=3,
        n_encoder_layers=2,
        n_decoder_layers=2,
        d_ff=16,
        tied="all",
    )
    return Translator(Transformer(config), tokenizer)


def make_all(translator: Translator) -> dict[str, explorers.Explorer]:
    return {
        "weightedSum": explorers.explore_weighted_sum(VALUES, WEIGHTS),
        "softmax": explorers.explore_softmax(SCORES, GRADIENT),
        "positions": explorers.explore_positions(),
        "masks": explorers.explore_masks(torch.eye(3), WORDS),
        "attention": explorers.explore_attention(translator, ["ab abcd", "dd"], ["ab", "bcd"]),
        "detections": explorers.explore_detections(
            PICTURE, [0.9, 0.1], ["cat", EVIL], [[0, 0, 9, 9], [5, 5, 70, 30]], torch.rand(2, 2, 4)
        ),
    }


def numbers_in(page: str) -> dict:
    """Return the data that a page hands to the script."""
    (script,) = BeautifulSoup(page, "html.parser").select("script")
    (found,) = re.findall(r'\)\("\w+", "\w+", (\{.*\})\)\)\(window', script.string)
    return json.loads(found)


# -- The pages -------------------------------------------------------------------------------


def test_pages_carry_data_script_and_words(translator):
    for kind, explorer in make_all(translator).items():
        page = explorer._repr_html_()
        place, script = BeautifulSoup(page, "html.parser").find_all(recursive=False)
        assert explorer.kind == kind
        assert numbers_in(page) == json.loads(json.dumps(explorer.data))
        assert re.fullmatch(r"[0-9a-f]{12}", place["data-explorer"])
        assert f'("{kind}", "{place["data-explorer"]}", ' in script.string
        assert place["data-lm-suppress-shortcuts"] == "true"
        assert [line.get_text() for line in place.select("p")] == repr(explorer).splitlines()
        assert f"styles.{kind} =" in page
        assert page.count("styles.") == 1, "only the part of this explorer is sent"
        assert len(page) < 45_000


def test_pages_are_the_same_every_time(translator):
    first, second = make_all(translator), make_all(translator)
    for kind in set(first) - {"detections"}:
        assert first[kind]._repr_html_() == second[kind]._repr_html_()
        assert repr(first[kind]) == repr(second[kind])
    places = {
        re.search(r'data-explorer="(\w+)"', explorer._repr_html_())[1]
        for explorer in [*first.values(), explorers.explore_positions(8)]
    }
    assert len(places) == 7


def test_a_page_asks_for_nothing_and_looks_like_no_path_or_address(translator):
    for explorer in make_all(translator).values():
        page = explorer._repr_html_()
        assert re.findall(r'https?://[^"]+', page) == ["http://www.w3.org/2000/svg"]
        assert not re.search(r"\b(?:fetch|XMLHttpRequest|import)\b\s*\(|@import|url\(", page)
        assert not re.search(r"0x[0-9a-fA-F]{6,}", page)
        assert not re.search(r"(?<![\w<.:/])~?/(?:[\w.@+-]+/)+[\w.@+-]*", page)


def test_text_cannot_end_the_script():
    explorer = explorers.explore_masks(torch.eye(2), [EVIL, "ok"])
    page = explorer._repr_html_()
    assert page.count("<script") == page.count("</script>") == 1
    assert numbers_in(page)["queries"][0] == EVIL
    words = BeautifulSoup(page, "html.parser").div.get_text()
    assert EVIL in words
    assert EVIL in repr(explorer)


def test_a_saved_page_stands_alone(tmp_path):
    explorer = explorers.explore_softmax(SCORES, GRADIENT)
    explorer.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert explorer._repr_html_() in page
    assert '<meta charset="utf-8">' in page


def test_plotting_has_them_too():
    names = [name for name in explorers.__all__ if name.startswith("explore_")]
    assert len(names) == 6
    for name in names:
        assert getattr(plotting, name) is getattr(explorers, name)
        assert name in plotting.__all__


# -- The numbers -----------------------------------------------------------------------------


def test_weighted_sum_says_the_sum():
    explorer = explorers.explore_weighted_sum(VALUES, WEIGHTS)
    assert explorer.data["values"] == VALUES.tolist()
    assert explorer.data["weights"] == [0.2, 0.3, 0.5]
    assert explorer.words[-2:] == ("sum of the weights: 1.00", "result: (2.70, 2.80)")
    thirds = explorers.explore_weighted_sum(VALUES, torch.full((3,), 1 / 3))
    assert thirds.data["weights"] == [0.33, 0.33, 0.33], "where the sliders can stand"
    assert thirds.words[-2] == "sum of the weights: 0.99"


def test_softmax_says_weights_jacobian_and_gradient():
    explorer = explorers.explore_softmax(SCORES, GRADIENT)
    weights = softmax(SCORES)
    assert explorer.data["scores"] == SCORES.tolist()
    assert explorer.data["gradients"] == [GRADIENT.tolist(), [1.0] * 4, [1.0, 0.0, 0.0, 0.0]]
    said = [
        [float(n.replace("−", "-")) for n in re.findall(r"−?\d+\.\d+", line.partition(":")[2])]
        for line in explorer.words
    ]
    assert torch.allclose(torch.tensor(said[1]), weights, atol=6e-4)
    assert torch.allclose(torch.tensor(said[2:6]), softmax_jacobian(weights), atol=6e-3)
    assert torch.allclose(torch.tensor(said[7]), softmax_jvp(weights, GRADIENT), atol=6e-3)
    assert "−0.00" not in repr(explorer)


def test_positions_say_the_inner_product():
    explorer = explorers.explore_positions(16, 64, places=(10, 17))
    expected = sum(torch.cos(torch.tensor(7 / 10000 ** (2 * i / 16))) for i in range(8))
    assert explorer.words[-1] == f"their sum, the inner product: {expected:.3f}"
    assert explorer.data["places"] == [10, 17]


def test_masks_say_scores_and_weights():
    scores = torch.tensor([[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]])
    explorer = explorers.explore_masks(
        scores, ["a", "b"], WORDS, key_mask=torch.tensor([True, True, False])
    )
    assert explorer.data["scores"] == scores.tolist()
    assert explorer.data["padding"] == [False, False, True]
    assert "weights (0.09, 0.24, 0.67)" in explorer.words[1]
    assert explorers.explore_masks(torch.eye(3), WORDS).data["padding"] == [False] * 3


# -- Attention -------------------------------------------------------------------------------


def shares(layer: list[list[int]], queries: int) -> torch.Tensor:
    """Return stored weights of one layer as (n_heads, queries, keys)."""
    return torch.tensor(layer).reshape(len(layer), queries, -1) / 1000


def test_attention_holds_what_record_attention_records(translator):
    explorer = explorers.explore_attention(translator, ["ab abcd", "dd"], ["abc", "ab"])
    tokenizer, model = translator.tokenizer, translator.model
    assert [sentence["name"] for sentence in explorer.data["sentences"]] == ["ab abcd", "dd"]
    for sentence, source, target in zip(
        explorer.data["sentences"], ["ab abcd", "dd"], ["abc", "ab"], strict=True
    ):
        ids = [*tokenizer.encode(source).ids, END]
        read = [START, *tokenizer.encode(target).ids]
        with torch.no_grad(), record_attention(model) as weights:
            logits = model(torch.tensor([ids]), torch.tensor([read]))
        maps = sentence["maps"]
        assert [each["name"] for each in maps] == ["Encoder", "Decoder", "Cross-attention"]
        kinds = ("encoder", "self"), ("decoder", "self"), ("decoder", "cross")
        for each, (stack, kind) in zip(maps, kinds, strict=True):
            assert len(each["asks"]) == len(ids if stack == "encoder" else read)
            assert len(each["asked"]) == len(read if (stack, kind) == ("decoder", "self") else ids)
            assert len(each["layers"]) == 2
            for number, layer in enumerate(each["layers"]):
                expected = weights[f"{stack}.layers.{number}.{kind}_attention"][0]
                stored = shares(layer, len(each["asks"]))
                assert (stored - expected).abs().max() < 6e-4
        chosen = [tokenizer.id_to_token(token) for token in logits[0].argmax(-1).tolist()]
        assert maps[0]["next"] is None
        assert maps[1]["next"] == maps[2]["next"] == [token.lstrip("▁") or "▁" for token in chosen]
    assert not model.training
    assert next(model.parameters()).dtype == torch.float32, "a copy ran in float64"


def test_pieces_of_words_hang_together(translator):
    explorer = explorers.explore_attention(translator, "ab abcd", "ab")
    tokens = translator.tokenizer.encode("ab abcd").tokens
    asks = explorer.data["sentences"][0]["maps"][0]["asks"]
    assert [tuple(piece) for piece in asks] == [
        *((token.lstrip("▁"), int(token.startswith("▁"))) for token in tokens),
        ("</s>", 1),
    ]
    assert explorers._pieces(["[CLS]", "sea", "##side", "##", "[SEP]"]) == [
        ("[CLS]", 1),
        ("sea", 1),
        ("side", 0),
        ("##", 1),
        ("[SEP]", 1),
    ]
    assert explorers._pieces(["▁", "▁a", ".", "<unk>"]) == [
        ("▁", 1),
        ("a", 1),
        (".", 0),
        ("<unk>", 1),
    ]
    assert explorers._pieces(["7", "8"]) == [("7", 1), ("8", 1)]


def test_a_translator_translates_for_itself(translator):
    explorer = explorers.explore_attention(translator, "ab")
    written = translator.tokenizer.encode(translator.translate("ab")).tokens
    shown = [text for text, _ in explorer.data["sentences"][0]["maps"][1]["asks"]]
    assert shown == ["<s>", *(token.lstrip("▁") or "▁" for token in written)]


def test_models_take_ids_without_padding():
    model = transformer()
    source = torch.tensor([[5, 6, 7], [8, 9, 0]])
    target = torch.tensor([[0, 4, 3], [0, 4, 0]])  # Marian's start token is the padding
    explorer = explorers.explore_attention(model, source, target, token_name="t{}".format)
    first, second = explorer.data["sentences"]
    assert [text for text, _ in first["maps"][0]["asks"]] == ["t5", "t6", "t7"]
    assert [text for text, _ in second["maps"][2]["asked"]] == ["t8", "t9"]
    assert [text for text, _ in second["maps"][2]["asks"]] == ["t0", "t4"]
    with torch.no_grad(), record_attention(model) as weights:
        model(source[1:], target[1:])
    expected = weights["decoder.layers.0.cross_attention"][0, :, :2, :2]
    stored = shares(second["maps"][2]["layers"][0], 2)
    assert (stored - expected).abs().max() < 6e-4
    causal = shares(second["maps"][1]["layers"][0], 2)
    assert (causal[:, ~causal_mask(2)] == 0).all()


def test_encoders_have_one_kind_of_attention():
    config = transformer().config
    encoder = TextEncoder(config).eval()
    (sentence,) = explorers.explore_attention(encoder, torch.tensor([[5, 6, 7]])).data["sentences"]
    assert [each["name"] for each in sentence["maps"]] == ["Encoder"]
    assert len(sentence["maps"][0]["layers"]) == 2


def test_a_sentence_encoder_takes_text():
    tokenizer = train_tokenizer(["ab abc abcd"], 12)
    encoder = SentenceEncoder(TextEncoder(transformer().config).eval(), tokenizer)
    explorer = explorers.explore_attention(encoder, ["ab", "abcd"])
    assert [sentence["name"] for sentence in explorer.data["sentences"]] == ["ab", "abcd"]
    with pytest.raises(TypeError, match="target: expected none, an encoder takes"):
        explorers.explore_attention(encoder, "ab", "ab")


class Spelling:
    """What MarianTranslator asks of Hugging Face's tokenizer, one id for each letter."""

    def __call__(self, text=None, *, text_target=None):
        """Return ids with the end token."""
        ids = [4 + ord(letter) - ord("a") for letter in text or text_target]
        return type("Encoding", (), {"input_ids": [*ids, 1]})

    def convert_ids_to_tokens(self, token):
        """Write one id."""
        return {0: "<pad>", 1: "</s>"}.get(token, f"▁{chr(ord('a') + token - 4)}")


def test_a_marian_translator_takes_text():
    settings = {"decoder_start_token_id": 0, "eos_token_id": 1, "max_length": 12, "num_beams": 1}
    marian = MarianTranslator(transformer(), settings, Spelling())
    maps = explorers.explore_attention(marian, "cab", "be").data["sentences"][0]["maps"]
    assert [text for text, _ in maps[2]["asked"]] == ["c", "a", "b", "</s>"]
    assert [text for text, _ in maps[2]["asks"]] == ["<pad>", "b", "e"]
    written = marian.generate(torch.tensor([[6, 4, 5, 1]]))[0]
    maps = explorers.explore_attention(marian, "cab").data["sentences"][0]["maps"]
    assert len(maps[1]["asks"]) == 1 + len([token for token in written if token != 1])
    silent = MarianTranslator(transformer(), settings)
    with pytest.raises(ValueError, match="text needs a tokenizer"):
        explorers.explore_attention(silent, "cab")


# -- Detections ------------------------------------------------------------------------------


def test_detections_keep_all_queries():
    attention = torch.tensor([[[0.0, 1.0], [0.5, 0.25]], [[0.0, 0.0], [0.0, 0.0]]])
    explorer = explorers.explore_detections(
        PICTURE, torch.tensor([0.25, 0.75]), ["a", "b"], torch.ones(2, 4), attention, threshold=0.5
    )
    queries = explorer.data["queries"]
    assert [query["score"] for query in queries] == [0.25, 0.75]
    assert queries[0]["map"] == [0, 99, 50, 25]
    assert queries[1]["map"] == [0] * 4
    assert explorer.data["grid"] == [2, 2]
    assert explorer.data["size"] == [80, 40]
    assert explorer.words == (
        "1 of 2 queries are kept at threshold 0.50",
        "query 1: b 0.75, box (1, 1, 1, 1)",
    )
    explorer = explorers.explore_detections(PICTURE, [0.5], ["a"], [[0, 0, 1, 1]])
    assert explorer.data["grid"] is None
    assert explorer.words == ("0 of 1 queries are kept at threshold 0.50",)  # as a pipeline does


def test_a_large_picture_is_made_smaller():
    picture = Image.new("RGB", (1600, 800), "red")
    explorer = explorers.explore_detections(picture, [0.5], ["a"], [[0, 0, 800, 800]])
    assert explorer.data["size"] == [1600, 800], "boxes stay in pixels of the picture"
    assert len(explorer._repr_html_()) < 30_000

"""Text to tokens and back, scores against values by hand, and translation around any model."""

import copy
import json
import math
import os
import pickle
import random
import subprocess
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
import sacrebleu
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

import transformer_lib
from transformer_lib.decoding import CachedDecoder, Hypothesis
from transformer_lib.training import Batches, Trainer, TrainingConfig, pad
from transformer_lib.transformer import Transformer, TransformerConfig
from transformer_lib.translation import (
    END,
    PADDING,
    START,
    UNKNOWN,
    Translator,
    encode_pairs,
    nearest_neighbours,
    plain_text,
    score,
    token_ids,
    train_tokenizer,
)

ROOT = Path(transformer_lib.__file__).parent.parent
KOREAN = (
    "인도 카레 전문점",
    "인도 주행 금지",
    "배를 타고 갔다",
    "배가 아프다",
    "눈이 온다",
    "말을 탔다",
)
ENGLISH = (
    "Indian curry restaurant",
    "No riding on the sidewalk",
    "I went by boat",
    "My stomach hurts",
    "It is snowing",
    "I rode a horse",
)
PAIRS = list(zip(KOREAN, ENGLISH, strict=True))
TOKENIZER = train_tokenizer([*KOREAN, *ENGLISH], 120)


def config(**changes) -> TransformerConfig:
    size = TOKENIZER.get_vocab_size()
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 32, "max_length": 90}
    layers = {"n_encoder_layers": 1, "n_decoder_layers": 1}
    return TransformerConfig(size, size, **{**sizes, **layers, "dropout": 0.0, **changes})


def merges(tokenizer: Tokenizer) -> list[tuple[str, str]]:
    return [tuple(merge) for merge in json.loads(tokenizer.to_str())["model"]["merges"]]


def round_trip(tokenizer: Tokenizer, text: str) -> str:
    return tokenizer.decode(tokenizer.encode(text).ids)


@pytest.fixture(scope="module")
def untrained() -> Translator:
    torch.manual_seed(0)
    return Translator(Transformer(config()), TOKENIZER)


@pytest.fixture(scope="module")
def taught() -> Translator:
    """Return a translator that has learnt the six pairs by heart."""
    torch.manual_seed(0)
    translator = Translator(Transformer(config(d_model=32, d_ff=64, norm_first=True)), TOKENIZER)
    batches = Batches(encode_pairs(TOKENIZER, PAIRS), tokens_per_batch=200)
    settings = TrainingConfig(steps=150, schedule="linear", warmup=20, learning_rate=5e-3)
    Trainer(translator.model, batches, settings).train(progress=False)
    return translator


# The vocabulary


def test_the_special_tokens_come_first():
    assert (PADDING, START, END, UNKNOWN) == (0, 1, 2, 3)
    names = [TOKENIZER.id_to_token(token) for token in range(4)]
    assert names == ["<pad>", "<s>", "</s>", "<unk>"]


def test_the_vocabulary_has_the_size_asked_for():
    texts = [*KOREAN, *ENGLISH]
    assert train_tokenizer(texts, 100).get_vocab_size() == 100
    assert TOKENIZER.get_vocab_size() == 120
    characters = len(set("".join(texts)) - {" "} | {"▁"})
    assert train_tokenizer(texts, characters + 4).get_vocab_size() == characters + 4
    assert train_tokenizer(["a b"], 1000).get_vocab_size() == 4 + 3 + 2  # ▁, a, b; ▁a, ▁b


def test_merges_step_by_step():
    learnt = merges(train_tokenizer(["low low low lower lowest"], 16))
    # The ids, in order of the characters: e 4, l 5, o 6, r 7, s 8, t 9, w 10, ▁ 11. Three pairs are
    # there 5 times, of which (l, o) has the smallest ids, (5, 6) before (6, 10) and (11, 5). lo
    # becomes 12; then (▁, lo), which is (11, 12), goes before (lo, w), which is (12, 10).
    assert learnt == [("l", "o"), ("▁", "lo"), ("▁lo", "w"), ("▁low", "e")]


@pytest.mark.slow
@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_ties_go_to_the_smaller_ids_in_every_process(hash_seed):
    # karpathy/minbpe#93. (a, a) is there 4 times, counted with overlaps; then (aa, a) and (a, b)
    # tie at 2, and of these (a, b), with the ids (4, 5), goes before (aa, a), with (9, 4).
    script = (
        "import json; from transformer_lib.translation import train_tokenizer\n"
        "tokenizer = train_tokenizer(['aaabdaaabac'], 12)\n"
        "print(json.loads(tokenizer.to_str())['model']['merges'])\n"
        "print(tokenizer.encode('aaabdaaabac').tokens)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONIOENCODING": "utf-8"},
    )
    assert result.stdout.splitlines() == [
        "[['a', 'a'], ['a', 'b'], ['aa', 'ab']]",
        "['▁', 'aaab', 'd', 'aaab', 'a', 'c']",
    ]


def test_merges_are_applied_by_rank():
    # huggingface/course#608
    vocabulary = {token: number for number, token in enumerate("thugn")}
    vocabulary |= {"ug": 5, "un": 6, "hug": 7}
    model = models.BPE(vocab=vocabulary, merges=[("u", "g"), ("u", "n"), ("h", "ug")])
    assert Tokenizer(model).encode("thug").tokens == ["t", "hug"]


def test_rank_goes_before_place_in_a_tokenizer_of_ours():
    text = "ug ug ug ug thun thun"
    tokenizer = train_tokenizer([text], 4 + len(set("▁ughtn")) + 3)
    assert merges(tokenizer) == [("u", "g"), ("▁", "ug"), ("h", "u")]
    # from the left (h, u) would come first
    assert tokenizer.encode("thug").tokens == ["▁", "t", "h", "ug"]


def test_every_token_learnt_can_be_reached():
    # rasbt/LLMs-from-scratch#975
    text = "a b a b\na b"
    size = 4 + len({"▁", "a", "b", "\n"})
    learnt = merges(train_tokenizer([text], 100))
    assert learnt
    for number, pair in enumerate(learnt, start=1):
        # as soon as a token is learnt, the training text has it
        tokens = train_tokenizer([text], size + number).encode(text).tokens
        assert "".join(pair) in tokens
    for number in (0, len(learnt)):
        assert round_trip(train_tokenizer([text], size + number), text) == text


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_every_token_of_both_languages_can_be_reached(form):
    texts = [unicodedata.normalize(form, text) for text in (*KOREAN, *ENGLISH)]
    pairs = merges(train_tokenizer(texts, 120))
    for number in range(1, len(pairs) + 1, 5):
        tokenizer = train_tokenizer(texts, 120 - len(pairs) + number)
        used = {token for text in texts for token in tokenizer.encode(text).tokens}
        assert "".join(pairs[number - 1]) in used


def test_nothing_is_joined_across_words_punctuation_and_digits():
    texts = ["it's 2024, it's 2024, it's 2024."] * 5
    tokenizer = train_tokenizer(texts, 100)
    for token in tokenizer.get_vocab():
        if token not in ("<pad>", "<s>", "</s>", "<unk>"):
            assert "▁" not in token[1:]
            assert len(token) == 1 or not set(token) & set("'.,0123456789")
    assert tokenizer.encode(texts[0]).tokens == [
        *("▁it", "'", "s", "▁", "2", "0", "2", "4", ","),
        *("▁it", "'", "s", "▁", "2", "0", "2", "4", ","),
        *("▁it", "'", "s", "▁", "2", "0", "2", "4", "."),
    ]


@pytest.mark.without_shape_checks
def test_learning_is_deterministic_and_sees_each_text_alike():
    texts = [*KOREAN, *ENGLISH]
    shuffled = random.Random(0).sample(texts, len(texts))
    one, other = train_tokenizer(texts, 120), train_tokenizer(iter(shuffled), 120)
    assert one.get_vocab() == other.get_vocab()
    assert merges(one) == merges(other)


SENTENCES = st.text(alphabet="인도카레배가말한 abyz'.,?!019\n\t", max_size=30)
LEARNT = train_tokenizer(["인도 카레 배가 말한 a'b. y, z? ! 0 1 9\n\t", "인도 카레"], 60)


@given(SENTENCES)
def test_decoding_gives_the_text_back(text):
    expected = text[1:] if text.startswith(" ") else text
    assert round_trip(LEARNT, text) == expected


@given(SENTENCES)
def test_letters_and_syllables_are_one_text(text):
    apart = unicodedata.normalize("NFD", text)
    assert LEARNT.encode(apart).ids == LEARNT.encode(text).ids
    assert UNKNOWN not in LEARNT.encode(apart).ids


@given(SENTENCES, SENTENCES)
def test_two_texts_with_the_same_tokens_are_the_same(one, other):
    if LEARNT.encode(one).ids == LEARNT.encode(other).ids:
        assert one.removeprefix(" ") == other.removeprefix(" ")


def test_learning_from_letters_equals_learning_from_syllables():
    texts = [*KOREAN, *ENGLISH]
    apart = [unicodedata.normalize("NFD", text) for text in texts]
    assert apart != texts
    least = 4 + len(set("".join(texts)) - {" "} | {"▁"})
    for size in (least, 120):
        assert train_tokenizer(apart, size).get_vocab() == train_tokenizer(texts, size).get_vocab()


def test_a_space_at_the_start_and_the_mark_for_it_are_not_kept():
    assert round_trip(LEARNT, " 인도") == "인도"
    assert round_trip(LEARNT, "  인도") == " 인도"
    assert round_trip(LEARNT, "인도▁카레") == "인도 카레"


@pytest.mark.parametrize("token", ["<pad>", "<s>", "</s>", "<unk>"])
def test_special_tokens_in_a_text_are_text(token, untrained):
    tokenizer = train_tokenizer(["<pad> <s> </s> <unk> a"], 60)
    assert min(tokenizer.encode(f"a {token} a").ids) > UNKNOWN
    assert round_trip(tokenizer, f"a {token} a") == f"a {token} a"
    # and with a tokenizer that was read from a file, or pickled, or copied
    expected = untrained.encode(f"인도 {token} a")
    assert {PADDING, START, END} & set(expected) == {END}
    pickled, copied = pickle.loads(pickle.dumps(untrained)), copy.deepcopy(untrained)
    read = Translator(untrained.model, Tokenizer.from_str(TOKENIZER.to_str()))
    for other in (pickled, copied, read, copy.copy(copied), copy.deepcopy(pickled)):
        assert other.encode(f"인도 {token} a") == expected
        assert token_ids(copy.deepcopy(other.tokenizer), [f"인도 {token} a"]) == [expected[:-1]]
        assert other.translate(f"{token} 인도 a") == untrained.translate(f"{token} 인도 a")
    again = Tokenizer.from_str(TOKENIZER.to_str())
    assert encode_pairs(again, [(token, token)]) == encode_pairs(TOKENIZER, [(token, token)])
    assert min(encode_pairs(again, [(token, token)])[0][0][:-1]) >= UNKNOWN


INVISIBLE = "\ufeff\u200b\u200d\u2060\u00ad\u202e\u061c\u3164\u180e\ufe0f\x00\x07\x7f\U000e0041"


@pytest.mark.parametrize("character", INVISIBLE)
def test_what_cannot_be_seen_changes_nothing(character, taught):
    for place in (0, 1, 3, len(KOREAN[0])):
        text = KOREAN[0][:place] + character + KOREAN[0][place:]
        assert plain_text(text) == KOREAN[0]
        assert taught.encode(text) == taught.encode(KOREAN[0])
        assert taught.translate(text) == ENGLISH[0]
        assert encode_pairs(TOKENIZER, [(text, text)]) == encode_pairs(
            TOKENIZER, [(KOREAN[0], KOREAN[0])]
        )
        assert nearest_neighbours(KOREAN, [text]) == [0]
    parts = unicodedata.normalize("NFD", "인")
    assert plain_text(character.join(parts)) == "인"
    learnt = train_tokenizer([f"{character}{text}" for text in (*KOREAN, *ENGLISH)], 120)
    assert learnt.get_vocab() == TOKENIZER.get_vocab()


@given(st.text(max_size=20))
def test_plain_texts_are_plain(text):
    plain = plain_text(text)
    assert plain_text(plain) == plain
    assert unicodedata.is_normalized("NFC", plain)
    assert not [c for c in plain if unicodedata.category(c) == "Cc" and not c.isspace()]


def test_an_unknown_character_is_one_token_and_the_others_stay():
    tokens = TOKENIZER.encode("인도 뷁뷁 curry")
    assert tokens.ids.count(UNKNOWN) == 2
    assert TOKENIZER.decode([token for token in tokens.ids if token != UNKNOWN]) == "인도  curry"


def test_a_tokenizer_survives_its_file():
    again = Tokenizer.from_str(TOKENIZER.to_str())
    for text in (*KOREAN, *ENGLISH):
        assert again.encode(text).ids == TOKENIZER.encode(text).ids
        assert round_trip(again, text) == text


def test_pairs_as_training_takes_them():
    encoded = encode_pairs(TOKENIZER, PAIRS)
    assert len(encoded) == 6
    for (source, target), (korean, english) in zip(encoded, PAIRS, strict=True):
        assert source == [*TOKENIZER.encode(korean).ids, END]
        assert target == [START, *TOKENIZER.encode(english).ids, END]
    more = [(korean, english, "ignored") for korean, english in PAIRS]
    assert encode_pairs(TOKENIZER, iter(more)) == encoded
    assert encode_pairs(TOKENIZER, []) == []


# Scores


def by_hand(translations: list[str], references: list[str], orders: int = 4) -> float:
    """Return BLEU of words between spaces, as Papineni et al. (2002) write it."""
    matched, counted = [0] * orders, [0] * orders
    lengths = [0, 0]
    for translation, reference in zip(translations, references, strict=True):
        words, wanted = translation.split(), reference.split()
        lengths = [lengths[0] + len(words), lengths[1] + len(wanted)]
        for n in range(1, orders + 1):
            ours = Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
            theirs = Counter(tuple(wanted[i : i + n]) for i in range(len(wanted) - n + 1))
            matched[n - 1] += sum((ours & theirs).values())
            counted[n - 1] += sum(ours.values())
    if not all(matched):
        return 0.0
    precision = sum(math.log(m / c) for m, c in zip(matched, counted, strict=True)) / orders
    return 100 * min(1.0, math.exp(1 - lengths[1] / lengths[0])) * math.exp(precision)


WORDS = st.lists(st.sampled_from(["the", "cat", "sat", "on", "a", "mat"]), min_size=4, max_size=9)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4))
def test_bleu_equals_the_formula_where_nothing_is_smoothed(pairs):
    translations, references = ([" ".join(p[side]) for p in pairs] for side in (0, 1))
    if expected := by_hand(translations, references):
        assert score(translations, references).bleu == pytest.approx(expected, abs=1e-9)


def test_clipped_unigrams_and_no_match():
    # mjpost/sacrebleu#64 and #173, nltk/nltk#1838
    translation, reference = "the the the the the the the", "the cat is on the mat"
    counts = sacrebleu.corpus_bleu([translation], [[reference]])
    assert (counts.counts[0], counts.totals[0]) == (2, 7)
    for orders in range(1, 5):
        exact = sacrebleu.BLEU(max_ngram_order=orders, smooth_method="none", effective_order=False)
        expected = 100 * 2 / 7 if orders == 1 else 0.0
        assert exact.corpus_score([translation], [[reference]]).score == pytest.approx(expected)
    assert by_hand([translation], [reference]) == 0.0
    assert 0 < score([translation], [reference]).bleu < 8  # sacreBLEU smooths what is not there


@pytest.mark.parametrize("smoothing", ["none", "floor", "add-k", "exp"])
def test_smoothing_looks_at_the_whole_corpus(smoothing):
    # nltk/nltk#3903 and #2083
    metric = sacrebleu.BLEU(smooth_method=smoothing)
    perfect = ["the cat sat on the mat", "a dog lay there"]
    for texts in (perfect, perfect[::-1]):
        assert metric.corpus_score(texts, [texts]).score == pytest.approx(100, abs=1e-9)
    worse = ["the cat sat on the rug", "a dog lay here"]
    one = metric.corpus_score(worse, [perfect]).score
    other = metric.corpus_score(worse[::-1], [perfect[::-1]]).score
    assert one == pytest.approx(other, abs=1e-9)
    assert one < 100


def test_brevity_penalty():
    # nltk/nltk#2083: 4 words of 6 that are all right
    expected = 100 * math.exp(1 - 6 / 4)
    assert round(expected, 4) == 60.6531
    assert score(["the cat sat on"], ["the cat sat on the mat"]).bleu == pytest.approx(expected)
    assert score(["the cat sat on the mat"], ["the cat sat on"]).bleu < 60  # and none for length


def test_scores_of_equal_and_of_foreign_texts():
    assert score(list(ENGLISH), list(ENGLISH)) == pytest.approx((100, 100))
    assert score(["xyz xyz xyz xyz"], ["the cat sat on the mat"]) == pytest.approx((0, 0), abs=0.5)


def test_scores_are_those_of_sacrebleu_in_this_order():
    translations, references = ["a cat sat on it"], ["a cat sat on the mat"]
    scores = score(translations, references)
    assert scores.bleu == sacrebleu.corpus_bleu(translations, [references]).score
    assert scores.chrf == sacrebleu.corpus_chrf(translations, [references]).score
    assert scores.bleu != score(references, translations).bleu


def test_the_score_of_a_set_is_not_the_mean_of_its_sentences():
    translations = ["the cat sat on the mat", "a dog"]
    references = ["the cat sat on the mat", "a dog lay there"]
    whole = score(translations, references).bleu
    single = [score([t], [r]).bleu for t, r in zip(translations, references, strict=True)]
    assert whole == pytest.approx(by_hand(translations, references))
    assert abs(whole - sum(single) / 2) > 10


# Neighbours


def test_the_nearest_neighbour_by_hand():
    # "ab" has the pairs " a", "ab" and "b ". The first text shares all three, of 14 of its own, the
    # second two of 4: 3 / √14 < 2 / √4
    assert nearest_neighbours(["ab cdefghijkl", "abc"], ["ab"]) == [1]
    # one pair of 2 against two of 6: 1 / √2 < 2 / √6
    assert nearest_neighbours(["a", "abcde"], ["ab"]) == [1]


def test_a_text_is_its_own_neighbour_and_the_first_of_equals_wins():
    known = [*KOREAN, *KOREAN]
    assert nearest_neighbours(known, KOREAN) == list(range(6))
    assert nearest_neighbours(KOREAN, ["zzz"]) == [0]
    assert nearest_neighbours(KOREAN, []) == []
    apart = [unicodedata.normalize("NFD", text) for text in KOREAN]
    assert nearest_neighbours(KOREAN, apart) == list(range(6))


def test_neighbours_are_found_in_every_block():
    known = [f"{number:05d}" for number in range(9000)]
    wanted = ["00003", "04095", "04096", "08999"]
    assert nearest_neighbours(known, wanted) == [3, 4095, 4096, 8999]


@given(
    st.lists(st.text("abc ", max_size=6), min_size=1, max_size=8),
    st.lists(st.text("abcd ", max_size=6), max_size=4),
)
def test_neighbours_equal_the_definition(known, texts):
    def pairs(text: str) -> set[str]:
        text = f" {text} "
        return {text[i : i + 2] for i in range(len(text) - 1)}

    def squared(one: str, other: str) -> tuple[int, int]:
        """Return the squared similarity times that of the text with itself, as a fraction."""
        return len(pairs(one) & pairs(other)) ** 2, len(pairs(other))

    for text, place in zip(texts, nearest_neighbours(known, texts), strict=True):
        shared = [squared(text, other) for other in known]
        most, least = shared[place]
        assert all(m * least <= most * n for m, n in shared)
        assert all(m * least < most * n for m, n in shared[:place])


# The translator


@pytest.mark.slow
def test_it_says_what_it_has_learnt(taught):
    assert taught.translate_all(KOREAN) == list(ENGLISH)
    assert taught.translate_all(KOREAN, beams=4) == list(ENGLISH)
    assert taught.translate("인도 카레 전문점") == "Indian curry restaurant"
    assert taught.translate("인도 주행 금지", beams=2) == "No riding on the sidewalk"


def test_letters_and_white_space_make_no_difference(taught):
    for text in (
        unicodedata.normalize("NFD", KOREAN[0]),
        f"  {KOREAN[0]}\n",
        KOREAN[0].replace(" ", "   "),
        KOREAN[0].replace(" ", "\n"),
        KOREAN[0].replace(" ", "\u3000"),
        KOREAN[0].replace(" ", "\u00a0"),
    ):
        assert taught.translate(text) == ENGLISH[0]


def test_an_unknown_character_among_known_ones_is_no_error(taught):
    assert isinstance(taught.translate("뷁 카레 전문점"), str)


@pytest.mark.slow
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("trained", [False, True])
def test_company_and_its_size_change_nothing(trained, beams, taught, untrained):
    translator = taught if trained else untrained
    texts = [KOREAN[0], "배", *KOREAN[1:4], "인도 카레 전문점 배가 아프다", "배", "말"]
    if not trained:  # it never ends by itself
        texts = texts[:3]
    alone = [translator.translate(text, beams=beams) for text in texts]
    for rows in (2, 64):
        assert translator.translate_all(texts, beams=beams, rows=rows) == alone
    assert translator.translate_all(texts[::-1], beams=beams) == alone[::-1]


@pytest.mark.slow
def test_the_result_is_what_greedy_steps_give(untrained, taught):
    for translator in (untrained, taught):
        for text in KOREAN[:3]:
            source = torch.tensor([[*TOKENIZER.encode(text).ids, END]])
            tokens = [START]
            while tokens[-1] != END and len(tokens) <= source.shape[1] + 50:
                with torch.no_grad():
                    logits = translator.model(source, torch.tensor([tokens]))[0, -1]
                logits[[PADDING, START, UNKNOWN]] = -math.inf
                tokens.append(int(logits.argmax()))
            assert translator.translate(text) == TOKENIZER.decode(tokens)


class Babbling(Transformer):
    """Says one token without end, or the end at once."""

    says = UNKNOWN

    def decode(self, target, **rest):
        """Return logits in which one token is far ahead."""
        logits = super().decode(target, **rest)
        return logits.index_fill(-1, torch.tensor([self.says]), 100.0)


@pytest.mark.slow
@pytest.mark.parametrize("beams", [1, 2])
def test_a_model_that_does_not_stop_is_stopped(beams):
    torch.manual_seed(0)
    translator = Translator(Babbling(config()), TOKENIZER)
    Babbling.says = TOKENIZER.token_to_id("a")
    for text in ("배", "인도 주행 금지"):
        length = len(TOKENIZER.encode(text).ids) + 1
        assert translator.translate(text, beams=beams) == "a" * (length + 50)
        assert translator.translate_all(["배", text], beams=beams)[1] == "a" * (length + 50)
    short = Translator(Babbling(config(max_length=20)), TOKENIZER)
    assert short.translate("배", beams=beams) == "a" * 20


@pytest.mark.without_shape_checks
@pytest.mark.slow
@pytest.mark.parametrize("beams", [1, 2])
@pytest.mark.parametrize("says", [PADDING, START, UNKNOWN])
def test_what_is_no_text_is_never_said(says, beams):
    torch.manual_seed(0)
    translator = Translator(Babbling(config()), TOKENIZER)
    Babbling.says = says
    spoken = []
    decode = TOKENIZER.decode

    class Listening:
        def decode(self, tokens):
            spoken.extend(tokens)
            return decode(tokens)

        def __getattr__(self, name):
            return getattr(TOKENIZER, name)

    translator.tokenizer = Listening()
    translator.translate("배", beams=beams)
    assert spoken
    assert says not in spoken


def test_a_source_is_read_whole(untrained, monkeypatch):
    masks = []

    class Looking(CachedDecoder):
        def __init__(self, model, source, *, key_mask=None):
            masks.append(key_mask)
            super().__init__(model, source, key_mask=key_mask)

    monkeypatch.setattr("transformer_lib.translation.CachedDecoder", Looking)
    untrained._decode([[START, PADDING, END]], 1, 0.6)
    assert masks[0].tolist() == [[True, True, True]]


def test_an_empty_translation_is_an_empty_text():
    torch.manual_seed(0)
    Babbling.says = END
    translator = Translator(Babbling(config()), TOKENIZER)
    assert translator.translate_all(["배", "말"]) == ["", ""]
    assert translator.translate_all(["배", "말"], beams=2) == ["", ""]


def test_no_texts_give_no_translations(untrained):
    assert untrained.translate_all([]) == []


def test_alpha_reaches_the_search(untrained, monkeypatch):
    seen = []

    def search(decoder, **options):
        seen.append(options)
        return [[Hypothesis([END], -1.0, -1.0)]]

    monkeypatch.setattr("transformer_lib.translation.beam_search", search)
    untrained.translate("배", beams=5, alpha=1.5)
    assert seen[0]["alpha"] == 1.5
    assert seen[0]["beams"] == 5


@pytest.mark.slow
def test_a_model_in_training_is_put_into_evaluation():
    model = Transformer(config(dropout=0.5)).train()
    translator = Translator(model, TOKENIZER)
    assert not model.training
    assert translator.translate("배") == translator.translate("배")


@pytest.mark.slow
def test_saved_and_read_it_translates_alike(taught, tmp_path):
    taught.save_pretrained(tmp_path / "a" / "b")
    files = sorted(path.name for path in (tmp_path / "a" / "b").iterdir())
    assert files == ["config.json", "model.safetensors", "tokenizer.json"]
    for name in (tmp_path / "a" / "b", str(tmp_path / "a" / "b")):
        again = Translator.from_pretrained(name)
        assert again.translate_all(KOREAN) == list(ENGLISH)
        assert not again.model.training
    taught.save_pretrained(tmp_path / "a" / "b")  # over itself
    assert Translator.from_pretrained(tmp_path / "a" / "b").translate_all(KOREAN) == list(ENGLISH)


def test_one_matrix_serves_both_languages(taught):
    model = taught.model
    assert model.source_embedding is model.target_embedding
    assert model.generator.weight is model.source_embedding.weight
    assert sum(t.shape == (120, 32) for t in model.state_dict().values()) == 1


def test_batches_from_pairs_are_padded_with_the_padding_token():
    source = pad([source for source, _ in encode_pairs(TOKENIZER, PAIRS)])
    for row, (korean, _) in zip(source.tolist(), PAIRS, strict=True):
        length = len(TOKENIZER.encode(korean).ids) + 1
        assert row[length - 1] == END
        assert set(row[length:]) <= {PADDING}
        assert PADDING not in row[:length]


# The one that comes with the library


@pytest.fixture(scope="module")
def shipped() -> Translator:
    return Translator.from_pretrained("ko-en")


@pytest.mark.slow
def test_two_meanings_of_one_word(shipped):
    assert shipped.translate("인도 카레 전문점") == "Indian curry restaurant"
    assert shipped.translate("인도 주행 금지") == "No riding on the sidewalk"
    both = shipped.translate_all(["인도 카레 전문점", "인도 주행 금지"], beams=4)
    assert both == ["Indian curry restaurant", "No riding on the sidewalk"]


def test_the_shipped_model_ties_all_three(shipped):
    assert shipped.model.config.tied == "all"
    assert shipped.model.source_embedding is shipped.model.target_embedding


def test_the_shipped_model_is_small():
    folder = ROOT / "transformer_lib/models/ko-en"
    assert 2**20 < sum(path.stat().st_size for path in folder.iterdir()) < 12 * 2**20


@pytest.mark.slow
def test_it_works_from_an_empty_folder_without_network(tmp_path):
    script = (
        "import socket\n"
        "def refuse(*arguments, **options): raise OSError('no network')\n"
        "socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse\n"
        "from transformer_lib.translation import Translator\n"
        "translator = Translator.from_pretrained('ko-en')\n"
        "print(translator.translate('인도 카레 전문점'))\n"
        "print(translator.translate('인도 주행 금지'))\n"
    )
    keep = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=tmp_path,
        env={**keep, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "HOME": str(tmp_path)},
    )
    assert result.stderr == ""
    assert result.stdout.splitlines() == ["Indian curry restaurant", "No riding on the sidewalk"]
    assert not list(tmp_path.iterdir())


def test_a_folder_of_ones_own_with_the_same_name(taught, untrained, tmp_path, monkeypatch):
    untrained.save_pretrained(tmp_path / "package/models/ko-en")
    taught.save_pretrained(tmp_path / "here/ko-en")
    monkeypatch.setattr("transformer_lib.hub._SHIPPED", tmp_path / "package/models")
    monkeypatch.chdir(tmp_path / "here")
    with pytest.warns(UserWarning, match=r"^name: the library's ko-en is read, not \./ko-en$"):
        read = Translator.from_pretrained("ko-en")
    assert read.model.config == untrained.model.config
    for name in ("./ko-en", str(tmp_path / "here/ko-en")):
        assert Translator.from_pretrained(name).model.config == taught.model.config

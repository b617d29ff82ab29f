"""The generated corpus: Korean forms, one English for each Korean, and splits that do not leak."""

import hashlib
import os
import pickle
import re
import subprocess
import sys
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib.datasets import korean_english
from transformer_lib.datasets.korean_english import (
    HOMONYMS,
    KEY_PHRASES,
    WITHHELD_PAIRS,
    Sentence,
    generate,
    majority_accuracy,
    majority_senses,
    sense_accuracy,
    splits,
)
from transformer_lib.datasets.korean_english.corpus import CONTEXTS
from transformer_lib.datasets.korean_english.english import (
    article,
    comparative,
    gerund,
    past,
    plural,
    third_person,
)
from transformer_lib.datasets.korean_english.lexicon import ADJECTIVES, VERBS
from transformer_lib.datasets.korean_english.morphology import (
    conjugate,
    copula,
    has_final,
    particle,
)
from transformer_lib.translation import nearest_neighbours

ROOT = Path(korean_english.__file__).parents[3]
FIRST_THOUSAND = "1025536e166ffc7145df6fac7bb3cf789eec6a9eaa3056d244a7119fe2a8769f"
SENSES = [(homonym, sense) for homonym, senses in HOMONYMS.items() for sense in senses]
HANGUL = st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3)


def in_a_new_process(expression, hash_seed="0"):
    """Evaluate without the checks of types, which would take minutes."""
    code = (
        "import pickle, sys; from transformer_lib.datasets.korean_english import *; "
        f"sys.stdout.buffer.write(pickle.dumps({expression}))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    return pickle.loads(process.stdout)


@pytest.fixture(scope="module")
def many():
    return in_a_new_process("generate(200_000)")


@pytest.fixture(scope="module")
def some():
    return generate(4_000)


@pytest.fixture(scope="module")
def others():
    return in_a_new_process("generate(30_000, seed=1)")


@pytest.fixture(scope="module")
def corpus():
    return in_a_new_process("splits(train=40_000, test=400)")


@pytest.fixture(scope="module")
def company(corpus):
    """Which words stand in one training sentence with each word."""
    company = defaultdict(Counter)
    for sentence in corpus.train:
        for word in sentence.words:
            company[word].update(sentence.words)
    return company


# Particles


@pytest.mark.parametrize(
    ("word", "forms", "right"),
    [
        ("책", "은/는", "책은"),
        ("사과", "은/는", "사과는"),
        ("물", "이/가", "물이"),
        ("아이", "이/가", "아이가"),
        ("밤", "을/를", "밤을"),
        ("차", "을/를", "차를"),
        ("친구", "과/와", "친구와"),
        ("수진", "과/와", "수진과"),
        ("집", "으로/로", "집으로"),
        ("학교", "으로/로", "학교로"),
        ("서울", "으로/로", "서울로"),
        ("교실", "으로/로", "교실로"),
        ("집", "에서", "집에서"),
    ],
)
def test_particles_by_hand(word, forms, right):
    assert particle(word, forms) == right


@given(st.text(HANGUL, min_size=1, max_size=4))
def test_particles_heed_the_final_consonant(word):
    # NFD takes the last syllable apart: two letters when open, three when closed.
    letters = len(unicodedata.normalize("NFD", word[-1]))
    assert has_final(word) == (letters == 3)
    assert particle(word, "은/는") == word + ("은" if letters == 3 else "는")
    assert particle(word, "이/가") == word + ("이" if letters == 3 else "가")
    assert particle(word, "을/를") == word + ("을" if letters == 3 else "를")
    is_rieul = unicodedata.normalize("NFD", word[-1])[-1] == "\u11af"
    assert particle(word, "으로/로") == word + ("으로" if letters == 3 and not is_rieul else "로")


# Conjugation: 아/어요, ㅂ/습니다, 았/었어요, (으)ㄴ, (으)면, ㄴ/는다

FORMS = """
먹 먹어요 먹습니다 먹었어요 먹은 먹으면 먹는다
가 가요 갑니다 갔어요 간 가면 간다
오 와요 옵니다 왔어요 온 오면 온다
보 봐요 봅니다 봤어요 본 보면 본다
주 줘요 줍니다 줬어요 준 주면 준다
배우 배워요 배웁니다 배웠어요 배운 배우면 배운다
마시 마셔요 마십니다 마셨어요 마신 마시면 마신다
보내 보내요 보냅니다 보냈어요 보낸 보내면 보낸다
세 세요 셉니다 셌어요 센 세면 센다
켜 켜요 켭니다 켰어요 켠 켜면 켠다
서 서요 섭니다 섰어요 선 서면 선다
되 돼요 됩니다 됐어요 된 되면 된다
쉬 쉬어요 쉽니다 쉬었어요 쉰 쉬면 쉰다
하 해요 합니다 했어요 한 하면 한다
공부하 공부해요 공부합니다 공부했어요 공부한 공부하면 공부한다
살 살아요 삽니다 살았어요 산 살면 산다
만들 만들어요 만듭니다 만들었어요 만든 만들면 만든다
열 열어요 엽니다 열었어요 연 열면 연다
쓸 쓸어요 씁니다 쓸었어요 쓴 쓸면 쓴다
앉 앉아요 앉습니다 앉았어요 앉은 앉으면 앉는다
읽 읽어요 읽습니다 읽었어요 읽은 읽으면 읽는다
깎 깎아요 깎습니다 깎았어요 깎은 깎으면 깎는다
입 입어요 입습니다 입었어요 입은 입으면 입는다
잡 잡아요 잡습니다 잡았어요 잡은 잡으면 잡는다
돕 도와요 돕습니다 도왔어요 도운 도우면 돕는다
눕 누워요 눕습니다 누웠어요 누운 누우면 눕는다
굽 구워요 굽습니다 구웠어요 구운 구우면 굽는다
줍 주워요 줍습니다 주웠어요 주운 주우면 줍는다
듣 들어요 듣습니다 들었어요 들은 들으면 듣는다
걷 걸어요 걷습니다 걸었어요 걸은 걸으면 걷는다
깨닫 깨달아요 깨닫습니다 깨달았어요 깨달은 깨달으면 깨닫는다
닫 닫아요 닫습니다 닫았어요 닫은 닫으면 닫는다
믿 믿어요 믿습니다 믿었어요 믿은 믿으면 믿는다
짓 지어요 짓습니다 지었어요 지은 지으면 짓는다
낫 나아요 낫습니다 나았어요 나은 나으면 낫는다
웃 웃어요 웃습니다 웃었어요 웃은 웃으면 웃는다
씻 씻어요 씻습니다 씻었어요 씻은 씻으면 씻는다
쓰 써요 씁니다 썼어요 쓴 쓰면 쓴다
끄 꺼요 끕니다 껐어요 끈 끄면 끈다
모으 모아요 모읍니다 모았어요 모은 모으면 모은다
부르 불러요 부릅니다 불렀어요 부른 부르면 부른다
모르 몰라요 모릅니다 몰랐어요 모른 모르면 모른다
기르 길러요 기릅니다 길렀어요 기른 기르면 기른다
주무르 주물러요 주무릅니다 주물렀어요 주무른 주무르면 주무른다
따르 따라요 따릅니다 따랐어요 따른 따르면 따른다
들르 들러요 들릅니다 들렀어요 들른 들르면 들른다
이르 이르러요 이릅니다 이르렀어요 이른 이르면 이른다
넣 넣어요 넣습니다 넣었어요 넣은 넣으면 넣는다
쌓 쌓아요 쌓습니다 쌓았어요 쌓은 쌓으면 쌓는다
""".strip()
ADJECTIVE_FORMS = """
크 커요 큽니다 컸어요 큰 크면 크다
바쁘 바빠요 바쁩니다 바빴어요 바쁜 바쁘면 바쁘다
슬프 슬퍼요 슬픕니다 슬펐어요 슬픈 슬프면 슬프다
빠르 빨라요 빠릅니다 빨랐어요 빠른 빠르면 빠르다
게으르 게을러요 게으릅니다 게을렀어요 게으른 게으르면 게으르다
푸르 푸르러요 푸릅니다 푸르렀어요 푸른 푸르면 푸르다
춥 추워요 춥습니다 추웠어요 추운 추우면 춥다
곱 고와요 곱습니다 고왔어요 고운 고우면 곱다
아름답 아름다워요 아름답습니다 아름다웠어요 아름다운 아름다우면 아름답다
좁 좁아요 좁습니다 좁았어요 좁은 좁으면 좁다
빨갛 빨개요 빨갛습니다 빨갰어요 빨간 빨가면 빨갛다
하얗 하얘요 하얗습니다 하얬어요 하얀 하야면 하얗다
누렇 누레요 누렇습니다 누렜어요 누런 누러면 누렇다
어떻 어때요 어떻습니다 어땠어요 어떤 어떠면 어떻다
좋 좋아요 좋습니다 좋았어요 좋은 좋으면 좋다
길 길어요 깁니다 길었어요 긴 길면 길다
시 셔요 십니다 셨어요 신 시면 시다
재미있 재미있어요 재미있습니다 재미있었어요 재미있은 재미있으면 재미있다
""".strip()
ENDINGS = ("아/어요", "ㅂ/습니다", "았/었어요", "(으)ㄴ", "(으)면")


@pytest.mark.parametrize("row", FORMS.splitlines() + ADJECTIVE_FORMS.splitlines())
def test_conjugation_by_hand(row):
    stem, *right = row.split()
    plain = "다" if row in ADJECTIVE_FORMS.splitlines() else "ㄴ/는다"
    assert [conjugate(stem, ending) for ending in (*ENDINGS, plain)] == right


@pytest.mark.parametrize(
    ("stem", "ending", "right"),
    [
        ("먹", "고", "먹고"),
        ("만들", "고", "만들고"),
        ("만들", "는", "만드는"),
        ("살", "니", "사니"),
        ("살", "(으)세요", "사세요"),
        ("읽", "(으)세요", "읽으세요"),
        ("걷", "(으)십시오", "걸으십시오"),
        ("팔", "(으)십시오", "파십시오"),
        ("만들", "(으)십시오", "만드십시오"),
        ("열", "(으)십시오", "여십시오"),
        ("들", "(으)십시오", "드십시오"),
        ("살", "(으)십시오", "사십시오"),
        ("쓸", "(으)시", "쓰시"),
        ("먹", "(으)십시오", "먹으십시오"),
        ("돕", "아/어주십시오", "도와주십시오"),
        ("돕", "(으)ㄹ", "도울"),
        ("살", "(으)ㄹ", "살"),
        ("놀", "(으)러", "놀러"),
        ("낚시하", "(으)러", "낚시하러"),
        ("쓸", "(으)ㅂ시다", "씁시다"),
        ("먹", "(으)ㅂ시다", "먹읍시다"),
        ("오", "아/어라", "와라"),
        ("피곤하", "아/어서", "피곤해서"),
        ("먹", "았/었지만", "먹었지만"),
        ("가", "았/었습니까", "갔습니까"),
        ("아니", "았/었어요", "아니었어요"),
    ],
)
def test_other_endings_by_hand(stem, ending, right):
    assert conjugate(stem, ending) == right


@pytest.mark.parametrize(
    ("word", "ending", "right"),
    [
        ("의사", "아/어요", "의사예요"),
        ("학생", "아/어요", "학생이에요"),
        ("가수", "았/었어요", "가수였어요"),
        ("학생", "았/었습니다", "학생이었습니다"),
        ("의사", "ㅂ/습니까", "의사입니까"),
        ("의사", "아/어", "의사야"),
        ("학생", "아/어", "학생이야"),
        ("의사", "다", "의사다"),
        ("학생", "다", "학생이다"),
        ("선수", "니", "선수니"),
    ],
)
def test_copula_by_hand(word, ending, right):
    assert copula(word, ending) == right


@pytest.mark.parametrize("stem", sorted({entry.stem for entry in (*VERBS, *ADJECTIVES)}))
def test_every_stem_keeps_the_harmony_of_its_vowels(stem):
    polite, past_form = conjugate(stem, "아/어요"), conjugate(stem, "았/었어요")
    assert past_form.endswith("어요")
    # The past is the polite present with ㅆ under its last vowel.
    assert unicodedata.normalize("NFD", past_form[:-2]) == (
        unicodedata.normalize("NFD", polite[:-1]) + "\u11bb"
    )


# English forms


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (plural, "child children, box boxes, city cities, key keys, tomato tomatoes, sheep sheep"),
        (plural, "fisherman fishermen, woman women, bookshelf bookshelves, church churches"),
        (third_person, "eat eats, wash washes, carry carries, play plays, go goes, have has"),
        (past, "eat ate, wash washed, carry carried, play played, stop stopped, bake baked"),
        (past, "sink sank, tear tore, forget forgot, open opened, travel traveled"),
        (past, "freeze froze, step stepped, rub rubbed, hug hugged, lose lost"),
        (gerund, "forget forgetting, step stepping, rub rubbing, stop stopping, hug hugging"),
        (comparative, "narrow narrower, quiet quieter, sour more sour, noisy noisier"),
        (plural, "stomach stomachs, church churches, person people"),
        (gerund, "eat eating, bake baking, run running, lie lying, see seeing, open opening"),
        (comparative, "big bigger, busy busier, cute cuter, careful more careful, red redder"),
        (article, "apple an apple, pear a pear, hour an hour, university a university"),
    ],
)
def test_english_by_hand(form, words):
    for pair in words.split(", "):
        word, right = pair.split(" ", 1)
        assert form(word) == right


def test_phrases_inflect_their_head():
    assert past("pick up") == "picked up"
    assert gerund("take a walk") == "taking a walk"
    assert plural("fire truck") == "fire trucks"


# The corpus


@pytest.mark.slow
def test_two_hundred_thousand_are_reachable(many):
    assert len({sentence.korean for sentence in many}) == 200_000


@pytest.mark.slow
def test_the_english_is_a_function_of_the_korean(many, others):
    english = {sentence.korean: sentence.english for sentence in many}
    met_again = 0
    for sentence in others:
        met_again += sentence.korean in english
        assert english.setdefault(sentence.korean, sentence.english) == sentence.english
    assert met_again > 1_000  # so that the assertion above had something to compare


def test_the_first_thousand_never_change():
    lines = "\n".join(repr(tuple(sentence)) for sentence in generate(1000))
    assert hashlib.sha256(lines.encode()).hexdigest() == FIRST_THOUSAND


@pytest.mark.slow
def test_other_processes_give_the_same_sentences():
    assert in_a_new_process("generate(300)", hash_seed="1") == generate(300)


def test_a_larger_size_begins_with_the_smaller_and_another_seed_differs():
    assert generate(50) == generate(120)[:50]
    assert generate(50, seed=1) != generate(50)
    assert generate(0) == []


@pytest.mark.slow
def test_sentences_look_like_sentences(many):
    for sentence in many[:50_000]:
        korean, english = sentence.korean, sentence.english
        assert unicodedata.is_normalized("NFC", korean)
        assert 2 <= len(korean.split(" ")) <= 14
        assert "  " not in korean + english
        assert english.isascii()
        ends = {
            korean[-1] if korean[-1] in ".?" else "",
            english[-1] if english[-1] in ".?" else "",
        }
        assert len(ends) == 1, sentence
        if korean[-1] in ".?":
            assert english[0].isupper()
            assert english[-1] == korean[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        "[가-힣]*[팔들열살울놀쓸썰]십시오",
        "도와 주",
        "줘 주",
        "공원에서 [^ ]+를 (주차|심)",
        "(서울|파리|일본|시골)에서 여행",
        "인도 (야간 |주말 |평일 )?(판매|통화) ",
        "젊은 노인",
        "(신발|구두|장화|운동화|양말)을? 신는 [^ ]+[은는이가] ",
    ],
)
def test_what_a_native_reader_struck_out_stays_out(many, wrong):
    found = [sentence for sentence in many[:60_000] if re.search(wrong, sentence.korean)]
    assert not found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("korean", "english"),
    [
        ("출발", r"depart.*\b(in|at|on) (Busan|London|New York|Tokyo)"),
        ("열심히", r"\bhard\b"),
        ("빌", "borrow.* in the library"),
        ("믿", "believes? (Jisu|Minsu|Tom|the [a-z ]+)[.?]"),
    ],
)
def test_what_a_reader_of_english_struck_out_stays_out(many, korean, english):
    found = [
        sentence
        for sentence in many[:60_000]
        if korean in sentence.korean and re.search(english, sentence.english)
    ]
    assert not found


@pytest.mark.slow
def test_requests_name_known_things(many):
    english = {sentence.korean: sentence.english for sentence in many}
    washing = [e for k, e in english.items() if re.fullmatch("[가-힣]+[을를] 씻으세요.", k)]
    assert washing
    assert not [said for said in washing if re.search(r"\ban? ", said)]


@pytest.mark.slow
def test_no_two_are_alike(some):
    assert len({sentence.korean for sentence in some}) == 4_000


def test_words_and_senses_agree(some):
    for sentence in some:
        named = {
            tuple(word.split(":")) for word in sentence.words if word.split(":")[0] in HOMONYMS
        }
        assert named == set(sentence.senses), sentence
        for first, second in sentence.pairs:
            assert {first, second} <= set(sentence.words)


def test_the_book_keeps_its_two_phrases():
    assert [sentence[:2] for sentence in KEY_PHRASES] == [
        ("인도 카레 전문점", "Indian curry restaurant"),
        ("인도 주행 금지", "No riding on the sidewalk"),
    ]


# Splits


@pytest.mark.slow
def test_sizes(corpus):
    assert [len(part) for part in corpus] == [40_000, 400, 400, 400, 400]


@pytest.mark.slow
def test_no_sentence_stands_in_two_splits(corpus):
    korean = [sentence.korean for part in corpus for sentence in part]
    assert len(set(korean)) == len(korean)


@pytest.mark.slow
def test_compositional_pairs_never_meet_in_training(corpus, company):
    withheld = set(WITHHELD_PAIRS)
    used = set()
    for sentence in corpus.compositional:
        pairs = withheld.intersection(sentence.pairs)
        assert pairs
        used |= pairs
    for first, second in used:
        assert company[first][second] == company[second][first] == 0
        assert company[first][first] >= 10
        assert company[second][second] >= 10
    assert len(used) >= 100


@pytest.mark.slow
def test_no_withheld_pair_meets_in_training_or_in_random(corpus, company):
    assert all(company[first][second] == 0 for first, second in WITHHELD_PAIRS)
    for sentence in corpus.random:
        assert not set(WITHHELD_PAIRS) & {(a, b) for a in sentence.words for b in sentence.words}


@pytest.mark.slow
def test_homonyms_stand_beside_words_they_never_met(corpus, company):
    for sentence in corpus.homonyms[2:]:
        ((homonym, sense),) = sentence.senses
        word = f"{homonym}:{sense}"
        new = {
            other
            for other in sentence.words
            if other != word
            and not any(company[other][f"{homonym}:{s}"] for s in HOMONYMS[homonym])
        }
        assert new, sentence
        deciders = {a if b == word else b for a, b in sentence.pairs if word in (a, b)}
        assert all(company[decider][word] for decider in deciders), sentence


@pytest.mark.slow
def test_deciders_never_met_their_homonym(corpus, company):
    for sentence in corpus.deciders:
        ((homonym, sense),) = sentence.senses
        word = f"{homonym}:{sense}"
        partners = {a if b == word else b for a, b in sentence.pairs if word in (a, b)}
        assert len(partners) == 1, sentence
        (decider,) = partners
        for other in HOMONYMS[homonym]:
            assert company[decider][f"{homonym}:{other}"] == 0, sentence
        assert company[decider][decider] >= 10, decider


@pytest.mark.slow
def test_every_sense_is_taught_and_tested(corpus):
    taught = Counter(sense for sentence in corpus.train for sense in sentence.senses)
    for sense in SENSES:
        assert taught[sense] >= 30, sense
    for part in (corpus.homonyms, corpus.deciders):
        tested = Counter(sense for sentence in part for sense in sentence.senses)
        for sense in SENSES:
            assert tested[sense] >= 3, sense


@pytest.mark.slow
def test_unseen_sentences_do_not_depend_on_the_size_of_the_training_set():
    assert splits(train=10, test=30)[1:] == splits(train=3_000, test=30)[1:]


def test_every_withheld_context_is_of_a_known_sense():
    for word, _ in CONTEXTS:
        assert tuple(word.split(":")) in SENSES


@pytest.mark.slow
def test_the_key_phrases_are_unseen_but_their_patterns_are_not(corpus):
    assert tuple(corpus.homonyms[:2]) == KEY_PHRASES
    train = [sentence.korean for sentence in corpus.train]
    assert not any("인도 카레" in korean or "인도 주행" in korean for korean in train)
    for pattern in ("인도 국수", "카레 전문점", "인도 주차", "주행 금지"):
        assert any(pattern in korean for korean in train), pattern


@pytest.mark.slow
def test_splits_are_the_same_each_time_and_differ_by_seed():
    assert splits(train=300, test=30) == splits(train=300, test=30)
    assert splits(train=300, test=30).train != splits(train=300, test=30, seed=1).train
    assert splits(train=0, test=0) == ([], [], [], [], [])


@pytest.mark.slow
def test_copying_the_nearest_sentence_is_not_enough(corpus):
    """Share of sentences that copying gets right: far from what a translator must reach."""
    unseen = corpus.compositional[:100]
    known = [sentence.korean for sentence in corpus.train[:8_000]]
    nearest = nearest_neighbours(known, [sentence.korean for sentence in unseen])
    copied = [corpus.train[index].english for index in nearest]
    assert sum(s.english == c for s, c in zip(unseen, copied, strict=True)) <= 5


# Senses

PEAR = Sentence("배가 달아요.", "The pear is sweet.", ("배:pear",), (("배", "pear"),), ())
SHIP = Sentence("배를 탔어요.", "I took a ship.", ("배:ship",), (("배", "ship"),), ())
BOTH = SHIP._replace(senses=(("배", "pear"), ("배", "ship")))
NONE = SHIP._replace(senses=())


def test_references_are_right(some):
    assert sense_accuracy(some, [sentence.english for sentence in some]) == 1


@pytest.mark.parametrize(
    ("sentence", "translation", "right"),
    [
        (PEAR, "The pears are sweet.", 1),
        (PEAR, "PEAR", 1),
        (PEAR, "The ship is sweet.", 0),
        (PEAR, "The pear on the ship is sweet.", 0),
        (PEAR, "The fruit is sweet.", 0),
        (PEAR, "The spear is sweet.", 0),
        (PEAR, "", 0),
        (BOTH, "A pear on a ship.", 1),
        (BOTH, "A pear on a pear.", 0.5),
        (KEY_PHRASES[0], "Indian curry restaurant", 1),
        (KEY_PHRASES[0], "No riding on the sidewalk", 0),
    ],
)
def test_senses_by_hand(sentence, translation, right):
    assert sense_accuracy([sentence, NONE], [translation, "A pear."]) == right


def test_majority():
    assert majority_senses([PEAR, SHIP, SHIP, NONE]) == {"배": "ship"}
    assert majority_senses([PEAR, SHIP]) == {"배": "pear"}
    assert majority_senses([]) == {}
    assert majority_accuracy([PEAR, SHIP, SHIP], [PEAR, SHIP, SHIP, SHIP, NONE]) == 0.75


@pytest.mark.slow
def test_majority_is_no_answer(corpus):
    assert majority_accuracy(corpus.train, corpus.homonyms) < 0.7
    assert majority_accuracy(corpus.train, corpus.deciders) < 0.7

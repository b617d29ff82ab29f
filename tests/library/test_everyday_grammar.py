"""The everyday grammar: Korean and English forms by hand, and what its sentences all keep to."""

import hashlib
import os
import pickle
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

from transformer_lib.datasets import everyday_korean, korean_english
from transformer_lib.datasets.everyday_korean import Sentence, generate, splits, tables
from transformer_lib.datasets.everyday_korean.corpus import CONTEXTS, WITHHELD_PAIRS
from transformer_lib.datasets.everyday_korean.deeds import noun_english
from transformer_lib.datasets.everyday_korean.drawing import FRAMES
from transformer_lib.datasets.everyday_korean.forms import (
    Chain,
    adnominal,
    be,
    ending,
    extend,
    honorific,
    join,
    negate,
)
from transformer_lib.datasets.everyday_korean.numerals import (
    clock_english,
    clock_korean,
    english_number,
    month_day,
    native,
    ordinal,
    sino,
)
from transformer_lib.datasets.everyday_korean.phrasing import (
    Person,
    VerbPhrase,
    comparative,
    finite,
    participle,
    past,
    superlative,
    tag,
)
from transformer_lib.datasets.everyday_korean.spoken import colloquial
from transformer_lib.datasets.korean_english.morphology import has_final

ROOT = Path(everyday_korean.__file__).parents[3]
FIRST_THOUSAND = "80589cd463818f5b97c3626a14456d22f8499ebda9ae068a8374ff36840b0762"
CONSTRUCTIONS = """
    adjective|after|age|and|because|become|before|but|can|cannot|clock|comparison|could you|counter
    |date
    |decide|duration|end up|exclamation|existence|experience|forbid|from to|future|habit|happening
    |honorific|how many|identity|if|intend|intention|let's|may|must|must not|need not|negation
    |no experience|open question|past|past progressive|present|price|progressive|promise|purpose
    |question|relative|request|seem|small grammar|start|state|superlative|tag|try|want|want to try
    |weather|when|while|will seem
"""
# A stem, then its forms in the order of ENDINGS.
FORMS = """
먹 먹어요 먹었어요 먹습니다 먹는다 먹은 먹을 먹는 먹네요 먹으니까 먹으면 먹으세요
가 가요 갔어요 갑니다 간다 간 갈 가는 가네요 가니까 가면 가세요
만들 만들어요 만들었어요 만듭니다 만든다 만든 만들 만드는 만드네요 만드니까 만들면 만드세요
살 살아요 살았어요 삽니다 산다 산 살 사는 사네요 사니까 살면 사세요
듣 들어요 들었어요 듣습니다 듣는다 들은 들을 듣는 듣네요 들으니까 들으면 들으세요
걷 걸어요 걸었어요 걷습니다 걷는다 걸은 걸을 걷는 걷네요 걸으니까 걸으면 걸으세요
닫 닫아요 닫았어요 닫습니다 닫는다 닫은 닫을 닫는 닫네요 닫으니까 닫으면 닫으세요
줍 주워요 주웠어요 줍습니다 줍는다 주운 주울 줍는 줍네요 주우니까 주우면 주우세요
돕 도와요 도왔어요 돕습니다 돕는다 도운 도울 돕는 돕네요 도우니까 도우면 도우세요
입 입어요 입었어요 입습니다 입는다 입은 입을 입는 입네요 입으니까 입으면 입으세요
뽑 뽑아요 뽑았어요 뽑습니다 뽑는다 뽑은 뽑을 뽑는 뽑네요 뽑으니까 뽑으면 뽑으세요
고르 골라요 골랐어요 고릅니다 고른다 고른 고를 고르는 고르네요 고르니까 고르면 고르세요
부르 불러요 불렀어요 부릅니다 부른다 부른 부를 부르는 부르네요 부르니까 부르면 부르세요
들르 들러요 들렀어요 들릅니다 들른다 들른 들를 들르는 들르네요 들르니까 들르면 들르세요
쓰 써요 썼어요 씁니다 쓴다 쓴 쓸 쓰는 쓰네요 쓰니까 쓰면 쓰세요
끄 꺼요 껐어요 끕니다 끈다 끈 끌 끄는 끄네요 끄니까 끄면 끄세요
모으 모아요 모았어요 모읍니다 모은다 모은 모을 모으는 모으네요 모으니까 모으면 모으세요
낫 나아요 나았어요 낫습니다 낫는다 나은 나을 낫는 낫네요 나으니까 나으면 나으세요
웃 웃어요 웃었어요 웃습니다 웃는다 웃은 웃을 웃는 웃네요 웃으니까 웃으면 웃으세요
씻 씻어요 씻었어요 씻습니다 씻는다 씻은 씻을 씻는 씻네요 씻으니까 씻으면 씻으세요
하 해요 했어요 합니다 한다 한 할 하는 하네요 하니까 하면 하세요
보내 보내요 보냈어요 보냅니다 보낸다 보낸 보낼 보내는 보내네요 보내니까 보내면 보내세요
마시 마셔요 마셨어요 마십니다 마신다 마신 마실 마시는 마시네요 마시니까 마시면 마시세요
배우 배워요 배웠어요 배웁니다 배운다 배운 배울 배우는 배우네요 배우니까 배우면 배우세요
쉬 쉬어요 쉬었어요 쉽니다 쉰다 쉰 쉴 쉬는 쉬네요 쉬니까 쉬면 쉬세요
켜 켜요 켰어요 켭니다 켠다 켠 켤 켜는 켜네요 켜니까 켜면 켜세요
눕 누워요 누웠어요 눕습니다 눕는다 누운 누울 눕는 눕네요 누우니까 누우면 누우세요
넣 넣어요 넣었어요 넣습니다 넣는다 넣은 넣을 넣는 넣네요 넣으니까 넣으면 넣으세요
앉 앉아요 앉았어요 앉습니다 앉는다 앉은 앉을 앉는 앉네요 앉으니까 앉으면 앉으세요
"""


def words(text):
    return text.split()


ENDINGS = words("""
아/어요 았/었어요 ㅂ/습니다 ㄴ/는다 (으)ㄴ (으)ㄹ 는 네요 (으)니까 (으)면 (으)세요
""")


def in_a_new_process(expression, hash_seed="0"):
    """Evaluate without the checks of types, which would take minutes."""
    code = (
        "import pickle, sys; from transformer_lib.datasets.everyday_korean import *; "
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
def drawn():
    """Draw once for all tests, with another hash seed than this process has."""
    return in_a_new_process("(generate(40_000), splits(train=8_000, test=80))", hash_seed="5")


@pytest.fixture(scope="module")
def many(drawn):
    return drawn[0]


@pytest.fixture(scope="module")
def corpus(drawn):
    return drawn[1]


@pytest.fixture(scope="module")
def some():
    return generate(1_500)


@pytest.fixture(scope="module")
def wide(many):
    return [sentence for sentence in many if sentence.construction != "small grammar"]


# Korean by hand


@pytest.mark.parametrize("row", FORMS.strip().splitlines())
def test_forms_by_hand(row):
    stem, *forms = row.split()
    assert [join(stem, ending) for ending in ENDINGS] == forms


def test_there_are_enough_forms():
    assert sum(len(row.split()) - 1 for row in FORMS.strip().splitlines()) >= 200


@pytest.mark.parametrize(
    ("stem", "form", "expected"),
    [
        ("갈아입", "아/어요", "갈아입어요"),
        ("갈아입", "(으)ㄹ", "갈아입을"),
        ("춥", "네요", "춥네요"),
        ("길", "네요", "기네요"),
        ("빨갛", "(으)ㄴ", "빨간"),
        ("하얗", "아/어요", "하얘요"),
        ("어떻", "아/어요", "어때요"),
        ("맛있", "는", "맛있는"),
        ("바쁘", "아/어서", "바빠서"),
        ("맛이 좋", "아/어요", "맛이 좋아요"),
        ("예의 바르", "아/어요", "예의 발라요"),
        ("되", "아/어요", "돼요"),
    ],
)
def test_more_forms_by_hand(stem, form, expected):
    assert join(stem, form) == expected


@pytest.mark.parametrize(
    ("tense", "level", "asks", "expected"),
    [
        ("past", "해요", False, "먹었어요"),
        ("past", "합니다", True, "먹었습니까"),
        ("past", "한다", True, "먹었니"),
        ("present", "한다", False, "먹는다"),
        ("present", "해", False, "먹어"),
        ("present", "합니다", False, "먹습니다"),
        ("future", "해요", False, "먹을 거예요"),
        ("future", "한다", False, "먹을 것이다"),
        ("future", "합니다", True, "먹을 겁니까"),
        ("future", "해", True, "먹을 거야"),
    ],
)
def test_endings_by_hand(tense, level, asks, expected):
    assert ending(Chain("먹"), tense, level, asks) == expected


@pytest.mark.parametrize(
    ("auxiliary", "expected"),
    [
        ("want", "먹고 싶어요"),
        ("wants", "먹고 싶어 해요"),
        ("can", "먹을 수 있어요"),
        ("cannot", "먹을 수 없어요"),
        ("must", "먹어야 해요"),
        ("must do", "먹어야 돼요"),
        ("may", "먹어도 돼요"),
        ("must not", "먹으면 안 돼요"),
        ("need not", "먹지 않아도 돼요"),
        ("progressive", "먹고 있어요"),
        ("try", "먹어 봐요"),
        ("intend", "먹으려고 해요"),
        ("decide", "먹기로 해요"),
        ("experience", "먹은 적이 있어요"),
        ("will seem", "먹을 것 같아요"),
        ("not", "먹지 않아요"),
        ("not able", "먹지 못해요"),
    ],
)
def test_auxiliaries_by_hand(auxiliary, expected):
    assert ending(extend(Chain("먹"), auxiliary), "present", "해요") == expected


@pytest.mark.parametrize(
    ("stem", "level", "expected"),
    [
        ("먹", "해요", "드세요"),
        ("자", "해요", "주무세요"),
        ("있", "합니다", "계십니다"),
        ("가", "해요", "가세요"),
        ("읽", "해", "읽으셔"),
        ("만들", "한다", "만드신다"),
        ("듣", "해요", "들으세요"),
    ],
)
def test_honorifics_by_hand(stem, level, expected):
    assert ending(honorific(Chain(stem)), "present", level) == expected


@pytest.mark.parametrize(
    ("stem", "word", "has_object", "expected"),
    [
        ("먹", "안", True, "안 먹어요"),
        ("먹", "못", True, "못 먹어요"),
        ("먹", "않", True, "먹지 않아요"),
        ("공부하", "안", False, "공부를 안 해요"),
        ("운동하", "못", False, "운동을 못 해요"),
        ("공부하", "안", True, "공부하지 않아요"),
        ("좋아하", "안", True, "좋아하지 않아요"),
    ],
)
def test_negation_by_hand(stem, word, has_object, expected):
    assert ending(negate(Chain(stem), word, has_object), "present", "해요") == expected


@pytest.mark.parametrize(
    ("noun", "tense", "level", "expected"),
    [
        ("의사", "present", "해요", "의사예요"),
        ("학생", "present", "해요", "학생이에요"),
        ("의사", "present", "한다", "의사다"),
        ("학생", "past", "합니다", "학생이었습니다"),
        ("가수", "past", "해", "가수였어"),
        ("화요일", "future", "해요", "화요일일 거예요"),
    ],
)
def test_nouns_as_predicates_by_hand(noun, tense, level, expected):
    assert be(noun, tense, level) == expected


def test_honoured_nouns_by_hand():
    assert be("배우", "present", "해요", honours=True) == "배우세요"
    assert be("선생님", "present", "해요", honours=True) == "선생님이세요"


def test_adnominal_forms_by_hand():
    assert adnominal(Chain("먹"), "past") == "먹은"
    assert adnominal(Chain("만들"), "present") == "만드는"
    assert adnominal(Chain("크", False), "present") == "큰"
    assert adnominal(Chain("맛있", False), "present") == "맛있는"
    assert adnominal(Chain("가"), "future") == "갈"


def test_states_do_not_take_neunda():
    assert ending(extend(Chain("먹"), "progressive"), "present", "한다") == "먹고 있다"
    assert ending(extend(Chain("크", False), "not"), "present", "한다") == "크지 않다"
    assert ending(extend(Chain("먹"), "not"), "present", "한다") == "먹지 않는다"


# Numbers by hand


@pytest.mark.parametrize(
    ("number", "expected"),
    [(1, "한"), (4, "네"), (20, "스무"), (21, "스물한"), (35, "서른다섯"), (99, "아흔아홉")],
)
def test_native_numbers(number, expected):
    assert native(number) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, "영"),
        (10, "십"),
        (16, "십육"),
        (111, "백십일"),
        (1_500, "천오백"),
        (10_000, "만"),
        (12_500, "만 이천오백"),
        (350_000, "삼십오만"),
        (1_850_000, "백팔십오만"),
    ],
)
def test_sino_numbers(number, expected):
    assert sino(number) == expected


def test_clock_and_dates():
    assert clock_korean(3, 30) == "세 시 반"
    assert clock_korean(12, 5) == "열두 시 오 분"
    assert clock_korean(3, 10, digits=True) == "3시 10분"
    assert clock_english(3, 30) == "half past three"
    assert clock_english(12, 0) == "twelve o'clock"
    assert clock_english(7, 5) == "7:05"
    assert month_day(6, 1) == ("유월 일일", "June 1st")
    assert month_day(10, 22) == ("시월 이십이일", "October 22nd")
    assert month_day(3, 11, digits=True) == ("3월 11일", "March 11th")
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st",
    ]  # fmt: skip
    assert [english_number(n) for n in (7, 20, 21, 99, 1_500)] == [
        "seven", "twenty", "twenty-one", "ninety-nine", "1,500",
    ]  # fmt: skip


# English by hand

ME, HER, THEM, DOG = (
    Person("I", "I"),
    Person("she", "she"),
    Person("they", "they"),
    Person("the dog"),
)
EAT, TIRED = VerbPhrase("eat", "lunch"), VerbPhrase("be", "tired")


@pytest.mark.parametrize(
    ("person", "phrase", "tense", "options", "expected"),
    [
        (ME, EAT, "past", {}, "I ate lunch"),
        (HER, EAT, "present", {}, "she eats lunch"),
        (HER, EAT, "present", {"negative": True}, "she doesn't eat lunch"),
        (THEM, EAT, "past", {"negative": True}, "they didn't eat lunch"),
        (ME, EAT, "future", {}, "I'll eat lunch"),
        (DOG, EAT, "future", {}, "the dog will eat lunch"),
        (ME, EAT, "future", {"negative": True}, "I won't eat lunch"),
        (HER, EAT, "progressive", {}, "she's eating lunch"),
        (THEM, EAT, "past progressive", {}, "they were eating lunch"),
        (ME, EAT, "perfect", {"mid": "never"}, "I've never eaten lunch"),
        (HER, EAT, "perfect", {"question": True, "mid": "ever"}, "has she ever eaten lunch"),
        (HER, EAT, "past", {"question": True}, "did she eat lunch"),
        (HER, EAT, "past", {"question": True, "negative": True}, "didn't she eat lunch"),
        (ME, EAT, "present", {"modal": "can", "negative": True}, "I can't eat lunch"),
        (ME, EAT, "present", {"modal": "may", "question": True}, "may I eat lunch"),
        (ME, TIRED, "present", {}, "I'm tired"),
        (ME, TIRED, "present", {"negative": True}, "I'm not tired"),
        (HER, TIRED, "past", {"negative": True}, "she wasn't tired"),
        (THEM, TIRED, "present", {"question": True}, "are they tired"),
        (DOG, TIRED, "present", {}, "the dog is tired"),
        (HER, VerbPhrase.parse("can't sleep"), "past", {}, "she couldn't sleep"),
        (HER, VerbPhrase.parse("can't sleep"), "future", {}, "she won't be able to sleep"),
        (HER, VerbPhrase.parse("wash {own} hands"), "past", {}, "she washed her hands"),
        (HER, VerbPhrase("eat"), "past", {"question": True, "asked": "what"}, "what did she eat"),
    ],
)
def test_english_clauses_by_hand(person, phrase, tense, options, expected):
    assert finite(person, phrase, tense, **options) == expected


def test_irregular_english():
    assert [past(verb) for verb in ("rise", "quit", "nod", "buy")] == [
        "rose", "quit", "nodded", "bought",
    ]  # fmt: skip
    assert [participle(verb) for verb in ("take", "see", "go", "forget", "cook")] == [
        "taken", "seen", "gone", "forgotten", "cooked",
    ]  # fmt: skip
    assert [comparative(word) for word in ("big", "happy", "good", "expensive")] == [
        "bigger", "happier", "better", "more expensive",
    ]  # fmt: skip
    assert [superlative(word) for word in ("big", "happy", "bad", "nice", "beautiful")] == [
        "biggest", "happiest", "worst", "nicest", "most beautiful",
    ]  # fmt: skip
    assert tag(DOG, TIRED, "present") == "isn't it"
    assert tag(THEM, EAT, "past") == "didn't they"


def test_articles():
    assert noun_english(tables.noun_of("오렌지")) == "an orange"
    assert noun_english(tables.noun_of("교복")) == "a school uniform"
    assert noun_english(tables.noun_of("물")) == "water"
    assert noun_english(tables.noun_of("물"), "the") == "the water"
    assert noun_english(tables.noun_of("바나나"), "gen") == "bananas"
    assert noun_english(tables.noun_of("바지")) == "pants"
    assert noun_english(tables.noun_of("여권")) == "{own} passport"


def test_contractions_of_the_small_grammar():
    assert colloquial("Did Jisu not go?") == "Did Jisu not go?"
    assert colloquial("I did not go, but he will.") == "I didn't go, but he will."
    assert colloquial("I am not tired.") == "I'm not tired."
    assert colloquial("We are going.") == "We're going."
    assert colloquial("Are you happy?") == "Are you happy?"
    assert colloquial("Please do not run.") == "Please don't run."


# What all sentences keep to


def test_no_korean_twice(many):
    assert len({sentence.korean for sentence in many}) == len(many) == 40_000


def test_one_english_for_each_korean(some):
    """Drawn without dropping the doubled ones, hardly any Korean has two translations."""
    known = {sentence.korean: sentence.english for sentence in some}
    other = {sentence.korean: sentence.english for sentence in generate(1_500, seed=1)}
    assert [key for key in known if other.get(key, known[key]) != known[key]] == []


def test_korean_spelling(wide):
    pattern = re.compile(r"[가-힣0-9,: ]+[.?!]")
    for korean in (sentence.korean for sentence in wide):
        assert pattern.fullmatch(korean), korean
        assert not re.search(r"  | [.?!]", korean), korean
        assert unicodedata.is_normalized("NFC", korean)


def test_english_spelling(wide):
    pattern = re.compile(r"[A-Z0-9][A-Za-zé0-9,:' -]+[.?!]")
    vowel = re.compile(r"\ba (?=[aeio])(?!one|uni|eu)", re.IGNORECASE)
    consonant = re.compile(r"\ban (?![aeiou]|hour|honest)", re.IGNORECASE)
    doubled = re.compile(r"\b(the|a|to|in|at|is|my|your) \1\b")
    for english in (sentence.english for sentence in wide):
        assert pattern.fullmatch(english), english
        assert not re.search(r"[{}_/]|  |n't not|'s's", english), english
        assert not vowel.search(english), english
        assert not consonant.search(english), english
        assert not doubled.search(english), english


def test_marks_agree(wide):
    for sentence in wide:
        assert sentence.korean[-1] == sentence.english[-1], sentence


def test_particles_heed_the_noun(wide):
    wrong = {}
    for noun in tables.NOUNS:
        last = noun.korean.split(" ")[-1]
        if len(last) > 1:
            bad = ("는", "가", "를", "와", "랑") if has_final(last) else ("은", "을", "과")
            wrong.update((last + form, noun) for form in bad)
    # Other words that look so.
    other = {"음악가"}
    tokens = Counter(word for sentence in wide for word in sentence.korean[:-1].split(" "))
    assert {word for word in tokens if word in wrong and word not in other} == set()


def test_verbs_agree(wide):
    clashes = re.compile(
        r"^(I|We|They|You) (is|has|does|was not|goes|eats)\b|^(He|She|It) (are|have|do|go|eat)\b"
        r"|\b(I|we|they|you) (is|doesn't|isn't|hasn't)\b|\b(he|she|it) (don't|aren't|haven't)\b"
        r"|\bthere (is|isn't) (two|three|four|five|six)\b|(?<!-)\bone years\b",
        re.IGNORECASE,
    )
    for sentence in wide:
        assert not clashes.search(sentence.english) or re.match(
            r"(Does|Is|Do|Are|Has|Have|Did|Will|Was|Were|What|Who|Where|When|Why)\b",
            sentence.english,
        ), sentence


def test_every_construction_occurs(many):
    found = {sentence.construction for sentence in many}
    names = {name.strip() for name in CONSTRUCTIONS.replace("\n", " ").split("|")}
    assert found == names
    assert len(FRAMES) >= 30


@pytest.mark.parametrize(
    "ending",
    words("""
    었어요 습니다 거예요 겠습니다 ㄹ게요 세요 주세요 마세요 읍시다 ㄹ까요 자 고_싶어요 수_있어요
    수_없어요 야_해요 도_돼요 면_안_돼요 지_않아요 고_있어요 려고_해요 니 습니까 네요 지요
    적이_있어요 것_같아요 어_봤어요 계세요 셨어요
    """),
)
def test_every_ending_occurs(wide, ending):
    """ㄹ게요 is ㄹ in the syllable before: decomposed, all endings are plain text."""
    end = unicodedata.normalize("NFD", ending.replace("_", " "))
    if ending.startswith("ㄹ"):
        end = "\u11af" + unicodedata.normalize("NFD", ending[1:])
    found = (unicodedata.normalize("NFD", s.korean[:-1]) for s in wide)
    assert any(korean.endswith(end) for korean in found)


@pytest.mark.parametrize(
    "inside",
    words("""
    기_때문에 면서_ 기_전에 은_후에 고_나서 니까_ 아서_ 을_때_ 으면_ 보다_ 제일_ 에게_ 한테_ 께_
    께서_ 지만_ 으러_ _안_ _못_ 하고_ 부터_ 까지_ 네,_ 아니요,_
    와_ 마리_ 잔_ 권_ 시_반 월_ 살이 원이
    """),
)
def test_every_connection_occurs(wide, inside):
    text = inside.replace("_", " ")
    assert any(text in sentence.korean for sentence in wide)


def test_all_words_are_reachable(many):
    found = Counter(word for sentence in many for word in sentence.words)
    ids = {noun.word for noun in (*tables.NOUNS, *tables.PEOPLE)}
    ids |= {verb.word for verb in tables.VERBS} | {one.word for one in tables.ADJECTIVES}
    ids |= {place.noun.word for place in tables.PLACES}
    ids |= {time.korean for time in tables.TIMES}
    assert ids - set(found) == set()
    assert len(ids) >= 1_750
    assert len(found) >= 2_000


def test_the_homonyms_are_there(many):
    found = Counter(sense for sentence in many for sense in sentence.senses)
    senses = {(word, sense) for word, all_ in korean_english.HOMONYMS.items() for sense in all_}
    assert senses - set(found) == set()
    assert min(found[sense] for sense in senses) >= 40


def test_the_small_grammar_is_a_share(many):
    share = sum(sentence.construction == "small grammar" for sentence in many) / len(many)
    assert 0.12 < share < 0.18


def test_levels_and_dropped_subjects(wide):
    ends = Counter(sentence.korean[-3:] for sentence in wide)
    assert sum(count for end, count in ends.items() if end[1] == "요") > 0.3 * len(wide)
    assert sum(count for end, count in ends.items() if end[1:] == "다.") > 0.15 * len(wide)
    dropped = [s for s in wide if s.english.startswith("I ") and "저" not in s.korean]
    assert len(dropped) > 0.05 * len(wide)


def test_natural_objects():
    """Nobody eats a chair: verbs list what they take."""
    for verb in tables.VERBS:
        kinds = {noun.kind for noun in verb.objects}
        if verb.english in ("eat {}", "drink {}"):
            assert not kinds & {"furniture", "clothes", "thing", "person", "building"}, verb
        if verb.english == "read {}":
            assert kinds <= {"book", "news", "text", "idea"}, verb


# Determinism and splits


def test_the_first_thousand_never_change(some):
    text = "\n".join(f"{s.korean}\t{s.english}" for s in some[:1_000])
    assert hashlib.sha256(text.encode()).hexdigest() == FIRST_THOUSAND


def test_neither_count_nor_process_nor_hash_seed_matters(many, some):
    assert many[:1_500] == some


def test_seeds_differ(some):
    assert generate(50, 1) != some[:50]
    assert generate(0) == []
    assert all(isinstance(sentence, Sentence) for sentence in some)


def test_split_sizes(corpus):
    assert [len(part) for part in corpus] == [8_000, 80, 80, 80, 80]


def test_splits_are_disjoint(corpus):
    korean = [sentence.korean for part in corpus for sentence in part]
    assert len(set(korean)) == len(korean)


def test_withheld_pairs_never_meet_in_training(corpus):
    partners = {}
    for first, second in WITHHELD_PAIRS:
        partners.setdefault(first, set()).add(second)
    for sentence in (*corpus.train, *corpus.random):
        words = set(sentence.words)
        assert not any(words & partners.get(word, set()) for word in words), sentence


def test_compositional_sentences_show_a_withheld_pair(corpus):
    for sentence in corpus.compositional:
        assert any(pair in WITHHELD_PAIRS for pair in sentence.pairs), sentence


def test_deciders_never_meet_their_homonym_in_training(corpus):
    withheld = {(word.partition(":")[0], decider) for word, decider in CONTEXTS}
    for sentence in (*corpus.train, *corpus.homonyms, *corpus.compositional):
        for homonym, _ in sentence.senses:
            assert not any((homonym, word) in withheld for word in sentence.words), sentence


def test_homonyms_stand_beside_strangers(corpus):
    company = {}
    for sentence in corpus.train:
        for homonym, _ in sentence.senses:
            company.setdefault(homonym, set()).update(sentence.words)
    for sentence in corpus.homonyms:
        ((homonym, sense),) = sentence.senses
        others = set(sentence.words) - {f"{homonym}:{sense}"}
        assert others - company[homonym], sentence


def test_unseen_sentences_do_not_depend_on_the_training_size():
    few, more = splits(train=50, test=5), splits(train=80, test=5)
    assert few[1:] == more[1:]
    assert few.train == more.train[:50]

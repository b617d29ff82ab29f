"""Frames of one clause: statements, questions, descriptions, requests."""

from collections.abc import Sequence
from dataclasses import replace

from transformer_lib.datasets.korean_english import english as en
from transformer_lib.datasets.korean_english import grammar as g
from transformer_lib.datasets.korean_english import lexicon as lex
from transformer_lib.datasets.korean_english.content import Content, Sentence, finish
from transformer_lib.datasets.korean_english.dice import Dice
from transformer_lib.datasets.korean_english.grammar import Clause, Mode, NounPhrase
from transformer_lib.datasets.korean_english.lexicon import Adjective, Noun, Verb
from transformer_lib.datasets.korean_english.morphology import conjugate, particle
from transformer_lib.datasets.korean_english.parts import (
    ADJECTIVES_OF,
    ATTRIBUTIVE,
    COUNTS,
    DEEDS,
    FEELINGS,
    KIN,
    LEVELS,
    NAMES,
    ORDINARY,
    PERSONS,
    PREDICATIVE,
    TIMES,
    TRANSITIVE,
    WORKERS,
    adjective_for,
    draw_clause,
    draw_degree,
    draw_subject,
    say,
    vary,
    without_count,
)


def statement(dice: Dice) -> Sentence:
    """Jisu ate an apple in the park yesterday."""
    verb = dice.one(ORDINARY)
    return say(dice, vary(dice, draw_clause(dice, verb, dice.weighted(LEVELS))))


def yes_no_question(dice: Dice) -> Sentence:
    """Did Jisu eat an apple?"""
    verb, level = dice.one(ORDINARY), dice.weighted(LEVELS)
    return say(dice, vary(dice, draw_clause(dice, verb, level, question=True)))


_THINGS = [noun for noun in lex.NOUNS if noun.kind not in PERSONS]


_VERBS_WITH: dict[str, list[tuple[Verb, str]]] = {}


for _verb in ORDINARY:
    for _role in ("objects", "subjects"):
        for _noun in getattr(_verb, _role):
            _VERBS_WITH.setdefault(_noun.word, []).append((_verb, _role))


_THINGS = [noun for noun in _THINGS if noun.word in _VERBS_WITH]


def about_a_thing(dice: Dice) -> Sentence:
    """Jisu ate a kiwi: the noun is drawn first, so that none is rare."""
    noun, level = dice.one(_THINGS), dice.weighted(LEVELS)
    adjectives = [a for a in ADJECTIVES_OF.get(noun.word, ()) if a.word not in ATTRIBUTIVE]
    if adjectives and dice.chance(0.3):
        return describe(dice, dice.one(adjectives), [noun])
    verb, role = dice.one(_VERBS_WITH[noun.word])
    verb = lex.taking(verb, role, (noun,))
    return say(dice, vary(dice, draw_clause(dice, verb, level, question=dice.chance(0.15))))


def open_question(dice: Dice) -> Sentence:
    """What did Jisu eat? Where, when, who?"""
    level = dice.weighted(LEVELS)
    asked = dice.one(("subject", "object", "place", "time"))
    verb = dice.one(TRANSITIVE if asked == "object" else ORDINARY)
    clause = draw_clause(dice, verb, level, question=True)
    clause = replace(clause, asked=asked, frequency=None)
    if asked == "subject":
        if not any(noun.kind == "name" for noun in verb.subjects):
            return yes_no_question(dice)
        clause = replace(clause, subject=NounPhrase(g.PRONOUNS["누구"]), topic=False)
    elif asked == "object":
        things = {noun.kind for noun in verb.objects}
        if ":" in verb.word or things & {
            *PERSONS,
            "body",
            "head",
            "city",
            "path",
            "period",
            "school",
        }:
            return yes_no_question(dice)
        clause = replace(clause, object=None)
    elif asked == "place":
        if not verb.places or "from" in verb.flags:
            return yes_no_question(dice)
        clause = replace(clause, place=None)
    else:
        if clause.mode.tense not in ("past", "future") or "state" in verb.flags:
            return yes_no_question(dice)
        clause = replace(clause, time=None)
    if (
        asked in ("object", "place")
        and clause.object
        and clause.object.noun.sense
        and asked == "object"
    ):
        return yes_no_question(dice)
    return say(dice, clause)


def description(dice: Dice) -> Sentence:
    """The apple is very sweet."""
    adjective = dice.one(PREDICATIVE)
    return describe(dice, adjective, adjective.nouns)


CLASSES = {"꽃", "나무", "새"}  # never against one of their members


def describe(dice: Dice, adjective: Adjective, nouns: Sequence[Noun]) -> Sentence:
    """Say of one of the nouns that it is so, or more so than another."""
    level, question = dice.weighted(LEVELS), dice.chance(0.12)
    subject = draw_subject(dice, nouns, level, question)
    if subject.adjective:
        subject = replace(subject, adjective=None)
    if subject.count and not subject.determiner:
        subject = replace(subject, determiner=dice.one(("이", "그")))
    mode = Mode(dice.weighted({"present": 6.5, "past": 3.5}), level=level, question=question)
    topic = dice.chance(0.6)
    if adjective.word in FEELINGS and subject.noun.number == "pronoun":
        topic = True
    clause = Clause(subject, adjective, mode, topic=topic)
    if not question and dice.chance(0.15):
        short = len(adjective.stem) <= 2 and not adjective.word.endswith(("롭다", "있다"))
        negation = dice.one(("안", "지 않다") if short else ("지 않다",))
        subject = replace(subject, count=0)
        return say(dice, replace(clause, subject=subject, mode=replace(mode, negation=negation)))
    others = [
        noun
        for noun in adjective.nouns
        if noun.word != subject.noun.word
        and noun.kind == subject.noun.kind
        and noun.number == subject.noun.number
        and not {noun.word, subject.noun.word} & CLASSES
    ]
    if others and adjective.word not in FEELINGS and dice.chance(0.25):
        plain = subject.noun.kind not in PERSONS or subject.noun.number == "count"
        if plain:
            return say(dice, replace(clause, standard=NounPhrase(dice.one(others))))
    if dice.chance(0.5):
        clause = replace(clause, degree=draw_degree(dice, adjective))
    return say(dice, clause)


_CITIZEN = Noun("사람", "person", "citizen", word="사람")


def identity(dice: Dice) -> Sentence:
    """Jisu is a doctor. Tom is British."""
    level, question = dice.weighted(LEVELS), dice.chance(0.2)
    if dice.chance(0.5):
        predicate = NounPhrase(_CITIZEN, origin=dice.one(lex.COUNTRIES))
        subjects = [*NAMES, *WORKERS]
    else:
        predicate = NounPhrase(dice.one(WORKERS))
        subjects = [*NAMES, *KIN]
    subject = draw_subject(dice, subjects, level, question)
    while g.is_plural(subject):
        subject = draw_subject(dice, subjects, level, question)
    subject = replace(subject, count=0)
    mode = Mode(dice.weighted({"present": 8.0, "past": 2.0}), level=level, question=question)
    if predicate.origin:
        mode = replace(mode, tense="present")
    if not question and dice.chance(0.2):
        mode = replace(mode, negation="지 않다")
    return say(dice, Clause(subject, predicate, mode, topic=True))


_FOUND = {
    "집": "furniture gadget pet",
    "거실": "furniture gadget pet",
    "방": "침대 책상 의자 책장 컴퓨터 거울",
    "부엌": "컵 접시 냄비 식탁 냉장고",
    "마당": "tree flower pet bike",
    "school": "책상 의자 학생 책장",
    "park": "tree flower bird child bike",
    "동물원": "beast 앵무새",
    "farm": "livestock tree",
    "wild": "tree bird flower insect",
    "해변": "관광객 새 아이",
    "station": "관광객 의자 손님",
    "show": "관광객 의자 손님",
    "골목": "bike pet",
    "산책로": "bike tree 개",
    "path": "아이 소녀 고양이",
    "도로": "bike truck 버스 택시",
    "eatery": "손님 의자 식탁 flower",
    "병원": "의사 간호사 침대",
    "회사": "회사원 컴퓨터 책상",
    "경찰서": "경찰관 의자",
    "은행": "손님 의자",
    "우체국": "손님 의자",
    "시장": "fruit vegetable flower",
    "슈퍼마켓": "fruit vegetable nut",
    "백화점": "clothes footwear headwear gadget",
    "서점": "book",
    "가게": "thing headwear footwear",
}


_COUNTED_AT = {
    "배:pear": ("시장", "슈퍼마켓", "가게", "부엌"),
    "배:ship": ("강", "바다", "항구"),
    "사과:apple": ("시장", "슈퍼마켓", "가게", "부엌"),
    "말:horse": ("농장", "들판", "언덕"),
    "밤:chestnut": ("시장", "슈퍼마켓", "가게", "부엌"),
    "차:car": ("도로", "골목", "회사", "공항"),
}


_SENSES = {noun.word: noun for _, noun in lex.COUNTED}


FOUND = [
    (place, noun)
    for place in lex.PLACES
    for noun in [*lex.NOUNS, *_SENSES.values()]
    if (
        place.noun.korean in _COUNTED_AT.get(noun.word, ())
        if noun.sense
        else {noun.kind, noun.korean}
        & set(_FOUND.get(place.noun.korean, _FOUND.get(place.group, "")).split())
    )
]


_SENSES_FOUND = [(place, noun) for place, noun in FOUND if noun.sense]


def existence(dice: Dice) -> Sentence:
    """There are three trees in the park."""
    place, noun = dice.one(_SENSES_FOUND if dice.chance(0.1) else FOUND)
    level, past, question = dice.weighted(LEVELS), dice.chance(0.3), dice.chance(0.15)
    counts = not question and (bool(noun.sense) or dice.chance(0.65))
    count = dice.one(COUNTS) if counts else 0
    phrase = NounPhrase(noun, count=count)
    if not noun.sense and dice.chance(0.3):
        phrase = replace(phrase, adjective=adjective_for(dice, noun))
    none = not count and not question and dice.chance(0.5)
    mode = Mode("past" if past else "present", level=level, question=question)
    time = dice.one(TIMES["past"]) if past and dice.chance(0.4) else None
    ending = g._ending(mode, is_verb=False)
    verb = conjugate("없" if none else "있", ending)
    if count and dice.chance(0.5):
        bare = particle(g.phrase_korean(replace(phrase, count=0)), "이/가")
        things = f"{bare} {g.NATIVE[count]} {noun.counter}"
    else:
        things = particle(g.phrase_korean(phrase), "이/가")
    korean = " ".join([*([time.korean] if time else []), f"{place.noun.korean}에", things, verb])
    many = none or g.is_plural(phrase)
    are = ("were" if many else "was") if past else ("are" if many else "is")
    said = g.phrase_english(replace(phrase, plural=False))
    if none:
        bare_name = en.plural(noun.english) if noun.number == "count" else noun.english
        said = " ".join(
            ["no", *([phrase.adjective.english] if phrase.adjective else []), bare_name]
        )
    start = f"{are} there" if question else f"there {are}"
    english = " ".join([start, said, place.at, *([time.english] if time else [])])
    content = Content()
    content.noun(place.noun)
    content.phrase(phrase)
    content.words["없다" if none else "있다"] = None
    content.adverb(time)
    return finish(korean, english, question, content)


_ASK = {"해요": "(으)세요", "합니다": "(으)십시오", "해": "아/어", "한다": "아/어라"}


_FORBID = {"해요": "마세요", "합니다": "마십시오", "해": "마", "한다": "마라"}


_HONORIFIC = {"먹": "들", "자": "주무시"}


_HASTE = ("갑자기", "늦게", "오래", "높이")


_UNASKED = ("울다:cry", "웃다", "배우다", "밟다")


# What these are done to need not be known before.
_NEW_OBJECTS = ("사다", "주문하다", "심다", "쓰다:write", "먹다", "부르다:sing")


def request(dice: Dice) -> Sentence:
    """Please eat the apple slowly. Please do not run in the hallway. Let's go home."""
    verb, level = dice.one(DEEDS), dice.weighted(LEVELS)
    you = NounPhrase(g.PRONOUNS["너"])
    clause = draw_clause(dice, verb, level, "future", subject=you, richness=0.8)
    known = verb.word not in _NEW_OBJECTS
    clause = replace(clause, companion=None, mode=replace(clause.mode, request=known))
    if clause.adverbial and clause.adverbial.korean in _HASTE:
        clause = replace(clause, adverbial=None)
    if clause.time and clause.time.tenses == "p":
        clause = replace(clause, time=None)
    form = dice.weighted({"ask": 4.0, "forbid": 4.0, "propose": 2.0, "favour": 2.0})
    if form != "forbid" and verb.word in _UNASKED:
        return request(dice)
    if verb.word == "찾다" and form != "favour":
        form = "ask"  # 찾지 마 and 찾자 would say "look for"
    if form == "favour" and verb.stem.endswith("주"):
        form = "ask"
    if form == "propose" and clause.adverbial and clause.adverbial.korean == "혼자":
        clause = replace(clause, adverbial=None)
    if form == "forbid":
        clause = replace(clause, time=None, object=without_count(clause.object))
    body = clause.object and clause.object.noun.kind in ("body", "head")
    if form == "propose" and body:
        form = "ask"
    stem, before = verb.stem, " ".join(g.complements_korean(clause))
    if form == "ask":
        if level in ("해요", "합니다"):
            stem = _HONORIFIC.get(stem, stem)
            ending = _ASK[level].removeprefix("(으)시") if stem.endswith("시") else _ASK[level]
            if stem == "주무시":
                said = "주무세요" if level == "해요" else "주무십시오"
            else:
                said = conjugate(stem, ending)
        else:
            said = conjugate(stem, _ASK[level])
    elif form == "forbid":
        said = f"{stem}지 {_FORBID[level]}"
    elif form == "favour":
        said = conjugate(stem, "아/어주" if stem == "돕" else "아/어 주")
        level = "해요" if level == "한다" else level
        said = said[:-1] + {"해요": "주세요", "합니다": "주십시오", "해": "줘"}[level]
    else:
        level = "합니다" if level in ("해요", "합니다") else "해"
        said = conjugate(stem, "(으)ㅂ시다") if level == "합니다" else f"{stem}자"
    polite = level in ("해요", "합니다")
    deed = " ".join([verb.english, *g.complements_english(clause)])
    if form == "forbid":
        english = ("please " if polite else "") + f"do not {deed}"
    elif form == "propose":
        english = f"let's {deed}"
    else:
        english = ("please " if polite or form == "favour" else "") + deed
    content = Content().clause(clause)
    return finish(f"{before} {said}".strip(), english, False, content)

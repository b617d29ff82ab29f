"""Sentences about time: the clock, dates, days and durations."""

from transformer_lib.datasets.everyday_korean import tables
from transformer_lib.datasets.everyday_korean.cast import draw_actor
from transformer_lib.datasets.everyday_korean.deeds import draw_deed
from transformer_lib.datasets.everyday_korean.forms import Chain, be, ending, honorific
from transformer_lib.datasets.everyday_korean.numerals import (
    clock_english,
    clock_korean,
    english_number,
    month_day,
    native,
    sino,
)
from transformer_lib.datasets.everyday_korean.phrasing import Person, VerbPhrase, finite
from transformer_lib.datasets.everyday_korean.sentence import Notes, Sentence, finish
from transformer_lib.datasets.everyday_korean.settings import WILLED, draw_level
from transformer_lib.datasets.everyday_korean.statements import actor_fits
from transformer_lib.datasets.korean_english.dice import Dice
from transformer_lib.datasets.korean_english.morphology import particle

__all__ = ["at_the_hour", "clock", "date", "duration", "span"]


def _hour(dice: Dice) -> tuple[int, int]:
    hour = dice.one(range(1, 13))
    minute = dice.weighted(
        {
            0: 9.0,
            30: 5.0,
            10: 1.0,
            20: 1.0,
            15: 1.0,
            40: 1.0,
            45: 1.0,
            50: 1.0,
            5: 1.0,
            25: 0.6,
            35: 0.6,
            55: 0.6,
        }
    )
    return hour, minute


_PARTS = {
    "": "",
    "오전": "in the morning",
    "오후": "in the afternoon",
    "아침": "in the morning",
    "저녁": "in the evening",
    "밤": "at night",
}


def _part(dice: Dice, hour: int) -> str:
    fitting = ["", ""]
    fitting += ["오전", "아침"] if 6 <= hour <= 11 else []
    fitting += ["오후"] if 1 <= hour <= 5 else []
    fitting += ["저녁"] if 6 <= hour <= 8 else []
    fitting += ["밤"] if 9 <= hour <= 11 else []
    return dice.one(fitting)


def clock(dice: Dice) -> Sentence:
    """It's half past three. What time is it now?"""
    level = draw_level(dice)
    notes = Notes()
    notes.word("시")
    if dice.chance(0.06):
        now = dice.one(("지금 ", ""))
        korean = now + "몇 " + be("시", "present", level, True)
        return finish(korean, "what time is it" + (" now" if now else ""), notes, "clock", "?")
    hour, minute = _hour(dice)
    part = _part(dice, hour)
    time = clock_korean(hour, minute, dice.chance(0.3))
    now = dice.one(("지금 ", "지금은 ", "", "벌써 "))
    adverb = {"": "", "벌써 ": "already "}.get(now, "")
    after = " now" if now.startswith("지금") else ""
    words = f"it's {adverb}{clock_english(hour, minute)} {_PARTS[part]}".strip() + after
    return finish(f"{now}{part} {be(time, 'present', level)}", words, notes, "clock")


_HAPPENING = [
    noun
    for noun in tables.KINDS["event"]
    if noun.korean not in ("여행", "방학", "휴가", "데이트", "연습")
]
_OPENS = [
    "은행/the bank",
    "가게/the store",
    "도서관/the library",
    "박물관/the museum",
    "우체국/the post office",
    "식당/the restaurant",
    "시장/the market",
    "병원/the hospital",
    "카페/the cafe",
]


def at_the_hour(dice: Dice) -> Sentence:
    """The meeting starts at ten. I get up at seven. What time does the class end?"""
    level = draw_level(dice)
    hour, minute = _hour(dice)
    part = _part(dice, hour)
    when = f"{part} {clock_korean(hour, minute, dice.chance(0.25))}에".strip()
    at = f"at {clock_english(hour, minute)} {_PARTS[part]}".strip()
    notes = Notes()
    notes.word("시")
    asks = dice.chance(0.22)
    kind = dice.weighted({"event": 3.0, "opens": 1.5, "deed": 5.0})
    asked_korean, mark = ("몇 시에" if asks else when), "?" if asks else "."
    if kind == "event":
        noun = dice.one(_HAPPENING)
        stem, verb = dice.one((("시작하", "start"), ("시작되", "start"), ("끝나", "end")))
        notes.noun(noun, stem + "다")
        person = Person(f"the {noun.english}", "it")
        tense = dice.weighted({"present": 5.0, "past": 2.0, "future": 1.5})
        subject = particle(noun.korean, "은/는" if dice.chance(0.5) else "이/가")
        korean = ending(Chain(stem), tense, level, asks)
        phrase = VerbPhrase(verb, "" if asks else at)
    elif kind == "opens":
        noun_korean, _, name = dice.one(_OPENS).partition("/")
        stem, verb = dice.one((("열", "open"), ("닫", "close")))
        notes.word(noun_korean, stem + "다", "문")
        person = Person(name, "it")
        tense = dice.weighted({"present": 6.0, "past": 1.0})
        subject = particle(noun_korean, "은/는")
        korean = "문을 " + ending(Chain(stem), tense, level, asks)
        phrase = VerbPhrase(verb, "" if asks else at)
    else:
        verb_row = dice.one(_TIMED)
        actor = draw_actor(dice, level, asks)
        deed = draw_deed(dice, verb_row, level, plain=True, avoid=actor.word)
        if deed.abroad or not actor_fits(actor, deed):
            return at_the_hour(dice)
        notes = deed.notes
        notes.word("시", actor.word)
        chain = deed.chain()
        if actor.honours:
            chain = honorific(chain, verb_row.honorific)
        habit = {"매일": "every day", "보통": "usually", "": ""}
        often = dice.weighted({"매일": 2.0, "보통": 3.0, "": 4.0})
        tense = "present" if often else dice.weighted({"past": 5.0, "future": 4.0})
        korean = ending(chain, tense, level, asks)
        phrase = deed.english().plus("" if asks else at)
        mid = "usually" if often == "보통" else ""
        if often == "매일":
            phrase = phrase.plus(habit[often])
        if often:
            notes.word(often)
        subject = actor.with_particle(dice, level, True)
        rest = deed.complements(dice, level)
        words = [subject, often, asked_korean, *rest, korean]
        text = finite(
            actor.person, phrase, tense, question=asks, mid=mid, asked="what time" if asks else ""
        )
        return finish(" ".join(words), text, notes, "clock", mark)
    asked = "what time" if asks else ""
    text = finite(person, phrase, tense, question=asks, asked=asked)
    return finish(f"{subject} {asked_korean} {korean}", text, notes, "clock", mark)


_TIMED = [
    verb
    for verb in WILLED
    if verb.stem
    in (
        "일어나",
        "출근하",
        "퇴근하",
        "점심을 먹",
        "만나",
        "출발하",
        "가",
        "오",
        "돌아오",
        "돌아가",
        "운동하",
        "샤워하",
        "산책하",
        "전화하",
        "공부하",
    )
    or verb.english == "have {}"
]
_DAYS = [
    "월요일/Monday",
    "화요일/Tuesday",
    "수요일/Wednesday",
    "목요일/Thursday",
    "금요일/Friday",
    "토요일/Saturday",
    "일요일/Sunday",
]
_DATED = [
    "생일/birthday",
    "졸업식/graduation",
    "결혼식/wedding",
    "면접/interview",
    "시험/test",
    "발표/presentation",
    "휴가/vacation",
    "여행/trip",
]


def date(dice: Dice) -> Sentence:
    """Today is Monday. My birthday is March 5th. When is your birthday?"""
    level = draw_level(dice)
    notes = Notes()
    kind = dice.weighted({"day": 2.0, "date": 3.0, "birthday": 4.0, "ask": 1.0})
    days = {
        "오늘": ("today", "present"),
        "내일": ("tomorrow", "present"),
        "어제": ("yesterday", "past"),
        "모레": ("the day after tomorrow", "present"),
    }
    day = dice.one(list(days))
    english_day, tense = days[day]
    notes.word(day)
    when, english = month_day(dice.one(range(1, 13)), dice.one(range(1, 29)), dice.chance(0.5))
    if kind == "day":
        korean, name = dice.one(_DAYS).split("/")
        notes.word(korean)
        text = finite(Person(english_day), VerbPhrase("be", name), tense)
        return finish(
            f"{day}은 {be(korean, tense, level)}"
            if day in ("오늘", "내일")
            else f"{day}는 {be(korean, tense, level)}",
            text,
            notes,
            "date",
        )
    topic = day + ("은" if day in ("오늘", "내일") else "는")
    if kind == "date":
        text = finite(Person(english_day), VerbPhrase("be", english), tense)
        return finish(f"{topic} {be(when, tense, level)}", text, notes, "date")
    if kind == "ask":
        what, asked = dice.one((("며칠", "what date is it"), ("무슨 요일", "what day is it")))
        tail = {"오늘": "today", "내일": "tomorrow"}.get(day)
        if tail is None:
            return date(dice)
        asked = asked if tail == "today" else asked.replace("is it", "is")
        return finish(
            f"{topic} {be(what, 'present', level, True)}", f"{asked} {tail}", notes, "date", "?"
        )
    korean, name = dice.one(_DATED).split("/")
    notes = Notes()
    notes.word(korean)
    owner = dice.weighted({"제": 4.0, "ask": 2.0, "person": 4.0})
    if owner == "ask":
        subject = particle(
            f"네 {korean}" if level == "해" else korean, "은/는" if level != "해" else "이/가"
        )
        asked = be("언제", "present", level, True)
        return finish(f"{subject} {asked}", f"when is your {name}", notes, "date", "?")
    if owner == "제":
        first = "제" if level in ("해요", "합니다") else "내"
        subject, person = f"{first} {korean}", Person(f"my {name}")
    else:
        who = dice.one(tables.NAMES)
        title = " 씨" if level in ("해요", "합니다") else ""
        subject, person = f"{who.korean}{title} {korean}", Person(f"{who.english}'s {name}")
        notes.word(who.word)
    text = finite(person, VerbPhrase("be", english))
    return finish(f"{particle(subject, '은/는')} {be(when, 'present', level)}", text, notes, "date")


_SPANS = {
    "분": "minute",
    "시간": "hour",
    "일": "day",
    "주일": "week",
    "개월": "month",
    "년": "year",
    "달": "month",
}
_SPENT = [
    verb
    for verb in WILLED
    if verb.english
    in (
        "study {@}",
        "study {}",
        "work {@}",
        "wait for {}",
        "watch {}",
        "rest {@}",
        "sleep {@}",
        "learn {}",
        "live {@}",
        "walk {@}",
        "run {@}",
        "exercise {@}",
        "swim {@}",
        "travel {in}",
        "clean {}",
        "drive",
        "talk on the phone",
        "stay {@}",
        "take a walk {@}",
        "read {}",
        "play {}",
        "cook {@}",
    )
]


def duration(dice: Dice) -> Sentence:
    """I studied for three hours. My sister lived in Busan for two years."""
    level = draw_level(dice)
    verb = dice.one(_SPENT)
    actor = draw_actor(dice, level)
    deed = draw_deed(dice, verb, level, plain=True, avoid=actor.word)
    if not actor_fits(actor, deed):
        return duration(dice)
    if verb.english in ("live {@}", "learn {}", "stay {@}", "travel {in}"):
        unit = dice.one(
            ("주일", "개월", "달") if "{in}" in verb.english else ("개월", "년", "달", "년")
        )
    else:
        unit = dice.one(("분", "시간", "시간"))
    count = dice.one((10, 20, 30, 40)) if unit == "분" else dice.one(range(1, 8))
    sinoish = unit not in ("시간", "달")
    number = native(count) if not sinoish else sino(count)
    span = f"{number}{unit}" if unit == "주일" else f"{number} {unit}"
    if dice.chance(0.2):
        span = f"{count}{unit}"
    english = _SPANS[unit]
    words = f"for {english_number(count)} {english}{'s' if count > 1 else ''}"
    if count == 1:
        words = f"for {'an' if english == 'hour' else 'a'} {english}"
    notes = deed.notes
    notes.word(actor.word, unit)
    tense = dice.weighted({"past": 6.0, "future": 1.5})
    chain = honorific(deed.chain(), verb.honorific) if actor.honours else deed.chain()
    parts = [actor.with_particle(dice, level, True), *deed.complements(dice, level)]
    spot = len(parts) if not verb.objects else max(1, len(parts) - 1)
    parts.insert(spot, f"{span} 동안")
    korean = ending(chain, tense, level)
    text = finite(actor.person, deed.english().plus(words), tense)
    return finish(" ".join([*parts, korean]), text, notes, "duration")


_BETWEEN = [
    verb
    for verb in WILLED
    if verb.english in ("work {@}", "study {@}", "exercise {@}", "rest {@}", "sleep {@}")
    or verb.english in ("learn {}", "study {}", "clean {@}", "work part-time {@}", "swim {@}")
]


def span(dice: Dice) -> Sentence:
    """I work from nine to six. We study Korean from Monday to Friday."""
    level = draw_level(dice)
    verb = dice.one(_BETWEEN)
    asks = dice.chance(0.12)
    actor = draw_actor(dice, level, asks)
    deed = draw_deed(dice, verb, level, plain=True, avoid=actor.word)
    if deed.abroad or not actor_fits(actor, deed):
        return span(dice)
    notes = deed.notes
    notes.word(actor.word, "부터", "까지")
    if dice.chance(0.35):
        start = dice.one(range(6))
        end = start + 1 + dice.one(range(6 - start))
        (first, one), (last, other) = _DAYS[start].split("/"), _DAYS[end].split("/")
        notes.word(first, last)
        when, english = f"{first}부터 {last}까지", f"from {one} to {other}"
    else:
        start = dice.one((7, 8, 9, 10, 1, 2, 3))
        end = start + dice.one((1, 2, 3, 4))
        end = end - 12 if end > 12 else end
        when = f"{clock_korean(start, 0)}부터 {clock_korean(end, 0)}까지"
        english = f"from {english_number(start)} to {english_number(end)}"
    tense = dice.weighted({"present": 4.0, "past": 4.0, "future": 2.0})
    chain = honorific(deed.chain(), verb.honorific) if actor.honours else deed.chain()
    korean = ending(chain, tense, level, asks)
    text = finite(actor.person, deed.english().plus(english), tense, question=asks)
    words = [actor.with_particle(dice, level, True), when, *deed.complements(dice, level), korean]
    return finish(" ".join(words), text, notes, "from to", "?" if asks else ".")

"""Sentences with numbers: counted things, ages and prices."""

from transformer_lib.datasets.everyday_korean import tables
from transformer_lib.datasets.everyday_korean.cast import Actor, draw_actor
from transformer_lib.datasets.everyday_korean.deeds import draw_deed, plural
from transformer_lib.datasets.everyday_korean.forms import Chain, be, ending, honorific
from transformer_lib.datasets.everyday_korean.numerals import (
    age_korean,
    english_number,
    native,
    sino,
)
from transformer_lib.datasets.everyday_korean.phrasing import Person, VerbPhrase, finite, wrap
from transformer_lib.datasets.everyday_korean.sentence import Notes, Sentence, finish
from transformer_lib.datasets.everyday_korean.settings import WILLED, draw_level, draw_time
from transformer_lib.datasets.everyday_korean.statements import actor_fits
from transformer_lib.datasets.everyday_korean.tables import Noun, Verb
from transformer_lib.datasets.korean_english.dice import Dice
from transformer_lib.datasets.korean_english.english import article
from transformer_lib.datasets.korean_english.morphology import particle

__all__ = ["age", "counted", "counted_request", "how_many", "price"]

_COUNTABLE: list[tuple[Verb, Noun]] = [
    (verb, noun)
    for verb in WILLED
    for noun in verb.objects
    if noun.counter
    and noun.number in ("count", "mass", "plural")
    and verb.article == "a"
    and verb.english
    in (
        "buy {}",
        "eat {}",
        "drink {}",
        "order {}",
        "sell {}",
        "read {}",
        "see {}",
        "draw {}",
        "raise {}",
        "make {}",
        "borrow {}",
        "plant {}",
        "watch {}",
        "peel {}",
        "bake {}",
        "boil {}",
    )
]
CONTAINERS = {
    "잔": "cup",
    "그릇": "bowl",
    "조각": "piece",
    "켤레": "pair",
    "벌": "pair",
    "병": "bottle",
    "장": "sheet",
    "송이": "bunch",
    "개": "pair",
}
_GLASSES = {
    "물",
    "우유",
    "주스",
    "콜라",
    "사이다",
    "오렌지 주스",
    "레모네이드",
    "찬물",
    "음료수",
    "아이스커피",
}
_COUNTS = {
    1: 3.0,
    2: 4.0,
    3: 4.0,
    4: 2.0,
    5: 2.0,
    6: 1.0,
    7: 0.7,
    8: 0.6,
    9: 0.5,
    10: 1.0,
    12: 0.4,
    20: 0.4,
}


def counted_english(noun: Noun, count: int) -> str:
    """Three apples, a cup of tea, two pairs of shoes."""
    number = english_number(count)
    if noun.number in ("mass", "plural"):
        container = "glass" if noun.korean in _GLASSES else CONTAINERS[noun.counter]
        if noun.korean == "옷":
            container = "set"
        if count == 1:
            return f"{article(container)} of {noun.english}"
        return f"{number} {container}{'es' if container == 'glass' else 's'} of {noun.english}"
    return f"{number} {plural(noun) if count > 1 else noun.english}"


def _draw(dice: Dice) -> tuple[Verb, Noun, int]:
    verb, noun = dice.one(_COUNTABLE)
    return verb, noun, dice.weighted(_COUNTS)


def counted(dice: Dice) -> Sentence:
    """I bought three apples. My mother drank two cups of coffee."""
    level = draw_level(dice)
    verb, noun, count = _draw(dice)
    actor = draw_actor(dice, level)
    deed = draw_deed(dice, verb, level, noun, plain=True, avoid=actor.word)
    if not actor_fits(actor, deed):
        return counted(dice)
    notes = deed.notes
    notes.word(actor.word)
    notes.pair(f"한 {noun.counter}", noun.word)
    tense = dice.weighted({"past": 7.0, "future": 2.0, "want": 1.5})
    time = draw_time(dice, "p" if tense == "past" else "f") if dice.chance(0.3) else None
    if tense == "want":
        time = None
    number = f"{noun.counter}"
    digits = dice.chance(0.12)
    quantity = f"{count}{number}" if digits else f"{native(count)} {number}"
    if dice.chance(0.72):
        what = f"{noun.korean} {quantity}"
        what = what if dice.chance(0.25) else particle(what, "을/를")
    else:
        what = f"{particle(noun.korean, '을/를')} {quantity}"
    chain = deed.chain()
    phrase = VerbPhrase.parse(verb.english.replace("{}", counted_english(noun, count)))
    if time:
        phrase = phrase.plus(time.english)
        notes.word(time.korean)
    subject = actor.with_particle(dice, level, True)
    if tense == "want":
        if actor.kind not in ("i", "we"):
            return counted(dice)
        chain = Chain("싶", False, chain.before + chain.stem + "고 ")
        korean = ending(chain, "present", level)
        english = finite(actor.person, wrap("want to ", phrase))
    else:
        korean = ending(honorific(chain, verb.honorific) if actor.honours else chain, tense, level)
        english = finite(actor.person, phrase, tense)
    parts = [subject, time.korean if time else "", what, korean]
    if time and dice.chance(0.4):
        parts[0], parts[1] = parts[1], parts[0]
    return finish(" ".join(parts), english, notes, "counter")


_ASKED_FOR = [
    noun
    for noun in tables.NOUNS
    if noun.counter
    and noun.kind
    in (
        "fruit",
        "apple",
        "chestnut",
        "vegetable",
        "dish",
        "snack",
        "drink",
        "alcohol",
        "ticket",
        "thing",
        "stationery",
        "book",
        "flower",
        "footwear",
        "kitchen",
    )
    and not noun.english.startswith("bar")
]


def counted_request(dice: Dice) -> Sentence:
    """Please give me two cups of coffee. Please give me five apples."""
    noun, count = dice.one(_ASKED_FOR), dice.weighted(_COUNTS)
    notes = Notes()
    notes.noun(noun, "주다")
    notes.pair(f"한 {noun.counter}", noun.word)
    digits = dice.chance(0.12)
    quantity = f"{count}{noun.counter}" if digits else f"{native(count)} {noun.counter}"
    which = dice.weighted({"": 8.0, "여기": 1.0, "저기요,": 1.0})
    end = dice.weighted(
        {"주세요": 10.0, "주시겠어요": 2.0, "줘": 2.0, "부탁해요": 1.0, "있어요": 1.0}
    )
    what = f"{noun.korean} {quantity}"
    thing = counted_english(noun, count)
    front = "Excuse me, " if which == "저기요," else ""
    which = "" if which == "여기" else which
    if end == "있어요":
        return counted_request(dice)
    if end == "주시겠어요":
        english = f"{front}could you give me {thing}"
    elif end == "부탁해요":
        english = f"{front}{thing}, please"
    else:
        english = f"{front}please give me {thing}"
    mark = "?" if end == "주시겠어요" else "."
    return finish(f"{which} {what} {end}", english, notes, "counter", mark)


def age(dice: Dice) -> Sentence:
    """I'm twenty-five years old. How old is your younger brother?"""
    level = draw_level(dice)
    asks = dice.chance(0.2)
    notes = Notes()
    actor = draw_actor(dice, level, asks)
    if actor.kind in ("person", "elder") or actor.honours or actor.korean in ("그들", "부모님"):
        return age(dice)
    notes.word(actor.word)
    subject = actor.with_particle(dice, level, True)
    if asks:
        korean = "몇 " + be("살", "present", level, True)
        text = finite(actor.person, VerbPhrase("be"), question=True, asked="how old")
        return finish(f"{subject} {korean}", text, notes, "age", "?")
    years = int(dice.weighted({"small": 2.0, "grown": 5.0}) == "grown") * 15 + 4
    years += dice.one(range(60 if years > 10 else 15))
    if years >= 10:
        notes.word("살")
    this_year = dice.weighted({"": 6.0, "올해": 2.0, "내년에": 1.0})
    digits = dice.chance(0.3)
    many = "year" if years == 1 else "years"
    phrase = VerbPhrase("be", f"{years if digits else english_number(years)} {many} old")
    number = age_korean(years, digits)
    if this_year == "내년에":
        korean = f"{particle(number, '이/가')} " + ending(Chain("되"), "present", level)
        phrase = VerbPhrase("turn", f"{years if digits else english_number(years)} next year")
        text = finite(actor.person, phrase, "future")
    else:
        korean = be(number, "present", level)
        text = finite(actor.person, phrase.plus("this year" if this_year else ""))
    return finish(f"{subject} {this_year} {korean}", text, notes, "age")


_PRICED = [
    noun
    for noun in tables.NOUNS
    if noun.kind
    in (
        "fruit",
        "apple",
        "vegetable",
        "clothes",
        "footwear",
        "headwear",
        "glasses",
        "accessory",
        "thing",
        "kitchen",
        "stationery",
        "book",
        "gadget",
        "furniture",
        "ticket",
        "dish",
        "flower",
        "bike",
        "snack",
        "drink",
    )
    and noun.number in ("count", "plural", "mass")
]
_EXPENSIVE = {
    "clothes": 10,
    "footwear": 10,
    "gadget": 100,
    "furniture": 100,
    "bike": 100,
    "accessory": 10,
    "glasses": 10,
}


def price(dice: Dice) -> Sentence:
    """How much is this hat? It's 15,000 won. This bag is 30,000 won."""
    level = draw_level(dice)
    noun = dice.one(_PRICED)
    notes = Notes()
    notes.noun(noun)
    which = dice.weighted({"이": 5.0, "그": 1.5, "저": 1.5, "": 2.0})
    many = noun.number == "plural"
    english = {"이": "these" if many else "this", "": "the"}.get(which, "those" if many else "that")
    person = Person(f"{english} {noun.english}", "they" if many else "it")
    korean = f"{which} {noun.korean}".strip()
    subject = korean if dice.chance(0.3) and level != "한다" else particle(korean, "은/는")
    if dice.chance(0.4):
        count = dice.weighted({0: 6.0, 1: 2.0})
        asked = be("얼마", "present", level, True)
        if count and noun.counter and noun.number == "count":
            subject = f"{noun.korean} 한 {noun.counter}에"
            person = Person(f"one {noun.english}", "it")
        text = finite(person, VerbPhrase("be"), question=True, asked="how much")
        return finish(f"{subject} {asked}", text, notes, "price", "?")
    scale = _EXPENSIVE.get(noun.kind, 1)
    won = dice.one(range(2, 60)) * 500 * scale
    digits = dice.chance(0.5)
    money = f"{won:,}원" if digits else f"{sino(won)} 원"
    predicate = be(money, "past" if dice.chance(0.08) else "present", level)
    tense = "past" if "었" in predicate else "present"
    if dice.chance(0.2):
        subject, person = "", Person("it", "it")
    text = finite(person, VerbPhrase("be", f"{won:,} won"), tense)
    return finish(f"{subject} {predicate}", text, notes, "price")


_WITHIN = [
    "방/the room",
    "교실/the classroom",
    "가방/the bag",
    "냉장고/the refrigerator",
    "상자/the box",
    "사무실/the office",
    "공원/the park",
    "카페/the cafe",
    "식당/the restaurant",
]


def how_many(dice: Dice) -> Sentence:
    """There are three chairs in the room. How many apples did you buy? I have two cats."""
    level = draw_level(dice)
    notes = Notes()
    kind = dice.weighted({"there": 4.0, "ask": 3.0, "have": 3.0})
    count = dice.weighted(_COUNTS)
    if kind == "ask":
        verb, noun = dice.one(_COUNTABLE)
        if noun.number != "count":
            return how_many(dice)
        notes.noun(noun, verb.word)
        chain = Chain(verb.stem)
        honours = level == "해요" and dice.chance(0.5)
        if honours:
            chain = honorific(chain, verb.honorific)
        tense = dice.weighted({"past": 4.0, "future": 1.5})
        what = f"{particle(noun.korean, '을/를')} 몇 {noun.counter}"
        korean = f"{what} {ending(chain, tense, level, True)}"
        asked = f"how many {plural(noun)}"
        phrase = VerbPhrase.parse(verb.english.replace(" {}", ""))
        text = finite(Person("you", "you"), phrase, tense, question=True, asked=asked)
        return finish(korean, text, notes, "how many", "?")
    if kind == "have":
        noun = dice.one(
            [
                *tables.KINDS["pet"],
                *tables.KINDS["book"],
                *tables.KINDS["bike"],
                *tables.KINDS["ticket"],
                *_SIBLINGS,
            ]
        )
        actor: Actor = draw_actor(dice, level)
        if actor.honours or actor.kind == "kin":
            return how_many(dice)
        notes.noun(noun, "있다")
        notes.word(actor.word)
        quantity = f"{native(count)} {noun.counter}"
        korean = ending(Chain("있", False), "present", level)
        thing = f"{english_number(count)} {plural(noun) if count > 1 else noun.english}"
        text = finite(actor.person, VerbPhrase("have", thing))
        words = [
            actor.with_particle(dice, level, True),
            particle(noun.korean, "이/가"),
            quantity,
            korean,
        ]
        return finish(" ".join(words), text, notes, "counter")
    place, _, english = dice.one(_WITHIN).partition("/")
    pools = {
        "방": ("furniture", "gadget"),
        "교실": ("furniture", "person"),
        "가방": ("book", "stationery"),
        "냉장고": ("fruit", "apple"),
        "상자": ("thing", "fruit"),
        "사무실": ("gadget", "furniture"),
        "공원": ("tree", "bird"),
        "카페": ("person",),
        "식당": ("person",),
    }[place]
    noun = dice.one([n for pool in pools for n in tables.KINDS[pool] if n.number == "count"])
    notes.word(place)
    notes.noun(noun, "있다")
    tense = "past" if dice.chance(0.2) else "present"
    quantity = f"{native(count)} {noun.counter}"
    korean = ending(Chain("있", False), tense, level)
    thing = f"{english_number(count)} {plural(noun) if count > 1 else noun.english}"
    text = finite(Person("there", "they" if count > 1 else "it"), VerbPhrase("be", thing), tense)
    inside = f"{place}에"
    words = [inside, particle(noun.korean, "이/가"), quantity, korean]
    return finish(" ".join(words), f"{text} in {english}", notes, "counter")


_SIBLINGS = [
    noun
    for noun in tables.PEOPLE
    if noun.korean in ("누나", "언니", "형", "오빠", "아들", "딸", "남동생", "여동생")
]

"""What happens by itself: doors open, flowers bloom, it rains; and every homonym in its turn."""

from dataclasses import dataclass

from transformer_lib.datasets.everyday_korean import tables
from transformer_lib.datasets.everyday_korean.cast import draw_actor
from transformer_lib.datasets.everyday_korean.deeds import draw_deed
from transformer_lib.datasets.everyday_korean.describing import describe, thing_actor
from transformer_lib.datasets.everyday_korean.forms import Chain, ending, extend, join, negate
from transformer_lib.datasets.everyday_korean.phrasing import Person, VerbPhrase, finite
from transformer_lib.datasets.everyday_korean.sentence import Notes, Sentence, finish
from transformer_lib.datasets.everyday_korean.settings import draw_level, draw_time
from transformer_lib.datasets.everyday_korean.statements import actor_fits, clause_of
from transformer_lib.datasets.everyday_korean.tables import Adjective, Noun, State, Verb
from transformer_lib.datasets.korean_english.dice import Dice

__all__ = ["happening", "homonym", "weather"]


@dataclass(frozen=True, slots=True)
class Event:
    """What a thing does by itself."""

    stem: str
    english: str
    nouns: tuple[Noun, ...]
    once: bool
    is_verb: bool


_EVENTS = [
    Event(
        korean.replace("_", " ")[:-1],
        english,
        tables.objects_of(nouns),
        "once" in flags,
        flags != "adjective",
    )
    for korean, english, nouns, flags in (([*row, ""])[:4] for row in tables.rows("things"))
]
_BY_NOUN = [(event, noun) for event in _EVENTS for noun in event.nouns]


def happening(dice: Dice) -> Sentence:
    """The door opened. Will the meeting end soon? The flowers are blooming."""
    event = dice.one(_EVENTS)
    noun = dice.one(event.nouns)
    if dice.chance(0.5):
        event, noun = dice.one(_BY_NOUN)
    return _happens(dice, event, noun)


def _happens(dice: Dice, event: Event, noun: Noun) -> Sentence:
    level = draw_level(dice)
    asks = dice.chance(0.18)
    notes = Notes()
    actor = thing_actor(dice, noun, level, asks=asks)
    notes.noun(noun, event.stem + "다")
    tense = dice.weighted({"past": 6.0, "future": 2.0, "progressive": 0.0 if event.once else 3.0})
    if not event.is_verb:
        tense = "present"
    chain = Chain(event.stem, event.is_verb)
    denied = dice.chance(0.13) and tense != "progressive"
    if tense == "progressive":
        chain = extend(chain, "progressive")
    if denied:
        short = dice.chance(0.5) and " " not in event.stem
        chain = negate(chain, "안" if short else "않", has_object=True)
    adverb = ""
    if not denied and tense == "past" and dice.chance(0.15):
        adverb = dice.one(("갑자기", "벌써"))
    key = {"past": "p", "future": "f"}.get(tense, "")
    time = draw_time(dice, key) if key and not adverb and dice.chance(0.35) else None
    phrase = VerbPhrase.parse(event.english)
    if adverb == "갑자기":
        phrase = phrase.plus("suddenly")
    mid = "already" if adverb == "벌써" else ""
    if time:
        phrase = phrase.plus(time.english)
        notes.word(time.korean)
    if adverb:
        notes.word(adverb)
    korean = ending(chain, tense if tense in ("past", "future") else "present", level, asks)
    text = finite(actor.person, phrase, tense, negative=denied, question=asks, mid=mid)
    subject = actor.with_particle(dice, level, dice.chance(0.35))
    parts = [subject, time.korean if time else "", adverb, korean]
    if time and dice.chance(0.6):
        parts[0], parts[1] = parts[1], parts[0]
    mark = "?" if asks else "."
    return finish(" ".join(parts), text, notes, "happening", mark)


# Korean, English, what it does in English now
_WEATHER = {
    ("비가 많이", "오"): "rain a lot",
    ("비가", "오"): "rain",
    ("비가", "내리"): "rain",
    ("눈이", "오"): "snow",
    ("눈이", "내리"): "snow",
    ("눈이 많이", "오"): "snow a lot",
    ("바람이 많이", "불"): "be very windy",
    ("바람이", "불"): "be windy",
    ("천둥이", "치"): "thunder",
    ("해가", "뜨"): "the sun:rise",
    ("해가", "지"): "the sun:set",
    ("날씨가", "좋"): "the weather:be nice",
    ("날씨가", "춥"): "it:be cold",
    ("날씨가", "덥"): "it:be hot",
    ("날씨가", "흐리"): "it:be cloudy",
    ("날씨가", "맑"): "it:be sunny",
    ("날씨가", "따뜻하"): "it:be warm",
    ("날씨가", "시원하"): "it:be cool",
    ("날씨가", "나쁘"): "the weather:be bad",
    ("안개가", "끼"): "it:be foggy",
}
_WEATHER_TIMES = (
    "어제",
    "오늘",
    "내일",
    "주말에",
    "지난주에",
    "다음 주에",
    "오늘 아침에",
    "밤에",
    "이번 주말에",
    "오늘 오후에",
    "아까",
    "지금",
    "월요일에",
    "어젯밤에",
    "내일 아침에",
)


def weather(dice: Dice) -> Sentence:
    """It rained a lot yesterday. Is it snowing now? It'll be cold in Seoul tomorrow."""
    level = draw_level(dice)
    (before, stem), english = dice.one(list(_WEATHER.items()))
    asks = dice.chance(0.25)
    notes = Notes()
    noun = before.split()[0][:-1]
    notes.word("눈:snow" if noun == "눈" else noun, stem + "다")
    if noun == "눈":
        notes.pair(stem + "다", "눈:snow")
    name, colon, rest = english.partition(":")
    person, phrase = Person(name if colon else "it"), VerbPhrase.parse(rest if colon else english)
    is_verb = stem in ("오", "내리", "불", "치", "뜨", "지", "끼")
    tense = dice.weighted({"past": 4.0, "present": 4.0, "future": 3.0})
    key = {"past": "p", "present": "s", "future": "f"}[tense]
    time = None
    if dice.chance(0.55):
        fitting = [
            time
            for time in tables.TIMES
            if time.korean in _WEATHER_TIMES
            and (time.tenses == "s" if key == "s" else key in time.tenses and time.korean != "아까")
        ]
        time = dice.one(fitting)
    place = None
    if dice.chance(0.2) and stem not in ("뜨", "지"):
        place = dice.one([place for place in tables.PLACES if place.group == "city"])
        notes.word(place.noun.word)
    denied = dice.chance(0.12)
    chain = Chain(stem, is_verb, before + " ")
    spoken = tense
    if tense == "present" and is_verb and phrase.head not in ("be", "rise", "set"):
        spoken = "progressive"
        if dice.chance(0.45):
            chain = extend(chain, "progressive")
    if stem in ("뜨", "지") and tense == "present":
        spoken = tense = "past"
        time = None
    if stem == "끼" and tense == "present":
        chain, spoken = Chain(stem, True, before + " "), "present"
        tense = "past"
        time = None
        spoken = "past"
    if denied:
        short = dice.chance(0.5) and chain.stem == stem
        chain = negate(chain, "안", True) if short else extend(chain, "not")
    for more in (place.at if place else "", time.english if time else ""):
        phrase = phrase.plus(more)
    if time:
        notes.word(time.korean)
    exclaims = not asks and not denied and level in ("해요", "해") and dice.chance(0.15)
    if exclaims:
        stem_now = join(chain.stem, "았/었") if tense == "past" else chain.stem
        if tense == "future":
            return weather(dice)
        korean = chain.before + join(stem_now, "네" + ("요" if level == "해요" else ""))
    else:
        korean = ending(chain, tense, level, asks)
    text = finite(person, phrase, spoken, negative=denied, question=asks)
    where = place.noun.korean + ("에" if is_verb else "") if place else ""
    parts = [time.korean if time else "", where, korean]
    return finish(" ".join(parts), text, notes, "weather", "?" if asks else ".")


_DECIDED: dict[str, list[tuple[Verb | Adjective | State | Event, Noun, str]]] = {}
for _verb in tables.VERBS:
    for _noun in _verb.objects:
        if _noun.sense:
            _DECIDED.setdefault(_noun.word, []).append((_verb, _noun, ""))
for _adjective in tables.ADJECTIVES:
    for _noun, _english in _adjective.nouns:
        if _noun.sense:
            _DECIDED.setdefault(_noun.word, []).append((_adjective, _noun, _english))
for _event, _noun in _BY_NOUN:
    if _noun.sense:
        _DECIDED.setdefault(_noun.word, []).append((_event, _noun, ""))
_TURNS = list(_DECIDED.values())


def homonym(dice: Dice) -> Sentence:
    """I peeled a pear. The ship arrived. My stomach hurts: each sense in its turn."""
    word, noun, english = dice.one(dice.one(_TURNS))
    if isinstance(word, Event):
        return _happens(dice, word, noun)
    level = draw_level(dice)
    if isinstance(word, Adjective):
        asks = dice.chance(0.2)
        actor = thing_actor(dice, noun, level, asks=asks)
        return describe(dice, word, english, actor, level, asks)
    assert isinstance(word, Verb)
    asks = dice.chance(0.2)
    actor = draw_actor(dice, level, asks)
    deed = draw_deed(dice, word, level, noun, avoid=actor.word, frequent=True)
    if not actor_fits(actor, deed):
        return homonym(dice)
    return clause_of(dice, actor, deed, level, asks)

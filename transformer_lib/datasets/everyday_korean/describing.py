"""How things and people are: adjectives, states, changes, and where it hurts."""

import re
from dataclasses import replace

from transformer_lib.datasets.everyday_korean import tables
from transformer_lib.datasets.everyday_korean.cast import (
    IT,
    Actor,
    draw_actor,
    kin_korean,
)
from transformer_lib.datasets.everyday_korean.deeds import noun_english
from transformer_lib.datasets.everyday_korean.forms import (
    Chain,
    adnominal,
    ending,
    extend,
    honorific,
    join,
)
from transformer_lib.datasets.everyday_korean.phrasing import (
    Person,
    VerbPhrase,
    finite,
    tag,
)
from transformer_lib.datasets.everyday_korean.sentence import Notes, Sentence, finish
from transformer_lib.datasets.everyday_korean.settings import draw_level, draw_time
from transformer_lib.datasets.everyday_korean.tables import Adjective, Adverb, Noun, State
from transformer_lib.datasets.korean_english.dice import Dice
from transformer_lib.datasets.korean_english.morphology import particle

__all__ = [
    "ABSOLUTE",
    "OF_PEOPLE",
    "describe",
    "description",
    "feeling",
    "pain",
    "state",
    "thing_actor",
]

_OF_THINGS = [adjective for adjective in tables.ADJECTIVES if adjective.nouns]
OF_PEOPLE = [adjective for adjective in tables.ADJECTIVES if adjective.of_people]
_BY_NOUN: dict[Noun, list[tuple[Adjective, str]]] = {}
for _adjective in _OF_THINGS:
    for _noun, _english in _adjective.nouns:
        _BY_NOUN.setdefault(_noun, []).append((_adjective, _english))
_DESCRIBED = list(_BY_NOUN)
# Said of a thing as it is; no comparison, no "very".
ABSOLUTE = {"the same", "perfect", "enough", "wet", "spoiled", "necessary", "worn out", "okay"}
_DEGREES = tables.ADVERBS["degree"][:-2]
_NOT_SO = {"그렇게": "that", "별로": "very"}
# What one says of oneself.
_FELT = {
    "busy",
    "tired",
    "hungry",
    "full",
    "thirsty",
    "sleepy",
    "sick",
    "happy",
    "glad",
    "sad",
    "lonely",
    "bored",
    "depressed",
    "okay",
    "embarrassed",
    "nervous",
    "free",
    "sorry",
    "jealous",
    "frustrated",
    "healthy",
    "poor",
}
_MOOD = {"glad", "sad", "happy", "bored", "lonely", "depressed", "tired", "busy", "hungry"}


_LIVING = ("weather", "job", "person", "pet", "beast", "relation", "kin")
_NOBODYS = frozenset(
    (
        "job",
        "person",
        "weather",
        "nature",
        "beast",
        "insect",
        "bird",
        "tree",
        "swimmer",
        "ship",
        "vehicle",
        "night",
        "road",
        "sight",
        "music",
    )
)


def thing_actor(
    dice: Dice, noun: Noun, level: str, *, asks: bool = False, pointed: bool = True
) -> Actor:
    """A thing as a subject: the bag, this bag, my bag."""
    plural_kind = noun.number == "plural" or (noun.number == "own" and bool(noun.several))
    agree = "they" if plural_kind else "it"
    if noun.kind in ("job", "person"):
        agree = noun.owner or "one"
    name = noun.several or noun.english
    if noun.number == "fixed":
        agree = "they" if noun.english.endswith("blossoms") else "it"
        name = re.sub(r"^an? ", "the ", noun.english)
        return Actor(noun.korean, Person(name, agree), "thing", False, noun.word)
    if noun.number == "name":
        return Actor(noun.korean, Person(noun.english, "it"), "thing", False, noun.word)
    if noun.number in ("own", "my"):
        owner = dice.weighted({"": 3.0, "제": 2.0}) if not asks else "네" if level == "해" else ""
        korean = {"제": "제" if level in ("해요", "합니다") else "내"}.get(owner, owner)
        english = "your" if asks else "my"
        person = Person(f"{english} {name}", agree if noun.number == "own" else "one")
        return Actor(f"{korean} {noun.korean}".strip(), person, "thing", False, noun.word)
    which = (
        ""
        if noun.number == "the" or not pointed
        else dice.weighted({"": 5.0, "이": 3.0, "그": 2.0, "저": 1.0, "제": 1.0})
    )
    if which == "제" and noun.kind in _NOBODYS:
        which = ""
    many = agree == "they"
    english = {
        "": "the",
        "이": "these" if many else "this",
        "그": "those" if many else "that",
        "저": "those" if many else "that",
        "제": "your" if asks else "my",
    }[which]
    if which == "제":
        which = (
            ("네" if level == "해" else "")
            if asks
            else ("제" if level in ("해요", "합니다") else "내")
        )
        english = english if which else "the"
    name = noun.english if noun.number == "count" else name
    if which in ("제", "내", "네") and noun.kind in ("fruit", "apple", "dish", "building"):
        which, english = "", "the"
    return Actor(
        f"{which} {noun.korean}".strip(),
        Person(f"{english} {name}", agree),
        "thing",
        False,
        noun.word,
    )


def _subject(dice: Dice, noun: Noun, level: str, asks: bool) -> Actor:
    if noun.kind in ("relation", "kin"):
        korean = kin_korean(dice, noun, level) if noun.kind == "kin" else noun.korean
        owner = "your" if asks and korean == noun.korean else "my"
        return Actor(
            korean, Person(f"{owner} {noun.english}", noun.owner or "one"), "kin", False, noun.word
        )
    return thing_actor(dice, noun, level, asks=asks)


def _adjective_phrase(english: str, adverb: Adverb | None) -> VerbPhrase:
    words = f"{adverb.english} {english}" if adverb else english
    return VerbPhrase("be", words)


def description(dice: Dice) -> Sentence:
    """This apple is very sweet. The weather wasn't that cold. Is the room quiet?"""
    level = draw_level(dice)
    asks = dice.chance(0.2)
    if dice.chance(0.6):
        noun = dice.one(_DESCRIBED)
        adjective, english = dice.one(_BY_NOUN[noun])
    else:
        adjective = dice.one(_OF_THINGS)
        noun, english = dice.one(adjective.nouns)
    actor = _subject(dice, noun, level, asks)
    if dice.chance(0.08) and actor.kind == "thing" and noun.kind not in _LIVING:
        actor = IT
    return describe(dice, adjective, english, actor, level, asks)


def feeling(dice: Dice) -> Sentence:
    """I'm very tired today. Is your mother busy these days?"""
    level = draw_level(dice)
    asks = dice.chance(0.3)
    adjective = dice.one(OF_PEOPLE)
    actor = draw_actor(dice, level, asks)
    while actor.kind in ("i", "we") and adjective.english not in _FELT:
        adjective = dice.one(OF_PEOPLE)
    return describe(dice, adjective, adjective.english, actor, level, asks)


_FORMS = {"plain": 60.0, "exclaim": 10.0, "seem": 7.0, "become": 7.0, "tag": 8.0, "because": 0.0}


def describe(
    dice: Dice, adjective: Adjective, english: str, actor: Actor, level: str, asks: bool
) -> Sentence:
    """Say how somebody or something is, in one of the forms."""
    notes = Notes()
    notes.word(actor.word)
    if actor.word:
        notes.pair(adjective.word, actor.word)
    notes.word(adjective.word)
    form = "plain" if asks else dice.weighted(_FORMS)
    tense = dice.weighted({"present": 8.0, "past": 2.5})
    negation = "" if form != "plain" else dice.weighted({"": 8.0, "않": 1.2, "안": 1.0})
    chain = Chain(adjective.stem, False)
    if " " in adjective.stem and negation == "안":
        negation = "않"
    if actor.honours:
        chain = honorific(chain) if adjective.stem != "아프" else Chain("편찮으시", False, "", True)
    absolute = english in ABSOLUTE
    adverb: Adverb | None = None
    if not absolute and dice.chance(0.4):
        adverb = dice.one(_DEGREES)
        if negation:
            korean = dice.one(list(_NOT_SO))
            adverb = Adverb(korean, _NOT_SO[korean], "degree")
        if adverb.english == "a little" and form == "exclaim":
            adverb = None
    time = None
    living = actor.kind != "thing"
    if living and english in _MOOD and dice.chance(0.4):
        time = draw_time(dice, "ps" if tense == "past" else "s")
    if form == "become":
        if english in ABSOLUTE or adjective.stem in ("아프", "괜찮", "인기 있", "같", "맛이 좋"):
            form = "plain"
        elif negation == "" and adverb and adverb.english in ("too", "that"):
            adverb = None
    if form == "seem" and (actor.kind in ("i", "we") or time):
        form = "plain"
    if form == "tag" and (
        level in ("합니다", "한다")
        or actor.kind != "thing"
        or actor.person.agree not in ("it", "they")
    ):
        form = "plain"
    if form == "exclaim" and (level in ("합니다", "한다") or actor.kind in ("i", "we")):
        form = "plain"
    person = actor.person
    phrase = _adjective_phrase(english, adverb)
    mark = "?" if asks else "."
    construction = "question" if asks else "negation" if negation else "adjective"
    if form == "exclaim":
        korean = join(_past(chain, tense), "네" + ("요" if level == "해요" else ""))
        text = finite(person, phrase, tense)
        mark = dice.one((".", "!"))
        construction = "exclamation"
    elif form == "seem":
        shape = adnominal(chain, "present") if tense == "present" else join(chain.stem, "(으)ㄹ")
        korean = shape + " " + ending(extend_seem(), "present", level)
        text = "I think " + finite(person, phrase, "present" if tense == "present" else "future")
        construction = "seem"
    elif form == "become":
        tense = dice.weighted({"past": 5.0, "future": 2.0})
        chain = extend(Chain(adjective.stem, False), "become")
        korean = ending(honorific(chain) if actor.honours else chain, tense, level)
        text = finite(person, VerbPhrase("get", phrase.rest), tense)
        construction = "become"
    elif form == "tag":
        korean = join(_past(chain, tense), "지" + ("요" if level == "해요" else ""))
        text = finite(person, phrase, tense) + ", " + tag(person, phrase, tense)
        mark, construction = "?", "tag"
    else:
        if negation == "안":
            chain = replace(chain, before="안 ")
        elif negation:
            chain = extend(chain, "not")
        korean = ending(chain, tense, level, asks)
        text = finite(person, phrase, tense, negative=bool(negation), question=asks)
    if time:
        text += " " + time.english
        notes.word(time.korean)
    topic = dice.chance(0.62)
    subject = actor.with_particle(dice, level, topic)
    if level == "해" and subject and actor.kind == "thing" and dice.chance(0.3):
        subject = actor.korean
    if adverb:
        notes.word(adverb.korean)
    parts = [subject, time.korean if time else "", adverb.korean if adverb else "", korean]
    if time and dice.chance(0.4):
        parts[0], parts[1] = parts[1], parts[0]
    if actor.honours:
        construction = "honorific"
    return finish(" ".join(parts), text, notes, construction, mark)


def extend_seem() -> Chain:
    """것 같다, after an adnominal form."""
    return Chain("같", False, "것 ")


def _past(chain: Chain, tense: str) -> str:
    return join(chain.stem, "았/었") if tense == "past" else chain.stem


def state(dice: Dice) -> Sentence:
    """I'm hungry. Do you have a headache? Minsu has long hair."""
    level = draw_level(dice)
    asks = dice.chance(0.25)
    one = dice.one(tables.PHRASES)
    actor = draw_actor(dice, level, asks)
    return _state(dice, one, actor, level, asks)


def _state(dice: Dice, one: State, actor: Actor, level: str, asks: bool) -> Sentence:
    notes = Notes()
    notes.word(actor.word, *one.words)
    notes.pair(one.words[1], one.words[0])
    chain = Chain(one.stem, one.is_verb, one.before + " ")
    tense = dice.weighted({"present": 8.0, "past": 2.5})
    phrase, english_tense = one.english, tense
    if one.done:
        tense = "past"
        english_tense = "present"
    if actor.honours:
        stem = {"있": "있으시", "없": "없으시"}.get(one.stem, "")
        chain = honorific(chain, stem)
    has_time = dice.chance(0.25) and "short" not in phrase.rest and "tall" not in phrase.rest
    fleeting = one.stem not in (
        "크",
        "작",
        "길",
        "짧",
        "좋",
        "예쁘",
        "세",
        "나쁘",
    ) and "many" not in (phrase.rest)
    time = None
    if has_time and fleeting and not one.done:
        time = draw_time(dice, "ps" if tense == "past" else "s")
    if one.english.head == "have" and "personality" in phrase.rest:
        tense = english_tense = "present"
    adverb = None
    gradable = one.stem not in ("있", "없") and phrase.head == "be" and not one.done
    if gradable and dice.chance(0.3) and phrase.rest.split()[0] not in ("in", "having", "easily"):
        adverb = dice.one(_DEGREES[:5])
        phrase = VerbPhrase("be", f"{adverb.english} {phrase.rest}", phrase.negative)
        chain = replace(chain, before=f"{one.before} {adverb.korean} ")
        notes.word(adverb.korean)
    if phrase.rest.startswith("too sleepy") or phrase.rest.startswith("really heart"):
        pass
    korean = ending(chain, tense, level, asks)
    text = finite(actor.person, phrase, english_tense, question=asks)
    if time:
        text += " " + time.english
        notes.word(time.korean)
    subject = actor.with_particle(dice, level, True)
    parts = [subject, time.korean if time else "", korean]
    if time and dice.chance(0.4):
        parts[0], parts[1] = parts[1], parts[0]
    construction = "honorific" if actor.honours else "state"
    return finish(" ".join(parts), text, notes, construction, "?" if asks else ".")


# 머리가 아프다 alone is a headache: see the states.
_ACHING = {one.before[:-1] for one in tables.PHRASES if one.stem == "아프"}


def pain(dice: Dice) -> Sentence:
    """My back hurts. My knees hurt a lot. Do you have a fever?"""
    level = draw_level(dice)
    asks = dice.chance(0.2)
    notes = Notes()
    if dice.chance(0.35):
        noun = dice.one(tables.KINDS["illness"])
        stem = {"열": "나", "기침": "나", "콧물": "나"}.get(noun.korean, "있")
        if noun.korean in ("감기", "독감", "식중독"):
            stem = "걸리"
        actor = draw_actor(dice, level, asks)
        notes.word(actor.word)
        notes.noun(noun, stem + "다")
        before = noun.korean + "에" if stem == "걸리" else particle(noun.korean, "이/가")
        what = noun.english if noun.number in ("mass",) else noun_english(noun)
        past = stem == "걸리" or dice.chance(0.3)
        verb = VerbPhrase(
            ("get" if noun.korean == "식중독" else "catch") if stem == "걸리" else "have", what
        )
        chain = Chain(stem, True)
        if actor.honours:
            chain = honorific(chain, "있으시" if stem == "있" else "")
        korean = ending(chain, "past" if past else "present", level, asks)
        text = finite(actor.person, verb, "past" if past else "present", question=asks)
        subject = actor.with_particle(dice, level, True)
        return finish(f"{subject} {before} {korean}", text, notes, "state", "?" if asks else ".")
    noun = dice.one(tables.KINDS["body"])
    notes.noun(noun, "아프다")
    many = bool(noun.several) and noun.korean not in ("이", "발", "손", "팔")
    owner = dice.one(("", "", "my")) if not asks else ""
    if noun.korean in _ACHING and not owner:
        return pain(dice)
    korean_owner = {"my": "제 " if level in ("해요", "합니다") else "내 "}.get(owner, "")
    name = noun.several if many else noun.english
    person = Person(("your " if asks else "my ") + name, "they" if many else "it")
    adverb = dice.weighted({"": 5.0, "많이": 2.0, "너무": 2.0, "아직도": 1.0, "또": 1.0})
    tense = dice.weighted({"present": 6.0, "past": 2.0})
    english = {"": "", "많이": "a lot", "너무": "so much", "아직도": "", "또": "again"}[adverb]
    mid = "still" if adverb == "아직도" else ""
    text = finite(person, VerbPhrase("hurt", english), tense, question=asks, mid=mid)
    korean = ending(Chain("아프", False), tense, level, asks)
    words = [korean_owner + particle(noun.korean, "이/가"), adverb, korean]
    if adverb:
        notes.word(adverb)
    return finish(" ".join(words), text, notes, "state", "?" if asks else ".")

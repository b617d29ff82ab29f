"""How things and people are: adjectives, states, comparisons, changes, and where it hurts."""

from dataclasses import replace

from transformer_lib.datasets.everyday_korean import tables
from transformer_lib.datasets.everyday_korean.cast import (
    IT,
    Actor,
    I,
    draw_actor,
    kin_korean,
    named,
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
    comparative,
    finite,
    superlative,
    tag,
)
from transformer_lib.datasets.everyday_korean.sentence import Notes, Sentence, finish
from transformer_lib.datasets.everyday_korean.settings import draw_level, draw_time
from transformer_lib.datasets.everyday_korean.tables import Adjective, Adverb, Noun, State
from transformer_lib.datasets.korean_english.dice import Dice
from transformer_lib.datasets.korean_english.morphology import particle

__all__ = ["comparison", "description", "feeling", "pain", "state", "thing_actor"]

_OF_THINGS = [adjective for adjective in tables.ADJECTIVES if adjective.nouns]
_OF_PEOPLE = [adjective for adjective in tables.ADJECTIVES if adjective.of_people]
_BY_NOUN: dict[Noun, list[tuple[Adjective, str]]] = {}
for _adjective in _OF_THINGS:
    for _noun, _english in _adjective.nouns:
        _BY_NOUN.setdefault(_noun, []).append((_adjective, _english))
_DESCRIBED = list(_BY_NOUN)
# Said of a thing as it is; no comparison, no "very".
_ABSOLUTE = {"the same", "perfect", "enough", "wet", "spoiled", "necessary", "worn out", "okay"}
_DEGREES = tables.ADVERBS["degree"][:-2]
_NOT_SO = {"그렇게": "that", "별로": "very"}
# What one says of oneself.
_FELT = {"busy", "tired", "hungry", "full", "thirsty", "sleepy", "sick", "happy", "glad", "sad",
         "lonely", "bored", "depressed", "okay", "embarrassed", "nervous", "free", "sorry",
         "jealous", "frustrated", "healthy", "poor"}  # fmt: skip
_MOOD = {"glad", "sad", "happy", "bored", "lonely", "depressed", "tired", "busy", "hungry"}


def thing_actor(
    dice: Dice, noun: Noun, level: str, *, asks: bool = False, pointed: bool = True
) -> Actor:
    """A thing as a subject: the bag, this bag, my bag."""
    plural_kind = noun.number == "plural" or (noun.number == "own" and bool(noun.several))
    agree = "they" if plural_kind else "it"
    name = noun.several or noun.english
    if noun.number == "fixed":
        agree = "they" if noun.english.endswith("blossoms") else "it"
        return Actor(noun.korean, Person(noun.english, agree), "thing", False, noun.word)
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
    if which == "제" and (noun.kind in ("job", "person", "weather", "nature", "beast", "insect")):
        which = ""
    many = agree == "they"
    english = {
        "": "the", "이": "these" if many else "this", "그": "those" if many else "that",
        "저": "those" if many else "that", "제": "your" if asks else "my",
    }[which]  # fmt: skip
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
        f"{which} {noun.korean}".strip(), Person(f"{english} {name}", agree), "thing", False,
        noun.word,
    )  # fmt: skip


def _subject(dice: Dice, noun: Noun, level: str, asks: bool) -> Actor:
    if noun.kind in ("relation", "kin"):
        korean = kin_korean(dice, noun, level) if noun.kind == "kin" else noun.korean
        owner = "your" if asks and korean == noun.korean else "my"
        return Actor(korean, Person(f"{owner} {noun.english}", noun.owner or "one"), "kin", False,
                     noun.word)  # fmt: skip
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
    if dice.chance(0.08) and actor.kind == "thing" and noun.kind not in ("weather",):
        actor = IT
    return _describe(dice, adjective, english, actor, level, asks)


def feeling(dice: Dice) -> Sentence:
    """I'm very tired today. Is your mother busy these days?"""
    level = draw_level(dice)
    asks = dice.chance(0.3)
    adjective = dice.one(_OF_PEOPLE)
    actor = draw_actor(dice, level, asks)
    while actor.kind in ("i", "we") and adjective.english not in _FELT:
        adjective = dice.one(_OF_PEOPLE)
    return _describe(dice, adjective, adjective.english, actor, level, asks)


_FORMS = {"plain": 60.0, "exclaim": 10.0, "seem": 7.0, "become": 7.0, "tag": 8.0, "because": 0.0}


def _describe(
    dice: Dice, adjective: Adjective, english: str, actor: Actor, level: str, asks: bool
) -> Sentence:
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
    absolute = english in _ABSOLUTE
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
        if english in _ABSOLUTE or adjective.stem in ("아프", "괜찮", "인기 있", "같", "맛이 좋"):
            form = "plain"
        elif negation == "" and adverb and adverb.english in ("too", "that"):
            adverb = None
    if form == "seem" and (actor.kind in ("i", "we") or time):
        form = "plain"
    if form == "tag" and (level in ("합니다", "한다") or actor.kind != "thing" or actor.person.agree
                          not in ("it", "they")):  # fmt: skip
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
        text = finite(person, VerbPhrase("get" if living else "become", phrase.rest), tense)
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


_GRADABLE = [
    adjective
    for adjective in tables.ADJECTIVES
    if adjective.english not in _ABSOLUTE
    and adjective.english not in ("different", "similar", "common", "spoiled", "urgent", "okay")
]
_CLASSES = [
    (
        adjective,
        [
            pair
            for pair in adjective.nouns
            if pair[0].number in ("count", "mass", "the", "name", "plural")
            and pair[0].kind not in ("weather", "season")
        ],
    )  # fmt: skip
    for adjective in _GRADABLE
]
_CLASSES = [(adjective, pairs) for adjective, pairs in _CLASSES if len(pairs) > 1]
_PAIRED: list[tuple[Adjective, list[tuple[Noun, str]]]] = []
for _adjective, _pairs in _CLASSES:
    _kinds: dict[str, list[tuple[Noun, str]]] = {}
    for _pair in _pairs:
        _kinds.setdefault(_pair[0].kind, []).append(_pair)
    _PAIRED += [(_adjective, _group) for _group in _kinds.values() if len(_group) > 1]
_COMPARED = [a for a in _OF_PEOPLE if a.english in (
    "kind", "smart", "hardworking", "busy", "tired", "brave", "lazy", "honest", "hungry", "lively",
    "happy",
)]  # fmt: skip
_BEST_SCOPES = {"": "", "세상에서": "in the world", "여기에서": "here", "이 중에서": "of these",
                "우리 반에서": "in our class", "우리 가족 중에서": "in our family"}  # fmt: skip


def comparison(dice: Dice) -> Sentence:
    """The bag is more expensive than the hat. Minsu is the tallest in our class."""
    level = draw_level(dice)
    asks = dice.chance(0.15)
    notes = Notes()
    if dice.chance(0.4):
        return _of_people(dice, level, asks)
    adjective, pairs = dice.one(_PAIRED)
    (first, english), (second, _) = dice.one(pairs), dice.one(pairs)
    if first.word == second.word:
        return comparison(dice)
    notes.pair(adjective.word, first.word)
    actor = thing_actor(dice, first, level, asks=asks)
    tense = "past" if dice.chance(0.1) else "present"
    chain = Chain(adjective.stem, False)
    korean = ending(chain, tense, level, asks)
    subject = actor.with_particle(dice, level, dice.chance(0.4))
    if dice.chance(0.35):
        most = dice.one(("제일", "가장"))
        scope = dice.weighted({"": 4.0, "세상에서": 1.0, "여기에서": 1.5, "이 중에서": 1.5})
        notes.word(most)
        best = "the " + superlative(english) + " " + _BEST_SCOPES[scope]
        text = finite(actor.person, VerbPhrase("be", best.strip()), tense, question=asks)
        parts = [subject, scope, most, korean]
        return finish(" ".join(parts), text, notes, "superlative", "?" if asks else ".")
    notes.pair(adjective.word, second.word)
    other = thing_actor(dice, second, level, asks=asks, pointed=False)
    if other.korean == actor.korean:
        return comparison(dice)
    more = comparative(english)
    much = dice.weighted({"": 5.0, "훨씬": 1.5, "조금": 1.0})
    degree = {"": "", "훨씬": "much ", "조금": "a little "}[much]
    rest = f"{degree}{more} than {other.person.name}"
    text = finite(actor.person, VerbPhrase("be", rest), tense, question=asks)
    deeper = "더" if not much else f"{much} 더"
    than = f"{other.korean}보다"
    parts = [subject, than, deeper, korean]
    if dice.chance(0.25):
        parts = [than, subject, deeper, korean]
    if much:
        notes.word(much)
    return finish(" ".join(parts), text, notes, "comparison", "?" if asks else ".")


_TRAITS = {
    ("키가", "크"): "tall", ("키가", "작"): "short", ("머리가", "좋"): "smart", ("힘이", "세"): "strong",
    ("나이가", "많"): "old", ("인기가", "많"): "popular",
}  # fmt: skip


def _of_people(dice: Dice, level: str, asks: bool) -> Sentence:
    notes = Notes()
    actor = draw_actor(dice, level, asks)
    if dice.chance(0.5):
        (before, stem), english = dice.one(list(_TRAITS.items()))
        chain = Chain(stem, False)
    else:
        adjective = dice.one(_COMPARED)
        before, english, chain = "", adjective.english, Chain(adjective.stem, False)
        notes.word(adjective.word)
    if actor.kind in ("kin", "elder"):
        actor = replace(actor, honours=False)
    notes.word(actor.word)
    subject = actor.with_particle(dice, level, dice.chance(0.5))
    korean = ending(chain, "present", level, asks)
    mark = "?" if asks else "."
    if dice.chance(0.4):
        most = dice.one(("제일", "가장"))
        scope = dice.one(("", "우리 반에서", "우리 가족 중에서", "세상에서"))
        if actor.kind in ("person", "elder") and scope.startswith("우리 가족"):
            scope = "우리 반에서"
        best = ("the " + superlative(english) + " " + _BEST_SCOPES[scope]).strip()
        text = finite(actor.person, VerbPhrase("be", best), question=asks)
        parts = [subject, scope, f"{most} {before}" if dice.chance(0.3) else f"{before} {most}",
                 korean]  # fmt: skip
        return finish(" ".join(parts), text, notes, "superlative", mark)
    noun = dice.one(tables.NAMES)
    other, english_other = named(dice, noun, level), noun.english
    if dice.chance(0.35):
        kin = dice.one(tables.KINDS["kin"])
        other = kin_korean(dice, kin, level)
        prefixed = other != kin.korean
        english_other = ("my " if prefixed else "{own} ") + kin.english
        noun = kin
    if noun.word == actor.word or (actor.kind == "kin" and noun.kind == "kin"):
        return _of_people(dice, level, asks)
    if dice.chance(0.1) and actor.kind not in ("i", "we"):
        other, english_other = ("저" if level in ("해요", "합니다") else "나"), "me"
        notes.word("저")
    else:
        notes.word(noun.word)
    phrase = VerbPhrase("be", f"{comparative(english)} than {english_other}")
    text = finite(actor.person, phrase, question=asks)
    parts = [
        subject,
        other + "보다",
        f"{before} 더" if dice.chance(0.5) else f"더 {before}",
        korean,
    ]
    return finish(" ".join(parts), text, notes, "comparison", mark)


_ = I

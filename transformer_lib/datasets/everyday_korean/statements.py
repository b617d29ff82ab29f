"""Statements and yes-no questions: every tense, and what one wants, can, must, may or has done."""

from dataclasses import dataclass, replace

from transformer_lib.datasets.everyday_korean import tables
from transformer_lib.datasets.everyday_korean.cast import Actor, I, draw_actor
from transformer_lib.datasets.everyday_korean.deeds import Deed, draw_deed
from transformer_lib.datasets.everyday_korean.forms import (
    Chain,
    ending,
    extend,
    honorific,
    join,
    negate,
)
from transformer_lib.datasets.everyday_korean.phrasing import VerbPhrase, finite, wrap
from transformer_lib.datasets.everyday_korean.sentence import Sentence, finish
from transformer_lib.datasets.everyday_korean.settings import draw_level, draw_time, draw_verb
from transformer_lib.datasets.everyday_korean.tables import Time
from transformer_lib.datasets.korean_english.dice import Dice

__all__ = [
    "Setting",
    "actor_fits",
    "arrange",
    "clause_of",
    "modal_statement",
    "question",
    "say",
    "statement",
]

FIRST = ("i", "we")


@dataclass(frozen=True, slots=True)
class Setting:
    """Tense, negation and mood of a sentence, and what stands around its clause."""

    level: str
    tense: str = "past"  # past, present, progressive, past progressive, future
    negation: str = ""  # 안, 못, 않, 못하
    asks: bool = False
    time: Time | None = None
    topic: bool = True
    too: bool = False
    opening: tuple[str, str] = ("", "")


def predicate(deed: Deed, actor: Actor, auxiliary: str, setting: Setting) -> Chain:
    """The Korean predicate up to its ending."""
    chain = deed.chain()
    early = auxiliary in (
        "can",
        "cannot",
        "must",
        "must do",
        "may",
        "must not",
        "experience",
        "no experience",
        "will seem",
        "need not",
    )
    if actor.honours and (early or not auxiliary):
        chain = honorific(chain, deed.verb.honorific)
    has_object = bool(deed.object)
    if setting.negation and auxiliary in ("", "may"):
        chain = negate(chain, setting.negation, has_object)
        if setting.negation in ("안", "못") and chain.stem == "하" and actor.honours:
            chain = replace(chain, stem="하시")
    if auxiliary:
        chain = extend(chain, auxiliary)
        if setting.negation and auxiliary in ("want", "wants", "progressive"):
            chain = extend(chain, "not")
        if actor.honours and not early:
            special = "계시" if auxiliary == "progressive" and chain.stem == "있" else ""
            chain = honorific(chain, special) if chain.stem != "않" else honorific(chain)
    return chain


def arrange(
    dice: Dice, subject: str, time: Time | None, rest: list[str], level: str, opening: str = ""
) -> str:
    """Put opening, subject, time and the rest in one of their usual orders."""
    if time and subject and dice.chance(0.4):
        parts = [opening, time.korean, subject, *rest]
    else:
        parts = [opening, subject, time.korean if time else "", *rest]
    return " ".join(part for part in parts if part)


def say(
    dice: Dice,
    actor: Actor,
    deed: Deed,
    setting: Setting,
    korean: str,
    english: str,
    construction: str,
) -> Sentence:
    """Put subject, time and complements before the predicate and finish both sides."""
    notes = deed.notes
    notes.word(actor.word)
    level, time = setting.level, setting.time
    subject = actor.too() if setting.too else actor.with_particle(dice, level, setting.topic)
    rest = [*deed.complements(dice, level), korean]
    text = arrange(dice, subject, time, rest, level, setting.opening[0])
    if time:
        notes.word(time.korean)
    english = f"{setting.opening[1]} {english}".strip()
    return finish(text, english, notes, construction, "?" if setting.asks else ".")


def _with_time(phrase: VerbPhrase, setting: Setting, negative: bool) -> VerbPhrase:
    words = [setting.time.english] if setting.time else []
    if setting.too:
        words.append("either" if negative else "too")
    return phrase.plus(*words)


_TENSES = {
    "past": 46.0,
    "future": 20.0,
    "habit": 16.0,
    "now": 6.0,
    "progressive": 8.0,
    "past progressive": 2.0,
    "near": 4.0,
}
_OPENINGS = [
    (adverb.korean, adverb.english)
    for adverb in tables.ADVERBS["opening"]
    if adverb.position == "opening"
]


def _setting(dice: Dice, deed: Deed, level: str, asks: bool, actor: Actor) -> tuple[Setting, str]:
    """Draw tense, time and negation; return the setting and the kind of tense."""
    flags = deed.verb.flags
    kind = dice.weighted(_TENSES)
    yearly = deed.verb.stem in ("방문하", "휴가를 가", "소풍을 가", "떠나")
    if "ing" in flags:
        kind = "past progressive" if kind == "past" and dice.chance(0.4) else "progressive"
    if flags & {"state", "neg"}:
        kind = "state" if not dice.chance(0.1) or "neg" in flags else "past"
    elif "state2" in flags and kind not in ("past", "future"):
        kind = "state2"
    elif (
        (flags & {"once", "ride"} and kind in ("now", "progressive", "past progressive"))
        or ("once" in flags and kind == "habit" and not deed.mid and not yearly)
        or ("nodo" in flags and kind in ("future", "near"))
    ):
        kind = "past"
    if kind == "near" and not flags & {"move", "into"} and deed.verb.stem not in ("만나", "떠나"):
        kind = "future"
    if kind == "habit" and level == "합니다" and asks:
        kind = "past"
    key = {"past": "p", "future": "f", "near": "f", "habit": "h", "yearly": "H", "now": "n"}.get(
        kind, ""
    )
    needs_time = kind in ("near", "now", "yearly") or (kind == "habit" and not deed.mid)
    time = draw_time(dice, key, deed) if key and (needs_time or dice.chance(0.45)) else None
    if kind == "habit" and deed.mid and time and time.korean != "요즘":
        time = None
    if kind == "past" and deed.mid:
        time = None
    if (flags & {"state", "neg"} and kind == "past") or deed.verb.stem in ("다니", "키우"):
        time = None if kind != "habit" else time
    if deed.place and time and "{own}" in deed.place.at and "{own}" in time.english:
        time = None
    negation = ""
    if dice.chance(0.17) and kind not in ("now", "near", "past progressive"):
        willed = not flags & {"nodo", "state", "neg", "state2"}
        negation = dice.weighted(
            {"안": 4.0, "않": 4.0, "못": 2.5 if willed else 0.0, "못하": 1.5 if willed else 0.0}
        )
        compound = any(deed.verb.stem.endswith(end) for end in ("있", "알", "모르", "바르"))
        if "neg" in flags or deed.verb.stem in ("알", "모르"):
            negation = ""
        elif compound or (deed.chain().before == "" and " " in deed.verb.stem):
            negation = "않"
        if deed.adverb and deed.adverb.english not in ("often", "again", "early", "late", "much"):
            negation = ""
        if time and time.tenses in ("h", "H") and negation in ("못", "못하"):
            negation = "안"
    tense = {
        "habit": "present",
        "yearly": "present",
        "now": "present",
        "near": "present",
        "state": "present",
        "state2": "progressive",
    }.get(kind, kind)
    too = bool(actor.korean) and not asks and dice.chance(0.06) and actor.kind != "thing"
    opening = ("", "")
    if not asks and dice.chance(0.05):
        opening = dice.one(_OPENINGS)
        if opening[0] in ("혹시", "아마", "갑자기", "드디어"):
            opening = ("", "")
    if not asks and not opening[0] and level != "한다" and dice.chance(0.05):
        polite = level != "해"
        opening = (
            ("아니요," if polite else "아니,", "no,")
            if negation
            else ("네," if polite else "응,", "yes,")
        )
    topic = not dice.chance(0.22)
    return Setting(level, tense, negation, asks, time, topic, too, opening), kind


def _live(deed: Deed) -> bool:
    return deed.verb.stem in ("살", "다니")


def _finite(actor: Actor, deed: Deed, setting: Setting, kind: str) -> str:
    """The English of a clause without an auxiliary of meaning."""
    negative = bool(setting.negation) or "neg" in deed.verb.flags
    phrase = _with_time(deed.english(), setting, negative)
    phrase = replace(phrase, negative=False)
    asks, mid = setting.asks, deed.mid
    if setting.negation in ("못", "못하"):
        tense = {"past": "past", "future": "future"}.get(setting.tense, "present")
        if tense == "future":
            return finite(
                actor.person, wrap("be able to ", phrase), "future", negative=True, question=asks
            )
        modal = "could" if tense == "past" else "can"
        return finite(actor.person, phrase, modal=modal, negative=True, question=asks, mid=mid)
    tense = setting.tense
    if kind in ("now", "near"):
        tense = "progressive"
    if kind == "state2" and _live(deed):
        tense = "present"
    if kind == "state2" and deed.verb.english.startswith(("raise", "grow", "collect", "wear")):
        tense = "present" if deed.verb.english.startswith(("raise", "grow", "coll")) else tense
    return finite(actor.person, phrase, tense, negative=negative, question=asks, mid=mid)


def _clause(dice: Dice, asks: bool) -> Sentence:
    level = draw_level(dice)
    verb, noun = draw_verb(dice)
    actor = draw_actor(dice, level, asks)
    deed = draw_deed(dice, verb, level, noun, avoid=actor.word, frequent=True)
    if not actor_fits(actor, deed):
        return _clause(dice, asks)
    return clause_of(dice, actor, deed, level, asks)


def clause_of(dice: Dice, actor: Actor, deed: Deed, level: str, asks: bool) -> Sentence:
    """A statement or question of this subject and deed, in one of the tenses."""
    setting, kind = _setting(dice, deed, level, asks, actor)
    if deed.mid and kind not in ("habit", "past", "state"):
        deed.adverb = None
    if actor.kind == "i" and not actor.korean and kind == "state" and setting.opening[0]:
        setting = replace(setting, opening=("", ""))
    auxiliary = ""
    if setting.tense.endswith("progressive") and not (kind == "state2" and _live(deed)):
        auxiliary = "progressive"
    chain = predicate(deed, actor, auxiliary, replace(setting, tense="present"))
    tense = "past" if setting.tense.startswith("past") else setting.tense
    tense = tense if tense in ("past", "future") else "present"
    korean = ending(chain, tense, level, asks)
    english = _finite(actor, deed, setting, kind)
    name = {"yearly": "habit", "near": "present", "now": "present", "state2": "progressive"}.get(
        kind, kind
    )
    construction = "negation" if setting.negation else "question" if asks else name
    if setting.negation in ("못", "못하"):
        construction = "cannot"
    if actor.honours:
        construction = "honorific"
    return say(dice, actor, deed, setting, korean, english, construction)


_FAMILY = frozenset(noun.word for noun in tables.KINDS["kin"]) | {"부모님", "가족", "아기"}


def actor_fits(actor: Actor, deed: Deed) -> bool:
    """Tell whether this subject may do this: nobody visits himself, and kin stay apart."""
    if actor.word in deed.notes.words:
        return False
    return actor.kind != "kin" or _FAMILY.isdisjoint(deed.notes.words)


def statement(dice: Dice) -> Sentence:
    """I bought a bag at the market yesterday. My mother is cooking now."""
    return _clause(dice, asks=False)


def question(dice: Dice) -> Sentence:
    """Did you buy a bag yesterday? Does Minsu like coffee?"""
    return _clause(dice, asks=True)


@dataclass(frozen=True, slots=True)
class Modality:
    """An auxiliary of meaning: its name in ``forms``, its English, and the tenses it takes."""

    auxiliary: str
    english: str  # around the verb phrase, or "modal can"
    weight: int | float
    tenses: str = "s"  # s present, p past
    negatable: bool = False
    asks: bool = True
    who: str = ""  # first: only I and we; third: only others


MODALITIES = {
    "want": Modality("want", "want to ", 9, "sp", True, True, "near"),
    "wants": Modality("wants", "want to ", 4, "sp", True, True, "third"),
    "can": Modality("can", "modal can", 7, "sp"),
    "cannot": Modality("cannot", "modal can't", 5, "sp"),
    "must": Modality("must", "have to ", 6, "sp"),
    "must do": Modality("must do", "have to ", 5, "sp"),
    "may": Modality("may", "modal may", 4, "s"),
    "must not": Modality("must not", "modal must not", 4, "s", False, False),
    "need not": Modality("need not", "not have to ", 3, "s", False, False),
    "intend": Modality("intend", "plan to ", 5, "sp", False, True),
    "decide": Modality("decide", "decide to ", 3, "p", False, True),
    "start": Modality("start", "start to ", 2.5, "p", False, False),
    "experience": Modality("experience", "perfect", 4, "s"),
    "no experience": Modality("no experience", "perfect never", 3, "s", False, False),
    "try": Modality("try", "perfect", 3, "p"),
    "want to try": Modality("want to try", "want to try ~", 3, "s", False, True, "near"),
    "will seem": Modality("will seem", "think", 4, "s", False, False, "third"),
    "end up": Modality("end up", "end up ~", 2, "p", False, False),
    "promise": Modality("", "promise", 4, "s", False, False, "first"),
    "intention": Modality("", "intention", 2, "s", False, False, "first"),
}
# What is said without an adverb.
_BARE = ("experience", "no experience", "try", "want to try", "must not", "may")
_WEIGHTS = {name: modality.weight for name, modality in MODALITIES.items()}


def _fits(modality: Modality, actor: Actor, asks: bool) -> bool:
    if modality.who == "first":
        return actor.kind in FIRST and not asks
    if modality.who == "near":
        return actor.kind in (*FIRST, "you")
    if modality.who == "third":
        return actor.kind not in (*FIRST, "you")
    return True


def _modal_english(
    modality: Modality, actor: Actor, deed: Deed, setting: Setting, phrase: VerbPhrase
) -> str:
    asks, negative = setting.asks, bool(setting.negation)
    word, _, rest = modality.english.partition(" ")
    if word == "modal":
        past = {"can": "could", "can't": "could"}.get(rest, rest)
        modal = past if setting.tense == "past" else rest
        if rest == "must not":
            return finite(actor.person, phrase, modal="must", negative=True)
        denied = rest == "can't"
        modal = "can" if modal == "can't" else modal
        return finite(actor.person, phrase, modal=modal, negative=denied, question=asks)
    if word == "perfect":
        mid = "never" if rest else "ever" if asks else ""
        head = "be" if phrase.head == "go" and deed.place else phrase.head
        done = VerbPhrase(head, phrase.rest)
        text = finite(actor.person, done, "perfect", question=asks, mid=mid)
        return text if mid else text + " before"
    if word == "think":
        return "I think " + finite(actor.person, phrase, "future")
    if word in ("promise", "intention"):
        return finite(actor.person, phrase, "future")
    outer = wrap(modality.english, phrase)
    return finite(actor.person, outer, setting.tense, negative=negative, question=asks)


def modal_statement(dice: Dice, name: str = "") -> Sentence:
    """I want to buy a bag. You must not smoke here. Have you ever been to Busan?"""
    level = draw_level(dice)
    name = name or dice.weighted(_WEIGHTS)
    modality = MODALITIES[name]
    asks = modality.asks and dice.chance(0.3)
    actor = draw_actor(dice, level, asks)
    for _ in range(20):
        if _fits(modality, actor, asks):
            break
        actor = draw_actor(dice, level, asks)
    else:
        return modal_statement(dice)
    verb, noun = draw_verb(dice, willed=True)
    if "nodo2" in verb.flags and name not in ("want", "wants", "can", "need not"):
        return modal_statement(dice, name)
    if "state2" in verb.flags and name not in ("want", "wants", "must", "must do", "may"):
        return modal_statement(dice, name)
    if name == "start" and verb.flags & {"once", "ride"}:
        return modal_statement(dice, name)
    if name in ("experience", "no experience", "try", "want to try") and (
        "with" not in verb.flags or verb.stem in ("보", "떠나", "준비하", "시작하", "계속하")
    ):
        return modal_statement(dice, name)
    deed = draw_deed(dice, verb, level, noun, avoid=actor.word)
    if not actor_fits(actor, deed):
        return modal_statement(dice, name)
    if (
        name in ("may", "must not", "must", "must do", "need not")
        and actor.honours
        and (actor.kind != "you")
    ):
        return modal_statement(dice, name)
    if name in ("may", "must not", "need not") and actor.kind in FIRST:
        actor = Actor("", actor.person, actor.kind)
        if name == "must not":
            return modal_statement(dice, name)
    tense = (
        "past"
        if modality.tenses == "p" or ("p" in modality.tenses and dice.chance(0.3))
        else ("present")
    )
    negation = "않" if modality.negatable and dice.chance(0.2) else ""
    if negation and name in ("want", "wants") and dice.chance(0.5):
        negation = "안"
    setting = Setting(level, tense, negation, asks, None, not dice.chance(0.15))
    if dice.chance(0.35) and name not in (
        "experience",
        "no experience",
        "try",
        "want to try",
        "may",
        "must not",
    ):
        future = tense == "present" and name not in ("can", "cannot")
        key = "p" if tense == "past" else "f" if future else ""
        if name in ("want", "wants") and tense == "past":
            key = ""
        if key:
            setting = replace(setting, time=draw_time(dice, key, deed))
    if deed.adverb and (name in _BARE or negation):
        deed.adverb = None
    if name == "may" and asks and actor.kind == "you":
        actor = I
    if actor.kind == "i" and name == "may":
        asks = True
        setting = replace(setting, asks=True)
    korean = _modal_korean(dice, modality, actor, deed, setting)
    if not korean:
        return modal_statement(dice, name)
    phrase = _with_time(deed.english(), setting, False)
    english = _modal_english(modality, actor, deed, setting, phrase)
    construction = {"wants": "want", "must do": "must", "cannot": "can"}.get(name, name)
    return say(dice, actor, deed, setting, korean, english, construction)


def _modal_korean(
    dice: Dice, modality: Modality, actor: Actor, deed: Deed, setting: Setting
) -> str:
    level = setting.level
    if modality.english == "promise":
        if level not in ("해요", "해"):
            return ""
        return (
            join(deed.chain().stem, "(으)ㄹ게" + ("요" if level == "해요" else ""))
            if (not deed.chain().before)
            else deed.chain().before
            + join(deed.chain().stem, "(으)ㄹ게" + ("요" if level == "해요" else ""))
        )
    if modality.english == "intention":
        end = {"합니다": "겠습니다", "해요": "겠어요"}.get(level, "")
        chain = deed.chain()
        return f"{chain.before}{join(chain.stem, end)}" if end else ""
    if modality.auxiliary == "want to try":
        chain = extend(extend(deed.chain(), "try"), "want")
        return ending(honorific(chain) if actor.honours else chain, "present", level, setting.asks)
    if setting.negation == "안" and modality.auxiliary in ("want", "wants"):
        chain = negate(deed.chain(), "안", bool(deed.object))
        chain = extend(chain, modality.auxiliary)
        if actor.honours:
            chain = honorific(chain)
        return ending(chain, setting.tense, level, setting.asks)
    chain = predicate(deed, actor, modality.auxiliary, setting)
    return ending(chain, setting.tense, level, setting.asks)

"""What one asks others to do, or proposes: requests, orders, let's, shall we, could you."""

from transformer_lib.datasets.everyday_korean.deeds import GIVING, Deed, draw_deed
from transformer_lib.datasets.everyday_korean.forms import Chain, honorific, join
from transformer_lib.datasets.everyday_korean.phrasing import Person, finite, infinitive, ing
from transformer_lib.datasets.everyday_korean.sentence import Sentence, finish
from transformer_lib.datasets.everyday_korean.settings import draw_time, draw_verb
from transformer_lib.datasets.everyday_korean.tables import Time
from transformer_lib.datasets.korean_english.dice import Dice

__all__ = ["proposal", "request"]

_YOU, _WE = Person("you", "you"), Person("we", "we")
# Ending, with what it joins to; English with ~ for the verb phrase; level; mark.
_REQUESTS: dict[tuple[str, str, str, str, str], float] = {
    ("아/어", "주세요", "please ~", "해요", "."): 22.0,
    ("(으)세요", "", "please ~", "해요", "."): 16.0,
    ("아/어", "주십시오", "please ~", "합니다", "."): 4.0,
    ("(으)십시오", "", "please ~", "합니다", "."): 4.0,
    ("아/어", "줘", "please ~", "해", "."): 10.0,
    ("아/어라", "", "~", "한다", "."): 4.0,
    ("아/어", "", "~", "해", "."): 5.0,
    ("지", "마세요", "please don't ~", "해요", "."): 9.0,
    ("지", "마십시오", "please don't ~", "합니다", "."): 3.0,
    ("지", "마", "don't ~", "해", "."): 7.0,
    ("지", "마라", "don't ~", "한다", "."): 2.0,
    ("아/어", "주시겠어요", "could you ~", "해요", "?"): 6.0,
    ("아/어", "주실 수 있어요", "could you ~", "해요", "?"): 5.0,
    ("아/어", "주시겠습니까", "could you ~", "합니다", "?"): 2.0,
    ("아/어", "줄래", "will you ~", "해", "?"): 4.0,
    ("아/어", "줄 수 있어", "can you ~", "해", "?"): 4.0,
    ("아/어", "보세요", "try ~ing", "해요", "."): 4.0,
    ("아/어", "봐", "try ~ing", "해", "."): 2.0,
}
_PROPOSALS: dict[tuple[str, str, str, str], float] = {
    ("자", "let's ~", "해", "."): 16.0,
    ("(으)ㅂ시다", "let's ~", "합니다", "."): 10.0,
    ("아/어요", "let's ~", "해요", "."): 8.0,
    ("(으)ㄹ까요", "shall we ~", "해요", "?"): 12.0,
    ("(으)ㄹ까", "shall we ~", "해", "?"): 8.0,
    ("(으)ㄹ래요", "do you want to ~", "해요", "?"): 6.0,
    ("(으)ㄹ래", "do you want to ~", "해", "?"): 6.0,
    ("지 말자", "let's not ~", "해", "."): 5.0,
    ("지 맙시다", "let's not ~", "합니다", "."): 3.0,
    ("지 말아요", "let's not ~", "해요", "."): 3.0,
}
# What one can do for somebody else: 해 주세요.
_FOR_OTHERS = frozenset(
    [
        "buy",
        "make",
        "open",
        "close",
        "turn",
        "clean",
        "wash",
        "wait",
        "write",
        "read",
        "sing",
        "give",
        "send",
        "lend",
        "return",
        "show",
        "explain",
        "teach",
        "fix",
        "wipe",
        "order",
        "check",
        "cancel",
        "book",
        "carry",
        "push",
        "pull",
        "move",
        "hang",
        "call",
        "contact",
        "help",
        "introduce",
        "wake",
        "draw",
        "boil",
        "peel",
        "slice",
        "heat",
        "cut",
        "lock",
        "fold",
        "iron",
        "choose",
        "bring",
        "throw",
        "pick",
        "put",
        "translate",
        "record",
        "save",
        "erase",
        "download",
        "charge",
        "copy",
        "install",
        "wrap",
        "deliver",
        "forgive",
        "comfort",
        "stop",
        "park",
        "come",
        "grill",
        "stir-fry",
        "repair",
        "organize",
        "look",
        "answer",
        "reply",
        "tell",
        "cook",
        "press",
        "grow",
        "bake",
        "fry",
    ]
)


def _spoken(chain: Chain, form: str, after: str) -> str:
    """The predicate with its ending; what ends in 주다 already takes no second one."""
    if after[:1] in ("주", "줘", "줄") and chain.stem[-1] == "주":
        return chain.before + chain.stem[:-1] + after
    if after[:1] in ("주", "줘", "줄") and chain.stem[-1] == "리" and chain.stem in GIVING.values():
        return chain.before + chain.stem[:-1] + {"주세요": "리세요", "줘": "려"}.get(after, "")
    text = chain.before + join(chain.stem, form)
    return f"{text} {after}".strip()


def _english(pattern: str, deed: Deed, person: Person, time: Time | None, company: str = "") -> str:
    phrase = deed.english().plus(company, time.english if time else "")
    text = ing(phrase) if "~ing" in pattern else infinitive(phrase)
    if pattern.startswith(("could", "will", "can")):
        return finite(person, phrase, modal=pattern.split(" ")[0], question=True)
    return person.fill(pattern.replace("~ing", text).replace("~", text))


def _ours(deed: Deed) -> bool:
    """Tell whether the deed is about one's own body or things: nobody does that for others."""
    return deed.verb.article in ("own", "bare") or "{own}" in deed.english_object


def request(dice: Dice) -> Sentence:
    """Please open the window. Don't touch the picture. Could you wait for me?"""
    form, after, pattern, level, mark = dice.weighted(_REQUESTS)
    verb, noun = draw_verb(dice, willed=True)
    if verb.flags & {"nodo2", "state2"} and "don't" not in pattern and verb.stem != "조심하":
        return request(dice)
    helps = verb.english.split()[0] in _FOR_OTHERS and (
        verb.objects or verb.stem in ("오", "돌아오")
    )
    if after[:1] in ("주", "줘", "줄") and not (helps and "{own}" not in verb.english):
        return request(dice)
    tries = pattern.startswith("try")
    if tries and ("with" not in verb.flags or verb.stem in ("보", "떠나", "준비하", "시작하")):
        return request(dice)
    deed = draw_deed(dice, verb, level, noun, plain=dice.chance(0.7))
    if _ours(deed) and after[:1] in ("주", "줘", "줄"):
        return request(dice)
    if deed.adverb and ("don't" in pattern or deed.adverb.english in ("alone", "by {self}")):
        deed.adverb = None
    denied = "don't" in pattern
    time = None
    if dice.chance(0.18) and not tries and not (denied and "once" in verb.flags):
        time = draw_time(dice, "f", deed)
        if time.korean in ("다음에", "언젠가"):
            time = None
    chain = deed.chain()
    if chain.stem in GIVING.values() and after not in ("", "주세요"):
        return request(dice)
    if form in ("(으)세요", "(으)십시오"):
        chain = honorific(chain, verb.honorific)
        stem = chain.stem[:-1]
        korean = chain.before + stem + ("세요" if form == "(으)세요" else "십시오")
    else:
        korean = _spoken(chain, form, after)
    parts = [time.korean if time else "", *deed.complements(dice, level), korean]
    if time:
        deed.notes.word(time.korean)
    please = ""
    if after.startswith("주") and dice.chance(0.07):
        please = "제발"
    elif after == "" and form == "(으)세요" and dice.chance(0.06):
        please = "꼭"
    english = _english(pattern, deed, _YOU, time)
    if please == "꼭":
        english = english.replace("please ", "please be sure to ", 1)
        deed.notes.word(please)
    elif please:
        deed.notes.word(please)
    text = " ".join(part for part in [please, *parts] if part)
    construction = "forbid" if denied else "could you" if mark == "?" else "request"
    return finish(text, english, deed.notes, construction, mark)


def proposal(dice: Dice) -> Sentence:
    """Let's watch a movie tomorrow. Shall we take a bus? Do you want to play soccer?"""
    form, pattern, level, mark = dice.weighted(_PROPOSALS)
    verb, noun = draw_verb(dice, willed=True)
    if "with" not in verb.flags:
        return proposal(dice)
    deed = draw_deed(dice, verb, level, noun, plain=dice.chance(0.3))
    deed.korean_company = deed.english_company = ""
    if deed.adverb and (deed.adverb.english in ("alone", "by {self}") or "not" in pattern):
        deed.adverb = None
    time = draw_time(dice, "f", deed) if dice.chance(0.4) else None
    if time and time.korean == "언젠가":
        time = None
    chain = deed.chain()
    korean = chain.before + join(chain.stem, form)
    together = form in ("아/어요", "(으)ㄹ래요", "(으)ㄹ래") or dice.chance(0.35)
    subject = "우리 " if dice.chance(0.2) else ""
    parts = [subject.strip(), time.korean if time else "", "같이" if together else ""]
    if together and dice.chance(0.2):
        parts[2] = "함께"
    if time:
        deed.notes.word(time.korean)
    english = _english(pattern, deed, _WE, time, "together" if together else "")
    text = " ".join(part for part in [*parts, *deed.complements(dice, level), korean] if part)
    return finish(text, english, deed.notes, "let's", mark)

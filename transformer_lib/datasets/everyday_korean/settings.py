"""Shares: how often each level, tense and time is drawn, and which verbs may be drawn for what."""

from transformer_lib.datasets.everyday_korean import tables
from transformer_lib.datasets.everyday_korean.deeds import Deed
from transformer_lib.datasets.everyday_korean.tables import Noun, Time, Verb
from transformer_lib.datasets.korean_english.dice import Dice

__all__ = ["FAR_STEMS", "TIMES_OF", "WILLED", "draw_level", "draw_time", "draw_verb"]

_LEVELS = {"해요": 46.0, "합니다": 12.0, "해": 24.0, "한다": 18.0}
TIMES_OF: dict[str, list[Time]] = {
    tense: [time for time in tables.TIMES if tense in time.tenses and "s" not in time.tenses]
    for tense in "pfhnPFH"
}
TIMES_OF["s"] = [time for time in tables.TIMES if time.tenses == "s"]
TIMES_OF["ps"] = [time for time in tables.TIMES if time.tenses == "ps"]
# What one does in a certain summer or every year.
FAR_STEMS = {
    "배우",
    "졸업하",
    "입학하",
    "결혼하",
    "취직하",
    "사귀",
    "헤어지",
    "이사하",
    "방문하",
    "여행하",
    "그만두",
    "끊",
    "전공하",
    "살",
    "유학을 가",
    "휴가를 가",
    "소풍을 가",
    "캠핑하",
    "낚시하",
    "등산하",
    "스키를 타",
    "심",
    "가르치",
    "일하",
    "돌아가",
    "돌아오",
    "떠나",
    "머무르",
    "합격하",
    "연주하",
    "보내",
    "지원하",
    "키우",
}
WILLED = [verb for verb in tables.VERBS if not verb.flags & {"nodo", "state", "neg", "ing"}]
_TAKING: dict[Noun, list[Verb]] = {}
for _verb in tables.VERBS:
    for _noun in _verb.objects:
        _TAKING.setdefault(_noun, []).append(_verb)
_OBJECTS = list(_TAKING)
_WILLED_TAKING = {
    noun: [verb for verb in verbs if verb in WILLED] for noun, verbs in _TAKING.items()
}
_WILLED_OBJECTS = [noun for noun, verbs in _WILLED_TAKING.items() if verbs]


def draw_level(dice: Dice) -> str:
    """Draw one of the four levels."""
    return dice.weighted(_LEVELS)


def draw_time(dice: Dice, tense: str, deed: Deed | None = None) -> Time:
    """Draw a time for a tense: p, f, h, n, s or ps; some times are for certain deeds alone."""
    far = deed is not None and deed.verb.stem in FAR_STEMS
    abroad = deed is not None and deed.abroad
    if tense in "pfh" and (abroad or (far and dice.chance(0.45))):
        return dice.one(TIMES_OF[tense.upper()])
    return dice.one(TIMES_OF[tense])


def draw_verb(dice: Dice, willed: bool = False) -> tuple[Verb, Noun | None]:
    """Draw a verb and its object; half the time the object first, so that all come up.

    Args:
        dice: What draws.
        willed: Whether only what is done on purpose will do.
    """
    if dice.chance(0.55):
        noun = dice.one(_WILLED_OBJECTS if willed else _OBJECTS)
        return dice.one((_WILLED_TAKING if willed else _TAKING)[noun]), noun
    return dice.one(WILLED if willed else tables.VERBS), None

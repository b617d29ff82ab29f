"""Korean predicates: the auxiliaries that follow a stem, and the endings of four levels.

The levels are named by how 하다 ends in them: 해요, 합니다, 해 and 한다. A ``Chain`` is a predicate
that still wants its ending: words that are finished, and a last stem.
"""

from dataclasses import dataclass, replace
from functools import cache

from transformer_lib.datasets.korean_english.morphology import conjugate, copula, has_final

__all__ = [
    "AUXILIARIES",
    "LEVELS",
    "Chain",
    "adnominal",
    "be",
    "ending",
    "extend",
    "honorific",
    "join",
    "negate",
]

LEVELS = ("해요", "합니다", "해", "한다")
HONORIFIC = {
    "먹": "드시",
    "마시": "드시",
    "자": "주무시",
    "있": "계시",
    "말하": "말씀하시",
    "죽": "돌아가시",
}
# Verbs in 하다 whose 하다 does not come off: no 좋아를 안 하다.
WHOLE_HADA = {
    "좋아하",
    "싫어하",
    "원하",
    "정하",
    "구하",
    "전하",
    "통하",
    "변하",
    "피하",
    "권하",
    "잘하",
    "못하",
    "미워하",
    "그리워하",
    "부러워하",
    "무서워하",
    "기뻐하",
    "사랑하",
    "기억하",
    "필요하",
    "대하",
    "취하",
    "환영하",
    "화내",
    "안 하",
    "도착하",
    "출발하",
    "말하",
}
_AUXILIARY_TABLE = {
    "want": ("고 ", "싶", False),
    "wants": ("고 싶어 ", "하", True),
    "can": ("(으)ㄹ 수 ", "있", False),
    "cannot": ("(으)ㄹ 수 ", "없", False),
    "know how": ("(으)ㄹ 줄 ", "알", True),
    "not know how": ("(으)ㄹ 줄 ", "모르", True),
    "must": ("아/어야 ", "하", True),
    "must do": ("아/어야 ", "되", True),
    "may": ("아/어도 ", "되", True),
    "must not": ("(으)면 안 ", "되", True),
    "need not": ("지 않아도 ", "되", True),
    "progressive": ("고 ", "있", True),
    "try": ("아/어 ", "보", True),
    "intend": ("(으)려고 ", "하", True),
    "decide": ("기로 ", "하", True),
    "start": ("기 시작", "하", True),
    "experience": ("(으)ㄴ 적이 ", "있", False),
    "no experience": ("(으)ㄴ 적이 ", "없", False),
    "will seem": ("(으)ㄹ 것 ", "같", False),
    "end up": ("게 ", "되", True),
    "favour": ("아/어 ", "주", True),
    "become": ("아/어", "지", True),
    "not": ("지 ", "않", True),
    "not able": ("지 ", "못하", True),
}
AUXILIARIES = tuple(_AUXILIARY_TABLE)


@dataclass(frozen=True, slots=True)
class Chain:
    """A predicate without its ending.

    Attributes:
        stem: The last stem, without 다.
        is_verb: Whether it takes 는다 and 는; adjectives do not.
        before: What stands before it, with the spaces.
        honours: Whether 시 is in it.
    """

    stem: str
    is_verb: bool = True
    before: str = ""
    honours: bool = False


@cache
def join(stem: str, ending: str) -> str:
    """Join a stem and an ending; like ``conjugate``, and ㄹ also falls before 네, 는 and 느."""
    before, space, stem = stem.rpartition(" ")
    if ending[0] in "네느":
        return before + space + conjugate(stem, "니")[:-1] + ending
    return before + space + conjugate(stem, ending)


def extend(chain: Chain, auxiliary: str) -> Chain:
    """Put an auxiliary after the predicate: 먹 → 먹고 싶.

    Args:
        chain: The predicate.
        auxiliary: One of ``AUXILIARIES``.

    Returns:
        The longer predicate.
    """
    joint, stem, is_verb = _AUXILIARY_TABLE[auxiliary]
    if auxiliary == "not":
        is_verb = chain.is_verb
    text = join(chain.stem, joint.rstrip()) + (" " if joint.endswith(" ") else "")
    if auxiliary == "become":
        return Chain(text + stem, True, chain.before, False)
    return Chain(stem, is_verb, chain.before + text, False)


def honorific(chain: Chain, special: str = "") -> Chain:
    """The predicate with 시: 가시, 드시, 주무시."""
    stem = special or HONORIFIC.get(chain.stem) or join(chain.stem, "(으)시")
    return replace(chain, stem=stem, honours=True)


def negate(chain: Chain, word: str, has_object: bool) -> Chain:
    """Deny a predicate with 안 or 못 before it, or with 지 않다 or 지 못하다 after it.

    Args:
        chain: The predicate.
        word: 안, 못, 않 or 못하.
        has_object: Whether an object stands before it: then 하다 stays with its noun and the
            long form is taken.

    Returns:
        The denied predicate.
    """
    if word == "않":
        return extend(chain, "not")
    if word == "못하":
        return extend(chain, "not able")
    noun = chain.stem[:-1]
    if chain.is_verb and chain.stem.endswith("하") and len(chain.stem) > 2 and not chain.honours:
        if chain.stem in WHOLE_HADA or has_object or " " in noun:
            return extend(chain, "not" if word == "안" else "not able")
        noun += "을" if has_final(noun) else "를"
        return replace(chain, before=f"{chain.before}{noun} {word} ", stem="하")
    return replace(chain, before=f"{chain.before}{word} ")


_PRESENT = {"해요": "아/어요", "합니다": "ㅂ/습니다", "해": "아/어", "한다": "다"}
_PRESENT_ASKED = {"해요": "아/어요", "합니다": "ㅂ/습니까", "해": "아/어", "한다": "니"}
_PAST = {"해요": "았/었어요", "합니다": "았/었습니다", "해": "았/었어", "한다": "았/었다"}
_PAST_ASKED = {"해요": "았/었어요", "합니다": "았/었습니까", "해": "았/었어", "한다": "았/었니"}
_FUTURE = {"해요": "거예요", "합니다": "겁니다", "해": "거야", "한다": "것이다"}
_FUTURE_ASKED = {"해요": "거예요", "합니다": "겁니까", "해": "거야", "한다": "거니"}


def ending(chain: Chain, tense: str, level: str, asks: bool = False) -> str:
    """Finish a predicate: tense is past, present, or future (the one with 거예요)."""
    stem, before = chain.stem, chain.before
    if tense == "future":
        return f"{before}{join(stem, '(으)ㄹ')} {(_FUTURE_ASKED if asks else _FUTURE)[level]}"
    if tense == "past":
        return before + join(stem, (_PAST_ASKED if asks else _PAST)[level])
    if chain.honours and level == "해요":
        return before + stem[:-1] + "세요"
    if level == "한다" and chain.is_verb and not asks and stem[-1] not in "있없":
        return before + join(stem, "ㄴ/는다")
    if stem == "되" and level == "해요":
        return before + "돼요"
    return before + join(stem, (_PRESENT_ASKED if asks else _PRESENT)[level])


def adnominal(chain: Chain, tense: str) -> str:
    """The form before a noun: 먹는, 먹은, 먹을; 큰, 맛있는."""
    stem = chain.stem
    if tense == "future":
        form = "(으)ㄹ"
    elif not chain.is_verb:
        form = "는" if stem[-1] in "있없" else "(으)ㄴ"
    else:
        form = "(으)ㄴ" if tense == "past" else "는"
    return chain.before + join(stem, form)


def be(noun: str, tense: str, level: str, asks: bool = False, honours: bool = False) -> str:
    """A noun with 이다: 학생이에요, 의사였어요, 선생님이세요."""
    if honours:
        stem = "이시" if has_final(noun) else "시"
        return noun + ending(Chain(stem, honours=True), tense, level, asks)
    if tense == "future":
        return f"{noun}일 {(_FUTURE_ASKED if asks else _FUTURE)[level]}"
    table = (_PAST_ASKED if asks else _PAST) if tense == "past" else None
    if table is None:
        table = _PRESENT_ASKED if asks else _PRESENT
    return copula(noun, table[level])

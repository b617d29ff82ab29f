"""Hangul arithmetic: particles that heed the final consonant, and the conjugation of stems.

A syllable of the Unicode block U+AC00 is 0xAC00 + 588 · initial + 28 · vowel + final. A stem is
written without 다 (먹, 가, 돕). Endings are written as in a grammar book:

==================  ==========================================================================
``"고"``            joins as it stands
``"(으)면"``        으 comes between after a consonant; ㄹ stays or falls by what follows
``"아/어요"``       아 or 어 by vowel harmony, contracted
``"았/었어요"``     the past, then the rest
``"ㅂ/습니다"``     ㅂ under a vowel, 습 after a consonant
``"ㄴ/는다"``       ㄴ under a vowel, 는 after a consonant
==================  ==========================================================================
"""

__all__ = ["conjugate", "copula", "has_final", "particle"]

INITIALS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
FINALS = ("", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ")

# Stems are regular or not by the word, not by the sound: these lists tell them apart.
REGULAR_B = [
    "입",
    "잡",
    "뽑",
    "씹",
    "접",
    "집",
    "좁",
    "업",
    "꼬집",
    "붙잡",
    "뒤집",
    "붐비",
    "갈아입",
]
IRREGULAR_D = ["듣", "걷", "묻", "싣", "깨닫"]
IRREGULAR_S = ["짓", "낫", "붓", "젓", "잇", "긋"]
REGULAR_H = ["좋", "놓", "넣", "쌓", "낳", "닿", "찧", "내려놓"]
REGULAR_REU = ["따르", "치르", "들르", "다다르"]
REU_WITH_REO = ["푸르", "이르"]

CONTRACTIONS = {"ㅗ": "ㅘ", "ㅜ": "ㅝ", "ㅣ": "ㅕ", "ㅚ": "ㅙ"}  # with 아 or 어
ABSORBING = "ㅏㅓㅐㅔㅕ"  # swallow 아 or 어
WITH_EH = {"ㅏ": "ㅐ", "ㅑ": "ㅒ", "ㅓ": "ㅔ", "ㅕ": "ㅖ"}  # ㅎ-irregular: 빨갛 → 빨개


def _split(syllable: str) -> tuple[str, str, str]:
    """Take a syllable apart into initial, vowel and final."""
    index = ord(syllable) - 0xAC00
    if not 0 <= index < 11172:
        raise ValueError(f"word: expected Hangul at its end, got {syllable!r}")
    return INITIALS[index // 588], VOWELS[index % 588 // 28], FINALS[index % 28]


def _join(initial: str, vowel: str, final: str = "") -> str:
    """Put a syllable together."""
    return chr(
        0xAC00 + 588 * INITIALS.index(initial) + 28 * VOWELS.index(vowel) + FINALS.index(final)
    )


def _with_final(word: str, final: str) -> str:
    """Give the last syllable another final consonant."""
    initial, vowel, _ = _split(word[-1])
    return word[:-1] + _join(initial, vowel, final)


def _last(word: str) -> tuple[str, str, str]:
    if not word:
        raise ValueError("word: expected Hangul, got an empty string")
    return _split(word[-1])


def has_final(word: str) -> bool:
    """Tell whether the last syllable closes with a consonant.

    Args:
        word: Text that ends in a Hangul syllable.

    Returns:
        True for 책, False for 사과.

    Raises:
        ValueError: ``word`` is empty or does not end in a Hangul syllable.
    """
    return _last(word)[2] != ""


def particle(word: str, forms: str) -> str:
    """Add the particle that the end of the word asks for.

    Args:
        word: Text that ends in a Hangul syllable.
        forms: The form after a consonant and the one after a vowel: ``"은/는"``, ``"이/가"``,
            ``"을/를"``, ``"과/와"``, ``"으로/로"``. A particle of one form is added as it is.

    Returns:
        The word with its particle. ㄹ takes 로: 서울로.

    Raises:
        ValueError: ``word`` is empty or does not end in a Hangul syllable.
    """
    final = _last(word)[2]
    after_consonant, _, after_vowel = forms.partition("/")
    if not after_vowel:
        return word + forms
    if after_consonant == "으로" and final == "ㄹ":
        return word + after_vowel
    return word + (after_consonant if final else after_vowel)


def _listed(stem: str, words: list[str]) -> bool:
    """Tell whether the stem, or the last part of a compound, is in the list."""
    return any(stem == word or (len(word) > 1 and stem.endswith(word)) for word in words)


def _kind(stem: str) -> str:
    """Name the irregular class of a stem, or "" for a regular one."""
    initial, vowel, final = _last(stem)
    if final == "ㅂ" and not _listed(stem, REGULAR_B):
        return "ㅂ"
    if final == "ㄷ" and _listed(stem, IRREGULAR_D):
        return "ㄷ"
    if final == "ㅅ" and _listed(stem, IRREGULAR_S):
        return "ㅅ"
    if final == "ㅎ" and not _listed(stem, REGULAR_H):
        return "ㅎ"
    if (initial, vowel, final) == ("ㄹ", "ㅡ", "") and len(stem) > 1:
        if _listed(stem, REU_WITH_REO):
            return "러"
        return "ㅡ" if _listed(stem, REGULAR_REU) else "르"
    return "ㅡ" if vowel == "ㅡ" and not final else ""


def _is_bright(word: str) -> bool:
    """Tell whether vowel harmony asks for 아."""
    return bool(word) and _last(word)[1] in "ㅏㅗㅑ"


def _infinitive(stem: str) -> str:
    """The stem with 아 or 어: 먹어, 가, 도와, 몰라, 써, 하얘, 해."""
    initial, vowel, final = _last(stem)
    rest, kind = stem[:-1], _kind(stem)
    if stem[-1] == "하":
        return rest + "해"
    if stem == "아니":
        return "아니어"
    if kind == "ㅂ":
        return _with_final(stem, "") + ("와" if stem in ("돕", "곱") else "워")
    if kind == "ㄷ":
        return _with_final(stem, "ㄹ") + ("아" if _is_bright(stem) else "어")
    if kind == "ㅅ":
        return _with_final(stem, "") + ("아" if _is_bright(stem) else "어")
    if kind == "ㅎ":
        if stem in ("그렇", "이렇", "저렇", "어떻"):
            return rest + _join(initial, "ㅐ")
        return rest + _join(initial, WITH_EH[vowel])
    if kind == "러":
        return stem + "러"
    if kind == "르":
        return _with_final(rest, "ㄹ") + ("라" if _is_bright(rest) else "러")
    if kind == "ㅡ":
        return rest + _join(initial, "ㅏ" if _is_bright(rest) else "ㅓ")
    if final == "":
        if vowel in ABSORBING:
            return stem
        if vowel in CONTRACTIONS:
            return rest + _join(initial, CONTRACTIONS[vowel])
        return stem + "어"
    return stem + ("아" if _is_bright(stem) and final != "ㅆ" else "어")


def _before_eu(stem: str) -> str:
    """The shape a stem takes before endings with (으): 도우, 들으, 지으, 빨가, 먹으, 가, 살."""
    kind, final = _kind(stem), _last(stem)[2]
    if kind == "ㅂ":
        return _with_final(stem, "") + "우"
    if kind == "ㄷ":
        return _with_final(stem, "ㄹ") + "으"
    if kind == "ㅅ":
        return _with_final(stem, "") + "으"
    if kind == "ㅎ":
        return _with_final(stem, "")
    return stem if final in ("", "ㄹ") else stem + "으"


def conjugate(stem: str, ending: str) -> str:
    """Join a stem and an ending.

    Args:
        stem: A verb or adjective without 다.
        ending: The ending in the notation at the head of this module.

    Returns:
        The conjugated word.

    Raises:
        ValueError: ``stem`` is empty or does not end in a Hangul syllable.
    """
    final = _last(stem)[2]
    if ending.startswith("아/어"):
        return _infinitive(stem) + ending[3:]
    if ending.startswith("았/었"):
        past = _with_final(_infinitive(stem), "ㅆ")
        return conjugate(past, "아/어" + ending[4:]) if ending[3:4] == "어" else past + ending[3:]
    if ending.startswith("(으)"):
        shape, ending = _before_eu(stem), ending[3:]
        if ending[0] not in "ㄴㄹㅂ":
            if final == "ㄹ" and _split(ending[0])[0] in "ㄴㅅ":
                shape = _with_final(shape, "")
            return shape + ending
        return _with_final(shape, ending[0]) + ending[1:]
    if ending.startswith("ㅂ/습"):
        if final in ("", "ㄹ"):
            return _with_final(stem, "ㅂ") + ending[3:]
        return stem + ending[2:]
    if ending.startswith("ㄴ/는"):
        if final in ("", "ㄹ"):
            return _with_final(stem, "ㄴ") + ending[3:]
        return stem + ending[2:]
    if final == "ㄹ" and ending[0] in "는니":
        return _with_final(stem, "") + ending
    return stem + ending


def copula(word: str, ending: str) -> str:
    """Join a noun, 이다 and an ending: 의사예요, 학생이에요, 가수였어요, 책이다.

    Args:
        word: A noun that ends in a Hangul syllable.
        ending: The ending in the notation at the head of this module.

    Returns:
        The noun as a predicate.

    Raises:
        ValueError: ``word`` is empty or does not end in a Hangul syllable.
    """
    closed = has_final(word)
    if ending.startswith("아/어"):
        rest = ending[3:]
        if rest.startswith("요"):
            return word + ("이에요" if closed else "예요") + rest[1:]
        return word + ("이야" if closed else "야") + rest
    if ending.startswith("았/었"):
        return word + ("이었" if closed else "였") + ending[3:]
    if not closed and ending in ("다", "니"):
        return word + ending
    return word + conjugate("이", ending)

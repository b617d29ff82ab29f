"""Who is spoken of: the subject in Korean with its particles, and in English."""

from dataclasses import dataclass, replace

from transformer_lib.datasets.everyday_korean.phrasing import Person
from transformer_lib.datasets.everyday_korean.tables import KINDS, NAMES, Noun
from transformer_lib.datasets.korean_english.dice import Dice
from transformer_lib.datasets.korean_english.morphology import has_final, particle

__all__ = ["IT", "POLITE", "WE", "YOU", "Actor", "I", "draw_actor", "kin_korean", "named"]

POLITE = ("해요", "합니다")


@dataclass(frozen=True, slots=True)
class Actor:
    """A subject: "" in Korean when it is dropped.

    Attributes:
        korean: The subject without a particle.
        person: In English.
        honours: Whether one speaks of it with 시.
        word: The id of its noun, or "".
        kind: i, you, we, name, kin, elder, person, pronoun or thing.
    """

    korean: str
    person: Person
    kind: str
    honours: bool = False
    word: str = ""

    def with_particle(self, dice: Dice, level: str, topic: bool) -> str:
        """The subject with 은 or 이, 께서 for those it honours; "" when it is dropped."""
        if not self.korean:
            return ""
        if not topic and self.korean in ("저", "나", "너", "누구"):
            return {"저": "제가", "나": "내가", "너": "네가", "누구": "누가"}[self.korean]
        if self.honours and dice.chance(0.3):
            return self.korean + ("께서는" if topic else "께서")
        if level == "해" and self.kind != "thing" and dice.chance(0.12):
            if self.korean in ("나", "너"):
                return self.korean
            return self.korean if dice.chance(0.5) else particle(self.korean, "은/는")
        return particle(self.korean, "은/는" if topic else "이/가")

    def too(self) -> str:
        """The subject with 도."""
        return self.korean + "도"


I = Actor("", Person("I", "I"), "i")  # noqa: E741
YOU = Actor("", Person("you", "you"), "you")
WE = Actor("우리", Person("we", "we"), "we")
IT = Actor("", Person("it", "it"), "thing")
KOREAN_NAMES = NAMES[:20]
HOME_KIN = {
    "어머니",
    "아버지",
    "엄마",
    "아빠",
    "할머니",
    "할아버지",
    "부모님",
    "삼촌",
    "이모",
    "고모",
}
_THIRD = (
    ("그", Person("he", "he")),
    ("그녀", Person("she", "she")),
    ("그 사람", Person("that person", "they")),
    ("그들", Person("they", "they")),
)
PERSONS = (*KINDS["person"], *KINDS["job"])


def named(dice: Dice, noun: Noun, level: str) -> str:
    """A name as people say it: 지훈 씨, 지훈이, 지훈."""
    if level in POLITE and dice.chance(0.6):
        return noun.korean + " 씨"
    if level in ("해", "해요") and noun in KOREAN_NAMES and has_final(noun.korean):
        return noun.korean + "이"
    return noun.korean


def kin_korean(dice: Dice, noun: Noun, level: str) -> str:
    """A relative as people say it: 어머니, 우리 어머니, 제 여동생."""
    if not dice.chance(0.45):
        return noun.korean
    if noun.korean in HOME_KIN:
        return "우리 " + noun.korean
    return ("제 " if level in POLITE else "내 ") + noun.korean


def _kin(dice: Dice, level: str, asks: bool) -> Actor:
    noun = dice.one(KINDS["kin"])
    korean = noun.korean if asks else kin_korean(dice, noun, level)
    owner = "your" if asks else "my"
    agree = "they" if noun.korean == "부모님" else noun.owner
    honours = noun.honours and dice.chance(0.9 if level in POLITE else 0.5)
    return Actor(
        korean, Person(f"{owner} {noun.english}", _agree(agree, noun)), "kin", honours, noun.word
    )


def _agree(owner: str, noun: Noun) -> str:
    return "one" if owner == "they" and noun.korean != "부모님" else owner


def _person(dice: Dice, level: str) -> Actor:
    noun = dice.one(PERSONS)
    which = dice.weighted({"": 6.0, "그": 2.0, "저": 1.0, "이": 1.0})
    article = {"": "the", "그": "that", "저": "that", "이": "this"}[which]
    return Actor(
        f"{which} {noun.korean}".strip(),
        Person(f"{article} {noun.english}", noun.owner or "one"),
        "person",
        False,
        noun.word,
    )


def _elder(dice: Dice, level: str) -> Actor:
    noun = dice.one(KINDS["elder"])
    honours = dice.chance(0.95 if level in POLITE else 0.6)
    return Actor(noun.korean, Person(f"the {noun.english}", "one"), "elder", honours, noun.word)


_DRAWS: dict[str, dict[str, float]] = {
    "해요": {
        "drop": 30,
        "i": 18,
        "we": 5,
        "name": 16,
        "kin": 12,
        "elder": 4,
        "person": 8,
        "third": 3,
    },
    "합니다": {
        "drop": 18,
        "i": 22,
        "we": 5,
        "name": 12,
        "kin": 12,
        "elder": 6,
        "person": 12,
        "third": 5,
    },
    "해": {
        "drop": 34,
        "i": 16,
        "we": 4,
        "name": 18,
        "kin": 12,
        "elder": 2,
        "person": 5,
        "third": 4,
    },
    "한다": {
        "drop": 4,
        "i": 20,
        "we": 6,
        "name": 22,
        "kin": 12,
        "elder": 3,
        "person": 12,
        "third": 18,
    },
}


def draw_actor(dice: Dice, level: str, asks: bool = False) -> Actor:
    """Draw a subject; a dropped one is I in a statement and you in a question."""
    kind = dice.weighted(_DRAWS[level])
    if kind == "drop" or (asks and kind in ("i", "we")):
        if not asks:
            return I
        if level == "해" and dice.chance(0.3):
            return replace(YOU, korean="너")
        return replace(YOU, honours=level in POLITE and dice.chance(0.55))
    if kind == "i":
        return replace(I, korean="저" if level in POLITE else "나")
    if kind == "we":
        return replace(WE, korean="저희" if level in POLITE and dice.chance(0.25) else "우리")
    if kind == "name":
        noun = dice.one(NAMES)
        person = Person(noun.english, noun.owner)
        return Actor(named(dice, noun, level), person, "name", False, noun.word)
    if kind == "kin":
        return _kin(dice, level, asks)
    if kind == "elder":
        return _elder(dice, level)
    if kind == "person":
        return _person(dice, level)
    korean, person = dice.one(_THIRD)
    if korean in ("그", "그녀", "그들") and level != "한다" and dice.chance(0.6):
        return draw_actor(dice, level, asks)
    if korean == "그 사람":
        person = Person("that person", "one")
    return Actor(korean, person, "pronoun")

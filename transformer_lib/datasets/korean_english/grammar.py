"""Clauses, and how each language says them.

A clause holds everything that either language shows. ``korean`` and ``english`` read it; neither
adds anything of its own, so the English is settled by what stands in the Korean.
"""

from dataclasses import dataclass, field, replace

from transformer_lib.datasets.korean_english import english as en
from transformer_lib.datasets.korean_english.lexicon import Adjective, Noun, Phrase, Place, Verb
from transformer_lib.datasets.korean_english.morphology import conjugate, copula, particle

__all__ = [
    "Clause",
    "Mode",
    "NounPhrase",
    "clause_english",
    "clause_korean",
]

NATIVE = {
    1: "한",
    2: "두",
    3: "세",
    4: "네",
    5: "다섯",
    6: "여섯",
    7: "일곱",
    8: "여덟",
    9: "아홉",
    10: "열",
}
ENGLISH_NUMBERS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
]
CONTAINERS = {
    "잔": "cup",
    "그릇": "bowl",
    "조각": "piece",
    "켤레": "pair",
    "벌": "pair",
    "송이": "bunch",
}
OTHER_CONTAINERS = {"옷": "set"} | dict.fromkeys(
    ["물", "우유", "주스", "맥주", "콜라", "포도주"], "glass"
)
NOMINATIVE = {"her": "she", "his": "he", "their": "they", "my": "I", "our": "we", "your": "you"}

PRONOUNS = {
    "저": Noun("저", "I", "pronoun", "pronoun", owner="my", word="저"),
    "나": Noun("나", "I", "pronoun", "pronoun", owner="my", word="나"),
    "우리": Noun("우리", "we", "pronoun", "pronoun", owner="our", word="우리"),
    "너": Noun("너", "you", "pronoun", "pronoun", owner="your", word="너"),
    "누구": Noun("누구", "who", "pronoun", "pronoun", owner="their", word="누구"),
}
KNOWN_OBJECTS = ("잊", "기억하", "이해하", "설명하")  # their objects take "the"
# Subject forms that no rule gives.
SUBJECT_FORMS = {"저": "제가", "나": "내가", "너": "네가", "누구": "누가"}


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """A noun with what stands before it. ``owner`` is someone's noun, ``origin`` a country."""

    noun: Noun
    determiner: str = ""  # 이, 그
    adjective: Adjective | None = None
    owner: Noun | None = None
    origin: Noun | None = None
    count: int = 0
    plural: bool = False
    relative: "Clause | None" = None


@dataclass(frozen=True, slots=True)
class Mode:
    """Tense, modality, negation, mood and level of a clause."""

    tense: str = "past"  # past, present, progressive, future
    modal: str = ""  # want, can, must
    negation: str = ""  # 안, 지 않다, 못, 지 못하다
    level: str = "해요"  # 해요, 합니다, 해, 한다
    question: bool = False
    request: bool = False  # asks for something: "wash the apple"


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause. Its predicate is a verb, an adjective or a noun."""

    subject: NounPhrase
    predicate: Verb | Adjective | NounPhrase
    mode: Mode = field(default=Mode())
    object: NounPhrase | None = None
    recipient: NounPhrase | None = None
    companion: NounPhrase | None = None
    place: Place | None = None
    source: Place | None = None
    time: Phrase | None = None
    adverbial: Phrase | None = None
    frequency: Phrase | None = None
    degree: Phrase | None = None
    standard: NounPhrase | None = None
    topic: bool = True
    asked: str = ""  # subject, object, place, time


# Noun phrases


def phrase_korean(phrase: NounPhrase) -> str:
    """The noun phrase without a particle."""
    noun = phrase.noun
    parts = []
    if phrase.relative:
        parts.append(relative_korean(phrase.relative, noun))
    if phrase.determiner:
        parts.append(phrase.determiner)
    if phrase.owner:
        parts.append(
            {"저": "제", "나": "내", "너": "네"}.get(
                phrase.owner.korean, phrase.owner.korean + "의"
            )
        )
    if phrase.origin:
        parts.append(phrase.origin.korean)
    if phrase.adjective:
        parts.append(adnominal(phrase.adjective.stem))
    parts.append(noun.korean + ("들" if phrase.plural else ""))
    if phrase.count:
        parts.append(f"{NATIVE[phrase.count]} {noun.counter}")
    return " ".join(parts)


def adnominal(stem: str) -> str:
    """An adjective before its noun: 큰, 매운, 맛있는."""
    return conjugate(stem, "는" if stem[-1] in "있없" else "(으)ㄴ")


def is_plural(phrase: NounPhrase) -> bool:
    """Tell whether English takes a verb in the plural."""
    if phrase.count:
        return phrase.count > 1
    return (
        phrase.plural
        or phrase.noun.number in ("plural", "owned")
        or phrase.noun.korean == "우리"
        or phrase.noun.english in ("drums", "stairs", "fallen leaves")
    )


def phrase_english(phrase: NounPhrase, definite: bool = False, kind: bool = False) -> str:
    """The noun phrase in English.

    Args:
        phrase: What to say.
        definite: Whether a bare noun takes "the": subjects do.
        kind: Whether it stands for its whole kind: "likes apples".
    """
    noun = phrase.noun
    if noun.kind == "citizen" and phrase.origin:
        return phrase.origin.adjective
    words = [phrase.adjective.english] if phrase.adjective else []
    words += [phrase.origin.adjective] if phrase.origin else []
    name = noun.english
    many = phrase.plural or phrase.count > 1 or (kind and noun.number == "count")
    if many and noun.number in ("count", "my"):
        name = en.plural(name)
    text = " ".join([*words, name])
    if phrase.count:
        text = _counted(phrase, text)
    elif noun.number == "pronoun" or (noun.number == "name" and not phrase.determiner):
        pass
    elif phrase.owner:
        text = f"{possessive(phrase.owner)} {text}"
    elif phrase.determiner:
        many = is_plural(phrase)
        text = {"이": "these " if many else "this ", "그": "those " if many else "that "}[
            phrase.determiner
        ] + text
    elif phrase.relative:
        text = "the " + text
    elif noun.number == "my":
        text = "my " + text
    elif noun.number == "the" or (definite and not kind):
        text = "the " + text
    elif noun.number == "count" and not phrase.plural and not kind:
        text = en.article(text)
    elif phrase.plural:
        text = "the " + text
    if phrase.relative:
        text += " " + relative_english(phrase.relative, noun)
    return text


def possessive(owner: Noun) -> str:
    """Jisu's, my mother's, my."""
    if owner.number == "pronoun":
        return owner.owner
    name = phrase_english(NounPhrase(owner), definite=True)
    return name + ("'" if name.endswith("s") else "'s")


def _counted(phrase: NounPhrase, text: str) -> str:
    """Three apples, a cup of tea, two pairs of shoes, the three apples."""
    noun, count = phrase.noun, phrase.count
    number = ENGLISH_NUMBERS[count]
    if noun.number in ("mass", "plural"):
        container = OTHER_CONTAINERS.get(noun.korean, CONTAINERS[noun.counter])
        number = "a" if count == 1 else number
        text = f"{en.plural(container) if count > 1 else container} of {text}"
    determiner = {"": "", "이": "these ", "그": "those "}[phrase.determiner]
    if count == 1:
        determiner = {"": "", "이": "this ", "그": "that "}[phrase.determiner]
    return f"{determiner}{number} {text}"


# Predicates in Korean

_DECLARATIVE = {"해요": "아/어요", "합니다": "ㅂ/습니다", "해": "아/어", "한다": "다"}
_QUESTION = {"해요": "아/어요", "합니다": "ㅂ/습니까", "해": "아/어", "한다": "니"}
_PAST = {"해요": "았/었어요", "합니다": "았/었습니다", "해": "았/었어", "한다": "았/었다"}
_PAST_QUESTION = {"해요": "았/었어요", "합니다": "았/었습니까", "해": "았/었어", "한다": "았/었니"}
_FUTURE = {"해요": "거예요", "합니다": "겁니다", "해": "거야", "한다": "것이다"}
_FUTURE_QUESTION = {"해요": "거예요", "합니다": "겁니까", "해": "거야", "한다": "거니"}


def _ending(mode: Mode, is_verb: bool) -> str:
    if mode.tense == "past":
        return (_PAST_QUESTION if mode.question else _PAST)[mode.level]
    if mode.level == "한다" and is_verb and not mode.question:
        return "ㄴ/는다"
    return (_QUESTION if mode.question else _DECLARATIVE)[mode.level]


def _chain(clause: Clause) -> tuple[str, str, bool]:
    """The predicate up to its last stem: words before it, the stem, and whether it is a verb."""
    predicate, mode = clause.predicate, clause.mode
    assert not isinstance(predicate, NounPhrase)
    before, stem = "", predicate.stem
    is_verb = isinstance(predicate, Verb) and "feels" not in predicate.flags
    if mode.modal == "want":
        first = (
            clause.subject.noun.owner in ("my", "our", "your")
            and clause.subject.noun.number == "pronoun"
        )
        before, stem, is_verb = f"{stem}고 ", "싶", False
        if not first:
            before, stem, is_verb = before + "싶어 ", "하", True
    elif mode.modal == "can":
        before, stem, is_verb = (
            conjugate(stem, "(으)ㄹ") + " 수 ",
            "없" if mode.negation else "있",
            False,
        )
    elif mode.modal == "must":
        before, stem, is_verb = conjugate(stem, "아/어야") + " ", "하", True
    elif mode.tense == "progressive":
        before, stem, is_verb = f"{stem}고 ", "있", False
    if mode.modal == "can":
        return before, stem, is_verb
    if mode.negation in ("안", "못") and not before:
        return f"{mode.negation} ", stem, is_verb
    if mode.negation in ("안", "지 않다"):
        return f"{before}{stem}지 ", "않", is_verb
    if mode.negation in ("못", "지 못하다"):
        return f"{before}{stem}지 ", "못하", is_verb
    return before, stem, is_verb


def predicate_korean(clause: Clause) -> str:
    """The predicate with tense, modality, negation and level."""
    mode = clause.mode
    if isinstance(clause.predicate, NounPhrase):
        noun = phrase_korean(clause.predicate)
        if mode.negation:
            stem, noun = "아니", particle(noun, "이/가")
            if mode.tense == "present" and mode.level == "해요":
                return f"{noun} 아니에요"
            return f"{noun} {conjugate(stem, _ending(mode, False))}"
        return copula(noun, _ending(mode, False))
    before, stem, is_verb = _chain(clause)
    if mode.tense == "future":
        future = (_FUTURE_QUESTION if mode.question else _FUTURE)[mode.level]
        return f"{before}{conjugate(stem, '(으)ㄹ')} {future}"
    return before + conjugate(stem, _ending(mode, is_verb))


def subject_korean(clause: Clause, title: bool = False) -> str:
    """The subject with its particle."""
    phrase = clause.subject
    korean = phrase_korean(phrase)
    if title:
        korean += " 씨"
    if not clause.topic and korean in SUBJECT_FORMS:
        return SUBJECT_FORMS[korean]
    return particle(korean, "은/는" if clause.topic else "이/가")


def place_korean(place: Place, verb: Verb | Adjective) -> str:
    """The place with the particle its verb asks for."""
    flags = verb.flags if isinstance(verb, Verb) else frozenset()
    if "into" in flags:
        return particle(place.noun.korean, "으로/로")
    if "around" in flags:
        return particle(place.noun.korean, "을/를")
    return place.noun.korean + ("에" if flags & {"to", "static", "at"} else "에서")


def complements_korean(clause: Clause) -> list[str]:
    """Everything between subject and predicate."""
    parts = []
    predicate = clause.predicate
    if clause.asked == "time":
        parts.append("언제")
    elif clause.time:
        parts.append(clause.time.korean)
    if clause.frequency:
        parts.append(clause.frequency.korean)
    if clause.companion:
        parts.append(particle(phrase_korean(clause.companion), "과/와") + " 함께")
    flags = predicate.flags if isinstance(predicate, Verb) else frozenset()
    goes = bool(flags & {"to", "into", "static"}) and not clause.source
    if clause.adverbial and goes:
        parts.append(clause.adverbial.korean)
    if clause.source:
        parts.append(clause.source.noun.korean + "에서")
    if clause.asked == "place" and isinstance(predicate, Verb):
        parts.append(
            "어디에"
            if predicate.flags & {"to", "static", "at"}
            else "어디로"
            if "into" in predicate.flags
            else "어디를"
            if "around" in predicate.flags
            else "어디에서"
        )
    elif clause.place and not isinstance(predicate, NounPhrase):
        korean = place_korean(clause.place, predicate)
        parts.append(clause.place.noun.korean + "까지" if clause.source else korean)
    if clause.recipient:
        parts.append(phrase_korean(clause.recipient) + "에게")
    if clause.asked == "object":
        parts.append("무엇을")
    elif clause.object:
        parts.append(particle(phrase_korean(clause.object), "을/를"))
    if clause.adverbial and not goes:
        parts.append(clause.adverbial.korean)
    if clause.standard:
        parts.append(phrase_korean(clause.standard) + "보다 더")
    if clause.degree:
        parts.append(clause.degree.korean)
    return parts


def clause_korean(clause: Clause, title: bool = False) -> str:
    """The whole clause, without final punctuation."""
    return " ".join(
        [subject_korean(clause, title), *complements_korean(clause), predicate_korean(clause)]
    )


def relative_korean(clause: Clause, head: Noun) -> str:
    """The clause before the noun it describes: 어제 지수가 산, 공원에서 달리는."""
    parts = complements_korean(
        replace(
            clause, object=None if clause.object and clause.object.noun is head else clause.object
        )
    )
    if clause.subject.noun is not head:
        subject = subject_korean(replace(clause, topic=False))
        parts = [subject, *parts]
    ending = {"past": "(으)ㄴ", "progressive": "는", "past progressive": "는", "future": "(으)ㄹ"}[
        clause.mode.tense
    ]
    assert isinstance(clause.predicate, Verb)
    if clause.predicate.english == "wear":
        ending = "(으)ㄴ"  # who has put it on: 모자를 쓴 아이
    return " ".join([*parts, conjugate(clause.predicate.stem, ending)])


# Clauses in English


def be(subject: NounPhrase, past: bool) -> str:
    """The form of be that agrees."""
    if subject.noun.number == "pronoun":
        word = subject.noun.english
        if word == "I":
            return "was" if past else "am"
        if word in ("we", "you"):
            return "were" if past else "are"
    if is_plural(subject):
        return "were" if past else "are"
    return "was" if past else "is"


def _takes_s(subject: NounPhrase) -> bool:
    return be(subject, past=False) == "is"


def verb_group(clause: Clause) -> tuple[str, str]:
    """The auxiliary ("" when there is none) and the rest of the verb."""
    subject, predicate, mode = clause.subject, clause.predicate, clause.mode
    past, s = mode.tense == "past", _takes_s(subject)
    if isinstance(predicate, Verb):
        base = predicate.english
    elif isinstance(predicate, Adjective):
        base = f"be {adjective_english(clause, predicate)}"
    else:
        base = f"be {phrase_english(predicate)}"
    if mode.negation in ("못", "지 못하다"):
        return ("could" if past else "cannot"), ("not " if past else "") + base
    if mode.modal == "can":
        if mode.negation:
            return ("could" if past else "cannot"), ("not " if past else "") + base
        return ("could" if past else "can"), base
    if mode.modal:
        base = {"want": "want to ", "must": "have to "}[mode.modal] + base
    denial = "not " if mode.negation else ""
    if mode.tense == "future":
        return "will", denial + base
    if mode.tense == "progressive":
        return be(subject, past=False), denial + en.gerund(base)
    if mode.tense == "past progressive":
        return be(subject, past=True), denial + en.gerund(base)
    if base.startswith("be "):
        return be(subject, past), denial + base[3:]
    if mode.negation or (mode.question and clause.asked != "subject"):
        return ("did" if past else "does" if s else "do"), denial + base
    return "", en.past(base) if past else en.third_person(base) if s else base


def adjective_english(clause: Clause, adjective: Adjective) -> str:
    """The adjective with its degree or its standard."""
    if clause.standard:
        standard = phrase_english(clause.standard, definite=True)
        return f"{en.comparative(adjective.english)} than {standard}"
    return f"{clause.degree.english} {adjective.english}" if clause.degree else adjective.english


def place_english(place: Place, verb: Verb | Adjective | NounPhrase) -> str:
    """At the place, to it, from it or around it."""
    for preposition in ("from", "around"):
        if isinstance(verb, Verb) and preposition in verb.flags:
            return f"{preposition} {_without_preposition(place)}"
    return place.to if isinstance(verb, Verb) and verb.flags & {"to", "into"} else place.at


def complements_english(clause: Clause, with_object: bool = True) -> list[str]:
    """Everything after the verb."""
    parts = []
    predicate = clause.predicate
    if clause.object and with_object:
        parts.append(object_english(clause))
    if clause.recipient:
        parts.append(f"to {phrase_english(clause.recipient, definite=True)}")
    if clause.source and clause.place:
        parts.append(f"from {_without_preposition(clause.source)} {clause.place.to}")
    goes = isinstance(predicate, Verb) and bool(predicate.flags & {"to", "into"})
    place = [place_english(clause.place, predicate)] if clause.place and not clause.source else []
    adverbial = [clause.adverbial.english] if clause.adverbial else []
    parts += place + adverbial if goes else adverbial + place
    if clause.companion:
        parts.append(f"with {phrase_english(clause.companion, definite=True)}")
    if clause.time:
        parts.append(clause.time.english)
    return parts


def _without_preposition(place: Place) -> str:
    return place.at.split(" ", 1)[1]


def object_english(clause: Clause) -> str:
    """The object; a body part is the subject's own."""
    phrase, predicate = clause.object, clause.predicate
    assert phrase is not None
    assert isinstance(predicate, Verb)
    if phrase.noun.kind in ("body", "head") and not phrase.owner:
        several = clause.subject.plural or clause.subject.count > 1
        owner = "their" if several else clause.subject.noun.owner
        many = phrase.noun.number == "single" and is_plural(clause.subject)
        return f"{owner} {en.plural(phrase.noun.english) if many else phrase.noun.english}"
    known = clause.mode.request or predicate.stem in KNOWN_OBJECTS
    return phrase_english(phrase, definite=known, kind="likes" in predicate.flags)


def clause_english(clause: Clause) -> str:
    """The whole clause, without capital and full stop."""
    subject = phrase_english(clause.subject, definite=True)
    auxiliary, verb = verb_group(clause)
    frequency = [clause.frequency.english] if clause.frequency else []
    rest = complements_english(clause)
    if not clause.mode.question or clause.asked == "subject":
        start = [subject, *([auxiliary] if auxiliary else [])]
        return " ".join([*start, *frequency, verb, *rest])
    asked = {"": [], "object": ["what"], "place": ["where"], "time": ["when"]}[clause.asked]
    return " ".join([*asked, auxiliary, subject, *frequency, verb, *rest])


def relative_english(clause: Clause, head: Noun) -> str:
    """Who is running in the park; that Jisu bought yesterday."""
    person = head.kind in ("kin", "name", "worker", "child", "adult")
    if clause.subject.noun is head:
        auxiliary, verb = verb_group(clause)
        verb = f"{auxiliary} {verb}" if auxiliary else verb
        return " ".join(["who" if person else "that", verb, *complements_english(clause)])
    auxiliary, verb = verb_group(clause)
    verb = f"{auxiliary} {verb}" if auxiliary else verb
    subject = phrase_english(clause.subject, definite=True)
    rest = complements_english(clause, with_object=False)
    return " ".join(["that", subject, verb, *rest])

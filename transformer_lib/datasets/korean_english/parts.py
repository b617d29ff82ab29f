"""Parts of sentences: subjects, objects, and clauses of a verb with some of what it may take."""

from collections.abc import Sequence
from dataclasses import replace

from transformer_lib.datasets.korean_english import grammar as g
from transformer_lib.datasets.korean_english import lexicon as lex
from transformer_lib.datasets.korean_english.content import Content, Sentence, finish
from transformer_lib.datasets.korean_english.dice import Dice
from transformer_lib.datasets.korean_english.grammar import Clause, Mode, NounPhrase
from transformer_lib.datasets.korean_english.lexicon import Adjective, Noun, Phrase, Place, Verb

LEVELS = {"해요": 5.0, "합니다": 2.0, "해": 1.5, "한다": 1.5}


COUNTS = (1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10)


DEGREES = [
    Phrase("아주", "very"),
    Phrase("매우", "very"),
    Phrase("정말", "really"),
    Phrase("너무", "too"),
    Phrase("조금", "a little"),
]


FREQUENCIES = [
    Phrase("항상", "always"),
    Phrase("자주", "often"),
    Phrase("가끔", "sometimes"),
    Phrase("보통", "usually"),
]


TENSE_LETTERS = {"past": "p", "future": "f", "present": "h", "progressive": "n"}


TIMES = {
    tense: [time for time in lex.TIMES if letter in time.tenses]
    for tense, letter in TENSE_LETTERS.items()
}


NAMES = [noun for noun in lex.NOUNS if noun.kind == "name"]


KIN = [noun for noun in lex.NOUNS if noun.kind == "kin"]


WORKERS = [noun for noun in lex.NOUNS if noun.kind == "worker"]


PERSONS = ("kin", "name", "worker", "child", "adult")


ANIMALS = ("pet", "livestock", "beast", "bird", "insect", "swimmer")


CAN_BE_MANY = ("worker", "child", "adult", *ANIMALS)


ADJECTIVES_OF: dict[str, list[Adjective]] = {}


for _adjective in lex.ADJECTIVES:
    for _noun in _adjective.nouns:
        ADJECTIVES_OF.setdefault(_noun.word, []).append(_adjective)


ORDINARY = [verb for verb in lex.VERBS if "feels" not in verb.flags]


TRANSITIVE = [verb for verb in ORDINARY if verb.objects]


FEELINGS = ("바쁘다", "피곤하다", "행복하다", "슬프다", "배고프다", "외롭다")


def adjective_for(dice: Dice, noun: Noun) -> Adjective | None:
    """Draw an adjective that fits the noun, if any does."""
    choices = [a for a in ADJECTIVES_OF.get(noun.word, ()) if a.word not in FEELINGS]
    return dice.one(choices) if choices else None


def _pronoun(dice: Dice, level: str, question: bool) -> Noun | None:
    polite = level in ("해요", "합니다")
    if question:
        return None if polite else g.PRONOUNS["너"]
    return g.PRONOUNS[dice.weighted({"저" if polite else "나": 3.0, "우리": 1.0})]


def draw_subject(
    dice: Dice, nouns: Sequence[Noun], level: str, question: bool = False
) -> NounPhrase:
    """Who or what does it: a pronoun, a name, or a noun with something before it."""
    people = nouns is lex.PEOPLE or any(noun.kind == "name" for noun in nouns)
    if people and dice.chance(0.15):
        pronoun = _pronoun(dice, level, question)
        if pronoun:
            return NounPhrase(pronoun)
    if people and dice.chance(0.5):
        return NounPhrase(dice.one(NAMES))
    return draw_described(dice, dice.one(nouns), plain=0.5, count=0.12)


def draw_described(
    dice: Dice, noun: Noun, plain: float = 0.6, count: float = 0.3, adjective: float = 0.4
) -> NounPhrase:
    """A noun, bare or with an adjective, a determiner, a number."""
    if noun.number == "owned":
        return NounPhrase(noun, owner=dice.one(dice.one((NAMES, KIN, WORKERS))))
    if noun.number in ("name", "my", "the", "single") or noun.kind in ("body", "head"):
        return NounPhrase(noun)
    if dice.chance(plain):
        return NounPhrase(noun)
    phrase = NounPhrase(noun)
    kind = dice.weighted(
        {"adjective": adjective, "determiner": 0.3, "count": count, "plural": 0.15}
    )
    if kind == "adjective":
        phrase = replace(phrase, adjective=adjective_for(dice, noun))
        if dice.chance(0.15):
            phrase = replace(phrase, determiner=dice.one(("이", "그")))
    elif kind == "determiner":
        phrase = replace(phrase, determiner=dice.one(("이", "그")))
    elif kind == "count" and noun.counter:
        phrase = replace(phrase, count=dice.one(COUNTS))
        if noun.kind in PERSONS and phrase.count == 1:
            phrase = replace(phrase, count=2)
        if dice.chance(0.2):
            phrase = replace(phrase, adjective=adjective_for(dice, noun))
    elif noun.kind in CAN_BE_MANY:
        phrase = replace(phrase, plural=True)
    return phrase


# Deeds of a moment, and what takes months or years.
BRIEF = frozenset(
    [
        "먹",
        "마시",
        "씻",
        "깎",
        "썰",
        "까",
        "줍",
        "벗",
        "열",
        "닫",
        "닦",
        "찢",
        "감",
        "뜨",
        "비비",
        "만지",
        "가리",
        "주무르",
        "밟",
        "안",
        "부르",
        "앉",
        "걷",
        "건너",
        "달리",
        "뛰어가",
        "걸어가",
        "울",
        "웃",
        "자",
        "쉬",
        "날",
        "헤엄치",
        "멈추",
        "지나가",
        "듣",
        "입",
        "신",
        "쓸",
        "치우",
        "굽",
        "삶",
        "끓이",
        "기다리",
        "쫓",
        "식",
        "녹",
        "숨",
        "사과하",
        "춤추",
        "노래하",
        "산책하",
        "따",
        "요리하",
        "주문하",
        "찍",
        "켜",
        "넘어지",
    ]
)
LENGTHY = frozenset(["살", "기르", "이사하", "배우"])
LONG_TIMES = frozenset(
    [
        "지난주에",
        "지난달에",
        "작년에",
        "지난 여름에",
        "다음 주에",
        "다음 달에",
        "내년에",
        "여름마다",
    ]
)
SHORT_TIMES = ("시에", "요일에", "방금", "한 시간 전에", "점심시간에")
# Nobody says beforehand that these will happen.
MISHAPS = ("잊", "잃어버리", "다치", "넘어지", "썩", "무너지", "발견하", "찾")
USED_UP = frozenset(["버리", "찢", "사", "팔", "먹", "마시", "깎", "썰", "까"])


def times(verb: Verb, tense: str) -> list[Phrase]:
    """The times at which this may happen."""
    found = TIMES[tense]
    if verb.stem in BRIEF:
        return [time for time in found if time.korean not in LONG_TIMES]
    if verb.stem in LENGTHY or verb.english == "spend":
        return [time for time in found if not time.korean.endswith(SHORT_TIMES)]
    return found


# 너무 is said of what can be too much.
EXCESSIVE = frozenset(
    [
        "비싸",
        "크",
        "작",
        "무겁",
        "느리",
        "맵",
        "짜",
        "싱겁",
        "시",
        "뜨겁",
        "차갑",
        "딱딱하",
        "지루하",
        "어렵",
        "시끄럽",
        "어둡",
        "좁",
        "길",
        "짧",
        "춥",
        "덥",
        "바쁘",
        "피곤하",
    ]
)


def draw_degree(dice: Dice, adjective: Adjective) -> Phrase:
    """Very, really, a little; too, of what can be too much."""
    choices = [d for d in DEGREES if d.korean != "너무" or adjective.stem in EXCESSIVE]
    return dice.one(choices)


def _carries(place: Place, adverbial: Phrase) -> bool:
    """Tell whether this means of transport goes to the place."""
    means = adverbial.korean
    if means not in ("버스로", "기차로", "지하철로", "비행기로", "택시로", "자전거로"):
        return True
    name, group = place.noun.korean, place.group
    if means == "비행기로":
        return group in ("city", "country")
    if means in ("기차로", "버스로") and name in ("서울", "부산", "경주", "시골"):
        return True
    return means != "기차로" and (
        name == "집"
        or (
            group in ("school", "shop", "park", "work", "show", "station", "eatery")
            and name not in ("교실", "운동장")
        )
    )


def is_speaker(phrase: NounPhrase) -> bool:
    """Tell whether it is I or we, or kin of mine: then 어머니 is my mother."""
    return phrase.noun.owner in ("my", "our") or phrase.noun.number == "my"


def own(dice: Dice, phrase: NounPhrase, subject: NounPhrase) -> NounPhrase:
    """Keep kin away from third persons, whose own kin they would be."""
    owner = phrase.owner
    if phrase.noun.number == "my" and not is_speaker(subject):
        return draw_name(dice, subject)
    if owner and (owner.word == subject.noun.word or owner.number == "my"):
        return replace(phrase, owner=draw_name(dice, subject).noun)
    return phrase


def draw_name(dice: Dice, *taken: NounPhrase | None) -> NounPhrase:
    """Someone else, by name."""
    words = {phrase.noun.word for phrase in taken if phrase}
    return NounPhrase(dice.one([noun for noun in NAMES if noun.word not in words]))


def without_count(phrase: NounPhrase | None) -> NounPhrase | None:
    """The noun phrase without its number: "did not buy two" would be ambiguous."""
    return replace(phrase, count=0) if phrase else None


UNCOUNTED = ("입", "신", "쓰", "벗", "잃어버리", "찾", "줍", "발견하", "타")  # one thing at a time
COOKED = ("끓이", "요리하", "삶", "만들", "굽")
TEMPERATURES = ("뜨겁다", "따뜻하다", "차갑다")


def draw_object(dice: Dice, verb: Verb) -> NounPhrase:
    """Draw an object of the verb."""
    noun = dice.one(verb.objects)
    if noun.kind in ("idea",) and noun.number != "owned" and dice.chance(0.35):
        return NounPhrase(noun, owner=dice.one(dice.one((NAMES, KIN, WORKERS))))
    if noun.sense == ("사과", "apology") and dice.chance(0.5):
        return NounPhrase(noun, owner=dice.one(NAMES))
    if "likes" in verb.flags:
        phrase = draw_described(dice, noun, plain=0.75, count=0.0, adjective=1.0)
        return replace(phrase, determiner="", plural=False)
    if noun.kind == "house" or noun.kind == "city":
        return NounPhrase(noun)
    phrase = draw_described(dice, noun)
    if verb.stem in UNCOUNTED:
        phrase = replace(phrase, count=0)
    if verb.stem in COOKED and phrase.adjective and phrase.adjective.word in TEMPERATURES:
        phrase = replace(phrase, adjective=None)
    return replace(phrase, count=0) if verb.stem == "끓이" else phrase


def draw_other(dice: Dice, *taken: NounPhrase | None) -> NounPhrase:
    """Someone else."""
    words = {phrase.noun.word for phrase in taken if phrase}
    if taken and taken[0] and not is_speaker(taken[0]):
        return draw_name(dice, *taken)
    while True:
        noun = dice.one(dice.one((NAMES, NAMES, KIN)))
        if noun.word not in words:
            return NounPhrase(noun)


def draw_tense(dice: Dice, verb: Verb) -> str:
    """Draw a tense that the verb can have."""
    if verb.stem in MISHAPS:
        return "past"
    if "once" in verb.flags:
        return dice.weighted({"past": 7.0, "future": 3.0})
    if "state" in verb.flags:
        return dice.weighted({"present": 7.0, "past": 3.0})
    weights = {"past": 4.5, "present": 1.5, "future": 2.5}
    if not verb.flags & {"plain", "static"}:
        weights["progressive"] = 1.7
    return dice.weighted(weights)


def draw_negation(dice: Dice, verb: Verb, tense: str) -> str:
    """Draw a way to deny the verb."""
    choices = ["지 않다", "지 않다"]
    if "short" in verb.flags:
        choices += ["안", "안"]
    if "deed" in verb.flags and tense in ("past", "present"):
        choices += ["지 못하다"] + (["못"] if "short" in verb.flags else [])
    return dice.one(choices)


def draw_clause(
    dice: Dice,
    verb: Verb,
    level: str,
    tense: str = "",
    subject: NounPhrase | None = None,
    question: bool = False,
    richness: float = 1.0,
) -> Clause:
    """A clause of this verb, with some of what it may take."""
    tense = tense or draw_tense(dice, verb)
    subject = subject or draw_subject(dice, verb.subjects, level, question)
    clause = Clause(subject, verb, Mode(tense, level=level, question=question))
    if verb.objects:
        clause = replace(clause, object=draw_object(dice, verb))
        if clause.object and clause.object.noun.word == subject.noun.word:
            return draw_clause(dice, verb, level, tense, None, question, richness)
        assert clause.object
        thing = own(dice, clause.object, subject)
        if tense == "present" and verb.stem in USED_UP:
            thing = replace(thing, determiner="", count=0)
        clause = replace(clause, object=thing)
    if "gives" in verb.flags:
        clause = replace(clause, recipient=draw_other(dice, subject))
    if verb.places and dice.chance(0.45 * richness if verb.objects else 0.75):
        clause = replace(clause, place=dice.one(verb.places))
    if not clause.place and verb.flags & {"to", "into", "static"}:
        clause = replace(clause, place=dice.one(verb.places))
    if "state" not in verb.flags and dice.chance(0.55 * richness):
        clause = replace(clause, time=dice.one(times(verb, tense)))
    elif tense == "present" and "state" not in verb.flags and dice.chance(0.5):
        clause = replace(clause, frequency=dice.one(FREQUENCIES))
    if verb.adverbials and dice.chance(0.3 * richness):
        clause = replace(clause, adverbial=dice.one(verb.adverbials))
    goes = verb.flags & {"to", "into", "static"}
    if goes and clause.place and clause.adverbial and not _carries(clause.place, clause.adverbial):
        clause = replace(clause, adverbial=None)
    person = subject.noun.kind in PERSONS or subject.noun.number == "pronoun"
    social = "joint" in verb.flags and person and not clause.recipient
    alone = clause.adverbial and clause.adverbial.korean == "혼자"
    companion_fits = clause.object is None or clause.object.noun.kind not in (
        *PERSONS,
        "body",
        "head",
    )
    if social and not alone and companion_fits and dice.chance(0.13 * richness):
        clause = replace(clause, companion=draw_other(dice, subject, clause.object))
    if subject.noun.kind not in ("kin", "name") and subject.noun.number != "pronoun":
        clause = replace(clause, topic=dice.chance(0.5))
    else:
        clause = replace(clause, topic=dice.chance(0.85))
    return clause


def vary(dice: Dice, clause: Clause) -> Clause:
    """Sometimes deny the clause, or put want, can or must to it."""
    verb, mode = clause.predicate, clause.mode
    assert isinstance(verb, Verb)
    person = clause.subject.noun.kind in PERSONS or clause.subject.noun.number == "pronoun"
    if mode.tense in ("past", "present") and person and "deed" in verb.flags and dice.chance(0.18):
        modal = dice.weighted({"want": 1.0, "can": 1.0, "must": 1.0})
        deny = modal == "can" and not mode.question and dice.chance(0.4)
        clause = replace(
            clause, mode=replace(mode, modal=modal, negation="없다" if deny else ""), frequency=None
        )
        if deny:
            clause = denied(clause)
        if mode.tense == "present":
            future = dice.chance(0.5) and modal != "can"
            clause = replace(clause, time=dice.one(times(verb, "future")) if future else None)
        return clause
    counted = clause.object and clause.object.noun.sense and clause.object.count
    if not mode.question and not counted and dice.chance(0.15):
        negation = draw_negation(dice, verb, mode.tense)
        clause = replace(
            clause, mode=replace(mode, negation=negation), frequency=None, adverbial=None
        )
        return denied(clause)
    return clause


def denied(clause: Clause) -> Clause:
    """A clause with a negative, without what would make it ambiguous: numbers and "every day"."""
    time = None if clause.time and clause.time.tenses == "h" else clause.time
    thing = clause.object
    if thing and not thing.noun.sense:
        thing = without_count(thing)
    return replace(clause, time=time, object=thing, subject=replace(clause.subject, count=0))


def say(dice: Dice, clause: Clause) -> Sentence:
    """Make a sentence of one clause; a polite one sometimes gives a name its title."""
    polite = clause.mode.level in ("해요", "합니다")
    title = clause.subject.noun.kind == "name" and polite and dice.chance(0.3)
    return finish(
        g.clause_korean(clause, title),
        g.clause_english(clause),
        clause.mode.question,
        Content().clause(clause),
    )


ATTRIBUTIVE = ("낡다", "새롭다")  # only before a noun


PREDICATIVE = [adjective for adjective in lex.ADJECTIVES if adjective.word not in ATTRIBUTIVE]


DEEDS = [verb for verb in ORDINARY if "deed" in verb.flags]


PASSING = ("body", "head", "offer")  # what stands alone better than in longer sentences


PEOPLES_DEEDS = [
    verb
    for verb in DEEDS
    if any(noun.kind == "name" for noun in verb.subjects)
    and not any(noun.kind in PASSING for noun in verb.objects)
]


VERB_OF = {verb.word: verb for verb in reversed(lex.VERBS)}


INDIA = next(noun for noun in lex.COUNTRIES if noun.sense)

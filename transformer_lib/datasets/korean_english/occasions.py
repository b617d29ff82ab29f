"""Weather, pain and apologies, and what follows from weather and feelings."""

from dataclasses import replace

from transformer_lib.datasets.korean_english import english as en
from transformer_lib.datasets.korean_english import grammar as g
from transformer_lib.datasets.korean_english import lexicon as lex
from transformer_lib.datasets.korean_english.content import Content, Sentence, finish
from transformer_lib.datasets.korean_english.dice import Dice
from transformer_lib.datasets.korean_english.grammar import Clause, Mode, NounPhrase
from transformer_lib.datasets.korean_english.lexicon import Noun, Verb
from transformer_lib.datasets.korean_english.morphology import conjugate, particle
from transformer_lib.datasets.korean_english.parts import (
    DEGREES,
    LEVELS,
    NAMES,
    PEOPLES_DEEDS,
    TIMES,
    VERB_OF,
    draw_clause,
    draw_other,
    draw_subject,
    say,
    vary,
)

_WEATHER = {
    "비": ("rain", Noun("비", "rain", "weather", "mass", word="비")),
    "눈": ("snow", Noun("눈", "snow", "weather", "mass", word="눈:snow", sense=("눈", "snow"))),
}


_WITHOUT_SNOW = ("태국", "베트남", "해변", "섬")


_WEATHER_PLACES = [p for p in lex.PLACES if p.group in ("city", "wild", "farm", "country")]


def weather_report(dice: Dice) -> Sentence:
    """It snowed in Seoul yesterday."""
    korean_noun = dice.one(("비", "눈"))
    verb_english, noun = _WEATHER[korean_noun]
    falls = dice.one(("오", "내리"))
    level = dice.weighted(LEVELS)
    tense = dice.weighted({"past": 4.0, "present": 1.0, "progressive": 2.0, "future": 3.0})
    question = dice.chance(0.2)
    negation = "" if question or dice.chance(0.8) else dice.one(("안", "지 않다"))
    verb = Verb(falls, verb_english, falls + "다", (), (), (), (), frozenset())
    it = NounPhrase(Noun("", "it", "pronoun", "pronoun"))
    clause = Clause(it, verb, Mode(tense, "", negation, level, question))
    time = dice.one(TIMES[tense]) if dice.chance(0.7) else None
    place = dice.one(_WEATHER_PLACES) if dice.chance(0.75) else None
    if place and korean_noun == "눈" and place.noun.korean in _WITHOUT_SNOW:
        place = None
    much = dice.chance(0.3) and not negation
    if negation and time and time.tenses == "h":
        time = None
    if not time and not place:
        return weather_report(dice)
    start = [*([time.korean] if time else []), *([place.noun.korean + "에"] if place else [])]
    korean = " ".join(
        [
            *start,
            particle(korean_noun, "이/가"),
            *(["많이"] if much else []),
            g.predicate_korean(clause),
        ]
    )
    english = g.clause_english(clause)
    rest = [*(["a lot"] if much else []), *([place.at] if place else [])]
    english = " ".join([english, *rest, *([time.english] if time else [])])
    content = Content()
    content.noun(noun, verb.word)
    if place:
        content.noun(place.noun)
    content.adverb(time)
    return finish(korean, english, question, content)


_FEEL = [verb for verb in lex.VERBS if "feels" in verb.flags]


def pain(dice: Dice) -> Sentence:
    """Jisu's stomach hurts."""
    verb, level, question = dice.one(_FEEL), dice.weighted(LEVELS), dice.chance(0.15)
    part = dice.one(verb.subjects)
    owner = draw_subject(dice, lex.PEOPLE, level, question)
    while g.is_plural(owner):
        owner = draw_subject(dice, lex.PEOPLE, level, question)
    tense = dice.weighted({"present": 6.0, "past": 4.0})
    mode = Mode(tense, level=level, question=question)
    if not question and dice.chance(0.15):
        mode = replace(mode, negation=dice.one(("안", "지 않다")))
    time = dice.one(TIMES["past"]) if tense == "past" and dice.chance(0.6) else None
    degree = dice.chance(0.3) and not mode.negation
    person = owner.noun
    phrase = NounPhrase(part)
    clause = Clause(phrase, verb, mode)
    korean = " ".join(
        [
            g.subject_korean(Clause(owner, verb)),
            *([time.korean] if time else []),
            particle(part.korean, "이/가"),
            *(["많이"] if degree else []),
            g.predicate_korean(clause),
        ]
    )
    whose = person.owner if person.number == "pronoun" else None
    if not whose:
        name = g.phrase_english(owner, definite=True)
        whose = name + ("'" if name.endswith("s") else "'s")
    auxiliary, said = g.verb_group(clause)
    own = f"{whose} {part.english}"
    order = [auxiliary, own, said] if question else [own, auxiliary, said]
    rest = [*(["a lot"] if degree else []), *([time.english] if time else [])]
    english = " ".join([*filter(None, order), *rest])
    content = Content()
    content.phrase(owner)
    content.noun(part, verb.word)
    content.adverb(time)
    return finish(korean, english, question, content)


def apology(dice: Dice) -> Sentence:
    """Jisu apologized to Minsu yesterday."""
    level, question = dice.weighted(LEVELS), dice.chance(0.2)
    verb = Verb("사과하", "apologize", "사과하다", (), (), (), tuple(lex.PEOPLE), frozenset())
    verb = replace(
        verb,
        flags=frozenset({"deed"}),
        places=tuple(p for p in lex.PLACES if p.group in ("home", "school", "work")),
    )
    clause = draw_clause(dice, verb, level, question=question)
    clause = replace(
        clause, recipient=draw_other(dice, clause.subject), companion=None, frequency=None
    )
    sentence = say(dice, vary(dice, clause))
    senses = (*sentence.senses, ("사과", "apology"))
    words = tuple("사과:apology" if word == "사과하다" else word for word in sentence.words)
    pairs = tuple((a, b) for a, b in sentence.pairs if "사과하다" not in (a, b))
    return sentence._replace(senses=senses, words=words, pairs=pairs)


_CAUSES = {
    "피곤하다": ("쉬다", "자다", "돌아오다"),
    "배고프다": ("먹다", "주문하다", "요리하다"),
    "바쁘다": ("만나다", "쉬다", "가다", "보다:watch"),
    "행복하다": ("웃다", "노래하다", "춤추다"),
    "슬프다": ("울다:cry", "걷다:walk", "마시다"),
    "외롭다": ("만나다", "산책하다", "울다:cry"),
}


_FEELING = {adjective.word: adjective for adjective in lex.ADJECTIVES}


def consequence(dice: Dice) -> Sentence:
    """Jisu was tired, so she slept at home. It snowed, so Minsu could not go to school."""
    level = dice.weighted(LEVELS)
    if dice.chance(0.5):
        weather = dice.one(("비", "눈"))
        verb_english, noun = _WEATHER[weather]
        verb = dice.one(
            (
                VERB_OF["가다"],
                VERB_OF["산책하다"],
                VERB_OF["하다"],
                VERB_OF["오다"],
                VERB_OF["달리다"],
            )
        )
        subject = draw_subject(dice, lex.PEOPLE, level)
        clause = draw_clause(dice, verb, level, "past", subject=subject, richness=0.4)
        negation = dice.one(("못", "지 못하다") if "short" in verb.flags else ("지 못하다",))
        clause = replace(
            clause,
            mode=replace(clause.mode, negation=negation),
            adverbial=None,
            time=None,
            topic=True,
        )
        much = dice.chance(0.5)
        start = particle(weather, "이/가") + (" 많이" if much else "") + " 와서"
        korean = f"{start} {g.clause_korean(clause)}"
        said = en.past(verb_english) + (" a lot" if much else "")
        content = Content()
        content.noun(noun, "오다")
        content.clause(clause)
        return finish(korean, f"it {said}, so {g.clause_english(clause)}", False, content)
    feeling = dice.one(list(_CAUSES))
    verb = VERB_OF[dice.one(_CAUSES[feeling])]
    subject = NounPhrase(dice.one(NAMES)) if dice.chance(0.7) else draw_subject(dice, NAMES, level)
    tense = "past"
    clause = draw_clause(dice, verb, level, tense, subject=subject, richness=0.6)
    if feeling == "외롭다" and clause.object:
        clause = replace(clause, object=draw_other(dice, subject))
    if feeling == "바쁘다":
        negation = dice.one(("못", "지 못하다"))
        clause = replace(clause, mode=replace(clause.mode, negation=negation), adverbial=None)
    clause = replace(clause, topic=True, frequency=None)
    adjective = _FEELING[feeling]
    degree = dice.one(DEGREES[:3]) if dice.chance(0.5) else None
    first = Clause(subject, adjective, Mode("past", level=level), degree=degree)
    rest = [*g.complements_korean(clause), g.predicate_korean(clause)]
    korean = " ".join(
        [
            g.subject_korean(first),
            *g.complements_korean(first),
            conjugate(adjective.stem, "아/어서"),
            *rest,
        ]
    )
    english = g.clause_english(clause)
    own = g.phrase_english(subject, definite=True)
    english = g.NOMINATIVE[subject.noun.owner] + english[len(own) :]
    english = f"{g.clause_english(first)}, so {english}"
    return finish(korean, english, False, Content().clause(first).clause(clause))


_WHATEVER_THE_WEATHER = [
    verb
    for verb in PEOPLES_DEEDS
    if verb.stem
    in [
        "쉬",
        "자",
        "읽",
        "보",
        "듣",
        "공부하",
        "마시",
        "먹",
        "요리하",
        "청소하",
        "운전하",
        "산책하",
        "배우",
        "만들",
        "가르치",
    ]
]


def condition(dice: Dice) -> Sentence:
    """If it snows, Jisu will stay at home and read a book."""
    level = dice.weighted(LEVELS)
    weather = dice.one(("비", "눈"))
    verb_english, noun = _WEATHER[weather]
    verb = dice.one(_WHATEVER_THE_WEATHER)
    clause = draw_clause(dice, verb, level, dice.one(("future", "present")), richness=0.6)
    clause = replace(clause, time=None, frequency=None, topic=True)
    clause = vary(dice, clause) if clause.mode.tense == "future" else clause
    time = (
        dice.one((None, *[t for t in lex.TIMES if t.tenses == "f"][:2]))
        if clause.mode.tense == "future"
        else None
    )
    start = " ".join([*([time.korean] if time else []), particle(weather, "이/가"), "오면"])
    english = " ".join(["if it", en.third_person(verb_english), *([time.english] if time else [])])
    content = Content()
    content.noun(noun, "오다")
    content.adverb(time)
    content.clause(clause)
    return finish(
        f"{start} {g.clause_korean(clause)}",
        f"{english}, {g.clause_english(clause)}",
        False,
        content,
    )

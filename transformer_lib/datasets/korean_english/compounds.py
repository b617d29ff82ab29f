"""Frames of two clauses: deeds in turn, contrasts, purposes, relative clauses."""

from collections.abc import Iterable
from dataclasses import replace

from transformer_lib.datasets.korean_english import grammar as g
from transformer_lib.datasets.korean_english import lexicon as lex
from transformer_lib.datasets.korean_english.content import Content, Sentence, finish
from transformer_lib.datasets.korean_english.dice import Dice
from transformer_lib.datasets.korean_english.grammar import Clause, Mode, NounPhrase
from transformer_lib.datasets.korean_english.lexicon import Noun, Verb
from transformer_lib.datasets.korean_english.morphology import conjugate
from transformer_lib.datasets.korean_english.parts import (
    DEGREES,
    FEELINGS,
    KIN,
    LEVELS,
    NAMES,
    ORDINARY,
    PASSING,
    PEOPLES_DEEDS,
    PERSONS,
    PREDICATIVE,
    TIMES,
    TRANSITIVE,
    VERB_OF,
    draw_clause,
    draw_described,
    draw_negation,
    draw_object,
    draw_subject,
    draw_tense,
    say,
)

_FIRST_DEEDS = [
    verb
    for verb in PEOPLES_DEEDS
    if not verb.flags & {"to", "into", "static", "gives"} and verb.word != "자다"
]


def two_deeds(dice: Dice) -> Sentence:
    """Jisu ate an apple and drank milk."""
    level = dice.weighted(LEVELS)
    people = PEOPLES_DEEDS
    first_verb, second_verb = dice.one(_FIRST_DEEDS), dice.one(people)
    if first_verb.word == second_verb.word:
        return two_deeds(dice)
    tense = dice.weighted({"past": 5.0, "future": 3.0, "present": 2.0})
    if "once" in first_verb.flags | second_verb.flags and tense == "present":
        tense = "past"
    first = draw_clause(dice, first_verb, level, tense, richness=0.5)
    first = replace(first, frequency=None, topic=True)
    second = draw_clause(dice, second_verb, level, tense, subject=first.subject, richness=0.5)
    second = replace(second, time=None, companion=None, frequency=None)
    if second.object and first.object and second.object.noun.word == first.object.noun.word:
        return two_deeds(dice)
    before = [g.subject_korean(first), *g.complements_korean(first), first_verb.stem + "고"]
    korean = " ".join([*before, *g.complements_korean(second), g.predicate_korean(second)])
    auxiliary, said = g.verb_group(first)
    _, second_said = g.verb_group(second)
    time = [first.time.english] if first.time else []
    subject = g.phrase_english(first.subject, definite=True)
    english = " ".join(
        [
            subject,
            *([auxiliary] if auxiliary else []),
            said,
            *g.complements_english(replace(first, time=None)),
            "and",
            second_said,
            *g.complements_english(second),
            *time,
        ]
    )
    content = Content().clause(first).clause(second)
    return finish(korean, english, False, content)


_REPEATABLE = [verb for verb in ORDINARY if "once" not in verb.flags]


_LASTING = [v for v in ORDINARY if not v.flags & {"once", "state", "plain", "static"}]


def contrast(dice: Dice) -> Sentence:
    """Jisu drank tea, but Minsu drank coffee. Jisu read a book, and Minsu slept."""
    level = dice.weighted(LEVELS)
    first_verb = dice.one(_REPEATABLE)
    tense = draw_tense(dice, first_verb)
    if tense == "future":
        tense = "past"
    first = replace(draw_clause(dice, first_verb, level, tense, richness=0.45), topic=True)
    link = dice.one(("지만", "고"))
    if link == "지만":
        second_verb = first_verb
        second = draw_clause(dice, second_verb, level, tense, richness=0.45)
        second = replace(
            second,
            mode=replace(second.mode, negation=draw_negation(dice, second_verb, tense)),
            object=first.object,
            recipient=first.recipient,
            place=first.place,
            time=None,
            adverbial=None,
        )
        ending = "았/었지만" if tense == "past" else "지만"
    else:
        same = dice.chance(0.75) and (first_verb.objects or len(first_verb.places) > 1)
        other = first_verb if same else dice.one(_LASTING)
        second = draw_clause(dice, other, level, tense, richness=0.45)
        second = replace(second, time=None)
        if same and not first_verb.objects:
            first = replace(first, place=dice.one(first_verb.places), companion=None)
            second = replace(second, place=dice.one(first_verb.places))
            if first.place == second.place:
                return contrast(dice)
        if same and first.object and second.object and first.object.noun == second.object.noun:
            return contrast(dice)
        ending = "았/었고" if tense == "past" else "고"
    second = replace(second, topic=True, frequency=None, companion=None)
    if second.subject.noun.word == first.subject.noun.word:
        return contrast(dice)
    if first.object and second.subject.noun.word == first.object.noun.word:
        return contrast(dice)
    if first.recipient and second.subject.noun.word == first.recipient.noun.word:
        return contrast(dice)
    if tense == "progressive":
        predicate = f"{first_verb.stem}고 {conjugate('있', ending)}"
    else:
        predicate = conjugate(first_verb.stem, ending)
    before = [g.subject_korean(first), *g.complements_korean(first), predicate]
    korean = " ".join([*before, g.clause_korean(second)])
    conjunction = "but" if link == "지만" else "and"
    english = f"{g.clause_english(first)}, {conjunction} {g.clause_english(second)}"
    return finish(korean, english, False, Content().clause(first).clause(second))


_PURPOSES = [
    VERB_OF[word]
    for word in [
        "먹다",
        "마시다",
        "사다",
        "팔다",
        "빌리다",
        "보다:watch",
        "배우다",
        "만나다",
        "놀다",
        "쉬다",
        "산책하다",
        "수영하다",
        "낚시하다",
        "운동하다",
        "일하다",
        "공부하다",
        "춤추다",
    ]
]


_GOING = [VERB_OF["가다"], VERB_OF["오다"]]


def purpose(dice: Dice) -> Sentence:
    """Jisu went to the market to buy an apple."""
    level, verb = dice.weighted(LEVELS), dice.one(_PURPOSES)
    going = dice.one(_GOING)
    goals = [place for place in verb.places if place.group not in ("home", "path")]
    tense = dice.weighted({"past": 5.0, "future": 3.0, "present": 2.0})
    clause = draw_clause(dice, going, level, tense)
    subject = draw_subject(dice, lex.PEOPLE, level)
    clause = replace(
        clause, subject=subject, place=dice.one(goals), adverbial=None, companion=None, topic=True
    )
    aim = Clause(subject, verb, object=draw_object(dice, verb) if verb.objects else None)
    if aim.object and aim.object.noun.word == subject.noun.word:
        return purpose(dice)
    time = [clause.time.korean] if clause.time else []
    frequency = [clause.frequency.korean] if clause.frequency else []
    assert clause.place
    korean = " ".join(
        [
            g.subject_korean(clause),
            *time,
            *frequency,
            *g.complements_korean(aim),
            conjugate(verb.stem, "(으)러"),
            clause.place.noun.korean + "에",
            g.predicate_korean(clause),
        ]
    )
    main = g.clause_english(replace(clause, time=None))
    said = " ".join([main, "to", verb.english, *g.complements_english(aim)])
    english = " ".join([said, *([clause.time.english] if clause.time else [])])
    return finish(korean, english, False, Content().clause(clause).clause(aim))


_RELATIVE_OBJECT = [
    verb
    for verb in TRANSITIVE
    if not verb.flags & {"state", "gives"}
    and any(noun.kind == "name" for noun in verb.subjects)
    and not any(noun.kind in ("body", "city", "period", "school", "offer") for noun in verb.objects)
]


_RELATIVE_SUBJECT = [
    verb
    for verb in ORDINARY
    if not verb.flags & {"state", "once", "gives", "plain", "static"}
    and not any(noun.kind in PASSING for noun in verb.objects)
]


_HEADS = ("count", "mass", "plural")


def _verbs_of(verbs: Iterable[Verb], role: str) -> dict[str, list[Verb]]:
    """The verbs that each noun may be the object or the subject of."""
    found: dict[str, list[Verb]] = {}
    for verb in verbs:
        for noun in getattr(verb, role):
            found.setdefault(noun.word, []).append(verb)
    return found


_DONE_TO = _verbs_of(_RELATIVE_OBJECT, "objects")


_DONE_BY = _verbs_of(_RELATIVE_SUBJECT, "subjects")


_TAKING = [verb for verb in TRANSITIVE if not verb.flags & {"likes", "gives"}]


_QUALITIES = [adjective for adjective in PREDICATIVE if adjective.word not in FEELINGS]


def _with_relative(dice: Dice, noun: Noun) -> NounPhrase | None:
    """The noun with a clause: the book that Jisu bought yesterday, the child who is running."""
    verbs = _DONE_TO.get(noun.word)
    if verbs and noun.kind not in PERSONS:
        verb = dice.one(verbs)
        clause = Clause(
            NounPhrase(dice.one((*NAMES, *KIN))),
            verb,
            Mode("past"),
            object=NounPhrase(noun),
            topic=False,
            time=dice.one(TIMES["past"][:12]) if dice.chance(0.5) else None,
            place=dice.one(verb.places) if verb.places and dice.chance(0.35) else None,
        )
        return NounPhrase(noun, relative=clause)
    verbs = _DONE_BY.get(noun.word)
    if not verbs:
        return None
    verb = dice.one(verbs)
    tense = dice.one(("progressive", "past"))
    clause = Clause(
        NounPhrase(noun),
        verb,
        Mode(tense),
        object=draw_described(dice, dice.one(verb.objects)) if verb.objects else None,
        topic=False,
        place=dice.one(verb.places)
        if verb.places and (not verb.objects or verb.flags & {"to", "into"})
        else None,
        time=dice.one(TIMES["past"][:12]) if tense == "past" and dice.chance(0.3) else None,
    )
    if clause.object and clause.object.noun.word == noun.word:
        return None
    return NounPhrase(noun, relative=clause)


def relative_clause(dice: Dice) -> Sentence:
    """Minsu is reading the book that Jisu bought yesterday. The child who is running is small."""
    level = dice.weighted(LEVELS)
    shape = dice.one(("described", "object", "object", "subject"))
    if shape == "described":
        adjective = dice.one(_QUALITIES)
        nouns = [noun for noun in adjective.nouns if noun.number in _HEADS]
        phrase = _with_relative(dice, dice.one(nouns)) if nouns else None
        if not phrase:
            return relative_clause(dice)
        mode = Mode(dice.one(("present", "present", "past")), level=level)
        degree = dice.one(DEGREES) if dice.chance(0.4) else None
        return say(dice, Clause(phrase, adjective, mode, degree=degree))
    if shape == "subject":
        verb = dice.one(ORDINARY)
        nouns = [noun for noun in verb.subjects if noun.number in _HEADS]
        if not nouns or "body" in {noun.kind for noun in verb.objects}:
            return relative_clause(dice)
        noun = dice.one(nouns)
        phrase = _with_relative(dice, noun)
        if not phrase or (phrase.relative and phrase.relative.predicate is verb):
            return relative_clause(dice)
        clause = draw_clause(dice, verb, level, subject=phrase, richness=0.5)
        return say(dice, replace(clause, topic=True, frequency=None, companion=None))
    verb = dice.one(_TAKING)
    nouns = [noun for noun in verb.objects if noun.number in _HEADS]
    phrase = _with_relative(dice, dice.one(nouns)) if nouns else None
    if not phrase or not phrase.relative or phrase.relative.predicate is verb:
        return relative_clause(dice)
    subject = draw_subject(dice, verb.subjects, level)
    if subject.noun.word in (phrase.noun.word, phrase.relative.subject.noun.word):
        return relative_clause(dice)
    mode = Mode(draw_tense(dice, verb), level=level)
    clause = Clause(subject, verb, mode, object=phrase)
    return say(dice, clause)

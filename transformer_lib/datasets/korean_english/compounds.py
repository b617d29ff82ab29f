"""Frames of two clauses: deeds in turn, contrasts, purposes, relative clauses."""

from collections.abc import Iterable
from dataclasses import replace

from transformer_lib.datasets.korean_english import grammar as g
from transformer_lib.datasets.korean_english import lexicon as lex
from transformer_lib.datasets.korean_english.content import Content, Sentence, finish
from transformer_lib.datasets.korean_english.dice import Dice
from transformer_lib.datasets.korean_english.grammar import Clause, Mode, NounPhrase
from transformer_lib.datasets.korean_english.lexicon import Noun, Phrase, Verb
from transformer_lib.datasets.korean_english.morphology import conjugate
from transformer_lib.datasets.korean_english.parts import (
    BRIEF,
    FEELINGS,
    KIN,
    LEVELS,
    LONG_TIMES,
    MISHAPS,
    NAMES,
    ORDINARY,
    PASSING,
    PEOPLES_DEEDS,
    PERSONS,
    PREDICATIVE,
    TRANSITIVE,
    VERB_OF,
    draw_clause,
    draw_degree,
    draw_name,
    draw_negation,
    draw_object,
    draw_subject,
    draw_tense,
    is_speaker,
    own,
    say,
    times,
)

CLASSES = {"꽃", "나무", "새"}  # never against one of their members


_FIRST_DEEDS = [
    verb
    for verb in PEOPLES_DEEDS
    if not verb.flags & {"to", "into", "static", "gives"} and verb.word != "자다"
]


_GOING = [VERB_OF["가다"], VERB_OF["오다"]]


_GOALS = {place.noun.word for place in _GOING[0].places}


_DONE_THERE = [
    verb
    for verb in _FIRST_DEEDS
    if not verb.flags & {"from", "around", "at"}
    and verb.word not in ("울다:cry", "웃다")
    and any(place.noun.word in _GOALS and place.group != "home" for place in verb.places)
]


def two_deeds(dice: Dice) -> Sentence:
    """Jisu ate an apple and drank milk. Jisu went to the park and ate an apple."""
    level = dice.weighted(LEVELS)
    goes = dice.chance(0.35)
    first_verb = _GOING[0] if goes else dice.one(_FIRST_DEEDS)
    second_verb = dice.one(_DONE_THERE if goes else PEOPLES_DEEDS)
    if first_verb.word == second_verb.word:
        return two_deeds(dice)
    tense = dice.weighted({"past": 5.0, "future": 3.0, "present": 2.0})
    luck = {first_verb.stem, second_verb.stem} & set(MISHAPS)
    if luck or ("once" in first_verb.flags | second_verb.flags and tense == "present"):
        tense = "past"
    first = draw_clause(dice, first_verb, level, tense, richness=0.5)
    first = replace(first, frequency=None, topic=True)
    second = draw_clause(dice, second_verb, level, tense, subject=first.subject, richness=0.5)
    second = replace(second, time=None, companion=None, frequency=None)
    if goes:
        there = [p for p in second_verb.places if p.noun.word in _GOALS and p.group != "home"]
        first, second = replace(first, place=dice.one(there)), replace(second, place=None)
        if first.adverbial and first.adverbial.korean not in ("혼자", "다시", "일찍", "늦게"):
            first = replace(first, adverbial=None)
    elif not second_verb.flags & {"to", "into", "static"}:
        second = replace(second, place=None)
    if second_verb.stem in BRIEF and first.time and first.time.korean in LONG_TIMES:
        first = replace(first, time=None)
    if second.object and first.object and second.object.noun.word == first.object.noun.word:
        return two_deeds(dice)
    linked = conjugate(first_verb.stem, "아/어서") if goes else first_verb.stem + "고"
    before = [g.subject_korean(first), *g.complements_korean(first), linked]
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
            object=None,
            recipient=None,
            place=None,
            time=None,
            adverbial=None,
        )
        if first.object and first.object.noun.sense and not first.object.count:
            second = replace(second, object=first.object)
        ending = "았/었지만" if tense == "past" else "지만"
    else:
        if not first_verb.objects and len(first_verb.places) < 2:
            return contrast(dice)
        second = draw_clause(dice, first_verb, level, tense, richness=0.45)
        second = replace(second, time=None)
        if not first_verb.objects:
            first = replace(first, place=dice.one(first_verb.places), companion=None)
            second = replace(second, place=dice.one(first_verb.places))
            if first.place == second.place:
                return contrast(dice)
        if first.object and second.object and first.object.noun == second.object.noun:
            return contrast(dice)
        ending = "았/었고" if tense == "past" else "고"
    second = replace(second, topic=True, frequency=None, companion=None)
    words = {first.subject.noun.word, second.subject.noun.word}
    if len(words) == 1 or words <= set(g.PRONOUNS) or words & CLASSES:
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
    said = g.clause_english(second)
    if link == "지만" and not second.object:
        auxiliary, _ = g.verb_group(second)
        said = g.phrase_english(second.subject, definite=True) + f" {auxiliary}"
        said += "" if auxiliary == "cannot" else " not"
    english = f"{g.clause_english(first)}, {conjunction} {said}"
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
    if aim.object and aim.object.noun.number == "my" and not is_speaker(subject):
        aim = replace(aim, object=draw_name(dice, subject))
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


def _past_times(verb: Verb) -> list[Phrase]:
    """Times that are past whenever they are said."""
    return [time for time in times(verb, "past") if time.tenses == "p"]


def _at_the_time(clause: Clause) -> Clause:
    """The child who was running laughed: what goes on goes on at the time of the main verb."""
    relative = clause.subject.relative
    subject = clause.subject
    if clause.mode.tense != "past" or not relative or relative.mode.tense != "progressive":
        return clause
    relative = replace(relative, mode=replace(relative.mode, tense="past progressive"))
    return replace(clause, subject=replace(subject, relative=relative))


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
            time=dice.one(_past_times(verb)) if dice.chance(0.5) else None,
            place=dice.one(verb.places) if verb.places and dice.chance(0.35) else None,
        )
        return NounPhrase(noun, relative=clause)
    verbs = _DONE_BY.get(noun.word)
    if not verbs:
        return None
    verb = dice.one(verbs)
    tense = "progressive" if verb.english == "wear" else dice.one(("progressive", "past"))
    clause = Clause(
        NounPhrase(noun),
        verb,
        Mode(tense),
        object=own(dice, draw_object(dice, verb), NounPhrase(noun)) if verb.objects else None,
        topic=False,
        place=dice.one(verb.places)
        if verb.places and (not verb.objects or verb.flags & {"to", "into"})
        else None,
        time=dice.one(_past_times(verb)) if tense == "past" and dice.chance(0.3) else None,
    )
    if clause.object and clause.object.noun.word == noun.word:
        return None
    return NounPhrase(noun, relative=clause)


# What has been eaten is sweet no more, and cannot be sold.
_GONE = [
    verb
    for verb in TRANSITIVE
    if verb.stem in ("먹", "마시", "버리", "팔", "찢", "잃어버리") and "once" not in verb.flags
]


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
        if phrase.relative and phrase.relative.predicate in _GONE:
            mode = replace(mode, tense="past")
        degree = draw_degree(dice, adjective) if dice.chance(0.4) else None
        return say(dice, _at_the_time(Clause(phrase, adjective, mode, degree=degree)))
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
        clause = replace(clause, topic=True, frequency=None, companion=None)
        return say(dice, _at_the_time(clause))
    verb = dice.one(_TAKING)
    nouns = [noun for noun in verb.objects if noun.number in _HEADS]
    phrase = _with_relative(dice, dice.one(nouns)) if nouns else None
    if not phrase or not phrase.relative or phrase.relative.predicate is verb:
        return relative_clause(dice)
    subject = draw_subject(dice, verb.subjects, level)
    doer = phrase.relative.subject
    if phrase.relative.predicate in _GONE:
        return relative_clause(dice)
    if subject.noun.word in (phrase.noun.word, doer.noun.word):
        return relative_clause(dice)
    if doer.noun.number == "my" and not is_speaker(subject):
        return relative_clause(dice)
    mode = Mode(draw_tense(dice, verb), level=level)
    clause = Clause(subject, verb, mode, object=phrase)
    if mode.tense == "past" and phrase.relative.mode.tense == "progressive":
        relative = replace(phrase.relative, mode=Mode("past progressive"))
        clause = replace(clause, object=replace(phrase, relative=relative))
    return say(dice, clause)

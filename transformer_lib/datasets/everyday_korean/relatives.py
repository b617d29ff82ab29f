"""Nouns with a clause before them: the bag I bought yesterday, the people who live in Seoul."""

from transformer_lib.datasets.everyday_korean import tables
from transformer_lib.datasets.everyday_korean.cast import Actor, I, draw_actor
from transformer_lib.datasets.everyday_korean.deeds import DESCRIBED_BY, draw_deed, noun_english
from transformer_lib.datasets.everyday_korean.forms import (
    Chain,
    adnominal,
    be,
    ending,
    extend,
    honorific,
)
from transformer_lib.datasets.everyday_korean.phrasing import Person, VerbPhrase, finite
from transformer_lib.datasets.everyday_korean.sentence import Notes, Sentence, finish
from transformer_lib.datasets.everyday_korean.settings import WILLED, draw_level, draw_time
from transformer_lib.datasets.everyday_korean.statements import actor_fits
from transformer_lib.datasets.korean_english.dice import Dice
from transformer_lib.datasets.korean_english.morphology import conjugate, particle

__all__ = ["relative_object", "relative_person"]

_TRANSITIVE = [
    verb
    for verb in WILLED
    if verb.objects
    and verb.particle == "를"
    and "person" not in verb.flags
    and verb.article in ("a", "the")
]
_PAST = {"past": 7.0, "future": 2.0, "present": 2.0}
# What one does with a thing that one knows: it must be able to follow anything.
_AFTER: list[tuple[str, str, str, bool]] = [
    ("찾다", "look for", "을/를", True),
    ("잃어버리다", "lose", "을/를", False),
    ("가지고 오다", "bring", "을/를", False),
    ("보여 주다", "show", "을/를", False),
]


_THINGS = (
    "thing",
    "book",
    "clothes",
    "gadget",
    "accessory",
    "headwear",
    "glasses",
    "footwear",
    "text",
    "bike",
    "stationery",
    "ticket",
    "document",
    "picture",
    "kitchen",
    "furniture",
    "pet",
)


def _headed(dice: Dice, level: str) -> tuple[str, str, tables.Noun, Notes] | None:
    """A noun that is the object of its clause: 어제 산 가방, the bag I bought yesterday."""
    verb = dice.one(_TRANSITIVE)
    nouns = [n for n in verb.objects if n.number in ("count", "mass", "plural")]
    if not nouns:
        return None
    noun = dice.one(nouns)
    actor = draw_actor(dice, level) if dice.chance(0.55) else I
    deed = draw_deed(dice, verb, level, noun, avoid=actor.word)
    if not actor_fits(actor, deed):
        return None
    if actor.kind == "person":
        return None
    deed.korean_object = noun.korean
    deed.adverb = None
    tense = dice.weighted(_PAST)
    if tense == "present" and verb.flags & {"once"}:
        tense = "past"
    key = {"past": "p", "future": "f", "present": ""}[tense]
    time = draw_time(dice, key, deed) if key and dice.chance(0.45) else None
    chain = deed.chain()
    if tense == "present" and "state2" not in verb.flags:
        chain = extend(chain, "progressive") if dice.chance(0.4) else chain
    if "state2" in verb.flags and tense == "present":
        chain = extend(chain, "progressive")
    if actor.honours:
        chain = honorific(chain, verb.honorific) if chain.stem != "있" else honorific(chain, "계시")
    mine = actor.korean and actor.with_particle(dice, "합니다", False)
    parts = [
        mine or "",
        time.korean if time else "",
        *deed.complements(dice, level, "object"),
        adnominal(chain, tense),
    ]
    phrase = deed.english("object")
    if time:
        phrase = phrase.plus(time.english)
        deed.notes.word(time.korean)
    said = {"present": "progressive"}.get(tense, tense)
    if "{own}" in phrase.rest and actor.kind not in ("i", "we"):
        return None
    clause = finite(actor.person, phrase, said, mid=deed.mid)
    deed.notes.word(actor.word)
    name = f"the {noun.english} {clause}"
    return " ".join([*(part for part in parts if part), noun.korean]), name, noun, deed.notes


def relative_object(dice: Dice) -> Sentence:
    """The bag I bought yesterday is pretty. Where is the book Minsu read?"""
    level = draw_level(dice)
    headed = None
    while headed is None:
        headed = _headed(dice, level)
    korean, english, noun, notes = headed
    agree = "they" if noun.number == "plural" else "it"
    kind = dice.weighted({"adjective": 6.0, "this": 2.0, "where": 1.5, "deed": 2.5})
    if kind == "this":
        this, word = dice.one(
            (("이건", "this"), ("그건", "that"), ("이것은", "this"), ("저것은", "that"))
        )
        if level == "한다":
            this, word = "이것은", "this"
        person = (
            Person({"this": "these"}.get(word, "those"), "they")
            if agree == "they"
            else (Person(word))
        )
        asks = dice.chance(0.15)
        text = finite(person, VerbPhrase("be", english), question=asks)
        mark = "?" if asks else "."
        return finish(f"{this} {be(korean, 'present', level, asks)}", text, notes, "relative", mark)
    if kind == "where":
        text = finite(Person(english, agree), VerbPhrase("be"), question=True, asked="where")
        where = ending(Chain("있", False), "present", level, True)
        subject = particle(korean, "은/는" if dice.chance(0.6) else "이/가")
        return finish(f"{subject} 어디에 {where}", text, notes, "relative", "?")
    if kind == "deed" and noun.kind not in _THINGS:
        return relative_object(dice)
    if kind == "deed":
        stem, verb, forms, ing = dice.one(_AFTER)
        actor = draw_actor(dice, level)
        if actor.kind not in ("i", "name", "you", "we") or ing is None:
            actor = I
        tense = dice.one(("past", "future")) if verb not in ("lose",) else "past"
        tense = "progressive" if ing and dice.chance(0.6) else tense
        chain = Chain(stem[:-1])
        if tense == "progressive":
            chain = extend(chain, "progressive")
        last = ending(chain, "present" if tense == "progressive" else tense, level)
        text = finite(actor.person, VerbPhrase.parse(f"{verb} {english}"), tense)
        notes.word(actor.word, stem)
        subject = actor.with_particle(dice, level, True)
        return finish(f"{subject} {particle(korean, forms)} {last}", text, notes, "relative")
    fitting = [pair for pair in DESCRIBED_BY.get(noun.word, []) if pair[1] != "necessary"]
    if not fitting:
        return relative_object(dice)
    adjective, word = dice.one(fitting)
    notes.pair(adjective.word, noun.word)
    degree = dice.one(("", "", "아주", "정말", "너무"))
    adverb = {"아주": "very ", "정말": "really ", "너무": "too ", "": ""}[degree]
    if word in ("the same", "perfect", "enough", "worn out", "spoiled", "wet"):
        degree = adverb = ""
    tense = "past" if dice.chance(0.4) else "present"
    denied = not degree and dice.chance(0.12)
    chain = Chain(adjective.stem, False)
    if denied:
        chain = extend(chain, "not")
    if degree:
        notes.word(degree)
    person = Person(english, agree)
    text = finite(person, VerbPhrase("be", adverb + word), tense, negative=denied)
    subject = particle(korean, "은/는" if dice.chance(0.6) else "이/가")
    last = ending(chain, tense, level)
    return finish(f"{subject} {degree} {last}", text, notes, "relative")


_PEOPLE = [*tables.KINDS["person"][:6], *tables.KINDS["job"]]
_WHO = [tables.Noun("사람", "person", "person", several="people"), *_PEOPLE]
_DOING = [
    verb
    for verb in WILLED
    if (verb.article in ("a", "the", "gen") and not verb.flags & {"once"} and verb.particle == "를")
    or verb.flags & {"static", "static2"}
]


def relative_person(dice: Dice) -> Sentence:
    """I know a person who lives in Seoul. The man who is reading a book is my father."""
    level = draw_level(dice)
    verb = dice.one(_DOING)
    if "once" in verb.flags and "static2" not in verb.flags:
        return relative_person(dice)
    deed = draw_deed(dice, verb, level, plain=dice.chance(0.6))
    head = dice.one(_WHO) if dice.chance(0.6) else _WHO[0]
    if head.word in deed.notes.words or deed.mid or not (deed.object or deed.place):
        return relative_person(dice)
    notes = deed.notes
    notes.word(head.word)
    lives = verb.flags & {"state2", "static"}
    resultative = verb.english.startswith(("wear", "sit", "stand", "lie"))
    tense = "present"
    chain = deed.chain()
    owner = {"he": "he", "she": "she"}.get(head.owner, "one")
    if resultative:
        if verb.english.startswith("wear"):
            chain = extend(chain, "progressive") if dice.chance(0.5) else chain
            shape = adnominal(chain, "present" if chain.stem == "있" else "past")
        else:
            shape = join_sitting(chain)
        clause = finite(Person("who", owner), deed.english(), "progressive")
    elif lives:
        shape = adnominal(chain, "present")
        clause = finite(Person("who", owner), deed.english(), "present")
    else:
        tense = dice.weighted({"present": 3.0, "past": 3.0})
        clause = finite(
            Person("who", owner), deed.english(), "progressive" if tense == "present" else "past"
        )
        if tense == "present" and dice.chance(0.6):
            chain = extend(chain, "progressive")
        shape = adnominal(chain, tense)
    relative = " ".join([*deed.complements(dice, level), shape])
    who = f"{relative} {head.korean}"
    kind = dice.weighted({"is": 4.0, "who": 2.0, "know": 2.5, "there": 1.0})
    if kind == "is":
        relation = dice.one(
            [
                n
                for n in (*tables.KINDS["relation"], *tables.KINDS["kin"])
                if n.korean not in ("부모님", "가족", "짝")
            ]
        )
        first = "제" if level in ("해요", "합니다") else "내"
        notes.word(relation.word)
        pointed = dice.weighted({"": 3.0, "저기 ": 1.5})
        text = finite(
            Person(f"the {head.english} {clause}"), VerbPhrase("be", f"my {relation.english}")
        )
        if pointed:
            text = text.replace("who", "over there who", 1)
        last = be(f"{first} {relation.korean}", "present", level)
        return finish(f"{pointed}{particle(who, '은/는')} {last}", text, notes, "relative")
    if kind == "who":
        last = be("누구", "present", level, True)
        subject = particle(who, "은/는" if dice.chance(0.5) else "이/가")
        text = finite(
            Person(f"the {head.english} {clause}"), VerbPhrase("be"), question=True, asked="who"
        )
        return finish(f"{subject} {last}", text, notes, "relative", "?")
    if kind == "there":
        last = ending(Chain("많", False), "present", level)
        many = head.several or noun_english(head, "gen")
        plural = finite(
            Person("who", "they"),
            deed.english(),
            "present" if lives else "progressive" if tense == "present" else "past",
        )
        if resultative:
            plural = finite(Person("who", "they"), deed.english(), "progressive")
        text = f"there are a lot of {many} {plural}"
        return finish(f"{particle(who, '이/가')} {last}", text, notes, "relative")
    actor: Actor = draw_actor(dice, level)
    if actor.kind not in ("i", "we", "name"):
        actor = I
    choice = dice.one(
        (
            ("알", "know", "present"),
            ("만나", "meet", "past"),
            ("보", "see", "past"),
            ("찾", "look for", "progressive"),
        )
    )
    stem, word, spoken = choice
    chain = Chain(stem)
    if spoken == "progressive":
        chain = extend(chain, "progressive")
    article = noun_english(head)
    text = finite(actor.person, VerbPhrase.parse(f"{word} {article} {clause}"), spoken)
    notes.word(actor.word, stem + "다")
    last = ending(chain, "past" if spoken == "past" else "present", level)
    subject = actor.with_particle(dice, level, True)
    return finish(f"{subject} {particle(who, '을/를')} {last}", text, notes, "relative")


def join_sitting(chain: Chain) -> str:
    """앉아 있는, 서 있는: in a posture taken before."""
    return chain.before + conjugate(chain.stem, "아/어") + " 있는"

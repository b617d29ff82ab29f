"""Questions with a question word: what, who, where, when, why, how."""

from dataclasses import replace

from transformer_lib.datasets.everyday_korean import tables
from transformer_lib.datasets.everyday_korean.cast import YOU, Actor, draw_actor
from transformer_lib.datasets.everyday_korean.deeds import Deed, draw_deed
from transformer_lib.datasets.everyday_korean.describing import thing_actor
from transformer_lib.datasets.everyday_korean.forms import Chain, be, ending, extend, honorific
from transformer_lib.datasets.everyday_korean.phrasing import Person, VerbPhrase, finite, wrap
from transformer_lib.datasets.everyday_korean.sentence import Notes, Sentence, finish
from transformer_lib.datasets.everyday_korean.settings import WILLED, draw_level, draw_time
from transformer_lib.datasets.everyday_korean.statements import actor_fits
from transformer_lib.datasets.korean_english.dice import Dice
from transformer_lib.datasets.korean_english.morphology import particle

__all__ = ["asked_about", "open_question", "where_is"]

_TRANSITIVE = [
    verb
    for verb in WILLED
    if len(verb.objects) > 3
    and "person" not in verb.flags
    and verb.particle == "를"
    and verb.article in ("a", "the", "gen")
    and not verb.flags & {"state2"}
]
_MEETING = [
    verb
    for verb in WILLED
    if "person" in verb.flags and verb.particle in ("를", "에게", "와") and verb.objects
]
_PLACED = [verb for verb in WILLED if len(verb.places) > 2 and "static2" not in verb.flags]
_KINDS = {"what": 5.0, "whom": 2.5, "where": 4.0, "when": 3.0, "why": 3.0, "how": 1.2, "who": 3.0}
_TENSES = {"past": 5.0, "future": 3.0, "progressive": 2.0, "present": 2.0, "want": 1.5}


def _actor(dice: Dice, level: str) -> Actor:
    if dice.chance(0.6):
        return replace(YOU, honours=level in ("해요", "합니다") and dice.chance(0.5))
    return draw_actor(dice, level, asks=True)


def _tensed(
    dice: Dice,
    deed: Deed,
    actor: Actor,
    level: str,
    phrase: VerbPhrase,
    asked: str,
    tense: str,
    subjectless: bool = False,
) -> tuple[str, str]:
    """The Korean predicate and the English clause in one of the tenses."""
    chain = deed.chain()
    if tense == "progressive":
        chain = extend(chain, "progressive")
        if actor.honours:
            chain = honorific(chain, "계시")
    elif tense == "want":
        third = actor.kind != "you"
        chain = extend(chain, "wants" if third else "want")
        if actor.honours:
            chain = honorific(chain)
        phrase = wrap("want to ", phrase)
    elif actor.honours:
        chain = honorific(chain, deed.verb.honorific)
    korean = ending(chain, tense if tense in ("past", "future") else "present", level, True)
    english_tense = {"want": "present"}.get(tense, tense)
    text = finite(
        actor.person,
        phrase,
        english_tense,
        question=True,
        asked=asked,
        subjectless=subjectless,
    )
    return korean, text


def _fitting(dice: Dice, deed: Deed) -> str:
    flags = deed.verb.flags
    tense = dice.weighted(_TENSES)
    if tense in ("progressive", "present") and flags & {"once", "ride", "state2"}:
        tense = "past"
    return tense


def open_question(dice: Dice) -> Sentence:
    """What did you eat? Who are you meeting? Where do you work? Why did Minsu cry?"""
    level = draw_level(dice)
    kind = dice.weighted(_KINDS)
    if kind == "who":
        return _who(dice, level)
    pool = {"what": _TRANSITIVE, "whom": _MEETING, "where": _PLACED}.get(kind, WILLED)
    verb = dice.one(pool)
    actor = _actor(dice, level)
    deed = draw_deed(dice, verb, level, plain=dice.chance(0.6), avoid=actor.word)
    deed.adverb = None
    if (
        kind in ("where", "when", "why", "how")
        and "{own}" in deed.english().rest
        and (dice.chance(0.5))
    ):
        return open_question(dice)
    if kind == "where":
        if verb.flags & {"from"} or "{in}" in verb.english:
            return open_question(dice)
        deed.place = None
        deed.korean_company = deed.english_company = ""
    if not actor_fits(actor, deed):
        return open_question(dice)
    tense = _fitting(dice, deed)
    if kind in ("why", "how", "when") and tense == "present":
        tense = "past"
    if kind == "when" and tense == "progressive":
        tense = "future"
    if kind == "how" and (
        tense != "past"
        or not (
            verb.flags & {"move", "into"}
            or verb.english.startswith(("make", "solve", "fix", "cook", "learn"))
        )
    ):
        return open_question(dice)
    time = None
    if kind in ("what", "whom", "where") and tense in ("past", "future") and dice.chance(0.45):
        time = draw_time(dice, "p" if tense == "past" else "f", deed)
    if kind == "where" and tense == "present" and not verb.flags & {"state2"}:
        tense = "progressive"
    asked, gap = kind, ""
    if kind == "what":
        gap = "object"
        deed.place = deed.place if deed.place and dice.chance(0.5) else None
        if verb.flags & {"static", "static2", "move", "into"}:
            return open_question(dice)
    elif kind == "whom":
        asked, gap = "who", "object"
    phrase = deed.english(gap)
    if time:
        phrase = phrase.plus(time.english)
        deed.notes.word(time.korean)
    korean, text = _tensed(dice, deed, actor, level, phrase, asked, tense)
    rest = deed.complements(dice, level, gap)
    word = _question_word(dice, deed, kind, level)
    if (kind == "where" and deed.object) or kind in ("why", "when", "how"):
        rest = [word, *rest]
    else:
        rest = [*rest, word]
    if gap == "object" and deed.object:
        deed.notes.words.pop(deed.object.word, None)
        for sense in [sense for sense in deed.notes.senses if sense == deed.object.sense]:
            del deed.notes.senses[sense]
        deed.notes.pairs.pop((verb.word, deed.object.word), None)
    deed.notes.word(actor.word)
    subject = actor.with_particle(dice, level, True)
    parts = [subject, time.korean if time else "", *rest, korean]
    construction = "open question" if not actor.honours else "honorific"
    return finish(" ".join(parts), text, deed.notes, construction, "?")


def _question_word(dice: Dice, deed: Deed, kind: str, level: str) -> str:
    if kind == "what":
        if level == "한다":
            return "무엇을"
        return (
            dice.one(("뭐", "뭘", "무엇을") if level == "해요" else ("뭐", "뭘"))
            if (level != "합니다")
            else "무엇을"
        )
    if kind == "whom":
        tail = {"를": "를", "에게": "에게" if level in ("합니다", "한다") else "한테", "와": "와"}
        if deed.verb.particle == "와" and level in ("해", "해요"):
            return "누구랑" if dice.chance(0.5) else "누구하고"
        return "누구" + tail[deed.verb.particle]
    if kind == "where":
        flags = deed.verb.flags
        if "into" in flags:
            return "어디로"
        if flags & {"move"}:
            return dice.one(("어디에", "어디")) if level in ("해", "해요") else "어디에"
        return (
            "어디에"
            if flags & {"static", "static2"}
            else "어디에서"
            if dice.chance(0.6)
            else "어디서"
        )
    return {"when": "언제", "why": "왜", "how": "어떻게"}[kind]


def _who(dice: Dice, level: str) -> Sentence:
    verb = dice.one(WILLED)
    deed = draw_deed(dice, verb, level)
    if "{own}" in deed.english().rest or "{self}" in deed.english().rest:
        return _who(dice, level)
    tense = _fitting(dice, deed)
    if tense == "want":
        tense = "past"
    if "state2" not in verb.flags and tense == "present":
        tense = "past"
    actor = Actor("누구", Person("who", "it"), "pronoun")
    time = draw_time(dice, "p", deed) if tense == "past" and dice.chance(0.3) else None
    phrase = deed.english()
    if time:
        phrase = phrase.plus(time.english)
        deed.notes.word(time.korean)
    korean, text = _tensed(dice, deed, actor, level, phrase, "who", tense, subjectless=True)
    parts = ["누가", time.korean if time else "", *deed.complements(dice, level), korean]
    if time and dice.chance(0.5):
        parts[0], parts[1] = parts[1], parts[0]
    return finish(" ".join(parts), text, deed.notes, "open question", "?")


_FOUND = [
    noun
    for kind in (
        "thing",
        "document",
        "gadget",
        "stationery",
        "book",
        "clothes",
        "headwear",
        "glasses",
        "kitchen",
        "room",
        "accessory",
    )
    for noun in tables.KINDS[kind]
    if noun.number not in ("mass", "fixed")
]
_GROUPS = (
    "shop",
    "errand",
    "show",
    "station",
    "park",
    "eat",
    "bookshop",
    "pharmacy",
    "bakery",
    "flowershop",
    "gym",
    "school",
    "work",
)
_SITES = [place for place in tables.PLACES if place.group in _GROUPS and "{own}" not in place.at]


def where_is(dice: Dice) -> Sentence:
    """Where is the station? Where are my glasses? Where is your mother?"""
    level = draw_level(dice)
    notes = Notes()
    kind = dice.weighted({"site": 4.0, "thing": 4.0, "person": 2.0})
    honours = False
    if kind == "site":
        place = dice.one(_SITES)
        notes.word(place.noun.word)
        english = (
            place.at.split(" ", 1)[1].replace("a ", "the ", 1)
            if place.at.split()[1] == "a"
            else (place.at.split(" ", 1)[1])
        )
        if english in ("school", "work", "kindergarten", "church"):
            english = {"work": "the office"}.get(english, f"the {english}")
        korean, person = place.noun.korean, Person(english)
        subject = (
            korean
            if dice.chance(0.2)
            else particle(korean, "이/가" if dice.chance(0.65) else "은/는")
        )
    elif kind == "thing":
        noun = dice.one(_FOUND)
        actor = thing_actor(dice, noun, level)
        if actor.korean.startswith(("이 ", "저 ")):
            return where_is(dice)
        notes.word(noun.word)
        person = actor.person
        subject = actor.with_particle(dice, level, dice.chance(0.6))
    else:
        actor = draw_actor(dice, level, asks=True)
        if actor.kind in ("person", "pronoun"):
            return where_is(dice)
        notes.word(actor.word)
        person, honours = actor.person, actor.honours
        subject = actor.with_particle(dice, level, True)
    now = "지금 " if kind != "site" and dice.chance(0.3) else ""
    chain = Chain("있", False)
    if honours:
        chain = honorific(chain)
    where = dice.one(("어디에", "어디")) if level in ("해", "해요") else "어디에"
    korean = ending(chain, "present", level, True)
    text = finite(person, VerbPhrase("be"), question=True, asked="where")
    if now:
        text += " now"
        notes.word("지금")
    return finish(f"{subject} {now}{where} {korean}", text, notes, "open question", "?")


def asked_about(dice: Dice) -> Sentence:
    """What is this? Who is that person? How was the movie? What kind of music do you like?"""
    level = draw_level(dice)
    notes = Notes()
    kind = dice.weighted({"what": 2.0, "how": 4.0, "kind": 3.0, "which": 1.5, "favourite": 1.0})
    if kind == "what":
        korean, name = dice.one(
            (
                ("이건", "this"),
                ("그건", "that"),
                ("저건", "that"),
                ("이게", "this"),
                ("이름이", "your name"),
                ("취미가", "your hobby"),
                ("직업이", "your job"),
            )
        )
        predicate = be("무엇" if level in ("합니다", "한다") else "뭐", "present", level, True)
        return finish(f"{korean} {predicate}", f"what is {name}", notes, "open question", "?")
    if kind == "how":
        noun = dice.one(
            [
                n
                for k in ("film", "book", "event", "dish", "show")
                for n in tables.KINDS[k]
                if n.number in ("count", "the", "mass", "name")
            ]
        )
        notes.noun(noun, "어떻다")
        past = noun.kind in ("film", "event", "book") and dice.chance(0.6)
        if noun.english.startswith("a ") or noun.number == "name":
            return asked_about(dice)
        person = Person(f"the {noun.english}", "they" if noun.number == "plural" else "it")
        subject = particle(noun.korean, "은/는") if dice.chance(0.8) else noun.korean
        korean = ending(Chain("어떻", False), "past" if past else "present", level, True)
        text = finite(
            person, VerbPhrase("be"), "past" if past else "present", question=True, asked="how"
        )
        return finish(f"{subject} {korean}", text, notes, "open question", "?")
    what, name, verb, english = dice.one(_WHAT_KIND)
    honours = level in ("해요", "합니다") and dice.chance(0.5)
    chain = Chain(verb)
    if honours:
        chain = honorific(chain)
    notes.pair(verb + "다", what)
    if kind == "kind":
        tense = "present" if verb in ("좋아하", "싫어하") else dice.one(("past", "future"))
        korean = ending(chain, tense, level, True)
        text = finite(
            Person("you", "you"),
            VerbPhrase.parse(english),
            tense,
            question=True,
            asked=f"what {name}" if what in _PLAIN else f"what kind of {name}",
        )
        return finish(f"무슨 {particle(what, '을/를')} {korean}", text, notes, "open question", "?")
    if kind == "favourite":
        chain = honorific(Chain("좋아하")) if honours else Chain("좋아하")
        korean = ending(chain, "present", level, True)
        text = f"what {name} do you like the most"
        return finish(
            f"무슨 {particle(what, '을/를')} 제일 {korean}", text, notes, "open question", "?"
        )
    tense = "present" if verb in ("좋아하", "싫어하") else dice.one(("past", "future"))
    korean = ending(chain, tense, level, True)
    text = finite(
        Person("you", "you"), VerbPhrase.parse(english), tense, question=True, asked=f"which {name}"
    )
    return finish(f"어느 {particle(what, '을/를')} {korean}", text, notes, "open question", "?")


_PLAIN = ("색", "언어", "과목", "계절", "신문")
_WHAT_KIND = [
    ("음식", "food", "좋아하", "like"),
    ("음악", "music", "좋아하", "like"),
    ("운동", "exercise", "좋아하", "like"),
    ("영화", "movie", "보", "watch"),
    ("책", "book", "읽", "read"),
    ("과일", "fruit", "사", "buy"),
    ("꽃", "flower", "좋아하", "like"),
    ("음료수", "drink", "마시", "drink"),
    ("동물", "animal", "좋아하", "like"),
    ("노래", "song", "부르", "sing"),
    ("선물", "present", "사", "buy"),
    ("색", "color", "좋아하", "like"),
    ("과목", "subject", "싫어하", "hate"),
    ("계절", "season", "좋아하", "like"),
    ("요리", "dish", "만들", "make"),
    ("차", "tea", "마시", "drink"),
    ("가방", "bag", "사", "buy"),
    ("신문", "newspaper", "읽", "read"),
    ("드라마", "drama", "보", "watch"),
    ("언어", "language", "배우", "learn"),
    ("옷", "clothes", "입", "wear"),
]

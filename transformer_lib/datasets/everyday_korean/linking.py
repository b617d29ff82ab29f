"""Two clauses in one sentence: because, if, when, before, after, while, but, and, in order to."""

from dataclasses import replace

from transformer_lib.datasets.everyday_korean import tables
from transformer_lib.datasets.everyday_korean.cast import Actor, I, draw_actor
from transformer_lib.datasets.everyday_korean.forms import (
    Chain,
    adnominal,
    ending,
    extend,
    honorific,
    join,
)
from transformer_lib.datasets.everyday_korean.phrasing import (
    Person,
    VerbPhrase,
    finite,
    infinitive,
    ing,
    wrap,
)
from transformer_lib.datasets.everyday_korean.sentence import Notes, Sentence, finish
from transformer_lib.datasets.everyday_korean.settings import draw_level, draw_time
from transformer_lib.datasets.everyday_korean.tables import Clause
from transformer_lib.datasets.korean_english.dice import Dice

__all__ = ["linked"]

_BY_LINK: dict[str, list[tables.Situation]] = {}
for _situation in tables.SITUATIONS:
    for _link in _situation.links:
        _BY_LINK.setdefault(_link, []).append(_situation)
_LINKS = {
    "because": 9.0,
    "if": 6.0,
    "when": 4.0,
    "back": 1.0,
    "before": 3.5,
    "after": 4.0,
    "while": 3.5,
    "but": 2.5,
    "and": 3.0,
    "so_that": 5.0,
}


def _chain(clause: Clause) -> Chain:
    """The predicate; 안 and 못 in the table stand before it already."""
    return Chain(clause.stem, clause.is_verb, f"{clause.before} " if clause.before else "")


def _second(dice: Dice, clause: Clause, actor: Actor, level: str, end: str) -> tuple[str, str, str]:
    """The main clause with one of the ends: Korean, English, and its mark."""
    chain, phrase, person = _chain(clause), clause.english, clause.subject or actor.person
    if clause.subject:
        person = clause.subject
    honours = actor.honours and not clause.subject
    asks = end == "question"
    mark = "?" if asks else "."
    if end in ("past", "future", "habit", "question"):
        tense = {"habit": "present"}.get(end, end)
        if asks:
            tense = "past"
        if honours:
            chain = honorific(chain)
        korean = ending(chain, tense, level, asks)
        return korean, finite(person, phrase, tense, question=asks), mark
    if end == "want":
        third = actor.kind not in ("i", "we")
        chain = extend(chain, "wants" if third else "want")
        korean = ending(honorific(chain) if honours else chain, "present", level)
        return korean, finite(person, wrap("want to ", phrase)), mark
    if end == "must":
        chain = extend(honorific(chain) if honours else chain, dice.one(("must", "must do")))
        return ending(chain, "present", level), finite(person, wrap("have to ", phrase)), mark
    if end == "can":
        chain = extend(honorific(chain) if honours else chain, "can")
        return ending(chain, "present", level), finite(person, phrase, modal="can"), mark
    if end == "let's":
        form = {"해요": "(으)ㄹ까요", "합니다": "(으)ㅂ시다", "해": "자", "한다": "자"}[level]
        korean = chain.before + join(chain.stem, form)
        words = Person("we", "we").fill(infinitive(phrase))
        if form == "(으)ㄹ까요":
            return korean, f"shall we {words}", "?"
        return korean, f"let's {words}", mark
    if end == "will":
        form = "(으)ㄹ게" + ("요" if level == "해요" else "")
        return chain.before + join(chain.stem, form), finite(person, phrase, "future"), mark
    words = Person("you", "you").fill(infinitive(phrase))
    if clause.before.startswith("저에게") or clause.before.endswith("저에게"):
        chain = Chain(
            chain.stem,
            True,
            chain.before.replace("저에게", "나에게" if level == "해" else "저에게"),
        )
    if level == "해":
        if clause.request:
            last = "줘" if chain.stem[-1] != "주" else ""
            korean = chain.before + (join(chain.stem, "아/어") + (f" {last}" if last else ""))
            return korean, f"please {words}", mark
        return chain.before + join(chain.stem, "아/어"), words, mark
    if clause.request:
        after = {"해요": "주세요", "합니다": "주십시오"}[level]
        if chain.stem[-1] == "주":
            return chain.before + chain.stem[:-1] + after, f"please {words}", mark
        return f"{chain.before}{join(chain.stem, '아/어')} {after}", f"please {words}", mark
    stem = honorific(chain).stem[:-1]
    return (
        chain.before + stem + {"해요": "세요", "합니다": "십시오"}[level],
        f"please {words}",
        mark,
    )


def _end_for(dice: Dice, link: str, first: Clause, second: Clause, actor: Actor, level: str) -> str:
    """Which ends the main clause may have."""
    shares = {"past": 8.0, "habit": 3.0, "future": 3.0}
    mine = actor.kind in ("i", "we") and not second.subject
    negative = second.english.negative or second.english.cannot
    if second.wanted and not second.subject and not negative:
        shares |= {"want": 2.0, "must": 2.0}
        if mine and level in ("해요", "해"):
            shares["will"] = 1.5
        if mine and level in ("해요", "합니다"):
            shares["request"] = 2.5
        if mine:
            shares["let's"] = 1.5
    if link == "if":
        shares = {key: value for key, value in shares.items() if key != "past"}
        shares["future"] = 6.0
    if link == "when":
        shares = {"habit": 6.0, "past": 5.0}
    if link == "back":
        shares = {"past": 1.0}
    if link in ("but",):
        shares = {"past": 8.0}
    if link == "while":
        shares = {"past": 7.0, "habit": 4.0, "want": 1.0}
        if mine and level in ("해요", "합니다"):
            shares["request"] = 0.7
    if link in ("because",):
        shares.pop("habit", None)
    if second.request:
        shares = {"request": 1.0}
    return dice.weighted(shares)


# What goes on while one speaks, and what simply is so.
_GOING_ON = ("rain", "snow", "thunder", "sweat", "cough")
_LASTING = ("have", "be", "want", "know", "feel", "smell", "like", "need")


def _again(actor: Actor) -> Actor:
    """Who was named before, as a pronoun."""
    person = actor.person
    name = {"he": "he", "she": "she", "one": "they"}.get(person.agree)
    if name is None:
        return actor
    return replace(actor, person=Person(name, name))


def _gerund(person: Person, phrase: VerbPhrase) -> str:
    return person.fill(ing(phrase))


_REASONS = {"아/어서": 5.0, "(으)니까": 3.0, "기 때문에": 3.0}


def linked(dice: Dice) -> Sentence:
    """I was tired, so I went to bed early. If it rains, let's stay home. I cook after I shop."""
    link = dice.weighted(_LINKS)
    level = draw_level(dice)
    situation = dice.one(_BY_LINK[link])
    first, second = dice.one(situation.first), dice.one(situation.second)
    if second.request and level == "한다":
        return linked(dice)
    actor = I if second.request else draw_actor(dice, level)
    end = _end_for(dice, link, first, second, actor, level)
    ours = end == "let's"
    yours = end == "request"
    if ours or yours:
        actor = Actor(
            "", Person("we", "we") if ours else Person("you", "you"), "we" if ours else "you"
        )
    notes = Notes()
    notes.word(actor.word, *first.words, *second.words)
    chain = _chain(first)
    person = first.subject or actor.person
    if first.subject:
        person = Person(actor.person.fill(first.subject.name), first.subject.agree)
    if yours and first.subject is None and link in ("because",):
        person = Person("you", "you")
    tense = "past" if end == "past" else "present"
    phrase = first.english
    phrase = VerbPhrase(phrase.head, actor.person.fill(phrase.rest), phrase.negative, phrase.cannot)
    spoken = tense
    if link == "because" and tense == "present" and first.is_verb:
        spoken = "progressive" if phrase.head in _GOING_ON else "past"
        if phrase.head in _LASTING and not phrase.cannot:
            spoken = "present"
        tense = "past" if spoken == "past" else tense
    again = _again(actor) if first.subject is None else actor
    behind = first.subject is None and link == "because"
    form = dice.weighted(_REASONS) if link == "because" else ""
    if form and end in ("let's", "request", "will"):
        form = "(으)니까"
    if behind and form == "기 때문에":
        person, again = again.person, actor
    text = finite(person, phrase, spoken)
    speaker = again if link in ("because", "if", "when", "back", "but") else actor
    korean, main, mark = _second(dice, second, replace(speaker, korean=actor.korean), level, end)
    if link == "because":
        reason = _reason(chain, form, tense)
        english = f"{main} because {text}" if form == "기 때문에" else f"{text}, so {main}"
        return _finish(dice, actor, level, reason, korean, english, notes, link, mark, first)
    if link == "if":
        given = chain.before + join(chain.stem, "(으)면")
        english = f"if {text}, {main}"
        return _finish(dice, actor, level, given, korean, english, notes, link, mark, first)
    if link in ("when", "back"):
        link = "when"
        if end == "past" and not dice.chance(0.25):
            given = chain.before + join(chain.stem, "았/었을") + " 때"
        else:
            given = chain.before + join(chain.stem, "(으)ㄹ") + " 때"
        if "어리" in chain.stem:
            given = "어릴 때" if end != "past" or dice.chance(0.6) else "어렸을 때"
        english = f"when {text}, {main}"
        return _finish(dice, actor, level, given, korean, english, notes, link, mark, first)
    if link in ("before", "after"):
        return _ordered(dice, link, actor, level, first, korean, main, notes, mark)
    if link == "while":
        given = chain.before + join(chain.stem, "(으)면서")
        english = f"{main} while {_gerund(actor.person, phrase)}"
        return _finish(dice, actor, level, given, korean, english, notes, link, mark, first)
    if link == "but":
        if actor.honours and first.subject is None:
            chain = honorific(chain, "있으시" if chain.stem == "있" else "")
        given = chain.before + (
            join(chain.stem, "았/었지만") if tense == "past" else join(chain.stem, "지만")
        )
        english = f"{text}, but {main}"
        return _finish(dice, actor, level, given, korean, english, notes, link, mark, first)
    if link == "and":
        joint = "아/어서" if chain.stem in ("오", "가", "일어나", "만나") else "고"
        given = chain.before + join(chain.stem, joint)
        said = infinitive(phrase) if end not in ("past", "habit") else ""
        if said:
            return _and(dice, actor, level, given, first, second, end, notes)
        english = f"{text} and {_tail(actor.person, second.english, end)}"
        return _finish(dice, actor, level, given, korean, english, notes, link, mark, first)
    given = chain.before + join(chain.stem, "(으)러")
    time = (
        draw_time(dice, "p" if end == "past" else "f")
        if (end in ("past", "future") and dice.chance(0.3))
        else None
    )
    english = f"{main} {actor.person.fill('to ' + infinitive(phrase))}"
    if time:
        english += " " + time.english
        notes.word(time.korean)
        given = f"{time.korean} {given}"
    return _finish(dice, actor, level, given, korean, english, notes, "purpose", mark, first)


def _tail(person: Person, phrase: VerbPhrase, end: str) -> str:
    """The second of two verbs that share their subject: got up and had breakfast."""
    text = finite(Person("", person.agree), phrase, "past" if end == "past" else "present")
    return person.fill(text.strip())


def _and(
    dice: Dice,
    actor: Actor,
    level: str,
    given: str,
    first: Clause,
    second: Clause,
    end: str,
    notes: Notes,
) -> Sentence:
    joined = VerbPhrase.parse(f"{infinitive(first.english)} and {infinitive(second.english)}")
    both = Clause(second.before, second.stem, joined, True, None, True, False)
    korean, main, mark = _second(dice, both, actor, level, end)
    return _finish(dice, actor, level, given, korean, main, notes, "and", mark, first)


def _reason(chain: Chain, form: str, tense: str) -> str:
    copula = chain.stem.endswith("이") and not chain.is_verb
    if form == "아/어서":
        if copula:
            return chain.before + chain.stem + "라서"
        return chain.before + join(chain.stem, "아/어서")
    if form == "(으)니까":
        if tense == "past":
            return chain.before + join(chain.stem, "았/었으니까")
        return chain.before + join(chain.stem, "(으)니까")
    joined = "았/었기" if tense == "past" else "기"
    return chain.before + join(chain.stem, joined) + " 때문에"


def _ordered(
    dice: Dice,
    link: str,
    actor: Actor,
    level: str,
    first: Clause,
    korean: str,
    main: str,
    notes: Notes,
    mark: str,
) -> Sentence:
    chain, phrase = _chain(first), first.english
    if link == "before":
        given = chain.before + join(chain.stem, "기") + " 전에"
    else:
        form = dice.one(("후에", "다음에", "고 나서"))
        given = (
            chain.before + join(chain.stem, "고") + " 나서"
            if form == "고 나서"
            else f"{adnominal(chain, 'past')} {form}"
        )
    if first.subject:
        name = first.subject
        past = korean.endswith(
            ("었다", "았다", "었어요", "았어요", "었습니다", "았습니다", "었어", "았어")
        )
        clause = finite(name, phrase, "past" if past else "present")
        english = f"{main} {link} {clause}"
    else:
        english = f"{main} {link} {_gerund(actor.person, phrase)}"
    return _finish(dice, actor, level, given, korean, english, notes, link, mark, first)


def _finish(
    dice: Dice,
    actor: Actor,
    level: str,
    given: str,
    korean: str,
    english: str,
    notes: Notes,
    link: str,
    mark: str,
    first: Clause,
) -> Sentence:
    """Put the subject in front, or between the clauses when the first has one of its own."""
    subject = actor.with_particle(dice, level, True)
    given = given.strip()
    if subject and (first.subject or dice.chance(0.2)):
        text = f"{given} {subject} {korean}"
    else:
        text = f"{subject} {given} {korean}"
    return finish(text, english, notes, link, mark)

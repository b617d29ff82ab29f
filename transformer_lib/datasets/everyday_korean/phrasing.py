"""English verb phrases: tenses, do-support, modals, participles, superlatives and contractions."""

from dataclasses import dataclass

from transformer_lib.datasets.korean_english import english as en

__all__ = [
    "ABLE",
    "Person",
    "VerbPhrase",
    "comparative",
    "finite",
    "gerund",
    "infinitive",
    "ing",
    "participle",
    "past",
    "perfect",
    "superlative",
    "tag",
    "third_person",
    "wrap",
]

_PARTICIPLES = """
    be/been become/become begin/begun bite/bitten blow/blown break/broken bring/brought
    build/built buy/bought catch/caught choose/chosen come/come cost/cost cut/cut do/done
    draw/drawn drink/drunk drive/driven eat/eaten fall/fallen feed/fed feel/felt fight/fought
    find/found fly/flown forget/forgotten forgive/forgiven freeze/frozen get/gotten give/given
    go/gone grow/grown hang/hung have/had hear/heard hide/hidden hit/hit hold/held hurt/hurt
    keep/kept know/known leave/left lend/lent let/let lie/lied lose/lost make/made meet/met
    pay/paid put/put quit/quit read/read ride/ridden rise/risen ring/rung run/run say/said see/seen
    sell/sold send/sent set/set shake/shaken shave/shaved shed/shed shine/shone show/shown
    shut/shut sing/sung sit/sat sleep/slept speak/spoken spend/spent spill/spilled stand/stood
    steal/stolen sweep/swept swim/swum take/taken teach/taught tear/torn tell/told
    think/thought throw/thrown understand/understood wake/woken wear/worn win/won write/written
"""
PARTICIPLES = dict(pair.split("/") for pair in _PARTICIPLES.split())
_PAST_FORMS = """
    cost/cost fight/fought forgive/forgave hit/hit let/let lie/lied overeat/overate quit/quit
    rise/rose shed/shed stir-fry/stir-fried
"""
PAST = dict(pair.split("/") for pair in _PAST_FORMS.split())
_DOUBLED = "chat drop fit grab jog nod quit shed shop skip slip stir throb trip unplug wrap"
DOUBLED = frozenset(_DOUBLED.split())
SUPERLATIVES = {
    "good": "best",
    "bad": "worst",
    "far": "farthest",
    "lonely": "loneliest",
    "narrow": "narrowest",
}
COMPARATIVES = {
    "good-hearted": "more good-hearted",
    "worn out": "more worn out",
    "shallow": "shallower",
    "strict": "stricter",
    "strong": "stronger",
    "wet": "wetter",
    "simple": "simpler",
    "bored": "more bored",
    "rare": "rarer",
    "poor": "poorer",
    "high": "higher",
    "quiet": "quieter",
    "handsome": "more handsome",
    "fun": "more fun",
}
NEGATED = {"will": "won't", "can": "can't"}
CONTRACTED = {"am": "'m", "is": "'s", "are": "'re", "have": "'ve", "has": "'s", "will": "'ll"}
PRONOUNS = ("I", "you", "we", "they", "he", "she", "it", "that")


@dataclass(frozen=True, slots=True)
class Person:
    """Who does something, in English: the forms that a sentence may need.

    Attributes:
        name: As a subject: I, my mother, the bag.
        agree: What the verb agrees with: I, we, you, they, he, she, it, or one: somebody of whom
            one says "is" and "their".
    """

    name: str
    agree: str = "it"

    @property
    def own(self) -> str:
        """My, his, their."""
        return {
            "I": "my",
            "we": "our",
            "you": "your",
            "he": "his",
            "she": "her",
            "it": "its",
        }.get(self.agree, "their")

    @property
    def self(self) -> str:
        """Myself, himself, themselves."""
        return {
            "I": "myself",
            "we": "ourselves",
            "you": "yourself",
            "he": "himself",
            "she": "herself",
            "it": "itself",
        }.get(self.agree, "themselves")

    @property
    def pronoun(self) -> str:
        """I, he, they: what a tag question says again."""
        return "they" if self.agree == "one" else self.agree

    def fill(self, text: str) -> str:
        """Put the possessive and the reflexive of this person where a text leaves room."""
        return text.replace("{own}", self.own).replace("{self}", self.self)


@dataclass(frozen=True, slots=True)
class VerbPhrase:
    """A verb in its base form and what follows it.

    Attributes:
        head: The verb: eat, be, have.
        rest: What follows.
        negative: Whether the meaning itself is negative: not have a car.
        cannot: Whether it says that something is impossible: can't sleep.
    """

    head: str
    rest: str = ""
    negative: bool = False
    cannot: bool = False

    @staticmethod
    def parse(text: str) -> "VerbPhrase":
        """Read "eat an apple", "not eat" or "can't eat"."""
        negative, cannot = text.startswith("not "), text.startswith("can't ")
        if negative or cannot:
            text = text.split(" ", 1)[1]
        head, _, rest = text.partition(" ")
        return VerbPhrase(head, rest, negative, cannot)

    def plus(self, *more: str) -> "VerbPhrase":
        """The phrase with more words after it."""
        words = [self.rest, *more]
        text = " ".join(word for word in words if word)
        return VerbPhrase(self.head, text, self.negative, self.cannot)


def past(verb: str) -> str:
    """The simple past of a verb of one word."""
    if verb in PAST:
        return PAST[verb]
    return verb + verb[-1] + "ed" if verb in DOUBLED else en.past(verb)


def participle(verb: str) -> str:
    """The past participle of a verb of one word."""
    return PARTICIPLES.get(verb) or ("overeaten" if verb == "overeat" else past(verb))


def gerund(verb: str) -> str:
    """The form in -ing of a verb of one word."""
    return verb + verb[-1] + "ing" if verb in DOUBLED else en.gerund(verb)


def third_person(verb: str) -> str:
    """The form with he, she, it of a verb of one word."""
    return en.third_person(verb)


def comparative(adjective: str) -> str:
    """The comparative: bigger, more beautiful."""
    return COMPARATIVES.get(adjective) or en.comparative(adjective)


def superlative(adjective: str) -> str:
    """The superlative: the biggest, the most beautiful, without "the"."""
    if adjective in SUPERLATIVES:
        return SUPERLATIVES[adjective]
    more = comparative(adjective)
    return "most " + more.removeprefix("more ") if more.startswith("more ") else more[:-1] + "st"


def infinitive(phrase: VerbPhrase) -> str:
    """The base form: eat an apple, not eat."""
    text = f"{phrase.head} {phrase.rest}".strip()
    return "not " + text if phrase.negative else text


def ing(phrase: VerbPhrase) -> str:
    """The form in -ing: eating an apple."""
    text = f"{gerund(phrase.head)} {phrase.rest}".strip()
    return "not " + text if phrase.negative else text


def perfect(phrase: VerbPhrase) -> str:
    """The participle and the rest: eaten an apple."""
    return f"{participle(phrase.head)} {phrase.rest}".strip()


def wrap(outer: str, phrase: VerbPhrase) -> VerbPhrase:
    """Put a phrase into another: "want to ", "be ~" for the form in -ing."""
    if outer.endswith("~"):
        return VerbPhrase.parse(outer[:-1] + ing(phrase))
    return VerbPhrase.parse(outer + infinitive(phrase))


ABLE = "be able to "


def _be(agree: str, is_past: bool) -> str:
    if agree == "I":
        return "was" if is_past else "am"
    if agree in ("you", "we", "they"):
        return "were" if is_past else "are"
    return "was" if is_past else "is"


def _parts(agree: str, phrase: VerbPhrase, tense: str, modal: str, helped: bool) -> tuple[str, str]:
    """The auxiliary, and the main part. ``helped``: an auxiliary is needed."""
    base = f"{phrase.head} {phrase.rest}".strip()
    singular = agree in ("he", "she", "it", "one")
    if modal or tense == "future":
        return modal or "will", base
    if tense == "perfect":
        return ("has" if singular else "have"), perfect(phrase)
    if tense.endswith("progressive") and phrase.head != "be":
        return _be(agree, tense.startswith("past")), f"{gerund(phrase.head)} {phrase.rest}".strip()
    if phrase.head == "be":
        return _be(agree, tense.startswith("past")), phrase.rest
    is_past = tense.startswith("past")
    if helped:
        return ("did" if is_past else "does" if singular else "do"), base
    form = past(phrase.head) if is_past else third_person(phrase.head) if singular else phrase.head
    return "", f"{form} {phrase.rest}".strip()


def _negate(aux: str) -> str:
    if aux in ("am", "may", "must"):
        return aux + " not"
    return NEGATED.get(aux) or aux + "n't"


def finite(
    person: Person,
    phrase: VerbPhrase,
    tense: str = "present",
    *,
    negative: bool = False,
    modal: str = "",
    question: bool = False,
    mid: str = "",
    asked: str = "",
    subjectless: bool = False,
) -> str:
    """Say a clause in English, without its capital and its mark.

    Args:
        person: The subject.
        phrase: What it does, with everything that follows.
        tense: past, present, future, perfect, progressive or past progressive.
        negative: Whether it is denied.
        modal: can, may, should, must, would, …; "" for none.
        question: Whether it asks.
        mid: An adverb beside the auxiliary: always, never, really.
        asked: The question word in front: what, where.
        subjectless: Whether the question word is the subject: who ate?

    Returns:
        The clause.
    """
    negative = negative or phrase.negative
    if phrase.head == "still":
        phrase, mid = VerbPhrase.parse(phrase.rest), "still"
    if phrase.cannot:
        modal, negative = ("could" if tense.startswith("past") else "can"), True
        if tense == "future":
            phrase, modal = VerbPhrase.parse(ABLE + infinitive(phrase)), ""
    asks = question and not subjectless
    aux, main = _parts(person.agree, phrase, tense, modal, asks or negative)
    main = f"{mid} {main}".strip() if mid else main
    if asks:
        if negative:
            # Am I not tired?
            front, after = (aux, " not") if aux in ("am", "may", "must") else (_negate(aux), "")
        else:
            front, after = aux, ""
        text = f"{asked} {front} {person.name}{after} {main}"
    elif subjectless:
        text = f"{asked} {_negate(aux) if negative else aux} {main}"
    elif negative:
        if aux == "am":
            text = f"I'm not {main}" if person.name == "I" else f"{person.name} am not {main}"
        else:
            text = f"{person.name} {_negate(aux)} {main}"
    elif aux in CONTRACTED and person.name in PRONOUNS and main:
        text = f"{person.name}{CONTRACTED[aux]} {main}"
    else:
        text = f"{person.name} {aux} {main}"
    return person.fill(" ".join(text.split()))


def tag(person: Person, phrase: VerbPhrase, tense: str, *, negative: bool = False) -> str:
    """The question after a statement: "isn't it", "did you"."""
    aux, _ = _parts(person.agree, phrase, tense, "", helped=True)
    if aux == "am":
        return "am I" if negative else "aren't I"
    return f"{aux if negative else _negate(aux)} {person.pronoun}"

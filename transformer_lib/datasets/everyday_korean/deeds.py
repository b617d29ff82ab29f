"""What someone does: a verb with its object, its place, its company and its adverb."""

from dataclasses import dataclass, field

from transformer_lib.datasets.everyday_korean import tables
from transformer_lib.datasets.everyday_korean.cast import kin_korean, named
from transformer_lib.datasets.everyday_korean.forms import Chain, adnominal
from transformer_lib.datasets.everyday_korean.phrasing import VerbPhrase
from transformer_lib.datasets.everyday_korean.sentence import Notes
from transformer_lib.datasets.everyday_korean.tables import Adverb, Noun, Place, Verb
from transformer_lib.datasets.korean_english import english as en
from transformer_lib.datasets.korean_english.dice import Dice
from transformer_lib.datasets.korean_english.morphology import particle

__all__ = ["DESCRIBED_BY", "Deed", "draw_deed", "noun_english", "place_noun", "plural"]


def plural(noun: Noun) -> str:
    """The plural of a noun that can be counted."""
    return noun.several or en.plural(noun.english)


def noun_english(noun: Noun, article: str = "a", before: str = "", many: bool = False) -> str:
    """A noun as an object.

    Args:
        noun: The noun.
        article: a, the, own, gen (the whole kind: apples), bare or person.
        before: An adjective.
        many: Whether there are several.

    Returns:
        The noun with its article.
    """
    if noun.number == "fixed":
        return noun.english
    name = f"{before} {noun.english}".strip()
    if noun.kind == "place" and article == "gen":
        article = "the"
    if noun.number == "name":
        return name
    if noun.number == "my" or (noun.number == "own" and article != "bare"):
        if noun.number == "own" and article == "the":
            return f"the {name}"
        return "{own} " + (noun.several or name if noun.number == "own" else name)
    if article == "bare":
        return noun.several or name
    if article == "own":
        return "{own} " + name
    if noun.number == "the" or article == "the":
        return f"the {plural(noun)}" if many and noun.number == "count" else f"the {name}"
    if article == "gen" and noun.number == "count":
        return plural(noun)
    if many and noun.number == "count":
        return f"{before} {plural(noun)}".strip()
    return en.article(name) if noun.number in ("count", "a") else name


def place_noun(place: Place) -> str:
    """The place as a noun phrase: home, the station, Seoul."""
    return place.at.split(" ", 1)[-1]


DESCRIBED_BY: dict[str, list[tuple[tables.Adjective, str]]] = {}
for _adjective in tables.ADJECTIVES:
    for _noun, _english in _adjective.nouns:
        DESCRIBED_BY.setdefault(_noun.word, []).append((_adjective, _english))
_PREDICATIVE = {"worn out", "close", "far", "the same", "enough", "necessary", "okay", "too"}
_SEEN = {  # adjectives that one can say of a thing one buys or brings
    "big",
    "small",
    "long",
    "short",
    "thick",
    "thin",
    "new",
    "old",
    "expensive",
    "cheap",
    "sweet",
    "fresh",
    "hot",
    "cold",
    "warm",
    "pretty",
    "cute",
    "cool",
    "comfortable",
    "sturdy",
    "soft",
    "white",
    "black",
    "red",
    "blue",
    "yellow",
    "round",
    "heavy",
    "light",
    "delicious",
    "spicy",
    "interesting",
    "difficult",
    "easy",
    "special",
    "clean",
    "beautiful",
    "salty",
    "sour",
}
GIVING = {
    "주": "드리",
    "보여 주": "보여 드리",
    "빌려주": "빌려드리",
    "돌려주": "돌려드리",
    "물어보": "여쭤보",
}  # to somebody one honours
COMPANIONS = (*tables.KINDS["kin"], *tables.NAMES, *tables.KINDS["relation"])


@dataclass(slots=True)
class Deed:
    """A verb with all that goes with it but the subject, the time and the ending."""

    verb: Verb
    object: Noun | None = None
    korean_object: str = ""
    english_object: str = ""
    korean_recipient: str = ""
    english_recipient: str = ""
    korean_company: str = ""
    english_company: str = ""
    place: Place | None = None
    adverb: Adverb | None = None
    dropped: bool = False
    notes: Notes = field(default_factory=Notes)

    def chain(self) -> Chain:
        """The predicate, and the words of its own that stand before it: 시험을 보다."""
        before, _, stem = self.verb.stem.rpartition(" ")
        is_verb = self.verb.stem not in ("필요하", "익숙하", "예의 바르")
        if self.korean_recipient.endswith("께") and self.verb.stem in GIVING:
            return Chain(GIVING[self.verb.stem])
        # A verb of two stems, 보여 주다, stays together.
        if before and before[-1] in "을를":
            return Chain(stem, before=before + " ")
        return Chain(self.verb.stem, is_verb)

    def complements(self, dice: Dice, level: str, gap: str = "") -> list[str]:
        """What stands between subject and predicate in Korean; ``gap`` leaves the object out."""
        parts = []
        flags, frequent = self.verb.flags, self.adverb and self.adverb.position == "mid"
        if self.korean_company:
            parts.append(self.korean_company)
        if self.adverb and frequent:
            parts.append(self.adverb.korean)
        if self.adverb and not frequent and flags & {"move", "into"} and dice.chance(0.5):
            parts.append(self.adverb.korean)
            frequent = True
        if self.place and gap != "place":
            parts.append(self.place_korean(dice, level))
        if self.korean_recipient:
            parts.append(self.korean_recipient)
        if self.object and gap != "object" and not self.dropped:
            parts.append(self.object_korean(dice, level))
        if self.adverb and not frequent:
            parts.append(self.adverb.korean)
        return parts

    def object_korean(self, dice: Dice, level: str) -> str:
        """The object with the particle its verb asks for."""
        forms = {"를": "을/를", "이": "이/가", "와": "과/와", "로": "으로/로"}.get(
            self.verb.particle, self.verb.particle
        )
        if forms == "에게" and self.object and self.object.honours:
            forms = "께"
        if forms == "에게" and level in ("해", "해요") and dice.chance(0.4):
            forms = "한테"
        if forms in ("에게", "한테") and self.object and self.object.kind in ("special", "place"):
            forms = "에"
        if forms == "과/와" and level in ("해", "해요") and dice.chance(0.5):
            forms = "하고" if dice.chance(0.5) else "이랑/랑"
        if forms == "을/를" and level == "해" and dice.chance(0.35):
            return self.korean_object
        return particle(self.korean_object, forms)

    def place_korean(self, dice: Dice, level: str) -> str:
        """The place with the particle its verb asks for."""
        assert self.place is not None
        noun, flags = self.place.noun.korean, self.verb.flags
        if "into" in flags:
            return particle(noun, "으로/로")
        if flags & {"move", "static", "static2"}:
            bare = level == "해" and "move" in flags and dice.chance(0.25)
            return noun if bare else noun + "에"
        if "from" in flags:
            return noun + "에서"
        if self.verb.english.endswith("{in}"):
            return particle(noun, "을/를")
        return noun + "에서"

    def english(self, gap: str = "") -> VerbPhrase:
        """The English verb phrase; ``gap`` leaves the object or the place out."""
        text = self.verb.english
        verb = self.verb
        place = ""
        if self.place and gap != "place":
            goes = verb.flags & {"move", "into"}
            place = self.place.to if goes else self.place.at
            if "from" in verb.flags:
                place = place_noun(self.place)
            if text.endswith("{in}"):
                place = "around " + place_noun(self.place)
        near = bool(verb.flags & {"move", "into", "from", "static", "static2"}) or "{in}" in text
        for slot in ("{@}", "{from}", "{in}"):
            text = text.replace(slot, "")
        what = "" if gap == "object" else self.english_object
        text = text.replace("{}", what)
        parts = [text, place if near else "", self.english_recipient]
        if self.adverb and self.adverb.position == "end":
            parts.append(self.adverb.english)
        parts += [self.english_company, "" if near else place]
        phrase = " ".join(" ".join(part for part in parts if part).split())
        return VerbPhrase.parse(("not " if "neg" in verb.flags else "") + phrase)

    @property
    def abroad(self) -> bool:
        """Whether it takes one to another country."""
        where = self.place.group if self.place else self.object.kind if self.object else ""
        return where == "country"

    @property
    def mid(self) -> str:
        """The adverb that English puts before the verb."""
        return self.adverb.english if self.adverb and self.adverb.position == "mid" else ""


def person_korean(dice: Dice, noun: Noun, level: str) -> str:
    """Somebody as an object or a companion."""
    if noun.kind == "name":
        return named(dice, noun, level)
    return kin_korean(dice, noun, level) if noun.kind == "kin" else noun.korean


def person_english(noun: Noun, korean: str = "") -> str:
    """Somebody as an object or a companion, in English; 제 and 우리 are always the speaker's."""
    if korean.startswith(("제 ", "내 ", "우리 ")):
        return "my " + noun.english
    if noun.number in ("my", "own"):
        return "{own} " + noun.english
    return noun_english(noun, "the")


def _object(dice: Dice, deed: Deed, noun: Noun, level: str) -> None:
    verb = deed.verb
    deed.object = noun
    deed.notes.noun(noun, verb.word)
    if noun.kind in ("name", "kin", "relation", "elder") and noun.number != "fixed":
        deed.korean_object = person_korean(dice, noun, level)
        deed.english_object = person_english(noun, deed.korean_object)
        return
    deed.korean_object, deed.english_object = noun.korean, noun_english(noun, verb.article)
    if noun.number == "fixed" or verb.article in ("bare", "gen", "person"):
        return
    if noun.number in ("count", "mass", "plural") and verb.article in ("a", "the"):
        if dice.chance(0.07):
            which = dice.weighted({"이": 2.0, "그": 2.0, "저": 1.0})
            many = noun.number == "plural"
            word = {"이": "these" if many else "this"}.get(which, "those" if many else "that")
            deed.korean_object = f"{which} {noun.korean}"
            deed.english_object = f"{word} {noun.english}"
        elif dice.chance(0.11):
            _describe(dice, deed, noun, verb)


def _describe(dice: Dice, deed: Deed, noun: Noun, verb: Verb) -> None:
    fitting = [
        (adjective, english)
        for adjective, english in DESCRIBED_BY.get(noun.word, [])
        if english in _SEEN and english not in _PREDICATIVE
    ]
    if not fitting:
        return
    adjective, english = dice.one(fitting)
    before = adnominal(Chain(adjective.stem, False), "present")
    deed.korean_object = f"{before} {noun.korean}"
    deed.english_object = noun_english(noun, verb.article, english)
    deed.notes.pair(adjective.word, noun.word)


def draw_deed(
    dice: Dice,
    verb: Verb,
    level: str,
    noun: Noun | None = None,
    *,
    plain: bool = False,
    avoid: str = "",
    frequent: bool = False,
) -> Deed:
    """Draw what goes with a verb.

    Args:
        dice: What draws.
        verb: The verb.
        level: How the sentence ends, for the particles.
        noun: Its object, or one is drawn.
        plain: Whether to leave out place, company and adverb where the verb allows it.
        avoid: A word that must not stand in the deed: its subject's.
        frequent: Whether "always" and "often" fit.

    Returns:
        The deed.
    """
    deed = Deed(verb)
    flags = verb.flags
    deed.notes.word(verb.word)
    if verb.objects:
        noun = noun or dice.one(verb.objects)
        while noun.word == avoid:
            noun = dice.one(verb.objects)
        _object(dice, deed, noun, level)
    if "to" in flags and dice.chance(0.75):
        who = dice.one(COMPANIONS)
        if who.word != avoid and who.korean not in ("남편", "아내"):
            dative = "께" if who.honours else "에게"
            if dative == "에게" and level in ("해", "해요") and dice.chance(0.5):
                dative = "한테"
            deed.korean_recipient = person_korean(dice, who, level) + dative
            deed.english_recipient = "to " + person_english(who, deed.korean_recipient)
            deed.notes.word(who.word)
    if "{}" in verb.english and verb.english.startswith("ask about"):
        deed.english_recipient = ""
        deed.korean_recipient = ""
    bound = bool(flags & {"move", "into", "from", "static", "static2"}) or "{in}" in verb.english
    if verb.places and (bound or (not plain and dice.chance(0.35))):
        deed.place = dice.one(verb.places)
        deed.notes.noun(deed.place.noun, verb.word)
    if plain:
        return deed
    if "with" in flags and dice.chance(0.13):
        who = dice.one(COMPANIONS)
        if who.word != avoid and who.word not in deed.notes.words:
            joint = dice.weighted({"과/와": 5.0, "하고": 3.0, "이랑/랑": 2.0})
            if level in ("합니다", "한다"):
                joint = "과/와"
            deed.korean_company = particle(person_korean(dice, who, level), joint)
            if dice.chance(0.6):
                deed.korean_company += dice.one((" 같이", " 함께"))
            deed.english_company = "with " + person_english(who, deed.korean_company)
            deed.notes.word(who.word)
    if verb.adverbs and dice.chance(0.3):
        adverb = dice.one(verb.adverbs)
        alone = adverb.english in ("alone", "by {self}")
        if not (alone and deed.korean_company) and (frequent or adverb.position != "mid"):
            deed.adverb = adverb
            deed.notes.word(adverb.korean)
    return deed

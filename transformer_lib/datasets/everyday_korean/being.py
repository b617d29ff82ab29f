"""Who and what people and things are, and where things lie: identity, existence, position."""

from dataclasses import replace

from transformer_lib.datasets.everyday_korean import tables
from transformer_lib.datasets.everyday_korean.cast import PERSONS, Actor, draw_actor
from transformer_lib.datasets.everyday_korean.deeds import noun_english
from transformer_lib.datasets.everyday_korean.describing import thing_actor
from transformer_lib.datasets.everyday_korean.forms import Chain, be, ending, honorific
from transformer_lib.datasets.everyday_korean.phrasing import Person, VerbPhrase, finite
from transformer_lib.datasets.everyday_korean.sentence import Notes, Sentence, finish
from transformer_lib.datasets.everyday_korean.settings import draw_level
from transformer_lib.datasets.korean_english.dice import Dice
from transformer_lib.datasets.korean_english.morphology import particle

__all__ = ["identity", "is_somewhere", "there_is", "this_is"]

_NATIONS = dict(
    pair.split("/")
    for pair in [
        "일본/Japanese",
        "중국/Chinese",
        "한국/Korean",
        "이탈리아/Italian",
        "프랑스/French",
        "태국/Thai",
        "베트남/Vietnamese",
        "멕시코/Mexican",
        "독일/German",
        "영국/British",
        "스페인/Spanish",
        "그리스/Greek",
        "러시아/Russian",
        "미국/American",
        "캐나다/Canadian",
        "호주/Australian",
        "브라질/Brazilian",
        "인도:India/Indian",
        "이집트/Egyptian",
        "스위스/Swiss",
        "몽골/Mongolian",
        "싱가포르/Singaporean",
        "스웨덴/Swedish",
        "대만/Taiwanese",
    ]
)
_NOT = {"해요": "아니에요", "합니다": "아닙니다", "해": "아니야", "한다": "아니다"}
_NOT_ASKED = {"해요": "아니에요", "합니다": "아닙니까", "해": "아니야", "한다": "아니니"}
_WAS_NOT = {"해요": "아니었어요", "합니다": "아니었습니다", "해": "아니었어", "한다": "아니었다"}
_JOBS = (
    *tables.KINDS["job"],
    *(
        noun
        for noun in tables.KINDS["person"]
        if noun.korean
        in (
            "학생",
            "대학생",
            "고등학생",
            "중학생",
            "초등학생",
            "외국인",
            "관광객",
            "유학생",
            "회원",
            "주인",
        )
    ),
)


def _predicate(
    dice: Dice, noun: str, level: str, tense: str, asks: bool, denied: bool, honours: bool = False
) -> str:
    if denied:
        negative = _WAS_NOT[level] if tense == "past" else (_NOT_ASKED if asks else _NOT)[level]
        return f"{particle(noun, '이/가')} {negative}"
    return be(noun, tense, level, asks, honours)


def identity(dice: Dice) -> Sentence:
    """I'm a doctor. Is Minsu Japanese? My father was a teacher. That man isn't a student."""
    level = draw_level(dice)
    asks = dice.chance(0.2)
    notes = Notes()
    actor = draw_actor(dice, level, asks)
    denied = not asks and dice.chance(0.13)
    tense = "past" if dice.chance(0.12) else "present"
    notes.word(actor.word)
    plural = actor.person.agree in ("we", "they")
    if dice.chance(0.3):
        country, adjective = dice.one(list(_NATIONS.items()))
        notes.word(country)
        noun, what = country.partition(":")[0] + " 사람", adjective
    else:
        job = dice.one(_JOBS)
        notes.noun(job)
        noun = job.korean
        many = job.several or noun_english(job, "gen")
        what = many if plural else noun_english(job)
    if actor.kind in ("kin", "elder") and actor.honours and denied:
        actor = replace(actor, honours=False)
    if actor.kind in ("elder", "person"):
        return identity(dice)
    korean = _predicate(dice, noun, level, tense, asks, denied, actor.honours)
    text = finite(actor.person, VerbPhrase("be", what), tense, negative=denied, question=asks)
    subject = actor.with_particle(dice, level, True)
    construction = "honorific" if actor.honours else "identity"
    return finish(f"{subject} {korean}", text, notes, construction, "?" if asks else ".")


_THESE = [
    ("이건", "this"),
    ("그건", "that"),
    ("저건", "that"),
    ("이것은", "this"),
    ("저것은", "that"),
    ("그것은", "that"),
]
_POINTED = [
    noun
    for noun in tables.NOUNS
    if noun.kind
    in (
        "thing",
        "book",
        "clothes",
        "gadget",
        "furniture",
        "accessory",
        "fruit",
        "apple",
        "vegetable",
        "dish",
        "snack",
        "drink",
        "stationery",
        "kitchen",
        "headwear",
        "glasses",
        "footwear",
        "flower",
        "tree",
        "car",
        "picture",
        "bike",
        "ticket",
        "medicine",
        "chestnut",
        "meat",
        "seafood",
        "ingredient",
        "animals",
        "pet",
        "bird",
        "insect",
        "instrument",
        "building",
    )
    and noun.number != "fixed"
]
_OWNED = (
    "thing",
    "book",
    "clothes",
    "gadget",
    "accessory",
    "headwear",
    "glasses",
    "footwear",
    "car",
    "bike",
    "stationery",
)


def this_is(dice: Dice) -> Sentence:
    """This is my bag. Is that a dictionary? This isn't Minsu's car. This is my friend."""
    level = draw_level(dice)
    asks = dice.chance(0.22)
    denied = not asks and dice.chance(0.15)
    notes = Notes()
    mark = "?" if asks else "."
    if dice.chance(0.17):
        return _person_is(dice, level, asks)
    korean_this, english_this = dice.one(_THESE)
    if level == "한다":
        korean_this, english_this = dice.one(_THESE[3:])
    noun = dice.one(_POINTED)
    notes.noun(noun)
    many = noun.number == "plural"
    owner_korean, what = "", noun_english(noun, "a")
    if noun.number == "the":
        what = f"a {noun.english}" if not noun.english.endswith("s") else noun.english
    if noun.kind in _OWNED and dice.chance(0.5):
        owner = dice.weighted({"me": 3.0, "name": 3.0, "you": 1.0})
        if owner == "me":
            owner_korean = "제 " if level in ("해요", "합니다") else "내 "
            what = f"my {noun.english}"
        elif owner == "you" and level == "해":
            owner_korean, what = "네 ", f"your {noun.english}"
        else:
            who = dice.one(tables.NAMES)
            title = " 씨" if level in ("해요", "합니다") else ""
            owner_korean = (
                f"{who.korean}{title} " if dice.chance(0.5) else f"{who.korean}{title}의 "
            )
            what = f"{who.english}'s {noun.english}"
            notes.word(who.word)
    if many:
        person = Person({"this": "these"}.get(english_this, "those"), "they")
    else:
        person = Person(english_this)
    korean = _predicate(dice, f"{owner_korean}{noun.korean}", level, "present", asks, denied)
    text = finite(person, VerbPhrase("be", what), negative=denied, question=asks)
    return finish(f"{korean_this} {korean}", text, notes, "identity", mark)


def _person_is(dice: Dice, level: str, asks: bool) -> Sentence:
    notes = Notes()
    which, english = dice.one(
        (
            ("이 사람은", "this"),
            ("저 사람은", "that"),
            ("이분은", "this"),
            ("그 사람은", "that person"),
        )
    )
    honours = which == "이분은"
    noun = dice.one([*tables.KINDS["relation"], *tables.KINDS["kin"], *PERSONS])
    if noun.number == "my":
        first = "제 " if level in ("해요", "합니다") else "내 "
        owner = "your" if asks else "my"
        if asks:
            first = ""
        if noun.korean in ("부모님", "가족", "짝"):
            return _person_is(dice, level, asks)
        korean, what = first + noun.korean, f"{owner} {noun.english}"
    else:
        korean, what = noun.korean, noun_english(noun)
    honours = honours and level in ("해요", "합니다")
    notes.noun(noun)
    predicate = be(korean, "present", level, asks, honours)
    text = finite(Person(english), VerbPhrase("be", what), question=asks)
    return finish(f"{which} {predicate}", text, notes, "identity", "?" if asks else ".")


_POSITIONS = {
    "위": "on",
    "아래": "under",
    "밑": "under",
    "옆": "next to",
    "앞": "in front of",
    "뒤": "behind",
    "안": "in",
    "속": "in",
}
_SURFACES = ("책상", "식탁", "의자", "침대", "소파", "탁자", "책장", "냉장고", "텔레비전", "피아노")
_INSIDES = (
    "가방",
    "상자",
    "냉장고",
    "서랍",
    "지갑",
    "배낭",
    "여행 가방",
    "옷장",
    "바구니",
    "필통",
    "쇼핑백",
)
_SMALL = [
    n
    for kind in (
        "thing",
        "book",
        "stationery",
        "kitchen",
        "fruit",
        "apple",
        "glasses",
        "headwear",
        "ticket",
        "news",
        "text",
        "accessory",
        "clothes",
        "pet",
        "snack",
        "document",
    )
    for n in tables.KINDS[kind]
    if n.number in ("count", "plural", "own")
]
_TINY = [
    n
    for n in _SMALL
    if n.kind
    in (
        "stationery",
        "ticket",
        "fruit",
        "apple",
        "accessory",
        "glasses",
        "snack",
        "book",
        "document",
    )
]
_BUILDINGS = [
    place
    for place in tables.PLACES
    if place.group
    in (
        "shop",
        "errand",
        "show",
        "station",
        "park",
        "bookshop",
        "pharmacy",
        "bakery",
        "eat",
        "gym",
        "flowershop",
    )
    and "{own}" not in place.at
    and place.noun.korean not in ("한강", "서울역", "부산역")
]


def _position(dice: Dice, small: tables.Noun) -> tuple[str, str, str]:
    inside = dice.chance(0.4) and small in _TINY
    word = dice.one(("안", "속")) if inside else dice.one(("위", "아래", "밑", "옆", "앞", "뒤"))
    base = dice.one(_INSIDES if inside else _SURFACES)
    if word in ("아래", "밑"):
        base = dice.one(("책상", "의자", "침대", "소파", "식탁"))
    if word == "위":
        base = dice.one(("책상", "식탁", "의자", "침대", "소파", "탁자"))
    if word == "뒤":
        base = dice.one(("소파", "책장", "냉장고", "텔레비전"))
    noun = tables.noun_of(base)
    return f"{base} {word}", f"{_POSITIONS[word]} the {noun.english}", noun.word


def there_is(dice: Dice) -> Sentence:
    """There is a book on the desk. There isn't a bank near here. Is there a park here?"""
    level = draw_level(dice)
    asks = dice.chance(0.2)
    notes = Notes()
    denied = dice.chance(0.18)
    tense = "past" if dice.chance(0.13) else "present"
    chain = Chain("없" if denied else "있", False)
    if dice.chance(0.3):
        place = dice.one(_BUILDINGS)
        other = dice.one(_BUILDINGS)
        if place.noun.word == other.noun.word:
            return there_is(dice)
        notes.word(place.noun.word)
        name = place.at.split(" ", 1)[1].removeprefix("the ").removeprefix("a ")
        what = Person("there")
        spot = dice.weighted({"이 근처에": 4.0, "여기에": 2.0, "near": 4.0})
        where = {"이 근처에": "near here", "여기에": "here"}.get(spot, "")
        if spot == "near":
            side, preposition = dice.one(
                (
                    ("옆에", "next to"),
                    ("앞에", "in front of"),
                    ("뒤에", "behind"),
                    ("근처에", "near"),
                )
            )
            notes.word(other.noun.word)
            base = other.at.split(" ", 1)[1]
            base = f"the {base[2:]}" if base.startswith("a ") else base
            spot, where = f"{other.noun.korean} {side}", f"{preposition} {base}"
        if name.endswith(("'s", "hall", "square")):
            return there_is(dice)
        article = "an " if name[0] in "aeio" else "a "
        english = VerbPhrase("be", f"{article}{name} {where}")
        text = finite(what, english, tense, negative=denied, question=asks)
        korean = (
            f"{spot} {particle(place.noun.korean, '이/가')} {ending(chain, tense, level, asks)}"
        )
        return finish(korean, text, notes, "existence", "?" if asks else ".")
    small = dice.one(_SMALL)
    spot, where, base = _position(dice, small)
    if base == small.word:
        return there_is(dice)
    notes.noun(small, "있다")
    notes.word(base)
    many = small.number == "plural"
    person = Person("there", "they" if many else "it")
    if small.number == "own":
        thing, person = "", Person(("your " if asks else "my ") + small.english)
        text = finite(person, VerbPhrase("be", where), tense, negative=denied, question=asks)
    else:
        thing = noun_english(small, "a")
        if denied and many:
            thing = "any " + thing
        text = finite(
            person, VerbPhrase("be", f"{thing} {where}"), tense, negative=denied, question=asks
        )
    korean = f"{spot}에 {particle(small.korean, '이/가')} {ending(chain, tense, level, asks)}"
    return finish(korean, text, notes, "existence", "?" if asks else ".")


_STAYING = [
    place
    for place in tables.PLACES
    if place.group
    in (
        "home",
        "school",
        "work",
        "eat",
        "shop",
        "errand",
        "park",
        "gym",
        "show",
        "station",
        "stay",
        "vehicle",
        "city",
        "country",
        "faith",
    )
]


def is_somewhere(dice: Dice) -> Sentence:
    """I'm at home. My mother is in the kitchen. Your bag is under the chair."""
    level = draw_level(dice)
    asks = dice.chance(0.25)
    notes = Notes()
    if dice.chance(0.4):
        small = dice.one(_SMALL)
        spot, where, base = _position(dice, small)
        if base == small.word:
            return is_somewhere(dice)
        actor: Actor = thing_actor(dice, small, level, asks=asks)
        notes.word(small.word, base)
        korean = ending(Chain("있", False), "present", level, asks)
        text = finite(actor.person, VerbPhrase("be", where), question=asks)
        subject = actor.with_particle(dice, level, True)
        return finish(
            f"{subject} {spot}에 {korean}", text, notes, "existence", "?" if asks else "."
        )
    actor = draw_actor(dice, level, asks)
    place = dice.one(_STAYING)
    notes.word(actor.word)
    notes.noun(place.noun, "있다")
    denied = dice.chance(0.15)
    tense = "past" if dice.chance(0.25) else "present"
    chain = Chain("없" if denied else "있")
    if actor.honours:
        chain = honorific(Chain("있"), "계시")
        if denied:
            return is_somewhere(dice)
    now = "지금 " if tense == "present" and dice.chance(0.35) else ""
    phrase = VerbPhrase("be", place.at).plus("now" if now else "")
    if now:
        notes.word("지금")
    korean = ending(chain, tense, level, asks)
    if level == "한다" and not asks and tense == "present" and not actor.honours:
        korean = "없다" if denied else "있다"
    text = finite(actor.person, phrase, tense, negative=denied, question=asks)
    subject = actor.with_particle(dice, level, True)
    construction = "honorific" if actor.honours else "existence"
    words = f"{subject} {now}{place.noun.korean}에 {korean}"
    return finish(words, text, notes, construction, "?" if asks else ".")

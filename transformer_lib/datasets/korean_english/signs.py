"""Names of shops, and signs that forbid or allow: phrases, not sentences."""

from transformer_lib.datasets.korean_english import lexicon as lex
from transformer_lib.datasets.korean_english.content import Content, Sentence
from transformer_lib.datasets.korean_english.dice import Dice
from transformer_lib.datasets.korean_english.parts import (
    INDIA,
)

_FOODS = {
    "카레": "curry",
    "국수": "noodle",
    "만두": "dumpling",
    "볶음밥": "fried rice",
    "수프": "soup",
    "피자": "pizza",
    "닭고기": "chicken",
    "소고기": "beef",
    "해산물": "seafood",
    "음식": "food",
    "요리": "cuisine",
}


_SHOPS = {
    "전문점": "restaurant",
    "식당": "restaurant",
    "축제": "festival",
    "요리책": "cookbook",
    "배달": "delivery",
}


_PRODUCTS = {
    "영화": "movie",
    "음악": "music",
    "소설": "novel",
    "역사": "history",
    "미술": "art",
    "여행": "travel",
    "문화": "culture",
}


_PRODUCT_HEADS = {
    "축제": "festival",
    "박물관": "museum",
    "수업": "class",
    "전시회": "exhibition",
    "동아리": "club",
    "안내서": "guidebook",
}


_SIGNS = {group: lex._entries(cell) for group, cell in lex._rows("signs")}


_SIGN_PLACES = [p for p in lex.PLACES if p.group in _SIGNS] + [
    place
    for place in dict.fromkeys(p for verb in lex.VERBS for p in verb.places if p.noun.sense)
    if place.group == "path"
]


_SIGN_TIMES = {"야간": "at night", "주말": "on weekends", "평일": "on weekdays"}


def shop_name(dice: Dice) -> Sentence:
    """Indian curry restaurant."""
    origin = dice.one(lex.COUNTRIES) if dice.chance(0.9) else INDIA
    if dice.chance(0.7):
        (food, food_english), (head, head_english) = (
            dice.one(list(_FOODS.items())),
            dice.one(list(_SHOPS.items())),
        )
    else:
        (food, food_english), (head, head_english) = (
            dice.one(list(_PRODUCTS.items())),
            dice.one(list(_PRODUCT_HEADS.items())),
        )
    content = Content()
    content.noun(origin)
    content.pair(origin.word, food)
    content.words[head] = None
    korean = f"{origin.korean} {food} {head}"
    adjective = origin.english if food == "여행" else origin.adjective or origin.english
    english = f"{adjective} {food_english} {head_english}"
    if head not in ("요리책", "안내서") and dice.chance(0.45):
        city = dice.one([p for p in lex.PLACES if p.group == "city"])
        content.noun(city.noun)
        korean, english = f"{city.noun.korean} {korean}", f"{english} {city.at}"
    elif dice.chance(0.3):
        korean, english = f"유명한 {korean}", f"famous {english}"
        content.words["유명하다"] = None
    elif dice.chance(0.2):
        korean, english = f"새 {korean}", f"new {english}"
    return content.sentence(korean, english)


# 인도 통화 is also the currency of India; nobody parks on stairs.
_UNFIT = {("인도", "판매"), ("인도", "통화")} | {
    (indoors, action) for indoors in ("계단", "복도") for action in ("주행", "주차", "정차")
}


def sign(dice: Dice) -> Sentence:
    """No riding on the sidewalk."""
    place = dice.one(_SIGN_PLACES[-2:]) if dice.chance(0.12) else dice.one(_SIGN_PLACES)
    action, action_english = dice.one(_SIGNS[place.group])
    if (place.noun.korean, action) in _UNFIT:
        return sign(dice)
    allowed = action not in ("흡연", "음주", "주행") and dice.chance(0.3)
    time = dice.one(list(_SIGN_TIMES)) if dice.chance(0.4) else ""
    korean = " ".join(
        [place.noun.korean, *([time] if time else []), action, "허용" if allowed else "금지"]
    )
    said = f"{action_english} allowed" if allowed else f"no {action_english}"
    english = " ".join([said, place.at, *([_SIGN_TIMES[time]] if time else [])])
    content = Content()
    content.noun(place.noun, action)
    content.words["허용" if allowed else "금지"] = None
    return content.sentence(korean, english[0].upper() + english[1:])

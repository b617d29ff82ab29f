"""Draws sentences: every frame in its share."""

from collections.abc import Callable
from random import Random

from transformer_lib.datasets.korean_english import (
    compounds,
    occasions,
    signs,
    specials,
    statements,
)
from transformer_lib.datasets.korean_english.content import Sentence
from transformer_lib.datasets.korean_english.dice import Dice

__all__ = ["Sentence", "draw"]

SHORTEST, LONGEST = 2, 14  # Korean words
FRAMES: dict[Callable[[Dice], Sentence], float] = {
    statements.statement: 24.0,
    statements.about_a_thing: 20.0,
    statements.yes_no_question: 8.0,
    statements.open_question: 5.0,
    statements.description: 14.0,
    statements.identity: 3.0,
    statements.existence: 5.0,
    statements.request: 9.0,
    compounds.two_deeds: 6.0,
    compounds.contrast: 5.0,
    compounds.purpose: 4.0,
    compounds.relative_clause: 9.0,
    occasions.weather_report: 2.0,
    occasions.pain: 3.0,
    occasions.apology: 1.0,
    occasions.consequence: 3.0,
    occasions.condition: 3.0,
    specials.decided_homonym: 10.0,
    specials.counted_homonym: 2.0,
    specials.way: 1.5,
    signs.shop_name: 3.0,
    signs.sign: 6.0,
    specials.foreign_thing: 2.0,
}


def draw(random: Random) -> Sentence:
    """Draw a sentence."""
    dice = Dice(random)
    while True:
        sentence = dice.weighted(FRAMES)(dice)
        if SHORTEST <= sentence.korean.count(" ") + 1 <= LONGEST:
            return sentence

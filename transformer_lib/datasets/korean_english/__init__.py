"""Korean sentences with English translations, made by a grammar.

The grammar draws a meaning and says it in both languages. ``lexicon`` reads the words from
``tables``, ``morphology`` and ``english`` inflect them, ``grammar`` says a clause in each language.
``statements``, ``compounds``, ``occasions``, ``specials`` and ``signs`` hold the frames, ``corpus``
decides what is kept from training. The English is settled by the Korean: the same Korean never
comes with two translations.
"""

from transformer_lib.datasets.korean_english.baselines import (
    majority_accuracy,
    majority_senses,
    sense_accuracy,
)
from transformer_lib.datasets.korean_english.corpus import (
    KEY_PHRASES,
    LARGEST,
    WITHHELD_PAIRS,
    Splits,
    generate,
    splits,
)
from transformer_lib.datasets.korean_english.lexicon import HOMONYMS
from transformer_lib.datasets.korean_english.sentences import Sentence

__all__ = [
    "HOMONYMS",
    "KEY_PHRASES",
    "LARGEST",
    "WITHHELD_PAIRS",
    "Sentence",
    "Splits",
    "generate",
    "majority_accuracy",
    "majority_senses",
    "sense_accuracy",
    "splits",
]

"""What can be had without a model, and how translations of homonyms are judged."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from transformer_lib.datasets.korean_english.lexicon import HOMONYMS
from transformer_lib.datasets.korean_english.sentences import Sentence

__all__ = ["majority_accuracy", "majority_senses", "sense_accuracy"]


def sense_accuracy(sentences: Sequence[Sentence], translations: Sequence[str]) -> float:
    """Share of homonyms whose sense a translation gets right.

    A homonym counts as right when the translation has one of the English words that show its
    sense, in any inflection, and none that shows a sense the homonym does not have in the
    sentence. ``HOMONYMS`` lists the words.

    Args:
        sentences: Sentences, at least one of them with a homonym.
        translations: A translation of each.

    Returns:
        The share, from 0 to 1, over all homonyms of all sentences.

    Raises:
        ValueError: There are more or fewer translations than sentences, or no homonym.
    """
    if len(sentences) != len(translations):
        raise ValueError(
            f"translations: expected {len(sentences)}, one for each sentence, "
            f"got {len(translations)}"
        )
    verdicts = []
    for sentence, translation in zip(sentences, translations, strict=True):
        words = set(re.findall("[a-z]+", translation.lower()))
        meant = set(sentence.senses)
        for homonym, sense in sentence.senses:
            others = [
                word
                for other, accepted in HOMONYMS[homonym].items()
                if (homonym, other) not in meant
                for word in accepted
            ]
            right = not words.isdisjoint(map(str.lower, HOMONYMS[homonym][sense]))
            verdicts.append(right and words.isdisjoint(map(str.lower, others)))
    if not verdicts:
        raise ValueError("sentences: expected at least one homonym, got none")
    return sum(verdicts) / len(verdicts)


def majority_senses(train: Iterable[Sentence]) -> dict[str, str]:
    """The sense that each homonym has most often.

    Args:
        train: Sentences to count in.

    Returns:
        Homonym and sense, for the homonyms that occur. Of equally frequent senses, the one that
        comes first.
    """
    counts = Counter(sense for sentence in train for sense in sentence.senses)
    return {homonym: sense for (homonym, sense), _ in reversed(counts.most_common())}


def majority_accuracy(train: Iterable[Sentence], sentences: Iterable[Sentence]) -> float:
    """Share of homonyms that have their most frequent sense of the training sentences.

    Args:
        train: Sentences to count in.
        sentences: Sentences to judge, at least one of them with a homonym.

    Returns:
        The share, from 0 to 1: what a translator gets that never looks at the context.

    Raises:
        ValueError: ``sentences`` has no homonym.
    """
    majority = majority_senses(train)
    verdicts = [
        majority.get(homonym) == sense
        for sentence in sentences
        for homonym, sense in sentence.senses
    ]
    if not verdicts:
        raise ValueError("sentences: expected at least one homonym, got none")
    return sum(verdicts) / len(verdicts)

"""A sentence, and the gathering of its content words."""

from typing import NamedTuple

from transformer_lib.datasets.everyday_korean.tables import Noun

__all__ = ["Notes", "Sentence", "finish"]


class Sentence(NamedTuple):
    """A Korean sentence and its translation.

    Attributes:
        korean: The sentence, in NFC.
        english: Its translation.
        words: Ids of its content words in order of mention; a homonym's names its sense.
        senses: (homonym, sense) for every homonym in it.
        pairs: Content words that belong together: verb and object, adjective and noun, ….
        construction: What the sentence shows: past, request, because, ….
    """

    korean: str
    english: str
    words: tuple[str, ...]
    senses: tuple[tuple[str, str], ...]
    pairs: tuple[tuple[str, str], ...]
    construction: str


class Notes:
    """Gathers the content words of a sentence, its senses and the pairs that belong together."""

    def __init__(self) -> None:
        self.words: dict[str, None] = {}
        self.senses: dict[tuple[str, str], None] = {}
        self.pairs: dict[tuple[str, str], None] = {}

    def word(self, *words: str) -> None:
        """Add words; "" is none."""
        for word in words:
            if word:
                self.words[word] = None
                homonym, colon, sense = word.partition(":")
                if colon:
                    self.senses[homonym, sense] = None

    def pair(self, first: str, second: str) -> None:
        """Add two words that belong together."""
        self.word(first, second)
        self.pairs[first, second] = None

    def noun(self, noun: Noun, *partners: str) -> None:
        """Add a noun, and its pairs with these words."""
        self.word(noun.word)
        for partner in partners:
            self.pair(partner, noun.word)


def finish(korean: str, english: str, notes: Notes, construction: str, mark: str = ".") -> Sentence:
    """Make a sentence, with a capital and the mark at its end."""
    korean = " ".join(korean.split())
    english = english[0].upper() + english[1:]
    senses = tuple(notes.senses)
    pairs = tuple(notes.pairs)
    return Sentence(
        f"{korean}{mark}", f"{english}{mark}", tuple(notes.words), senses, pairs, construction
    )

"""A sentence, and the gathering of its content words."""

from typing import NamedTuple

from transformer_lib.datasets.korean_english.grammar import Clause, NounPhrase
from transformer_lib.datasets.korean_english.lexicon import Noun, Phrase

__all__ = ["Content", "Sentence", "finish"]


class Sentence(NamedTuple):
    """A Korean sentence and its translation.

    Attributes:
        korean: The sentence, in NFC.
        english: Its translation.
        words: Ids of its content words in order of mention; a homonym's names its sense.
        senses: (homonym, sense) for every homonym in it.
        pairs: Content words that belong together: verb and object, adjective and noun, ….
    """

    korean: str
    english: str
    words: tuple[str, ...]
    senses: tuple[tuple[str, str], ...]
    pairs: tuple[tuple[str, str], ...]


class Content:
    """Gathers the content words of a sentence, its senses and the pairs that belong together."""

    def __init__(self) -> None:
        self.words: dict[str, None] = {}
        self.senses: dict[tuple[str, ...], None] = {}
        self.pairs: dict[tuple[str, str], None] = {}

    def noun(self, noun: Noun, *partners: str) -> None:
        """Add a noun, and its pairs with these words."""
        self.words[noun.word] = None
        if noun.sense:
            self.senses[noun.sense] = None
        for partner in partners:
            self.pair(partner, noun.word)

    def pair(self, first: str, second: str) -> None:
        """Add two words that belong together."""
        self.words[first] = self.words[second] = None
        self.pairs[first, second] = None

    def phrase(self, phrase: NounPhrase, *partners: str) -> None:
        """Add a noun phrase, and the noun's pairs with these words."""
        noun = phrase.noun
        if noun.number == "pronoun":
            return
        self.noun(noun, *partners)
        if phrase.adjective:
            self.pair(phrase.adjective.word, noun.word)
        if phrase.origin:
            self.noun(phrase.origin)
            self.pair(phrase.origin.word, noun.word)
        if phrase.owner and phrase.owner.number != "pronoun":
            self.noun(phrase.owner)
        if phrase.count and noun.sense:
            self.pair(f"한 {noun.counter}", noun.word)
        if phrase.relative:
            self.clause(phrase.relative)

    def adverb(self, phrase: Phrase | None) -> None:
        """Add an adverbial; "at night" is the night."""
        if phrase and phrase.korean == "밤에":
            self.words["밤:night"] = None
            self.senses["밤", "night"] = None
        elif phrase:
            self.words[phrase.korean] = None

    def clause(self, clause: Clause) -> "Content":
        """Add all that a clause says, and return self."""
        predicate = clause.predicate
        if isinstance(predicate, NounPhrase):
            self.phrase(clause.subject)
            self.phrase(predicate)
            return self
        word = predicate.word
        self.words[word] = None
        self.phrase(clause.subject, word)
        for phrase in (clause.object, clause.standard):
            if phrase:
                self.phrase(phrase, word)
        for phrase in (clause.recipient, clause.companion):
            if phrase:
                self.phrase(phrase)
        for place in (clause.place, clause.source):
            if place:
                self.noun(place.noun, word)
        for adverb in (clause.time, clause.adverbial, clause.frequency, clause.degree):
            self.adverb(adverb)
        return self

    def sentence(self, korean: str, english: str) -> Sentence:
        """Make a sentence of what was gathered."""
        senses = tuple((homonym, sense) for homonym, sense in self.senses)
        return Sentence(korean, english, tuple(self.words), senses, tuple(self.pairs))


def finish(korean: str, english: str, question: bool, content: Content) -> Sentence:
    """Make a sentence, with a capital and the mark at its end."""
    mark = "?" if question else "."
    return content.sentence(korean + mark, english[0].upper() + english[1:] + mark)

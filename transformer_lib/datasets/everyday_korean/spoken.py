"""English as it is spoken: the contractions that this grammar always makes."""

import re

__all__ = ["colloquial"]

_NOT = {
    "do": "don't",
    "does": "doesn't",
    "did": "didn't",
    "is": "isn't",
    "are": "aren't",
    "was": "wasn't",
    "were": "weren't",
    "will": "won't",
    "could": "couldn't",
    "must": "must not",
    "has": "hasn't",
    "have": "haven't",
}
_SHORT = {"am": "'m", "is": "'s", "are": "'re", "will": "'ll"}
_DENIED = re.compile(r"\b(do|does|did|is|are|was|were|will|could|has|have) not\b", re.IGNORECASE)
_PRONOUN = re.compile(r"\b(I|we|you|they|he|she|it) (am|is|are|will)\b(?! ?[?.,])", re.IGNORECASE)
_ASKED = re.compile(r"^(Do|Does|Did|Is|Are|Was|Were|Will|Could)\b")


def colloquial(english: str) -> str:
    """Contract "did not" to "didn't", "I am" to "I'm" and "cannot" to "can't".

    "Please do not" and "does not. " at the end of a clause are contracted like the rest; a pronoun
    and its verb are not contracted in a question, where they do not belong together.
    """

    def denied(match: re.Match[str]) -> str:
        word = match.group(1)
        short = _NOT[word.lower()]
        return short.capitalize() if word[0].isupper() else short

    text = english.replace("cannot", "can't")
    text = _DENIED.sub(denied, text)
    if _ASKED.match(text):
        return text
    return _PRONOUN.sub(lambda match: match.group(1) + _SHORT[match.group(2).lower()], text)

"""Exercises of chapter 14, Translation."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from transformer_lib.course.exercises import Exercise, same_function

Words = Sequence[Sequence[str]]


def _towards(noun: str) -> str:
    return noun + ("로" if (ord(noun[-1]) - ord("가")) % 28 in (0, 8) else "으로")


def _towards_by_remainder(noun: str) -> str:
    _, final = divmod(ord(noun[-1]) - 0xAC00, 28)
    if final == 0 or final == 8:
        return noun + "로"
    return noun + "으로"


def _final(noun: str) -> int:
    return (ord(noun[-1]) - ord("가")) % 28


def _texts(*texts: str) -> list[list[str]]:
    return [text.split() for text in texts]


def _sequences(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _corpus_precision(translations: Words, references: Words, n: int) -> float:
    matched = total = 0
    for translation, reference in zip(translations, references, strict=True):
        found = _sequences(translation, n)
        matched += sum((found & _sequences(reference, n)).values())
        total += sum(found.values())
    return matched / total


def _by_crossing_out(translations: Words, references: Words, n: int) -> float:
    matched = total = 0
    for translation, reference in zip(translations, references, strict=True):
        left = [tuple(reference[i : i + n]) for i in range(len(reference) - n + 1)]
        for i in range(len(translation) - n + 1):
            total += 1
            if tuple(translation[i : i + n]) in left:
                left.remove(tuple(translation[i : i + n]))
                matched += 1
    return matched / total


def _not_clipped(translations: Words, references: Words, n: int) -> float:
    matched = total = 0
    for translation, reference in zip(translations, references, strict=True):
        found, wanted = _sequences(translation, n), _sequences(reference, n)
        matched += sum(count for words, count in found.items() if words in wanted)
        total += sum(found.values())
    return matched / total


def _mean_of_sentences(translations: Words, references: Words, n: int) -> float:
    each = [
        _corpus_precision([translation], [reference], n)
        for translation, reference in zip(translations, references, strict=True)
    ]
    return sum(each) / len(each)


def _recall(translations: Words, references: Words, n: int) -> float:
    return _corpus_precision(references, translations, n)


def _across_sentences(translations: Words, references: Words, n: int) -> float:
    joined = [[word for words in texts for word in words] for texts in (translations, references)]
    return _corpus_precision([joined[0]], [joined[1]], n)


def _sets(translations: Words, references: Words, n: int) -> float:
    matched = total = 0
    for translation, reference in zip(translations, references, strict=True):
        found = set(_sequences(translation, n))
        matched += len(found & set(_sequences(reference, n)))
        total += len(found)
    return matched / total


def _f_score(precision: float, recall: float, beta: float) -> float:
    if precision == recall == 0:
        return 0.0
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


def _f_score_as_mean(precision: float, recall: float, beta: float) -> float:
    if 0 in (precision, recall):
        return 0.0
    return (1 + beta * beta) / (1 / precision + beta * beta / recall)


def _swapped(precision: float, recall: float, beta: float) -> float:
    return _f_score(recall, precision, beta)


def _beta_not_squared(precision: float, recall: float, beta: float) -> float:
    if precision == recall == 0:
        return 0.0
    return (1 + beta) * precision * recall / (beta * precision + recall)


def _ordinary_mean(precision: float, recall: float, beta: float) -> float:
    return (precision + beta**2 * recall) / (1 + beta**2)


def _balanced(precision: float, recall: float, beta: float) -> float:
    return _f_score(precision, recall, 1.0)


def _join_at(pieces: list[str], place: int) -> list[str]:
    return [*pieces[:place], pieces[place] + pieces[place + 1], *pieces[place + 2 :]]


def _encode(word: str, ranks: dict[tuple[str, str], int]) -> list[str]:
    pieces = list(word)
    while True:
        pairs = list(pairwise(pieces))
        known = [pair for pair in pairs if pair in ranks]
        if not known:
            return pieces
        pieces = _join_at(pieces, pairs.index(min(known, key=lambda pair: ranks[pair])))


def _encode_all_merges(word: str, ranks: dict[tuple[str, str], int]) -> list[str]:
    pieces = list(word)
    for pair in sorted(ranks, key=lambda pair: ranks[pair]):
        joined: list[str] = []
        for piece in pieces:
            if joined and (joined[-1], piece) == pair:
                joined[-1] += piece
            else:
                joined.append(piece)
        pieces = joined
    return pieces


def _from_the_left(word: str, ranks: dict[tuple[str, str], int]) -> list[str]:
    pieces = list(word)
    while True:
        places = [i for i in range(len(pieces) - 1) if (pieces[i], pieces[i + 1]) in ranks]
        if not places:
            return pieces
        pieces = _join_at(pieces, places[0])


def _highest_rank(word: str, ranks: dict[tuple[str, str], int]) -> list[str]:
    return _encode(word, {pair: -rank for pair, rank in ranks.items()})


def _once(word: str, ranks: dict[tuple[str, str], int]) -> list[str]:
    pieces = list(word)
    places = [i for i in range(len(pieces) - 1) if (pieces[i], pieces[i + 1]) in ranks]
    if not places:
        return pieces
    return _join_at(pieces, min(places, key=lambda i: ranks[pieces[i], pieces[i + 1]]))


def _longest_token(word: str, ranks: dict[tuple[str, str], int]) -> list[str]:
    tokens = {"".join(pair) for pair in ranks}
    pieces, place = [], 0
    while place < len(word):
        end = next(
            end
            for end in range(len(word), place, -1)
            if end == place + 1 or word[place:end] in tokens
        )
        pieces.append(word[place:end])
        place = end
    return pieces


RANKS = {("u", "g"): 0, ("u", "n"): 1, ("h", "ug"): 2, ("h", "u"): 3, ("t", "h"): 4, ("n", "g"): 5}

EXERCISES = (
    Exercise(
        name="towards",
        judge=same_function(
            _towards, ("도서관",), ("학교",), ("서울",), ("지하철",), ("부엌",), ("바다",), ("집",)
        ),
        right=(_towards, _towards_by_remainder),
        mistakes={
            "ㄹ is an exception: 서울로": lambda noun: noun + ("으로" if _final(noun) else "로"),
            "it is the other way round: 으로 stands after a consonant": lambda noun: (
                noun + ("으로" if _final(noun) in (0, 8) else "로")
            ),
            "ㄹ is the only exception; other consonants take 으로": lambda noun: noun + "로",
            "the noun itself is missing: return noun and particle": lambda noun: (
                "로" if _final(noun) in (0, 8) else "으로"
            ),
        },
    ),
    Exercise(
        name="corpus-precision",
        judge=same_function(
            _corpus_precision,
            (_texts("the the the the the the the"), _texts("the cat is on the mat"), 1),
            (_texts("a a b", "c d e f g"), _texts("a b a b", "c d d e f h i"), 2),
            (_texts("a b c d e", "b"), _texts("a b c x e", "a c"), 1),
            (_texts("a b a b", "c d"), _texts("a b a b c", "b c e f"), 2),
        ),
        right=(_corpus_precision, _by_crossing_out),
        mistakes={
            "not clipped: a sequence counts at most as often as the reference has it": (
                _not_clipped
            ),
            "this is the mean over sentences: add up matches and totals first": _mean_of_sentences,
            "this is recall: divide by the number of sequences in the translations": _recall,
            "no sequence reaches from one sentence into the next": _across_sentences,
            "equal sequences of one sentence were counted once only": _sets,
        },
    ),
    Exercise(
        name="f-score",
        judge=same_function(
            _f_score, (0.5, 0.25, 2.0), (0.9, 0.3, 1.0), (0.2, 0.8, 3.0), (0.0, 0.0, 2.0)
        ),
        right=(_f_score, _f_score_as_mean),
        mistakes={
            "precision and recall have changed places: beta weighs recall": _swapped,
            "beta is squared": _beta_not_squared,
            "this is the weighted arithmetic mean: the harmonic one is asked for": _ordinary_mean,
            "beta is not used": _balanced,
        },
    ),
    Exercise(
        name="encode-by-rank",
        judge=same_function(
            _encode, ("thug", RANKS), ("hun", RANKS), ("ung", RANKS), ("thughug", RANKS), ("x", {})
        ),
        right=(_encode, _encode_all_merges),
        mistakes={
            "the leftmost pair was joined: the one of lowest rank goes first": _from_the_left,
            "the pair learnt last was joined first: it is the lowest rank that goes first": (
                _highest_rank
            ),
            "only one pair was joined: go on until no known pair is left": _once,
            "these are the longest tokens from the left, not the pairs by rank": _longest_token,
        },
    ),
)

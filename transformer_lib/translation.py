"""Translation: text to tokens, tokens through the Transformer, tokens to text, and scores.

Explained in chapter 14, "Translation" (book/14_translation.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from torch import Tensor

from transformer_lib._checks import translation as check
from transformer_lib.decoding import CachedDecoder, beam_search, greedy
from transformer_lib.files import read_tokenizer, write_model
from transformer_lib.hub import find_published
from transformer_lib.transformer import Transformer

__all__ = [
    "END",
    "PADDING",
    "START",
    "UNKNOWN",
    "Scores",
    "Translator",
    "encode_pairs",
    "nearest_neighbours",
    "plain_text",
    "score",
    "token_ids",
    "train_tokenizer",
]

PADDING, START, END, UNKNOWN = 0, 1, 2, 3
_SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
_INVISIBLE = re.compile(  # control characters but white space, joiners, marks of order, fillers
    r"[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    r"\U000e0000-\U000e0fff]"
)


def plain_text(text: str) -> str:
    """Return a text in NFC, without the characters that cannot be seen, such as a byte order mark.

    A Korean syllable is one character then, whether it came composed or as its letters.
    """
    check.plain_text(text)
    return unicodedata.normalize("NFC", _INVISIBLE.sub("", text))


def train_tokenizer(texts: Iterable[str], vocabulary_size: int) -> Tokenizer:
    """Learn one vocabulary of subwords for all texts, by byte-pair encoding.

    Texts are taken as :func:`plain_text` returns them. A space belongs to the word that follows it
    and is written ▁; every punctuation mark and digit stands alone. No pair is joined across these
    borders, neither in learning nor in encoding. Of pairs that are equally frequent, the one whose
    parts have the smaller ids is joined first.

    Args:
        texts: Source and target sentences alike, so that one embedding can serve both.
        vocabulary_size: Number of tokens at most, with the special ones ``PADDING``, ``START``,
            ``END`` and ``UNKNOWN``, which stands for a character that is not in the texts.

    Source: Sennrich et al. (2016), section 3.2.
    """
    check.train_tokenizer(texts, vocabulary_size)
    texts = [plain_text(text) for text in texts]
    characters = set().union(*texts) - {" "} | {"▁"}
    check.vocabulary(texts, len(characters) + len(_SPECIAL), vocabulary_size, len(_SPECIAL))
    tokenizer = Tokenizer(models.BPE(unk_token=_SPECIAL[UNKNOWN]))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(),
            pre_tokenizers.Punctuation(),
            pre_tokenizers.Digits(individual_digits=True),
        ]
    )
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size, special_tokens=list(_SPECIAL), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.encode_special_tokens = True
    return tokenizer


def token_ids(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Return the token ids of texts, in which everything is text.

    A special token that is spelt out is encoded like any other word. Whether it is stands neither
    in a tokenizer's file nor in its pickle or copy, so it is said here, each time.
    """
    check.token_ids(texts)
    if not tokenizer.encode_special_tokens:
        tokenizer.encode_special_tokens = True
    return [tokenizer.encode(plain_text(text)).ids for text in texts]


def encode_pairs(
    tokenizer: Tokenizer, pairs: Iterable[Sequence[Any]]
) -> list[tuple[list[int], list[int]]]:
    """Return token ids of source and target sentences, as training takes them.

    Args:
        tokenizer: As :func:`train_tokenizer` returns it.
        pairs: Source and target sentence, the first two entries of each.

    Returns:
        A source ends with the end token; a target begins with the start token and ends with the
        end token.
    """
    pairs = list(pairs)
    sources, targets = (token_ids(tokenizer, [pair[side] for pair in pairs]) for side in (0, 1))
    return [
        ([*source, END], [START, *target, END])
        for source, target in zip(sources, targets, strict=True)
    ]


class Scores(NamedTuple):
    """How near translations come to their references, from 0 to 100."""

    bleu: float  # shared sequences of one to four words, with a penalty for shortness
    chrf: float  # chrF2: shared sequences of one to six characters


def score(translations: Sequence[str], references: Sequence[str]) -> Scores:
    """Score a whole set of translations by sacreBLEU with its defaults.

    Args:
        translations: The translations.
        references: One reference for each.

    Source: Papineni et al. (2002); Popović (2015); Post (2018).
    """
    check.score(translations, references)
    try:
        import sacrebleu
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "score needs sacrebleu: pip install 'building-the-transformer[scores]'"
        ) from None
    bleu = sacrebleu.corpus_bleu(translations, [references])
    chrf = sacrebleu.corpus_chrf(translations, [references])
    return Scores(bleu.score, chrf.score)


def nearest_neighbours(known: Sequence[str], texts: Sequence[str]) -> list[int]:
    """Return for each text which of the known ones shares most with it, as a place in ``known``.

    What is shared is measured by the cosine similarity of the sets of character pairs. Of several
    equally near the first is returned. Copying the neighbour's translation is the baseline that
    tells memory from translation.
    """
    check.nearest_neighbours(known, texts)
    columns = {pair: number for number, pair in enumerate(sorted(set().union(*map(_pairs, known))))}
    asked = _table(texts, columns)
    best, place = torch.full((len(texts),), -1.0), torch.zeros(len(texts), dtype=torch.int64)
    for first in range(0, len(known), 4096):
        block = _table(known[first : first + 4096], columns)
        # A text's own number of pairs would divide all its similarities alike.
        similarity, nearest = (asked @ block.T / block.sum(dim=1).sqrt()).max(dim=1)
        better = similarity > best
        best = torch.where(better, similarity, best)
        place = torch.where(better, nearest + first, place)
    return place.tolist()


def _table(texts: Sequence[str], columns: dict[str, int]) -> Tensor:
    """Return a row per text, with 1 in the column of each pair of characters that it has."""
    rows = torch.zeros(len(texts), len(columns))
    for row, text in zip(rows, texts, strict=True):
        row[[columns[pair] for pair in _pairs(text) if pair in columns]] = 1
    return rows


def _pairs(text: str) -> set[str]:
    text = f" {plain_text(text)} "
    return {text[place : place + 2] for place in range(len(text) - 1)}


class Translator:
    """A Transformer with its tokenizer: text in, text out.

    ::

        translator = Translator.from_pretrained("ko-en")
        translator.translate("인도 카레 전문점")

    Args:
        model: A trained model whose two vocabularies are the tokenizer's; it is put into
            evaluation mode and stays on its device.
        tokenizer: As :func:`train_tokenizer` returns it.
    """

    def __init__(self, model: Transformer, tokenizer: Tokenizer) -> None:
        check.translator(model.config, tokenizer, _SPECIAL)
        self.model = model.eval()
        self.tokenizer = tokenizer

    @classmethod
    def from_pretrained(cls, name: str | os.PathLike[str]) -> "Translator":
        """Read a translator that comes with the library, or one that was saved.

        Args:
            name: "ko-en", or a folder that :meth:`save_pretrained` wrote. A folder of your own
                that is called ko-en is "./ko-en".
        """
        folder = find_published(name)
        tokenizer = read_tokenizer(folder)
        try:
            return cls(Transformer.from_pretrained(folder), tokenizer)
        except (TypeError, ValueError) as error:
            raise ValueError(f"name: the files in {folder} make no translator: {error}") from None

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write ``config.json``, ``model.safetensors`` and ``tokenizer.json`` into ``folder``."""
        tokenizer = {"tokenizer.json": self.tokenizer.to_str(pretty=True)}
        write_model(folder, self.model.config.to_json(), self.model.state_dict(), tokenizer)

    def translate(self, text: str, *, beams: int = 1, alpha: float = 0.6) -> str:
        """Translate one sentence; arguments and result as in :meth:`translate_all`."""
        return self.translate_all([text], beams=beams, alpha=alpha)[0]

    def translate_all(
        self, texts: Sequence[str], *, beams: int = 1, alpha: float = 0.6, rows: int = 64
    ) -> list[str]:
        """Return the translations of sentences, in their order.

        One is at most 50 tokens longer than its source (Vaswani et al., 2017, section 6.1) and is
        cut there if it has not ended.

        Args:
            texts: One sentence each. White space of any kind and length separates words.
            beams: 1 is greedy decoding; more, up to 100, is beam search.
            alpha: Length penalty of beam search.
            rows: How many sentences to translate at once, those of one length in tokens. It
                changes the speed, and the translations no more than rounding does.
        """
        check.translate_all(texts, beams, alpha, rows)
        sources = [self.encode(text) for text in texts]
        translations = [""] * len(sources)
        for places in _of_one_length(sources, rows):
            decoded = self._decode([sources[place] for place in places], beams, alpha)
            for place, tokens in zip(places, decoded, strict=True):
                translations[place] = self.tokenizer.decode(tokens)
        return translations

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a sentence as the model takes them.

        A text that cannot be translated is refused: one without words, one that is longer than the
        model's ``max_length``, one of whose characters half or more are unknown.
        """
        words = plain_text(text).split()
        tokens = [*token_ids(self.tokenizer, [" ".join(words)])[0], END]
        check.sentence(text, words, tokens, UNKNOWN, self.model.config.max_length)
        return tokens

    def _decode(self, sources: list[list[int]], beams: int, alpha: float) -> list[list[int]]:
        """Return the target tokens of sources that have one length."""
        source = torch.tensor(sources, device=self.model.source_embedding.weight.device)
        decoder = CachedDecoder(self.model, source, key_mask=torch.ones_like(source).bool())
        limit = min(source.shape[1] + 50, self.model.config.max_length)
        barred = (PADDING, START, UNKNOWN)
        rules: dict[str, Any] = {"start": START, "end": END, "max_length": limit}
        if beams == 1:
            return greedy(decoder, forbidden=barred, **rules).tolist()
        found = beam_search(decoder, beams=beams, alpha=alpha, forbidden=barred, **rules)
        return [hypotheses[0].tokens for hypotheses in found]


def _of_one_length(sources: Sequence[Sequence[int]], rows: int) -> Iterator[list[int]]:
    """Yield the places of at most so many sources that have one length."""

    def length(place: int) -> int:
        return len(sources[place])

    for _, group in groupby(sorted(range(len(sources)), key=length), key=length):
        alike = list(group)
        for first in range(0, len(alike), rows):
            yield alike[first : first + rows]

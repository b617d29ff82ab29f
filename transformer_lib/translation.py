"""Translation: text to tokens, tokens through the Transformer, tokens to text, and scores.

Explained in chapter 14, "Translation" (book/14_translation.ipynb). Generated from there by
tools/export.py; edit the notebook.
"""

import os
import unicodedata
from collections.abc import Iterable, Sequence
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from torch import Tensor

from transformer_lib.decoding import CachedDecoder, beam_search, greedy
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
    "score",
    "train_tokenizer",
]

PADDING, START, END, UNKNOWN = 0, 1, 2, 3
_SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")


def train_tokenizer(texts: Iterable[str], vocabulary_size: int) -> Tokenizer:
    """Learn one vocabulary of subwords for all texts, by byte-pair encoding.

    Texts are normalised to NFC, so that a Korean syllable is one character whether it came
    composed or as its letters. A space belongs to the word that follows it and is written ▁;
    every punctuation mark and digit stands alone. No pair is joined across these borders, neither
    in learning nor in encoding. Of pairs that are equally frequent, the one whose parts have the
    smaller ids is joined first.

    Args:
        texts: Source and target sentences alike, so that one embedding can serve both.
        vocabulary_size: Number of tokens at most, with the four special ones: ``PADDING``,
            ``START``, ``END`` and ``UNKNOWN``, which stands for a character that is not in the
            texts. There are fewer when no pair is left to join.

    Returns:
        A tokenizer. Decoding what it encoded gives the text back, in NFC, if the text has no
        unknown characters, no ▁ and no space at its start. Special tokens that are spelt out in a
        text are encoded as any other text.

    Raises:
        TypeError: ``texts`` is one text.
        ValueError: There is no text, or its characters alone are more than the vocabulary holds.

    Source: Sennrich et al. (2016), section 3.2.
    """
    if isinstance(texts, str):
        raise TypeError("texts: expected several texts, got one")
    texts = [unicodedata.normalize("NFC", text) for text in texts]
    if not any(texts):
        raise ValueError("texts: expected text, got none")
    characters = set().union(*texts) - {" "} | {"▁"}
    needed = len(characters) + len(_SPECIAL)
    if vocabulary_size < needed:
        raise ValueError(
            f"vocabulary_size: expected at least {needed}, one for each of {len(characters)} "
            f"characters and {len(_SPECIAL)} special tokens, got {vocabulary_size}"
        )
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
    sources, targets = (tokenizer.encode_batch([pair[side] for pair in pairs]) for side in (0, 1))
    return [
        ([*source.ids, END], [START, *target.ids, END])
        for source, target in zip(sources, targets, strict=True)
    ]


class Scores(NamedTuple):
    """How near translations come to their references, from 0 to 100.

    Attributes:
        bleu: BLEU: shared sequences of one to four words, with a penalty for shortness.
        chrf: chrF2: shared sequences of one to six characters.
    """

    bleu: float
    chrf: float


def score(translations: Sequence[str], references: Sequence[str]) -> Scores:
    """Score a whole set of translations by sacreBLEU with its defaults.

    Args:
        translations: The translations.
        references: One reference for each.

    Raises:
        ModuleNotFoundError: sacrebleu is not installed.
        TypeError: One text is given instead of several.
        ValueError: There are none, or not as many references.

    Source: Papineni et al. (2002); Popović (2015); Post (2018).
    """
    for name, texts in (("translations", translations), ("references", references)):
        if isinstance(texts, str):
            raise TypeError(f"{name}: expected several texts, got one")
    if not translations or len(translations) != len(references):
        raise ValueError(
            f"references: expected one for each of {len(translations)} translations, and at least "
            f"one, got {len(references)}"
        )
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

    Args:
        known: Texts to choose from.
        texts: Texts to find a neighbour for.

    Raises:
        ValueError: Nothing is known.
    """
    if not known:
        raise ValueError("known: expected at least one text, got none")
    columns = {pair: number for number, pair in enumerate(sorted(set().union(*map(_pairs, known))))}

    def table(some: Sequence[str]) -> Tensor:
        """Return a row per text, with 1 in the column of each pair that the text has."""
        rows = torch.zeros(len(some), len(columns))
        for row, text in zip(rows, some, strict=True):
            row[[columns[pair] for pair in _pairs(text) if pair in columns]] = 1
        return rows

    wanted = table(texts)
    best, place = torch.full((len(texts),), -1.0), torch.zeros(len(texts), dtype=torch.int64)
    for first in range(0, len(known), 4096):
        block = table(known[first : first + 4096])
        # A text's own number of pairs would divide all its similarities alike.
        similarity, nearest = (wanted @ block.T / block.sum(dim=1).sqrt()).max(dim=1)
        better = similarity > best
        best = torch.where(better, similarity, best)
        place = torch.where(better, nearest + first, place)
    return place.tolist()


def _pairs(text: str) -> set[str]:
    text = f" {unicodedata.normalize('NFC', text)} "
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

    Raises:
        ValueError: The vocabularies differ in size, the model pads with another token, or the
            tokenizer lacks the special tokens.
    """

    def __init__(self, model: Transformer, tokenizer: Tokenizer) -> None:
        size = tokenizer.get_vocab_size()
        for name, expected in (
            ("source_vocabulary", size),
            ("target_vocabulary", size),
            ("padding_id", PADDING),
        ):
            if (got := getattr(model.config, name)) != expected:
                raise ValueError(
                    f"model: expected {name} = {expected} as the tokenizer has it, got {got}"
                )
        for number, token in enumerate(_SPECIAL):
            if tokenizer.token_to_id(token) != number:
                raise ValueError(
                    f"tokenizer: expected {token} to be token {number}, as train_tokenizer makes "
                    f"it, got {tokenizer.id_to_token(number)}"
                )
        tokenizer.encode_special_tokens = True  # this is not saved with a tokenizer
        self.model = model.eval()
        self.tokenizer = tokenizer

    @classmethod
    def from_pretrained(cls, name: str | os.PathLike[str]) -> "Translator":
        """Read a translator that comes with the library, or one that was saved.

        Args:
            name: "ko-en", or a folder that :meth:`save_pretrained` wrote. A folder of your own
                that is called ko-en is "./ko-en".

        Raises:
            FileNotFoundError: There is neither such a folder nor such a translator, or a file is
                missing in it.
            ValueError: A file is damaged, or the files do not belong together.
        """
        shipped = Path(str(resources.files("transformer_lib") / "models"))
        names = [path.name for path in shipped.glob("*/")]
        folder = shipped / name if name in names else Path(name)
        if not folder.is_dir():
            raise FileNotFoundError(
                f"name: expected a folder or one of {', '.join(names) or 'none'}, got {name}"
            )
        file = folder / "tokenizer.json"
        if not file.is_file():
            raise FileNotFoundError(f"name: no tokenizer.json in {folder}")
        try:
            tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises nothing more exact
            raise ValueError(f"name: {file} is no tokenizer, or is damaged: {error}") from None
        try:
            return cls(Transformer.from_pretrained(folder), tokenizer)
        except (TypeError, ValueError) as error:
            raise ValueError(f"name: the files in {folder} make no translator: {error}") from None

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write ``config.json``, ``model.safetensors`` and ``tokenizer.json`` into ``folder``.

        Each is written beside its place and moved there when it is complete.
        """
        self.model.save_pretrained(folder)
        part = Path(folder) / "tokenizer.json.part"
        part.write_text(self.tokenizer.to_str(pretty=True), encoding="utf-8")
        part.replace(part.with_suffix(""))

    def translate(self, text: str, *, beams: int = 1, alpha: float = 0.6) -> str:
        """Translate one sentence; arguments, result and errors as in :meth:`translate_all`."""
        return self.translate_all([text], beams=beams, alpha=alpha)[0]

    def translate_all(
        self, texts: Sequence[str], *, beams: int = 1, alpha: float = 0.6, rows: int = 64
    ) -> list[str]:
        """Translate sentences.

        Args:
            texts: One sentence each. White space of any kind and length separates words.
            beams: 1 is greedy decoding; more is beam search.
            alpha: Length penalty of beam search.
            rows: How many sentences to translate at once, those of one length in tokens. It
                changes the speed, and the translations no more than rounding does.

        Returns:
            The translations, in the same order. One is at most 50 tokens longer than its source
            (Vaswani et al., 2017, section 6.1) and is cut there if it has not ended.

        Raises:
            TypeError: Something else than text is given, or one text instead of several.
            ValueError: A text is empty, half of its characters or more are unknown to the
                tokenizer, or it is longer than the model's ``max_length``.
        """
        if isinstance(texts, str):
            raise TypeError("texts: expected several texts, got one; use translate for that")
        if rows < 1:
            raise ValueError(f"rows: expected 1 or more, got {rows}")
        sources = [self._encode(text) for text in texts]
        translations = [""] * len(sources)
        by_length = sorted(range(len(sources)), key=lambda index: len(sources[index]))
        for _, group in groupby(by_length, key=lambda index: len(sources[index])):
            alike = list(group)
            for first in range(0, len(alike), rows):
                together = alike[first : first + rows]
                decoded = self._decode([sources[index] for index in together], beams, alpha)
                for index, tokens in zip(together, decoded, strict=True):
                    translations[index] = self.tokenizer.decode(tokens)
        return translations

    def _encode(self, text: str) -> list[int]:
        if not isinstance(text, str):
            raise TypeError(f"text: expected str, got {type(text).__name__}")
        words = unicodedata.normalize("NFC", text).split()
        if not words:
            raise ValueError("text: expected words, got an empty text")
        start = repr(text if len(text) <= 40 else text[:40] + "…")
        try:
            tokens = [*self.tokenizer.encode(" ".join(words)).ids, END]
        except TypeError:  # what the library says of half a surrogate pair
            raise ValueError(f"text: expected Unicode characters only, got {start}") from None
        if len(tokens) > self.model.config.max_length:
            raise ValueError(
                f"text: expected at most {self.model.config.max_length} tokens, got {len(tokens)} "
                f"in the text that starts with {start}; translate one sentence at a time"
            )
        if 2 * tokens.count(UNKNOWN) >= sum(map(len, words)):
            raise ValueError(
                f"text: expected the script of the training texts; of {sum(map(len, words))} "
                f"characters {tokens.count(UNKNOWN)} are unknown in {start}"
            )
        return tokens

    def _decode(self, sources: list[list[int]], beams: int, alpha: float) -> list[list[int]]:
        """Return the target tokens of sources that have one length."""
        source = torch.tensor(sources, device=self.model.source_embedding.weight.device)
        limit = min(source.shape[1] + 50, self.model.config.max_length)
        decoder = CachedDecoder(self.model, source)
        barred = (PADDING, START, UNKNOWN)
        if beams == 1:
            rows = greedy(decoder, start=START, end=END, max_length=limit, forbidden=barred)
            return rows.tolist()
        results = beam_search(
            decoder,
            beams=beams,
            start=START,
            end=END,
            max_length=limit,
            alpha=alpha,
            forbidden=barred,
        )
        return [hypotheses[0].tokens for hypotheses in results]

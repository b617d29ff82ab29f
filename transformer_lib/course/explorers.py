"""Pictures to explore: sliders and buttons that run in the page, without a kernel or a network.

Each function returns an :class:`Explorer`. As the last value of a notebook's cell it shows itself
in Jupyter, on Colab and, from the stored output, on a web page; :meth:`Explorer.save` writes a page
of its own. Where no script runs, a description with the first numbers stands in its place. The
functions are also found in ``transformer_lib.course.plotting``.
"""

import copy
import hashlib
import json
import os
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from html import escape
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from transformer_lib._checks.common import (
    require_axes,
    require_floating,
    require_mask,
    require_same_size,
)
from transformer_lib.positional_encoding import sinusoids
from transformer_lib.published.marian import MarianTranslator
from transformer_lib.published.sentences import SentenceEncoder
from transformer_lib.softmax import softmax, softmax_jacobian, softmax_jvp
from transformer_lib.transformer import TextEncoder, Transformer, record_attention
from transformer_lib.translation import START, Translator
from transformer_lib.weighted_sum import weighted_sum

__all__ = [
    "Explorer",
    "explore_attention",
    "explore_detections",
    "explore_masks",
    "explore_positions",
    "explore_softmax",
    "explore_weighted_sum",
]

_MOST_TOKENS = 64


class Explorer:
    """An interactive picture, and the same in words.

    Notebooks show it as HTML with its script inside; ``print`` shows the words. The HTML is the
    same, byte for byte, whenever the numbers are.

    Args:
        kind: Name of the explorer in the script.
        title: What it is about.
        data: The numbers, as JSON takes them.
        words: What it shows at first, a sentence or a row of numbers each.
        picture: HTML of a picture to show where no script runs.
    """

    def __init__(
        self, kind: str, title: str, data: dict[str, Any], words: Sequence[str], picture: str = ""
    ) -> None:
        self.kind = kind
        self.title = title
        self.data = {"title": title} | data
        self.words = tuple(words)
        self._picture = picture

    def __repr__(self) -> str:
        return "\n".join([f"Explorer: {self.title}", *self.words])

    def _repr_html_(self) -> str:
        numbers = json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))
        numbers = numbers.replace("<", r"\u003c")  # no text can end the script
        script = _script(self.kind)
        version = hashlib.sha256(script.encode()).hexdigest()[:12]
        place = hashlib.sha256((version + numbers).encode()).hexdigest()[:12]
        words = "".join(f"<p>{escape(line)}</p>\n" for line in str(self).splitlines())
        # JupyterLab keeps its keyboard shortcuts away from an element with data-lm-suppress-…
        return (
            f'<div data-explorer="{place}" data-lm-suppress-shortcuts="true">\n'
            f"{self._picture}{words}</div>\n"
            "<script>\n"
            f'((all) => (all["{version}"] ??= {script})("{self.kind}", "{place}", {numbers}))'
            "(window.transformerExplorers ??= {});\n"
            "</script>"
        )

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write a web page that holds the explorer and needs nothing else."""
        Path(file).write_text(
            '<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self.title)}</title>\n"
            '<body style="max-width: 52rem; margin: 1rem auto; padding: 0 0.75rem">\n'
            f"<main>\n{self._repr_html_()}\n</main>\n</body>\n</html>\n",
            encoding="utf-8",
        )


@cache
def _script(kind: str) -> str:
    """Return the shared part of the script and that of one explorer, an expression.

    Comments and indentation stay behind: every stored output holds a copy.
    """
    file = resources.files("transformer_lib.course") / "explorers.js"
    first, *parts = re.split(r"^  // == (\w+) =+\n", file.read_text(encoding="utf-8"), flags=re.M)
    named = dict(zip(parts[::2], parts[1::2], strict=True))
    lines = (line.strip() for line in (first + named[kind] + named["shared"]).splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//")).rstrip(";")


def explore_weighted_sum(values: Tensor, weights: Tensor) -> Explorer:
    """Weigh three vectors of the plane and see where their weighted sum lies.

    Sliders set the weights, taken as they are or divided by their sum; the result can also be
    dragged, which finds the weights with sum 1 that give it.

    Args:
        values: Three vectors of shape (3, 2), not on one line.
        weights: The weights at first, of shape (3), from −1 to 2; they are rounded to hundredths.

    Raises:
        TypeError: An argument is not a floating-point tensor.
        ValueError: A shape is wrong, a number is not finite, the values lie on one line, or a
            weight is out of range.
    """
    require_floating(values=values, weights=weights)
    _require_shape("values", values, (3, 2))
    _require_shape("weights", weights, (3,))
    _require_finite(values=values, weights=weights)
    sides = (values[1:] - values[0]).double()
    if sides.det().abs() <= 1e-6 * sides.norm(dim=-1).prod():
        raise ValueError("values: expected three points that are not on one line")
    if not ((weights >= -1) & (weights <= 2)).all():
        raise ValueError(f"weights: expected numbers from -1 to 2, got {weights.tolist()}")
    weights = weights.round(decimals=2)  # where a slider can stand
    result = weighted_sum(weights[None], values)[0]
    words = [
        f"value {number}: {_tuple(value)}, weight {weight:.2f}"
        for number, (value, weight) in enumerate(zip(values, weights, strict=True), start=1)
    ]
    return Explorer(
        "weightedSum",
        "A weighted sum of three vectors",
        {"values": _rounded(values), "weights": _rounded(weights)},
        [*words, f"sum of the weights: {weights.sum():.2f}", f"result: {_tuple(result)}"],
    )


def explore_softmax(scores: Tensor, gradient: Tensor) -> Explorer:
    """Set scores and the temperature; see the softmax, its Jacobian and a gradient through it.

    Args:
        scores: The scores at first, of shape (n) with n from 2 to 8, from −5 to 5; they are rounded
            to tenths.
        gradient: What backpropagation brings, ∂L/∂s, of shape (n). The explorer also offers a
            gradient of ones, and one of the first weight alone.

    Raises:
        TypeError: An argument is not a floating-point tensor, or dtypes or devices differ.
        ValueError: A shape is wrong, a number is not finite, or a score is out of range.
    """
    require_floating(scores=scores, gradient=gradient)
    if scores.dim() != 1 or not 2 <= len(scores) <= 8:
        raise ValueError(f"scores: expected shape (n), n from 2 to 8, got {tuple(scores.shape)}")
    _require_shape("gradient", gradient, tuple(scores.shape))
    _require_finite(scores=scores, gradient=gradient)
    if scores.abs().max() > 5:
        raise ValueError(f"scores: expected numbers from -5 to 5, got {scores.tolist()}")
    scores = scores.round(decimals=1)  # where a slider can stand
    weights = softmax(scores)
    jacobian = softmax_jacobian(weights)
    one_hot = torch.zeros_like(gradient)
    one_hot[0] = 1
    gradients = [gradient, torch.ones_like(gradient), one_hot]
    return Explorer(
        "softmax",
        "Softmax, its Jacobian and a gradient through it",
        {"scores": _rounded(scores), "gradients": [_rounded(u) for u in gradients]},
        [
            f"scores: {_tuple(scores)}, temperature 1.00",
            f"weights: {_tuple(weights, 3)}",
            *(f"row {i} of the Jacobian: {_tuple(row)}" for i, row in enumerate(jacobian, start=1)),
            f"gradient that arrives: {_tuple(gradient)}",
            f"gradient of the scores: {_tuple(softmax_jvp(weights, gradient))}",
        ],
    )


def explore_positions(
    d_model: int = 16, length: int = 64, *, places: tuple[int, int] = (10, 17)
) -> Explorer:
    """Pick two places and see their sinusoids, the turn of each pair and the inner product.

    Args:
        d_model: Columns of the encoding, an even number from 2 to 32.
        length: How many places there are, from 2 to 512.
        places: The two places at first.

    Raises:
        ValueError: A number is out of range.
    """
    if d_model not in range(2, 33, 2):
        raise ValueError(f"d_model: expected an even number from 2 to 32, got {d_model}")
    if not 2 <= length <= 512:
        raise ValueError(f"length: expected 2 to 512, got {length}")
    if len(places) != 2 or not all(0 <= place < length for place in places):
        raise ValueError(f"places: expected two from 0 to {length - 1}, got {places}")
    p, q = places
    first, second = sinusoids(length, d_model)[[p, q]].double()
    cosines = (first * second).view(-1, 2).sum(dim=-1)
    return Explorer(
        "positions",
        "Two places in the positional encoding",
        {"d_model": d_model, "length": length, "places": [p, q]},
        [
            f"places p = {p} and q = {q} in an encoding with {d_model} columns",
            f"cosine of the turn of each pair: {_tuple(cosines, 3)}",
            f"their sum, the inner product: {_number(float(cosines.sum()), 3)}",
        ],
    )


def explore_masks(
    scores: Tensor,
    queries: Sequence[str],
    keys: Sequence[str] | None = None,
    *,
    key_mask: Tensor | None = None,
) -> Explorer:
    """Draw a mask over a matrix of scores and see the weights that are left.

    Args:
        scores: Scores of shape (queries, keys), at most 8 × 8 and no more queries than keys.
        queries: The words that ask.
        keys: The words that are asked, by default the same.
        key_mask: True on real tokens, False on padding: (keys).

    Raises:
        TypeError: ``scores`` is not a floating-point tensor, or ``key_mask`` is not boolean.
        ValueError: A shape is wrong, or a score is not finite.
    """
    keys = queries if keys is None else keys
    require_floating(scores=scores)
    _require_shape("scores", scores, (len(queries), len(keys)))
    if not 1 <= len(queries) <= len(keys) <= 8:
        raise ValueError(
            "scores: expected 1 to 8 keys and no more queries than keys, "
            f"got shape {tuple(scores.shape)}"
        )
    _require_finite(scores=scores)
    if key_mask is None:
        key_mask = torch.ones(len(keys), dtype=torch.bool)
    require_mask(key_mask, "key_mask")
    _require_shape("key_mask", key_mask, (len(keys),))
    weights = softmax(scores)
    return Explorer(
        "masks",
        "A mask over scores, and the weights it leaves",
        {
            "scores": _rounded(scores),
            "queries": list(queries),
            "keys": list(keys),
            "padding": (~key_mask).tolist(),
        },
        [
            f"keys: {', '.join(keys)}",
            *(
                f"query {query}, nothing hidden: scores {_tuple(line)}, weights {_tuple(row)}"
                for query, line, row in zip(queries, scores, weights, strict=True)
            ),
        ],
    )


class _Sentence(NamedTuple):
    """What a model saw, and where it looked."""

    name: str
    source: list[str]
    target: list[str]
    next: list[str]  # the model's choice after each target token
    weights: dict[str, Tensor]  # of shape (n_heads, queries, keys)


_Text = str | Sequence[str] | Tensor


def explore_attention(
    model: Translator | MarianTranslator | SentenceEncoder | Transformer | TextEncoder,
    source: _Text,
    target: _Text | None = None,
    *,
    token_name: Callable[[int], str | None] = str,
) -> Explorer:
    """Choose layer and head, point at a word, and see where it looks.

    Shown are the encoder's self-attention and, where there is a decoder, its self-attention and
    its attention to the encoder. A copy of the model runs in float64 on the CPU, so that the
    numbers do not depend on the processor.

    Args:
        model: A translator or sentence encoder, which takes text; or a model, which takes token
            ids. A model must be in evaluation mode.
        source: A sentence or several; or ids of shape (batch, length), padded.
        target: As many target sentences; or ids of shape (batch, length) that begin with the start
            token, as the decoder reads them. A translator translates for itself when there is
            None; an encoder takes none.
        token_name: How to write a token id, such as ``tokenizer.id_to_token``; for ids only. A ▁ at
            the front marks the beginning of a word, ## the opposite.

    Raises:
        TypeError: The model is of another kind, or gets text where it takes ids or ids for text.
        ValueError: There is no sentence, source and target differ in number, a sentence has more
            than 64 tokens, the model is in training mode, or what the model itself refuses.
    """
    # A chapter that builds one of these classes has its own, which isinstance would not know.
    network: Any = getattr(model, "model", model)
    if not isinstance(network, nn.Module) or not hasattr(network, "source_embedding"):
        raise TypeError(
            "model: expected a Translator, MarianTranslator, SentenceEncoder, Transformer or "
            f"TextEncoder, got {type(model).__name__}"
        )
    if network.training:
        raise ValueError("model: expected evaluation mode, call model.eval() first")
    if target is not None and not hasattr(network, "decoder"):
        raise TypeError("target: expected none, an encoder takes a source only")
    exact = copy.deepcopy(network).to("cpu", torch.float64)
    takes_text = network is not model
    if takes_text:
        texts = _texts("source", source)
        given = [None] * len(texts) if target is None else _texts("target", target)
        _require_as_many("target", len(given), len(texts))
        sentences = [
            _look(exact, text, *_encode(model, text, written))
            for text, written in zip(texts, given, strict=True)
        ]
    else:
        config: Any = network.config
        padding = config.padding_id
        rows = _ids("source", source, padding)
        decodes = hasattr(network, "decoder")
        read = _ids("target", target, padding) if decodes else [[]] * len(rows)
        _require_as_many("target", len(read), len(rows))
        sentences = [
            _look(exact, f"sentence {number}", *ids, token_name)
            for number, ids in enumerate(zip(rows, read, strict=True), start=1)
        ]
    first = sentences[0]
    name, weights = next(iter(first.weights.items()))
    row = weights[0, 0]
    looks = ", ".join(
        f"{first.source[key]} {row[key]:.2f}" for key in row.argsort(descending=True).tolist()
    )
    return Explorer(
        "attention",
        "Where the words look",
        {
            "sentences": [
                {"name": sentence.name, "maps": list(_maps(sentence))} for sentence in sentences
            ]
        },
        [
            *(
                f"{sentence.name}: {' '.join(sentence.source)}"
                + (f" → {' '.join(sentence.target)}" if sentence.target else "")
                for sentence in sentences
            ),
            f"{name}, head 1 of {len(weights)}: {first.source[0]} looks at {looks}",
        ],
    )


def _texts(name: str, text: Any) -> list[str]:
    texts = [text] if isinstance(text, str) else text
    if not isinstance(texts, Sequence) or not all(isinstance(one, str) for one in texts):
        raise TypeError(f"{name}: expected text, one or several, got {type(text).__name__}")
    if not texts:
        raise ValueError(f"{name}: expected at least one sentence, got none")
    return list(texts)


def _ids(name: str, ids: Any, padding: int) -> list[list[int]]:
    if not isinstance(ids, Tensor) or ids.dim() != 2 or ids.is_floating_point():
        came = tuple(ids.shape) if isinstance(ids, Tensor) else type(ids).__name__
        raise TypeError(f"{name}: expected token ids of shape (batch, length), got {came}")
    if len(ids) == 0:
        raise ValueError(f"{name}: expected at least one sentence, got none")
    # Marian's start token is its padding, so only what stands at the end is padding.
    real = (ids != padding).cpu()
    lengths = [max(row.nonzero().flatten().tolist(), default=0) + 1 for row in real]
    return [row[:length] for row, length in zip(ids.tolist(), lengths, strict=True)]


def _require_as_many(name: str, came: int, expected: int) -> None:
    if came != expected:
        raise ValueError(f"{name}: expected {expected} sentences as in source, got {came}")


def _encode(
    model: Any, text: str, target: str | None
) -> tuple[list[int], list[int], Callable[[int], str | None]]:
    """Return source ids, the target ids that a decoder reads, and how to write an id."""
    if not hasattr(model.model, "decoder"):
        return model.tokens([text])[0].tolist(), [], model.tokenizer.id_to_token
    if not hasattr(model, "generate"):  # a Translator, and no MarianTranslator
        target = model.translate(text) if target is None else target
        read = [START, *model.encode(target)[:-1]]
        return model.encode(text), read, model.tokenizer.id_to_token
    if model.tokenizer is None:
        raise ValueError("model: text needs a tokenizer, and this translator has none")
    ids = model.tokenizer(text).input_ids
    if target is None:
        device = model.model.source_embedding.weight.device
        written = model.generate(torch.tensor([ids], device=device))[0]
    else:
        written = model.tokenizer(text_target=target).input_ids
    read = [model.start, *(token for token in written if token != model.end)]
    return ids, read, model.tokenizer.convert_ids_to_tokens


def _look(
    model: Any,
    name: str,
    source: list[int],
    target: list[int],
    token_name: Callable[[int], str | None],
) -> _Sentence:
    for side, ids in (("source", source), ("target", target)):
        needed = side == "source" or hasattr(model, "decoder")
        if len(ids) > _MOST_TOKENS or (needed and not ids):
            raise ValueError(
                f"{side}: expected 1 to {_MOST_TOKENS} tokens, got {len(ids)} in {name!r}"
            )

    def write(ids: list[int]) -> list[str]:
        return [token_name(token) or str(token) for token in ids]

    chosen: list[int] = []
    with torch.no_grad(), record_attention(model) as weights:
        if hasattr(model, "decoder"):
            chosen = model(torch.tensor([source]), torch.tensor([target]))[0].argmax(-1).tolist()
        else:
            model(torch.tensor([source]))
    return _Sentence(
        name,
        write(source),
        write(target),
        write(chosen),
        {name: each[0] for name, each in weights.items()},
    )


def _maps(sentence: _Sentence) -> Iterator[dict[str, Any]]:
    """Yield what the script draws: for each kind of attention its words, layers and heads."""
    source, target = _pieces(sentence.source), _pieces(sentence.target)
    written = [text for text, _ in _pieces(sentence.next)]
    for name, kind, asks, asked in (
        ("Encoder", r"encoder\..+self_attention", source, source),
        ("Decoder", r"decoder\..+self_attention", target, target),
        ("Cross-attention", r"decoder\..+cross_attention", target, source),
    ):
        layers = [each for path, each in sentence.weights.items() if re.fullmatch(kind, path)]
        if layers:
            yield {
                "name": name,
                "asks": asks,
                "asked": asked,
                "next": None if asks is source else written,
                "layers": [
                    [(1000 * head).round().int().flatten().tolist() for head in layer]
                    for layer in layers
                ],
            }


def _pieces(tokens: Sequence[str]) -> list[tuple[str, int]]:
    """Return the text of each token, and 1 if it begins a word or 0 if it goes on with one."""
    if any(token.startswith("▁") for token in tokens):
        special = re.compile(r"<.+>")
        return [
            (token.removeprefix("▁") or "▁", int(token[0] == "▁" or bool(special.fullmatch(token))))
            for token in tokens
        ]
    return [
        (token.removeprefix("##") or token, int(not token.startswith("##") or token == "##"))
        for token in tokens
    ]


def explore_detections(
    image: Any,
    scores: Any,
    labels: Sequence[str],
    boxes: Any,
    attention: Any = None,
    *,
    threshold: float = 0.5,
) -> Explorer:
    """Move the threshold over a detector's answers, and see where each query looks.

    Args:
        image: A picture of Pillow; it is stored as JPEG, at most 640 pixels wide.
        scores: Each query's score for its best label, from 0 to 1: (queries).
        labels: That label, one for each query.
        boxes: Corners xmin, ymin, xmax, ymax in pixels of ``image``: (queries, 4).
        attention: Where each query looks, weights of at least 0 over the feature map, its top row
            first: (queries, rows, columns).
        threshold: Where the slider stands at first, from 0 to 1; scores above it are kept.

    Raises:
        TypeError: ``image`` is no picture of Pillow.
        ValueError: There is no query, a shape is wrong, or a number is out of range.
    """
    if not hasattr(image, "convert"):
        raise TypeError(f"image: expected a picture of Pillow, got {type(image).__name__}")
    scores, boxes = (torch.as_tensor(each).detach().cpu().double() for each in (scores, boxes))
    if scores.dim() != 1 or not len(scores):
        raise ValueError(f"scores: expected shape (queries), got {tuple(scores.shape)}")
    _require_shape("boxes", boxes, (len(scores), 4))
    if len(labels) != len(scores):
        raise ValueError(f"labels: expected {len(scores)} as in scores, got {len(labels)}")
    if not ((scores >= 0) & (scores <= 1)).all():
        raise ValueError("scores: expected numbers from 0 to 1")
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold: expected a number from 0 to 1, got {threshold}")
    _require_finite(boxes=boxes)
    grid = None
    maps: list[list[int]] = [[] for _ in labels]
    if attention is not None:
        attention = torch.as_tensor(attention).detach().cpu().double()
        require_axes("queries rows columns", attention=attention)
        require_same_size("queries", scores=(scores, 0), attention=(attention, 0))
        if attention.dim() != 3 or not attention.numel():
            raise ValueError(
                f"attention: expected shape (queries, rows, columns), got {tuple(attention.shape)}"
            )
        _require_finite(attention=attention)
        if (attention < 0).any():
            raise ValueError("attention: expected weights of at least 0")
        grid = list(attention.shape[1:])
        flat = attention.flatten(1)
        largest = flat.amax(dim=1, keepdim=True).clamp(min=1e-12)
        maps = (99 * flat / largest).round().int().tolist()
    kept = [
        f"query {query}: {labels[query]} {scores[query]:.2f}, box {_tuple(boxes[query], 0)}"
        for query in scores.argsort(descending=True).tolist()
        if scores[query] > threshold
    ]
    return Explorer(
        "detections",
        "A detector's answers, and where its queries look",
        {
            "size": list(image.size),
            "queries": [
                {"score": round(float(score), 6), "label": label, "box": box, "map": cells}
                for score, label, box, cells in zip(
                    scores, labels, _rounded(boxes, 1), maps, strict=True
                )
            ],
            "grid": grid,
            "threshold": round(threshold, 2),
        },
        [f"{len(kept)} of {len(labels)} queries are kept at threshold {threshold:.2f}", *kept],
        f'<img class="photo" alt="The picture with the objects to find." src="{_jpeg(image)}">\n',
    )


def _jpeg(image: Any) -> str:
    """Return a picture as an address that holds it."""
    image = image.convert("RGB")
    if image.width > 640:
        image = image.resize((640, round(image.height * 640 / image.width)))
    file = BytesIO()
    image.save(file, "JPEG", quality=90)
    # What would look like a path or a memory address in a stored output is written otherwise.
    coded = b64encode(file.getvalue()).decode().replace("/", "%2F").replace("0x", "%30x")
    return f"data:image/jpeg;base64,{coded}"


def _number(number: float, digits: int = 2) -> str:
    text = f"{number:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", "−")


def _tuple(numbers: Tensor, digits: int = 2) -> str:
    return f"({', '.join(_number(number, digits) for number in numbers.tolist())})"


def _rounded(tensor: Tensor, digits: int = 4) -> Any:
    """Return nested lists; rounding makes the stored output short and the same everywhere."""

    def shorten(numbers: Any) -> Any:
        if isinstance(numbers, list):
            return [shorten(number) for number in numbers]
        return round(numbers, digits) + 0.0

    return shorten(tensor.tolist())


def _require_shape(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {tuple(tensor.shape)}")


def _require_finite(**tensors: Tensor) -> None:
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise ValueError(f"{name}: expected finite numbers")

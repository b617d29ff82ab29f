"""Every line of the cheat sheet, held against models that run."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from transformer_lib.attention import attention_weights
from transformer_lib.decoding import CachedDecoder
from transformer_lib.detection.configuration import DETRConfig
from transformer_lib.detection.detr import DETR
from transformer_lib.masking import causal_mask
from transformer_lib.multi_head_attention import join_heads, split_heads
from transformer_lib.transformer import Transformer, TransformerConfig, record_attention

PAGE = (Path(__file__).parents[2] / "book/cheat_sheet.md").read_text(encoding="utf-8")
SECTIONS = {
    heading: re.findall(r"^\|[^|]+\| (\(.+?\)) \| (\([\d, ]+\)) \| `(.+)` \|$", text, re.M)
    for heading, text in re.findall(r"^## (.+?)\n(.+?)(?=^## |\Z)", PAGE, re.M | re.S)
}
TEXT = {"batch": 2, "source": 9, "target": 7, "d_model": 512, "d_k": 64, "d_ff": 2048}
TEXT |= {"n_heads": 8, "vocabulary": 37_000, "rows": 6, "so_far": 5}
PICTURES = {"batch": 2, "height": 128, "width": 160, "places": 20, "features": 2048}
PICTURES |= {"d_model": 256, "n_heads": 8, "n_queries": 100, "classes": 91}

Shapes = dict[str, tuple[int, ...]]


@contextmanager
def outputs(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Record what every module of a model returns first, by its name."""
    found: dict[str, Tensor] = {}

    def note(name: str) -> Any:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            found.setdefault(name, output[0] if isinstance(output, tuple) else output)

        return hook

    hooks = [module.register_forward_hook(note(name)) for name, module in model.named_modules()]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


@pytest.fixture(scope="module")
def stations() -> dict[str, dict[str, Tensor]]:
    """Run the base model once, and return what each section of the page speaks of."""
    model = Transformer(TransformerConfig()).eval()
    source, target = torch.randint(1, 37_000, (2, 9)), torch.randint(1, 37_000, (2, 7))
    with torch.no_grad(), outputs(model) as found:
        model(source, target)
        found |= {"source": source, "target": target, **dict(model.named_parameters())}
        prefix = "decoder.layers.0.cross_attention"
        attention = model.get_submodule(prefix)
        inside = {name: found[f"{prefix}.{name}"] for name in dict(attention.named_children())}
        queries = split_heads(inside["query_projection"], 8)
        keys, values = attention.project(found["encoder"], found["encoder"])
        weights = attention_weights(queries, keys)
        heads = weights @ values
        inside |= {
            "split_heads(queries, 8)": queries,
            "project(memory, memory).keys": keys,
            "weights": weights,
            "weights @ values": heads,
            "join_heads(heads)": join_heads(heads),
            "mask": causal_mask(9)[-7:],
            "key_mask": source != 0,
        }
        masks = {name: inside[name] for name in ("mask", "key_mask")}  # must fit, or it raises
        attention(found["target_input"], found["encoder"], found["encoder"], **masks)
    sections = list(SECTIONS)
    given: dict[str, dict[str, Tensor]] = dict.fromkeys(sections, found)
    first = "encoder.layers.0."
    layer = {name.removeprefix(first): x for name, x in found.items() if name.startswith(first)}
    given[sections[1]] = inside
    given[sections[2]] = layer
    given[sections[3]] = layer | {"model.embedding.source.weight": model.source_embedding.weight}
    given[sections[4]] = decoding(model, source)
    given[sections[5]] = detection()
    return given


def decoding(model: Transformer, source: Tensor) -> dict[str, Tensor]:
    """Decode five tokens with a cache, three beams a sentence, and return the last step."""
    decoder = CachedDecoder(model, source)
    decoder.select(torch.tensor([0, 0, 0, 1, 1, 1]))
    decoder.advance(torch.ones(6, 4, dtype=torch.int64))
    tokens = torch.full((6, 1), 5)
    with outputs(model) as found, record_attention(model) as weights:
        logits = decoder.advance(tokens)
    before = CachedDecoder(model, source)
    before.advance(torch.ones(2, 1, dtype=torch.int64))
    return (
        found
        | weights
        | {
            "tokens": tokens,
            "cache.memory.keys": before._caches[0].memory.keys,
            "cache(new).keys": decoder._caches[0]._kept.keys,
            "CachedDecoder.advance(tokens)": logits,
        }
    )


def detection() -> dict[str, Tensor]:
    """Run DETR in the paper's size on two small pictures."""
    model = DETR(DETRConfig(labels=[str(number) for number in range(91)])).eval()
    pixels, pixel_mask = torch.zeros(2, 3, 128, 160), torch.ones(2, 128, 160, dtype=torch.bool)
    pixel_mask[1, :, 96:] = False
    with torch.no_grad(), outputs(model) as found, record_attention(model) as weights:
        predictions = model(pixels, pixel_mask)
    return (
        found
        | weights
        | {
            "pixels": pixels,
            "pixel_mask": pixel_mask,
            "queries": model.queries,
            "logits": predictions.logits,
            "boxes": predictions.boxes,
        }
    )


def test_the_page_has_its_lines() -> None:
    assert [len(lines) for lines in SECTIONS.values()] == [9, 10, 3, 5, 7, 10]
    assert PAGE.count("\n| ") == sum(map(len, SECTIONS.values())) + 2 * len(SECTIONS)


@pytest.mark.parametrize("section", SECTIONS)
def test_the_shapes_are_those_of_a_model_that_runs(section, stations) -> None:
    """Symbols give the numbers, and the numbers are those of the tensors."""
    sizes = PICTURES if section == "From pixels to boxes" else TEXT
    for symbols, numbers, where in SECTIONS[section]:
        shape = tuple(int(eval(symbol, {}, sizes)) for symbol in symbols[1:-1].split(", "))
        assert re.findall(r"\d+", numbers) == [str(size) for size in shape], where
        assert tuple(stations[section][where].shape) == shape, where


def test_the_numbers_of_the_text_are_the_configurations() -> None:
    config, detector = TransformerConfig(), DETRConfig(labels=("one",))
    assert (config.d_model, config.n_heads, config.d_ff) == (512, 8, 2048)
    assert (config.n_encoder_layers, config.n_decoder_layers) == (6, 6)
    assert config.source_vocabulary == config.target_vocabulary == 37_000
    assert (detector.d_model, detector.n_queries, detector.n_decoder_layers) == (256, 100, 6)

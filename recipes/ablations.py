"""Leave out one part of the Transformer at a time, and see what translation loses.

``python recipes/ablations.py`` trains every variant from three seeds, about a minute of one core
a run, and writes the scores to ``recipes/ablations.json`` as they come. Runs that are there already
are not made again.
"""

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ko_en import GRAMMAR, Recipe, build, pairs_of
from torch import Tensor, nn

from transformer_lib.datasets import korean_english
from transformer_lib.multi_head_attention import MultiHeadAttention
from transformer_lib.training import Trainer
from transformer_lib.transformer import Transformer
from transformer_lib.translation import score

RESULTS = Path(__file__).resolve().parent / "ablations.json"
SEEDS = (0, 1, 2)
SENTENCES = 300  # of each split are scored


class Skip(nn.Module):
    """Stands in the place of add & norm and leaves its sublayer out."""

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Return ``x`` as it is."""
        return x


def without_self_attention(model: Transformer) -> None:
    """Leave the self-attention out of every layer; cross-attention remains."""
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        layer.self_attention_norm = Skip()


def without_mask(model: Transformer) -> None:
    """Let every target position see the later ones."""
    model.decoder.register_forward_pre_hook(
        lambda _, arguments, options: (arguments, options | {"causal": False}), with_kwargs=True
    )


def without_scaling(model: Transformer) -> None:
    """Undo the division of the scores by √d_k."""
    for attention in model.modules():
        if isinstance(attention, MultiHeadAttention):
            scale = math.sqrt(attention.d_k)
            attention.query_projection.register_forward_hook(
                lambda _, __, queries, scale=scale: queries * scale
            )


@dataclass(frozen=True)
class Variant:
    """What is changed: options of the model, of the training, or the model itself."""

    model: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    change: Callable[[Transformer], None] = lambda model: None


VARIANTS = {
    "whole": Variant(),
    "no positions": Variant({"positions": "none"}),
    "no self-attention": Variant(change=without_self_attention),
    "one head": Variant({"n_heads": 1}),
    "no causal mask": Variant(change=without_mask),
    "no scaling": Variant(change=without_scaling),
    "post-norm": Variant({"norm_first": False}),
    "no label smoothing": Variant(training={"smoothing": 0.0}),
    "untied": Variant({"tied": "none"}),
}
BASE = replace(
    GRAMMAR,
    model=GRAMMAR.model | {"d_model": 96, "n_heads": 4, "d_ff": 192},
    training=replace(GRAMMAR.training, steps=1500, warmup=150),
)


def run(variant: Variant, seed: int, splits: korean_english.Splits) -> dict[str, float]:
    """Train one model and score it."""
    recipe = Recipe(
        BASE.vocabulary,
        BASE.model | variant.model,
        replace(BASE.training, seed=seed, **variant.training),
        BASE.tokens_per_batch,
    )
    translator, batches = build(recipe, pairs_of(splits.train))
    variant.change(translator.model)
    start = time.process_time()
    log = Trainer(translator.model, batches, recipe.training).train()
    result = {"seconds": round(time.process_time() - start, 1), "loss": log[-1]["loss"]}
    for name in ("random", "compositional", "homonyms"):
        some = getattr(splits, name)[:SENTENCES]
        translations = translator.translate_all([sentence.korean for sentence in some])
        result[name] = score(translations, [sentence.english for sentence in some]).bleu
        if name == "homonyms":
            result["senses"] = 100 * korean_english.sense_accuracy(some, translations)
    return {name: round(value, 2) for name, value in result.items()}


def main() -> None:
    """Make the runs that are missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    done: dict[str, dict[str, dict[str, float]]] = {}
    if options.results.is_file():
        done = json.loads(options.results.read_text(encoding="utf-8"))
    splits = korean_english.splits()
    for seed in SEEDS:
        for name, variant in VARIANTS.items():
            if str(seed) in done.setdefault(name, {}):
                continue
            done[name][str(seed)] = run(variant, seed, splits)
            print(name, seed, done[name][str(seed)], flush=True)
            part = options.results.with_suffix(".part")
            part.write_text(json.dumps(done, indent=2) + "\n", encoding="utf-8")
            part.replace(options.results)
    columns = ("random", "compositional", "homonyms", "senses")
    print("| |", " | ".join(columns), "|")
    print("|---|", "---:|" * len(columns))
    for name, seeds in done.items():
        cells = []
        for column in columns:
            values = [one[column] for one in seeds.values()]
            cells.append(f"{statistics.mean(values):.1f} ± {spread(values):.1f}")
        print(f"| {name} |", " | ".join(cells), "|")


def spread(values: list[float]) -> float:
    """Return half the distance from the lowest to the highest."""
    return (max(values) - min(values)) / 2


if __name__ == "__main__":
    main()

"""Train the Korean-English translator that comes with the library, or one on your own pairs.

``python recipes/ko_en.py --folder runs/ko-en`` trains on the grammar's sentences and scores every
split. Stopped at any moment, the same command goes on where it was. ``--ship`` then puts the model
into the package and its log and scores beside this file.

``python recipes/ko_en.py --folder runs/mine --pairs train.tsv --valid valid.tsv`` trains on your
own: Korean, tab, English, a pair a line.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from recording import record

from transformer_lib.checkpoints import list_checkpoints
from transformer_lib.datasets import Pair, everyday, korean_english, read_pairs
from transformer_lib.training import (
    Batches,
    Trainer,
    TrainingConfig,
    average_checkpoints,
)
from transformer_lib.transformer import Transformer, TransformerConfig
from transformer_lib.translation import (
    Translator,
    encode_pairs,
    nearest_neighbours,
    score,
    train_tokenizer,
)

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "transformer_lib" / "models" / "ko-en"
RECORD = Path(__file__).resolve().parent / "ko_en"


@dataclass(frozen=True)
class Recipe:
    """What a run is made with."""

    vocabulary: int
    model: dict[str, Any]
    training: TrainingConfig
    tokens_per_batch: int


SENTENCES = 120_000  # of the grammar to train on
LAYERS: dict[str, Any] = {"n_encoder_layers": 2, "n_decoder_layers": 2, "norm_first": True}
TRAINING = TrainingConfig(schedule="linear", learning_rate=1.5e-3, clip=1.0, save_every=250, keep=4)
GRAMMAR = Recipe(
    vocabulary=2000,
    model=LAYERS | {"d_model": 192, "n_heads": 6, "d_ff": 512, "max_length": 256},
    training=replace(TRAINING, steps=8_000, warmup=500),
    tokens_per_batch=400,
)
OWN_PAIRS = Recipe(
    vocabulary=4000,
    model=LAYERS | {"d_model": 192, "n_heads": 4, "d_ff": 384, "max_length": 512},
    training=replace(TRAINING, steps=12_000, warmup=600),
    tokens_per_batch=400,
)


def build(recipe: Recipe, train: Sequence[Pair]) -> tuple[Translator, Batches]:
    """Return a translator with a new model, and the batches to train it on."""
    tokenizer = train_tokenizer((side for pair in train for side in pair), recipe.vocabulary)
    size = tokenizer.get_vocab_size()
    config = TransformerConfig(
        source_vocabulary=size,
        target_vocabulary=size,
        **recipe.model,
    )
    torch.manual_seed(recipe.training.seed)
    pairs = encode_pairs(tokenizer, train)
    batches = Batches(pairs, tokens_per_batch=recipe.tokens_per_batch, seed=recipe.training.seed)
    return Translator(Transformer(config), tokenizer), batches


def train(recipe: Recipe, translator: Translator, batches: Batches, folder: Path) -> float:
    """Train in ``folder``, going on where a run was stopped; return the seconds it took in all.

    The translator ends with the mean of the last checkpoints' weights, rounded to float16, and is
    saved so in ``folder / "model"``.
    """
    trainer = Trainer(translator.model, batches, recipe.training, folder=folder)
    trainer.resume()
    log = trainer.train()
    translator.model.load_state_dict(average_checkpoints(list_checkpoints(folder)))
    translator.model.half()
    translator.save_pretrained(folder / "model")
    translator.model.float()
    return sum(line["seconds"] for line in log)


def pairs_of(sentences: Sequence[korean_english.Sentence]) -> list[Pair]:
    """Return what a tokenizer and a model need of the grammar's sentences."""
    return [Pair(sentence.korean, sentence.english) for sentence in sentences]


def evaluate(
    translator: Translator, known: Sequence[Pair], unseen: Sequence[Pair], beams: int
) -> tuple[dict[str, float], list[str]]:
    """Score a split, beside copying the translation of the nearest neighbour in training.

    Returns:
        The scores, and the translations.
    """
    sources, references = map(list, zip(*unseen, strict=True))
    translations = translator.translate_all(sources, beams=beams)
    places = nearest_neighbours([pair.source for pair in known], sources)
    scores = score(translations, references)
    exact = sum(map(str.__eq__, translations, references)) / len(sources)
    copied = score([known[place].target for place in places], references)
    return {
        "sentences": len(sources),
        "bleu": round(scores.bleu, 2),
        "chrf": round(scores.chrf, 2),
        "exact": round(100 * exact, 2),
        "nearest_neighbour_bleu": round(copied.bleu, 2),
    }, translations


def evaluate_grammar(translator: Translator, splits: korean_english.Splits) -> dict[str, Any]:
    """Score every split of the grammar, and the sentences that are none of its."""
    known = pairs_of(splits.train)
    scores = {}
    for name in ("random", "compositional", "homonyms", "deciders"):
        unseen = getattr(splits, name)
        scores[name], translations = evaluate(translator, known, pairs_of(unseen), beams=1)
        if name in ("homonyms", "deciders"):
            accuracy = korean_english.sense_accuracy(unseen, translations)
            majority = korean_english.majority_accuracy(splits.train, unseen)
            scores[name]["sense_accuracy"] = round(100 * accuracy, 2)
            scores[name]["majority_accuracy"] = round(100 * majority, 2)
    scores["everyday"], _ = evaluate(translator, known, everyday(), beams=1)
    return scores


CARD = """---
language: [ko, en]
license: mit
library_name: transformer_lib
pipeline_tag: translation
---
# ko-en

A Transformer of {parameters:,} parameters that translates Korean sentences of a small world into
English: people, food, animals, things, places and times, as the grammar in
`transformer_lib.datasets.korean_english` speaks of them. It was made to be looked into, as chapter
14 of *Building the Transformer* does, and is no translator of other text: see "everyday" below.

```python
from transformer_lib import Translator

Translator.from_pretrained("ko-en").translate("인도 카레 전문점")
```

{layers} + {layers} layers, d_model {d_model}, {n_heads} heads, d_ff {d_ff}, pre-norm, one matrix
for both embeddings and the output, {vocabulary} subwords, weights in float16. Trained on {train:,}
sentences of the grammar by `{command}` in {minutes:.0f} minutes of {threads} CPU core(s), from
seed {seed}.

| Unseen sentences | Number | BLEU | chrF | Exactly right (%) | Nearest neighbour, BLEU |
|---|---:|---:|---:|---:|---:|
{rows}

Nearest neighbour: the translation of the most similar sentence in training, copied.

random: other sentences of the grammar; compositional: with pairs of words that never met in
training; homonyms: words of two meanings beside words they never met in training, the right
meaning in {homonyms[sense_accuracy]} % (the more frequent one always:
{homonyms[majority_accuracy]} %); deciders: the harder case that the very word which decides the
meaning never met the homonym, {deciders[sense_accuracy]} % ({deciders[majority_accuracy]} %);
everyday: written by hand, not by the grammar. BLEU and chrF by sacreBLEU with its defaults, greedy
decoding. Log, seed, commit and checksum: `recipes/ko_en` in the repository.
"""


def card(translator: Translator, recipe: Recipe, result: dict[str, Any], train_size: int) -> str:
    """Return the model card."""
    scores, config = result["scores"], translator.model.config
    rows = [
        f"| {name} | {s['sentences']} | {s['bleu']:.1f} | {s['chrf']:.1f} | {s['exact']:.1f} | "
        f"{s['nearest_neighbour_bleu']:.1f} |"
        for name, s in scores.items()
    ]
    return CARD.format(
        parameters=sum(parameter.numel() for parameter in translator.model.parameters()),
        layers=config.n_encoder_layers,
        d_model=config.d_model,
        n_heads=config.n_heads,
        d_ff=config.d_ff,
        vocabulary=config.source_vocabulary,
        train=train_size,
        command=result["command"],
        minutes=result["seconds"] / 60,
        threads=result["threads"],
        seed=recipe.training.seed,
        rows="\n".join(rows),
        homonyms=scores["homonyms"],
        deciders=scores["deciders"],
    )


def main() -> None:
    """Train, score, and write both down."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True, help="where the run is kept")
    parser.add_argument("--pairs", type=Path, help="pairs of your own to train on")
    parser.add_argument("--valid", type=Path, help="pairs of your own to score")
    parser.add_argument("--steps", type=int, help="instead of the recipe's number")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ship", action="store_true", help="put the result into the package")
    options = parser.parse_args()
    if (options.pairs is None) != (options.valid is None):
        parser.error("--pairs and --valid belong together")
    if options.ship and options.pairs:
        parser.error("--ship is for the grammar's translator")

    recipe = OWN_PAIRS if options.pairs else GRAMMAR
    steps = recipe.training.steps if options.steps is None else options.steps
    if steps < 1:
        parser.error(f"--steps: expected 1 or more, got {steps}")
    warmup = min(recipe.training.warmup, steps)
    training = replace(recipe.training, steps=steps, warmup=warmup, seed=options.seed)
    recipe = replace(recipe, training=training)
    try:
        run(recipe, options)
    except (OSError, ValueError) as error:
        sys.exit(f"{Path(__file__).name}: {error}")


def run(recipe: Recipe, options: argparse.Namespace) -> None:
    """Train, score and record as the options say."""
    if options.pairs:
        known, unseen = read_pairs(options.pairs), read_pairs(options.valid)
    else:
        splits = korean_english.splits(train=SENTENCES)
        known = pairs_of(splits.train)
    translator, batches = build(recipe, known)
    seconds = train(recipe, translator, batches, options.folder)
    if options.pairs:
        scores = {
            f"beams = {beams}": evaluate(translator, known, unseen, beams)[0] for beams in (1, 4)
        }
    else:
        scores = evaluate_grammar(translator, splits)
    model = options.folder / "model"
    result = record(recipe, seconds, model / "model.safetensors", scores)
    text = json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    (options.folder / "scores.json").write_text(text, encoding="utf-8")
    print(text)
    if options.ship:
        shutil.copytree(model, SHIPPED, dirs_exist_ok=True)
        (SHIPPED / "README.md").write_text(
            card(translator, recipe, result, len(known)), encoding="utf-8"
        )
        RECORD.mkdir(exist_ok=True)
        for name in ("log.jsonl", "scores.json"):
            shutil.copy(options.folder / name, RECORD / name)


if __name__ == "__main__":
    main()

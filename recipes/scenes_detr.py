"""Train the detector of living-room scenes that comes with the library.

``python recipes/scenes_detr.py --folder runs/scenes-detr`` trains and scores it. Stopped at any
moment, the same command goes on where it was. ``--ship`` then puts the model into the package and
its log and scores beside this file.

The scenes are drawn once, into the folder. Then there are three phases. First the backbone and the
encoder learn, for every place of the feature map, what covers it and where the edges of that object
are: every place has a target of its own, so this goes quickly. Then the whole model learns by the
paper's set loss. Last it goes on with pictures half as large again, which cost twice as much and
let it put the edges of a box more exactly.
"""

import argparse
import json
import math
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from recording import record
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

from transformer_lib.checkpoints import read_log
from transformer_lib.datasets import scenes
from transformer_lib.detection.boxes import generalized_iou, to_centres, to_corners
from transformer_lib.detection.configuration import DETRConfig, ResNetConfig
from transformer_lib.detection.detr import DETR, Predictions, image_positions
from transformer_lib.detection.evaluation import evaluate
from transformer_lib.detection.matching import Target, set_loss
from transformer_lib.detection.processing import ImageProcessor
from transformer_lib.multi_head_attention import KeysValues
from transformer_lib.training import Trainer, TrainingConfig

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "transformer_lib" / "models" / "scenes-detr"
RECORD = Path(__file__).resolve().parent / "scenes_detr"


Size = tuple[int, int]  # width and height
SMALL: tuple[Size, ...] = ((160, 128), (128, 160), (128, 128), (192, 128))
LARGE: tuple[Size, ...] = ((240, 192), (192, 240), (192, 192), (288, 192))


@dataclass(frozen=True)
class Phase:
    """One of the phases of a run.

    Attributes:
        steps: Steps of the optimiser.
        learning_rate: The highest.
        warmup: Steps over which it rises; then it falls as a cosine, to 0.
        edge: Pictures are enlarged until their shorter edge has so many pixels.
        sizes: The sizes in which its scenes are drawn, as many in each.
    """

    steps: int
    learning_rate: float
    warmup: int
    edge: int = 128
    sizes: tuple[Size, ...] = SMALL

    @property
    def processor(self) -> ImageProcessor:
        """What prepares pictures for the model at this phase."""
        return ImageProcessor(shortest_edge=self.edge, longest_edge=self.edge * 5 // 3)

    def learning_rate_at(self, step: int) -> float:
        """Return the learning rate of a step, counted from 1."""
        if step <= self.warmup:
            return self.learning_rate * step / self.warmup
        done = (step - self.warmup) / (self.steps - self.warmup)
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * done))


@dataclass(frozen=True)
class Recipe:
    """What a run is made with."""

    pretraining: Phase = Phase(steps=800, learning_rate=1e-3, warmup=50)
    training: Phase = Phase(steps=6000, learning_rate=5e-4, warmup=100)
    refining: Phase = Phase(
        steps=2600, learning_rate=4e-4, warmup=100, edge=192, sizes=SMALL + LARGE
    )
    scenes: int = 24_000  # of every four sizes
    batch: int = 32
    weight_decay: float = 1e-4
    clip: float = 0.5
    sets: int = 4
    seed: int = 0


PHASES = ("pretraining", "training", "refining")
LOG_EVERY, LOOK_EVERY = 100, 1000  # steps
SCORED = {  # split, number of scenes, their size
    "test": ("test", 1000, LARGE[0]),
    "test, smaller": ("test", 1000, SMALL[0]),
    "valid": ("valid", 500, LARGE[0]),
    "unfamiliar": ("unfamiliar", 500, LARGE[0]),
}
CONFIG = DETRConfig(
    labels=scenes.LABELS,
    backbone=ResNetConfig(depths=(2, 2, 2), widths=(32, 64, 128), stem_width=32, block="basic"),
    d_model=128,
    n_encoder_layers=3,
    n_decoder_layers=3,
    d_ff=512,
    n_queries=20,
    dropout=0.0,
)


def target_of(scene: scenes.Scene) -> Target:
    """Return a scene's objects as the loss takes them."""
    size = torch.tensor(scene.image.size).repeat(2)
    labels = torch.tensor([scenes.LABELS.index(label) for label in scene.labels])
    return Target(labels, to_centres(torch.tensor(scene.boxes) / size))


def draw(
    sizes: Sequence[Size], per_size: int, folder: Path
) -> list[tuple[np.ndarray, list[Target]]]:
    """Return the scenes to train on, those of one size together; draw those that are not there."""
    drawn = []
    for place, (width, height) in enumerate(sizes):
        seeds = range(place * per_size, (place + 1) * per_size)
        pixels_file = folder / f"scenes-{width}x{height}.npy"
        boxes_file = pixels_file.with_suffix(".json")
        objects = json.loads(boxes_file.read_text(encoding="utf-8")) if boxes_file.exists() else []
        if len(objects) != per_size:  # the file of the boxes is written last
            folder.mkdir(parents=True, exist_ok=True)
            pixels = np.empty((per_size, height, width, 3), np.uint8)
            objects = []
            for i, seed in enumerate(tqdm(seeds, f"drawing {width}x{height}", disable=None)):
                scene = scenes.draw_scene(seed, split="train", size=(width, height))
                pixels[i] = np.asarray(scene.image)
                target = target_of(scene)
                objects.append([target.labels.tolist(), target.boxes.tolist()])
            boxes_file.unlink(missing_ok=True)
            np.save(pixels_file, pixels)
            boxes_file.write_text(json.dumps(objects), encoding="utf-8")
        targets = [Target(torch.tensor(names), torch.tensor(boxes)) for names, boxes in objects]
        drawn.append((np.load(pixels_file, mmap_mode="r"), targets))
    return drawn


class Batches:
    """Batch number n is always the same: scenes of one size, at random mirrored and tinted."""

    def __init__(self, recipe: Recipe, phase: Phase, folder: Path, first: int = 0) -> None:
        self.recipe, self.edge, self.first = recipe, phase.edge, first
        self.drawn = draw(phase.sizes, recipe.scenes // len(SMALL), folder)
        self.mean = torch.tensor(phase.processor.mean).view(3, 1, 1)
        self.std = torch.tensor(phase.processor.std).view(3, 1, 1)

    @property
    def identity(self) -> dict[str, Any]:
        """What a checkpoint remembers of the run that it is of."""
        return {"recipe": asdict(self.recipe), "first": self.first}

    def __getitem__(self, number: int) -> tuple[Tensor, list[Target]]:
        """Return pictures of shape (batch, 3, height, width), and what is in them."""
        number += self.first + 1
        random = np.random.default_rng([self.recipe.seed, number])
        pictures, targets = self.drawn[number % len(self.drawn)]
        chosen = random.choice(len(pictures), self.recipe.batch, replace=False)
        pixels = torch.from_numpy(pictures[np.sort(chosen)]).permute(0, 3, 1, 2).float() / 255
        tint = torch.from_numpy(random.uniform(0.8, 1.2, (self.recipe.batch, 3, 1, 1))).float()
        pixels = ((pixels * tint).clamp(max=1) - self.mean) / self.std
        if (edge := min(pixels.shape[2:])) < self.edge:
            pixels = F.interpolate(pixels, scale_factor=self.edge / edge, mode="bilinear")
        mirrored = random.random(self.recipe.batch) < 0.5
        pixels[mirrored] = pixels[mirrored].flip(-1)
        boxes = [targets[place] for place in np.sort(chosen)]
        return pixels.contiguous(memory_format=torch.channels_last), [
            mirror(target) if turned else target
            for target, turned in zip(boxes, mirrored, strict=True)
        ]


def mirror(target: Target) -> Target:
    """Return the objects of the picture with left and right exchanged."""
    cx, *others = target.boxes.unbind(-1)
    return Target(target.labels, torch.stack([1 - cx, *others], dim=-1))


def place_targets(targets: list[Target], rows: int, columns: int) -> tuple[Tensor, Tensor]:
    """Return for the middle of every place the label and box of the smallest object around it.

    Returns:
        Labels (batch, places), ``len(scenes.LABELS)`` where there is no object, and boxes (batch,
        places, 4).
    """
    y, x = torch.meshgrid(
        (torch.arange(rows) + 0.5) / rows, (torch.arange(columns) + 0.5) / columns, indexing="ij"
    )
    labels, boxes = [], []
    for target in targets:
        xmin, ymin, xmax, ymax = to_corners(target.boxes)[:, :, None, None].unbind(1)
        around = ((xmin < x) & (x < xmax) & (ymin < y) & (y < ymax)).flatten(1)
        area = target.boxes[:, 2] * target.boxes[:, 3]
        smallest = torch.where(around, area[:, None], math.inf).argmin(0)
        labels.append(torch.where(around.any(0), target.labels[smallest], len(scenes.LABELS)))
        boxes.append(target.boxes[smallest])
    return torch.stack(labels), torch.stack(boxes)


class PlaceLoss(nn.Module):
    """The loss of the first phase, with the head that reads the encoder's output for it."""

    def __init__(self, model: DETR) -> None:
        super().__init__()
        d_model = model.config.d_model
        self.model = model
        self.labels = nn.Linear(d_model, len(model.config.labels) + 1)  # the last: no object
        self.boxes = nn.Linear(d_model, 4)

    def forward(self, pixels: Tensor, targets: list[Target]) -> Tensor:
        """Return the loss of a batch."""
        memory, _ = encode(self.model, pixels)
        stride = self.model.backbone.stride
        rows, columns = (-(-size // stride) for size in pixels.shape[2:])
        labels, boxes = place_targets(targets, rows, columns)
        covered = labels < len(scenes.LABELS)
        found, wanted = self.boxes(memory).sigmoid()[covered], boxes[covered]
        apart = 1 - generalized_iou(to_corners(found), to_corners(wanted))
        label_loss = F.cross_entropy(self.labels(memory).flatten(0, 1), labels.flatten())
        return label_loss + 5 * (found - wanted).abs().sum(-1).mean() + 2 * apart.mean()


class ForAllSets:
    """Gives a decoder layer the picture's keys and values, projected once; keeps nothing."""

    def __init__(self, memory: KeysValues) -> None:
        self.memory: KeysValues | None = memory

    def __call__(self, new: KeysValues) -> KeysValues:
        """Return the keys and values of the queries, which are complete."""
        return new


class SetLoss(nn.Module):
    """The loss of the other phases: several sets of queries learn from each picture.

    Every set has its own matching, so that each object teaches as many queries as there are sets
    (Group DETR: Chen et al., 2023). The sets do not see each other, and the model keeps the first.
    """

    def __init__(self, model: DETR, sets: int) -> None:
        super().__init__()
        self.model = model
        self.more_queries = nn.Parameter(torch.randn(sets - 1, *model.queries.shape))

    def forward(self, pixels: Tensor, targets: list[Target]) -> Tensor:
        """Return the loss of a batch."""
        model, batch = self.model, len(pixels)
        queries = torch.cat([model.queries[None], self.more_queries])
        sets = len(queries)
        memory, positions = encode(model, pixels)
        queries = queries.repeat_interleave(batch, dim=0)
        x, repeated = torch.zeros_like(queries), memory.repeat(sets, 1, 1)
        outputs = []
        for layer in model.decoder.layers:
            projected = layer.cross_attention.project(memory + positions, memory)
            for_all = ForAllSets(KeysValues(*(part.repeat(sets, 1, 1, 1) for part in projected)))
            x = layer(x, repeated, causal=False, positions=queries, cache=for_all)
            outputs.append(model.decoder.final_norm(x))
        layers = [(model.class_head(x), model.box_head(x).sigmoid()) for x in outputs]
        return set_loss(Predictions(*layers[-1], tuple(layers[:-1])), targets * sets)["loss"]


def encode(model: DETR, pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the encoder's output for pictures without padding, and the places' positions."""
    features = model.backbone(pixels)
    mask = features.new_ones(len(pixels), *features.shape[2:], dtype=torch.bool)
    positions = image_positions(mask, model.config.d_model).flatten(1, 2)
    places = model.projection(features).flatten(2).transpose(1, 2)
    return model.encoder(places, positions=positions), positions


def train(model: DETR, recipe: Recipe, folder: Path) -> float:
    """Train in ``folder``, going on where a run was stopped; return the seconds it took in all."""
    model.to(memory_format=torch.channels_last)
    by_place, by_set = PlaceLoss(model), SetLoss(model, recipe.sets)
    first, seconds = 0, 0.0
    for name, loss in zip(PHASES, (by_place, by_set, by_set), strict=True):
        trainer = trainer_of(name, loss, recipe, first, folder)
        trainer.resume()
        log = trainer.train()
        first += trainer.config.steps
        seconds += sum(line["seconds"] for line in log)
    return seconds


def trainer_of(
    name: str, loss: PlaceLoss | SetLoss, recipe: Recipe, first: int, folder: Path
) -> Trainer:
    """Return what trains a phase, which begins with batch number ``first``."""
    phase: Phase = getattr(recipe, name)
    valid = draw_split("valid", 200, phase.sizes[-len(SMALL)])

    def look() -> dict[str, float]:
        due = trainer.steps_done % LOOK_EVERY == 0
        return score(loss.model, phase.processor, valid) if due else {}

    config = TrainingConfig(
        steps=phase.steps,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=recipe.weight_decay,
        clip=recipe.clip,
        seed=recipe.seed,
        log_every=LOG_EVERY,
        save_every=LOG_EVERY,
        keep=1,
    )
    trainer = Trainer(
        loss,  # its parameters are the model's and those that only training needs
        Batches(recipe, phase, folder, first),
        config,
        loss=lambda loss, batch: loss(*batch),
        schedule=phase.learning_rate_at,
        validate=look,
        folder=folder / name,
    )
    return trainer


def draw_split(split: str, number: int, size: Size) -> list[scenes.Scene]:
    """Return the first scenes of a split."""
    return [scenes.draw_scene(seed, split=split, size=size) for seed in range(number)]


def score(
    model: DETR, processor: ImageProcessor, drawn: Sequence[scenes.Scene]
) -> dict[str, float]:
    """Return COCO's average precision on scenes, in all and by the objects' size."""
    return {name: round(ap, 4) for name, ap in evaluate(model, processor, drawn).items()}


CARD = """---
license: mit
library_name: transformer_lib
pipeline_tag: object-detection
---
# scenes-detr

A DETR of {parameters:,} parameters that finds ten kinds of objects in drawn living rooms:
{labels}. It was made to be looked into and trained further, as chapters 17 and 18 of *Building the
Transformer* do. It has never seen a photograph.

```python
from transformer_lib import pipeline
from transformer_lib.datasets import scenes

pipeline("object-detection")(scenes.draw_scene(0, split="test").image)
```

The files are as Hugging Face's `DetrForObjectDetection` has them, so that its pipeline reads them
too. Give that one picture at a time or pictures of one size: it does not hide padding from the
residual network, as this model expects. Residual network of {depths} blocks, {widths} channels,
stride {stride}; {encoder} encoder and
{decoder} decoder layers, d_model {d_model}, {n_heads} heads, d_ff {d_ff}, {n_queries} object
queries. Trained on {scenes:,} scenes of `transformer_lib.datasets.scenes` by `{command}` in
{minutes:.0f} minutes of {threads} CPU core(s), from seed {seed}.

| Unseen scenes | Number | Pixels | AP | AP50 | AP75 | AP, small | AP, medium | AP, large |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
{rows}

test: all shapes and rooms, among them those that training never showed; valid: the shapes and rooms
of training; unfamiliar: only those that training never showed. Average precision as COCO defines
it, small being up to 32² square pixels, medium up to 96²; a dash stands where no object is so
large. Smaller pictures are enlarged by the processor. Log, seed, commit and checksum:
`recipes/scenes_detr` in the repository.
"""


def card(model: DETR, recipe: Recipe, result: dict[str, Any]) -> str:
    """Return the model card."""
    config = model.config
    columns = ("AP", "AP50", "AP75", "AP_small", "AP_medium", "AP_large")
    rows = []
    for name, ap in result["scores"].items():
        _, number, (width, height) = SCORED[name]
        cells = [f"{ap[c]:.3f}" if c in ap else "–" for c in columns]
        rows.append(f"| {' | '.join([name, str(number), f'{width} × {height}', *cells])} |")
    return CARD.format(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        labels=", ".join(config.labels),
        depths=" + ".join(map(str, config.backbone.depths)),
        widths=", ".join(map(str, config.backbone.widths)),
        stride=model.backbone.stride,
        encoder=config.n_encoder_layers,
        decoder=config.n_decoder_layers,
        d_model=config.d_model,
        n_heads=config.n_heads,
        d_ff=config.d_ff,
        n_queries=config.n_queries,
        scenes=len({*SMALL, *LARGE}) * (recipe.scenes // len(SMALL)),
        command=result["command"],
        minutes=result["seconds"] / 60,
        threads=result["threads"],
        seed=recipe.seed,
        rows="\n".join(rows),
    )


def main() -> None:
    """Train, score, and write both down."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True, help="where the run is kept")
    parser.add_argument("--steps", type=int, help="of every phase, instead of the recipe's")
    parser.add_argument("--scenes", type=int, help="to train on, instead of the recipe's number")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ship", action="store_true", help="put the result into the package")
    options = parser.parse_args()
    recipe = replace(Recipe(), seed=options.seed)
    least = recipe.batch * len(SMALL)
    if options.scenes is not None:
        if options.scenes < least:
            parser.error(f"--scenes: expected {least} or more, got {options.scenes}")
        recipe = replace(recipe, scenes=options.scenes)
    if options.steps is not None:
        if options.steps < 1:
            parser.error(f"--steps: expected 1 or more, got {options.steps}")
        for name in PHASES:
            phase: Phase = getattr(recipe, name)
            warmup = min(phase.warmup, options.steps)
            shorter = replace(phase, steps=options.steps, warmup=warmup)
            recipe = replace(recipe, **{name: shorter})
    try:
        run(recipe, options)
    except (FloatingPointError, OSError, ValueError) as error:
        sys.exit(f"{Path(__file__).name}: {error}")


def run(recipe: Recipe, options: argparse.Namespace) -> None:
    """Train, score and record as the options say."""
    torch.manual_seed(recipe.seed)
    model = DETR(CONFIG)
    seconds = train(model, recipe, options.folder)
    folder, processor = options.folder / "model", recipe.refining.processor
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    model = DETR.from_pretrained(folder)
    scores = {
        name: score(model, processor, draw_split(*drawing)) for name, drawing in SCORED.items()
    }
    result = record(recipe, seconds, folder / "model.safetensors", scores)
    text = json.dumps(result, indent=2) + "\n"
    (options.folder / "scores.json").write_text(text, encoding="utf-8")
    print(text)
    if options.ship:
        shutil.copytree(folder, SHIPPED, dirs_exist_ok=True)
        (SHIPPED / "README.md").write_text(card(model, recipe, result), encoding="utf-8")
        RECORD.mkdir(exist_ok=True)
        lines = [
            {"phase": phase} | line for phase in PHASES for line in read_log(options.folder / phase)
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (RECORD / "log.jsonl").write_text(text, encoding="utf-8")
        shutil.copy(options.folder / "scores.json", RECORD / "scores.json")


if __name__ == "__main__":
    main()

"""Speed of DETR's inference against Hugging Face's model with the same weights.

The published ResNet-50 size, random weights, pictures whose shorter edge is 800 pixels: one alone,
and four of unequal sizes in one batch with a mask. The library runs as it is, and as the copy that
``for_detection`` makes: batch normalisation folded into the convolutions, the weights of which lie
channels last. Both libraries attend by PyTorch's fused kernel. Each time is the processor time of a
whole call of the model. The models take turns, so that a disturbance of the machine meets all
alike; only the ratios mean anything.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable

import torch
from torch import Tensor
from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig

from transformer_lib.detection.detr import DETR, for_detection

OURS, FAST, PEER = "transformer_lib", "transformer_lib, for_detection", "Hugging Face DETR"
BATCHES = {1: [(800, 1066)], 4: [(800, 1066), (800, 1066), (750, 1000), (800, 800)]}
Model = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def models() -> dict[str, Model]:
    """Build the model that both libraries run; ours reads what the other wrote."""
    config = DetrConfig(
        use_timm_backbone=False,
        backbone_config=ResNetConfig(out_features=["stage4"]),
        id2label={number: f"LABEL_{number}" for number in range(91)},
    )
    published = DetrForObjectDetection(config).eval()
    with tempfile.TemporaryDirectory() as folder:
        published.save_pretrained(folder)
        ours = DETR.from_pretrained(folder)
    fast = for_detection(ours)

    def peer(pixels: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        output = published(pixel_values=pixels, pixel_mask=mask)
        return output.logits, output.pred_boxes

    return {
        OURS: lambda pixels, mask: ours(pixels, mask)[:2],
        FAST: lambda pixels, mask: fast(pixels, mask)[:2],
        PEER: peer,
    }


def pictures(sizes: list[tuple[int, int]]) -> tuple[Tensor, Tensor]:
    """Return noise of these heights and widths, padded with 0, and the mask."""
    height, width = (max(size) for size in zip(*sizes, strict=True))
    mask = torch.zeros(len(sizes), height, width, dtype=torch.bool)
    for number, (rows, columns) in enumerate(sizes):
        mask[number, :rows, :columns] = True
    return torch.randn(len(sizes), 3, height, width) * mask[:, None], mask


@torch.inference_mode()
def measure(rounds: int) -> dict[int, dict[str, list[float]]]:
    """Return the seconds of every call, the first left out."""
    torch.manual_seed(0)
    runs = models()
    batches = {batch: pictures(sizes) for batch, sizes in BATCHES.items()}
    seconds: dict[int, dict[str, list[float]]] = {
        batch: {name: [] for name in runs} for batch in batches
    }
    for round_ in range(rounds + 1):
        for batch, of_batch in seconds.items():
            found = {}
            for name, run in runs.items():
                start = time.process_time()
                found[name] = run(*batches[batch])
                if round_:
                    of_batch[name].append(time.process_time() - start)
            for name in runs:
                for got, want in zip(found[name], found[PEER], strict=True):
                    torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-3)
    return seconds


def main() -> None:
    """Print a table of medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    threads = f"{options.threads} thread(s)"
    print(f"| pictures, {threads} | library | CPU s/picture | against Hugging Face |")
    print("|---|---|---:|---:|")
    for batch, seconds in measure(options.rounds).items():
        medians = {name: statistics.median(of_name) for name, of_name in seconds.items()}
        for name, median in medians.items():
            print(f"| {batch} | {name} | {median / batch:.2f} | {medians[PEER] / median:.2f} |")


if __name__ == "__main__":
    main()

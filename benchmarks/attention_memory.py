"""Peak memory of attention over many positions, against PyTorch's fused kernel.

Every measurement is a process of its own, since a process never returns its peak. What counts is
the peak above what stood before the call, inputs included: forward pass and backward pass.
"""

import argparse
import resource
import subprocess
import sys

import torch
from torch.nn import functional as F

HEADS, D_K = 8, 64
KINDS = ("torch", "ours", "ours, causal", "ours, with weights")


def peak() -> float:
    """Return the process's peak memory in MB."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (1024 * (1024 if sys.platform == "darwin" else 1))


def measure(kind: str, length: int) -> float:
    """Return how many MB one forward and backward pass adds to the peak."""
    from transformer_lib.attention import scaled_dot_product_attention

    inputs = [torch.randn(1, HEADS, length, D_K, requires_grad=True) for _ in range(3)]
    for attention in (F.scaled_dot_product_attention, scaled_dot_product_attention):
        attention(*(x[:, :, :16] for x in inputs)).sum().backward()  # what a first call loads
    before = peak()
    if kind == "torch":
        output = F.scaled_dot_product_attention(*inputs)
    elif kind == "ours, with weights":
        output, _ = scaled_dot_product_attention(*inputs, return_weights=True)
    else:
        output = scaled_dot_product_attention(*inputs, causal="causal" in kind)
    output.sum().backward()
    return peak() - before


def main() -> None:
    """Print a table, or one number where a kind is given."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--kind", choices=KINDS)
    options = parser.parse_args()
    if options.kind:
        print(measure(options.kind, options.length))
        return
    sizes = {}
    for kind in KINDS:
        command = [sys.executable, __file__, "--length", str(options.length), "--kind", kind]
        sizes[kind] = float(subprocess.run(command, capture_output=True, check=True).stdout)
    print(f"| attention over {options.length} positions | MB | of PyTorch's |")
    print("|---|---:|---:|")
    for kind, size in sizes.items():
        print(f"| {kind} | {size:.0f} | {size / sizes['torch']:.2f} |")


if __name__ == "__main__":
    main()

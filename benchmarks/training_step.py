"""Time of one training step of the base model, against the same model in other libraries.

Each model of the paper's base size (vocabularies 7851 and 5972) takes the same batch of 16 pairs
of 50 tokens through forward pass, loss, backward pass and Adam. The models take turns, so that a
disturbance of the machine meets all alike; only the ratios mean anything. The peers need
``benchmarks/requirements.txt``.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import MarianConfig, MarianMTModel
from x_transformers import XTransformer

from transformer_lib.transformer import Transformer, TransformerConfig

SOURCE, TARGET, BATCH, LENGTH, DROPOUT = 7851, 5972, 16, 50, 0.1
Step = Callable[[Tensor, Tensor, Tensor], Tensor]


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean loss over all tokens."""
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def ours(compiled: bool = False) -> tuple[nn.Module, Step]:
    """Build the library's model."""
    config = TransformerConfig(
        source_vocabulary=SOURCE,
        target_vocabulary=TARGET,
        dropout=DROPOUT,
        attention_dropout=DROPOUT,
        feed_forward_dropout=DROPOUT,
        tied="none",
    )
    model = Transformer(config)
    run = torch.compile(model, fullgraph=True) if compiled else model
    return model, lambda source, target, labels: cross_entropy(run(source, target), labels)


class TorchTransformer(nn.Module):
    """``nn.Transformer`` with the embeddings and the output layer it leaves to its user."""

    def __init__(self) -> None:
        super().__init__()
        self.source = nn.Embedding(SOURCE, 512)
        self.target = nn.Embedding(TARGET, 512)
        self.transformer = nn.Transformer(dropout=DROPOUT, batch_first=True)
        self.output = nn.Linear(512, TARGET, bias=False)
        positions = torch.randn(LENGTH, 512)
        self.register_buffer("positions", positions)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return logits."""
        x = F.dropout(self.source(source) * 512**0.5 + self.positions, DROPOUT)
        y = F.dropout(self.target(target) * 512**0.5 + self.positions, DROPOUT)
        padding = source == 0
        decoded = self.transformer(
            x,
            y,
            tgt_mask=self.mask,
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return self.output(decoded)


def torchs() -> tuple[nn.Module, Step]:
    """Build PyTorch's model."""
    model = TorchTransformer()
    return model, lambda source, target, labels: cross_entropy(model(source, target), labels)


def marian() -> tuple[nn.Module, Step]:
    """Build Hugging Face's Marian model."""
    config = MarianConfig(
        vocab_size=SOURCE,
        decoder_vocab_size=TARGET,
        share_encoder_decoder_embeddings=False,
        tie_word_embeddings=False,
        d_model=512,
        encoder_layers=6,
        decoder_layers=6,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        activation_function="relu",
        scale_embedding=True,
        dropout=DROPOUT,
        attention_dropout=DROPOUT,
        activation_dropout=DROPOUT,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=2,
        use_cache=False,
    )
    model = MarianMTModel(config).train()

    def step(source: Tensor, target: Tensor, labels: Tensor) -> Tensor:
        out = model(input_ids=source, attention_mask=(source != 0).long(), decoder_input_ids=target)
        return cross_entropy(out.logits, labels)

    return model, step


def x_transformers() -> tuple[nn.Module, Step]:
    """Build x-transformers' encoder-decoder, which shifts the target and takes the loss itself."""
    sizes = {"depth": 6, "heads": 8, "max_seq_len": LENGTH + 1}
    dropouts = {"attn_dropout": DROPOUT, "ff_dropout": DROPOUT}
    options = sizes | dropouts
    model = XTransformer(
        dim=512,
        **{f"enc_{name}": value for name, value in (options | {"num_tokens": SOURCE}).items()},
        **{f"dec_{name}": value for name, value in (options | {"num_tokens": TARGET}).items()},
    )

    def step(source: Tensor, target: Tensor, labels: Tensor) -> Tensor:
        return model(source, torch.cat([target, labels[:, -1:]], dim=1), mask=source != 0)

    return model, step


MODELS: dict[str, Callable[[], tuple[nn.Module, Step]]] = {
    "transformer_lib": ours,
    "nn.Transformer": torchs,
    "Hugging Face Marian": marian,
    "x-transformers": x_transformers,
    "transformer_lib, torch.compile": lambda: ours(compiled=True),
}


def measure(rounds: int) -> dict[str, list[float]]:
    """Return the seconds of every step of every model, the warm-up left out."""
    torch.manual_seed(0)
    source = torch.randint(1, SOURCE, (BATCH, LENGTH))
    target, labels = torch.randint(1, TARGET, (2, BATCH, LENGTH))
    runs = {}
    for name, build in MODELS.items():
        model, step = build()
        runs[name] = (step, torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9))
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for round_ in range(rounds + 2):
        for name, (step, optimizer) in runs.items():
            start = time.perf_counter()
            step(source, target, labels).backward()
            optimizer.step()
            optimizer.zero_grad()
            if round_ >= 2:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def main() -> None:
    """Print a table of medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    medians = {name: statistics.median(s) for name, s in measure(options.rounds).items()}
    fastest = min(s for name, s in medians.items() if "transformer_lib" not in name)
    print(f"| {options.threads} thread(s) | tokens/s | speed against the fastest peer |")
    print("|---|---:|---:|")
    for name, median in medians.items():
        print(f"| {name} | {2 * BATCH * LENGTH / median:.0f} | {fastest / median:.3f} |")


if __name__ == "__main__":
    main()

"""One of two processes that share a Transformer's layers: ``python two_processes.py RANK FILE``.

Started twice by test_with_pytorch.py. Each holds the sharded model against a whole one, in
training, in which it sees half of the batch, and in decoding.
"""

import sys

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor
from torch.nn import functional as F

from transformer_lib.decoding import CachedDecoder, UncachedDecoder, beam_search, greedy
from transformer_lib.transformer import Transformer, TransformerConfig

SIZES = {"d_model": 32, "n_heads": 4, "d_ff": 64, "n_encoder_layers": 2, "n_decoder_layers": 2}
PROCESSES = 2


def new_model() -> Transformer:
    torch.manual_seed(0)
    return Transformer(TransformerConfig(50, 50, dropout=0.0, **SIZES))


def loss(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())


def average(model: nn.Module) -> None:
    """Average the gradients of what is not sharded, as ``DistributedDataParallel`` would."""
    for parameter in model.parameters():
        if not isinstance(parameter, DTensor):
            dist.all_reduce(parameter.grad)
            parameter.grad /= PROCESSES


def train(whole: Transformer, shared: Transformer, source: Tensor, target: Tensor) -> None:
    """Make three steps with both models, the whole one on all sentences."""
    half = slice(dist.get_rank(), None, PROCESSES)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (whole, shared)]
    for _ in range(3):
        expected, own = loss(whole, source, target), loss(shared, source[half], target[half])
        expected.backward()
        own.backward()
        average(shared)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        mean = own.detach().clone()
        dist.all_reduce(mean)
        torch.testing.assert_close(mean / PROCESSES, expected.detach())


def compare(whole: Transformer, shared: Transformer) -> None:
    pairs = zip(whole.named_parameters(), shared.parameters(), strict=True)
    for (name, expected), parameter in pairs:
        came = parameter.full_tensor() if isinstance(parameter, DTensor) else parameter
        torch.testing.assert_close(came, expected, rtol=1e-4, atol=1e-5, msg=name)


def decode(whole: Transformer, shared: Transformer, source: Tensor) -> None:
    options = {"start": 1, "end": 2, "max_length": 8}
    expected = greedy(CachedDecoder(whole, source), **options)
    for decoder in (CachedDecoder, UncachedDecoder):
        assert torch.equal(greedy(decoder(shared, source), **options), expected)
    best = [
        [hypotheses[0].tokens for hypotheses in beam_search(decoder, beams=3, **options)]
        for decoder in (CachedDecoder(whole, source), CachedDecoder(shared, source))
    ]
    assert best[0] == best[1]


def main(rank: int, file: str) -> None:
    dist.init_process_group("gloo", f"file://{file}", rank=rank, world_size=PROCESSES)
    mesh = init_device_mesh("cpu", (PROCESSES,))
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(1, 50, (4, 6), generator=generator)
    target = torch.randint(1, 50, (4, 5), generator=generator)
    for root in (False, True):
        whole, shared = new_model(), new_model()
        for layer in (*shared.encoder.layers, *shared.decoder.layers):
            fully_shard(layer, mesh=mesh)
        if root:  # what is left as well: embeddings, norms, the generator
            fully_shard(shared, mesh=mesh)
            for method in ("encode", "decode"):
                register_fsdp_forward_method(shared, method)
        assert all(isinstance(p, DTensor) for p in shared.decoder.layers.parameters())
        train(whole, shared, source, target)
        compare(whole, shared)
        decode(whole.eval(), shared.eval(), source)
    dist.destroy_process_group()
    print("the same")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])

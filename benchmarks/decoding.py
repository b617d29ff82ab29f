"""Speed of greedy decoding with a cache, against the same weights in other libraries.

One model of the paper's base size (vocabularies 7851 and 5972, random weights) translates sources
of up to 50 tokens into exactly 64 and 200 new tokens, one sentence at a time and eight of unequal
lengths together. Its end token has a bias of −10⁹, so that no library ever takes it. Each time is
the processor time of a whole call, encoder included, on one thread; what a library prepares once
for a model is left out. The libraries take turns, so that a disturbance of the machine meets all
alike; only the ratios mean anything. The peers need ``benchmarks/requirements.txt``.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable

import ctranslate2
import torch
from ctranslate2.converters.transformers import BartLoader
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

from transformer_lib.decoding import CachedDecoder, greedy
from transformer_lib.decoding_model import for_decoding
from transformer_lib.published.marian import config_from_marian, transformer_from_marian
from transformer_lib.transformer import Transformer

SOURCE, TARGET, LENGTH = 7851, 5972, 50
PADDING, END, START, UNKNOWN = range(4)
OURS, PEER, MARK = "transformer_lib", "Hugging Face Marian", "CTranslate2, float32"
CASES = [(1, 64), (8, 64), (1, 200), (8, 200)]
Translate = Callable[[Tensor, int], Tensor]


def marian() -> MarianMTModel:
    """Build the model that all libraries run."""
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
        max_position_embeddings=512,
        pad_token_id=PADDING,
        eos_token_id=END,
        decoder_start_token_id=START,
        forced_eos_token_id=None,
    )
    model = MarianMTModel(config).eval()
    model.final_logits_bias[0, END] = -1e9
    return model


def ours(published: MarianMTModel) -> Translate:
    """Load the weights into the library's model."""
    model = Transformer(config_from_marian(published.config.to_dict())).eval()
    model.load_state_dict(transformer_from_marian(published.state_dict()))
    model = for_decoding(model)

    def translate(source: Tensor, length: int) -> Tensor:
        decoder = CachedDecoder(model, source)
        return greedy(decoder, start=START, end=END, max_length=length, padding_id=PADDING)

    return translate


def hugging_face(published: MarianMTModel) -> Translate:
    """Return the model's own ``generate``."""

    def translate(source: Tensor, length: int) -> Tensor:
        mask = (source != PADDING).long()
        out = published.generate(
            input_ids=source,
            attention_mask=mask,
            max_new_tokens=length,
            num_beams=1,
            use_cache=True,
        )
        return out[:, 1:]

    return translate


def ctranslate(published: MarianMTModel) -> Translate:
    """Convert the weights for CTranslate2; a token is called by its number there."""
    published.config.normalize_before = published.config.normalize_embedding = False
    # The loader of Marian models would remove the row of the padding, which it takes for the last.
    with torch.no_grad():
        spec = BartLoader().get_model_spec(published)
    spec.register_source_vocabulary([str(token) for token in range(SOURCE)])
    spec.register_target_vocabulary([str(token) for token in range(TARGET)])
    spec.config.bos_token = spec.config.decoder_start_token = str(START)
    spec.config.eos_token, spec.config.unk_token = str(END), str(UNKNOWN)
    spec.config.add_source_eos = False
    spec.validate()
    spec.optimize(quantization="float32")
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        translator = ctranslate2.Translator(
            folder, "cpu", compute_type="float32", inter_threads=1, intra_threads=1
        )

    def translate(source: Tensor, length: int) -> Tensor:
        rows = [[str(token) for token in row if token != PADDING] for row in source.tolist()]
        results = translator.translate_batch(
            rows, beam_size=1, max_decoding_length=length, return_end_token=True
        )
        return torch.tensor([[int(token) for token in r.hypotheses[0]] for r in results])

    return translate


def sources(batch: int) -> Tensor:
    """Return sentences of unequal lengths, the first the longest, with padding behind them."""
    source = torch.randint(UNKNOWN + 1, SOURCE, (batch, LENGTH))
    lengths = LENGTH - 3 * torch.arange(batch)
    return source.masked_fill(torch.arange(LENGTH) >= lengths[:, None], PADDING)


def measure(rounds: int) -> dict[tuple[int, int], dict[str, list[float]]]:
    """Return the seconds of every call, the first left out."""
    torch.manual_seed(0)
    published = marian()
    runs = {
        OURS: ours(published),
        PEER: hugging_face(published),
        MARK: ctranslate(published),
    }
    batches = {batch: sources(batch) for batch, _ in CASES}
    seconds: dict[tuple[int, int], dict[str, list[float]]] = {
        case: {name: [] for name in runs} for case in CASES
    }
    for round_ in range(rounds + 1):
        for (batch, length), of_case in seconds.items():
            tokens = {}
            for name, translate in runs.items():
                start = time.process_time()
                tokens[name] = translate(batches[batch], length)
                if round_:
                    of_case[name].append(time.process_time() - start)
            assert tokens[OURS].shape == (batch, length)
            for name in runs:
                assert torch.equal(tokens[name], tokens[OURS]), name
    return seconds


def main() -> None:
    """Print a table of medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| batch, new tokens | library | tokens/s | against Hugging Face | against CTranslate2 |")
    print("|---|---|---:|---:|---:|")
    for (batch, length), seconds in measure(options.rounds).items():
        medians = {name: statistics.median(of_name) for name, of_name in seconds.items()}
        for name, median in medians.items():
            print(
                f"| {batch}, {length} | {name} | {batch * length / median:.0f} "
                f"| {medians[PEER] / median:.2f} | {medians[MARK] / median:.2f} |"
            )


if __name__ == "__main__":
    main()

"""The Transformer, built part by part: the library of the book *Building the Transformer*.

Every module belongs to the chapter that builds it; its docstring names the chapter. Where a
function has its module's name, as softmax has, the name here means the function:
``from transformer_lib.softmax import …`` reaches the rest of the module.
"""

from transformer_lib.add_norm import AddNorm, LayerNorm, layer_norm
from transformer_lib.attention import (
    attention_weights,
    dot_product_attention,
    scaled_dot_product_attention,
)
from transformer_lib.checkpoints import list_checkpoints, read_log
from transformer_lib.decoding import (
    CachedDecoder,
    Hypothesis,
    NextToken,
    UncachedDecoder,
    beam_search,
    for_decoding,
    greedy,
    length_penalty,
    sample,
)
from transformer_lib.detection.coco import read_coco
from transformer_lib.detection.configuration import DETRConfig
from transformer_lib.detection.detr import DETR
from transformer_lib.detection.drawing import draw_detections
from transformer_lib.detection.fine_tuning import fine_tune
from transformer_lib.detection.images import load_image
from transformer_lib.detection.pipeline import ObjectDetectionPipeline, pipeline
from transformer_lib.detection.processing import ImageProcessor
from transformer_lib.embedding import Generator, InputLayer, TokenEmbedding
from transformer_lib.feed_forward import ACTIVATIONS, FeedForward
from transformer_lib.inner_product import cosine_similarity, inner_product, unit_vectors
from transformer_lib.layers import Decoder, DecoderLayer, Encoder, EncoderLayer
from transformer_lib.masking import (
    band_mask,
    causal_mask,
    combine_masks,
    mask_from_additive,
    mask_from_hidden,
    mask_to_additive,
    padding_mask,
)
from transformer_lib.multi_head_attention import (
    KeysValues,
    MultiHeadAttention,
    join_heads,
    split_heads,
)
from transformer_lib.positional_encoding import LearnedPositions, SinusoidalPositions, sinusoids
from transformer_lib.published.marian import MarianTranslator
from transformer_lib.published.sentences import SentenceEncoder
from transformer_lib.published.transcriber import Transcriber
from transformer_lib.softmax import softmax, softmax_jacobian, softmax_jvp
from transformer_lib.training import (
    Batch,
    Batches,
    StepResult,
    TokenLoss,
    Trainer,
    TrainingConfig,
    average_checkpoints,
    linear_learning_rate,
    noam_learning_rate,
    pad,
    sequence_loss,
    shift_target,
    smoothed_labels,
    training_step,
)
from transformer_lib.transformer import (
    TextEncoder,
    Transformer,
    TransformerConfig,
    record_attention,
)
from transformer_lib.translation import (
    END,
    PADDING,
    START,
    UNKNOWN,
    Scores,
    Translator,
    encode_pairs,
    nearest_neighbours,
    score,
    train_tokenizer,
)
from transformer_lib.weighted_sum import is_convex, weighted_sum

__version__ = "0.1.0"

__all__ = [
    "ACTIVATIONS",
    "DETR",
    "END",
    "PADDING",
    "START",
    "UNKNOWN",
    "AddNorm",
    "Batch",
    "Batches",
    "CachedDecoder",
    "DETRConfig",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "Generator",
    "Hypothesis",
    "ImageProcessor",
    "InputLayer",
    "KeysValues",
    "LayerNorm",
    "LearnedPositions",
    "MarianTranslator",
    "MultiHeadAttention",
    "NextToken",
    "ObjectDetectionPipeline",
    "Scores",
    "SentenceEncoder",
    "SinusoidalPositions",
    "StepResult",
    "TextEncoder",
    "TokenEmbedding",
    "TokenLoss",
    "Trainer",
    "TrainingConfig",
    "Transcriber",
    "Transformer",
    "TransformerConfig",
    "Translator",
    "UncachedDecoder",
    "attention_weights",
    "average_checkpoints",
    "band_mask",
    "beam_search",
    "causal_mask",
    "combine_masks",
    "cosine_similarity",
    "dot_product_attention",
    "draw_detections",
    "encode_pairs",
    "fine_tune",
    "for_decoding",
    "greedy",
    "inner_product",
    "is_convex",
    "join_heads",
    "layer_norm",
    "length_penalty",
    "linear_learning_rate",
    "list_checkpoints",
    "load_image",
    "mask_from_additive",
    "mask_from_hidden",
    "mask_to_additive",
    "nearest_neighbours",
    "noam_learning_rate",
    "pad",
    "padding_mask",
    "pipeline",
    "read_coco",
    "read_log",
    "record_attention",
    "sample",
    "scaled_dot_product_attention",
    "score",
    "sequence_loss",
    "shift_target",
    "sinusoids",
    "smoothed_labels",
    "softmax",
    "softmax_jacobian",
    "softmax_jvp",
    "split_heads",
    "train_tokenizer",
    "training_step",
    "unit_vectors",
    "weighted_sum",
]

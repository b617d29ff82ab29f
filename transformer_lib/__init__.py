"""The Transformer, built part by part: the library of the book *Building the Transformer*.

Here is what a user of the finished library reaches for. All else comes from its module, which
belongs to the chapter that builds it, as its docstring says: ``from transformer_lib.softmax import
softmax``.
"""

from transformer_lib.add_norm import AddNorm, LayerNorm
from transformer_lib.attention import scaled_dot_product_attention
from transformer_lib.decoding import CachedDecoder, beam_search, greedy
from transformer_lib.decoding_model import for_decoding
from transformer_lib.detection.configuration import DETRConfig
from transformer_lib.detection.detr import DETR
from transformer_lib.detection.drawing import draw_detections
from transformer_lib.detection.fine_tuning import fine_tune
from transformer_lib.detection.images import load_image
from transformer_lib.detection.pipeline import ObjectDetectionPipeline, pipeline
from transformer_lib.detection.processing import ImageProcessor
from transformer_lib.embedding import Generator, TokenEmbedding
from transformer_lib.feed_forward import FeedForward
from transformer_lib.layers import Decoder, DecoderLayer, Encoder, EncoderLayer
from transformer_lib.masking import causal_mask, padding_mask
from transformer_lib.multi_head_attention import MultiHeadAttention
from transformer_lib.positional_encoding import LearnedPositions, SinusoidalPositions
from transformer_lib.published.marian import MarianTranslator
from transformer_lib.published.sentences import SentenceEncoder
from transformer_lib.published.transcriber import Transcriber
from transformer_lib.training import Batches, Trainer, TrainingConfig
from transformer_lib.transformer import (
    TextEncoder,
    Transformer,
    TransformerConfig,
    record_attention,
)
from transformer_lib.translation import Translator, train_tokenizer

__version__ = "0.1.0"

__all__ = [
    "DETR",
    "AddNorm",
    "Batches",
    "CachedDecoder",
    "DETRConfig",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "Generator",
    "ImageProcessor",
    "LayerNorm",
    "LearnedPositions",
    "MarianTranslator",
    "MultiHeadAttention",
    "ObjectDetectionPipeline",
    "SentenceEncoder",
    "SinusoidalPositions",
    "TextEncoder",
    "TokenEmbedding",
    "Trainer",
    "TrainingConfig",
    "Transcriber",
    "Transformer",
    "TransformerConfig",
    "Translator",
    "beam_search",
    "causal_mask",
    "draw_detections",
    "fine_tune",
    "for_decoding",
    "greedy",
    "load_image",
    "padding_mask",
    "pipeline",
    "record_attention",
    "scaled_dot_product_attention",
    "train_tokenizer",
]

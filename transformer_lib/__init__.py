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
from transformer_lib.embedding import Generator, InputLayer, TokenEmbedding
from transformer_lib.feed_forward import ACTIVATIONS, FeedForward
from transformer_lib.inner_product import cosine_similarity, inner_product, unit_vectors
from transformer_lib.masking import (
    band_mask,
    causal_mask,
    combine_masks,
    mask_from_additive,
    mask_from_hidden,
    mask_to_additive,
    padding_mask,
    require_mask,
)
from transformer_lib.multi_head_attention import (
    KeysValues,
    MultiHeadAttention,
    join_heads,
    split_heads,
)
from transformer_lib.positional_encoding import LearnedPositions, SinusoidalPositions, sinusoids
from transformer_lib.pretrained import (
    attention_from_torch,
    config_from_bert,
    config_from_marian,
    encoder_from_bert,
    layer_from_torch,
    stack_from_torch,
    transformer_from_marian,
    transformer_from_torch,
)
from transformer_lib.softmax import softmax, softmax_jacobian, softmax_jvp
from transformer_lib.transformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    TextEncoder,
    Transformer,
    TransformerConfig,
    load_weights,
    record_attention,
    require_state,
)
from transformer_lib.weighted_sum import is_convex, weighted_sum

__version__ = "0.1.0"

__all__ = [
    "ACTIVATIONS",
    "AddNorm",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "Generator",
    "InputLayer",
    "KeysValues",
    "LayerNorm",
    "LearnedPositions",
    "MultiHeadAttention",
    "SinusoidalPositions",
    "TextEncoder",
    "TokenEmbedding",
    "Transformer",
    "TransformerConfig",
    "attention_from_torch",
    "attention_weights",
    "band_mask",
    "causal_mask",
    "combine_masks",
    "config_from_bert",
    "config_from_marian",
    "cosine_similarity",
    "dot_product_attention",
    "encoder_from_bert",
    "inner_product",
    "is_convex",
    "join_heads",
    "layer_from_torch",
    "layer_norm",
    "load_weights",
    "mask_from_additive",
    "mask_from_hidden",
    "mask_to_additive",
    "padding_mask",
    "record_attention",
    "require_mask",
    "require_state",
    "scaled_dot_product_attention",
    "sinusoids",
    "softmax",
    "softmax_jacobian",
    "softmax_jvp",
    "split_heads",
    "stack_from_torch",
    "transformer_from_marian",
    "transformer_from_torch",
    "unit_vectors",
    "weighted_sum",
]

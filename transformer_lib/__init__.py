"""The Transformer, built part by part: the library of the book *Building the Transformer*.

Every module belongs to the chapter that builds it; its docstring names the chapter. Where a
function has its module's name, as softmax has, the name here means the function:
``from transformer_lib.softmax import …`` reaches the rest of the module.
"""

from transformer_lib.attention import attention_weights, dot_product_attention
from transformer_lib.inner_product import cosine_similarity, inner_product, unit_vectors
from transformer_lib.softmax import softmax, softmax_jacobian, softmax_jvp
from transformer_lib.weighted_sum import is_convex, weighted_sum

__version__ = "0.1.0"

__all__ = [
    "attention_weights",
    "cosine_similarity",
    "dot_product_attention",
    "inner_product",
    "is_convex",
    "softmax",
    "softmax_jacobian",
    "softmax_jvp",
    "unit_vectors",
    "weighted_sum",
]

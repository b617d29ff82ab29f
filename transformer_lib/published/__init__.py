"""Weights that others published: what they are called here, and what is done with them.

Whoever imports the library can read them: each kind of model is entered in the list of
``transformer_lib.hub``, which ``from_pretrained`` of the earlier chapters asks.
"""

from transformer_lib.hub import READERS, Reader
from transformer_lib.published.bert import read_bert
from transformer_lib.published.marian import read_marian
from transformer_lib.published.whisper import SpeechTransformer, read_whisper
from transformer_lib.transformer import TextEncoder, Transformer

READERS["bert"] = Reader(TextEncoder, read_bert)
READERS["marian"] = Reader(Transformer, read_marian)
READERS["whisper"] = Reader(SpeechTransformer, read_whisper)

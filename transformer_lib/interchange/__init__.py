"""Files of other programs: CTranslate2's are read."""

from transformer_lib.interchange.ctranslate2 import read_ctranslate2, whisper_from_ctranslate2

__all__ = ["read_ctranslate2", "whisper_from_ctranslate2"]

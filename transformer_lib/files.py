"""Files: read with errors that name them, written whole or not at all.

The one place where the library reads and writes. What is written goes into a file beside its place,
with ``.part`` after its name, and is renamed when all of it is on the disk: what bears the name is
whole, whatever happens meanwhile, and what a kill leaves behind is written over the next time.
"""

import ctypes
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer
from torch import Tensor, nn

__all__ = [
    "build_from",
    "load_model",
    "load_weights",
    "parse_json",
    "read_header",
    "read_json",
    "read_metadata",
    "read_tensors",
    "read_text",
    "read_tokenizer",
    "require_state",
    "write_json",
    "write_model",
    "write_tensors",
    "write_text",
]

_Model = TypeVar("_Model", bound=nn.Module)

_DEPTH = 64  # of objects and lists in one another; a configuration has 3 or 4
_BUFFERS = 2**26  # numbers that a model may compute beside those that are loaded: 256 MB
# What safetensors calls the dtypes, in the order in which it writes them.
_DTYPES = {
    "I64": torch.int64,
    "F64": torch.float64,
    "F32": torch.float32,
    "I32": torch.int32,
    "BF16": torch.bfloat16,
    "F16": torch.float16,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


# Text and JSON


def read_text(file: str | os.PathLike[str]) -> str:
    """Return the text of a UTF-8 file without the byte order mark that it may begin with."""
    data = _existing(file).read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = f"0x{data[error.start]:02x} at byte {error.start + 1}"
        raise ValueError(f"file: {file} is no text in UTF-8: {place}") from None


def parse_json(text: str, name: str) -> Any:
    """Return what a JSON text means, or raise ValueError that begins with ``name``."""
    if not text.strip():
        raise ValueError(f"{name}: expected JSON, got an empty text")
    try:
        content = json.loads(text)
    except RecursionError:
        content = None
        deep = True
    except json.JSONDecodeError as error:
        raise ValueError(f"{name}: not valid JSON: {error}") from None
    except ValueError:  # of an integer
        raise ValueError(f"{name}: not valid JSON: a number of thousands of digits") from None
    else:
        deep = _deep(content)
    if deep:
        raise ValueError(f"{name}: expected JSON at most {_DEPTH} levels deep, got more")
    return content


def read_json(file: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the object that a JSON file holds."""
    content = parse_json(read_text(file), f"file: {file}")
    if not isinstance(content, dict):
        raise ValueError(f"file: {file}: expected a JSON object, got {type(content).__name__}")
    return content


def write_text(file: str | os.PathLike[str], text: str) -> None:
    """Write a text as UTF-8; folders that are missing are made."""
    _write((Path(file), partial(_write_encoded, text)))


def write_json(file: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write an object as JSON, an entry a line; TypeError if it holds what JSON does not have."""
    write_text(file, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _deep(content: Any) -> bool:
    """Tell whether lists and objects are in one another further than ``_DEPTH``."""
    level: list[Any] = [[content]]
    for _ in range(_DEPTH + 1):
        inner = (part.values() if isinstance(part, dict) else part for part in level)
        level = [value for part in inner for value in part if isinstance(value, dict | list)]
        if not level:
            return False
    return True


def read_tokenizer(folder: str | os.PathLike[str]) -> Tokenizer:
    """Return the tokenizer of a model's folder, of the ``tokenizers`` package."""
    file = Path(folder) / "tokenizer.json"
    if not file.is_file():
        raise FileNotFoundError(f"name: no tokenizer.json in {folder}")
    try:
        return Tokenizer.from_str(read_text(file))
    except ValueError:
        raise
    except Exception as error:  # the library raises nothing more exact, and cites the file
        where = re.search(r"line \d+ column \d+", str(error))
        place = f", see {where[0]}" if where else ""
        raise ValueError(f"file: {file} is no tokenizer, or is damaged{place}") from None


# Tensors


def read_tensors(file: str | os.PathLike[str], part: str = "") -> dict[str, Tensor]:
    """Return the tensors of a safetensors file whose names begin with ``part``."""
    with _opened(file) as opened:
        names = [name for name in opened.keys() if name.startswith(part)]  # noqa: SIM118 - no dict
        return {name: opened.get_tensor(name) for name in names}


def read_header(file: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Return all tensors of a safetensors file on the meta device: shapes and dtypes alone."""
    header = {}
    with _opened(file) as opened:
        for name in opened.keys():  # noqa: SIM118 - no dict
            part = opened.get_slice(name)
            if part.get_dtype() not in _DTYPES:
                raise ValueError(f"file: {file}: {name} has dtype {part.get_dtype()}")
            dtype = _DTYPES[part.get_dtype()]
            header[name] = torch.empty(part.get_shape(), dtype=dtype, device="meta")
    return header


def read_metadata(file: str | os.PathLike[str]) -> dict[str, str]:
    """Return the texts that a safetensors file holds beside its tensors."""
    with _opened(file) as opened:
        return opened.metadata() or {}


def write_tensors(
    file: str | os.PathLike[str],
    tensors: Mapping[str, Tensor],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a safetensors file, byte for byte as ``safetensors.torch.save_file`` would.

    That one has files of its own beside it while it writes, which stay after a kill. Tensors may be
    on any device and need not be contiguous; those that share memory are written one by one.
    """
    _write((Path(file), _tensor_writer(tensors, metadata)))


def write_model(
    folder: str | os.PathLike[str],
    config: str,
    tensors: Mapping[str, Tensor],
    others: Mapping[str, str] | None = None,
) -> None:
    """Write ``model.safetensors``, other texts by name and ``config.json``.

    No old one of them is ever found beside a new one.
    """
    texts = {**(others or {}), "config.json": config}
    _write(
        (Path(folder) / "model.safetensors", _tensor_writer(tensors, {"format": "pt"})),
        *((Path(folder) / name, partial(_write_encoded, text)) for name, text in texts.items()),
    )


def _write_encoded(text: str, part: BinaryIO) -> None:
    part.write(text.encode())


def _tensor_writer(
    tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None
) -> Callable[[BinaryIO], object]:
    """Return a function that writes tensors in the safetensors format."""
    order = list(_NAMES)
    for name, tensor in tensors.items():
        if tensor.dtype not in _NAMES:
            raise TypeError(f"{name}: expected one of {order}, got {tensor.dtype}")
    names = sorted(tensors, key=lambda name: (order.index(tensors[name].dtype), name.encode()))
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name in names:
        tensor = tensors[name]
        start, end = end, end + tensor.numel() * tensor.element_size()
        shape = list(tensor.shape)
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": shape, "data_offsets": [start, end]}
    head = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    head += b" " * (-len(head) % 8)

    def write(part: BinaryIO) -> None:
        part.write(len(head).to_bytes(8, "little") + head)
        for name in names:
            tensor = tensors[name].detach().cpu().contiguous()
            size = tensor.numel() * tensor.element_size()
            if size:  # without numpy, and without a copy
                part.write((ctypes.c_char * size).from_address(tensor.data_ptr()))

    return write


# Models


def load_weights(model: nn.Module, file: str | os.PathLike[str]) -> None:
    """Load a safetensors file into a model, whole or not at all.

    Its parameters keep their dtype and device.
    """
    state = read_tensors(file)
    require_state(model, state)
    model.load_state_dict(state)


def load_model(build: Callable[[], _Model], n_layers: int, file: str | os.PathLike[str]) -> _Model:
    """Return ``build()`` with the tensors of a file, in evaluation mode, as :func:`build_from`."""
    model = build_from(build, read_header(file), n_layers)
    load_weights(model, file)
    return model.eval()


def build_from(
    build: Callable[[], _Model],
    header: Mapping[str, Tensor],
    n_layers: int,
    convert: Callable[[Mapping[str, Tensor]], dict[str, Tensor]] = dict,
) -> _Model:
    """Return ``build()`` if a file's header says that its tensors are those of this model.

    A configuration that lies beside the weights is not believed before it is held against them:
    first it is built on the meta device, where nothing takes room.

    Args:
        build: Makes a model, of the configuration.
        header: What :func:`read_header` returned.
        n_layers: How many layers ``build`` makes; each has a tensor at least.
        convert: Renames the tensors of other libraries, those on the meta device, too.
    """
    if n_layers > len(header):
        raise ValueError(f"config: {n_layers} layers and {len(header)} tensors do not fit together")
    try:
        with torch.device("meta"):
            model = build()
    except (RuntimeError, OverflowError, TypeError) as error:  # PyTorch has several
        reason = str(error).partition("\n")[0]
        raise ValueError(f"config: no model has these sizes: {reason}") from None
    require_state(model, convert(header))
    computed = sum(buffer.numel() for buffer in model.buffers())
    if computed > max(_BUFFERS, sum(tensor.numel() for tensor in header.values())):
        raise ValueError(f"config: tables of {computed} numbers are more than any model needs")
    return build()


def require_state(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Raise ValueError unless ``state`` has exactly the model's tensors, names and shapes.

    The message names the first ten tensors that are missing, unexpected or of another shape, or
    have integers where the model has floating-point numbers.
    """
    expected = model.state_dict()
    problems = [
        f"{name} has shape {tuple(state[name].shape)}, expected {tuple(tensor.shape)}"
        for name, tensor in expected.items()
        if name in state and state[name].shape != tensor.shape
    ]
    problems += [
        f"{name} has dtype {state[name].dtype}, expected {tensor.dtype}"
        for name, tensor in expected.items()
        if name in state and state[name].is_floating_point() != tensor.is_floating_point()
    ]
    problems += [f"{name} is missing" for name in expected if name not in state]
    problems += [f"{name} is unexpected" for name in state if name not in expected]
    if len(problems) > 10:
        problems[10:] = [f"and {len(problems) - 10} more"]
    if problems:
        raise ValueError(f"state: the tensors are not the model's: {'; '.join(problems)}")


# What all share


def _existing(file: str | os.PathLike[str]) -> Path:
    path = Path(file)
    if not path.is_file():
        raise FileNotFoundError(f"file: no such file: {file}")
    return path


@contextmanager
def _opened(file: str | os.PathLike[str]) -> Iterator[Any]:
    """Open a safetensors file; whatever is wrong with it is a ValueError that names it."""
    try:
        with safe_open(_existing(file), framework="pt") as opened:
            yield opened
    except SafetensorError as error:
        raise ValueError(f"file: {file} is truncated or no safetensors file: {error}") from None


def _write(*files: tuple[Path, Callable[[BinaryIO], object]]) -> None:
    """Write files that belong together, each by its function.

    All go into parts beside their places first. Then the last file, by which readers begin, is
    taken away if it is there, and all parts take their places, that one at the end: nobody ever
    finds one of the old files beside one of the new. If anything fails before, nothing has changed.
    """
    parts = [(path.with_name(path.name + ".part"), path) for path, _ in files]
    try:
        for (part, path), (_, write) in zip(parts, files, strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as stream:
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
        if len(parts) > 1:
            path.unlink(missing_ok=True)
        for part, path in parts:
            part.replace(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise type(error)(f"file: cannot write {path}: {reason}") from None
    finally:
        for part, _ in parts:
            with suppress(OSError):
                part.unlink(missing_ok=True)

"""Use the shipped models from a terminal: ``python -m transformer_lib translate "…"``.

``translate`` translates sentences, ``detect`` finds the objects in pictures.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from PIL import Image

    from transformer_lib.translation import Translator

_PROGRAM = "python -m transformer_lib"
_LONGEST = 1_000_000  # bytes of a line
_DRAWN = (".png", ".jpg", ".jpeg", ".webp", ".pdf", ".svg")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status."""
    parser = argparse.ArgumentParser(prog=_PROGRAM, description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    translate = commands.add_parser(
        "translate",
        help="translate sentences",
        description="Translate sentences and print a line for each: an empty one where a sentence "
        "is refused, which is named, and the others follow.",
    )
    translate.add_argument("text", nargs="*", help="sentences; none: the lines of standard input")
    translate.add_argument("--model", default="ko-en", help="a shipped translator, or a folder")
    translate.add_argument(
        "--beams", type=int, default=4, help="1 is greedy decoding, 100 the most"
    )
    translate.set_defaults(run=_translate)
    detect = commands.add_parser(
        "detect",
        help="find the objects in pictures",
        description="Find the objects in pictures: print score, label and box (xmin ymin xmax "
        "ymax, in pixels) of each. A picture that cannot be read is named, and the others follow.",
    )
    detect.add_argument("picture", nargs="+", help="a file, or an http or https address")
    detect.add_argument(
        "--model",
        default="scenes-detr",
        help="a shipped detector, a folder, or a name on Hugging Face's hub",
    )
    detect.add_argument("--threshold", type=float, default=0.5, help="scores above it count")
    detect.add_argument("--timeout", type=float, default=30.0, help="seconds for an address")
    detect.add_argument(
        "--allow-private-addresses",
        action="store_true",
        help="let an address lead to this machine or a local network too",
    )
    detect.add_argument(
        "--output",
        type=Path,
        help="where to draw what was found: a folder, or, "
        "for one picture, a file that ends in .png, .jpg, .webp, .pdf or .svg",
    )
    detect.set_defaults(run=_detect)
    options = parser.parse_args(arguments)
    try:
        return options.run(options)
    except BrokenPipeError:  # whoever read has had enough
        return 1
    except (OSError, ValueError, ModuleNotFoundError) as error:
        _complain(error)
        return 1
    except KeyboardInterrupt:
        return 130


def _translate(options: argparse.Namespace) -> int:
    from transformer_lib.translation import Translator  # slow, so after the arguments proved right

    translator = Translator.from_pretrained(options.model)
    translator.translate_all([], beams=options.beams)  # is refused before the first line is read
    texts = [("", text) for text in options.text]
    status = 0
    for batch in [texts] if texts else _lines():
        status |= _translate_batch(translator, batch, options.beams)
    return status


def _translate_batch(
    translator: "Translator", batch: Sequence[tuple[str, str | bytes]], beams: int
) -> int:
    """Print a line for each text, an empty one where the text is refused; return the status."""
    good, status = {}, 0
    for place, (where, given) in enumerate(batch):
        try:
            text = given if isinstance(given, str) else _decode(given)
            translator.encode(text)
        except ValueError as error:
            _complain(f"{where}{error}")
            status = 1
        else:
            good[place] = text
    found = translator.translate_all(list(good.values()), beams=beams)
    translations = dict(zip(good, found, strict=True))
    for place in range(len(batch)):
        print(translations.get(place, ""))
    sys.stdout.flush()
    return status


def _detect(options: argparse.Namespace) -> int:
    from transformer_lib._checks.common import require_package
    from transformer_lib.detection.addresses import shown
    from transformer_lib.detection.images import load_image
    from transformer_lib.detection.pipeline import pipeline

    if options.output is not None:  # before any work
        require_package("matplotlib.pyplot", "drawing needs matplotlib", "plots")

    detector = pipeline("object-detection", options.model, threshold=options.threshold)
    status = 0
    places = _drawings(options.picture, options.output)
    for name, place in zip(options.picture, places, strict=True):
        try:
            image = load_image(
                name,
                timeout=options.timeout,
                allow_private_addresses=options.allow_private_addresses,
                name="picture",
            )
            found = detector(image)
            # names need not be UTF-8
            printed = (shown(name) if "://" in name else name).encode(errors="backslashreplace")
            print(f"{printed.decode()}: {len(found)} object{'s' * (len(found) != 1)}", flush=True)
            for detection in found:
                box = " ".join(str(side) for side in detection["box"].values())
                print(f"  {detection['score']:.4f}  {detection['label']}  {box}", flush=True)
            if place is not None:
                _save_drawing(image, found, place)
        except BrokenPipeError:
            raise
        except (OSError, ValueError) as error:
            _complain(error)
            status = 1
    return status


def _drawings(pictures: Sequence[str], output: Path | None) -> list[Path | None]:
    """Return for each picture the file it is to be drawn into, each another one and no picture."""
    from PIL import Image

    if output is None:
        return [None] * len(pictures)
    inputs = [path for path in pictures if os.path.exists(path)]

    def is_input(place: Path) -> bool:
        return os.path.exists(place) and any(os.path.samefile(place, path) for path in inputs)

    if output.suffix.lower() in _DRAWN and not output.is_dir():
        if len(pictures) > 1:
            raise ValueError(
                f"output: expected a folder for {len(pictures)} pictures, got {output}"
            )
        if is_input(output):
            raise ValueError(f"output: {output} is the picture itself")
        if not output.parent.is_dir():
            raise ValueError(f"output: there is no folder {output.parent}")
        return [output]
    if output.suffix.lower() in Image.registered_extensions() and not output.is_dir():
        raise ValueError(f"output: expected a folder or one of {', '.join(_DRAWN)}, got {output}")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritten(output, error) from None
    places: list[Path | None] = []
    for picture in pictures:
        _, address, path = re.split(r"[?#]", picture)[0].partition("://")
        path = unquote(path.partition("/")[2]) if address else picture
        stem = f"{Path(path).stem or 'picture'}-detections"
        number, place = 1, output / f"{stem}.png"
        while place in places or is_input(place):
            number += 1
            place = output / f"{stem}-{number}.png"
        places.append(place)
    return places


def _save_drawing(image: "Image.Image", detections: list[dict[str, Any]], place: Path) -> None:
    """Draw with the picture's own pixels, on paper of a size on which labels can be read."""
    import matplotlib.pyplot as plt

    from transformer_lib.detection.drawing import draw_detections

    pixels = max(480, *image.size)
    inches = min(pixels / 100, 10)
    # a hair more than whole pixels, since matplotlib may round down
    width, height = (max(side / max(image.size) * inches, 1.0) + 1e-9 for side in image.size)
    draw_detections(image, detections, size=(width, height))
    try:
        plt.savefig(place, dpi=pixels / inches)
    except OSError as error:
        raise _unwritten(place, error) from None
    finally:
        plt.close()


def _unwritten(place: Path, error: OSError) -> OSError:
    """Name the option; Pillow's errors have words, and nothing that the system says."""
    return OSError(f"output: {place}: {error.strerror or error}")


def _lines() -> Iterator[list[tuple[str, bytes]]]:
    """Yield the lines of standard input, each after words that say which it is, as they come.

    Those of a file come many together; one that somebody types, or a slow program writes, alone.
    """
    if sys.stdin is None:
        raise OSError("standard input is closed, and no text was given")
    stream: Any = sys.stdin.buffer
    number, rest = 1, b""
    while block := stream.read1(2**16):
        *lines, rest = (rest + block).split(b"\n")
        rest = rest[: _LONGEST + 1]
        if lines:
            yield [(f"standard input, line {n}: ", line) for n, line in enumerate(lines, number)]
            number += len(lines)
    if rest:
        yield [(f"standard input, line {number}: ", rest)]


def _decode(line: bytes) -> str:
    if len(line) > _LONGEST:
        raise ValueError(f"expected at most {_LONGEST} bytes, got more")
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        byte = line[error.start]
        raise ValueError(f"not UTF-8: 0x{byte:02x} at byte {error.start + 1}") from None


def _complain(problem: object) -> None:
    print(f"{_PROGRAM}: {problem}", file=sys.stderr)


if __name__ == "__main__":
    status = main()
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:  # main has said so; Python would try again at its end and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(status)

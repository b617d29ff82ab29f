"""Use the shipped models from a terminal: ``python -m transformer_lib translate "…"``."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m transformer_lib", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    translate = commands.add_parser(
        "translate",
        help="translate sentences",
        description="Translate sentences and print a line for each.",
    )
    translate.add_argument("text", nargs="*", help="sentences; none: the lines of standard input")
    translate.add_argument("--model", default="ko-en", help="a shipped translator, or a folder")
    translate.add_argument("--beams", type=int, default=4, help="1 is greedy decoding")
    options = parser.parse_args(arguments)

    from transformer_lib.translation import Translator  # slow, so after the arguments proved right

    try:
        translator = Translator.from_pretrained(options.model)
        texts = (("", text) for text in options.text) if options.text else _lines()
        for where, text in texts:
            try:
                translation = translator.translate(text, beams=options.beams)
            except ValueError as error:
                raise ValueError(f"{where}{error}") from None
            print(translation, flush=True)
    except BrokenPipeError:  # whoever read has had enough
        return 1
    except (OSError, ValueError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _lines() -> Iterator[tuple[str, str]]:
    """Yield the lines of standard input, each after words that say which it is."""
    if sys.stdin is None:
        raise OSError("standard input is closed, and no text was given")
    for number, line in enumerate(sys.stdin.buffer, start=1):
        where = f"standard input, line {number}: "
        try:
            yield where, line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            byte = line[error.start]
            raise ValueError(f"{where}not UTF-8: 0x{byte:02x} at byte {error.start + 1}") from None


if __name__ == "__main__":
    status = main()
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:  # main has said so; Python would try again at its end and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(status)

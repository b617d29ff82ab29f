"""``python -m transformer_lib``: what it prints, and how it ends when something is wrong."""

import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

import transformer_lib
import transformer_lib.__main__ as main_module
from transformer_lib.__main__ import main
from transformer_lib.training import Batches, Trainer, TrainingConfig
from transformer_lib.transformer import Transformer, TransformerConfig
from transformer_lib.translation import Translator, encode_pairs, train_tokenizer

ROOT = Path(transformer_lib.__file__).parent.parent
PAIRS = (
    ("인도 카레 전문점", "Indian curry restaurant"),
    ("인도 주행 금지", "No riding on the sidewalk"),
    ("눈이 온다", "It is snowing"),
)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    """Return the folder of a translator that knows three sentences."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer = train_tokenizer([side for pair in PAIRS for side in pair], 80)
    size = tokenizer.get_vocab_size()
    torch.manual_seed(0)
    config = TransformerConfig(size, size, 32, 2, 1, 1, 64, dropout=0.0, max_length=60)
    translator = Translator(Transformer(config), tokenizer)
    batches = Batches(encode_pairs(tokenizer, PAIRS), tokens_per_batch=200)
    settings = TrainingConfig(steps=100, schedule="linear", warmup=10, learning_rate=5e-3)
    Trainer(translator.model, batches, settings).train(progress=False)
    assert translator.translate_all([pair[0] for pair in PAIRS]) == [pair[1] for pair in PAIRS]
    translator.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function that runs the command in this process, and checks how it ends."""

    def run(
        *arguments: str, status: int = 0, errors: str = "", given: bytes = b"", many: int = 1
    ) -> str:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), "ascii"))
        try:
            ended = main(arguments)
        except SystemExit as end:  # how argparse ends
            ended = end.code
        output, problems = capsys.readouterr()
        assert (ended, len(problems.splitlines()) > 0) == (status, bool(errors)), problems
        assert errors in problems
        assert status != 1 or len(problems.splitlines()) == many
        return output

    return run


@pytest.fixture
def start(tmp_path):
    """Return a function that runs the command in a process of its own, from an empty folder."""

    def start(*arguments: str | bytes, status: int = 0, errors: str = "", **options) -> str:
        result = subprocess.run(
            [sys.executable, "-m", "transformer_lib", *arguments],
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
            **{"stdout": subprocess.PIPE, "input": b""} | options,
        )
        problems = result.stderr.decode()
        assert (result.returncode, len(problems.splitlines())) == (status, bool(errors)), problems
        assert errors in problems
        assert not list(tmp_path.iterdir())
        return (result.stdout or b"").decode().replace("\r\n", "\n")

    return start


@pytest.mark.slow
def test_sentences_as_arguments(run, model):
    texts = [korean for korean, _ in PAIRS]
    expected = "".join(f"{english}\n" for _, english in PAIRS)
    assert run("translate", "--model", model, *texts) == expected
    assert run("translate", "--model", model, "--beams", "1", *texts) == expected
    assert run("translate", "--model", model, "눈이 온다", given=b"\xff") == "It is snowing\n"


@pytest.mark.slow
def test_in_a_process_of_its_own(start, model):
    assert start("translate", "--model", model, "눈이 온다") == "It is snowing\n"
    lines = "눈이 온다\n인도 주행 금지\n".encode()
    expected = "It is snowing\nNo riding on the sidewalk\n"
    assert start("translate", "--model", model, input=lines) == expected
    errors = "python -m transformer_lib: text: expected words, got an empty text"
    assert start("translate", "--model", model, "", status=1, errors=errors) == "\n"


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_sentences_as_lines(run, model, end):
    lines = (end or "\n").join(korean for korean, _ in PAIRS) + end
    expected = "".join(f"{english}\n" for _, english in PAIRS)
    assert run("translate", "--model", model, given=lines.encode()) == expected


def test_a_byte_order_mark_is_no_word(run, model):
    text = "\ufeff눈이 온다\n눈이 온다\n".encode()
    assert run("translate", "--model", model, given=text) == "It is snowing\n" * 2
    errors = "standard input, line 1: text: expected words, got an empty text"
    out = run("translate", "--model", model, given="\ufeff\n".encode(), status=1, errors=errors)
    assert out == "\n"
    text = "눈이\ufeff \u200b온다\n".encode()  # nor anywhere else, nor anything that cannot be seen
    assert run("translate", "--model", model, given=text) == "It is snowing\n"


def test_no_lines_give_no_output(run, model):
    assert run("translate", "--model", model) == ""


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_sentence(run, model, text):
    errors = "python -m transformer_lib: text: expected words, got an empty text"
    assert run("translate", "--model", model, text, status=1, errors=errors) == "\n"
    out = run(
        "translate", "--model", model, "눈이 온다", text, "눈이 온다", status=1, errors=errors
    )
    assert out == "It is snowing\n\nIt is snowing\n"


BAD = {  # lines that cannot be translated, and what is said of them
    b"": "text: expected words, got an empty text",
    b" \t": "text: expected words, got an empty text",
    b"ab" + "눈".encode("euc-kr").replace(b"\xb4", b"\xc0"): "not UTF-8: 0xc0 at byte 3",
    "你好".encode(): "text: expected the script of the training texts; of 2 characters 2",
    "눈이 ".encode() * 10_000: "text: expected at most 60 tokens, got 20001",
    b"a" * 1_000_001: "expected at most 1000000 bytes, got more",
}


@pytest.mark.parametrize(("bad", "place"), [*((bad, 1) for bad in BAD), (b"", 0), (b"", 2)])
def test_a_bad_line_is_named_and_the_others_are_translated(run, model, bad, place):
    lines = ["눈이 온다".encode(), "인도 주행 금지".encode()]
    expected = ["It is snowing", "No riding on the sidewalk"]
    lines.insert(place, bad)
    expected.insert(place, "")
    text = b"".join(line + b"\n" for line in lines)
    errors = f"standard input, line {place + 1}: {BAD[bad]}"
    out = run("translate", "--model", model, given=text, status=1, errors=errors)
    assert out == "".join(f"{line}\n" for line in expected)


def test_every_bad_line_is_named(start, run, model):
    text = b"\n".join(BAD) + b"\n"
    out = run(
        "translate", "--model", model, given=text, status=1, errors=", line 5: ", many=len(BAD)
    )
    assert out == "\n" * len(BAD)


def test_a_file_of_many_blocks(run, model):
    lines = ["눈이 온다", "인도 주행 금지", "", "인도 카레 전문점"] * 1500  # more than 64 KiB
    lines += ["눈이 온다"] * 5000
    out = run(
        *("translate", "--beams", "1", "--model", model),
        given="\n".join(lines).encode(),
        status=1,
        errors="line 5999: text: expected words",
        many=1500,
    )
    expected = ["It is snowing", "No riding on the sidewalk", "", "Indian curry restaurant"] * 1500
    expected += ["It is snowing"] * 5000
    assert out.splitlines() == expected


def test_a_line_without_end_takes_no_memory(run, model, monkeypatch):
    longest = []
    monkeypatch.setattr("transformer_lib.__main__._LONGEST", 1000)

    class Endless(io.BytesIO):
        def read1(self, size: int = -1) -> bytes:
            """Give what is there, and note how much the caller keeps."""
            frame = sys._getframe(1)
            longest.append(len(frame.f_locals.get("rest", b"")))
            return super().read1(size)

    given = Endless(b"a" * 10**6 + "\n눈이 온다".encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(given, "ascii"))
    translated = [line for batch in main_module._lines() for line in batch]
    assert [len(line) for _, line in translated] == [
        1001 + 10**6 % 2**16,
        len("눈이 온다".encode()),
    ]
    assert max(longest) <= 1001


def test_files_are_translated_together(run, model, monkeypatch):
    sizes = []
    together = Translator.translate_all

    def translate_all(translator, texts, **options):
        sizes.append(len(texts))
        return together(translator, texts, **options)

    monkeypatch.setattr(Translator, "translate_all", translate_all)
    run("translate", "--model", model, given="눈이 온다\n".encode() * 500)
    assert sizes == [0, 500]
    run("translate", "--model", model, *["눈이 온다"] * 20)
    assert sizes[2:] == [0, 20]


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are read in another way there")
def test_a_line_that_somebody_types_is_answered_before_the_next(tmp_path, model):
    with subprocess.Popen(
        [sys.executable, "-m", "transformer_lib", "translate", "--model", model],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
    ) as process:
        late = threading.Timer(50, process.kill)  # then there is no answer to read
        late.start()
        for korean, english in PAIRS:
            process.stdin.write(f"{korean}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline().decode().strip() == english
        late.cancel()
        process.stdin.close()
        assert process.wait() == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="arguments are no bytes there")
def test_an_argument_that_is_not_utf_8(start, model):
    errors = "text: expected Unicode characters only"
    start("translate", "--model", model, b"\xc0\xff", status=1, errors=errors)


def test_no_such_model(run, tmp_path):
    run("translate", "--model", "ko-de", "눈", status=1, errors="scenes-detr: ko-de")


def test_a_damaged_model(run, model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")
    for path in Path(model).iterdir():
        (folder / path.name).write_bytes(path.read_bytes()[:100])
    run("translate", "--model", str(folder), "눈", status=1, errors="tokenizer")


def test_wrong_options(run, model):
    for beams in ("0", "101", "1000000000"):
        errors = f"beams: expected 1 to 100, got {beams}"
        run("translate", "--beams", beams, "--model", model, "눈", "", status=1, errors=errors)
    run("translate", "--beams", "two", "눈", status=2, errors="invalid int value")
    run("translat", "눈", status=2, errors="invalid choice")
    run(status=2, errors="required: command")


def test_help(run):
    assert "translate" in run("--help")
    for word in ("--model", "--beams", "standard input"):
        assert word in run("translate", "--help")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="pipes break in another way there")
def test_a_reader_that_goes_away(start, model):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as broken:
        text = "눈이 온다\n".encode() * 3
        start("translate", "--model", model, input=text, status=1, stdout=broken)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a full device")
def test_a_full_disk(start, model):
    with open("/dev/full", "wb") as full:
        start("translate", "--model", model, "눈이 온다", status=1, errors="No space", stdout=full)


def test_interrupted(model, monkeypatch, capsys):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(Translator, "translate_all", interrupt)
    assert main(["translate", "--model", model, "눈이 온다"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_both_meanings_by_the_shipped_model(start):
    out = start("translate", "인도 카레 전문점", "인도 주행 금지")
    assert out == "Indian curry restaurant\nNo riding on the sidewalk\n"
    assert start("translate", input="인도 주행 금지\n".encode()) == "No riding on the sidewalk\n"

"""Opening pictures: which formats, from where, and how much at most."""

import ast
import http.server
import io
import os
import socket
import ssl
import struct
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import transformer_lib
from transformer_lib.__main__ import main
from transformer_lib.detection import addresses
from transformer_lib.detection.addresses import shown
from transformer_lib.detection.images import FORMATS, MOST_PIXELS, load_image, open_image

ROOT = Path(__file__).parents[2]
LIBRARY = Path(transformer_lib.__file__).parent
POSTSCRIPT = b"""%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 8 8
%%EndComments
0 0 8 8 rectfill
%%EOF
"""
PICTURE = Image.linear_gradient("L").convert("RGB").resize((64, 48))


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def fits() -> bytes:
    """Return a small picture as telescopes store it."""
    cards = ["SIMPLE  = T", "BITPIX  = 8", "NAXIS   = 2", "NAXIS1  = 4", "NAXIS2  = 4", "END"]
    words = [f"{card[:10]}{card[10:]:>20}" if "=" in card else card for card in cards]
    return "".join(f"{word:80}" for word in words).ljust(2880).encode() + bytes(16)


OTHERS = {
    "EPS": POSTSCRIPT,
    "FITS": fits(),
    "TGA": saved(PICTURE, "TGA"),
    "PCX": saved(PICTURE, "PCX"),
    "ICO": saved(PICTURE, "ICO"),
    "SGI": saved(PICTURE, "SGI"),
}


# -- Formats ----------------------------------------------------------------------------------


@pytest.fixture
def mark(tmp_path, monkeypatch) -> Path:
    """Return a file that exists as soon as somebody starts ``gs``."""
    mark, folder = tmp_path / "gs-was-started", tmp_path / "programs"
    folder.mkdir()
    (folder / "gs").write_text(f'#!/bin/sh\necho started >> "{mark}"\nexit 1\n', encoding="utf-8")
    (folder / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None)  # not looked for yet
    return mark


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, dict[str, bytes | str], list[str]]]:
    """Return the address of a server on this machine, what it answers, and whom it was asked for.

    It answers a path with bytes, or, if it has a text for it, by redirecting there.
    """
    answers: dict[str, bytes | str] = {"/picture": saved(PICTURE, "PNG")}
    hosts: list[str] = []

    class Answers(http.server.BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            hosts.append(self.headers["Host"])
            answer = answers.get(self.path.partition("?")[0])
            if answer is None:
                self.send_error(404, f"nothing at {self.path}")
            elif isinstance(answer, str):
                self.send_response(302)
                self.send_header("Location", answer)
                self.end_headers()
            else:
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("no_proxy", "*")
        yield f"http://127.0.0.1:{server.server_port}", answers, hosts
    server.shutdown()
    server.server_close()


@pytest.mark.skipif(sys.platform == "win32", reason="the program is a script of the shell")
def test_the_mark_is_left_where_pillow_chooses(tmp_path, mark):
    """Without this the next test would prove nothing."""
    file = tmp_path / "cat.png"
    file.write_bytes(POSTSCRIPT)
    with pytest.raises(Exception, match=r".*"), Image.open(file) as picture:
        picture.load()
    assert mark.exists()


@pytest.mark.parametrize("kind", OTHERS)
def test_no_other_format_is_decoded_whatever_it_is_called(tmp_path, mark, server, kind, capsys):
    address, answers, _ = server
    file = tmp_path / "cat.png"
    file.write_bytes(OTHERS[kind])
    answers["/cat.png"] = OTHERS[kind]
    for picture, named in (
        (file, f"image: {file}: "),
        (OTHERS[kind], "image: "),
        (io.BytesIO(OTHERS[kind]), "image: "),
        (f"{address}/cat.png", f"image: {address}/cat.png: "),
    ):
        with pytest.raises(ValueError, match="expected an image") as raised:
            load_image(picture, allow_private_addresses=True)
        assert str(raised.value).startswith(named)
        assert f"({', '.join(FORMATS)})" in str(raised.value)
    assert main(["detect", str(file)]) == 1
    assert f"picture: {file}: expected an image ({', '.join(FORMATS)})" in capsys.readouterr().err
    assert not mark.exists()


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_that_is_listed_is_decoded(kind):
    options = {"lossless": True} if kind == "WEBP" else {}
    grey = Image.new("RGB", (8, 8), (128, 128, 128))
    assert np.ptp(np.asarray(load_image(saved(grey, kind, **options)))) <= 1
    assert "BMP, GIF, JPEG, PNG, PPM, TIFF or WebP" in str(load_image.__doc__)


def test_phones_that_store_two_pictures_in_a_jpeg():
    two = saved(PICTURE, "MPO", save_all=True, append_images=[PICTURE])
    assert load_image(two).size == PICTURE.size


def openers(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield where a module opens a picture's file, by whatever name."""
    for node in ast.walk(tree):
        found = False
        if isinstance(node, ast.Attribute):
            found = ast.unparse(node).endswith("Image.open") or node.attr in ("imread", "ImageFile")
        elif isinstance(node, ast.ImportFrom):
            for name in (f"{node.module}.{alias.name}" for alias in node.names):
                found |= name.endswith((".imread", "Plugin", ".ImageFile", "PIL.Image.open"))
        elif isinstance(node, ast.Import):
            found = any(name.name.startswith(("PIL.", "cv2", "imageio")) for name in node.names)
        if found:
            yield node


def test_pictures_are_opened_in_one_place_only():
    found = {
        path.relative_to(ROOT).as_posix(): [
            ast.unparse(node) for node in openers(ast.parse(path.read_text(encoding="utf-8")))
        ]
        for folder in (LIBRARY, ROOT / "recipes", ROOT / "benchmarks")
        for path in sorted(folder.rglob("*.py"))
    }
    assert {file: where for file, where in found.items() if where} == {
        "transformer_lib/detection/images.py": ["Image.open"]
    }
    source = (LIBRARY / "detection/images.py").read_text(encoding="utf-8")
    assert source.count("Image.open(io.BytesIO(data), formats=FORMATS)") == 1


@pytest.mark.parametrize(
    "line",
    [
        "Image.open(file)",
        "PIL.Image.open(file)",
        "from PIL.Image import open",
        "import PIL.Image",
        "from PIL import EpsImagePlugin",
        "plt.imread(file)",
        "from matplotlib.image import imread",
    ],
)
def test_the_search_for_openers_finds_them(line):
    assert list(openers(ast.parse(line)))


# -- Size -------------------------------------------------------------------------------------


def a_png(width: int, height: int, *chunks: tuple[bytes, bytes], rows: bytes = b"") -> bytes:
    """Return a PNG of one bit a pixel."""
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    parts = [(b"IHDR", header), *chunks, (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_more_pixels_than_are_allowed_are_refused_before_they_are_decoded(tmp_path, monkeypatch):
    def decode(self: object) -> None:
        raise AssertionError("it was decoded")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", decode)
    file = tmp_path / "white.png"
    file.write_bytes(a_png(13_000, 13_000))
    message = f"{file}: expected at most 100,000,000 pixels, got 13000 × 13000"
    with pytest.raises(ValueError, match=message):
        load_image(file)
    with pytest.raises(ValueError, match="got 10001 × 10000"):
        load_image(a_png(10_001, 10_000))
    assert open_image(a_png(10_000, 10_000)).size == (10_000, 10_000)
    assert MOST_PIXELS == 10_000**2


# -- Notes of cameras -------------------------------------------------------------------------


# python-pillow/Pillow#5528
@pytest.mark.filterwarnings("ignore:Corrupt EXIF", "ignore:Possibly corrupt EXIF")
@pytest.mark.parametrize(
    "note",
    [
        b"nonsense",
        b"MM\0*",
        b"MM\0*\0\0\0\x08\0\x01\x01\x12",
        b"II*\0\xff\xff\xff\xff",
        b"",
        b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x07\xff\xff\xff\xff\0\0\0\0\0\0\0\0",
    ],
)
def test_a_damaged_note_in_a_png_is_ignored(note):
    rows = np.packbits(np.eye(8, dtype=np.uint8), axis=1).tobytes()
    data = a_png(8, 8, (b"eXIf", note), rows=b"".join(b"\0" + rows[n : n + 1] for n in range(8)))
    loaded = load_image(data)
    assert (np.asarray(loaded)[..., 0] == 255 * np.eye(8)).all()
    assert load_image(saved(loaded, "PNG")).tobytes() == loaded.tobytes()


def test_a_damaged_picture_is_no_damaged_note():
    exif = Image.Exif()
    exif[0x0112] = 6
    whole = saved(Image.effect_noise((64, 48), 50), "PNG", exif=exif)
    with pytest.raises(ValueError, match="the picture cannot be read"):
        load_image(whole[: len(whole) // 2])


# -- Where addresses lead ---------------------------------------------------------------------

PRIVATE = (
    "0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 127.8.8.8 169.254.169.254 172.16.0.1 192.168.1.1 "
    "198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 ::ffff:127.0.0.1 "
    "::ffff:10.0.0.1 ::127.0.0.1 64:ff9b::169.254.169.254 2002:7f00:1:: fc00::1 "
    "fd00:ec2::254 fe80::1 fe80::1%eth0 fec0::1 ff02::1 2001:db8::1 "
)
PUBLIC = (
    "8.8.8.8 151.101.1.69 172.15.0.1 172.32.0.1 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 "
)


@pytest.mark.parametrize("address", PRIVATE.split())
def test_private_addresses(address):
    assert not addresses._is_public(address)


@pytest.mark.parametrize("address", PUBLIC.split())
def test_public_addresses(address):
    assert addresses._is_public(address)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "localhost", "[::1]", "[::ffff:127.0.0.1]"],
)
def test_this_machine_is_reached_only_when_asked_for(server, scheme, host):
    address, _, hosts = server
    port = address.rpartition(":")[2]
    hosts.clear()
    with pytest.raises(ConnectionError, match=r"(no public address; allow_private|\[Errno -)"):
        load_image(f"{scheme}://{host}:{port}/picture", timeout=5.0)
    assert hosts == []


@pytest.mark.without_shape_checks
def test_this_machine_is_reached_when_asked_for(server, tmp_path, monkeypatch, capsys):
    address, _, _ = server
    assert load_image(f"{address}/picture", allow_private_addresses=True).size == (64, 48)
    with pytest.raises(TypeError, match="allow_private_addresses: expected True or False, got 'n"):
        load_image(f"{address}/picture", allow_private_addresses="no")
    monkeypatch.chdir(tmp_path)
    assert main(["detect", f"{address}/picture"]) == 1
    assert "127.0.0.1, which is no public address" in capsys.readouterr().err
    secret = f"{address}/picture?key=hush"
    assert main(["detect", secret, "--allow-private-addresses", "--output", "drawn"]) == 0
    assert capsys.readouterr().out.startswith(f"{address}/picture?…: ")
    assert [file.name for file in (tmp_path / "drawn").iterdir()] == ["picture-detections.png"]


@pytest.fixture
def names(server, monkeypatch) -> dict[str, list[str]]:
    """Return the addresses that names have, each time they are looked up; 127.0.0.1 is public."""
    table: dict[str, list[str]] = {}
    really, port = addresses._is_public, int(server[0].rpartition(":")[2])

    def look_up(host: str, *arguments: object, **options: object) -> list[tuple]:
        if host not in table and not host.replace(".", "").isdigit():
            raise socket.gaierror(-2, "Name or service not known")
        known = table.get(host, [host])
        now = known.pop(0) if len(known) > 1 else known[0]
        kind = socket.AF_INET, socket.SOCK_STREAM, 0, ""
        return [(*kind, (one, port)) for one in now.split()]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(addresses, "_is_public", lambda ip: ip == "127.0.0.1" or really(ip))
    return table


def test_a_name_is_looked_up_once_and_the_address_that_was_checked_is_connected_to(server, names):
    names["photos.example"] = ["127.0.0.1", "169.254.169.254"]
    assert load_image("http://photos.example/picture", timeout=5.0).size == (64, 48)
    assert server[2][-1] == "photos.example"
    assert names["photos.example"] == ["169.254.169.254"]
    message = r"photos\.example leads to 169\.254\.169\.254, which is no public address"
    with pytest.raises(ConnectionError, match=message):
        load_image("http://photos.example/picture", timeout=5.0)


def test_a_name_with_a_private_address_among_others_is_refused(names):
    names["both.example"] = ["127.0.0.1 10.0.0.1"]
    with pytest.raises(ConnectionError, match=r"both\.example leads to 10\.0\.0\.1, which is"):
        load_image("http://both.example/picture", timeout=5.0)


def test_the_next_address_is_tried_if_one_does_not_answer(names):
    names["two.example"] = ["127.0.0.1 127.0.0.1"]
    real, tried = socket.socket.connect, []

    def connect(self: socket.socket, address: object) -> None:
        tried.append(address)
        if len(tried) == 1:
            raise ConnectionRefusedError(111, "Connection refused")
        real(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect)
        assert load_image("http://two.example/picture", timeout=5.0).size == (64, 48)
    assert len(tried) == 2


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("http://169.254.169.254/latest/", r"169\.254\.169\.254, which is no public address"),
        ("https://10.0.0.1/", r"10\.0\.0\.1, which is no public address"),
        ("http://inside.example/", r"inside\.example leads to 192\.168\.0\.7, which is no public"),
        ("//inside.example/picture", r"inside\.example leads to 192\.168\.0\.7, which is no"),
        ("http://me:hush@photos.example/", "redirects to an address with a user name"),
        ("file:///etc/hostname", "redirects to file:…, and only http and https are allowed"),
        ("gopher://photos.example/", "redirects to gopher:…, and only http"),
    ],
)
def test_redirections_lead_no_further_than_addresses(server, names, target, message):
    names |= {"photos.example": ["127.0.0.1"], "inside.example": ["192.168.0.7"]}
    server[1]["/moved"] = target
    with pytest.raises(ConnectionError, match=message) as raised:
        load_image("http://photos.example/moved?key=hush", timeout=5.0)
    assert "hush" not in str(raised.value)
    assert str(raised.value).startswith("image: http://photos.example/moved?…: ")


def test_redirections_to_public_addresses_are_followed(server, names):
    names |= {"photos.example": ["127.0.0.1"], "other.example": ["127.0.0.1"]}
    server[1]["/moved"] = "http://other.example/picture?size=3"
    server[1]["/again"] = "/moved"
    assert load_image("http://photos.example/again", timeout=5.0).size == (64, 48)
    assert server[2][-2:] == ["photos.example", "other.example"]
    for number in range(9):
        server[1][f"/far-{number}"] = f"/far-{number + 1}"
    with pytest.raises(ConnectionError, match="redirects in circles, or too often"):
        load_image("http://photos.example/far-0", timeout=5.0)


def test_tls_goes_over_the_checked_connection_and_asks_for_the_name(names, monkeypatch):
    asked = []

    class Plain:
        """What TLS would be, without secrecy."""

        verify_mode, check_hostname, post_handshake_auth = ssl.CERT_REQUIRED, True, False

        def wrap_socket(self, sock: socket.socket, server_hostname: str) -> socket.socket:
            asked.append(server_hostname)
            return sock

        def set_alpn_protocols(self, protocols: object) -> None:
            pass

    monkeypatch.setattr(ssl, "_create_default_https_context", Plain)
    names["photos.example"] = ["127.0.0.1", "10.0.0.1"]
    assert load_image("https://photos.example/picture", timeout=5.0).size == (64, 48)
    assert asked == ["photos.example"]


def test_a_proxy_is_used_and_the_target_is_checked_where_it_is_known(server, names, monkeypatch):
    address, answers, _ = server
    monkeypatch.setenv("http_proxy", address)
    monkeypatch.setenv("https_proxy", address)
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.delenv("NO_PROXY", raising=False)
    names |= {"photos.example": ["8.8.8.8"], "inside.example": ["10.0.0.1"]}
    answers["http://photos.example/picture"] = answers["/picture"]
    answers["http://unknown.example/picture"] = answers["/picture"]
    for host in ("photos", "unknown"):
        assert load_image(f"http://{host}.example/picture", timeout=5.0).size == (64, 48)
    for private in ("http://inside.example/picture", "https://inside.example/", "http://10.0.0.1/"):
        with pytest.raises(ConnectionError, match=r"10\.0\.0\.1, which is no public address"):
            load_image(private, timeout=5.0)


# -- Secrets ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("photo.jpg", "photo.jpg"),
        ("what?.jpg", "what?.jpg"),
        ("me@home/a#b.png", "me@home/a#b.png"),
        ("x" * 300, "x" * 200 + "…"),
        ("http://host/a.png", "http://host/a.png"),
        ("http://host/a@2x.png", "http://host/a@2x.png"),
        ("http://host:80/a.png?key=hush&b", "http://host:80/a.png?…"),
        ("http://host/a.png#hush\nhush", "http://host/a.png?…"),
        ("http://me:hush@host/a.png", "http://…@host/a.png"),
        ("http://me:hu@sh?hush@host/a.png?hush", "http://…@host/a.png?…"),
        ("ftp://me:hush@host/a.png", "ftp://…@host/a.png"),
    ],
)
def test_what_messages_show_of_a_place(place, expected):
    assert shown(place) == expected


@pytest.mark.parametrize(
    "address",
    [
        "http://me:hush@photos.example/picture",
        "http://hush@photos.example/picture",
        "http://me:hush%40photos.example/picture",
        "http://photos.example/nowhere?key=hush",
        "http://photos.example/picture-that-is-none?key=hush",
        "http://photos.example/round?key=hush",
        "http://me:hush@[photos.example/picture",
        "http://unknown.example/?key=hush",
        "http://127.0.0.9/?key=hush",
        "http://me:hush@\u2100.example/?key=hush",
        "ftp://me:hush@photos.example/a.png?key=hush",
    ],
)
def test_no_message_repeats_a_secret(server, names, address, capsys):
    names["photos.example"] = ["127.0.0.1"]
    server[1]["/picture-that-is-none"] = b"nothing"
    server[1]["/round"] = "/round?key=hush"
    with pytest.raises((ConnectionError, ValueError)) as raised:
        load_image(address, timeout=5.0)
    assert "hush" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert main(["detect", address, "--output", "."]) == 1
    assert "hush" not in capsys.readouterr().err

"""Opening pictures and fetching them: which formats, from where, and how much at most.

This is the only place of the library that opens a picture's file. Pillow knows many more formats
than :data:`FORMATS`, and for some of them starts other programs; what a file's name ends in
has no say in that. An address may lead only where :func:`open_image` says.
"""

import contextlib
import http.client
import io
import ipaddress
import os
import queue
import re
import socket
import threading
import urllib.error
import urllib.parse
import urllib.request
from http import HTTPStatus
from numbers import Real
from typing import Any

from PIL import Image, ImageOps, UnidentifiedImageError

__all__ = ["FORMATS", "MOST_BYTES", "MOST_PIXELS", "is_stored", "open_image", "shown", "upright"]

# The formats that are decoded. JPEG includes the MPO of phones; nothing else is even tried.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")

# A picture of more pixels is refused before they are decoded: 10,000 × 10,000, about 0.9 GB.
MOST_PIXELS = 100_000_000

# A longer answer to an address is refused.
MOST_BYTES = 2**28

_FOR_EVER = 10**6  # seconds; clocks of sockets and threads hold no more than some billions


def is_stored(image: Any) -> bool:
    """Tell whether :func:`open_image` takes a value: a path, an address, bytes or a file."""
    kinds = (str, os.PathLike, bytes, bytearray, memoryview)
    return isinstance(image, kinds) or hasattr(image, "read")


def open_image(
    image: Any,
    *,
    timeout: float | None = 30.0,
    allow_private_addresses: bool = False,
    name: str = "image",
) -> Image.Image:
    """Open a picture that is stored somewhere; its pixels are decoded when they are asked for.

    An address begins with http or https, has no user name or password, and leads to public
    addresses of the internet: not to this machine, a local network, or what clouds keep at
    169.254.169.254. A name is looked up once, and the connection goes to an address that was
    checked; each redirection is checked likewise. Where the environment names a proxy
    (``https_proxy``), that connects; a name then is refused if it is looked up here and is not
    public, and left to the proxy if it is unknown here.

    Args:
        image: A path, an address of http or https, the bytes of a picture's file, or the file,
            opened in binary mode.
        timeout: Seconds within which an address must have answered completely; None waits for
            ever.
        allow_private_addresses: Let an address lead anywhere. Not for addresses that others chose.
        name: What messages call the picture; :func:`shown` says more of paths and addresses.

    Raises:
        FileNotFoundError: There is no such file; IsADirectoryError and PermissionError likewise.
        TimeoutError: The address did not answer in time.
        ConnectionError: The server could not be reached, answered with an error, broke off, sent
            more than :data:`MOST_BYTES`, or an address led where it must not.
        TypeError: ``timeout`` or ``allow_private_addresses`` is of another type.
        ValueError: The address is none or has a user name, the picture is of no format of
            :data:`FORMATS`, is damaged, or has more than :data:`MOST_PIXELS` pixels.
    """
    if not isinstance(allow_private_addresses, bool):
        raise TypeError(
            f"allow_private_addresses: expected True or False, got {allow_private_addresses!r}"
        )
    kind = ""
    if isinstance(image, str | os.PathLike):
        image = os.fsdecode(image)
        if "://" in image:
            data, kind = _download(image, timeout, name, allow_private_addresses)
        else:
            data = _read(image, name)
    elif hasattr(image, "read"):
        data = image.read()
    else:
        data = bytes(image)
    return _decode(data, kind, name)


def shown(place: str) -> str:
    """Return a path or address as messages show it: short, and without the secrets of an address.

    These are a user name, a password and what follows a question mark.
    """
    if "://" in place:
        place = re.sub(r"(?<=://)[^/]*(@|%40)", "…@", place)
        place = re.sub(r"[?#].*", "?…", place, flags=re.DOTALL)
    return place if len(place) <= 200 else place[:200] + "…"


def upright(image: Image.Image) -> Image.Image:
    """Return a picture turned as a camera's note (EXIF) says; a note that is damaged is ignored."""
    image.load()  # what fails from here on is not the picture
    try:
        return ImageOps.exif_transpose(image)
    except MemoryError:
        raise
    except Exception:  # Pillow's readers raise whatever they stumble over
        plain = image.copy()
        for note in ("exif", "Raw profile type exif"):
            plain.info.pop(note, None)
        return plain


# -- Files ------------------------------------------------------------------------------------


def _read(path: str, name: str) -> bytes:
    if not os.path.exists(path):
        raise FileNotFoundError(f"{name}: there is no such file")
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:  # a folder, or a file that is not ours to read
        raise type(error)(f"{name}: {error.strerror}") from None


def _decode(data: bytes, kind: str, name: str) -> Image.Image:
    """Return the picture in the bytes of a file; ``kind`` is what a server says that it is."""
    try:
        image = Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError:
        if data[:99].lstrip().lower().startswith((b"<!doctype html", b"<html")):
            kind = "text/html"
        what = f"{len(data)} bytes that start with {data[:12]!r}" if data else "nothing"
        raise ValueError(
            f"{name}: expected an image ({', '.join(FORMATS)}), got {kind and kind + ', '}{what}"
        ) from None
    except Exception as error:  # more pixels than Pillow takes, or a damaged header
        raise ValueError(f"{name}: the picture cannot be read: {error}") from None
    if image.width * image.height > MOST_PIXELS:
        raise ValueError(
            f"{name}: expected at most {MOST_PIXELS:,} pixels, got {image.width} × {image.height}"
        )
    if image.format == "PNG" and image.mode == "1" and image.info.get("transparency") == 1:
        image.info["transparency"] = 255  # which older releases of Pillow call 1
    if image.format == "PNG" and image.mode == "L" and "transparency" in image.info:
        # Pillow brings greys of 2 and 4 bits to 8, and leaves the one that is transparent.
        image.info["transparency"] *= {"L;2": 85, "L;4": 17}.get(str(image.tile[0][3]), 1)
    return image


# -- Addresses --------------------------------------------------------------------------------


def _download(
    url: str, timeout: float | None, name: str, allow_private_addresses: bool
) -> tuple[bytes, str]:
    """Return what a server answers, and of what kind it says that is, within ``timeout`` seconds.

    A socket's own timeout starts anew with every byte, and knows nothing of the look-up of the
    server's name. So another thread fetches, and this one waits.
    """
    if timeout is not None:
        if isinstance(timeout, bool) or not isinstance(timeout, Real):
            raise TypeError(f"timeout: expected seconds above 0, or None, got {timeout!r}")
        if not timeout > 0:
            raise ValueError(f"timeout: expected seconds above 0, or None, got {timeout}")
        timeout = None if timeout > _FOR_EVER else timeout
    if not url.lower().startswith(("http://", "https://")):
        raise ValueError(f"{name}: expected a path, or an address of http or https")
    try:
        request = _request(url)
    except ValueError:  # whose words would repeat the address
        raise ValueError(f"{name}: the address cannot be understood") from None
    if _has_user(request):
        raise ValueError(f"{name}: expected an address without a user name and password")
    answers: queue.SimpleQueue[tuple[bytes, str] | Exception] = queue.SimpleQueue()
    given_up = threading.Event()

    def fetch() -> None:
        try:
            answers.put(_fetch(request, timeout, given_up, allow_private_addresses))
        except Exception as error:
            answers.put(error)

    threading.Thread(target=fetch, daemon=True).start()
    try:
        answer = answers.get(timeout=timeout)
    except queue.Empty:
        answer = TimeoutError()
    finally:
        given_up.set()
    if isinstance(answer, tuple):
        return answer
    if isinstance(answer, urllib.error.HTTPError):
        answer.close()
        raise ConnectionError(f"{name}: the server answered {_said(answer)}")
    cause = getattr(answer, "reason", answer)
    if isinstance(cause, TimeoutError):
        raise TimeoutError(f"{name}: no complete answer within {timeout} s")
    if isinstance(cause, ValueError | http.client.InvalidURL):
        cause = "the address cannot be understood"
    raise ConnectionError(f"{name}: {str(cause) or type(cause).__name__}")


def _request(url: str) -> urllib.request.Request:
    parts = urllib.parse.urlsplit(url.strip())
    host = parts.netloc.encode("idna").decode()
    path, query = (
        urllib.parse.quote(part, safe="%/:=&?~+!$,;'@()*[]") for part in (parts.path, parts.query)
    )
    address = urllib.parse.urlunsplit((parts.scheme, host, path, query, ""))
    return urllib.request.Request(address, headers={"User-Agent": "transformer_lib"})


def _has_user(request: urllib.request.Request) -> bool:
    return "@" in urllib.parse.unquote(urllib.parse.urlsplit(request.full_url).netloc)


def _said(error: urllib.error.HTTPError) -> str:
    """Return a status with what it means: the server's own words may repeat the address."""
    try:
        return f"{error.code} {HTTPStatus(error.code).phrase}"
    except ValueError:
        return str(error.code)


def _fetch(
    request: urllib.request.Request,
    timeout: float | None,
    given_up: threading.Event,
    allow_private_addresses: bool,
) -> tuple[bytes, str]:
    opener = urllib.request.OpenerDirector()  # one that knows no files, no FTP and no data
    handlers: list[type[urllib.request.BaseHandler]] = [
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.ProxyHandler,
        urllib.request.UnknownHandler,
        _Redirections,
    ]
    if allow_private_addresses:
        handlers += [urllib.request.HTTPHandler, urllib.request.HTTPSHandler]
    else:
        handlers += [_PublicHTTP, _PublicHTTPS]
    for handler in handlers:
        opener.add_handler(handler())
    data = bytearray()
    with opener.open(request, timeout=timeout) as response:
        while (chunk := response.read1(2**16)) and not given_up.is_set():
            data += chunk
            if len(data) > MOST_BYTES:
                raise ConnectionError(f"the answer has more than {MOST_BYTES:,} bytes")
        expected = response.headers["Content-Length"]
        if expected and len(data) < int(expected):
            raise ConnectionError(f"the answer ends after {len(data)} of {expected} bytes")
        return bytes(data), response.headers.get_content_type()


class _Redirections(urllib.request.HTTPRedirectHandler):
    """Follow to http and https only; the connections see to where that leads."""

    max_redirections = 5

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """Return the next request, unless it must not be made."""
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and _has_user(request):
            fp.close()
            raise ConnectionError("the server redirects to an address with a user name")
        return request

    def http_error_302(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any
    ) -> Any:
        """Follow, or say in our own words why not: urllib's repeat the address."""
        target = urllib.parse.urljoin(req.full_url, headers.get("location", headers.get("uri", "")))
        if not target.lower().startswith(("http://", "https://")):
            fp.close()
            scheme = target.partition(":")[0][:20]
            raise ConnectionError(
                f"the server redirects to {scheme}:…, and only http and https are allowed"
            )
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except urllib.error.HTTPError as error:
            if error.fp is not fp:  # of the request that followed
                raise
            fp.close()
            raise ConnectionError("the server redirects in circles, or too often") from None

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _is_public(address: str) -> bool:
    """Tell whether an address may be anywhere on the internet, and is not of a network at home."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
        if inner is not None:  # an older address in a newer one's clothes
            return _is_public(str(inner))
        if ip.is_site_local:
            return False
    return ip.is_global and not (ip.is_multicast or ip.is_reserved)


_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def _look_up(host: str, port: int) -> list[tuple[Any, ...]]:
    """Return the addresses of a server, all of which are public, or raise ConnectionError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for *_, (address, *_) in found:
        if not _is_public(str(address)):
            leads = "" if host == address else f"{host} leads to "
            raise ConnectionError(
                f"{leads}{address}, which is no public address; allow_private_addresses lets it"
            )
    return found


class _Checked(http.client.HTTPConnection):
    """A connection to the very address that was checked, whatever its name means later."""

    def connect(self) -> None:
        """Look the server up once, check all its addresses, and connect to one of them."""
        failure = OSError(f"{self.host} has no address")
        for family, kind, protocol, _, address in _look_up(self.host, self.port):
            self.sock = socket.socket(family, kind, protocol)
            try:
                self.sock.settimeout(self.timeout)
                self.sock.connect(address)
                return
            except OSError as error:
                self.sock.close()
                self.sock, failure = None, error
        raise failure


class _CheckedTLS(http.client.HTTPSConnection, _Checked):
    """The same with TLS: what is above the connection, it takes from its first base."""


class _PublicHTTP(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(http.client.HTTPConnection if _by_proxy(req) else _Checked, req)


class _PublicHTTPS(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(http.client.HTTPSConnection if _by_proxy(req) else _CheckedTLS, req)


def _by_proxy(request: urllib.request.Request) -> bool:
    """Tell whether a proxy will connect; if so, check here what of the server is known here."""
    target = urllib.parse.urlsplit(request.full_url)
    if request.host == urllib.parse.unquote(target.netloc):
        return False
    with contextlib.suppress(socket.gaierror):
        _look_up(target.hostname or "", target.port or 0)
    return True

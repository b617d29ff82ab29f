"""Fetching from the web: where an address may lead, and how much may come at most."""

import contextlib
import http.client
import ipaddress
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

__all__ = ["MOST_BYTES", "fetch", "shown"]

# A longer answer to an address is refused.
MOST_BYTES = 2**28

_FOR_EVER = 10**6  # seconds; clocks of sockets and threads hold no more than some billions


def fetch(
    url: str, *, timeout: float | None, allow_private_addresses: bool, name: str
) -> tuple[bytes, str]:
    """Return what a server answers, and of what kind it says that is, within ``timeout`` seconds.

    An address begins with http or https, has no user name or password, and leads to public
    addresses of the internet: not to this machine, a local network, or what clouds keep at
    169.254.169.254. A name is looked up once, and the connection goes to an address that was
    checked; each redirection is checked likewise. Where the environment names a proxy
    (``https_proxy``), that connects; a name then is refused if it is looked up here and is not
    public, and left to the proxy if it is unknown here.

    A socket's own timeout starts anew with every byte, and knows nothing of the look-up of the
    server's name. So another thread fetches, and this one waits.
    """
    if not isinstance(allow_private_addresses, bool):
        raise TypeError(
            f"allow_private_addresses: expected True or False, got {allow_private_addresses!r}"
        )
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

    def ask() -> None:
        try:
            answers.put(_fetch(request, timeout, given_up, allow_private_addresses))
        except Exception as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
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


def shown(place: str) -> str:
    """Return a path or address as messages show it: short, and without the secrets of an address.

    These are a user name, a password and what follows a question mark.
    """
    if "://" in place:
        place = re.sub(r"(?<=://)[^/]*(@|%40)", "…@", place)
        place = re.sub(r"[?#].*", "?…", place, flags=re.DOTALL)
    return place if len(place) <= 200 else place[:200] + "…"

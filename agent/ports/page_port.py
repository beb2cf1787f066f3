"""A page as a port: asked for every few seconds, each answer is a telegram and then silence.

The standard library's client runs in a thread of its own, and one moment bounds all of it: looking
the name up, the handshake, and a body that comes drop by drop. Redirects are not followed,
compressed answers not asked for. Source: docs/faults.md, SER-37 to SER-40.
"""

import asyncio
import hashlib
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import TypeVar

from agent.errors import PortError
from agent.meters.port_names import Source, shown
from agent.meters.section import AccessTable
from agent.ports.letting_in import NoAnswerError, secret_in
from agent.ports.payload import MOST_BYTES, is_web_page, line_of
from agent.ports.port import GONE, NO_CONNECTION, NO_TELEGRAM_THERE, NOT_LET_IN, now_s
from edge_ldp.service.tasks import in_thread
from edge_ldp.service.tls import CIPHERS, SECURITY_LEVEL

ANSWER_S = 10.0
"""How long an answer may take in all."""

T = TypeVar("T")
_OK, _REFUSED = 200, (401, 403)
_REACH = "is the device on, its address right, and in this network?"
_PATH = "is the path right? docs/meters.md has those of products"
_ASKED = "nothing is sent to a meter through a page"


class PagePort:
    """A page that was asked for once and let us in, made by `open_page`; read by one task."""

    def __init__(self, path: str, source: Source, access: AccessTable, every_s: float) -> None:
        self.path = shown(path)
        self._source = source
        self._access = access
        self._every_s = every_s
        self._next_s = 0.0  # when it is asked again
        self._came: list[bytes | None] = [None]  # a line begins

    async def read(self, wait_s: float | None = None) -> bytes | None:
        """Return an answer's bytes, None after them, and None after `wait_s` without any.

        Raises PortError for a page that is gone, does not let us in or is none of a meter.
        """
        if not self._came:
            pause_s = max(self._next_s - now_s(), 0.0)
            if wait_s is not None and wait_s < pause_s:
                await asyncio.sleep(wait_s)
                return None
            await asyncio.sleep(pause_s)
            await self.ask()
        return self._came.pop(0)

    async def ask(self) -> None:
        """Ask for the page once; raises PortError as `read` does."""
        self._next_s = now_s() + self._every_s
        answer = _Answer(self._source, self._access)
        self._came += [line_of(await _had(self.path, answer, answer.fetch)), None]

    def write(self, data: bytes) -> bool:  # noqa: ARG002 (a port has it)
        """Raise PortError: a page is only asked for."""
        raise PortError(self.path, "takes nothing", _ASKED)

    def set_baud(self, baud: int) -> None:
        """Do nothing: a page has no speed."""

    def close(self) -> None:
        """Do nothing: each answer has a connection of its own."""


async def open_page(path: str, source: Source, access: AccessTable, every_s: float) -> PagePort:
    """Return a page that was asked for once; raises PortError where it cannot be had."""
    port = PagePort(path, source, access, every_s)
    await port.ask()
    return port


async def pin_of(path: str, source: Source) -> str:
    """Return the pin of the certificate that a page shows; nothing is asked. Raises PortError."""
    answer = _Answer(source, AccessTable())
    return await _had(path, answer, answer.pin)


async def answer_to(path: str, source: Source, pin: str, asked: bytes) -> bytes:
    """Return the answer to the one thing that is ever sent: a request to be let in, by `setup`.

    Only to the holder of the pinned certificate. Raises PortError.
    """
    answer = _Answer(source, AccessTable(certificate=pin))
    return await _had(path, answer, lambda: answer.fetch(asked))


async def _had(path: str, answer: "_Answer", work: Callable[[], T]) -> T:
    """Return what a thread gets of a page within ANSWER_S; raises PortError."""
    try:
        async with asyncio.timeout(ANSWER_S):
            return await in_thread(work, "meter-page")
    except TimeoutError as exc:
        raise PortError(path, NO_CONNECTION, f"no answer in time; {_REACH}") from exc
    except NoAnswerError as exc:
        raise PortError(path, exc.reason, exc.remedy) from None
    finally:
        answer.end()


class _Answer:
    """One answer, fetched in a thread; `end` from outside ends it at once."""

    def __init__(self, source: Source, access: AccessTable) -> None:
        self._source = source
        self._access = access
        self._connection: HTTPConnection | None = None
        self._is_over = False

    def fetch(self, asked: bytes | None = None) -> bytes:
        """Return the page's body, or the answer to `asked`; raises NoAnswerError."""
        return self._told(lambda: self._fetch(asked))

    def pin(self) -> str:
        """Return the pin of the certificate that is shown; raises NoAnswerError."""
        return self._told(lambda: _pin_of(self._secured(_trusting()).sock))

    def _fetch(self, asked: bytes | None) -> bytes:
        headers = self._headers()
        self._connection = connection = self._connect()
        if self._is_over:
            raise OSError("over")
        if asked is not None:
            headers |= {"Content-Type": "application/json", "X-Api-Version": "2"}
        method = "GET" if asked is None else "POST"
        connection.request(method, "/" + self._source.path, asked, headers)
        with connection.getresponse() as response:
            return _body(response)

    def _told(self, work: Callable[[], T]) -> T:
        """Return what `work` does on a connection that is closed then; raises NoAnswerError."""
        try:
            return work()
        except ssl.SSLError as exc:
            raise NoAnswerError(NO_CONNECTION, f"TLS: {exc.reason or exc}; {_REACH}") from None
        except OSError as exc:
            why = exc.strerror or "it broke off"
            raise NoAnswerError(NO_CONNECTION, f"{why}; {_REACH}") from None
        except (HTTPException, ValueError):  # no answer of this protocol; never quoted
            raise NoAnswerError(GONE, f"it does not speak HTTP; {_REACH}") from None
        finally:
            if self._connection is not None:
                self._connection.close()

    def end(self) -> None:
        """End it from outside: whoever waits for bytes is woken."""
        self._is_over = True
        sock = self._connection.sock if self._connection is not None else None
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return

    def _connect(self) -> HTTPConnection:
        source, access = self._source, self._access
        if not source.is_encrypted:
            plain = HTTPConnection(source.host, source.port, timeout=ANSWER_S)
            self._connection = plain
            plain.connect()
            return plain
        try:
            secure = self._secured(_context(access))
        except ssl.SSLCertVerificationError as exc:
            pin = _pin_of(self._secured(_trusting()).sock)
            raise NoAnswerError(
                NOT_LET_IN,
                f"nobody vouches for its certificate ({exc.verify_message}); if it is your "
                f"device's own, write: access.certificate = '{pin}'",
            ) from None
        if access.certificate is not None and _pin_of(secure.sock) != access.certificate:
            raise NoAnswerError(
                NOT_LET_IN,
                "its certificate is another one than access.certificate: is it your device, and "
                "was it set up anew? Nothing was asked of it",
            )
        return secure

    def _secured(self, context: ssl.SSLContext) -> HTTPSConnection:
        """Shake hands and ask nothing yet."""
        source = self._source
        secure = HTTPSConnection(source.host, source.port, timeout=ANSWER_S, context=context)
        self._connection = secure
        secure.connect()
        return secure

    def _headers(self) -> dict[str, str]:
        headers = {"Accept-Encoding": "identity", "Connection": "close"}
        access = self._access
        if access.token_file:
            headers["Authorization"] = f"Bearer {secret_in(access.token_file)}"
            headers["X-Api-Version"] = "2"  # HomeWizard's, which refuses a token without it
        elif access.username:
            password = secret_in(access.password_file) if access.password_file else ""
            login = b64encode(f"{access.username}:{password}".encode()).decode()
            headers["Authorization"] = f"Basic {login}"
        return headers


def _pin_of(sock: ssl.SSLSocket) -> str:
    """Return what [meter.access] certificate says of the one that a peer has shown."""
    return "sha256:" + hashlib.sha256(sock.getpeercert(binary_form=True) or b"").hexdigest()


def _context(access: AccessTable) -> ssl.SSLContext:
    """Return how a peer is looked at: by its pin alone where there is one, else by authorities."""
    if access.certificate is not None:
        return _trusting()
    try:
        return _strict(ssl.create_default_context(cafile=access.ca_file))
    except OSError:
        raise NoAnswerError(NOT_LET_IN, f"{access.ca_file} holds no certificates") from None


def _trusting() -> ssl.SSLContext:
    """Return what shows a certificate that is looked at by itself, before anything is asked."""
    context = _strict(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # asked each time: no authorities
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _strict(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(f"{SECURITY_LEVEL}:{CIPHERS}")
    return context


def _body(response: HTTPResponse) -> bytes:
    if response.status in _REFUSED:
        raise NoAnswerError(
            NOT_LET_IN, f"it answers {response.status}: is the token, or the login, still good?"
        )
    if response.status != _OK:
        raise NoAnswerError(NO_TELEGRAM_THERE, f"it answers {response.status}; {_PATH}")
    if response.getheader("Content-Encoding", "identity") != "identity":
        raise NoAnswerError(NO_TELEGRAM_THERE, f"it answers in a coding nobody asked for; {_PATH}")
    payload = response.read(MOST_BYTES + 1)
    if response.length and len(payload) <= MOST_BYTES:
        raise NoAnswerError(GONE, f"it broke off amid its answer; {_REACH}")
    if len(payload) > MOST_BYTES:
        raise NoAnswerError(NO_TELEGRAM_THERE, f"it answers more than {MOST_BYTES} bytes; {_PATH}")
    if is_web_page(payload):
        raise NoAnswerError(NO_TELEGRAM_THERE, f"it is a page for people; {_PATH}")
    if not payload.strip():
        raise NoAnswerError(NO_TELEGRAM_THERE, f"it is empty; {_PATH}")
    return payload

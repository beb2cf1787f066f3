"""A page as a port: what it tells is a telegram, and whatever else it does is named."""

import asyncio
import gzip
import hashlib
import ssl
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from agent.config import parse_meter
from agent.errors import ConfigError, PortError
from agent.meters.obis.dsmr import P1Meter
from agent.meters.reading import Telegram
from agent.ports import page_port
from agent.ports.meters import hear, make_meter
from agent.ports.open_port import open_meter
from agent.ports.payload import MOST_BYTES, line_of
from firmware_stubs.meters import p1_telegram
from tests.agent.meters.samples import heard
from tests.agent.ports.page_server import page_server
from tests.integration.certificates import Authority

pytestmark = pytest.mark.integration
TELEGRAM = p1_telegram(meter_id="E0043007052870318", time_s=1_800_000_000, import_wh=1, power_w=378)
FIELDS = 'fields = [{ field = "power", quantity = "power", unit = "W" }]'
MARKER = b"83457219"  # a reading that must never be in an error


def table_of(port: str, *lines: str) -> Any:
    return parse_meter("\n".join([f'port = "{port}"', *lines]), "agent.toml")


async def telegrams(table: Any, count: int) -> list[Telegram]:
    with closing(await open_meter(table)) as port:
        return await heard(port, table, count)


async def refusal(table: Any) -> str:
    with pytest.raises(PortError) as caught:
        await telegrams(table, 1)
    text = str(caught.value)
    assert MARKER.decode() not in text
    return text


async def test_SER_37_a_page_of_raw_telegrams_is_read_as_a_line_is() -> None:
    async with page_server(TELEGRAM) as page:
        table = table_of(f"http://127.0.0.1:{page.port}/api/v1/telegram", "poll_ms = 200")
        found = await telegrams(table, 2)
    [serial] = [e for e in P1Meter(crc="required").feed(TELEGRAM) if isinstance(e, Telegram)]
    assert found == [serial, serial]
    assert page.requests[0].startswith("GET /api/v1/telegram HTTP/1.1\r\n")
    assert "Accept-Encoding: identity" in page.requests[0]


async def test_a_token_is_read_from_its_file_for_each_question(tmp_path: Path) -> None:
    """A token that was renewed is used without a restart."""
    file = tmp_path / "token"
    file.write_text("first\n")
    file.chmod(0o600)
    async with page_server(TELEGRAM) as page:
        table = table_of(f"http://127.0.0.1:{page.port}/t", f'access.token_file = "{file}"')
        await telegrams(table, 1)
        file.write_text("second")
        await telegrams(table, 1)
        file.write_text("")
        assert f"{file} holds no secret" in await refusal(table)
    heads = [head.partition("Authorization: ")[2].partition("\r\n")[0] for head in page.requests]
    assert heads == ["Bearer first", "Bearer second"]


async def test_a_name_and_a_password_are_sent_as_basic(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("open sesame")
    lines = ('access.username = "me"', f'access.password_file = "{file}"')
    async with page_server(TELEGRAM) as page:
        await telegrams(table_of(f"http://127.0.0.1:{page.port}/t", *lines), 1)
    assert "Authorization: Basic bWU6b3BlbiBzZXNhbWU=\r\n" in page.requests[0]


@pytest.mark.parametrize(
    ("status", "headers", "body", "said"),
    [
        (401, {}, MARKER, "does not let us in; it answers 401: is the token"),
        (403, {}, MARKER, "does not let us in; it answers 403"),
        (302, {"Location": "http://127.0.0.1:9/"}, MARKER, "holds no telegram; it answers 302"),
        (404, {}, MARKER, "holds no telegram; it answers 404; is the path right"),
        (200, {}, b"\n <html>" + MARKER, "it is a page for people"),
        (200, {}, b"", "it is empty"),
        (200, {"Content-Encoding": "gzip"}, MARKER, "in a coding nobody asked for"),
        (200, {}, MARKER * (MOST_BYTES // 8 + 1), f"more than {MOST_BYTES} bytes"),
    ],
)
async def test_SER_38_an_answer_that_is_no_telegram_is_named_and_never_quoted(
    status: int, headers: dict[str, str], body: bytes, said: str
) -> None:
    async with page_server(body, status) as page:
        page.headers = headers
        assert said in await refusal(table_of(f"http://127.0.0.1:{page.port}/t"))
    assert len(page.requests) == 1  # a redirect is not followed


@pytest.mark.parametrize("protocol", ["dsmr", "sml", "linky", "lines"])
async def test_SER_38_a_packed_body_that_says_nothing_of_it_is_never_unpacked(
    protocol: str,
) -> None:
    """10 MB of zeros as 10 kB: these bytes are all that is ever held, and they are no telegram."""
    bomb, fields = gzip.compress(bytes(10_000_000)), FIELDS if protocol == "lines" else ""
    async with page_server(bomb) as page:
        table = table_of(f"http://127.0.0.1:{page.port}/t", f'protocol = "{protocol}"', fields)
        meter = make_meter(table)
        with closing(await open_meter(table)) as port:
            heard = [await hear(port, meter) for _ in range(3)]  # silence, the page, silence
    assert [len(data) for data, _ in heard if data] == [len(line_of(bomb))]
    assert not [one for _, events in heard for one in events if isinstance(one, Telegram)]


async def nothing(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


async def drops(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 -\r\nContent-Length: 9999\r\n\r\n")
    while True:
        writer.write(MARKER[:1])
        await writer.drain()
        await asyncio.sleep(0.01)


async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 -\r\n\r\n")
    while True:
        writer.write(MARKER * 1000)
        await writer.drain()


async def cut(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 -\r\nContent-Length: 9999\r\n\r\n" + MARKER)


async def noise(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(MARKER + b"\r\n\r\n")


@pytest.mark.parametrize(
    ("talk", "said"),
    [
        (nothing, "cannot be reached; no answer in time"),
        (drops, "cannot be reached; no answer in time"),
        (endless, f"more than {MOST_BYTES} bytes"),
        (cut, "it broke off amid its answer"),
        (noise, "it does not speak HTTP"),
    ],
)
async def test_SER_39_a_slow_an_endless_and_a_broken_answer_cost_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    said: str,
) -> None:
    if "in time" in said:
        monkeypatch.setattr(page_port, "ANSWER_S", 0.5)
    async with page_server() as page:
        page.talk = talk
        assert said in await refusal(table_of(f"http://127.0.0.1:{page.port}/t"))


async def test_a_device_that_is_not_there_is_waited_for() -> None:
    async with page_server() as page:
        port = page.port
    assert "Connection refused; is the device on" in await refusal(
        table_of(f"http://127.0.0.1:{port}/t")
    )


# TLS


def served(tmp_path: Path, host: str) -> tuple[ssl.SSLContext, Path, str]:
    """Return a server's TLS, its authority's file and its pin."""
    authority = Authority(tmp_path / host)
    pair = authority.issue("dongle", host)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    der = pair.made.public_bytes(Encoding.DER)
    return context, authority.ca, "sha256:" + hashlib.sha256(der).hexdigest()


async def test_SER_40_a_devices_own_certificate_is_pinned_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    """A dongle's certificate names a serial number, never the address that it is asked by."""
    tls, _, pin = served(tmp_path, "appliance")
    file = tmp_path / "token"
    file.write_text("secret")
    async with page_server(TELEGRAM, tls=tls) as page:
        port, token = f"https://127.0.0.1:{page.port}/api/telegram", f'access.token_file = "{file}"'
        told = await refusal(table_of(port, token))
        assert "nobody vouches for its certificate" in told
        assert f"access.certificate = '{pin}'" in told
        other = await refusal(table_of(port, token, f'access.certificate = "sha256:{"0" * 64}"'))
        assert "its certificate is another one" in other
        assert page.requests == []  # neither token nor question went out
        await telegrams(table_of(port, token, f'access.certificate = "{pin}"'), 1)
    assert ["Bearer secret" in one for one in page.requests] == [True]


async def test_an_authority_vouches_for_a_name(tmp_path: Path) -> None:
    tls, ca, _ = served(tmp_path, "localhost")
    async with page_server(TELEGRAM, tls=tls) as page:
        port = f"https://localhost:{page.port}/t"
        await telegrams(table_of(port, f'access.ca_file = "{ca}"'), 1)
        missing = table_of(port, f'access.ca_file = "{tmp_path}/none"')
        assert "none holds no certificates" in await refusal(missing)


# the table


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (('port = "http://h/t"', 'protocol = "modbus"'), "meter.port: expected a serial line"),
        (
            ('port = "mqtt://h/t"', 'protocol = "iec62056-21"', 'mode = "request"'),
            "meter.port: expected a serial line",
        ),
        (('port = "http://h/t"', 'access.token_file = "x"'), "no secret in the clear"),
        (
            ('port = "mqtt://h/t"', 'access.username = "u"', 'access.password_file = "x"'),
            "no secret in the clear",
        ),
        (('port = "https://h/t"', 'access.password_file = "x"'), "with username"),
        (('port = "mqtts://h/t"', 'access.token_file = "x"'), "nothing for a broker"),
        (
            ('port = "https://h/t"', 'access.token_file = "x"', 'access.username = "u"'),
            "a token or a username, not both",
        ),
        (('port = "http://h/t"', f'access.certificate = "sha256:{"0" * 64}"'), "unless port is"),
        (('port = "https://h/t"', 'access.certificate = "sha256:xyz"'), "64 hexadecimal digits"),
        (('port = "http://h/t"', 'access.ca_file = "x"'), "nothing unless port is https://"),
        (('port = "/dev/ttyUSB0"', 'access.username = "u"'), "nothing unless port is http"),
        (('port = "mqtt://h/t"', "poll_ms = 1000"), "meter.poll_ms: expected nothing unless"),
    ],
)
def test_what_a_page_or_a_topic_cannot_have_is_refused(lines: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_meter("\n".join(lines), "agent.toml")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("payload", "line"),
    [
        (b'{\r\n  "a": 1,\n\t"b": 2 }\n', b'{    "a": 1,  "b": 2 }\n'),
        (b"378", b"378\n"),
        (b"a=1\n", b"a=1\n"),
        (b"\x1b\x1b\x1b\x1b\x01", b"\x1b\x1b\x1b\x1b\x01"),
        (TELEGRAM, TELEGRAM),
    ],
)
def test_a_payload_is_made_what_a_line_would_have_brought(payload: bytes, line: bytes) -> None:
    assert line_of(payload) == line

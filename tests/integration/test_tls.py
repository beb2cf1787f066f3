"""TLS as the agent meets it: verified by default, and a reason a person can act on."""

import asyncio
import ssl
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.link.trouble import REFUSED_RETRY_S
from aggregator.config.sections import DevicesTable
from aggregator.running.certificates import LOOKS_S, CertificateWatch
from edge_ldp.service.mqtt import Broker, LinkLostError, open_link
from tests.agent.link.test_uplink import Home
from tests.agent.samples import DEVICE
from tests.integration.agent_bench import until
from tests.integration.certificates import Authority, Pair
from tests.integration.conftest import RealBroker

MakeBroker = Callable[[str], RealBroker]


LISTENER = """
listener {{port}} 127.0.0.1
allow_anonymous true
user root
certfile {pair.cert}
keyfile {pair.key}
log_dest file {{directory}}/mosquitto.log
"""
CLIENTS = LISTENER + "cafile {ca}\nrequire_certificate true\nuse_identity_as_username true\n"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


async def connect(port: int, authority: Authority, **changes: Any) -> str:
    changes.setdefault("ca_file", str(authority.ca))
    link = await open_link(Broker("localhost", port, "tls-test", tls=True, **changes))
    await link.publish("somewhere", bytes(20_000))
    await link.close()
    return link.protocol


async def test_a_certificate_of_the_named_authority_is_accepted(
    authority: Authority, make_broker: MakeBroker
) -> None:
    pair = authority.issue("good", "localhost")
    broker = make_broker(LISTENER.format(pair=pair))
    assert await connect(broker.port, authority) == "5"
    link = await open_link(
        Broker("localhost", broker.port, "t", tls=True, ca_file=str(authority.ca))
    )
    assert link.valid_until_s == int(pair.made.not_valid_after_utc.timestamp())
    await link.close()
    assert link.valid_until_s is None


@asynccontextmanager
async def listening_with(context: ssl.SSLContext) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Give the port of a TLS server, and what it heard after the handshake."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            heard.append(await reader.read(100))
        except OSError:
            heard.append(b"")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # refused handshakes
    try:
        yield int(server.sockets[0].getsockname()[1]), heard
    finally:
        server.close()


def serving(pair: Pair) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    return context


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("expired", "certificate has expired"),
        ("not yet valid", "certificate is not yet valid"),
        ("other authority", "unable to get local issuer certificate"),
        ("self-signed", "self.signed certificate"),
        ("other host", "not valid for 'localhost'"),
        ("revoked", "certificate revoked"),
    ],
)
async def test_a_wrong_server_hears_nothing_and_its_fault_is_named_NET_09(
    authority: Authority, tmp_path: Path, wrong: str, reason: str
) -> None:
    """Not a byte of CONNECT, whose user name and password are in the clear inside."""
    days = {"expired": (-9, -1), "not yet valid": (1, 9)}.get(wrong, (-1, 2))
    host = "broker.example" if wrong == "other host" else "localhost"
    by = Authority(tmp_path / "other", "other") if wrong == "other authority" else authority
    pair = by.issue("server", host, days=days)
    if wrong == "self-signed":
        lone = Authority(tmp_path / "lone", "localhost")
        pair = Pair(lone.ca, lone.directory / "k", pair.made)
        lone.write_key(pair.key)
    crl = authority.crl(pair) if wrong == "revoked" else None
    async with listening_with(serving(pair)) as (port, heard):
        with pytest.raises(LinkLostError, match=f"TLS: .*{reason}"):
            await connect(
                port,
                authority,
                crl_file=str(crl) if crl else None,
                username="me",
                password="right-horse",  # noqa: S106 (never sent)
            )
        await asyncio.sleep(0.05)
        assert not any(heard)


async def test_with_a_list_of_revoked_ones_the_others_are_still_accepted_NET_09(
    authority: Authority, make_broker: MakeBroker
) -> None:
    pair = authority.issue("good", "localhost")
    crl = authority.crl(authority.issue("bad", "localhost"))
    broker = make_broker(LISTENER.format(pair=pair))
    assert await connect(broker.port, authority, crl_file=str(crl)) == "5"


@pytest.mark.parametrize("offer", ["1.0", "1.1", "rsa", "cbc"])
async def test_old_versions_and_weak_suites_are_refused_NET_10(
    authority: Authority, offer: str
) -> None:
    context = serving(authority.issue("server", "localhost"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that is the point
        if offer in ("1.0", "1.1"):
            version = ssl.TLSVersion.TLSv1 if offer == "1.0" else ssl.TLSVersion.TLSv1_1
            context.minimum_version, context.maximum_version = version, version
            context.set_ciphers("ALL:@SECLEVEL=0")
        else:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers("AES128-GCM-SHA256" if offer == "rsa" else "ECDHE-ECDSA-AES128-SHA")
    async with listening_with(context) as (port, heard):
        with pytest.raises(LinkLostError, match="TLS: "):
            await connect(port, authority)
        assert not any(heard)


async def test_a_server_of_tls_1_2_alone_is_spoken_to_NET_10(authority: Authority) -> None:
    """The control: forward secrecy and an AEAD are enough."""
    context = serving(authority.issue("server", "localhost"))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with listening_with(context) as (port, heard):
        with pytest.raises(LinkLostError, match="closed"):
            await connect(port, authority, protocol="5")
        assert heard[0][:1] == b"\x10"  # CONNECT


@pytest.fixture
def strict(authority: Authority, make_broker: MakeBroker) -> RealBroker:
    """Give a broker that asks each client for a certificate of the authority."""
    pair = authority.issue("server", "localhost")
    text = CLIENTS.format(pair=pair, ca=authority.ca)
    return make_broker(text + f"crlfile {authority.crl()}\n")


async def test_a_client_certificate_opens_what_asks_for_one(
    authority: Authority, strict: RealBroker
) -> None:
    mine = authority.issue("home-7")
    files = {"cert_file": str(mine.cert), "key_file": str(mine.key)}
    assert await connect(strict.port, authority, **files) == "5"


@pytest.mark.parametrize("fault", ["none", "foreign", "expired"])
async def test_a_client_certificate_that_is_refused_is_told_as_such_NET_11(
    authority: Authority, strict: RealBroker, tmp_path: Path, fault: str
) -> None:
    by = Authority(tmp_path / "other", "other") if fault == "foreign" else authority
    mine = by.issue("home-7", days=(-9, -1) if fault == "expired" else (-1, 2))
    files = {} if fault == "none" else {"cert_file": str(mine.cert), "key_file": str(mine.key)}
    with pytest.raises(LinkLostError, match=r"TLS: .*alert"):
        await connect(strict.port, authority, **files)


async def test_revoked_and_replaced_while_it_runs_NET_11(
    authority: Authority, strict: RealBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker restarts with our certificate revoked; a new one in the same place is used."""
    mine = authority.issue(DEVICE)
    files = f'cert_file = "{mine.cert}"\nkey_file = "{mine.key}"\nca_file = "{authority.ca}"'
    caplog.set_level("INFO")
    home = Home(tmp_path, strict.port, broker=f"tls = true\n{files}", host="localhost")
    async with home.connecting():
        await until(lambda: home.uplink.online)
        authority.crl(mine)
        strict.restart()
        await until(lambda: home.uplink.health == "degraded: auth")
        assert REFUSED_RETRY_S >= 30
        authority.issue(DEVICE)
        home.uplink.renew()  # what SIGHUP does
        await until(lambda: home.uplink.online)
    assert "alert certificate revoked" in caplog.text


@pytest.mark.parametrize("key", ["cert_file", "ca_file", "crl_file"])
async def test_a_file_that_is_none_is_named(authority: Authority, tmp_path: Path, key: str) -> None:
    mine = authority.issue("home-7")
    files = {"cert_file": str(mine.cert), "key_file": str(mine.key)}
    (tmp_path / "empty").write_text("no certificate in here")
    for name in (tmp_path / "gone", tmp_path / "empty"):
        with pytest.raises(LinkLostError, match=key):
            await connect(1, authority, **{**files, key: str(name)})


async def test_what_devices_are_shown_is_looked_at_once_an_hour(
    authority: Authority, make_broker: MakeBroker
) -> None:
    pair = authority.issue("good", "localhost")
    broker = make_broker(LISTENER.format(pair=pair))
    table = DevicesTable("localhost", "passwords", port=broker.port, ca_file=str(authority.ca))
    watch = CertificateWatch(table)
    await watch.look(0.0)
    until_s = int(pair.made.not_valid_after_utc.timestamp())
    assert watch.valid_s == until_s
    watch.link_s = until_s - 1
    assert watch.valid_s == until_s - 1
    broker.stop()
    await watch.look(LOOKS_S - 1.0)
    watch.link_s = None
    assert watch.valid_s == until_s
    await watch.look(float(LOOKS_S))
    assert [watch.valid_s] == [None]  # mypy believes the line above for ever
    for without in (None, replace(table, tls=False)):
        watch = CertificateWatch(without)
        await watch.look(0.0)
        assert watch.valid_s is None

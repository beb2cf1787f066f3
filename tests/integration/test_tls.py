"""TLS as the agent meets it: verified by default, and a reason a person can act on."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from edge_ldp.shell.mqtt import Broker, LinkLostError, open_link

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.conftest import RealBroker

    MakeBroker = Callable[[str], RealBroker]

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]

LISTENER = """
listener {{port}} 127.0.0.1
allow_anonymous true
user root
certfile {certificate}
keyfile {key}
log_dest file {{directory}}/mosquitto.log
"""


def certificate(directory: Path, name: str, host: str) -> tuple[Path, Path]:
    """Make a self-signed certificate for a host; it is its own authority."""
    cert, key = directory / f"{name}.pem", directory / f"{name}.key"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={host}".split()
    command += ["-addext", f"subjectAltName=DNS:{host}", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    key.chmod(0o644)
    return cert, key


async def connect(broker: RealBroker, ca_file: Path) -> str:
    """Connect by the name localhost, publish once, and return the protocol spoken."""
    link = await open_link(
        Broker("localhost", broker.port, "tls-test", tls=True, ca_file=str(ca_file))
    )
    await link.publish("somewhere", bytes(20_000))
    await link.close()
    return link.protocol


async def test_a_certificate_of_the_named_authority_is_accepted(
    tmp_path: Path, make_broker: MakeBroker
) -> None:
    cert, key = certificate(tmp_path, "good", "localhost")
    broker = make_broker(LISTENER.format(certificate=cert, key=key))
    assert await connect(broker, cert) == "5"


async def test_NET_09_a_certificate_of_another_authority_is_refused_with_the_reason(
    tmp_path: Path, make_broker: MakeBroker
) -> None:
    cert, key = certificate(tmp_path, "good", "localhost")
    other, _ = certificate(tmp_path, "other", "localhost")
    broker = make_broker(LISTENER.format(certificate=cert, key=key))
    with pytest.raises(LinkLostError, match=r"TLS: .*self.signed certificate"):
        await connect(broker, other)


async def test_NET_09_a_certificate_for_another_host_is_refused_with_the_reason(
    tmp_path: Path, make_broker: MakeBroker
) -> None:
    cert, key = certificate(tmp_path, "good", "broker.example")
    broker = make_broker(LISTENER.format(certificate=cert, key=key))
    with pytest.raises(LinkLostError, match=r"TLS: .*not valid for 'localhost'"):
        await connect(broker, cert)

"""Which MQTT broker the demo uses, how it is started on loopback, and when it is ready."""

import os
import shutil
import socket
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

HOST = "127.0.0.1"
READY_S = 60.0
MOSQUITTO_CONF = """\
listener {port} {host}
allow_anonymous true
{user}persistence true
persistence_location {directory}/
max_queued_messages 0
max_inflight_messages 1000
log_type error
log_type warning
"""


class NoBrokerError(Exception):
    """The broker asked for is not on this machine; the text says the remedy."""


@dataclass(frozen=True, slots=True)
class BrokerChoice:
    """A broker's name and command, and what its clients must know."""

    name: str
    command: list[str]
    port: int
    protocol: str


def search_path() -> str:
    """Return where programs are looked for: Debian keeps brokers where users do not look."""
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"


def choose_broker(kind: str, directory: Path, path: str) -> BrokerChoice:
    """Return the broker to start in `directory`: "auto" prefers mosquitto over iotcore.

    Looks for mosquitto in `path` and writes its configuration. Raises NoBrokerError.
    """
    mosquitto = shutil.which("mosquitto", path=path)
    port = free_port()
    if kind in ("auto", "mosquitto") and mosquitto:
        conf = directory / "mosquitto.conf"
        user = "user root\n" if os.geteuid() == 0 else ""  # else it cannot write to its store
        conf.write_text(MOSQUITTO_CONF.format(host=HOST, port=port, directory=directory, user=user))
        return BrokerChoice("mosquitto", [mosquitto, "-c", str(conf)], port, "auto")
    if kind in ("auto", "iotcore") and find_spec("iotcore"):
        command = [sys.executable, "-m", "iotcore", "--listen", HOST, "--port", str(port)]
        return BrokerChoice("iotcore", command, port, "3.1.1")
    remedy = {
        "mosquitto": "apt-get install mosquitto",
        "iotcore": "pip install iotcore",
        "auto": "pip install iotcore, or apt-get install mosquitto",
    }
    raise NoBrokerError(f"no broker: {remedy[kind]}")


def free_port() -> int:
    """Return a loopback TCP port that nothing listens on now."""
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        return int(sock.getsockname()[1])


def is_listening(port: int) -> bool:
    """Say whether something accepts connections on a loopback port."""
    with socket.socket() as sock:
        sock.settimeout(0.2)
        return sock.connect_ex((HOST, port)) == 0


def wait_until_listening(port: int) -> None:
    """Return once a broker accepts connections; raises NoBrokerError after a minute."""
    deadline = time.monotonic() + READY_S
    while not is_listening(port):
        if time.monotonic() > deadline:
            raise NoBrokerError(f"the broker did not open port {port} within {READY_S:.0f} s")
        time.sleep(0.02)

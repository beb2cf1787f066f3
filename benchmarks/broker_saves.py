"""How long a broker stands still when it saves: with so many retained statuses and receipts.

`python -m benchmarks.broker_saves [--retained 300000] [--bytes 1000] [--saves 5]` starts Mosquitto,
retains as many messages, lets it save (SIGUSR1, the same as `autosave_interval` does) and asks all
the while whether it is there: the longest silence of each save, and what it took of a processor,
which other work on the machine does not change.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import tempfile
import time
from pathlib import Path
from statistics import median

from edge_ldp.protocol.messages import topic
from tests.integration.conftest import SAVED, RealBroker, running

CONNECT = b"\x10\x0f\x00\x04MQTT\x04\x02\x00\x00\x00\x03one"
PING, AT_ONCE, SETTLE_S = b"\xc0\x00", 500, 5.0
NEVER = SAVED.replace("autosave_on_changes true", "autosave_on_changes false").replace(
    "autosave_interval 1", "autosave_interval 1000000"
)


class Client:
    """MQTT 3.1.1 by hand: it retains with QoS 0, and asks whether the broker is there."""

    def __init__(self, broker: RealBroker) -> None:
        self._link = socket.create_connection((broker.host, broker.port))
        self._link.sendall(CONNECT)
        assert self._link.recv(4)[3] == 0

    def retain(self, count: int, size: int) -> None:
        """Publish so many retained messages, and wait until the broker has them."""
        for begin in range(0, count, AT_ONCE):
            names = range(begin, min(count, begin + AT_ONCE))
            self._link.sendall(b"".join(_publish(f"home-{at:07d}", size) for at in names))
            self.ask_s()

    def ask_s(self) -> float:
        """Return how long an answer took: everything before it was handled."""
        begun = time.perf_counter()
        self._link.sendall(PING)
        assert self._link.recv(2) == b"\xd0\x00"
        return time.perf_counter() - begun


def _publish(device: str, size: int) -> bytes:
    name = topic("demo", "status", device).encode()
    body = len(name).to_bytes(2, "big") + name + os.urandom(size)
    length, left = b"", len(body)
    while left >= 128:
        length, left = length + bytes([left % 128 | 128]), left // 128
    return b"\x31" + length + bytes([left]) + body


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def save(broker: RealBroker, client: Client, pid: int) -> tuple[float, float]:
    """Let it save once; return the longest silence and the processor's time, in seconds."""
    file = broker.directory / "mosquitto.db"
    before_s, was = _cpu_s(pid), file.stat().st_mtime_ns if file.exists() else 0
    os.kill(pid, signal.SIGUSR1)
    longest_s, until_s = 0.0, float("inf")
    while time.perf_counter() < until_s:
        longest_s = max(longest_s, client.ask_s())
        if until_s == float("inf") and file.exists() and file.stat().st_mtime_ns != was:
            until_s = time.perf_counter() + SETTLE_S / 5
        time.sleep(0.001)
    return longest_s, _cpu_s(pid) - before_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--retained", type=int, default=300_000)
    parser.add_argument("--bytes", type=int, default=1000)
    parser.add_argument("--saves", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, running(RealBroker(Path(place), NEVER)) as broker:
        client = Client(broker)
        client.retain(args.retained, args.bytes)
        time.sleep(SETTLE_S)
        found = [save(broker, client, broker.pid) for _ in range(args.saves)]
        size = (Path(place) / "mosquitto.db").stat().st_size
    silent, cpu = ([pair[at] for pair in found] for at in (0, 1))
    print(  # noqa: T201
        f"{args.retained} retained messages of {args.bytes} bytes, {size / 1e6:.0f} MB a save: "
        f"silent for {median(silent):.2f} s ({min(silent):.2f} to {max(silent):.2f}), "
        f"{median(cpu):.2f} s of a processor ({min(cpu):.2f} to {max(cpu):.2f})"
    )


if __name__ == "__main__":
    main()

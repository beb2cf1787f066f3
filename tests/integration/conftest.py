"""A real MQTT broker for integration tests: mosquitto on a free loopback port."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from aggregator.store.postgres.store import PostgresStore
from aggregator.store.sqlite.store import SqliteStore
from firmware_stubs.meters import PtyPort
from tests import needs
from tests.integration.both_stores import House
from tests.postgres import PostgresServer, running_postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aggregator.store.contract import Store

HOST = "127.0.0.1"
START_S = 300
HERE = Path(__file__).parent
OPEN = """
listener {port} 127.0.0.1
allow_anonymous true
user root
persistence true
persistence_location {directory}/
max_queued_messages 10000000
max_inflight_messages 1000
log_dest file {directory}/mosquitto.log
"""
# saves all that it holds after each message, which a slow disk makes slow: for what a kill may lose
SAVED = OPEN + "autosave_on_changes true\nautosave_interval 1\n"
EVERY_SECOND = OPEN + "autosave_on_changes false\nautosave_interval 1\n"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all that is here: real processes."""
    for item in items:
        if str(item.path).startswith(f"{HERE}/"):  # of 13,000: parents are dear
            item.add_marker(pytest.mark.integration)


def free_port() -> int:
    """Return a TCP port that nothing listens on now."""
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        return int(sock.getsockname()[1])


class RealBroker:
    """One mosquitto process; `kill` is SIGKILL, `restart` starts it again on the same store."""

    def __init__(self, directory: Path, config: str = OPEN) -> None:
        self.host = HOST
        self.port = free_port()
        self.directory = directory
        self._binary = needs.program("mosquitto")
        self._config = directory / "mosquitto.conf"
        self._log = directory / "mosquitto.log"
        self._config.write_text(config.format(port=self.port, directory=directory))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start and wait until it listens."""
        command = [self._binary, "-c", str(self._config)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + START_S
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"mosquitto did not start: {self.log()}")
            time.sleep(0.01)

    @property
    def pid(self) -> int:
        """Its process id, while it runs."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End it by SIGKILL: nothing is saved."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it by SIGTERM: it saves its store."""
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Kill it if it runs, and start it again on the same port and store."""
        self.kill()
        self.start()

    def pause(self) -> None:
        """Freeze it (SIGSTOP): connections stay open and silent."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self._signal(signal.SIGCONT)

    def log(self) -> str:
        """Return what it logged so far."""
        return self._log.read_text() if self._log.exists() else ""

    def forget(self) -> None:
        """Delete its store; only while it does not run."""
        (self.directory / "mosquitto.db").unlink(missing_ok=True)

    def _signal(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        while process is not None and process.poll() is None:
            process.send_signal(number)  # again: one that comes while it starts is lost to it
            with suppress(subprocess.TimeoutExpired):
                process.wait(1)

    def _listens(self) -> bool:
        with socket.socket() as sock:
            sock.settimeout(1.0)
            return sock.connect_ex((self.host, self.port)) == 0


@contextmanager
def running(broker: RealBroker) -> Iterator[RealBroker]:
    """Start the broker and end it afterwards."""
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RealBroker]:
    """Give a running broker with anonymous access; it saves its store when it is stopped."""
    directory = tmp_path / "broker"
    directory.mkdir()
    with running(RealBroker(directory)) as made:
        yield made


@pytest.fixture
def make_broker(tmp_path: Path) -> Iterator[Callable[[str], RealBroker]]:
    """Give a function that starts a broker from a configuration text ({port}, {directory})."""
    with ExitStack() as stack:
        made: list[RealBroker] = []

        def make(config: str) -> RealBroker:
            directory = tmp_path / f"broker{len(made)}"
            directory.mkdir()
            made.append(stack.enter_context(running(RealBroker(directory, config))))
            return made[-1]

        yield make


@pytest.fixture
def pty(tmp_path: Path) -> Iterator[PtyPort]:
    """Give a meter's port that is plugged in."""
    port = PtyPort(tmp_path / "meter")
    port.plug()
    yield port
    port.unplug()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Give a PostgreSQL server that all tests share, each with a database of its own."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """Give a PostgreSQL server of the file's own, which may be crashed."""
    with running_postgres() as made:
        yield made


@pytest.fixture
def url(server: PostgresServer) -> str:
    """Give a database of its own."""
    return server.new_database()


@pytest.fixture
def fast_broker(make_broker: Callable[[str], RealBroker]) -> RealBroker:
    """Give a broker that looks at its clients every second."""
    return make_broker(EVERY_SECOND)


@pytest.fixture(params=["sqlite", "postgresql"])
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    """Give a house with a store of either engine."""
    store: Store
    if request.param == "sqlite":
        store = SqliteStore.open(tmp_path / "a.db")
    else:
        store = PostgresStore.open(request.getfixturevalue("postgres").new_database())
    yield House(store)
    store.close()

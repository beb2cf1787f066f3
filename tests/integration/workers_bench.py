"""Aggregator processes that share one PostgreSQL database and one broker."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aggregator.errors import StoreError
from aggregator.store.postgres.reader import PostgresReader
from tests.forked import Forked
from tests.integration.aggregator_bench import Aggregator
from tests.integration.conftest import RealBroker

SHARE = 'share = "fleet"'


class OnPostgres(Aggregator):
    """The same process with its store on a server."""

    def __init__(self, directory: Path, broker: RealBroker, url: str, **options: Any) -> None:
        super().__init__(directory, broker, **options)
        self.url = url
        text = self.config.read_text()
        self.config.write_text(text.replace(f'path = "{self.store}"', f'url = "{url}"'))

    def counted(self) -> int:
        """Return how many reports are counted; none while the server is away."""
        try:
            return self.counts().total()
        except StoreError:
            return 0

    def read(self, use: Any) -> Any:
        reader = PostgresReader.open(self.url)
        try:
            return use(reader)
        finally:
            reader.close()


class Worker(OnPostgres):
    """One of several `edge-ldp aggregator run --worker NAME` processes, and its log."""

    def __init__(
        self, directory: Path, broker: RealBroker, url: str, name: str, **options: Any
    ) -> None:
        place = directory / name
        place.mkdir(exist_ok=True)
        archive = options.pop("archive", None)
        super().__init__(place, broker, url, login=options.pop("login", SHARE), **options)
        self.name = name
        if archive is not None:
            text = self.config.read_text()
            text = text.replace("[intake]", f'[archive]\npath = "{archive}"\n[intake]')
            self.config.write_text(text)

    def start(self) -> None:
        """Start it; it may not be connected yet."""
        words = ["aggregator", "run", "-c", str(self.config), "--worker", self.name]
        self._process = Forked(words, log=self.log)

    def signal(self, number: int) -> None:
        """Send it a signal: SIGSTOP freezes it, SIGCONT lets it go on."""
        assert self._process is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    @property
    def is_connected(self) -> bool:
        return b"connected to" in self.log.read_bytes()

    @property
    def led(self) -> int:
        return self.log.read_bytes().count(b"INFO leads: ")


def crew(directory: Path, broker: RealBroker, url: str, count: int, **options: Any) -> list[Worker]:
    """Return so many workers of one fleet, not started yet."""
    return [Worker(directory, broker, url, f"worker-{at}", **options) for at in range(count)]


@contextmanager
def at_work(workers: list[Worker]) -> Iterator[None]:
    """Start workers, and kill them in the end."""
    try:
        for worker in workers:
            worker.start()
        yield
    finally:
        for worker in workers:
            worker.kill()

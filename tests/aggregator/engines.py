"""Both stores behind one fixture, for what commands and readers do alike on either."""

from dataclasses import dataclass
from pathlib import Path

from aggregator.config import AggregatorConfig, parse_config
from aggregator.store.contract import Store
from aggregator.store.postgres.store import PostgresStore
from aggregator.store.sqlite.store import SqliteStore
from tests.aggregator.fakes import CONFIG


@dataclass(frozen=True)
class Engine:
    """A place where one store can be made, and the text of a configuration that names it."""

    name: str
    line: str
    path: Path
    url: str

    def open(self) -> Store:
        """Open the one writer, as the service does."""
        if self.name == "sqlite":
            return SqliteStore.open(self.path)
        return PostgresStore.open(self.url)

    def text(self, intake: str = "", more: str = "") -> str:
        text = CONFIG.format(path="", intake=intake).replace('path = ""', self.line)
        return text + more

    def config(self, intake: str = "", more: str = "") -> AggregatorConfig:
        return parse_config(self.text(intake, more), "test.toml")

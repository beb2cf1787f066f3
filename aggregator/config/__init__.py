"""The aggregator's configuration: tables, loading, contradictions, secrets."""

from aggregator.config.load import (
    load_config,
    parse_config,
    read_password,
    read_store_password,
)
from aggregator.config.sections import (
    AggregatorConfig,
    AnnounceTable,
    ArchiveTable,
    BrokerTable,
    ClockTable,
    ConsoleTable,
    DevicesTable,
    GuardTable,
    IntakeTable,
    PlansTable,
    QueryTable,
    RehearsalTable,
    RetentionTable,
    SignOnTable,
    StoreTable,
    is_loopback,
)
from aggregator.config.streams import StreamTable
from aggregator.errors import ConfigError

__all__ = [
    "AggregatorConfig",
    "AnnounceTable",
    "ArchiveTable",
    "BrokerTable",
    "ClockTable",
    "ConfigError",
    "ConsoleTable",
    "DevicesTable",
    "GuardTable",
    "IntakeTable",
    "PlansTable",
    "QueryTable",
    "RehearsalTable",
    "RetentionTable",
    "SignOnTable",
    "StoreTable",
    "StreamTable",
    "is_loopback",
    "load_config",
    "parse_config",
    "read_password",
    "read_store_password",
]

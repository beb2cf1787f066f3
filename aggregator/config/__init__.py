"""The aggregator's configuration: tables, loading, contradictions, secrets."""

from aggregator.config.errors import ConfigError
from aggregator.config.load import load_config, parse_config
from aggregator.config.secrets import read_password, read_store_password
from aggregator.config.streams import StreamTable
from aggregator.config.tables import (
    AggregatorConfig,
    ArchiveTable,
    BrokerTable,
    ClockTable,
    GuardTable,
    IntakeTable,
    PlansTable,
    QueryTable,
    RetentionTable,
    StoreTable,
    is_loopback,
)

__all__ = [
    "AggregatorConfig",
    "ArchiveTable",
    "BrokerTable",
    "ClockTable",
    "ConfigError",
    "GuardTable",
    "IntakeTable",
    "PlansTable",
    "QueryTable",
    "RetentionTable",
    "StoreTable",
    "StreamTable",
    "is_loopback",
    "load_config",
    "parse_config",
    "read_password",
    "read_store_password",
]

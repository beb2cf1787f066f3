"""The agent's configuration: tables, loading, contradictions, secrets."""

from agent.config.load import load_config, parse_config, parse_meter
from agent.config.secrets import read_password
from agent.config.tables import KINDS, AgentConfig, BrokerTable

__all__ = [
    "KINDS",
    "AgentConfig",
    "BrokerTable",
    "load_config",
    "parse_config",
    "parse_meter",
    "read_password",
]

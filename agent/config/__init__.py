"""The agent's configuration: tables, loading, contradictions, secrets."""

from agent.config.curator_section import CuratorTable
from agent.config.load import load_config, parse_config, parse_meter
from agent.config.secrets import Secrets, read_password, read_secrets
from agent.config.sections import AgentConfig, TapTable
from edge_ldp.service.broker import BrokerTable

__all__ = [
    "AgentConfig",
    "BrokerTable",
    "CuratorTable",
    "Secrets",
    "TapTable",
    "load_config",
    "parse_config",
    "parse_meter",
    "read_password",
    "read_secrets",
]

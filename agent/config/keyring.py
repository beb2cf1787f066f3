"""The ring of keys that a configuration names; `cryptography` is loaded only when it names some."""

from typing import TYPE_CHECKING

from agent.errors import ConfigError
from edge_ldp.extras import pip_install
from edge_ldp.protocol.signing import parse_public

if TYPE_CHECKING:
    from agent.config import AgentConfig
    from edge_ldp.protocol.signing import Keyring


def keyring_of(config: "AgentConfig", file: str) -> "Keyring | None":
    """Return the ring, or None when no key is named: then plans are taken unsigned.

    Raises ConfigError when keys are named and nothing here can check a signature.
    """
    if not config.plans.keys:
        return None
    try:
        from edge_ldp.service.verify import keyring  # noqa: PLC0415 (memory: 7 MiB where needed)
    except ImportError as exc:
        expected = f"the extra `sign` beside it: {pip_install('edge-ldp[sign]')}"
        raise ConfigError(file, "plans.keys", expected) from exc
    following = config.plans.next_key and parse_public(config.plans.next_key)
    return keyring((parse_public(key) for key in config.plans.keys), following or None)

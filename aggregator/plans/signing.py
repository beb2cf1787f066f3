"""How plans leave: as they are, or signed by the key that the configuration names."""

from dataclasses import dataclass
from pathlib import Path

from aggregator.config import AggregatorConfig, ConfigError, extra
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.protocol.plan import parse_plan
from edge_ldp.protocol.signing import Keyring, Signer, plan_bytes


@dataclass(frozen=True, slots=True)
class PlanSeal:
    """Signs plans with `signer`, and takes back what `keyring` opens; without them nothing is."""

    signer: Signer | None = None
    keyring: Keyring | None = None

    def wrap(self, plan: bytes) -> bytes:
        """Return what is published for a plan: the same bytes for the same plan."""
        return plan if self.signer is None else self.signer.wrap(plan)

    def open(self, payload: bytes) -> bytes:
        """Return the plan in what is retained; raises MessageError for one that is not ours."""
        return plan_bytes(payload) if self.keyring is None else self.keyring.open(payload)

    def epoch_of(self, payload: bytes) -> int | None:
        """Return the epoch of what is retained, or None for what is no plan of ours."""
        try:
            return parse_plan(self.open(payload)).epoch
        except ValueError:  # every error of ours is one
            return None


def read_seal(config: AggregatorConfig, file: str) -> PlanSeal:
    """Return the seal that a configuration names; raises ConfigError for a key that is none.

    `cryptography` is loaded only when there is a key.
    """
    named = config.plans.signing_key_file
    if named is None:
        return PlanSeal()
    key = "plans.signing_key_file"
    with extra("the extra `sign` beside it", "edge-ldp[sign]", file, key):
        from aggregator.plans.keys import read_signer  # noqa: PLC0415
        from edge_ldp.service.verify import keyring  # noqa: PLC0415
    try:
        signer = read_signer(Path(named))
    except EdgeLdpError as exc:
        raise ConfigError(file, key, str(exc)) from exc
    return PlanSeal(signer, keyring([signer.public]))

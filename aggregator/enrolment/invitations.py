"""What is invited: a device's way into the fleet of a configuration."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from edge_ldp.protocol.invitation import Invitation, InvitedBroker, InvitedStream, InvitedSums

if TYPE_CHECKING:
    from aggregator.config import AggregatorConfig, DevicesTable
    from aggregator.config.streams import HomeSums

ENDING = ".invitation"


def invitation(  # noqa: PLR0913 (what an invitation is made of)
    config: AggregatorConfig,
    devices: DevicesTable,
    device: str,
    password: str,
    *,
    ca: str | None,
    plan_keys: tuple[str, ...],
) -> Invitation:
    """Return a device's invitation; `ca` in PEM, `plan_keys` in hex."""
    return Invitation(
        fleet=config.fleet,
        device=device,
        broker=InvitedBroker(devices.host, devices.use_port, devices.tls, ca),
        username=device,
        password=password,
        plan_keys=plan_keys,
        streams=tuple(
            InvitedStream(
                name=stream.name,
                quantity=stream.use_quantity,
                unit=stream.unit,
                low=stream.low,
                ceiling=stream.ceiling,
                slot_seconds=stream.slot_seconds,
                epsilon=str(stream.epsilon),
                sums=_sums(stream.home_sums),
            )
            for stream in config.streams
        ),
    )


def _sums(wanted: HomeSums | None) -> InvitedSums | None:
    if wanted is None:
        return None
    return InvitedSums(**{**asdict(wanted), "share": f"{wanted.share:f}"})

"""What may leave this house: batches of codes and the status. Nothing else has the type for it.

The outgoing link takes an `Outgoing` and nothing else. It is made from a batch, which must decode
as a frame of codes (or of values released under central DP, or of a period's sums with their noise)
of the stream, series and number it is kept for, or from a Status, or it is empty. Readings are
integers in a telegram, and the tap's are LocalReadings (agent/tap/messages.py): neither fits here,
for mypy as for the running program.
"""

from collections.abc import Sequence
from typing import Literal

from agent.claims.batches import Named
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.frame import decode
from edge_ldp.device.sums_frame import decode_sums
from edge_ldp.lean_class import lean_class
from edge_ldp.protocol.frames import split_frames
from edge_ldp.protocol.messages import Status, topic
from edge_ldp.protocol.released import FIRST_KEY, FIRST_SUMS_KEY, decode_released
from edge_ldp.service.mqtt import Link

_MAKING = object()


@lean_class(frozen=True, slots=True)
class Outgoing:
    """One message to the outgoing broker; made by the functions below only."""

    topic: str
    payload: bytes
    retain: bool
    by: object

    def __post_init__(self) -> None:
        if self.by is not _MAKING:
            raise ParameterError("outgoing message", "one made by `report`, `status` or `nothing`")


def report(fleet: str, device: str, batches: Sequence[Named], payload: bytes) -> Outgoing:
    """Return batches on their way out; raises ParameterError or WireError for anything else."""
    if batches[0].stream >= FIRST_SUMS_KEY:
        sums = decode_sums(payload)
        kind, made = "report", [Named(FIRST_SUMS_KEY + sums.stream, sums.series, sums.batch)]
    elif batches[0].stream >= FIRST_KEY:
        released = decode_released(payload)
        kind, made = "stream", [Named(released.key, released.numbering, released.batch)]
    else:
        frames = map(decode, split_frames(payload))
        kind, made = "report", [Named(one.stream, one.series, one.batch) for one in frames]
    if made != list(batches):
        raise ParameterError("batch", "the frame of its own stream and number")
    return Outgoing(topic(fleet, kind, device), payload, retain=False, by=_MAKING)


def status(fleet: str, device: str, message: Status) -> Outgoing:
    """Return a status on its way out, retained."""
    if type(message) is not Status:
        raise ParameterError("status", "a Status")
    return Outgoing(topic(fleet, "status", device), message.to_json(), retain=True, by=_MAKING)


def nothing(fleet: str, device: str, kind: Literal["report", "stream", "status"]) -> Outgoing:
    """Return an empty message where such things go: it tries the right, and counts as nothing."""
    return Outgoing(topic(fleet, kind, device), b"", retain=False, by=_MAKING)


class Outlet:
    """The sending half of the outgoing link."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def send(self, message: Outgoing) -> bool:
        """Publish; False when the broker has nobody to hand it to.

        Raises LinkLostError, RefusedError and TooBigError as the link does.

        Raises TypeError for whatever is no Outgoing: types are checked where it counts, too.
        """
        if type(message) is not Outgoing:
            raise TypeError("only an Outgoing leaves this house")
        return await self._link.publish_heard(message.topic, message.payload, retain=message.retain)

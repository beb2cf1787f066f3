"""The one way out: a link that takes an `Outgoing` and nothing else."""

from agent.link.outgoing import Outgoing
from edge_ldp.service.mqtt import Link


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

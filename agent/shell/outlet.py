"""The one way out: a link that takes an `Outgoing` and nothing else."""

from agent.outgoing import Outgoing
from edge_ldp.shell.mqtt import Link


class Outlet:
    """The sending half of the outgoing link."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def send(self, message: Outgoing) -> None:
        """Publish; raises LinkLostError, RefusedError and TooBigError as the link does.

        Raises TypeError for whatever is no Outgoing: types are checked where it counts, too.
        """
        if type(message) is not Outgoing:
            raise TypeError("only an Outgoing leaves this house")
        await self._link.publish(message.topic, message.payload, retain=message.retain)

"""Until when the certificates are valid that a fleet stands on: the broker's, its authority's."""

from aggregator.config.sections import DevicesTable
from edge_ldp.service.broker import Broker
from edge_ldp.service.tasks import in_thread
from edge_ldp.service.tls import shown_until

LOOKS_S = 3600  # between two looks at what devices are shown


class CertificateWatch:
    """Of the service's own link, as it was made, and of the listener of the devices.

    The service mostly speaks to the broker on this machine, without TLS: what devices are shown
    takes a handshake of its own.
    """

    def __init__(self, table: DevicesTable | None) -> None:
        self.link_s: int | None = None  # seconds UTC; None: not known, or no TLS
        self._shown_s: int | None = None
        self._table = table
        self._next_s = 0.0

    @property
    def valid_s(self) -> int | None:
        """Return when the first of them expires, seconds UTC."""
        ends = [end for end in (self.link_s, self._shown_s) if end is not None]
        return min(ends, default=None)

    async def look(self, now_s: float) -> None:
        """Look at what devices are shown, if it is time; `now_s`: of any clock that goes on."""
        if self._table is None or not self._table.tls or now_s < self._next_s:
            return
        self._next_s = now_s + LOOKS_S
        table = self._table
        shown = Broker(table.host, table.use_port, "", tls=True, ca_file=table.ca_file)
        self._shown_s = await in_thread(lambda: shown_until(shown), "listener")

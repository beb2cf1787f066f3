"""When things last happened at this worker: a report came, a receipt went out, the link came."""

from edge_ldp.service.clock import Clock

OUTRUN = "outrun"  # a batch was refused that is numbered above its slots


class LastTimes:
    """The last moment of each thing, kept in monotonic time: a clock that is set changes no age."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at: dict[str, float] = {}

    def note(self, name: str) -> None:
        """Remember that it happened just now."""
        self._at[name] = self._clock.monotonic()

    def turn(self, name: str, other: str) -> None:
        """Remember that one state begins and another ends; what lasts already goes on."""
        if self._at.pop(other, None) is not None or name not in self._at:
            self.note(name)

    def forget(self, *names: str) -> None:
        """Know nothing of these any more."""
        for name in names:
            self._at.pop(name, None)

    @property
    def ages(self) -> dict[str, float]:
        """Real seconds since each."""
        now = self._clock.monotonic()
        return {name: self._clock.real(now - at) for name, at in self._at.items()}

    @property
    def times(self) -> dict[str, int]:
        """Seconds UTC of each, by what the clock shows now."""
        ahead = self._clock.now() - self._clock.monotonic()
        return {name: int(at + ahead) for name, at in self._at.items()}

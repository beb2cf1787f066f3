"""What is wrong with the link, told from why attempts ended: credentials, a twin, a busy broker."""

from collections import deque

from edge_ldp import login

LINK_DOWN = "link down"
AUTH = "auth"
BUSY = "broker busy"
TWIN = "client id used by another"
CLOSING = "link keeps closing"  # what a take-over looks like where the broker does not say it
TWIN_TIMES, TWIN_S = 3, 60.0
_BUSY = ("server busy", "server unavailable", "quota exceeded", "connection rate exceeded")
_TAKEN_OVER = "session taken over"


class LinkTrouble:
    """Remembers how the last links ended; `name` is the one thing that is wrong."""

    def __init__(self) -> None:
        self.name = LINK_DOWN
        self._taken_over_s: deque[float] = deque(maxlen=TWIN_TIMES)
        self._closed_s: deque[float] = deque(maxlen=TWIN_TIMES)  # links that broke, none refused

    @property
    def is_refusal(self) -> bool:
        """Whether the far end refuses us, so that trying at once would only press it."""
        return self.name in (AUTH, BUSY, TWIN)

    def note(self, reason: str, now_s: float, *, was_up: bool) -> None:
        """Take in why an attempt or, if it `was_up`, a link ended (monotonic seconds)."""
        if _TAKEN_OVER in reason:
            self._taken_over_s.append(now_s)
        if was_up:
            self._closed_s.append(now_s)
        else:
            self._closed_s.clear()
        self.name = self._named(reason, now_s)

    def explained(self, reason: str) -> str:
        """Return the reason with what to do about it, where that can be said."""
        if self.name == TWIN:
            return f"{reason}: another agent runs under this device's name, stop it"
        if self.name == CLOSING:
            return f"{reason}, {TWIN_TIMES} times in a minute: does another agent use this name?"
        if self.name == AUTH:
            return f"{reason}: {login.REMEDY}, then reload the agent"
        return reason

    def _named(self, reason: str, now_s: float) -> str:
        if _is_often(self._taken_over_s, now_s):
            return TWIN
        if login.is_refused(reason):
            return AUTH
        if any(text in reason for text in _BUSY):
            return BUSY
        return CLOSING if _is_often(self._closed_s, now_s) else LINK_DOWN


def _is_often(times_s: deque[float], now_s: float) -> bool:
    return len(times_s) == TWIN_TIMES and now_s - times_s[0] <= TWIN_S

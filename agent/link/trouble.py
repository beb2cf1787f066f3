"""What is wrong with the link, told from why attempts ended: credentials, a twin, a busy broker."""

from collections import deque

from agent.claims.delivery import RESEND_INTERVALS
from edge_ldp.protocol.presence import Presence
from edge_ldp.service.broker import LOGIN_REMEDY, Broker, is_refused, remedy_of

LINK_DOWN = "link down"
AUTH = "auth"
BUSY = "broker busy"
TWIN = "client id used by another"
REFUSED = "topic refused"  # a right that is missing, or less granted than was asked for
CLOSING = "link keeps closing"  # what a take-over looks like where the broker does not say it
NO_RECEIPT = "degraded: no receipt from the aggregator"
NOT_COUNTED = (
    "degraded: the aggregator counts nothing of what is sent: `edge-ldp aggregator status` says why"
)
TWIN_TIMES, TWIN_S = 3, 60.0
_OFTEN = f"{TWIN_TIMES} times in a minute"
LOGGED_TIMES, LOGGED_S, LOGGED_LINES = 3, 3600.0, 32
REFUSED_RETRY_S = 30.0
MOST_PRESENCES = 16  # names kept; those of more workers tell nothing
_BUSY = ("server busy", "server unavailable", "quota exceeded", "connection rate exceeded")
_TAKEN_OVER = "session taken over"


class LinkTrouble:
    """Remembers how the last links of a device ended; `name` is the one thing that is wrong.

    `topics`: those that the broker refused, if that is what ended the last link.
    """

    def __init__(self, fleet: str = "", device: str = "") -> None:
        self._fleet, self._device = fleet, device
        self.name = LINK_DOWN
        self.topics = ""
        self._taken_over_s: deque[float] = deque(maxlen=TWIN_TIMES)
        self._closed_s: deque[float] = deque(maxlen=TWIN_TIMES)  # links that broke, none refused

    @property
    def health(self) -> str:
        """Say what is wrong and, where a topic was refused, which."""
        return f"degraded: {self.name}" + (f": {self.topics}" if self.topics else "")

    @property
    def least_wait_s(self) -> float:
        """How long to wait at least before the next attempt: at once would press who refuses us."""
        is_refused = self.name in (AUTH, BUSY, TWIN, REFUSED)
        return REFUSED_RETRY_S if is_refused else 0.0

    def note(self, reason: str, now_s: float, *, was_up: bool, topics: str = "") -> None:
        """Take in why an attempt or, if it `was_up`, a link ended (monotonic seconds).

        `topics`: what the broker refused, if that was why.
        """
        self.topics = topics
        if _TAKEN_OVER in reason:
            self._taken_over_s.append(now_s)
        if was_up:
            self._closed_s.append(now_s)
        else:
            self._closed_s.clear()
        self.name = self._named(reason, now_s)

    def explained(self, reason: str, broker: Broker) -> str:
        """Return the reason with what to do about it, where that can be said."""
        if self.name == TWIN:
            return f"{reason}, {_OFTEN}: another agent runs under this device's name, stop it"
        if self.name == CLOSING:
            return f"{reason}, {_OFTEN}: does another agent run under this device's name?"
        if self.topics and self.name in (AUTH, REFUSED):
            login = broker.username or self._device
            remedy = rights_remedy(self._fleet, self._device, login)
            return f"{reason}: {remedy}; where you change a name, restart the agent"
        if self.name == AUTH:
            return f"{reason}: {LOGIN_REMEDY}, then reload the agent"
        remedy = "" if self.name == BUSY else remedy_of(reason, broker)
        return f"{reason}: {remedy}" if remedy else reason

    def _named(self, reason: str, now_s: float) -> str:
        if _is_often(self._taken_over_s, now_s):
            return TWIN
        if is_refused(reason):
            return AUTH
        if any(text in reason for text in _BUSY):
            return BUSY
        if self.topics:
            return REFUSED
        return CLOSING if _is_often(self._closed_s, now_s) else LINK_DOWN


def rights_remedy(fleet: str, device: str, login: str) -> str:
    """Return what may mend topics that are refused: a wrong name looks like a missing right."""
    names = f"[device] fleet ({fleet}) and id ({device})"
    return f"are {names} right? Then the broker's access list must give {login} its topics"


class Audience:
    """Which of our topics nobody listens to, as an MQTT 5 broker says with each message.

    Nothing is lost by it, for a batch is kept until its receipt; but who forwards reports is wrong.
    """

    def __init__(self) -> None:
        self._without_listener: dict[str, None] = {}

    def note(self, topic: str, *, has_listener: bool) -> bool:
        """Take in what became of a message; return whether it is news that nobody listens."""
        is_first = not has_listener and topic not in self._without_listener
        if has_listener:
            self._without_listener.pop(topic, None)
        else:
            self._without_listener[topic] = None
        return is_first

    @property
    def health(self) -> str:
        """Name the topics that nobody listens to, or return ""."""
        names = ", ".join(sorted(self._without_listener))
        return f"degraded: nobody listens to {names}" if names else ""


class LogLimit:
    """Which lines the log is given: none twice in a row, and none again and again.

    A link that comes and goes has two lines in turn, every few seconds.
    """

    def __init__(self) -> None:
        self._last = ""
        self._logged_s: dict[str, list[float]] = {}

    def admit(self, line: str, now_s: float) -> str:
        """Return the line as it is to be logged now (monotonic seconds); "" where it is not."""
        recent = [at_s for at_s in self._logged_s.pop(line, ()) if now_s - at_s < LOGGED_S]
        is_admitted = line != self._last and len(recent) < LOGGED_TIMES
        if is_admitted:
            self._last = line
            recent.append(now_s)
        self._logged_s[line] = recent
        if len(self._logged_s) > LOGGED_LINES:
            del self._logged_s[next(iter(self._logged_s))]
        is_last = len(recent) == LOGGED_TIMES
        return (line + " (not told again for an hour)" * is_last) if is_admitted else ""


class Receipts:
    """Since when batches that were sent wait for any receipt; monotonic seconds."""

    def __init__(self) -> None:
        self._waiting_s: float | None = None

    def sent(self, now_s: float) -> None:
        """Note that a batch was sent."""
        if self._waiting_s is None:
            self._waiting_s = now_s

    def arrived(self) -> None:
        """Note that a receipt came."""
        self._waiting_s = None

    def are_late(self, now_s: float, interval_s: float) -> bool:
        """Say whether none came in twice the time after which batches are sent again."""
        limit_s = 2 * RESEND_INTERVALS * interval_s
        return self._waiting_s is not None and now_s - self._waiting_s > limit_s


class Presences:
    """Which aggregators say that they are there, by worker: news of one ends a silence, no more."""

    def __init__(self) -> None:
        self._online: dict[str, Presence] = {}

    def heard(self, name: str, presence: Presence) -> bool:
        """Take in what one says; return whether it is news that it is there."""
        if not presence.is_online:
            self._online.pop(name, None)
            return False
        is_news = self._online.get(name) != presence
        if name not in self._online and len(self._online) >= MOST_PRESENCES:
            return False
        self._online[name] = presence
        return is_news

    @property
    def several(self) -> bool:
        """Whether those who are there take several batches in one message."""
        return bool(self._online) and all(one.several for one in self._online.values())


def _is_often(times_s: deque[float], now_s: float) -> bool:
    return len(times_s) == TWIN_TIMES and now_s - times_s[0] <= TWIN_S

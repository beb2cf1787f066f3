"""The tables of the agent's TOML file: what each key may be, and what it means by default.

The numbers stand here, as an owner reads them; what is done with them stands in: [broker]
edge_ldp/service/broker.py, its keys, too; [plans] edge_ldp/protocol/signing.py; [clock]
edge_ldp/service/clock.py; [policy.window] edge_ldp/protocol/ledger.py; [policy.plans]
edge_ldp/protocol/plan_bounds.py, which has its own numbers; [policy.lifetime]
agent/claims/lifetime.py; [sending] agent/claims/delivery.py; [[streams]] agent/claims/slots.py, and
its sums edge_ldp/period_sums.
"""

from dataclasses import asdict, replace
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Annotated, Literal

from agent.claims.lifetime import Lifetime
from agent.claims.slots import KINDS, REGISTERS, Kind
from agent.config.curator_section import CuratorTable
from agent.meters.reading import GAS
from agent.meters.section import MeterTable, Positive, Quantity
from edge_ldp.lean_class import lean_class
from edge_ldp.protocol.ledger import Window, scheduled
from edge_ldp.protocol.plan import STREAM_MECHANISMS, SURVEY_MECHANISMS, Policy
from edge_ldp.protocol.plan_bounds import PlanBounds
from edge_ldp.ratio import Ratio, floor_ratio
from edge_ldp.service.broker import BrokerTable, Host, Port
from edge_ldp.service.clock import Clock
from edge_ldp.service.typed_table import Form, Range, Text

_SHAPE = PlanBounds()
StreamQuantity = Literal[Quantity, "gas"]
Seconds = Annotated[float, Range(ge=0, le=86_400 * 366)]
Instant = Annotated[float, Range(ge=0, le=1 << 36)]
Discovery = Annotated[str, Form(r"[a-zA-Z0-9_-]{1,64}", "1 to 64 of a-z A-Z 0-9 _ -")]


@lean_class(frozen=True, slots=True)
class DeviceTable:
    """[device]: who this is, and the file that holds its ledger and outbox.

    `keep`: where what a running sum or chunk adds up is: "run", in memory only, so that no copy of
    the disk ever shows it and a reboot loses it, or "disk", beside the state, so that whoever has
    the card has it, too. Sums go by "run" unless told, curators by "disk".
    `group`: whose last month the fleet tells, for tap and page to show; nothing is asked for unless
    told.
    """

    fleet: str
    id: str
    state: Text
    keep: Literal["run", "disk"] | None = None
    group: Annotated[str, Form(r"[a-z0-9][a-z0-9_-]{0,62}|", "a group's name")] = ""


@lean_class(frozen=True, slots=True)
class TapTable:
    """[tap]: raw readings to the household's own broker. No such table: nothing of the kind.

    Never the broker that reports go to, and beyond the local network only when that is written.
    """

    host: Host
    port: Port | None = None
    username: Text | None = None
    password_file: Text | None = None
    tls: bool = False
    ca_file: Text | None = None
    allow_plaintext: bool = False
    allow_beyond_lan: bool = False
    interval_s: Annotated[float, Range(ge=1, le=3600)] = 10.0
    discovery: Discovery = "homeassistant"

    @property
    def use_port(self) -> int:
        """The port as given, else the standard one."""
        return self.port or (8883 if self.tls else 1883)


@lean_class(frozen=True, slots=True)
class ShareTable:
    """[share]: what the meter sends, to readers of the household's own. No such table: nothing.

    `listen` is an address of this machine; off it only `readers` are let in, by their addresses.
    """

    port: Port
    listen: Text = "127.0.0.1"
    readers: tuple[Text, ...] = ()


@lean_class(frozen=True, slots=True)
class PageTable:
    """[page]: what left this house, to look at (docs/security.md). No such table: no page.

    `listen` and `readers` as of [share]; `hosts`: names beside its address that it is asked by.
    """

    port: Port = 8042
    listen: Text = "127.0.0.1"
    readers: tuple[Text, ...] = ()
    hosts: tuple[Host, ...] = ()


@lean_class(frozen=True, slots=True)
class PlansTable:
    """[plans]: public keys, as `edge-ldp keys make` shows them; then only signed plans are taken.

    `next_key`: the first that it signs ends the word of `keys`, so whoever stole one goes with it.
    """

    keys: tuple[str, ...] = ()
    next_key: str | None = None

    @property
    def every(self) -> tuple[str, ...]:
        """All keys whose word is taken."""
        return self.keys if self.next_key is None else (*self.keys, self.next_key)


@lean_class(frozen=True, slots=True)
class ClockTable:
    """[clock]: `trust` "kernel" waits for a synchronised clock; the rest serves simulations."""

    trust: Literal["kernel", "assume"] = "kernel"
    origin_s: Instant = 0.0
    started_s: Instant = 0.0
    rate: Annotated[float, Range(gt=0, le=1_000_000)] = 1.0

    @property
    def simulated(self) -> bool:
        """Whether this is no real clock: only demos and tests set origin or rate."""
        return (self.origin_s, self.started_s, self.rate) != (0.0, 0.0, 1.0)

    def make(self) -> Clock:
        """Return the clock that is asked for."""
        return Clock(self.origin_s, self.started_s, self.rate)


@lean_class(frozen=True, slots=True)
class WindowTable:
    """[policy.window]: at most `reports` in any `slots` consecutive slots, all streams together.

    With sums the window's ε is still that of so many reports: what a stream's `share` takes of it
    is no longer there for reports.
    """

    reports: Positive = 8
    slots: Positive = 97


@lean_class(frozen=True, slots=True)
class ShapeTable:
    """[policy.plans]: how sharply plans may ask (edge_ldp.protocol.plan_bounds, docs/privacy.md).

    θ is at least the range halved so often; surveys span the range, halved at most so often, in at
    most so many buckets; `sharpness` in multiples of what stochastic rounding tells.
    """

    theta_halvings: Annotated[int, Range(ge=0, le=40)] = _SHAPE.theta_halvings
    survey_halvings: Annotated[int, Range(ge=0, le=40)] = _SHAPE.survey_halvings
    survey_buckets: Annotated[int, Range(ge=2, le=65_536)] = _SHAPE.survey_buckets
    survey_share: Annotated[Decimal, Range(gt=0, le=1)] = Decimal(1)
    sharpness: Annotated[int, Range(ge=1, le=1 << 40)] = _SHAPE.sharpness
    days: Annotated[int, Range(ge=0, le=366)] = _SHAPE.days
    reports: Annotated[int, Range(ge=0, le=1 << 20)] = _SHAPE.reports
    range_days: Annotated[int, Range(ge=0, le=366)] = _SHAPE.range_days

    @property
    def shape(self) -> PlanBounds:
        """The same, as the cores take it."""
        return PlanBounds(**asdict(self) | {"survey_share": Fraction(self.survey_share)})


@lean_class(frozen=True, slots=True)
class LifetimeTable:
    """[policy.lifetime]: at most so many reports ever, or so much ε in all; then silence."""

    reports: Positive | None = None
    epsilon: Decimal | int | None = None


@lean_class(frozen=True, slots=True)
class PolicyTable:
    """[policy]: what the owner allows. No message can change it."""

    epsilon: Decimal | int = 1
    window: WindowTable = WindowTable()
    mechanisms: tuple[str, ...] = tuple(sorted(STREAM_MECHANISMS | SURVEY_MECHANISMS))
    max_codes: Annotated[int, Range(ge=4, le=65_536)] = 8192
    plans: ShapeTable = ShapeTable()
    lifetime: LifetimeTable | None = None


@lean_class(frozen=True, slots=True)
class SumsTable:
    """[streams.sums]: `share` of the window's ε goes to this stream's sums.

    A period is `days` days, a cell the same part of each, `cells` of them from `offset_s` past
    midnight UTC; `block_hours`: so many hours share one noise. `ceiling`: the home's own, from its
    fuse's label; the stream's unless given. `least_b`: noise of a smaller scale is never used.
    `least_share`: of a period less of which was seen nothing leaves.
    """

    share: Annotated[Decimal, Range(gt=0, le=1)]
    days: Annotated[int, Range(ge=1, le=366)] = 7
    cells: Annotated[int, Range(ge=1, le=96)] = 1
    offset_s: Annotated[int, Range(ge=0)] = 0
    block_hours: Annotated[int, Range(ge=1, le=24)] = 1
    ceiling: int | None = None
    least_b: Annotated[int, Range(ge=1, le=(1 << 48) - 1)] = 1
    least_share: Annotated[Decimal, Range(ge=0, le=1)] = Decimal("0.25")


@lean_class(frozen=True, slots=True)
class StreamTable:
    """[[streams]]: one quantity of a meter and the range its owner considers possible.

    `meter`: the name of one of [[meters]]; nothing where there is one meter alone. `from_register`:
    a power is the rise of its energy register over the slot; `source` is what telegrams must tell.
    `mode`: "local" randomises single values, "sums" adds them up ([streams.sums]); a value may go
    both ways ("both") and costs both. Gas is for sums alone, which may have `slot_seconds` of their
    own: several of the home's.
    """

    name: str
    quantity: StreamQuantity
    unit: Literal["W", "Wh", "VA", "var", "dm3"]
    ceiling: int
    low: int = 0
    slot_seconds: Annotated[int, Range(ge=1, le=86_400)] = 900
    meter: str = ""
    from_register: bool = False
    mode: Literal["local", "sums", "both"] = "local"
    sums: SumsTable | None = None

    @property
    def source(self) -> StreamQuantity:
        """The quantity that is read: the stream's own, or the register that makes its power."""
        return REGISTERS.get(self.quantity, self.quantity) if self.from_register else self.quantity

    @property
    def kind(self) -> Kind:
        """What its values are made like."""
        return Kind.RATE if self.from_register else KINDS[self.quantity]

    @property
    def told(self) -> str:
        """What telegrams must tell for it, and its name, in words."""
        return f"{self.source} (stream {self.name})"


@lean_class(frozen=True, slots=True)
class SendingTable:
    """[sending]: pace and limits of delivery, in the clock's seconds.

    What no receipt covers is kept for `max_age_days` and up to `max_kib`; then the oldest is given
    up, and counted. After an outage at most `batches_per_s` messages go out, once the first 50 have
    gone. Without a receipt for two `receipt_interval_s` only one goes, then one each day at least.
    """

    receipt_interval_s: Annotated[float, Range(gt=0, le=86_400)] = 3600.0
    jitter_s: Seconds = 300.0
    batch_interval_s: Seconds = 0.0
    max_age_days: Annotated[int, Range(ge=1, le=366)] = 35
    max_kib: Annotated[int, Range(ge=16, le=1 << 20)] = 4096
    batches_per_s: Annotated[float, Range(gt=0, le=1000)] = 2.0
    in_flight: Annotated[int, Range(ge=1, le=100)] = 10


@lean_class(frozen=True, slots=True)
class AgentConfig:
    """The whole file. `policies` and `window` are what the cores work with.

    The meter is `meter`, or there are several, `meters`: never both. Window and ledger are one.

    `mode`: "local" randomises each value for a crowd (LDP), "curator" publishes the streams under
    central DP (docs/curator.md).
    """

    device: DeviceTable
    broker: BrokerTable
    streams: tuple[StreamTable, ...]
    meter: MeterTable | None = None
    meters: tuple[MeterTable, ...] = ()
    policy: PolicyTable = PolicyTable()
    clock: ClockTable = ClockTable()
    sending: SendingTable = SendingTable()
    plans: PlansTable = PlansTable()
    tap: TapTable | None = None
    share: ShareTable | None = None
    page: PageTable | None = None
    mode: Literal["local", "curator"] = "local"
    curator: CuratorTable | None = None

    @property
    def slot_seconds(self) -> int:
        """Length of the slots that ledger and reports go by; of sums alone the shortest."""
        return min(one.slot_seconds for one in self.local_streams[:1] or self.streams)

    @property
    def apart(self) -> frozenset[int]:
        """Where streams stand whose slots are their own: longer ones, or of a meter that dates."""
        return frozenset(
            at
            for at, one in enumerate(self.streams)
            if one.slot_seconds != self.slot_seconds or one.quantity == GAS
        )

    @property
    def all_meters(self) -> tuple[MeterTable, ...]:
        """The meters that are read, each at a port of its own."""
        return self.meters if self.meter is None else (self.meter,)

    def positions_of(self, table: MeterTable) -> tuple[int, ...]:
        """Return where the streams of one of the meters stand among all."""
        alone = len(self.all_meters) == 1
        return tuple(at for at, one in enumerate(self.streams) if alone or one.meter == table.name)

    def streams_of(self, table: MeterTable) -> tuple[StreamTable, ...]:
        """Return the streams of one of the meters."""
        return tuple(self.streams[at] for at in self.positions_of(table))

    @property
    def local_streams(self) -> tuple[StreamTable, ...]:
        """The streams whose single values are randomised."""
        return tuple(stream for stream in self.streams if stream.mode != "sums")

    @property
    def shared(self) -> Fraction:
        """How much of the window's ε sums take."""
        return sum((Fraction(one.sums.share) for one in self.streams if one.sums), Fraction(0))

    @property
    def local_reports(self) -> int:
        """How many reports a window may hold beside the sums; 0 also where no stream makes any."""
        left = int(self.policy.window.reports * (1 - self.shared))
        return max(0, left) if self.local_streams else 0

    @property
    def window(self) -> Window:
        """The window over all local streams of the home; of one report that none makes, if none."""
        slots, streams = self.policy.window.slots, max(1, len(self.local_streams))
        return scheduled(max(1, self.local_reports), slots, streams, self.slot_seconds)

    @property
    def sharing(self) -> bytes:
        """Who has which part of the window's ε, in what layout; empty where no stream has sums.

        Another one begins a window of silence. A ceiling is no part of it: it changes the scale
        with it, from the next period on.
        """
        if not self.shared:
            return b""
        seconds = self.slot_seconds
        parts = [
            [one.name, one.mode, one.sums and replace(one.sums, ceiling=None)]
            + [one.slot_seconds] * (one.slot_seconds != seconds)
            for one in self.streams
        ]
        window = self.policy.window
        whole = (self.policy.epsilon, window.reports, window.slots, seconds, parts)
        return sha256(repr(whole).encode()).digest()

    @property
    def ratio(self) -> Ratio:
        """What a report may cost, as a ratio of integers."""
        return floor_ratio(self.policy.epsilon)

    @property
    def lifetime(self) -> Lifetime | None:
        """The limit of all reports ever, if the owner set one."""
        table = self.policy.lifetime
        if table is None:
            return None
        return Lifetime(table.reports, None if table.epsilon is None else float(table.epsilon))

    def policies(self) -> tuple[Policy, ...]:
        """Return the policy of each local stream, in order."""
        ratio = self.ratio
        return tuple(
            Policy(
                fleet=self.device.fleet,
                stream=stream.name,
                unit=stream.unit,
                slot_seconds=stream.slot_seconds,
                low=stream.low,
                ceiling=stream.ceiling,
                ratio=ratio,
                mechanisms=frozenset(self.policy.mechanisms),
                max_codes=self.policy.max_codes,
                shape=self.policy.plans.shape,
            )
            for stream in self.local_streams
        )

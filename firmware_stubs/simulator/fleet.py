"""The state of a simulated fleet: messages in, frames and statuses out; no broker, no clock.

Every home behaves as an agent does: it judges the retained plan with its owner's policy, reports
under the plan in force, keeps each frame until the aggregator's receipt and says in its status how
many batches it made. One state is one fleet: started again, it would be new devices under old
names, so a run is never repeated against the same aggregator. Of a day all homes draw at once, over
arrays; entropy is an argument, and values live only here, in memory, as on a device.
"""

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from agent.claims.batches import Key
from agent.config.summed_streams import SumTerms
from edge_ldp.arrays import Ints
from edge_ldp.entropy import Entropy, system_draw
from edge_ldp.protocol import messages
from edge_ldp.protocol.plan import Plan, Policy, digest, judge, parse_plan, plan_tag
from edge_ldp.protocol.presence import Presence, parse_presence
from edge_ldp.protocol.signing import plan_bytes
from edge_ldp.protocol.strict_json import MessageError
from edge_ldp.vectorized import draw_many, encode_frame, perturb_many
from firmware_stubs.simulator.outbox import Outbox
from firmware_stubs.simulator.sums import HomesSums

SOFTWARE = "simulated-fleet 1"
TOP_SERIES = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class PlanAccepted:
    """The fleet reports under this plan from its next day on."""

    epoch: int
    theta: int


@dataclass(frozen=True, slots=True)
class PlanRefused:
    """A plan that no home runs, with `judge`'s reason or the field that is wrong."""

    reason: str


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Reports that a receipt covered for the first time."""

    device: str
    reports: int


Event = PlanAccepted | PlanRefused | Confirmed


@dataclass(frozen=True, slots=True)
class PlanInForce:
    """What the homes run, and since when it is known."""

    plan: Plan
    digest: str


class SimulatedFleet:
    """All homes of one fleet with one stream; `first_slot` is the first they report.

    `policy` is every owner's, `receipt_interval_s` the aggregator's, seconds of the fleet's clock.
    `sums`: what homes add up and release besides, None: nothing.
    """

    def __init__(  # noqa: PLR0913 (what a fleet is made of)
        self,
        policy: Policy,
        homes: list[str],
        first_slot: int,
        receipt_interval_s: float,
        entropy: Entropy,
        *,
        sums: SumTerms | None = None,
    ) -> None:
        self.policy = policy
        messages.check_name("fleet", policy.fleet)
        messages.check_name("stream", policy.stream)
        self.homes = [messages.check_name("home", home) for home in homes]
        self.outbox = Outbox(receipt_interval_s, system_draw())
        self._online: dict[str, Presence] = {}
        self.in_force: PlanInForce | None = None
        self._epochs: list[int] = []
        self._plans: list[Plan] = []
        self._batches = 0
        self._refusals: dict[str, int] = {}
        self.days = 0
        self._passed_over = 0
        self._true_sum = 0  # of all that was reported: known of simulated homes only
        self._entropy = entropy
        self._known = set(homes)
        self.series = 1 + int.from_bytes(entropy(4), "little") % TOP_SERIES
        self._next_slot = first_slot
        self.sums = None if sums is None else self._begun(sums)
        self._reported = 0  # by each home
        self._blank = messages.StreamStatus(0, 1, 1, 1, 0, 0, series=self.series, since=first_slot)

    def _begun(self, terms: SumTerms) -> HomesSums:
        return HomesSums(terms, len(self.homes), self.series, system_draw())

    @property
    def topics(self) -> list[str]:
        """Return what to subscribe to: the stream's plan, receipts of the fleet, who counts."""
        fleet = self.policy.fleet
        names = {"plan": self.policy.stream, "receipt": "+", "presence": "+"}
        return [messages.topic(fleet, kind, name) for kind, name in names.items()]

    def on_message(
        self, at: str, payload: bytes, now_s: int, monotonic_s: float, *, is_live: bool = True
    ) -> Event | None:
        """Take one message; None when it changes nothing (not ours, seen before, damaged).

        `is_live`: it was not retained, so an aggregator is there.
        """
        fleet = self.policy.fleet
        if messages.name_in_topic(fleet, "plan", at) == self.policy.stream:
            return self._on_plan(payload, now_s)
        if (worker := messages.name_in_topic(fleet, "presence", at)) is not None:
            self._on_presence(worker, payload, monotonic_s)
            return None
        device = messages.name_in_topic(fleet, "receipt", at)
        if device not in self._known or device is None:
            return None
        try:
            receipt = messages.parse_receipt(plan_bytes(payload))  # signed or not
        except MessageError:
            return None
        ours = tuple(s._replace(series=0) for s in receipt.streams if s.series == self.series)
        kept = receipt._replace(streams=ours)
        reports = self.outbox.on_receipt(device, kept, monotonic_s, is_live=is_live)
        return Confirmed(device, reports) if reports else None

    def make_day(self, values: Ints) -> bool:
        """Randomise the next slots of every home, once, and keep them: one frame for each plan.

        Each slot goes under the newest plan that was issued before the slot was over, as with a
        device; slots that ended before the first plan are passed over. Shape: (homes, slots of a
        day). False for a day of which no slot is left. Raises LookupError before the first plan.
        """
        if self.in_force is None:
            raise LookupError("no plan in force: hold the day")
        first_slot, self._next_slot = self._next_slot, self._next_slot + values.shape[1]
        parts = groupby(range(values.shape[1]), lambda at: self._plan_of(first_slot + at))
        made = False
        for plan, places in parts:
            if plan is None:
                continue
            begin, *rest = places
            part = values[:, begin : begin + 1 + len(rest)]
            self._keep(plan, part, first_slot + begin)
            made = True
        self.days += made
        self._passed_over += not made
        if self.sums is not None:
            for batches in self.sums.take(first_slot, values):
                for home, batch in zip(self.homes, batches, strict=True):
                    self.outbox.add(home, batch.key, batch.payload, 1)
                made = True
        return made

    def _plan_of(self, slot: int) -> Plan | None:
        """Return the newest plan that was there when the slot ended."""
        there = (p for p in reversed(self._plans) if p.issued_s < (slot + 1) * p.slot_seconds)
        return next(there, None)

    def _keep(self, plan: Plan, values: Ints, first_slot: int) -> None:
        batch = 1 + self._batches
        tag = plan_tag(plan.to_json())
        frames = day_frames(plan, values, first_slot, batch, self._entropy, self.series, tag)
        for home, payload in zip(self.homes, frames, strict=True):
            self.outbox.add(home, Key(plan.stream_id, batch), payload, values.shape[1])
        self._batches += 1
        self._reported += values.shape[1]
        self._true_sum += int(values.sum())

    def status(self, home: str, state: str) -> tuple[str, bytes]:
        """Return (topic, payload) of a home's retained status; `state` is online or offline."""
        following = 1 + self._batches
        oldest = self.outbox.oldest(home)
        stream = self._blank._replace(
            next=following,
            oldest=following if oldest is None else oldest,
            created=self._reported,
        )
        if self.in_force:
            plan = self.in_force.plan
            stream = stream._replace(
                stream=plan.stream_id, epoch=plan.epoch, plan=self.in_force.digest
            )
        streams = (stream,) if self.sums is None else (stream, self._sums_status(home, self.sums))
        message = messages.Status(state, SOFTWARE, streams, refusals=tuple(sorted(self._refusals)))
        return messages.topic(self.policy.fleet, "status", home), message.to_json()

    def _sums_status(self, home: str, sums: HomesSums) -> messages.StreamStatus:
        following, oldest = 1 + sums.released, self.outbox.oldest(home, sums=True)
        return self._blank._replace(
            stream=sums.terms.key,
            next=following,
            oldest=following if oldest is None else oldest,
            created=sums.released,
        )

    def summary(self) -> dict[str, object]:
        """Return the documented figures of `edge-ldp simulate homes --json`: reports, not frames.

        `resent` alone counts frames; `reports` is what each home created; `true_mean` is of all
        values reported, in the stream's unit, null before the first; `sums`: how many each home
        released, with --sums, which `created` and the others count too.
        """
        reported = self._reported * len(self.homes)
        sums = {} if self.sums is None else {"sums": self.sums.released}
        return {
            "days": self.days,
            "passed_over": self._passed_over,
            "reports": dict.fromkeys(self.homes, self._reported),
            "true_mean": round(self._true_sum / reported, 1) if self.days else None,
            **sums,
            "created": self.outbox.created,
            "confirmed": self.outbox.confirmed,
            "pending": self.outbox.pending,
            "expired": 0,
            "resent": self.outbox.resent,
            "epochs": self._epochs,
            "refusals": self._refusals,
        }

    def _on_plan(self, payload: bytes, now_s: int) -> Event | None:
        if self.in_force and digest(payload) == self.in_force.digest:
            return None
        epoch = self.in_force.plan.epoch if self.in_force else None
        try:
            plan = parse_plan(plan_bytes(payload))
        except MessageError as exc:
            return self._refuse(f"{exc.reason}:{exc.field}")
        reason = judge(plan, self.policy, epoch=epoch, now_s=now_s)
        if reason:
            return self._refuse(reason.code)
        self.in_force = PlanInForce(plan, digest(payload))
        self._epochs.append(plan.epoch)
        self._plans.append(plan)
        return PlanAccepted(plan.epoch, plan.theta)

    def _on_presence(self, worker: str, payload: bytes, monotonic_s: float) -> None:
        try:
            presence = parse_presence(payload)
        except MessageError:
            return
        if presence.is_online and self._online.get(worker) != presence:
            self.outbox.met(monotonic_s)
        self._online[worker] = presence

    def _refuse(self, reason: str) -> PlanRefused:
        self._refusals[reason] = self._refusals.get(reason, 0) + 1
        return PlanRefused(reason)


def randomise(plan: Plan, values: Ints, entropy: Entropy) -> Ints:
    """Return one code for each value, shape as given: survey or stream by the plan's coin.

    Stream codes come first, survey codes follow them (docs/design.md, Messages). Every value is
    drawn for once: whoever keeps the codes must not call this again for the same slots.
    """
    num, den = plan.share
    flat = values.ravel()
    surveyed = draw_many(den, len(flat), entropy=entropy) < num
    codes = np.empty(len(flat), np.int64)
    stream, survey = plan.stream_mechanism, plan.survey_mechanism
    codes[~surveyed] = perturb_many(stream, flat[~surveyed], entropy=entropy)
    codes[surveyed] = stream.code_count + perturb_many(survey, flat[surveyed], entropy=entropy)
    return codes.reshape(values.shape)


def day_frames(  # noqa: PLR0913, PLR0917 (the fields of a frame)
    plan: Plan,
    values: Ints,
    first_slot: int,
    batch: int,
    entropy: Entropy,
    series: int = 0,
    tag: int = 0,
) -> list[bytes]:
    """Return one frame for each home: its reports of consecutive slots from `first_slot`.

    Shape: values is (homes, slots), unit of the stream; 1 to 1024 slots. All homes use the same
    batch number and series, for they all started together.
    """
    codes = randomise(plan, values, entropy)
    slots = np.arange(first_slot, first_slot + values.shape[1])
    return [
        encode_frame(plan.stream_id, batch, plan.epoch, slots, row, series, tag) for row in codes
    ]

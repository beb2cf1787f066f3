"""What `check --live` asks the broker for: rights to publish and to hear, and the plan that stands.

It knows us by a name of our own, in no group that shares messages; what we send is empty, is not
retained, and goes to topics of nobody.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from aggregator.config import AggregatorConfig, StreamTable
from aggregator.errors import StoreError
from aggregator.intake.intake import status_topic, topics
from aggregator.plans.planner import is_ahead
from aggregator.plans.signing import PlanSeal
from aggregator.running.service import remedy_for
from aggregator.store.contract import IDENTITY, Reader
from aggregator.store.rows import STOPPED
from edge_ldp.protocol.messages import topic
from edge_ldp.protocol.plan import AHEAD_S, Plan, parse_plan
from edge_ldp.protocol.strict_json import MessageError
from edge_ldp.protocol.utc import utc
from edge_ldp.service.broker import Broker, LinkLostError, RefusedError
from edge_ldp.service.clock import Clock
from edge_ldp.service.mqtt import Link, open_link
from edge_ldp.service.trial import Finding, own_name, untried

AGAIN_S = 2.0  # a service that runs stores a plan first, and publishes it then
RUN = "`edge-ldp aggregator run`"
_OWN = "check"  # a kind of topic that nobody has


@dataclass(frozen=True, slots=True)
class Stored:
    """What the store says that the broker is held against.

    `plans`: the newest of each stream, as it is published. `heard`: how many devices ever sent a
    status; `has_reports`: whether the service that runs has taken one; None: nobody can say;
    `store`: its name, once it has one.
    """

    plans: dict[int, bytes]
    retired: frozenset[int]
    heard: int
    has_reports: bool
    is_served: bool | None
    store: str = ""


NOTHING = Stored({}, frozenset(), 0, has_reports=False, is_served=False)


@dataclass(frozen=True, slots=True)
class Trial:
    """What the broker is held against; `stored`: None where the store cannot be read."""

    config: AggregatorConfig
    seal: PlanSeal
    reread: Callable[[], Stored] | None
    stored: Stored | None
    wait_s: float
    clock: Clock


def read_stored(reader: Reader, seal: PlanSeal) -> Stored:
    """Return what the store says at this moment; raises StoreError."""
    sums, beats = reader.device_sums(0), reader.beats()
    return Stored(
        plans={row.stream: seal.wrap(row.payload) for row in reader.plans()},
        retired=frozenset(reader.retired()),
        heard=sums.enrolled - sums.silent,
        has_reports=any(one.health != STOPPED and one.times.report_s for one in beats),
        is_served=reader.is_served(),
        store=reader.facts().get(IDENTITY, ""),
    )


async def try_rights(trial: Trial, link: Link) -> list[Finding]:
    """Return the verdicts on rights and plans; a link that is lost fails what was being tried."""
    config = trial.config
    steps: list[tuple[list[str], Callable[[], Awaitable[list[Finding]]]]] = [
        (["publishing"], partial(_try_publishing, config, link)),
        (["reports", "statuses"], partial(_try_reading, trial, link.broker)),
        ([plan_part(one) for one in config.planned], partial(_try_plans, trial, link)),
    ]
    found: list[Finding] = []
    for parts, step in steps:
        try:
            found += await step()
        except LinkLostError as exc:
            remedy = remedy_for(exc, link.broker)
            return found + [Finding(part, "fails", exc.reason, remedy) for part in parts]
    return found


async def _try_publishing(config: AggregatorConfig, link: Link) -> list[Finding]:
    """Send nothing where plans and receipts go, under a name that no device and no stream has."""
    kinds = ["plan", "receipt", "presence", *(["sum"] if config.announce else [])]
    kinds += ["group"] if config.announce and config.announce.groups else []
    names = {f"{kind}s": topic(config.fleet, kind, own_name()) for kind in kinds}
    if config.announce and config.announce.discovery:
        names["sensors"] = config.announce.sensor_topic(config.fleet, own_name())
    refused = []
    for name in names.values():
        try:
            await link.publish(name, b"")
        except RefusedError as exc:
            refused.append(exc)
    if refused:
        told = "; ".join(f"{exc.topic}: {exc.reason}" for exc in refused)
        remedy = remedy_for(RefusedError(", ".join(exc.topic for exc in refused), ""), link.broker)
        return [Finding("publishing", "fails", told, remedy)]
    if link.protocol != "5":
        return untried(["publishing"], "MQTT 3.1.1 does not say whether a message was taken")
    return [Finding("publishing", "ok", ", ".join(names))]


async def _try_reading(trial: Trial, broker: Broker) -> list[Finding]:
    """Subscribe by a link of its own, which ends with the first of what is looked for.

    Where a broker grants what it does not give (Mosquitto's acl_file), only what comes shows it.
    """
    config = trial.config
    link = await open_link(replace(broker, client_id=own_name()))
    try:
        refused = await _subscribe(link, topics(config.fleet))
        if config.broker.share is not None:  # a group of our own: it takes from nobody
            refused |= await _subscribe(link, topics(config.fleet, own_name()))
        own = topic(config.fleet, _OWN, own_name())
        tells = bool(await _subscribe(link, [own]))
        if not tells:
            with suppress(RefusedError):
                await link.publish(own, b"")
        came = set[str]() if tells else await _listen(link, trial.wait_s)
    finally:
        await link.close()
    status = status_topic(config.fleet)
    found = []
    for what, wanted, kinds in (
        ("reports", [one for one in refused if one != status], {"report", "stream"}),
        ("statuses", [one for one in refused if one == status], {"status"}),
    ):
        lines = [status] if what == "statuses" else topics(config.fleet)[:2]
        remedy = remedy_for(RefusedError(", ".join(lines), ""), broker)
        if wanted:
            told = "; ".join(f"{one}: {refused[one]}" for one in wanted)
            found.append(Finding(what, "fails", told, remedy))
        elif tells:
            found.append(Finding(what, "ok", "the broker grants them"))
        else:
            found.append(_heard(what, came, kinds, trial.stored, remedy))
    return found


def _heard(
    what: str, came: set[str], kinds: set[str], stored: Stored | None, remedy: str
) -> Finding:
    """Return the verdict where only what comes shows whether the broker gives it."""
    if came & kinds:
        return Finding(what, "ok", "they come")
    if _OWN in came:
        return Finding(what, "ok", "the broker keeps no topic of the fleet from us")
    if what == "statuses" and stored is not None and stored.heard:
        told = f"the broker retains them of {stored.heard} devices, and gives none"
        return Finding(what, "fails", told, remedy)
    if what == "reports" and stored is not None and stored.has_reports and stored.is_served:
        return Finding(what, "ok", "the service that runs has taken some")
    told = "granted, as this broker grants all, and none came: the first one shows it"
    return Finding(what, "untried", told, f"see that {remedy.replace(' lacks', ' has')}")


async def _subscribe(link: Link, names: Sequence[str]) -> dict[str, str]:
    """Subscribe to each; return what is refused, and why."""
    refused = {}
    for name in names:
        try:
            await link.subscribe([name])
        except RefusedError as exc:
            refused[name] = exc.reason
    return refused


async def _listen(link: Link, wait_s: float) -> set[str]:
    """Return the kinds of topic of what comes, until it says all or the time is over."""
    came = set[str]()
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            while _OWN not in came and not {"report", "status"} <= came:
                came.add((await link.receive()).topic.split("/")[-2])
    return came


async def _try_plans(trial: Trial, link: Link) -> list[Finding]:
    """Hold what stands at the broker against the store; twice, where a service is between them."""
    config, stored = trial.config, trial.stored
    at = {topic(config.fleet, "plan", stream.name): stream for stream in config.planned}
    refused = await _subscribe(link, list(at))
    standing: dict[str, bytes] = {}
    await _gather(link, standing, at.keys() - refused.keys(), trial.wait_s)
    if stored is not None and trial.reread is not None and _differs(stored, standing, at):
        await _gather(link, standing, None, AGAIN_S)
        try:
            stored = trial.reread()
        except StoreError:
            stored = None
    found = []
    for name, stream in at.items():
        if name in refused:
            remedy = remedy_for(RefusedError(name, ""), link.broker)
            found.append(Finding(plan_part(stream), "fails", f"{name}: {refused[name]}", remedy))
        else:
            stands = standing.get(name) or None
            found.append(plan_verdict(stream, stored, stands, trial.seal, trial.clock.now()))
    return found


async def _gather(
    link: Link, found: dict[str, bytes], names: AbstractSet[str] | None, wait_s: float
) -> None:
    """Take in what comes until there is something of each name (None: of any), or time is over."""
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            while names is None or names - found.keys():
                message = await link.receive()
                found[message.topic] = message.payload


def _differs(stored: Stored, standing: dict[str, bytes], at: dict[str, StreamTable]) -> bool:
    return any(stored.plans.get(one.id) != standing.get(name) for name, one in at.items())


def plan_verdict(
    stream: StreamTable,
    stored: Stored | None,
    standing: bytes | None,
    seal: PlanSeal,
    now_s: float,
) -> Finding:
    """Return the verdict on the plan that the broker retains, by the newest one of the store."""
    what = plan_part(stream)
    if stored is None:
        return Finding(what, "untried", "the store tells nothing")
    if stream.id in stored.retired:
        return Finding(what, "untried", "an operator retired the stream")
    ours = stored.plans.get(stream.id)
    if standing is not None and standing == ours:
        return _as_stored(what, stream, parse_plan(seal.open(standing)), now_s)
    if standing is None and ours is None:
        return Finding(what, "ok", f"none yet: {RUN} makes the first")
    return Finding(what, "fails", *_apart(standing, ours, seal, stored))


def _as_stored(what: str, stream: StreamTable, plan: Plan, now_s: float) -> Finding:
    """Return the verdict on a plan that stands as it is stored: whether devices take it."""
    told, least = f"epoch {plan.epoch}, θ {plan.theta} {plan.unit}, stands", stream.least_theta
    if plan.theta < least:
        told += f": devices refuse what is below {least} {plan.unit}"
        return Finding(what, "fails", told, f"restart the service: {RUN} raises it")
    if not is_ahead(plan, now_s, AHEAD_S):
        return Finding(what, "ok", told)
    told += f", dated {utc(plan.issued_s):%Y-%m-%d %H:%M} UTC: devices refuse what is ahead"
    remedy = f"set the clock right, and restart the service: {RUN} issues it anew"
    return Finding(what, "fails", told, remedy)


def _apart(
    standing: bytes | None, ours: bytes | None, seal: PlanSeal, stored: Stored
) -> tuple[str, str]:
    """Say how what the broker retains is not the store's newest plan, and what to do."""
    runs = f"{RUN} publishes it"
    if stored.is_served:
        runs = "the service that runs publishes it within a receipt interval, if it can"
    if standing is None:
        return "the broker retains none, and the store has one", runs
    try:
        plan = parse_plan(seal.open(standing))
    except MessageError as exc:
        remedy = f"who else publishes in this fleet? {RUN} replaces it"
        return f"what the broker retains is no plan of ours: {exc}", remedy
    newest = None if ours is None else parse_plan(seal.open(ours)).epoch
    told = f"epoch {plan.epoch} stands, and the store has {'none' if newest is None else newest}"
    if plan.store not in (None, stored.store):
        told += (
            f": it is of another aggregator's store, {plan.store}, not of {stored.store or 'ours'}"
        )
    if newest is not None and plan.epoch < newest:
        return told, runs
    remedy = "does another aggregator serve this fleet, or was this store restored or begun anew?"
    return told, f"{remedy} {RUN} goes on above both"


def plan_part(stream: StreamTable) -> str:
    """Return what the verdict on a stream's plan is called."""
    return f"plan {stream.name}"

"""`edge-ldp agent check --live` and `setup`: everything that must work, tried for once.

Port, first telegram, quantities, broker, TLS, login, rights, plan, clock and the state's place: a
verdict each, and what to do. Nothing is randomised, so no budget is spent; readings are looked at
for their kinds only. A port that the agent holds while it runs is left to it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

from agent.claims.slots import REGISTERS, STREAM_UNITS
from agent.commands.commissioning import unread_text
from agent.commands.plans import refused_text
from agent.config import AgentConfig
from agent.config.doubts import doubt_of_interval
from agent.config.sections import StreamTable
from agent.errors import PortError, StorageError
from agent.link.outgoing import Outlet, nothing
from agent.link.trouble import rights_remedy
from agent.meters.reading import Asker, Discarded, Telegram
from agent.meters.section import MeterTable
from agent.meters.unread import Unread
from agent.meters.words import withheld_text
from agent.ports.findings import TELEGRAMS
from agent.ports.meters import ANSWERING_S, hear, is_answer, make_meter
from agent.ports.open_port import open_meter
from agent.running.health_file import STOPPED, read_health
from agent.state.state_file import refuse_place
from edge_ldp.protocol.messages import name_in_topic, topic
from edge_ldp.protocol.plan import judge, parse_plan
from edge_ldp.protocol.signing import Keyring, plan_bytes
from edge_ldp.protocol.strict_json import MessageError
from edge_ldp.service.broker import LinkLostError, RefusedError, remedy_of
from edge_ldp.service.clock import Clock, kernel_synchronised
from edge_ldp.service.mqtt import Link
from edge_ldp.service.trial import Finding, own_name, try_broker, untried

TELEGRAM_S = 15.0
PLAN_S = 5.0
NO_TELEGRAM = "no telegram came"
PROOF = {True: " and proved", False: "; this protocol has no checksum to prove it", None: ""}


async def try_all(
    config: AgentConfig,
    password: str | None,
    keyring: Keyring | None,
    clock: Clock,
    *,
    plan_s: float = PLAN_S,
) -> list[Finding]:
    """Return the verdicts in the order in which a report needs the parts."""
    running = read_health(Path(config.device.state))
    found = [_try_state(config), _try_clock(config)]
    held = Finding("port", "untried", f"the agent runs and holds it; it says: {running}")
    for table in config.all_meters:
        if running == STOPPED:
            verdicts = await _try_meter(config, table, clock)
        else:
            verdicts = [held, *_no_telegram(table, "the agent has the port")]
        found += [_of_meter(table, one) for one in verdicts]
    parts = ["rights", *(_plans(config) if config.mode == "local" else [])]
    # under a name of our own: the agent that may run keeps its session
    broker = replace(config.broker.named(own_name(), password), connect_timeout_s=10.0)
    use = partial(try_link, config, keyring=keyring, clock=clock, plan_s=plan_s)
    return found + await try_broker(broker, parts, use)


def _try_state(config: AgentConfig) -> Finding:
    path = Path(config.device.state)
    try:
        refuse_place(path)
    except StorageError as exc:
        return Finding("state", "fails", f"{path}: {exc.reason}", exc.remedy)
    return Finding("state", "ok", f"{path} can be written by this user")


def _try_clock(config: AgentConfig) -> Finding:
    if config.clock.simulated:
        return Finding("clock", "ok", "simulated")
    if config.clock.trust == "assume":
        return Finding("clock", "ok", "taken as right, as [clock] trust says")
    if kernel_synchronised():
        return Finding("clock", "ok", "synchronised")
    remedy = (
        "switch time synchronisation on (timedatectl set-ntp true), or write [clock] trust = "
        '"assume" (setup --clock assume) where something else keeps it right'
    )
    return Finding("clock", "fails", "not synchronised: nothing is reported until it is", remedy)


def _no_telegram(table: MeterTable, why: str) -> list[Finding]:
    """Return what is untried where no telegram can be waited for."""
    return untried(["telegram", *_of_telegram(table)], why)


def _of_telegram(table: MeterTable) -> list[str]:
    return ["quantities", *([] if table.date_by == "arrival" else ["date_by"])]


def _of_meter(table: MeterTable, found: Finding) -> Finding:
    return replace(found, told=f"{table.name}: {found.told}") if table.name else found


async def _try_meter(config: AgentConfig, table: MeterTable, clock: Clock) -> list[Finding]:
    try:
        opened = await open_meter(table)
    except PortError as exc:
        failed = Finding("port", "fails", f"{exc.path}: {exc.reason}", exc.remedy)
        return [failed, *_no_telegram(table, "the port could not be opened")]
    found = [Finding("port", "ok", f"{table.shown_port} opens")]
    try:
        with closing(opened):
            return found + await _listen(config, table, opened, clock)
    except PortError as exc:
        failed = Finding("telegram", "fails", f"{exc.path}: {exc.reason}", exc.remedy)
        return [*found, failed, *untried(_of_telegram(table), NO_TELEGRAM)]


async def _listen(config: AgentConfig, table: MeterTable, port: Any, clock: Clock) -> list[Finding]:
    """Hear up to three telegrams: some meters tell a quantity in every other one only.

    A slow meter's second one shows how slow.
    """
    meter, loop = make_meter(table), asyncio.get_running_loop()
    wait_s = max(TELEGRAM_S, TELEGRAMS * table.expected_s)
    begun_s = loop.time()
    unread, telegrams = Unread(), list[Telegram]()
    streams = config.streams_of(table)
    wanted, heard_s = {stream.source for stream in streams}, list[float]()
    is_slow, answering_s = False, begun_s
    while loop.time() < max(begun_s + wait_s * (1 + is_slow), answering_s):
        data, events = await hear(port, meter)
        unread.take(data)
        if is_answer(meter, data, events):
            answering_s = loop.time() + ANSWERING_S
        for event in events:
            if isinstance(event, Discarded):
                unread.note(event)
            else:
                telegrams.append(event)
                heard_s.append(loop.time() - begun_s)
        is_slow = _is_slow(table, heard_s)
        has_all = wanted <= _kinds(telegrams) and len(telegrams) > is_slow
        if has_all or len(telegrams) == TELEGRAMS:
            break
    if not telegrams:
        if not isinstance(meter, Asker):
            for rest in meter.silence():
                unread.note(rest)
        why = unread_text(unread, table)
        remedy = (
            f"`edge-ldp agent probe --port {table.port}` finds protocol and speed; for a meter "
            "that sends more rarely, set [meter] interval_s"
        )
        failed = Finding("telegram", "fails", f"none in {wait_s:g} s: {why}", remedy)
        return [failed, *untried(_of_telegram(table), NO_TELEGRAM)]
    first = Finding("telegram", "ok", f"of {table.protocol}, whole{PROOF[table.has_checksum]}")
    return [
        first,
        *_interval(table, streams, heard_s),
        _quantities(streams, telegrams),
        *_time(table, telegrams[-1], clock),
    ]


def _is_slow(table: MeterTable, heard_s: Sequence[float]) -> bool:
    """Say whether the first telegram took longer than any should: then a second shows how long."""
    return bool(heard_s) and 2 * heard_s[0] > 3 * table.expected_s


def _interval(
    table: MeterTable, streams: Sequence[StreamTable], heard_s: Sequence[float]
) -> list[Finding]:
    """Return what a meter's telegrams, which come more rarely than was told, mean for its slots."""
    if not _is_slow(table, heard_s):
        return []
    seconds = ceil(max([heard_s[0], *(b - a for a, b in pairwise(heard_s))]))
    told = f"telegrams come every {seconds} s, not every {table.expected_s} s"
    rare = [doubt for stream in streams if (doubt := doubt_of_interval(stream, seconds))]
    if rare:
        return [Finding("interval", "fails", f"{told}: {rare[0]}", "ask for longer slots")]
    return [Finding("interval", "ok", f"{told}: write [meter] interval_s = {seconds}")]


def _kinds(telegrams: list[Telegram]) -> set[str]:
    return {quantity for one in telegrams for quantity in one.shown}


def _quantities(streams: Sequence[StreamTable], telegrams: list[Telegram]) -> Finding:
    known = _kinds(telegrams)
    tells = ", ".join(f"{one} ({unit})" for one, unit in STREAM_UNITS.items() if one in known)
    tells = tells or "nothing"
    missing = [s for s in streams if s.source not in known]
    if not missing:
        return Finding("quantities", "ok", f"the meter tells {tells}")
    names = ", ".join(stream.told for stream in missing)
    why = withheld_text(telegrams[-1].withheld, {stream.source for stream in missing})
    remedy = why or "give these streams a quantity that it tells, or ask its operator for more"
    if any(REGISTERS.get(stream.source) in known for stream in missing):
        remedy += "; a power may be made of its register: from_register = true"
    return Finding("quantities", "fails", f"the meter tells {tells}, and no {names}", remedy)


def _time(table: MeterTable, telegram: Telegram, clock: Clock) -> list[Finding]:
    if table.date_by == "arrival":
        return []
    tolerance_s = table.clock_tolerance_s
    if telegram.time_s is None:
        told = "the meter's time is in doubt, so its telegrams are not used"
        return [Finding("date_by", "fails", told, 'write [meter] date_by = "arrival"')]
    if abs(telegram.time_s - clock.now()) > tolerance_s:
        told = f"the meter's clock and this device's disagree by more than {tolerance_s} s"
        return [Finding("date_by", "fails", told, 'write [meter] date_by = "arrival"')]
    return [Finding("date_by", "ok", "the meter's clock and this device's agree")]


async def try_link(
    config: AgentConfig, link: Link, keyring: Keyring | None, clock: Clock, plan_s: float
) -> list[Finding]:
    """Return the verdicts on rights and plans; a link that is lost fails what was being tried."""
    found, refused = list[Finding](), frozenset[str]()
    trying = ["rights"]
    try:
        rights, refused = await _try_rights(config, link)
        found.append(rights)
        if config.mode == "local":
            trying = _plans(config)
            plans = await _try_plans(config, link, keyring, clock, plan_s, refused=refused)
            return [*found, *plans]
    except LinkLostError as exc:
        remedy = remedy_of(exc.reason, link.broker)
        found += [Finding(what, "fails", exc.reason, remedy) for what in trying]
    return found


async def _try_rights(config: AgentConfig, link: Any) -> tuple[Finding, frozenset[str]]:
    """Subscribe as the agent does, and send what counts as nothing; and what is refused."""
    fleet, device = config.device.fleet, config.device.id
    local, outlet = config.mode == "local", Outlet(link)
    plans = [topic(fleet, "plan", stream.name) for stream in config.local_streams if local]
    tries: list[Callable[[], Awaitable[bool | None]]] = [
        partial(link.subscribe, [*plans, topic(fleet, "receipt", device)]),
        partial(outlet.send, nothing(fleet, device, "status")),
        partial(outlet.send, nothing(fleet, device, "report" if local else "stream")),
    ]
    refused, is_heard = list[RefusedError](), None
    for one in tries:
        try:
            is_heard = await one()
        except RefusedError as exc:
            refused.append(exc)
    if refused:
        told = "; ".join(f"{exc.topic}: {exc.reason}" for exc in refused)
        remedy = rights_remedy(fleet, device, config.broker.username or device)
        topics = frozenset(name for exc in refused for name in exc.topic.split(", "))
        return Finding("rights", "fails", told, remedy), topics
    told = "plans, receipts, status, reports" if local else "receipts, status, released values"
    if link.protocol != "5":
        told += "; MQTT 3.1.1 does not say whether a message was taken"
    elif not is_heard:
        told += "; nobody listens yet: no aggregator of this fleet has connected"
    return Finding("rights", "ok", told), frozenset()


async def _try_plans(  # noqa: PLR0913 (what a plan is judged by)
    config: AgentConfig,
    link: Any,
    keyring: Keyring | None,
    clock: Clock,
    plan_s: float,
    *,
    refused: frozenset[str],
) -> list[Finding]:
    """Return a verdict for each stream: the retained plan, judged as the agent would.

    `refused`: topics that the broker does not let us read, whose plans cannot be judged.
    """
    fleet, names = config.device.fleet, [stream.name for stream in config.local_streams]
    kept = {name for name in names if topic(fleet, "plan", name) in refused}
    heard = [name for name in names if name not in kept]
    payloads = await retained_plans(link, fleet, heard, plan_s)
    return [
        Finding(f"plan {name}", "untried", "no right to read it")
        if name in kept
        else judged(config, at, payloads.get(name), keyring, clock)
        for at, name in enumerate(names)
    ]


async def retained_plans(
    link: Any, fleet: str, names: Sequence[str], seconds: float
) -> dict[str, bytes]:
    """Return the retained plans of these streams, whose topics are subscribed to, as they come."""
    payloads: dict[str, bytes] = {}
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while len(payloads) < len(names):
                message = await link.receive()
                name = name_in_topic(fleet, "plan", message.topic)
                if name is not None and name in names and message.payload:
                    payloads[name] = message.payload
    return payloads


def _plans(config: AgentConfig) -> list[str]:
    return [f"plan {stream.name}" for stream in config.local_streams]


def judged(
    config: AgentConfig, at: int, payload: bytes | None, keyring: Keyring | None, clock: Clock
) -> Finding:
    """Return what the agent would make of a stream's retained plan (None: there is none)."""
    stream, policy = config.local_streams[at], config.policies()[at]
    what = f"plan {stream.name}"
    if payload is None:
        remedy = (
            f"nothing is reported before there is one: does an aggregator of fleet "
            f"{config.device.fleet} run, with a stream of this name?"
        )
        return Finding(what, "fails", "the broker holds none for this stream", remedy)
    try:
        plan = parse_plan(plan_bytes(payload) if keyring is None else keyring.open(payload))
    except MessageError as exc:
        remedy = "put the operator's public keys, and no others, into [plans] keys"
        return Finding(what, "fails", f"not taken: {exc}", remedy)
    reason = judge(plan, policy, epoch=None, now_s=int(clock.now()))
    if reason is None:
        return Finding(what, "ok", f"epoch {plan.epoch}, θ {plan.theta} {plan.unit}")
    remedy = "this home's policy does not allow it; ask the operator, or change the policy"
    if reason.code == "ahead":
        remedy = (
            "the operator's service issues it anew once its clock is right; is the clock of this "
            "device?"
        )
    return Finding(what, "fails", refused_text(reason, plan, policy), remedy)

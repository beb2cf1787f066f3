"""`simulate fleet` without a broker: frames go straight into the aggregator's intake and its store.

    python -m benchmarks.fleet_offline -c FILE [options of `edge-ldp simulate fleet`]

The store (and archive) at the configured paths must be new; plans are the load's own.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from aggregator.archive.directory import open_spool
from aggregator.counting.refusals import Rules, StreamRules, allowed_codes
from aggregator.errors import StoreError
from aggregator.intake.intake import commit
from aggregator.plans.planner import first_plan, following
from aggregator.store.contract import PlanRow
from aggregator.store.opening import open_store
from edge_ldp.protocol.messages import topic
from edge_ldp.service.mqtt import Message
from studies.load.main import main
from studies.load.online import LoadRun
from studies.load.traffic import Source, Traffic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from aggregator.config import AggregatorConfig, StreamTable
    from aggregator.store.contract import Store
    from edge_ldp.protocol.plan import Plan
    from studies.load.fates import Spec

FLUSH = 200
START_S = 1_700_006_400  # a day's border, and a multiple of every slot that divides a day


def issue(config: AggregatorConfig, stream: StreamTable, start_s: int) -> list[Plan]:
    """Return two plans of a stream: all surveys, then sums up to half of the range."""
    first = first_plan(config.fleet, stream, epoch=1, now_s=start_s)
    sums = stream.sums(stream.low + (stream.ceiling - stream.low) // 2)
    second = following(first, stream, sums, share=stream.share, now_s=start_s)
    return [first] if second is None else [first, second]


def run_offline(
    config: AggregatorConfig,
    file: str,
    spec: Spec,
    progress: Callable[[int], None],
    flush: int = FLUSH,
) -> tuple[Traffic, LoadRun]:
    """Put a whole run into a new store, and into the archive if there is one; raises StoreError.

    `file`: that the configuration was read from; `progress` hears frames sent; `flush`:
    frames in a transaction.
    """
    store = open_store(config, file)
    try:
        if store.last_commit_s() is not None or store.plans():
            reason = "is in use: a load needs a store of its own"
            raise StoreError("of the load", reason, "name a new one")
        plans = {stream.id: issue(config, stream, START_S) for stream in config.streams}
        for stream in config.streams:
            for plan in plans[stream.id]:
                store.add_plan(PlanRow(stream.id, plan.epoch, START_S, plan.to_json()))
        sources = [
            Source(plans[s.id], s.bucket_slots, START_S // s.slot_seconds + 1)
            for s in config.streams
        ]
        traffic = Traffic(spec, sources)
        return traffic, _feed(config, store, traffic, plans, flush, progress)
    finally:
        store.close()


def rules_at(config: AggregatorConfig, plans: dict[int, list[Plan]]) -> Callable[[float], Rules]:
    """Return the rules by time, with the plans of each stream."""
    streams = {
        stream.id: StreamRules(
            stream.slot_seconds,
            stream.bucket_slots,
            {plan.epoch: allowed_codes(plan) for plan in plans[stream.id]},
        )
        for stream in config.streams
    }
    intake = config.intake
    listed = intake.listed
    return lambda now_s: Rules(
        streams, listed, intake.max_devices, intake.resend_window_s, intake.tolerance_s, now_s
    )


def _feed(  # noqa: PLR0913, PLR0917 (what a run consists of)
    config: AggregatorConfig,
    store: Store,
    traffic: Traffic,
    plans: dict[int, list[Plan]],
    flush: int,
    progress: Callable[[int], None],
) -> LoadRun:
    rules, spool = rules_at(config, plans), open_spool(config, store)
    sent, seconds, now_s = 0, 0.0, 0
    everyone = range(len(traffic.names))
    hello = list(_statuses(config.fleet, traffic, everyone, 0))

    def take(messages: Sequence[Message]) -> float:
        began = time.perf_counter()
        for start in range(0, len(messages), flush):
            chunk = messages[start : start + flush]
            commit(store, fleet=config.fleet, messages=chunk, rules=rules(now_s), spool=spool)
        return time.perf_counter() - began

    try:
        for one in traffic.rounds():
            now_s = one.last_s
            hello += _statuses(config.fleet, traffic, one.renewed, one.at)
            seconds += take(hello) + take(
                [
                    Message(
                        topic(config.fleet, "report", traffic.names[frame.device]), frame.payload
                    )
                    for frame in one.messages
                ]
            )
            hello = []
            sent += len(one.messages)
            progress(sent)
        seconds += take(list(_statuses(config.fleet, traffic, everyone, traffic.made)))
    finally:
        if spool is not None:
            spool.close()
    return LoadRun(sent, seconds)


def _statuses(fleet: str, traffic: Traffic, devices: Iterable[int], at: int) -> Iterator[Message]:
    for device in devices:
        yield Message(topic(fleet, "status", traffic.names[device]), traffic.status(device, at))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], run_offline))

"""What benchmarks of the intake are fed with: frames as honest devices make them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from aggregator.config import StreamTable
from aggregator.counting.refusals import Codes, Rules, StreamRules, allowed_codes
from aggregator.plans import planner
from edge_ldp.protocol.messages import topic
from edge_ldp.service.mqtt import Message
from edge_ldp.vectorized import draw_many, encode_frame, perturb_many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from edge_ldp.protocol.plan import Plan

    Ints = NDArray[np.int64]

FLEET = "demo"
DEVICES, AT_ONCE, REPORTS, SLOT_S, BUCKET_SLOTS = 1000, 500, 50, 900, 4
NOW_S = 1_700_000_000
DAY_S = 86_400
Flush = list[tuple[str, bytes]]  # device, frame


def stream_table(mechanism: str = "hybrid") -> StreamTable:
    """Return the stream that is reported: power of homes, up to the fuse."""
    return StreamTable(
        name="power",
        id=1,
        unit="W",
        ceiling=43_470,
        epsilon=1,
        horizon=1_000_000,
        mechanism="tuned" if mechanism == "tuned" else "hybrid",
    )


def plan_of(mechanism: str) -> Plan:
    """Return a plan in full work: sums up to 9 kW, some surveys."""
    stream = stream_table(mechanism)
    first = planner.first_plan(FLEET, stream, epoch=1, now_s=NOW_S)
    following = planner.following(first, stream, stream.sums(9000), share=(1, 16), now_s=NOW_S)
    assert following is not None
    return replace(following, epoch=1)


def rules_of(codes: Codes, rounds: int, reports: int, devices: int = 10**6) -> Rules:
    """Return rules under which every frame of so many rounds counts."""
    last_s = float(NOW_S + SLOT_S * reports * (rounds + 2))
    streams = {1: StreamRules(SLOT_S, BUCKET_SLOTS, {1: codes})}
    return Rules(streams, None, devices, 10**10, 300, last_s)


def flushes(
    plan: Plan, rounds: int, *, devices: int = DEVICES, reports: int = REPORTS
) -> Iterator[Flush]:
    """Yield flushes of 500 frames; in a round every device sends one, of consecutive slots."""
    rng = np.random.default_rng(1)
    for batch in range(rounds):
        first = NOW_S // SLOT_S + 1 + batch * reports
        slots = np.arange(first, first + reports)
        for start in range(0, devices, AT_ONCE):
            values = rng.exponential(1500, (AT_ONCE, reports)).astype(np.int64)
            codes = randomise(plan, np.minimum(values, 43_470), rng)
            yield [
                (f"home-{start + at:07d}", encode_frame(1, batch + 1, plan.epoch, slots, row))
                for at, row in enumerate(codes)
            ]


def randomise(plan: Plan, values: Ints, rng: np.random.Generator) -> Ints:
    """Return honest codes: surveys by the plan's coin, sums else."""
    num, den = plan.share
    flat = values.ravel()
    surveyed = draw_many(den, len(flat), entropy=rng.bytes) < num
    codes = np.empty(len(flat), np.int64)
    sums, survey = plan.stream_mechanism, plan.survey_mechanism
    codes[~surveyed] = perturb_many(sums, flat[~surveyed], entropy=rng.bytes)
    codes[surveyed] = sums.code_count + perturb_many(survey, flat[surveyed], entropy=rng.bytes)
    return codes.reshape(values.shape)


def messages_of(flush: Flush) -> list[Message]:
    """Return a flush as the broker gives it."""
    return [
        Message(topic(FLEET, "report", device), payload, retain=False, mid=at)
        for at, (device, payload) in enumerate(flush)
    ]


def codes_of(plan: Plan, *, watched: bool) -> Codes:
    """Return what the plan allows, with or without the bound per device."""
    codes = allowed_codes(plan)
    return codes if watched else replace(codes, watch=None)

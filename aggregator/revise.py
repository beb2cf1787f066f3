"""One look at a stream's reports: screened against poisoning, then θ and the next survey by them.

Reports are told apart by the time they are about: those of buckets below `kept_bucket` are
forgotten (the distribution has shifted since), those from `looked_bucket` on are new to this look.
Pure, and a function of its arguments alone: the draws that it needs are seeded by the counts, so
the same counts give the same look and the same plan. Sources: DESIGN §7, §10, METHODS §3, §7.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from math import log1p
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from aggregator import planner
from aggregator.adaptive import Aim, Setting, State, observe
from aggregator.errors import CountsError
from aggregator.estimate import ems
from aggregator.estimate.joint import Evidence
from aggregator.screen import Found, is_survey, screened, seeded
from aggregator.strata import merge_epochs
from aggregator.stream_terms import terms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from aggregator.config import StreamTable
    from aggregator.records import CountRows
    from edge_ldp import Mechanism
    from edge_ldp.plan import Plan

    Ints = NDArray[np.int64]
    Merged = Mapping[Mechanism, Ints]
    Kept = dict[Mechanism, NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Look:
    """What a look found and decided; stored with the plan, so that a restart goes on from it.

    `at_s`: when; `epoch`: of the plan that followed, or stayed. `kept_bucket`, `looked_bucket`: as
    the next look needs them. `theta`, `spread` (10, 50, 90 % of the best θ, adaptive only) and
    `survey` (low, high) in the stream's unit; `surprise`: probability of the new reports if nothing
    had changed; `shifted`: older reports were forgotten for it. `reports`: stream and survey
    reports that it went by; `screen`: what was taken out of them before. `correction`: what queries
    are expected to add to a mean, and its standard deviation, if θ was chosen for that.
    """

    at_s: int
    epoch: int
    kept_bucket: int
    looked_bucket: int
    theta: int
    survey: tuple[int, int]
    reports: tuple[int, int]
    reasons: tuple[str, ...]
    spread: tuple[int, int, int] | None = None
    surprise: float = 1.0
    shifted: bool = False
    screen: tuple[Found, ...] = ()
    correction: tuple[float, float] | None = None

    def to_json(self) -> bytes:
        """Return the look as it is stored."""
        return json.dumps(asdict(self), ensure_ascii=False).encode()


def read_look(payload: bytes) -> Look:
    """Return a stored look; raises CountsError for anything else."""
    try:
        fields: dict[str, Any] = json.loads(payload)
        screen = tuple(Found.of(found) for found in fields.pop("screen"))
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return Look(**{**fields, **lists, "screen": screen})
    except (ValueError, TypeError, KeyError, AttributeError) as exc:
        raise CountsError("a stored look does not parse") from exc


class Seen(NamedTuple):
    """Counts of a stream: of buckets from kept to before looked, and from looked on.

    `presence`: (bucket, device-slots) in which devices were there, rising.
    """

    old: CountRows
    new: CountRows
    presence: Ints


def revise(  # noqa: PLR0913 (what a look is a function of)
    plan: Plan,
    stream: StreamTable,
    plans: Mapping[int, Plan],
    seen: Seen,
    last: Look | None,
    *,
    now_s: int,
) -> tuple[Look, Plan | None] | None:
    """Return the look and the plan to follow `plan` (None: keep it); None: too few surveys yet.

    Cost: some 0.5 s, and 0.2 s to prove a plan; seconds where the mechanism is chosen. Raises
    CountsError, ArgumentError.
    """
    old, new = merge_epochs(plans, seen.old), merge_epochs(plans, seen.new)
    surveys = sum(int(n.sum()) for part in (old, new) for m, n in part.items() if is_survey(m))
    if surveys < stream.min_survey_reports:
        return None
    everything = sum(int(n.sum()) for part in (old, new) for n in part.values())
    kept_old, kept_new, screen = _screened(old, new)
    begun = Look(
        at_s=now_s,
        epoch=plan.epoch,
        kept_bucket=last.kept_bucket if last else 0,
        looked_bucket=now_s // stream.bucket_s,
        theta=plan.theta,
        survey=(plan.survey_mechanism.low, plan.survey_mechanism.high),
        reports=(everything - surveys, surveys),
        reasons=tuple(str(found) for found in screen if found.rings),
        screen=screen,
    )
    task = _Task(plan, stream, kept_old, kept_new, last, _inclusion(seen, everything))
    if stream.share[0] == stream.share[1]:
        return replace(begun, reasons=(*begun.reasons, "configured to survey for ever")), None
    return (_published if stream.theta == "published" else _adaptive)(begun, task)


class _Task(NamedTuple):
    plan: Plan
    stream: StreamTable
    old: Kept
    new: Kept
    last: Look | None
    inclusion: float


def _published(begun: Look, task: _Task) -> tuple[Look, Plan | None]:
    """By the papers' rule: EMS and pruning, from the surveys of the plan's own mechanism."""
    mechanism = task.plan.survey_mechanism
    none = np.zeros(mechanism.code_count)
    density = ems(mechanism, task.old.get(mechanism, none) + task.new.get(mechanism, none))
    following = planner.next_plan(task.plan, task.stream, density, now_s=begun.at_s)
    reason = "published rule: EMS of all surveys, pruned above the mode"
    return _ended(begun, task.plan, following, reason), following


def _adaptive(begun: Look, task: _Task) -> tuple[Look, Plan | None]:
    """By the posterior over densities, given all reports kept: see aggregator.adaptive."""
    plan, stream, last = task.plan, task.stream, task.last
    setting = _setting(begun, task)
    old, new = (tuple(Evidence(m, n) for m, n in part.items()) for part in (task.old, task.new))
    try:
        state, decision = observe(setting, State(old), new, rng=seeded(*_bytes(task)))
    except np.linalg.LinAlgError:
        return _ended(begun, plan, None, "no estimate: the reports' matrices are singular"), None
    wanted = terms(stream, setting, state, decision.theta, plan)
    moves = (
        planner.is_survey_only(plan)
        or plan.theta == plan.ceiling
        or wanted.gain > -log1p(-float(stream.hysteresis))
    )
    survey = (decision.survey.low, decision.survey.high)
    sums = wanted.sums if moves else plan.stream_mechanism
    following = planner.following(plan, stream, sums, survey, now_s=begun.at_s)
    shifted = decision.shifted and last is not None
    ended = replace(
        _ended(begun, plan, following, *decision.reasons, *wanted.reasons),
        correction=wanted.correction,
        kept_bucket=last.looked_bucket if shifted and last else begun.kept_bucket,
        spread=decision.spread,
        surprise=decision.surprise,
        shifted=shifted,
    )
    return ended, following


def _setting(begun: Look, task: _Task) -> Setting:
    stream = task.stream
    share = stream.share[0] / stream.share[1]
    since_s = task.last.at_s if task.last else task.plan.issued_s
    rate = sum(float(n.sum()) for n in task.new.values()) / max(1, begun.at_s - since_s)
    return Setting(
        low=stream.low,
        ceiling=stream.ceiling,
        epsilon=float(stream.epsilon),
        aim=Aim(
            stream.sums(task.plan.theta).unit_variance,
            stream.horizon,
            task.inclusion * (1 - share),
        ),
        reports=max(1, round(rate * stream.revise_slots * stream.slot_seconds * share)),
        size=stream.survey_size,
    )


def _ended(begun: Look, plan: Plan, following: Plan | None, *reasons: str) -> Look:
    after = following or plan
    survey = after.survey_mechanism
    stays = () if following else ("the plan stays",)
    return replace(
        begun,
        epoch=after.epoch,
        theta=after.theta,
        survey=(survey.low, survey.high),
        reasons=(*begun.reasons, *reasons, *stays),
    )


def _screened(old: Merged, new: Merged) -> tuple[Kept, Kept, tuple[Found, ...]]:
    """Return what the screen keeps of both; all counts of one mechanism are screened together."""
    kept: tuple[Kept, Kept] = ({}, {})
    told = []
    for mechanism in {**old, **new}:
        parts = [part[mechanism] for part in (old, new) if mechanism in part]
        keep, found = screened(mechanism, np.sum(parts, axis=0))
        for part, left in zip((old, new), kept, strict=True):
            if mechanism in part:
                left[mechanism] = part[mechanism] * keep
        told += [] if found is None else [found]
    return *kept, tuple(told)


def _inclusion(seen: Seen, reports: int) -> float:
    """Return the share of the device-slots heard that gave a report; 1 where it is not known."""
    there = int(seen.presence[:, 1].sum())
    return min(1.0, reports / there) if there else 1.0


def _bytes(task: _Task) -> Iterator[bytes]:
    """Yield what the draws of a look are seeded by: mechanisms and counts."""
    for part in (task.old, task.new):
        for mechanism, n in part.items():
            yield json.dumps(mechanism.to_plan()).encode()
            yield n.tobytes()

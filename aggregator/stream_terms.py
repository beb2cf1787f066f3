"""What stream reports are asked for: mechanism and θ, as the configuration allows, by a posterior.

One mechanism is configured, or "chosen": the hybrid, the ready table, or a table made for the
density, whichever is expected to cost least with its own θ. And sums are used as they come, or θ is
chosen for sums that `query` corrects for truncation (`corrected_sums`). Devices are the authority:
one whose policy does not name the mechanism refuses the plan. Sources: METHODS §2, §3, DESIGN §7.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from aggregator.adaptive import worth_it
from aggregator.adaptive.correction import corrected, corrected_gain
from aggregator.adaptive.mechanism import aim_of, choose_mechanism, gain, tuned_for
from aggregator.tuning import TableError
from edge_ldp import Hybrid, ParameterError, Tuned

if TYPE_CHECKING:
    from aggregator.adaptive import Aim, Setting, State
    from aggregator.config import StreamTable
    from edge_ldp import Mechanism
    from edge_ldp.mechanisms import Response
    from edge_ldp.plan import Plan

SPAN = 1 << 14  # the range of profiles: a mechanism's shape does not depend on it
NARROWEST = 256  # of [low, θ] for a table: its knots must lie apart


class Terms(NamedTuple):
    """The mechanism with its θ, and what it gains.

    `gain`: expected ln(cost of the plan's / cost of this); `correction`: what `query` is expected
    to add to a mean, and its standard deviation, in the unit, where θ was chosen for that.
    """

    sums: Mechanism
    gain: float
    reasons: tuple[str, ...] = ()
    correction: tuple[float, float] | None = None


def terms(stream: StreamTable, setting: Setting, state: State, theta: int, plan: Plan) -> Terms:
    """Return what to ask next, where `theta` is the best for sums as configured.

    Cost: nothing but for "chosen": 1 to 4 s, as a table is made. Raises ArgumentError.
    """
    if stream.mechanism == "chosen":
        return _chosen(stream, setting, state, theta, plan)
    if stream.corrected_sums:
        return _corrected(stream, setting, state, (setting.aim, None), plan)
    return Terms(stream.sums(theta), worth_it(setting, state, theta, plan.theta))


def _chosen(stream: StreamTable, setting: Setting, state: State, theta: int, plan: Plan) -> Terms:
    aim = setting.aim
    shapes: dict[str, Response | None] = {"hybrid": None}
    if theta - stream.low >= NARROWEST:
        shapes |= _tables(stream, state, theta)
    aims = {name: _aim(stream, shape, aim) for name, shape in shapes.items()}
    name, theta, _ = choose_mechanism(state, aims)
    reason = f"{name}: least expected cost of {', '.join(aims)}"
    if stream.corrected_sums:
        asked = _corrected(stream, setting, state, (aims[name], shapes[name]), plan)
        return asked._replace(reasons=(reason, *asked.reasons))
    now = _aim(stream, _response(plan.stream_mechanism), aim)
    gained = gain(state, (now, plan.theta), (aims[name], theta))
    return Terms(_made(stream, shapes[name], theta), gained, (reason,))


def _corrected(
    stream: StreamTable,
    setting: Setting,
    state: State,
    wanted: tuple[Aim, Response | None],
    plan: Plan,
) -> Terms:
    aim, response = wanted
    found = corrected(replace(setting, aim=aim), state)
    old = aim
    if stream.mechanism == "chosen":
        old = _aim(stream, _response(plan.stream_mechanism), aim)
    reason = (
        f"θ = {found.theta} for sums corrected by {found.bias:.3g} ± {found.sd:.2g}"
        f" {stream.unit} a value: {found.cost / found.plain:.0%} of the cost of plain ones"
    )
    return Terms(
        _made(stream, response, found.theta),
        corrected_gain(state, (old, plan.theta), (aim, found.theta)),
        (reason,),
        (found.bias, found.sd),
    )


def _tables(stream: StreamTable, state: State, theta: int) -> dict[str, Response | None]:
    """Return the tables there are for this ε: the ready one, and one made for the density."""
    found: dict[str, Response | None] = {}
    with suppress(ParameterError):  # none for this ε
        ready = Tuned(epsilon=stream.epsilon, low=0, high=SPAN, bits=stream.bits)
        found["ready table"] = ready.response
    with suppress(TableError, ParameterError):  # none at all: the others will do
        found["own table"] = tuned_for(state, theta, stream.epsilon, bits=stream.bits).response
    return found


def _aim(stream: StreamTable, response: Response | None, aim: Aim) -> Aim:
    """Return the aim of sums by this table, or by the hybrid, at any θ."""
    shape: Mechanism = Hybrid(epsilon=stream.epsilon, low=0, high=SPAN, size=stream.size)
    if response is not None:
        shape = Tuned.of(response, low=0, high=SPAN)
    return aim_of(shape, aim.horizon, aim.inclusion)


def _made(stream: StreamTable, response: Response | None, theta: int) -> Mechanism:
    if response is None or theta - stream.low < NARROWEST:
        return stream.sums(theta)
    return Tuned.of(response, low=stream.low, high=theta)


def _response(mechanism: Mechanism) -> Response | None:
    return mechanism.response if isinstance(mechanism, Tuned) else None

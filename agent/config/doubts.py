"""What a configuration says and hardly means: told by `check` and at the start, never refused."""

from math import exp

from agent.claims.slots import Kind
from agent.config.sections import KINDS, AgentConfig

MOST_EPSILON = 8
LEAST_W = 500
"""A home's largest power is more: one kettle takes four times as much."""


def doubts_of(config: AgentConfig) -> list[str]:
    """Return what is probably not what the owner meant, in words, most serious first."""
    found = []
    epsilon = config.policies()[0].ratio.epsilon
    if config.mode == "local" and epsilon > MOST_EPSILON:
        found.append(
            f"policy.epsilon: with ε {config.policy.epsilon} a report says nearly what the reading "
            f"was: one guess gets up to {_times(epsilon)} times likelier than another; 1 is usual"
        )
    for at, stream in enumerate(config.streams):
        seconds = 3600 if KINDS[stream.quantity] is Kind.MEAN else stream.slot_seconds
        least = LEAST_W * seconds // 3600
        if stream.ceiling < least:
            found.append(
                f"streams[{at}].ceiling: {stream.ceiling} {stream.unit} is less than a home's "
                f"largest: every larger value counts as it. Is it meant in k{stream.unit}?"
            )
    return found


def _times(epsilon: float) -> str:
    return f"{exp(min(epsilon, 99)):,.3g}"

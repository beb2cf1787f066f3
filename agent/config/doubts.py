"""What a configuration says and hardly means: told by `check` and at the start, never refused."""

from decimal import Decimal
from math import exp, tanh

from agent.claims.slots import Kind
from agent.config.sections import KINDS, AgentConfig

LEAST_EPSILON, MOST_EPSILON = 0.1, 8
LEAST_W = 500
"""A home's largest power is more: one kettle takes four times as much."""


def doubts_of(config: AgentConfig) -> list[str]:
    """Return what is probably not what the owner meant, in words, most serious first."""
    found = []
    if config.mode == "local" and (doubt := doubt_of_epsilon(config.policy.epsilon)):
        found.append(f"policy.epsilon: {doubt}")
    for at, stream in enumerate(config.streams):
        if doubt := doubt_of_ceiling(
            stream.ceiling, stream.unit, stream.quantity, stream.slot_seconds
        ):
            found.append(f"streams[{at}].ceiling: {doubt}")
    return found


def doubt_of_epsilon(given: Decimal | int) -> str:
    """Return why an ε of one report is probably not meant, or ""."""
    epsilon = float(given)
    if epsilon > MOST_EPSILON:
        return (
            f"with ε {given} a report says nearly what the reading was: one guess gets up to "
            f"{exp(min(epsilon, 99)):,.3g} times likelier than another; 1 is usual"
        )
    if epsilon < LEAST_EPSILON:  # the variance of one report where ε is little
        times = float(f"{(tanh(0.5) / tanh(epsilon / 2)) ** 2:.1g}")
        return (
            f"with ε {given} a fleet needs some {times:,.0f} times as many homes as with 1 for the "
            "same answer, and its plans must ask for no more; 1 is usual"
        )
    return ""


def doubt_of_ceiling(ceiling: int, unit: str, quantity: str, slot_seconds: int) -> str:
    """Return why a largest value is probably not meant, or ""."""
    seconds = 3600 if KINDS[quantity] is Kind.MEAN else slot_seconds
    if ceiling >= LEAST_W * seconds // 3600:
        return ""
    return (
        f"{ceiling} {unit} is less than a home's largest: every larger value counts as it. "
        f"Is it meant in k{unit}?"
    )

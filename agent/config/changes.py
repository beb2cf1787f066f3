"""A changed configuration beside the running one: what tightens, loosens, or needs a restart.

Privacy switches only tighten while the agent runs: if one loosens, nothing of the file is taken.
Pure: configurations in, a change out. Source: docs/faults.md, SVC; docs/security.md.
"""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, NamedTuple

from agent.config.sections import AgentConfig, ShapeTable

_LEAST = ("days", "reports", "range_days")  # of [policy.plans]: more of them is tighter
LIVE = ("broker", "sending", "policy", "plans", "tap")
"""The tables that can change while the agent runs; any other needs a restart."""


class ConfigChange(NamedTuple):
    """What a changed file means: keys applied, keys that loosen, keys that need a restart.

    `config` is what to go by from now on; the running one itself when something loosens.
    """

    config: AgentConfig
    applied: tuple[str, ...] = ()
    loosens: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


def changes_to(running: AgentConfig, wanted: AgentConfig) -> ConfigChange:
    """Return what becomes of the running configuration when the file says `wanted`."""
    loosens = tuple(_loosened(running, wanted))
    if loosens:
        return ConfigChange(running, loosens=loosens)
    live = LIVE if running.mode == "local" else tuple(set(LIVE) - {"policy"})
    names = [field.name for field in fields(wanted)]
    changed = [name for name in names if getattr(running, name) != getattr(wanted, name)]
    restart = tuple(name for name in changed if name not in live)
    config = replace(running, **{name: getattr(wanted, name) for name in live})
    applied = tuple(
        key
        for name in changed
        if name in live
        for key in _keys(name, getattr(running, name), getattr(wanted, name))
    )
    return ConfigChange(config, applied=applied, restart=restart)


def _loosened(running: AgentConfig, wanted: AgentConfig) -> Iterator[str]:
    """Yield the keys by which the file would let more out, or let more in, than now."""
    old, new = running.policy, wanted.policy
    if new.epsilon > old.epsilon:
        yield "policy.epsilon"
    if new.window.reports > old.window.reports:
        yield "policy.window.reports"
    if new.window.slots < old.window.slots:
        yield "policy.window.slots"
    for key in ("reports", "epsilon"):
        before, after = getattr(old.lifetime, key, None), getattr(new.lifetime, key, None)
        if before is not None and (after is None or after > before):
            yield f"policy.lifetime.{key}"
    if not set(new.mechanisms) <= set(old.mechanisms):
        yield "policy.mechanisms"
    if new.max_codes > old.max_codes:
        yield "policy.max_codes"
    yield from _loosened_shape(old.plans, new.plans)
    if wanted.sending.max_age_days > running.sending.max_age_days:
        yield "sending.max_age_days"
    yield from _loosened_links(running, wanted)


def _loosened_shape(old: ShapeTable, new: ShapeTable) -> Iterator[str]:
    for field in fields(ShapeTable):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if after < before if field.name in _LEAST else after > before:
            yield f"policy.plans.{field.name}"


def _loosened_links(running: AgentConfig, wanted: AgentConfig) -> Iterator[str]:
    if running.broker.use_tls and not wanted.broker.use_tls:
        yield "broker.tls"
    if wanted.broker.allow_plaintext and not running.broker.allow_plaintext:
        yield "broker.allow_plaintext"
    if running.broker.crl_file and not wanted.broker.crl_file:
        yield "broker.crl_file"
    old, new = set(running.plans.every), set(wanted.plans.every)
    if old and (not new or not new <= old):
        yield "plans.keys"
    if wanted.tap is not None and wanted.tap != running.tap:
        yield "tap"


def _keys(name: str, old: Any, new: Any) -> list[str]:
    """Return the keys of a table that differ, dotted; the table's own name when it came or went."""
    if old is None or new is None:
        return [name]
    keys = [field.name for field in fields(new)]
    return [f"{name}.{key}" for key in keys if getattr(old, key) != getattr(new, key)]

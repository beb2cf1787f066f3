"""What `edge-ldp agent status` says of a device, from its state file and the agent if it runs."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any

from agent.claims.elapsed import Moment
from agent.claims.ledger_opening import at_hand
from agent.claims.lifetime import Beside, days_left
from agent.claims.silence import WORDS, Silence, silence
from agent.commands.ledger_view import state_text, view
from agent.commands.plans import refused_text
from agent.config import AgentConfig
from agent.home_time import home_time
from agent.running.health_file import STOPPED, read_health
from agent.running.vitals import ASK_S, ask_agent
from agent.state.journal import Journal
from agent.state.plan_log import STAYING
from edge_ldp.protocol.messages import StreamStatus
from edge_ldp.protocol.plan import judge, parse_plan
from edge_ldp.protocol.released import FIRST_SUMS_KEY
from edge_ldp.protocol.signing import plan_bytes
from edge_ldp.protocol.strict_json import MessageError
from edge_ldp.service.health import LINK, LINK_STATES


def facts_of(journal: Journal, config: AgentConfig) -> dict[str, object]:
    """Return health with its ages, what is kept and spent, and why nothing is reported if so."""
    vitals, silent = _vitals(journal), silent_facts(journal, config)
    runs = vitals["health"] != STOPPED
    facts = {**vitals, **_reporting(journal, config, runs=runs), **_state(journal), **silent}
    return facts | _life(journal, config)


def plans_of(journal: Journal, config: AgentConfig) -> dict[str, dict[str, object] | None]:
    """Return each stream's stored plan: epoch, theta, unit, issued_s; None before the first.

    `refused` says why one is not in force: the policy was another when it was taken.
    """
    if config.mode != "local":
        return {}
    found: dict[str, dict[str, object] | None] = dict.fromkeys(s.name for s in config.local_streams)
    policies = {policy.stream: policy for policy in config.policies()}
    for stored in journal.plans():
        if (policy := policies.get(stored.name)) is None:
            continue
        with suppress(MessageError):  # damaged: the agent takes it for none, too
            plan = parse_plan(plan_bytes(stored.payload))
            shown = {key: getattr(plan, key) for key in ("epoch", "theta", "unit", "issued_s")}
            refusal = judge(plan, policy, epoch=None, now_s=None)
            shown["refused"] = refusal and refused_text(refusal, plan, policy)
            found[stored.name] = shown
    return found


def refused_of(journal: Journal) -> dict[str, str]:
    """Return why plans of a stream were refused last, of streams whose last plan was."""
    last = {row.stream: row for row in journal.plan_log()}
    found = {
        name: f"{row.code}, {row.words}" for name, row in last.items() if row.code not in STAYING
    }
    return {name: f"refused, so nothing is reported: {why}" for name, why in found.items()}


def as_text(
    facts: dict[str, object],
    accounts: Iterable[StreamStatus],
    plans: dict[str, dict[str, object] | None],
    config: AgentConfig,
    refused: Mapping[str, str],
) -> str:
    """Return the same as lines, with each stream's plan and account.

    `refused`: why the last plan of a stream was not taken.
    """
    rows: list[tuple[str, object]] = []
    fleet, names = config.device.fleet, [stream.name for stream in config.streams]
    sums = {FIRST_SUMS_KEY + at: f"sums of {name}" for at, name in enumerate(names)}
    for name, plan in plans.items():
        text = (
            f"none yet, so nothing is reported; does an aggregator of fleet {fleet} publish one? "
            "`edge-ldp agent plans` shows what was refused"
        )
        if plan is None and name in refused:
            text = f"none: {refused[name]}"
        if plan is not None:
            text = f"epoch {plan['epoch']}, θ {plan['theta']} {plan['unit']}"
            text += f"; {why}; so nothing is reported" if (why := plan["refused"]) else ""
        rows.append((f"plan of {name}", text))
    rows += [
        (
            sums.get(one.stream, f"stream {one.stream}"),
            f"{one.created} made, {one.expired} given up unconfirmed",
        )
        for one in accounts
    ]
    return facts_text(facts) + "".join(f"{key:<24}{value}\n" for key, value in rows)


def facts_text(facts: Mapping[str, object]) -> str:
    """Return facts as lines; ages are told as such, and times by the clocks of the home."""
    rows = (_row(key, value) for key, value in facts.items())
    return "".join(f"{key:<24}{value}\n" for key, value in rows)


def silence_of(
    journal: Journal, config: AgentConfig, moment: Moment | None = None
) -> Silence | None:
    """Return why the device is silent, from its stored ledger and configuration.

    Now by the configured clock, unless the `moment` is given. A changed slot length, and a clock
    that had been ahead, count from the agent's next start on.
    """
    ledger, elapsed = journal.ledger(), journal.elapsed()
    if ledger is None or elapsed is None:
        return None
    if moment is None:
        clock = config.clock.make()
        moment = Moment(clock.now(), int(clock.since_boot() * 1000))
    return silence(*at_hand(ledger, elapsed, config.slot_seconds, moment), moment)


def spent_of(journal: Journal, config: AgentConfig) -> dict[str, Any]:
    """Return what was spent and may be (`ledger_view.view`), by the configured clock."""
    now_s, silence = int(config.clock.make().now()), silence_of(journal, config)
    return view(
        *(journal.ledger(), config.window, config.ratio, config.slot_seconds, now_s),
        silence=silence,
    )


def recent_of(journal: Journal, config: AgentConfig) -> int | None:
    """Return how many reports were made in the last window; None where slots were other ones."""
    ledger, elapsed, clock = journal.ledger(), journal.elapsed(), config.clock.make()
    if ledger is None or elapsed is None or elapsed.slot_seconds != config.slot_seconds:
        return None
    return elapsed.at(Moment(clock.now(), int(clock.since_boot() * 1000))).made(ledger.window)


def _life(journal: Journal, config: AgentConfig) -> dict[str, object]:
    """Return the limit of all reports ever and what is left of it, if the owner set one."""
    if config.lifetime is None:
        return {}
    life, beside, ratio = config.lifetime, _beside(journal, config), config.ratio
    limits: dict[str, object] = {"lifetime_reports": life.reports, "lifetime_epsilon": life.epsilon}
    if not config.local_streams:
        rest = max(0.0, life.rest(journal.ledger(), beside.epsilon))
        days = int(rest / beside.a_day)
        return limits | {"lifetime_epsilon_left": round(rest, 6), "lifetime_days_left": days}
    left = life.left(journal.ledger(), ratio, beside.epsilon)
    pace = float(beside.a_day) / ratio.epsilon
    days = days_left(left, config.window, config.slot_seconds, pace)
    return limits | {"lifetime_left": left, "lifetime_days_left": days}


def _beside(journal: Journal, config: AgentConfig) -> Beside:
    """Return what sums cost so far; what runs is not counted before it leaves."""
    if not journal.sharing() and not config.sharing:
        return Beside()
    from agent.config.summed_streams import day_cost, sum_terms  # noqa: PLC0415 (memory: who has sums)
    from agent.curator.sums_journal import SumsJournal  # noqa: PLC0415 (same)

    a_day = sum(map(day_cost, sum_terms(config).values()), Fraction(0))
    return Beside(SumsJournal(journal).spent(), a_day)


def silent_facts(journal: Journal, config: AgentConfig) -> dict[str, object]:
    """Return why nothing may be reported now and until when, if so; in seconds since 1970."""
    found = silence_of(journal, config)
    if found is None:
        return {}
    return {
        "silent_because": WORDS[found.reason],
        "silent_until_s": found.until_s,
    }


def _row(key: str, value: object) -> tuple[str, object]:
    """Return a fact as a line has it."""
    if key == "silent_until_s" and isinstance(value, int):
        return "silent_until", home_time(value)
    if not key.endswith("_s_ago"):
        return key, value
    name = key.removesuffix("_s_ago")
    if name == LINK:
        return f"{LINK_STATES[LINK]} for", "-" if value is None else f"{value} s"
    return f"last {name.replace('_', ' ')}", "-" if value is None else f"{value} s ago"


def _vitals(journal: Journal) -> dict[str, object]:
    """Return health and ages, from the running agent itself where it answers."""
    state = journal.path
    health = read_health(state)
    answer = None if health == STOPPED else ask_agent(state)
    if answer == {}:
        health = f"runs, but does not answer within {ASK_S:g} s; it last said: {health}"
    ages = {f"{name}_s_ago": None for name in ("telegram", "commit", "link", "receipt")}
    if answer and isinstance(answer.get("ages"), dict):
        ages |= {f"{name}_ago": age for name, age in answer["ages"].items()}  # type: ignore[attr-defined]
    return {"health": answer["health"] if answer else health, **ages}


def _reporting(journal: Journal, config: AgentConfig, *, runs: bool) -> dict[str, object]:
    """Return whether this home reports now, and why not."""
    facts = spent_of(journal, config)
    if facts["state"] == "reporting" and not runs:
        return {"reporting": "not while the agent is stopped"}
    plans = plans_of(journal, config).values()
    is_idle = bool(plans) and all(one is None or one["refused"] for one in plans)
    if facts["state"] == "reporting" and is_idle:
        return {"reporting": "not before a plan is in force"}
    return {"reporting": state_text(facts)}


def _state(journal: Journal) -> dict[str, object]:
    ledger = journal.ledger()
    return {
        "waiting_reports": len(journal.waiting()),
        "batches_kept": len(journal.keys()),
        "reports_ever": ledger.reports if ledger else 0,
        "given_up_for_size": sum(journal.shed_counts().values()),
        "epsilon_spent": round(ledger.epsilon_spent, 6) if ledger else 0.0,
    }

"""From journal, record and the running agent to what the page shows; it changes nothing of them."""

from collections.abc import Callable, Iterator, Mapping
from math import fsum

from agent.claims.silence import Silence
from agent.commands.explain import NEVER, RECEIPT_S, KeptReport, report_facts
from agent.commands.gone import earlier_text
from agent.commands.habits import NOT_MEASURED, habits_facts
from agent.commands.ledger_view import counted, span, state_text, view
from agent.commands.status_view import facts_text, plans_of, refused_of, silence_of
from agent.config import AgentConfig
from agent.home_time import home_time, local
from agent.page.facts import (
    CAME,
    GONE,
    NEWEST,
    WAITS,
    Counts,
    LeftReport,
    PageFacts,
    PlanFile,
    days_of,
    spans_of,
)
from agent.page.left import CODE, SUM, LeftItem, items_of
from agent.page.record import LeftRecord
from agent.state.device import Device
from edge_ldp.protocol.group_month import GroupMonth
from edge_ldp.protocol.plan import Plan, parse_plan
from edge_ldp.protocol.signing import plan_bytes
from edge_ldp.protocol.strict_json import MessageError
from edge_ldp.protocol.utc import utc
from edge_ldp.ratio import Ratio
from edge_ldp.service.health import OK

_SUMS = "sums-"
Vitals = tuple[str, Mapping[str, int | None]]


class Household:
    """What one home's page is made of. `vitals`: health and ages of the agent at this moment.

    `month`: what the fleet tells of this home's group.
    """

    def __init__(
        self,
        device: Device,
        record: LeftRecord,
        vitals: Callable[[], Vitals],
        month: Callable[[], GroupMonth | None] = lambda: None,
    ) -> None:
        self._month = month
        self._device = device
        self._record = record
        self._vitals = vitals

    @property
    def _config(self) -> AgentConfig:
        return self._device.core.config

    def facts(self) -> PageFacts:
        """Return all that is shown; raises StorageError where the state cannot be read."""
        config, journal = self._config, self._device.core.journal
        now_s = int(self._device.core.clock.now())
        told = sorted(self._told(), key=lambda one: (one.item.to_s, one.item.stream))
        window_s = config.policy.window.slots * config.slot_seconds
        accounts = journal.status()
        made = sum(one.created for one in accounts)
        gone = sum(one.expired for one in accounts)
        waits = sum(one.became == WAITS for one in told)
        ledger = journal.ledger()
        ever_epsilon = (ledger.epsilon_spent if ledger else 0.0) + fsum(self._sums_paid().values())
        ever = Counts("ever", made, made - gone - waits, waits, gone, ever_epsilon)
        since = min((one.begun for one in accounts), default=None)
        habits = habits_facts(config)
        since_s = None if since is None else since * config.slot_seconds
        silence = silence_of(journal, config, self._device.core.moment)
        standing = dict(self._standing(now_s, silence))
        return PageFacts(
            device=config.device.id,
            fleet=config.device.fleet,
            now_s=now_s,
            health=self._vitals()[0],
            silent=None if silence is None else standing["reporting"],
            since_s=since_s,
            spans=(*spans_of(told, now_s, window_s, f"this window ({span(window_s)})"), ever),
            days=days_of(told, now_s),
            newest=tuple(self._newest(told)),
            standing=tuple(standing.items()),
            warnings=tuple(self._warnings()),
            habits=tuple(habits),
            so_far=_so_far(since_s, now_s) + ("" if habits else f" {NOT_MEASURED}"),
            plans=tuple(self._plans()),
            never=NEVER,
        )

    def plan(self, name: str) -> bytes | None:
        """Return the message of a plan in force, as it came; None: there is none of that name."""
        stored = self._device.core.journal.plans()
        return next((one.payload for one in stored if plan_file(one.name, one.epoch) == name), None)

    def proof_of(self, name: str) -> Callable[[], bytes] | None:
        """Return what proves a plan in force, or a stream's sums: it takes a while, anywhere."""
        epsilon = str(self._config.policy.epsilon)
        if (payload := self.plan(name)) is not None:
            return lambda: _proof_of_plan(payload, epsilon)
        if not (name.startswith(_SUMS) and self._config.sharing):
            return None
        from agent.page.of_sums import proof_of_sums  # noqa: PLC0415 (memory: who has sums)

        return proof_of_sums(self._config, name.removeprefix(_SUMS))

    def _told(self) -> Iterator[LeftReport]:
        """Yield every report that is known of, with what became of it."""
        journal, seconds = self._device.core.journal, self._config.slot_seconds
        here, paid = set(journal.keys()), self._sums_paid()
        dearest = self._dearest()
        for one in self._record.rows():
            became = WAITS if one.key in here else CAME if one.came else GONE
            for item in items_of(one):
                yield LeftReport(item, became, _cost(item, dearest, paid))
        for report in journal.waiting():
            begins = report.slot * seconds
            item = LeftItem(
                CODE, report.stream, begins, begins + seconds, report.epoch, report.code
            )
            yield LeftReport(item, WAITS, dearest)

    def _dearest(self) -> float:
        """Return the most that a report can have cost: the dearest ratio ever charged."""
        ledger = self._device.core.journal.ledger()
        ratios = [Ratio(num, den) for num, den, _ in (ledger.spent if ledger else ())]
        return max(one.epsilon for one in (*ratios, self._config.ratio))

    def _sums_paid(self) -> dict[tuple[int, int], float]:
        """Return what each released period cost, by stream and end; nothing where none ever was."""
        if not self._device.core.journal.sharing():
            return {}
        from agent.commands.sums_view import paid_of  # noqa: PLC0415 (memory: who has sums)

        return paid_of(self._device.core.journal)

    def _in_force(self) -> Iterator[tuple[str, Plan]]:
        for stored in self._device.core.journal.plans():
            try:
                yield plan_file(stored.name, stored.epoch), parse_plan(plan_bytes(stored.payload))
            except MessageError:  # damaged: the agent takes it for none, too
                continue

    def _newest(self, told: list[LeftReport]) -> Iterator[str]:
        """Yield the newest reports as lines, the newest first."""
        by_id = {plan.stream_id: plan for _, plan in self._in_force()}
        for item, became, _ in reversed(told[-NEWEST:]):
            when = f"{local(item.from_s):%Y-%m-%d %H:%M} to {home_time(item.to_s, '%H:%M')}"
            if item.kind != CODE:
                days = f"{local(item.from_s):%Y-%m-%d} to {home_time(item.to_s - 1, '%Y-%m-%d')}"
                what = "a period's sums, with noise" if item.kind == SUM else "a value, with noise"
                yield f"{days if item.kind == SUM else when}: {what}; {became}"
                continue
            report = KeptReport(item.stream, 0, item.epoch, item.code, packed=True)
            facts = report_facts(report, by_id.get(item.stream), 1)
            alone = "made under an earlier plan"
            if facts["kind"] is not None:
                alone = f"read alone: {facts['alone']:,} {facts['unit']}"
                alone += f", give or take {facts['give_or_take']:,}"
            yield f"{when}: code {item.code}; {alone}; {became}"

    def _standing(self, now_s: int, silence: Silence | None) -> Iterator[tuple[str, str]]:
        """Yield how meter, link and reporting stand, in words."""
        config, journal = self._config, self._device.core.journal
        (health, ages), window = self._vitals(), config.window
        facts = view(
            journal.ledger(), window, config.ratio, config.slot_seconds, now_s, silence=silence
        )
        yield "state", health
        for line in facts_text({f"{name}_ago": age for name, age in ages.items()}).splitlines():
            yield line[:24].strip(), line[24:]
        yield "reporting", state_text(facts)
        if config.local_streams and config.mode == "local":
            slot = span(config.slot_seconds)
            chance = (
                f"each slot of {slot} has a chance of {window.reports} in {window.cells:,} for "
                "each stream; which ones report was drawn at random and is shown to nobody"
            )
            most = (
                f"ε {config.policy.epsilon} a report, at most {counted(window.reports, 'report')} "
                f"in any {span(window.slots * config.slot_seconds)}"
            )
            yield "next report", chance
            yield "you allow", most
        receipt = span(max(1, round(config.sending.receipt_interval_s or RECEIPT_S)))
        yield "confirmed", f"by the aggregator's receipt, due every {receipt}"
        if refused := self._device.core.refused:
            yield "refused", f"{counted(refused, 'report')} of those confirmed, ever"
        if config.sharing:
            from agent.page.of_sums import running_periods  # noqa: PLC0415 (memory: who has sums)

            yield from running_periods(config, now_s, is_silent=silence is not None)
        if (month := self._month()) is not None:
            yield f"your group, {month.group}", _month_text(month, span(config.slot_seconds))

    def _warnings(self) -> Iterator[str]:
        """Yield what somebody has to know, worst first."""
        core = self._device.core
        if core.is_doubted:
            yield "Somebody told of reports that this device never made: it may be an older copy."
        if told := earlier_text(core.journal.path):
            yield told.replace("\n", " ").strip()
        refused = refused_of(core.journal)
        for name, plan in plans_of(core.journal, self._config).items():
            if name in refused:
                why = refused[name]
                if plan is not None:
                    why = f"{why.replace(', so nothing is reported', '')}; the one before stays"
                yield f"The last plan of {name}: {why}."
            elif plan is None:
                fleet = self._config.device.fleet
                yield (
                    f"No plan of {name} has come, so nothing of it is reported: does an "
                    f"aggregator of fleet {fleet} run?"
                )
        if core.refused:
            of_them = counted(core.refused, "report")
            yield f"The aggregator refused {of_them} of this home for good: ask its operator."
        if (health := self._vitals()[0]) != OK:
            yield f"This agent is {health}."

    def _plans(self) -> Iterator[PlanFile]:
        epsilon, files = self._config.policy.epsilon, dict(self._in_force())
        for name, plan in files.items():
            shown = plans_of(self._device.core.journal, self._config).get(plan.stream) or {}
            words = f"epoch {plan.epoch}, θ {plan.theta:,} {plan.unit}"
            words += f"; {shown['refused']}" if shown.get("refused") else ""
            prove = f"edge-ldp certify --plan {name}.plan --epsilon {epsilon}"
            yield PlanFile(plan.stream, words, f"{name}.plan", f"{name}.json", prove)
        if self._config.sharing:
            from agent.page.of_sums import sums_files  # noqa: PLC0415 (memory: who has sums)

            yield from sums_files(self._config, _SUMS)


def plan_file(stream: str, epoch: int) -> str:
    """Return what a plan's files are called."""
    return f"{stream}-{epoch}"


def _month_text(month: GroupMonth, slot: str) -> str:
    days = " to ".join(f"{utc(at):%Y-%m-%d}" for at in (month.from_s, month.to_s - 1))
    told = [
        f"{one.stream}, mean of {counted(one.homes, 'home')}: {one.mean:,} {one.unit}"
        f"{f' in each {slot}' if one.unit.endswith('h') else ''}, give or take {one.within:,}"
        for one in month.streams
    ]
    return f"{days}: {'; '.join(told)}. The fleet's word: nothing here can check it"


def _so_far(since_s: int | None, now_s: int) -> str:
    if since_s is None:
        return "Nothing was reported yet."
    days = max(0, now_s - since_s) // 86_400
    return f"Reports began on {home_time(since_s, '%Y-%m-%d')}: {counted(days, 'day')} ago."


def _cost(item: LeftItem, dearest: float, paid: dict[tuple[int, int], float]) -> float:
    if item.kind == CODE:
        return dearest
    return paid.get((item.stream, item.to_s), 0.0) if item.kind == SUM else item.paid


def _proof_of_plan(payload: bytes, epsilon: str) -> bytes:
    from edge_ldp.certify.verdict import judge_plan  # noqa: PLC0415 (memory: who asks for it)
    from edge_ldp.ratio import exact_epsilon  # noqa: PLC0415 (same)

    found = judge_plan(payload, exact_epsilon(epsilon)).certificate
    return b"" if found is None else found.to_json()

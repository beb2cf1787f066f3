"""What a page tells of sums at home; loaded where a stream has them."""

from collections.abc import Callable, Iterator

from agent.commands.ledger_view import counted
from agent.config import AgentConfig
from agent.config.summed_streams import sum_terms
from agent.home_time import home_time
from agent.page.facts import PlanFile
from edge_ldp.certify.sums import certify_sums
from edge_ldp.ratio import exact_epsilon


def running_periods(
    config: AgentConfig, now_s: int, *, is_silent: bool
) -> Iterator[tuple[str, str]]:
    """Yield when each stream's period that runs began and ends; a silent slot enters none."""
    how = "is added up once the silence ends" if is_silent else "is being added up"
    for terms in sum_terms(config).values():
        layout = terms.layout
        length = layout.slots * layout.slot_seconds
        begins = (
            layout.first_slot(layout.period(now_s // layout.slot_seconds)) * layout.slot_seconds
        )
        first, last = (home_time(at, "%Y-%m-%d") for at in (begins, begins + length - 1))
        yield f"sums of {terms.name}", f"{first} to {last} {how}; nothing of it left"


def sums_files(config: AgentConfig, prefix: str) -> Iterator[PlanFile]:
    """Yield the certificate of each stream's sums, and how it is proved again."""
    for terms in sum_terms(config).values():
        file = f"{prefix}{terms.name}.json"
        days = counted(terms.layout.days, "day")
        words = f"sums every {days}, noise b = {terms.scale:,} {terms.unit} × slots"
        yield PlanFile(terms.name, words, "", file, f"edge-ldp certify --check {file}")


def proof_of_sums(config: AgentConfig, name: str) -> Callable[[], bytes] | None:
    """Return what proves a stream's sums beside its reports; None: it has none."""
    terms = next((one for one in sum_terms(config).values() if one.name == name), None)
    if terms is None:
        return None
    policy = config.policy
    epsilon = exact_epsilon(policy.epsilon)
    return lambda: certify_sums(
        terms.layout,
        terms.span,
        terms.scale,
        policy.window.slots,
        epsilon * policy.window.reports,
        parts=terms.parts,
        reports=config.local_reports,
        report_epsilon=epsilon if config.local_reports else 0 * epsilon,
    ).to_json()

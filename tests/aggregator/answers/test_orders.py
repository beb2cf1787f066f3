"""By whom a plan was issued, as the console's page of plans says it."""

from dataclasses import replace
from pathlib import Path

from aggregator.answers.fleet.audit import orders
from aggregator.config import AggregatorConfig
from aggregator.plans import planner
from aggregator.plans.revision import Revision
from aggregator.store.rows import AuditRow
from edge_ldp.protocol.plan import Plan
from tests.aggregator.fakes import make_config

NOW_S = 1_800_000_000


def plans_of(config: AggregatorConfig) -> dict[int, Plan]:
    """Return a first plan, the planner's, an operator's, and that one under a new epoch."""
    stream = config.streams[0]
    first = planner.first_plan("demo", stream, epoch=1, now_s=NOW_S)
    made = planner.ordered(
        first, stream, theta=200, survey=(0, stream.ceiling), share=(1, 4), now_s=NOW_S + 1000
    )
    other = planner.ordered(
        made, stream, theta=300, survey=(0, stream.ceiling), share=(1, 4), now_s=NOW_S + 2000
    )
    return {1: first, 2: made, 3: other, 4: replace(other, epoch=4, issued_s=NOW_S + 3000)}


LED = Revision(NOW_S + 1000, 2, 2000, (0, 5000), (1, 1), ("θ is 2000",))


def test_who_ordered_a_plan_is_who_the_log_names(tmp_path: Path) -> None:
    config = make_config(tmp_path / "a.db")
    gas = replace(config, streams=(replace(config.streams[0], name="gas"), *config.streams))
    log = [
        AuditRow(NOW_S + 1000, "eve@here", "plan hold -c a.toml"),
        AuditRow(NOW_S + 1001, "eve@here", "plan publish -c a.toml --stream gas --theta 5"),
        AuditRow(NOW_S + 2003, "anna@here", "plan publish -c a.toml --theta 3000"),
        AuditRow(NOW_S + 3000, "ben@here", "plan repair -c a.toml --str=power --above 3"),
        AuditRow(NOW_S + 9000, "eve@here", "plan publish -c a.toml"),
    ]
    found = orders(config, config.streams[0], plans_of(config), [LED], log)
    assert found == {3: ("published by anna@here",), 4: ("issued anew by ben@here",)}
    assert orders(gas, gas.streams[1], plans_of(config), [LED], log[2:3]) == {
        3: ("published by an operator",)
    }


def test_without_a_log_a_plan_that_no_revision_led_to_tells_it(tmp_path: Path) -> None:
    config = make_config(tmp_path / "a.db")
    plans = plans_of(config)
    assert orders(config, config.streams[0], plans, [LED], []) == {3: ("published by an operator",)}
    stays = replace(LED, epoch=3, at_s=NOW_S + 2500)
    assert orders(config, config.streams[0], plans, [LED, stays], []) == {}
    assert orders(config, config.streams[0], {}, [], []) == {}

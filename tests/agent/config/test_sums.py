"""[streams.sums]: the window's ε, written once and shared; what a file must not say of it."""

import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from agent.config import AgentConfig, parse_config
from agent.config.summed_streams import sum_terms, window_cost
from agent.errors import ConfigError
from edge_ldp.period_sums import PeriodLayout
from tests.agent.samples import config_text
from tests.agent.summed import GAS
from tests.processes import run_told
from tests.tables import each

SHARING = "4493b9c42a80a903d0ef9ee06a9910f562d28048f9a584df05a84eb237a12cf8"
SUMS = 'mode = "sums"\n[streams.sums]\nshare = 1\n'
BOTH = 'mode = "both"\n[streams.sums]\nshare = 0.75\n'


def text(stream: str = SUMS, **changes: Any) -> str:
    return config_text(Path("s.db"), **{"window": (8, 97), "stream": stream} | changes)


def parsed(stream: str = SUMS, **changes: Any) -> AgentConfig:
    return parse_config(text(stream, **changes), "agent.toml")


def test_a_file_without_sums_is_what_it_was() -> None:
    config = parsed("")
    assert (config.sharing, config.local_reports) == (b"", 8)
    assert not config.shared
    assert (config.window.reports, config.window.streams) == (8, 1)
    assert sum_terms(config) == {}


def test_all_of_the_windows_epsilon_may_go_to_one_sum() -> None:
    """As the agreement has it: 43,470 W, ε 8 in any 97 slots, so b = ⌈97 · 43,470 / 8⌉."""
    config = parsed(ceiling=43_470)
    (terms,) = sum_terms(config).values()
    assert terms.layout == PeriodLayout(900, 7)
    assert (terms.span, terms.scale) == (43_470, -(-97 * 43_470 // 8))
    assert window_cost(terms, 97) <= 8
    assert terms.per_slot == Fraction(43_470, terms.scale)
    assert config.local_streams == ()
    assert config.policies() == ()


@pytest.mark.parametrize("share", ["0.01", "0.125", "0.25", "0.4", "0.4375"])
@pytest.mark.parametrize("slots", [5, 96, 97])
@pytest.mark.parametrize("shape", ["", "cells = 24", "cells = 24\nblock_hours = 4", "cells = 96"])
def test_sums_and_reports_together_are_within_the_windows_epsilon_AGT_33(
    share: str, slots: int, shape: str
) -> None:
    """Exactly, as rationals: what is not whole is nobody's. Reports: the most that a window has."""
    stream = f'mode = "both"\n[streams.sums]\nshare = {share}\n{shape}\n'
    config = parsed(stream, window=(8, slots), quantities=("power", "energy_import"))
    epsilon = Fraction(config.policy.epsilon)
    costs = [window_cost(one, slots) for one in sum_terms(config).values()]
    assert sum(costs) + config.window.reports * epsilon <= 8 * epsilon
    assert all(cost <= Fraction(share) * 8 for cost in costs)
    assert config.window.reports == 8 + (-Fraction(share) * 16 // 1)


def test_gas_by_the_hour_pays_for_25_hours_beside_97_quarter_hours_PRV_31() -> None:
    """All streams of a home are within one window, whatever their slots."""
    config = parsed(SUMS.replace("share = 1", "share = 0.5") + GAS)
    power, gas = sum_terms(config).values()
    assert (power.parts, gas.parts, config.slot_seconds, config.apart) == (
        1,
        4,
        900,
        frozenset({1}),
    )
    assert (gas.layout, gas.unit) == (PeriodLayout(3600, 1), "dm3")
    assert (power.scale, gas.scale) == (97 * 4000 // 4, 25 * 6000 // 4)
    for slots in (1, 2, 96, 97, 98):
        assert window_cost(gas, slots) == ((slots - 2) // 4 + 2) * gas.per_slot
    assert window_cost(power, 97) + window_cost(gas, 97) <= 8
    beside = parsed(GAS)
    assert (beside.window.reports, beside.local_reports, beside.apart) == (4, 4, frozenset({1}))
    hours = beside.sharing, parsed(GAS.replace("3600", "1800")).sharing
    assert len({*hours, parsed(GAS.replace("3600", "900")).sharing}) == 3
    assert parsed().sharing.hex() == SHARING, "no stored state begins a window anew for this"


def test_a_home_may_have_gas_alone_and_electricity_by_the_hour() -> None:
    gas = parsed(quantities=(), tables=GAS)
    assert (gas.slot_seconds, gas.apart, gas.local_streams) == (3600, frozenset({0}), ())
    assert sum_terms(gas)[0].scale == 97 * 6000 // 4, "its own slots are the window's"
    hours = GAS.replace('"gas"', '"energy_import"').replace("dm3", "Wh")
    assert parsed(hours).apart == frozenset({1})


def test_a_homes_own_ceiling_and_least_scale_change_its_noise_and_not_its_promise() -> None:
    plain = parsed(SUMS, ceiling=43_470)
    own = parsed(SUMS + "ceiling = 17_250\n", ceiling=43_470)
    least = parsed(SUMS + "least_b = 2_000_000\n", ceiling=43_470)
    scales = [sum_terms(one)[0].scale for one in (plain, own, least)]
    assert scales == [527_074, 209_157, 2_000_000]
    assert [sum_terms(one)[0].span for one in (plain, own, least)] == [43_470, 17_250, 43_470]
    assert plain.sharing == own.sharing != least.sharing


@pytest.mark.parametrize(
    "change",
    [
        {"window": (8, 98)},
        {"window": (7, 97)},
        {"policy": "epsilon = 0.5"},
        {"stream": SUMS + "cells = 4\n"},
        {"stream": SUMS + "days = 28\n"},
        {"stream": BOTH},
        {"stream": ""},
        {"slot_seconds": 1800},
    ],
)
def test_another_share_mode_window_or_layout_is_another_sharing(change: dict[str, Any]) -> None:
    assert parsed(**change).sharing != parsed().sharing


@pytest.mark.parametrize(
    ("key", "lines"),
    each(
        ("streams[0].sums", 'mode = "sums"\n', 'mode = "local"\n[streams.sums]\nshare = 1\n'),
        ("policy.window.reports", 'mode = "both"\n[streams.sums]\nshare = 1\n'),
        ("streams[0].sums.share", SUMS.replace("share = 1", "share = 0")),
        ("streams[0].sums.share", SUMS.replace("share = 1", "share = 1.5")),
        ("streams[0].sums.share", SUMS.replace("share = 1", "share = nan")),
        ("streams[0].sums.share", SUMS.replace("share = 1", "share = 1e-30")),
        ("streams[0].sums.share", SUMS.replace("share = 1", "")),
        ("streams[0].sums.cells", SUMS + "cells = 5\n", SUMS + "cells = 96\ndays = 1\n"),
        ("streams[0].sums.days", SUMS + "days = 0\n", SUMS + "days = 367\n"),
        ("streams[0].sums.offset_s", SUMS + "offset_s = 450\n", SUMS + "offset_s = 86_400\n"),
        ("streams[0].sums.block_hours", SUMS + "cells = 24\nblock_hours = 5\n"),
        ("streams[0].sums.block_hours", SUMS + "cells = 4\nblock_hours = 4\n"),
        ("streams[0].sums.ceiling", SUMS + "ceiling = 0\n", SUMS + "ceiling = 4_001\n"),
        ("streams[0].sums.least_b", SUMS + "least_b = 0\n"),
        ("streams[0].sums.least_b", SUMS + "least_b = 281_474_976_710_656\n"),
        ("streams[0].sums.least_share", SUMS + "least_share = 1.1\n"),
        ("streams[0].sums.least_days", SUMS + "least_days = 1\n"),
        ("streams[0].mode", 'mode = "sealed"\n'),
    ),
)
def test_what_does_not_divide_the_day_or_add_up_is_refused_by_its_key_AGT_33(
    lines: str, key: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed(lines)
    assert key in [one.key for one in (caught.value, *caught.value.others)]


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"policy": "lifetime = { reports = 9 }"}, "epsilon, beside sums: they are no reports"),
        ({"stream": SUMS + "cells = 24\nblock_hours = 4\n", "slot_seconds": 60}, "block_hours"),
        ({"quantities": ("power", "energy_import")}, "streams.sums.share"),
        ({"stream": GAS.replace("3600", "1000")}, r"streams\[1\].slot_seconds: .* so many times"),
        ({"stream": GAS.replace("3600", "6300")}, r"streams\[1\].slot_seconds: .* divides the day"),
        ({"stream": GAS.replace("3600", "60")}, r"streams\[1\].slot_seconds: .* so many times"),
        (
            {"stream": GAS.replace('"sums"', '"both"')},
            r"streams\[1\].mode: expected 'sums' for gas",
        ),
        ({"stream": GAS.replace("dm3", "Wh")}, r"streams\[1\].unit: expected 'dm3' for gas"),
        ({"stream": GAS, "meter": 'protocol = "sml"'}, "sml tells no gas"),
        ({"policy": "epsilon = 8"}, "share: expected a share that makes ε .* at most 32"),
    ],
)
def test_what_sums_cannot_stand_beside_is_refused_AGT_33(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        parsed(**changes)


def test_a_streams_own_ceiling_is_told_once_and_not_of_its_sums_AGT_33() -> None:
    with pytest.raises(ConfigError) as caught:
        parsed(ceiling=-5)
    assert [one.key for one in (caught.value, *caught.value.others)] == ["streams[0].ceiling"]


def test_a_curators_file_has_no_sums_AGT_33() -> None:
    curator = f'mode = "curator"\n{text()}\n[curator]\nepsilon = 1\nmethod = "fixed"\ntheta = 9\n'
    with pytest.raises(ConfigError, match="a curator's file has no sums"):
        parse_config(curator, "agent.toml")


def test_nothing_of_sums_is_loaded_where_no_stream_has_any() -> None:
    """The memory is theirs who use it."""
    script = (
        "import sys\n"
        "from agent import main\n"
        "from tests.agent.samples import make_config\n"
        "config = make_config('s.db')\n"
        "assert (config.window, config.sharing, config.policies())\n"
        "print([one for one in sys.modules if 'period_sums' in one or 'curator.' in one])"
    )
    done = run_told([sys.executable, "-c", script], check=True)
    assert done.stdout == "[]\n"


def test_a_share_of_too_much_says_of_what_it_is_one() -> None:
    """`--reports 97` beside an invitation's share makes it: nothing is wrong with the share."""
    with pytest.raises(
        ConfigError, match=r"sums\.share: .* \[policy\] epsilon × \[policy\.window]"
    ):
        sum_terms(parsed(BOTH, window=(97, 97)))

"""The curator's core: what a [curator] table means, and a state that tells nothing without key."""

import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from agent.commands.curator_view import check_facts, spending_text, spending_view
from agent.config import load_config
from agent.config.curated_streams import setups
from agent.curator.stream import StreamCurator, open_state, public_state, series_row, stored_state
from agent.errors import ConfigError
from agent.state.manifest import manifest
from edge_ldp.continual import NoisyMax, Quantile, parse_state
from edge_ldp.entropy import system_draw
from edge_ldp.protocol.strict_json import MessageError
from tests.agent.curated import (
    FIXED,
    QUANTILE,
    Bench,
    curator_config,
    curator_text,
    sealed_by_the_chunks_key,
)
from tests.agent.samples import config_text, make_config
from tests.processes import run_told

EXAMPLE = Path(__file__).parents[3] / "config" / "agent-curator.toml"
TOPS = "epsilon = 0.1\nreadings = 100\nchunk = 4096\n"


def refusal(text: str) -> str:
    from agent.config import parse_config  # noqa: PLC0415 (only here)

    with pytest.raises(ConfigError) as refused:
        parse_config(text, "agent.toml")
    return str(refused.value)


def test_the_example_means_what_its_comments_say() -> None:
    config = load_config(EXAMPLE)
    (setup,) = setups(config)
    assert isinstance(setup.design.optimiser, Quantile)
    assert setup.design.optimiser.share == Fraction(95, 100)
    assert setup.design.readings == 4 * 7 * 96
    assert setup.design.epsilon_per_reading == Fraction(1, 10)
    assert (setup.design.shape.block, setup.design.shape.levels) == (96, 1)
    assert setup.public.ceiling == config.streams[0].ceiling
    facts = check_facts(config)
    assert facts["epsilon_per_reading"] == facts["epsilon_per_slot"] == 0.1
    assert "2688 readings" in str(facts["theta_from"])


def test_the_methods_are_those_of_the_library(tmp_path: Path) -> None:
    tops = setups(curator_config(tmp_path / "s", TOPS))[0].design
    assert isinstance(tops.optimiser, NoisyMax)
    assert (tops.shape.kind, tops.shape.fanout, tops.readings) == ("causal", 16, 100)
    causal = setups(curator_config(tmp_path / "s", FIXED + 'structure = "causal"\n'))[0]
    assert causal.public.kind == "causal"
    assert causal.design.limit(10**9) <= 4000
    renewed = TOPS + 'renew_chunks = 2\nrenewal = "sequential"\ntheta_epsilon = 0.2\n'
    both = setups(curator_config(tmp_path / "s", renewed))[0]
    assert both.public.paid == (3, 10)
    assert both.public.epsilon == (1, 10)


def test_two_streams_of_a_home_add_up(tmp_path: Path) -> None:
    config = curator_config(tmp_path / "s", TOPS, quantities=("power", "energy_import"))
    assert [setup.key for setup in setups(config)] == [256, 257]
    assert check_facts(config)["epsilon_per_slot"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("curator", "key"),
    [
        ("", "curator.epsilon"),
        ("epsilon = 0\nreadings = 9", "curator.epsilon"),
        ("epsilon = nan\nreadings = 9", "curator.epsilon"),
        ("epsilon = 0.00001\nreadings = 9", "curator.epsilon"),
        ("epsilon = 1", "curator.readings"),
        ("epsilon = 1\nreadings = 0", "curator.readings"),
        ("epsilon = 1\nreadings = 9\ntheta = 5", "curator.theta"),
        ("epsilon = 1\nreadings = 9\nshare = 0.5", "curator.share"),
        ('epsilon = 1\nreadings = 9\nmethod = "quantile"', "curator.share"),
        ('epsilon = 1\nreadings = 9\nmethod = "quantile"\nshare = 1', "curator.share"),
        ('epsilon = 1\nmethod = "fixed"', "curator.theta"),
        ('epsilon = 1\nmethod = "fixed"\ntheta = 5\nreadings = 9', "curator.readings"),
        ('epsilon = 1\nmethod = "fixed"\ntheta = 4001', "curator.theta"),
        ('epsilon = 1\nmethod = "fixed"\ntheta = 5\ntheta_epsilon = 1', "curator.theta_epsilon"),
        ("epsilon = 1\nreadings = 9\nchunk = 24\nfanout = 5\npruned = 1", "curator.chunk"),
        ("epsilon = 1\nreadings = 9\npruned = 9", "curator.pruned"),
        ('epsilon = 1\nreadings = 9\nstructure = "tree"', "curator.structure"),
        ('epsilon = 1\nreadings = 9\nstructure = "consistent"', "curator.structure"),
        ('epsilon = 1\nreadings = 9\nsmoother = "median"', "curator.smoother"),
        ('epsilon = 1\nreadings = 9\nmissing = "guess"', "curator.missing"),
        ("epsilon = 1\nreadings = 9\nfrom_server = true", "curator.from_server"),
        (
            'epsilon = 1\nreadings = 9000\nchunk = 16\nrenew_chunks = 1\nrenewal = "sequential"',
            "curator.readings",
        ),
    ],
)
def test_a_bad_curator_table_is_named_AGT_12(tmp_path: Path, curator: str, key: str) -> None:
    assert f": {key}: expected" in refusal(curator_text(tmp_path / "s", curator + "\n"))


def test_a_lifetime_of_the_local_mode_is_refused(tmp_path: Path) -> None:
    given = curator_text(tmp_path / "s", tables="[policy.lifetime]\nreports = 5")
    assert "policy.lifetime: expected none" in refusal(given)


def test_mode_and_table_belong_together(tmp_path: Path) -> None:
    local = config_text(tmp_path / "s")
    assert "curator: expected no such table" in refusal(f"{local}\n[curator]\n{FIXED}")
    assert "curator: expected a [curator] table" in refusal(f'mode = "curator"\n{local}')
    assert "mode: expected one of 'local', 'curator'" in refusal(f'mode = "both"\n{local}')
    assert make_config(tmp_path / "s").mode == "local"
    below = curator_text(tmp_path / "s").replace("low = 0", "low = -5")
    assert "streams[0].low: expected 0" in refusal(below)


def curator(tmp_path: Path, table: str = FIXED, **more: Any) -> StreamCurator:
    return StreamCurator(
        setups(curator_config(tmp_path / "s", table))[0], 100, system_draw(), **more
    )


def test_a_stored_state_goes_on_with_the_same_noise_and_needs_its_secret(tmp_path: Path) -> None:
    one = curator(tmp_path)
    for slot in range(101, 104):  # inside a block
        one.push(slot, 700)
    row = series_row(one, one.state())
    kept = stored_state(row, one.setup)
    assert kept == one.state()
    other = curator(tmp_path, state=kept)
    assert [other.push(slot, 5) for slot in range(104, 109)] == [
        one.push(slot, 5) for slot in range(104, 109)
    ]
    assert stored_state(replace(row, secret=None), one.setup) is None
    assert stored_state(replace(row, secret=b"{}"), one.setup) is None


def test_what_may_be_known_of_a_state_depends_on_no_reading_PRV_05(tmp_path: Path) -> None:
    """Neither totals nor the digest of what was seen: with the key both can be searched."""
    table = FIXED.replace("fanout = 2", "fanout = 8").replace("chunk = 8", "chunk = 64")
    words = system_draw(lambda size: bytes(at * 37 % 251 for at in range(size)))
    told = []
    for reading in (321, 999):
        one = StreamCurator(setups(curator_config(tmp_path / "s", table))[0], 100, words.below)
        for slot in range(101, 106):
            one.push(slot, reading)
        told.append(public_state(one.state()))
        assert b"321" not in told[-1]
    assert told[0] == told[1]


def test_a_state_as_it_once_stood_in_the_journal_opens_with_its_key(tmp_path: Path) -> None:
    one = curator(tmp_path)
    one.push(101, 700)
    payload, key = sealed_by_the_chunks_key(one.state())
    assert open_state(payload, key) == one.state()
    for wrong in (None, b"", key[:-1]):
        with pytest.raises(MessageError):
            open_state(payload, wrong)


def test_a_failed_commit_is_taken_back_and_draws_the_same_again(tmp_path: Path) -> None:
    one = curator(tmp_path)
    one.push(101, 10)
    one.keep(one.state())
    first = one.push(102, 20)
    one.drop()
    assert one.slot == 101
    assert one.push(102, 20) == first


def test_values_outside_the_range_are_cut_and_released_like_any_other(tmp_path: Path) -> None:
    """With the same noise they give what the range's ends give."""
    one = curator(tmp_path)
    one.push(101, 700)
    outside, ends = (curator(tmp_path, state=parse_state(one.state().to_json())) for _ in range(2))
    for slot, far, near in ((102, -5000, 0), (103, 10**12, 4000)):
        made = outside.push(slot, far)
        assert made is not None
        assert made == ends.push(slot, near)
    assert outside.state() == ends.state()


def test_the_account_adds_up_what_every_series_spent(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "s.db", QUANTILE)
    bench.push(*[100] * (12 + 10))
    facts = spending_view(bench.curated.series())
    (series,) = facts["series"]
    assert (series["choices"], series["chunks"], series["released"]) == (1, 2, 10)
    assert series["epsilon_per_reading"] == facts["epsilon_per_slot"] == 0.5
    assert facts["epsilon_if_one"] == 0.5 * (12 + 10)
    assert "parallel" in series["composition"]
    bench.restart(FIXED)
    bench.push(100, slots=2)
    facts = spending_view(bench.curated.series())
    assert [one["ended"] for one in facts["series"]] == [1, 0]
    assert facts["released"] == 11
    assert facts["epsilon_per_slot"] == 1
    text = spending_text(facts)
    assert "curated power" in text
    assert "any one slot" in text


def test_sequential_renewal_is_charged_on_top(tmp_path: Path) -> None:
    table = QUANTILE.replace("readings = 12", "readings = 8") + (
        'renew_chunks = 1\nrenewal = "sequential"\n'
    )
    bench = Bench(tmp_path / "s.db", table)
    bench.push(*[100] * (8 + 16))
    (series,) = spending_view(bench.curated.series())["series"]
    assert series["choices"] == 3
    assert series["epsilon_per_reading"] == 1
    assert "sequential" in series["composition"]


def test_terms_change_with_whatever_releases_depend_on(tmp_path: Path) -> None:
    (setup,) = setups(curator_config(tmp_path / "s"))
    other = replace(setup, design=replace(setup.design, epsilon=Fraction(2)))
    assert setup.terms != other.terms


LOADED = """
import sys
from pathlib import Path
import agent.main
from agent.config import load_config
config = load_config(Path(sys.argv[1]))
if config.mode == "curator":
    import agent.curator.mode
print(*(name for name in ("edge_ldp.continual", "numpy") if name in sys.modules))
"""


@pytest.mark.parametrize(
    ("file", "loaded"), [("agent", ""), ("agent-curator", "edge_ldp.continual")]
)
def test_only_the_curator_mode_loads_its_library_and_none_loads_numpy(
    file: str, loaded: str
) -> None:
    words = [sys.executable, "-c", LOADED, str(EXAMPLE.with_name(f"{file}.toml"))]
    done = run_told(words, check=True)
    assert done.stdout.strip() == loaded


def test_the_manifest_tells_what_is_published_and_who_could_find_a_reading(tmp_path: Path) -> None:
    told = manifest(curator_config(tmp_path / "s", TOPS))
    assert told["mode"] == "curator"
    assert told["curated"] == {
        "epsilon": "0.1",
        "theta_epsilon": "0.1",
        "method": "tops",
        "readings": 100,
        "chunk": 4096,
        "missing": "skip",
    }
    assert "key" in str(told["who"])
    assert "epsilon_per_report" not in told
    assert "mode" not in manifest(make_config(tmp_path / "s"))

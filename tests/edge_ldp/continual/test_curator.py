"""One reading in, one whole number out: restarts, gaps, bad input, budgets."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pytest

from edge_ldp import EntropyError, ParameterError
from edge_ldp.continual import (
    Curator,
    Quantile,
    Released,
    Renewal,
    Tops,
    tops_design,
)
from edge_ldp.continual.threshold import Counts
from tests.edge_ldp.continual.paths import noise_from
from tests.edge_ldp.continual.streams import DESIGNS, READINGS, SMALL, run

F = Fraction
NONE, ONE = F(0), F(1)


@pytest.mark.parametrize("name", DESIGNS)
def test_every_reading_gives_one_whole_number_once_theta_is_known(name: str) -> None:
    design = DESIGNS[name]
    made = run(design, [*READINGS])
    assert [release.slot for release in made] == list(range(300))
    for release in made:
        assert (release.value is None) == (release.theta is None)
        assert type(release.value) in (int, type(None))
    assert sum(release.value is not None for release in made[: design.readings + 64]) == 64


@pytest.mark.parametrize("name", ["tops", "unpruned", "causal", "mean", "odd chunk", "median"])
def test_released_blocks_add_up_to_clamped_readings_and_their_noise(name: str) -> None:
    """The same key without readings gives the noise alone."""
    design = DESIGNS[name]
    count = 10 + 2 * design.shape.chunk
    size = design.shape.block
    for theta in (3, 50):
        fixed = tops_design(
            **{**SMALL, "chunk": design.shape.chunk},
            pruned=design.shape.pruned,
            kind=design.shape.kind,
            smoother=design.smoother,
            theta=theta,
        )
        real = [release.value or 0 for release in run(fixed, [*READINGS[:count]])]
        zero = [release.value or 0 for release in run(fixed, [0] * count)]
        true = [min(reading, theta) for reading in READINGS[:count]]
        for at in range(0, len(real) - size, size):
            part = slice(at, at + size)
            assert sum(real[part]) - sum(zero[part]) == sum(true[part])


def test_no_reading_and_no_true_total_is_in_the_state() -> None:
    """A reading of 7,654,321 leaves no trace that is legible without the key."""
    big = 7_654_321
    for kind, pruned in (("consistent", 1), ("tree", 0), ("causal", 1)):
        options = {**SMALL, "ceiling": 10**7, "theta": 10**7, "pruned": pruned, "kind": kind}
        curator = Tops(draw=noise_from(2), **options)
        curator.push(big)
        assert str(big).encode() not in curator.state().to_json()
    waiting = Tops(draw=noise_from(2), **{**SMALL, "ceiling": 10**6})
    waiting.push(654_321)
    assert b"654321" not in waiting.state().to_json()


@pytest.mark.parametrize("bad", [-1, 1.5, "3", True, False, Fraction(1), float("nan")])
def test_readings_that_are_no_naturals_are_refused_and_change_nothing(bad: Any) -> None:
    curator, other = (Curator(DESIGNS["tops"], draw=noise_from(3)) for _ in range(2))
    for reading in READINGS[:30]:
        with pytest.raises(ParameterError) as caught:
            curator.push(bad)
        assert str(bad) not in str(caught.value).replace("0, or", "")
        assert curator.push(reading) == other.push(reading)
    assert curator.state() == other.state()


def test_missing_slots_take_no_noise_no_budget_and_are_not_zero() -> None:
    gappy = Curator(DESIGNS["tops"], draw=noise_from(3))
    plain = Curator(DESIGNS["tops"], draw=noise_from(3))
    collected = Released(gappy.design)
    for k, reading in enumerate(READINGS[:100]):
        if k % 3 == 0:
            assert gappy.push(None).value is None
        release = gappy.push(reading, slot=gappy.state().slot + 1 + k % 2)
        assert release.value == plain.push(reading).value
        collected.add(release)
    assert gappy.account == plain.account
    slots = gappy.state().slot + 1
    whole = collected.range(0, slots)
    assert whole.readings == 90
    assert whole.readings + whole.missing == slots


def test_missing_slots_count_as_zero_where_the_design_says_so() -> None:
    made = run(DESIGNS["zero"], [None] * 20)
    assert made == run(DESIGNS["tops"], [0] * 20)
    curator = Curator(DESIGNS["zero"])
    with pytest.raises(ParameterError):
        curator.push(1, slot=5)


def test_a_slot_is_never_released_twice() -> None:
    curator = Curator(DESIGNS["public"], draw=noise_from(1))
    curator.push(3, slot=10)
    for slot in (10, 9, -1, True, 1.5):
        with pytest.raises(ParameterError):
            curator.push(3, slot=slot)  # type: ignore[arg-type]
    assert curator.push(3).slot == 11


def test_nothing_is_released_or_spent_before_theta_is_known() -> None:
    """m larger than the stream: it waits, and says for how many."""
    curator = Curator(tops_design(**{**SMALL, "readings": 1000}))
    assert all(curator.push(reading).value is None for reading in READINGS)
    assert curator.missing_readings == 700
    assert curator.theta is None
    assert curator.account.epsilon_per_reading == 0
    assert not [charge.runs for charge in curator.account.charges if charge.runs]


@dataclass(frozen=True)
class Seen:
    """A rule for θ that keeps what it is shown."""

    shown: list[Counts] = field(default_factory=list)
    epsilon: Fraction = ONE
    delta: Fraction = NONE

    def choose(self, counts: Counts, draw: Callable[[int], int]) -> int:
        self.shown.append(dict(counts))
        return 1 + draw(9)


@pytest.mark.parametrize("name", ["tops", "sequential"])
def test_a_reading_above_the_ceiling_counts_as_the_ceiling(name: str) -> None:
    """So memory is bounded, whatever is read, in the first readings and in those of renewals."""
    seen = Seen()
    curator = Curator(replace(DESIGNS[name], optimiser=seen), draw=noise_from(5))
    readings = [at % 2 * 10**9 + 49 + at % 3 for at in range(75)]
    for reading in readings:
        curator.push(reading)
    chosen_from = [readings[:10], readings[64:74]] if name == "sequential" else [readings[:10]]
    assert seen.shown == [Counter(min(one, 50) for one in part) for part in chosen_from]


def test_entropy_that_fails_leaves_the_slot_to_be_pushed_again() -> None:
    broken = [True]

    def draw(n: int) -> int:
        if broken[0]:
            raise EntropyError("no randomness")
        return n // 2

    curator = Curator(DESIGNS["tops"], draw=draw)
    for reading in READINGS[:9]:
        curator.push(reading)
    for _ in range(3):
        with pytest.raises(EntropyError):
            curator.push(READINGS[9])
    broken[0] = False
    assert curator.push(READINGS[9]).slot == 9
    broken[0] = True
    before = curator.state()
    with pytest.raises(EntropyError):
        curator.push(4)
    assert curator.state() == before
    broken[0] = False
    assert curator.push(4).slot == 10


def test_without_randomness_a_renewed_theta_waits_and_no_released_value_is_lost_AGT_11() -> None:
    """The last value of a chunk is released by then: it must come out, and once."""
    design = DESIGNS["sequential"]
    broken, noise = [False], noise_from(3)

    def draw(n: int) -> int:
        if broken[0]:
            raise EntropyError("no randomness")
        return noise(n)

    curator = Curator(design, draw=draw)
    end = design.readings + design.renewal.every * design.shape.chunk - 1 if design.renewal else 0
    for reading in READINGS[:end]:
        curator.push(reading)
    theta, choices = curator.theta, curator.state().choices
    broken[0] = True
    last = curator.push(READINGS[end])
    assert (last.slot, last.theta) == (end, theta)
    assert last.value is not None
    assert (curator.theta, curator.state().choices) == (theta, choices)
    with pytest.raises(EntropyError):
        curator.push(4)
    broken[0] = False
    assert curator.push(4).slot == end + 1


def test_budgets_add_up() -> None:
    def spent(name: str) -> tuple[list[tuple[str, int, int]], Fraction, Fraction]:
        curator = Curator(DESIGNS[name], draw=noise_from(4))
        made = [curator.push(reading) for reading in READINGS]
        rows = [(c.what, c.runs, c.readings) for c in curator.account.charges]
        released = sum(release.value is not None for release in made)
        assert rows[-1][2] == released
        assert curator.account.composition
        return rows, curator.account.epsilon_per_reading, curator.design.epsilon_per_reading

    half = F(1, 2)
    assert spent("tops") == ([("theta", 1, 10), ("stream", 5, 290)], half, half)
    assert spent("public") == ([("stream", 5, 300)], half, half)
    assert spent("parallel") == ([("theta", 3, 30), ("stream", 5, 270)], half, half)
    assert spent("sequential") == ([("theta", 5, 50), ("stream", 5, 290)], F(1), F(1))


def test_delta_is_charged_where_theta_has_one() -> None:
    approximate = Quantile(F(1), delta=F(1, 64**2))
    stream = Curator(replace(DESIGNS["tops"], optimiser=approximate), draw=noise_from(4))
    pure = Curator(DESIGNS["tops"], draw=noise_from(4))
    assert stream.account.delta_per_reading == 0  # nothing was chosen yet
    for reading in READINGS[:80]:
        stream.push(reading)
        pure.push(reading)
    assert stream.account.delta_per_reading == F(1, 64**2)
    assert [charge.delta for charge in stream.account.charges] == [F(1, 64**2), 0]
    assert pure.account.delta_per_reading == 0


def test_theta_follows_the_stream_when_it_is_renewed() -> None:
    options: dict[str, Any] = {**SMALL, "ceiling": 5000, "epsilon": 30, "readings": 32}
    for mode in ("parallel", "sequential"):
        curator = Tops(draw=noise_from(6), pruned=0, renewal=Renewal(1, mode), **options)
        found = [curator.push(10 if k < 96 else 1000).theta for k in range(400)]
        assert found[40] in range(8, 40)
        assert max(theta or 0 for theta in found) > 900


def test_a_single_interrupted_chunk_keeps_its_theta_when_renewal_needs_its_readings() -> None:
    design = DESIGNS["sequential"]
    draw = noise_from(7)
    curator = Curator(design, draw=draw)
    for reading in READINGS[:70]:
        curator.push(reading)
    curator = Curator(design, draw=draw, state=curator.state())
    before = curator.theta
    for reading in READINGS[70:75]:
        curator.push(reading)
    assert (curator.theta, curator.account.choices) == (before, 1)


def test_tops_is_a_stream_whose_sums_tell_the_truth_below_theta() -> None:
    stream = Tops(epsilon=1, ceiling=100, readings=64, chunk=256, draw=noise_from(8))
    collected = Released(stream.design)
    for reading in READINGS:
        collected.add(stream.push(reading))
    assert (stream.design.shape.kind, stream.design.shape.fanout) == ("consistent", 16)
    low, high = collected.range(64, 300).interval()
    assert low < sum(min(r, stream.theta or 0) for r in READINGS[64:]) < high

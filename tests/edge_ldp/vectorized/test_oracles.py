"""From the same bytes the same reports as the scalar clients, whatever the bytes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_ldp import EntropyError, ParameterError
from edge_ldp.device.draw import WORD_RANGE, limit_of
from edge_ldp.device.oracle import Oue as OueClient
from edge_ldp.oracles import Grr, HaarHrr, Hierarchy, Hrr, Olh, Oracle, Oue
from edge_ldp.oracles.hierarchy import PADDING
from edge_ldp.vectorized import oracles, perturb_oracle_many
from tests.edge_ldp.laws import Bytes, draw_from, words
from tests.edge_ldp.oracles.small import REAL, SMALL, named

TOP = WORD_RANGE - 1
EVERY = [oracle for oracle in [*SMALL, *REAL] if oracle.name != "oue" or oracle.size < 50]


def filled(oracle: Oracle, report: Any) -> list[int]:
    """Return a report as a row: short ones of a tree end with -1."""
    return [*report, *[PADDING] * (oracle.report_length - len(report))]


def both_ways(oracle: Oracle, values: list[int], entropy: bytes) -> tuple[Any, Any]:
    """Return the scalar and the vectorized reports; both must use up the same bytes."""
    draw, source = draw_from(entropy)
    scalar = [filled(oracle, oracle.perturb(value, draw=draw)) for value in values]
    used = Bytes(entropy)
    reports = perturb_oracle_many(oracle, np.array(values, np.int64), entropy=used)
    assert used.left == source.left
    assert reports.shape == (len(values), oracle.report_length)
    return scalar, reports.tolist()


@st.composite
def mostly_refused(draw: st.DrawFn) -> bytes:
    """Return words of which many are next to the top, the limits of most ranges."""
    near = st.integers(0, 40).map(lambda x: TOP - x)
    return words(*draw(st.lists(st.integers(0, TOP) | near, max_size=60)), *range(1 << 10))


@settings(max_examples=200)
@given(st.sampled_from(EVERY), st.lists(st.integers(0), max_size=12), mostly_refused())
def test_the_same_bytes_give_the_same_reports(
    oracle: Oracle, values: list[int], entropy: bytes
) -> None:
    scalar, vectorized = both_ways(oracle, [value % oracle.size for value in values], entropy)
    assert vectorized == scalar


@pytest.mark.parametrize("oracle", EVERY, ids=named)
def test_a_word_refused_in_any_place_of_any_report_changes_no_other(oracle: Oracle) -> None:
    values = [0, oracle.size - 1, oracle.size // 2]
    plain: list[int] = []
    ranges: list[int] = []

    def draw(n: int) -> int:
        ranges.append(n)
        plain.append((5 * len(plain) + 1) % min(n, 1 << 60))
        return plain[-1] % n

    for value in values:
        oracle.perturb(value, draw=draw)
    wanted = both_ways(oracle, values, words(*plain))[0]
    for at, n in enumerate(ranges):
        for refused in ([TOP], [limit_of(n)], [TOP, limit_of(n)]):
            if limit_of(n) < WORD_RANGE:
                entropy = words(*plain[:at], *refused, *plain[at:])
                assert both_ways(oracle, values, entropy) == (wanted, wanted)


@pytest.mark.parametrize("kind", [Grr, Olh, Hrr, Oue, Hierarchy, HaarHrr])
def test_chunks_are_seamless(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = kind(epsilon=2, size=40)
    rng = np.random.default_rng(5)
    entropy = rng.bytes(300 * 8 * 41)
    values = rng.integers(0, 40, 300)
    whole = perturb_oracle_many(oracle, values, entropy=Bytes(entropy)).tolist()
    monkeypatch.setattr(oracles, "_CHUNK", 64)
    assert perturb_oracle_many(oracle, values, entropy=Bytes(entropy)).tolist() == whole
    source = Bytes(entropy)
    parts = np.split(values, [7, 200])
    made = [perturb_oracle_many(oracle, part, entropy=source) for part in parts]
    assert np.concatenate(made).tolist() == whole


def test_a_large_batch_of_mixed_levels_is_the_scalars() -> None:
    oracle = Hierarchy(epsilon=2, size=40)
    assert len({level.report_length for level in oracle.levels}) == 2
    entropy = np.random.default_rng(6).bytes(3_000 * 4 * 8)
    values = (np.arange(3_000) * 7 % 40).tolist()
    scalar, vectorized = both_ways(oracle, values, entropy)
    assert vectorized == scalar


@pytest.mark.parametrize("oracle", [*SMALL, *REAL], ids=named)
def test_rows_can_be_counted_as_they_are(oracle: Oracle) -> None:
    values = np.arange(min(oracle.size, 9))
    rows = perturb_oracle_many(oracle, values).tolist()
    for row in rows:
        _, code = oracle.split(row)
        assert code >= 0
    if oracle.size < 2000:
        assert len(oracle.estimate(rows)) == oracle.size


@pytest.mark.parametrize("oracle", EVERY, ids=named)
def test_a_source_that_runs_dry_gives_no_report(oracle: Oracle) -> None:
    with pytest.raises(EntropyError):
        perturb_oracle_many(oracle, [0, 1, 0, 1, 0, 1], entropy=Bytes(bytes(39)))


@pytest.mark.parametrize("oracle", EVERY, ids=named)
def test_only_categories_are_randomised_and_no_byte_is_read_for_others(oracle: Oracle) -> None:
    def never(_: int) -> bytes:
        pytest.fail("bytes were read")

    wrong: list[list[Any]] = [
        [0, -1], [oracle.size], [1, oracle.size + 1], [1.0], ["1"], [True], [None], [1 << 70],
    ]  # fmt: skip
    for values in wrong:
        with pytest.raises(ParameterError) as refused:
            perturb_oracle_many(oracle, np.array(values), entropy=never)
        assert refused.value.name == "values"
    with pytest.raises(ParameterError):
        perturb_oracle_many(oracle, np.array([1, (1 << 64) - 1], np.uint64), entropy=never)


def test_values_of_any_integer_type_are_taken() -> None:
    oracle = Hrr(epsilon=1, size=100)
    for dtype in (np.uint8, np.uint32, np.uint64, np.int8, np.int64):
        made = perturb_oracle_many(oracle, np.array([0, 99, 7], dtype), entropy=bytes)
        assert made.tolist() == [[0, 0]] * 3


def test_shapes_are_flattened_and_nothing_gives_no_rows() -> None:
    for oracle in (Grr(epsilon=1, size=12), Oue(epsilon=1, size=12), Hierarchy(epsilon=1, size=12)):
        grid = perturb_oracle_many(oracle, np.arange(12).reshape(3, 4))
        assert grid.shape == (12, oracle.report_length)
        none = perturb_oracle_many(oracle, np.zeros(0, np.int64))
        assert none.shape == (0, oracle.report_length)
        wanted = np.uint8 if isinstance(oracle.client, OueClient) else np.int64
        assert grid.dtype == none.dtype == wanted


def test_a_client_that_is_none_of_ours_is_refused() -> None:
    class Other(Grr):
        pass

    with pytest.raises(ParameterError):
        perturb_oracle_many(Other.of(object.__new__(type("C", (), {"size": 3, "perturb": 0}))), [1])

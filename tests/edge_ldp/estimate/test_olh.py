import numpy as np
import pytest

from edge_ldp.errors import CountsError
from edge_ldp.estimate import pure
from edge_ldp.estimate.pure import PRIME, olh_counts


def reports(n: int, g: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack(
        [rng.integers(1, PRIME, n), rng.integers(0, PRIME, n), rng.integers(0, g, n)], 1
    )


@pytest.mark.parametrize("g", [2, 3, 4, 22, 65_536, PRIME])
def test_they_are_the_hashes_one_by_one(g: int) -> None:
    given = reports(300, g)
    given[:4] = [1, 0, 0], [PRIME - 1, PRIME - 1, g - 1], [PRIME - 1, 0, 1], [1, PRIME - 1, 0]
    expected = [
        sum((a * item + b) % PRIME % g == code for a, b, code in given.tolist())
        for item in range(40)
    ]
    assert olh_counts(given, 40, g).tolist() == expected


def test_blocks_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    given = reports(1000, 3)
    whole = olh_counts(given, 20, 3)
    monkeypatch.setattr(pure, "_BLOCK", 64)
    np.testing.assert_array_equal(olh_counts(given, 20, 3), whole)
    assert olh_counts(given[:0], 2, 3).tolist() == [0, 0]


def test_what_is_no_report_is_refused() -> None:
    for wrong in ([[0, 1, 1]], [[1, -1, 1]], [[1, 1, 3]], [[PRIME, 1, 1]], [[1, PRIME, 1]]):
        with pytest.raises(CountsError, match="range"):
            olh_counts(wrong, 4, 3)
    shapes: list[object] = [[[1, 1]], [1, 1, 1], [[1.0, 1.0, 1.0]]]
    for other in shapes:
        with pytest.raises(CountsError, match="three"):
            olh_counts(other, 4, 3)  # type: ignore[arg-type] # that is the test

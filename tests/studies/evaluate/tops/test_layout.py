"""The paper's sets fill the paper's scale; a user's own keep their length."""

import numpy as np
import pytest

from edge_ldp.device.errors import ParameterError
from studies.evaluate.tops.layout import CHUNK, READINGS, drawn_again, lay_out, mirrored
from studies.evaluate.tops.systems import structure_fits
from tests.studies.evaluate.tops.sets import small


def test_a_set_of_the_paper_is_mirrored_to_the_papers_length() -> None:
    lay = lay_out(small("pos", 70_000))
    assert (len(lay.readings), len(lay.stream)) == (READINGS, CHUNK)
    whole = np.concatenate([lay.readings, lay.stream])
    assert whole[:70_000].tolist() == small("pos", 70_000).values.tolist()
    assert whole[70_000:140_000].tolist() == whole[:70_000][::-1].tolist()
    assert mirrored(np.arange(3), 8).tolist() == [0, 1, 2, 2, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("count", "readings", "stream"),
    [(69_632, 4096, 65_536), (4352, 256, 4096), (5000, 256, 4096), (300, 16, 256), (272, 16, 256)],
)
def test_other_sets_keep_their_own_length(count: int, readings: int, stream: int) -> None:
    lay = lay_out(small("pos", count))
    assert (len(lay.readings), len(lay.stream)) == (readings, stream)
    values = small("pos", count).values
    assert lay.stream[0] == values[readings]


def test_values_are_counted_from_the_ranges_low_end() -> None:
    lay = lay_out(small(low=-500))
    assert lay.readings.tolist() == lay_out(small()).readings.tolist()
    assert lay.ceiling == 100


def test_too_few_values_are_refused() -> None:
    with pytest.raises(ParameterError, match="values of own"):
        lay_out(small(count=271))


def test_streams_drawn_again_have_only_the_readings_values() -> None:
    drawn = drawn_again(np.array([3, 5]), np.random.default_rng(1))
    assert set(drawn.tolist()) == {3, 5}
    assert len(drawn) == 32


def test_structures_that_do_not_divide_the_chunk_are_left_out() -> None:
    assert structure_fits("Ĥ16c, s=3", 65_536)
    assert not structure_fits("Ĥ16c, s=3", 4096)
    assert not structure_fits("Ĥ16c, s=2", 4096 + 16)
    assert structure_fits("H2", 272)

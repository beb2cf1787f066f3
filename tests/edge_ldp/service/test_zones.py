"""Names of time zones, as people write them."""

import pytest

from edge_ldp.service.zones import zone_expected, zone_of


@pytest.mark.parametrize("name", ["Europe/Berln", "europe/berlin", "berlin", "Berlin"])
def test_a_slip_is_told_of_the_zone_that_is_near(name: str) -> None:
    told = zone_expected(name)
    assert told.startswith('a time zone, as "UTC" or "Europe/Berlin", not "')
    assert f'not "{name}"; did you mean Europe/Berlin' in told
    assert ("Dublin" in told) == (name == "Europe/Berln")  # no slip, but not all of the name
    with pytest.raises(ValueError, match=name):
        zone_of(name)


def test_what_is_near_no_zone_is_repeated_alone() -> None:
    assert zone_expected("xyzzyxyzzy").endswith('not "xyzzyxyzzy"')

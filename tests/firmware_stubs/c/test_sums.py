"""A home's own sums in C: the same periods and cells, the same refusals as in Python."""

from itertools import product

import pytest

from edge_ldp.device.errors import ParameterError
from edge_ldp.device.sums import cell_of, check_layout, period_of
from tests.edge_ldp.device.test_sums import FRAME
from tests.firmware_stubs.c.builds import Runner, Script
from tests.firmware_stubs.c.vectors import joined

SLOTS = (0, 1, 95, 96, 671, 672, 1_965_312, (1 << 32) - 1, -1)
SECONDS = (0, 7, 900, 3600, 43_200, 86_400)
LAYOUTS = list(
    product(SECONDS, (0, 1, 7, 366, 367), (0, 1, 5, 8, 96), (1, 2), (0, 3600, 450, 86_400))
)


def test_every_slot_is_where_python_puts_it_and_no_other_layout_is_one(run: Runner) -> None:
    script = Script()
    for at, (seconds, days, cells, block, offset_s) in enumerate(LAYOUTS):
        slot = SLOTS[at % len(SLOTS)]
        command = f"layout {joined((seconds, days, cells, block, offset_s))} {slot}"
        try:
            check_layout(seconds, days, cells, offset_s, block)
        except ParameterError:
            script.add(command, "none")
        else:
            period = period_of(slot, seconds, days, offset_s)
            script.add(command, f"{period} {cell_of(slot, seconds, cells, offset_s)}")
    assert script.expected.count("none") < len(script.expected) - 40
    assert run.differences(script) == []


@pytest.mark.parametrize(
    ("field", "wrong", "reason"),
    [
        ("stream", 16, "frame"),
        ("series", 0, "frame"),
        ("batch", 0, "frame"),
        ("period", (1 << 32) - 1, "frame"),
        ("days", 367, "layout"),
        ("block", 5, "layout"),
        ("low", (1 << 62) + 1, "frame"),
        ("span", 0, "frame"),
        ("span", 1 << 47, "frame"),
        ("scale", 1 << 48, "frame"),
        ("unit", "W h", "frame"),
        ("unit", "W" * 17, "frame"),
        ("name", "", "frame"),
        ("name", "-a", "frame"),
        ("name", "a" * 64, "frame"),
        ("n", (337,) * 8, "frame"),
        ("y", (-(1 << 62) - 1,) * 8, "frame"),
    ],
)
def test_what_python_does_not_write_c_does_not_write(
    host: Runner, field: str, wrong: object, reason: str
) -> None:
    frame = FRAME._replace(**{field: wrong})
    layout = (frame.slot_seconds, frame.days, frame.cells, frame.block, frame.offset_s)
    numbers = (*frame[:4], *layout, frame.low, frame.span, frame.scale)
    texts = " ".join(text.encode().hex() or "-" for text in (frame.unit, frame.name))
    pairs = joined(number for pair in zip(frame.n, frame.y, strict=True) for number in pair)
    command = f"sums {joined(numbers)} {texts} 400 {frame.cells} {pairs}"
    assert host([command]) == [reason]


@pytest.mark.parametrize(("scale", "reason"), [(0, "scale"), (1 << 48, "scale"), (1, "entropy")])
def test_nothing_leaves_where_noise_cannot_be_drawn(run: Runner, scale: int, reason: str) -> None:
    script = Script()
    script.add("constant 255", 255)  # a source that gives what is drawn again for ever
    script.add(f"release 900 7 4 4 0 {scale} 4 1 2 3 4", reason)
    script.add(f"release 900 7 4 1 0 {scale} 4 1 2 3 4", reason)
    assert run.differences(script) == []

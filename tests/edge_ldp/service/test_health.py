"""One state out of many: ok only if all are, and every reason once."""

from edge_ldp.service.health import combined


def test_a_service_is_ok_when_all_its_parts_are() -> None:
    assert combined([]) == "ok"
    assert combined(["ok", "ok"]) == "ok"


def test_each_reason_is_named_once_in_a_fixed_order() -> None:
    parts = ["degraded: port gone", "ok", "degraded: link down", "degraded: link down"]
    assert combined(parts) == "degraded: link down, port gone"

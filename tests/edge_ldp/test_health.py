"""Health: at work, idle or waiting by name; stuck is only who is at work and gives no sign."""

from edge_ldp.health import Health


def test_a_service_whose_tasks_work_is_ok() -> None:
    health = Health(limit_s=30)
    health.work("feed", 0.0)
    health.idle("receive", 0.0)
    assert health.text() == "ok"
    assert health.stuck(30.0) == []


def test_SVC_02_a_task_at_work_that_gives_no_sign_in_time_is_stuck() -> None:
    health = Health(limit_s=30)
    health.work("feed", 0.0)
    health.work("time", 20.0)
    assert health.stuck(30.1) == ["feed"]
    health.work("feed", 31.0)
    assert health.stuck(50.0) == []
    assert health.stuck(100.0) == ["feed", "time"]


def test_a_named_wait_is_degraded_and_never_stuck() -> None:
    health = Health(limit_s=30)
    health.wait("feed", "port gone", 0.0)
    health.wait("uplink", "link down", 0.0)
    assert health.text() == "degraded: link down, port gone"
    assert health.stuck(1e9) == []


def test_work_ends_a_wait() -> None:
    health = Health(limit_s=30)
    health.wait("feed", "port gone", 0.0)
    health.work("feed", 5.0)
    assert health.text() == "ok"
    assert health.stuck(40.0) == ["feed"]


def test_a_task_that_is_over_counts_no_more() -> None:
    health = Health(limit_s=1)
    health.work("send", 0.0)
    health.end("send")
    health.end("never began")
    assert health.stuck(100.0) == []


def test_one_reason_of_several_tasks_is_said_once() -> None:
    health = Health()
    health.wait("send", "link down", 0.0)
    health.wait("tell", "link down", 0.0)
    assert health.text() == "degraded: link down"

"""A period's end, killed at each step: a forked agent dies before its nth statement or write."""

import os
from pathlib import Path

import pytest

from agent.curator import running_file
from tests.agent.summed import DAY, SumsBench

DEAD = 77


pytestmark = pytest.mark.usefixtures("runtime")


class Fuse:
    """Ends this process before the nth thing that it is told of."""

    def __init__(self, left: int) -> None:
        self.left = left

    def burn(self, *_: object) -> None:
        self.left -= 1
        if self.left == 0:
            os._exit(DEAD)


def ends_a_period(bench: SumsBench, left: int) -> bool:
    """End the period in a child that dies on its way; say whether it did."""
    child = os.fork()
    if not child:
        fuse = Fuse(left)
        bench.start()
        write, sync = os.pwrite, os.fdatasync

        def pwrite(*args: object) -> int:
            fuse.burn()
            return write(*args)  # type: ignore[arg-type] # as it was called

        def fdatasync(handle: int) -> None:
            fuse.burn()
            sync(handle)

        running_file.os.pwrite, running_file.os.fdatasync = pwrite, fdatasync  # type: ignore[attr-defined]
        with bench.journal.reading() as db:
            db.set_trace_callback(fuse.burn)
        bench.push(500)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == DEAD


def test_killed_at_any_step_of_its_end_a_period_leaves_once_AGT_34(tmp_path: Path) -> None:
    """And of the day that goes on no slot is lost but that in which it was killed."""
    steps, again = 0, 0
    while True:
        steps += 1
        bench = SumsBench(tmp_path / f"{steps}.db")
        bench.day()
        bench.journal.close()
        has_died = ends_a_period(bench, steps)
        bench.clock.pass_s(900)  # as the child's did
        bench.start()
        before = len(bench.frames)
        bench.push(*[500] * (DAY - 1), None)
        assert bench.frames[0].n == (96,)
        assert [one.batch for one in bench.frames] == [1, 2]
        assert bench.frames[1].n[0] in (95, 96)
        assert bench.frames[0].period + 1 == bench.frames[1].period
        assert len(bench.sums.released()) == 2
        (account,) = bench.journal.status()
        assert (account.created, account.expired) == (2, 0)
        assert {file.name for file in tmp_path.glob(f"{steps}.db.*")} == {f"{steps}.db.lock"}
        bench.journal.close()
        again += not before
        if not has_died:
            break
    assert steps > 12
    assert 0 < again < steps - 2  # killed before the commit, and after it

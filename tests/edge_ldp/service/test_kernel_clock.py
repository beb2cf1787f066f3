"""Whether the kernel's clock is disciplined: told by the kernel, False when it cannot say."""

import ctypes
import sys

from edge_ldp.service import clock
from edge_ldp.service.clock import STA_UNSYNC, TIME_ERROR, kernel_synchronised
from tests.processes import run_told


def test_the_kernel_answers_without_privilege_and_without_changing_anything() -> None:
    assert isinstance(kernel_synchronised(), bool)
    assert kernel_synchronised() == kernel_synchronised()


def test_the_answer_is_what_the_kernels_own_bytes_say() -> None:
    """Against the first two fields of struct timex read apart from the code under test."""
    timex = (ctypes.c_long * 64)()
    state = ctypes.CDLL(None).adjtimex(timex)
    status = ctypes.c_int.from_buffer(timex, 5 * ctypes.sizeof(ctypes.c_long)).value
    expected = 0 <= state != TIME_ERROR and not status & STA_UNSYNC
    assert kernel_synchronised() == expected


def test_the_status_stands_behind_five_longs_in_struct_timex() -> None:
    """modes (int, padded), offset, freq, maxerror, esterror, status: linux/timex.h."""

    class Timex(ctypes.Structure):
        _fields_ = (
            ("modes", ctypes.c_uint),
            ("offset", ctypes.c_long),
            ("freq", ctypes.c_long),
            ("maxerror", ctypes.c_long),
            ("esterror", ctypes.c_long),
            ("status", ctypes.c_int),
        )

    assert Timex.status.offset == clock.STATUS_OFFSET


def test_where_there_is_no_such_call_the_clock_is_not_sane() -> None:
    script = """
import ctypes
class Nothing:
    def __init__(self, *args, **kwargs): pass
ctypes.CDLL = Nothing
from edge_ldp.service.clock import kernel_synchronised
print(kernel_synchronised())
"""
    done = run_told([sys.executable, "-c", script], check=True)
    assert done.stdout == "False\n"

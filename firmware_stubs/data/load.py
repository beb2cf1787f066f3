"""The bundled load series of real homes; LICENSES.txt says whose they are and what was changed."""

from importlib import resources
from typing import Literal

import numpy as np
from numpy.typing import NDArray

HOMES = 400
HOUSEHOLDS = 2

_ARRAYS = {900: "power_w", 300: "power_w_5min"}


def load_swiss() -> NDArray[np.int32]:
    """Return mean power in W of 400 Swiss homes in 7 weeks of quarter hours.

    Shape: (400, 4704). The faults of the real meters are in it: 15 negative values, single spikes
    up to 188 kW, 32 weeks of a home that are zero throughout.
    """
    return _array("swiss_homes.npz", "power_w")


def load_household(which: int, step_s: Literal[300, 900] = 900) -> NDArray[np.int32]:
    """Return mean power in W of one French home in winter `which` (0 or 1), 84 days from a Monday.

    Shape: (8064,) quarter hours, or (24192,) for steps of 300 s. Raises IndexError for another
    winter. No step was without data; 9 minutes in all were missing and left out of their means.
    """
    if which not in range(HOUSEHOLDS):
        raise IndexError(which)
    winter: NDArray[np.int32] = _array("uci_household.npz", _ARRAYS[step_s])[which]
    return winter


def load_year() -> tuple[NDArray[np.int32], int]:
    """Return mean power in W of the same French home in 393 days of 5 minutes, and their beginning.

    Shape: (113184,), from Monday 2007-08-06 00:00 local time, which is given as seconds since 1970.
    No step was without data; 31 minutes in all were missing and left out of their means.
    """
    found = _array("uci_year.npz", "power_w_5min")
    return found, int(_array("uci_year.npz", "start_s_local"))


def _array(file: str, name: str) -> NDArray[np.int32]:
    with (
        resources.files("firmware_stubs.data").joinpath(file).open("rb") as stream,
        np.load(stream, allow_pickle=False) as archive,
    ):
        found: NDArray[np.int32] = np.asarray(archive[name], np.int32)
    return found

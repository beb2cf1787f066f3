"""Reports that no honest crowd or device sends: alarms, filters, bounds (NumPy, SciPy)."""

from edge_ldp.poisoning.alarm import Alarm, alarm, largest_shift
from edge_ldp.poisoning.code_sets import Watch, watch_mechanism, watch_of
from edge_ldp.poisoning.device_bound import Mark, WatchState, begin_again, look, observe
from edge_ldp.poisoning.filter import Atom, Cleaned, clean
from edge_ldp.poisoning.screen import Screened, screened

__all__ = [
    "Alarm",
    "Atom",
    "Cleaned",
    "Mark",
    "Screened",
    "Watch",
    "WatchState",
    "alarm",
    "begin_again",
    "clean",
    "largest_shift",
    "look",
    "observe",
    "screened",
    "watch_mechanism",
    "watch_of",
]

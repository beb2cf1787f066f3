"""Reports that no honest crowd sends: alarms, filters (NumPy, SciPy)."""

from edge_ldp.poisoning.alarm import Alarm, alarm, largest_shift
from edge_ldp.poisoning.filter import Atom, Cleaned, clean

__all__ = ["Alarm", "Atom", "Cleaned", "alarm", "clean", "largest_shift"]

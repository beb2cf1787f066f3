"""The status word of German meters: which way the power goes, and which phases there are.

SML carries it beside the energy registers, readouts as text in 96.5.0. Two forms are known: that of
the basic meter (its low byte is 04; bit 11 says that the sum is given, bits 18 to 20 which phases
have voltage) and that of the older EDL meter (bit 8 is always set; bit 5 says given). Sources: the
masks in PTB's TRuDI (StatusFNN) for the first; volkszaehler/libsml #101 and spacemanspiff2007/
sml2mqtt #6 for the second; docs/meters.md says against what both were held. docs/faults.md, SER-28.
"""

from collections.abc import Iterable

_BASIC, _BASIC_MASK, _BASIC_GIVEN = 0x04, 0xFFE0_00FF, 1 << 11
_OTHER_PHASES = 1 << 19 | 1 << 20
_EDL, _EDL_GIVEN = 1 << 8, 1 << 5
_WORD = 0xFFFF_FFFF  # a gateway puts a word of its own above


def direction(words: Iterable[int]) -> bool | None:
    """Return whether power is given to the grid; None where no word says it, or two disagree."""
    told = {given for word in words if (given := _given(word & _WORD)) is not None}
    return told.pop() if len(told) == 1 else None


def has_other_phases(words: Iterable[int]) -> bool:
    """Say whether a word shows voltage on a phase beside the first."""
    return any(_is_basic(word & _WORD) and word & _OTHER_PHASES for word in words)


def _given(word: int) -> bool | None:
    if _is_basic(word):
        return bool(word & _BASIC_GIVEN)
    return bool(word & _EDL_GIVEN) if word & _EDL else None


def _is_basic(word: int) -> bool:
    return word & _BASIC_MASK == _BASIC

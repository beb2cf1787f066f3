"""How far apart a meter's telegrams come, as they were heard: from times alone, never from values.

Pure: every time is an argument.
"""

from collections import deque

GAPS = 32
FEW = 3


class Spacing:
    """The meter's interval: the second longest of the last gaps, and at least what is told of it.

    One outage is no interval, and telegrams that an adapter kept and sends at once are none apart.
    Of fewer than FEW gaps the longest counts. Times are whole seconds.
    """

    def __init__(self, told_s: int) -> None:
        self.seconds = self._told_s = told_s
        self._heard_s: int | None = None
        self._gaps = deque[int](maxlen=GAPS)
        self._usual_s = 0

    def is_after_silence(self, time_s: int) -> bool:
        """Say whether a telegram would come so late that one could have come before."""
        if self._heard_s is None:
            return True
        return bool(self._gaps) and 2 * (time_s - self._heard_s) > 3 * self._usual_s

    def note(self, time_s: int) -> None:
        """Note when a telegram came."""
        if self._heard_s is not None:
            gaps = self._gaps
            gaps.append(time_s - self._heard_s)
            self._usual_s = max(gaps) if len(gaps) < FEW else sorted(gaps)[-2]
            self.seconds = max(self._told_s, self._usual_s)
        self._heard_s = time_s

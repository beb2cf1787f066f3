"""Plays a series of powers as the telegrams that a meter would send, on anybody's clock."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from edge_ldp.service.clock import Clock
from firmware_stubs.meters.pty_port import MeterEnd
from firmware_stubs.meters.telegram import MAX_WH, p1_telegram

Show = Callable[..., bytes]
"""A meter's protocol: `p1_telegram` or another function of `Display`'s fields, by keyword."""

Mangle = Callable[[int, bytes], bytes]
"""Scripted damage: (number of the telegram from 0, telegram) -> the bytes to send instead."""

_WS_PER_WH = 3600


@dataclass(frozen=True, slots=True)
class Series:
    """Mean power of consecutive steps in W (negative: export), the first from `start_s` (UTC)."""

    power_w: Iterable[int]
    start_s: int
    step_s: int
    meter_id: str
    base_wh: int = 0
    show: Show = p1_telegram

    def telegrams(self) -> Iterator[tuple[int, bytes]]:
        """Yield one (time in seconds UTC, telegram) for the start of each step.

        The telegram at `start_s + k·step_s` shows the mean power of step k and the registers as
        they stand when it begins: floor(W·s before it / 3600) Wh above the base, exactly.
        """
        imported_ws = self.base_wh * _WS_PER_WH
        exported_ws = 0
        for k, power in enumerate(self.power_w):
            power_w, export_power_w = max(int(power), 0), max(-int(power), 0)
            time_s = self.start_s + k * self.step_s
            yield (
                time_s,
                self.show(
                    meter_id=self.meter_id,
                    time_s=time_s,
                    import_wh=imported_ws // _WS_PER_WH % (MAX_WH + 1),
                    power_w=power_w,
                    export_wh=exported_ws // _WS_PER_WH % (MAX_WH + 1),
                    export_power_w=export_power_w,
                ),
            )
            imported_ws += power_w * self.step_s
            exported_ws += export_power_w * self.step_s


async def play(port: MeterEnd, series: Series, clock: Clock, mangle: Mangle | None = None) -> int:
    """Send each telegram when the clock reaches its time; return how many were taken whole.

    Late telegrams are sent at once and in order; a slow reader is waited for.
    """
    delivered = 0
    for k, (time_s, telegram) in enumerate(series.telegrams()):
        await _until(time_s, clock)
        delivered += await port.write(mangle(k, telegram) if mangle else telegram)
    return delivered


async def _until(time_s: int, clock: Clock) -> None:
    """Return when the clock shows `time_s`, never earlier, and not before others have run."""
    await clock.sleep(0)
    while (early_s := time_s - clock.now()) > 0:
        await clock.sleep(early_s)

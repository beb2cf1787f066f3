"""What a report costs a device, in instructions: a number that an emulated processor tells too.

    python -m benchmarks.instructions local 200 STATE

does what the agent does in so many slots, but for the network: a telegram is parsed, closes the
slot, is randomised (`local`) or added to a curator's tree (`curator`), committed to a real file,
packed, and settled by a receipt. `telegrams` parses only. The difference of two runs of N and 2N
slots, counted from outside, over N is the cost of one; the start falls out. Counted by

    valgrind --tool=callgrind --callgrind-out-file=/dev/null python ...
    qemu-arm -plugin tools/count_instructions.so -L DIR DIR/usr/bin/python3 ...

where DIR is what `tools/foreign_python.sh` prints and the plug-in is made of count_instructions.c.
"""

import sys
from pathlib import Path

from agent.claims.slots import Kind, SlotBuilder
from agent.curator.mode import curator_mode
from agent.meters.reading import Asker, Telegram
from agent.ports.meters import make_meter
from agent.state.core import DeviceCore
from agent.state.device import Device
from agent.state.journal import Journal
from agent.state.local_mode import LocalMode
from edge_ldp.protocol.messages import Receipt, StreamReceipt
from firmware_stubs.meters import p1_telegram
from tests.agent.curated import curator_config
from tests.agent.samples import SLOT_S, T0, StillClock, make_config, make_plan

CURATOR = 'epsilon = 0.1\nmethod = "fixed"\ntheta = 4000\n'
TELEGRAM = p1_telegram(meter_id="E0043007052870318", time_s=T0, import_wh=7_000, power_w=500)


def main(mode: str, slots: int, state: Path) -> int:
    """Live through slots; return how many reports, values or telegrams came of it."""
    clock = StillClock()
    journal = Journal(state)
    is_curator = mode == "curator"
    config = curator_config(state, CURATOR) if is_curator else make_config(state)
    core = DeviceCore(config, journal, clock)
    device = Device(core, curator_mode(core) if is_curator else LocalMode(core))
    device.accept_plan("power", make_plan().to_json())  # a curator takes none
    device.trust_clock()
    meter = make_meter(config.all_meters[0])
    assert not isinstance(meter, Asker)
    builder = SlotBuilder(SLOT_S, [("power", Kind.MEAN)])
    made = 0
    for _ in range(slots):
        clock.pass_s(SLOT_S)
        telegrams = [event for event in meter.feed(TELEGRAM) if isinstance(event, Telegram)]
        if mode == "telegrams":
            made += len(telegrams)
            continue
        for telegram in telegrams:
            readings = {one.quantity: one.value for one in telegram.readings}
            if closed := builder.read(int(clock.now()), readings):
                device.close_slot(closed, online=True)
        device.flush(online=True)
        device.pack_waiting(at_once=True)
        for key, [(stream, series, number)], _ in device.take_messages(0):
            device.delivery.acknowledged(key, clock.monotonic())
            told = StreamReceipt(stream, number, series=series)
            made += device.accept_receipt(Receipt((told,)))
    return made


if __name__ == "__main__":
    print(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))  # noqa: T201

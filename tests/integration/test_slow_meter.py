"""A meter that speaks each 75 s, at a pseudo-terminal: every slot is sent, but for a swap's."""

from itertools import repeat
from pathlib import Path

from firmware_stubs.meters import Series, play
from tests.agent.samples import SLOT_S, make_plan
from tests.integration.agent_bench import METER, PATIENT, Agent, fast_clock, listening, until
from tests.integration.conftest import RealBroker

STEP_S = 75
POWER, ENERGY = 1, 2


async def test_SER_32_SER_16_each_slot_of_a_slow_meter_is_sent_and_no_energy_of_a_swap(
    tmp_path: Path, broker: RealBroker
) -> None:
    clock = fast_clock(400)
    agent = Agent(
        tmp_path / "a",
        broker,
        clock,
        sending="jitter_s = 0\nreceipt_interval_s = 9000",
        meter=PATIENT,
        quantities=("power", "energy_import"),
        window=(2, 1),
    )
    agent.port.plug()

    async with listening(broker) as hub:

        def sent(stream: int) -> set[int]:
            frames = hub.frames(agent.device)
            return {slot for one in frames if one.stream == stream for slot in one.slots}

        async def speak(meter_id: str, begin_s: int, end_s: int, base_wh: int) -> None:
            powers = repeat(2000, (end_s - begin_s) // STEP_S + 1)
            series = Series(powers, begin_s, STEP_S, meter_id, base_wh=base_wh)
            await play(agent.port, series, clock)

        await hub.publish(make_plan(stream_id=POWER))
        await hub.publish(make_plan(stream="energy_import", stream_id=ENERGY), "energy_import")
        agent.start()
        try:
            await agent.port.wait_for_reader()
            await until(lambda: agent.log.read_text().count(" in force: ") == 2)
            begun = int(clock.now() // SLOT_S)
            swap = begun + 8
            await speak(METER, begun * SLOT_S, swap * SLOT_S + 5 * STEP_S, 5000)
            await until(lambda: swap - 1 in sent(ENERGY))
            await clock.sleep(STEP_S)
            await speak("another", swap * SLOT_S + 6 * STEP_S, (swap + 4) * SLOT_S, 9_000_000)
            await until(lambda: swap + 3 in sent(ENERGY))
            assert agent.end() == 0
        finally:
            agent.end()
            agent.port.unplug()
    first = min(sent(POWER))
    assert first <= begun + 1, "a new window is silent for its first slot"
    assert sent(POWER) == set(range(first, swap + 4))
    assert sent(ENERGY) == sent(POWER) - {swap}
    assert agent.log.read_text().count("meter swapped: ") == 1

"""An agent that sums a simulated meter's periods: through a broker, and to an aggregator."""

import asyncio
import io
import re
from contextlib import redirect_stdout
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

from agent.config import load_config
from agent.main import main
from aggregator.errors import StoreError
from edge_ldp.device.sums_frame import SumsFrame, decode_sums
from edge_ldp.protocol.invitation import Invitation, InvitedBroker, InvitedStream, InvitedSums
from edge_ldp.protocol.released import FIRST_SUMS_KEY
from firmware_stubs.meters.telegram import full_p1_telegram
from tests.agent.samples import CEILING_W, DEVICE, FLEET, SLOT_S
from tests.agent.summed import in_memory
from tests.integration.agent_bench import (
    PATIENT,
    Agent,
    fast_clock,
    playing,
    until,
)
from tests.integration.aggregator_bench import Aggregator
from tests.integration.conftest import RealBroker

OF_GAS = """
[query]
min_devices = 1
[[streams]]
name = "gas"
id = 2
unit = "dm3"
ceiling = 6000
epsilon = 4
slot_seconds = 3600
[streams.home_sums]
share = 0.25
"""
REACH = 28  # scales of noise that one cell in 2^40 is beyond
MEAN_W, OFF_W = 400, 4 * 800  # of the meter's nine readings in turn


def has_settled(aggregator: Aggregator, periods: int, *streams: str) -> bool:
    try:
        return all(len(kept_by(aggregator, one)) >= periods for one in streams)
    except StoreError:  # not yet made
        return False


def kept_by(aggregator: Aggregator, stream: str = "power") -> list[SumsFrame]:
    rows = aggregator.read(lambda reader: reader.period_sums(stream, 0, 1 << 40))
    found = [decode_sums(row.payload) for row in rows]
    return sorted(found, key=lambda one: one.period)


def invitation(port: int, share: str) -> str:
    """Return what an operator gives who counts sums of days, and gas, too, beside reports."""
    power = InvitedStream("power", "power", "W", 0, CEILING_W, SLOT_S, "4", InvitedSums(1, share))
    gas = InvitedStream("gas", "gas", "dm3", 0, 6000, 3600, sums=InvitedSums(1, "0.25"))
    broker = InvitedBroker("127.0.0.1", port, tls=False)
    return Invitation(FLEET, DEVICE, broker, DEVICE, "secret", (), (power, gas)).to_text()


def set_up(agent: Agent, broker: RealBroker, share: str) -> str:
    """Let `setup` write the agent's file from an invitation; give what it says. Its clock is ours.

    Nobody is asked; what is checked live may find that no plan is there yet.
    """
    clock = re.search(r"\[clock\]\n(.*?)\n\[", agent.config.read_text(), re.DOTALL)
    own = ("--least-b", "gas=1") if share != "1" else ()
    given = (*own, "--yes", "--replace", "--fuse", str(CEILING_W), "--epsilon", "4", "--slots", "4")
    meter = (
        line for key in ('protocol = "dsmr"', *PATIENT.splitlines()) for line in ("--set", key)
    )
    port = ("--port", str(agent.port.link), "--clock", "assume", "--state", str(agent.state))
    words = ("setup", "-c", str(agent.config), "--invitation", invitation(broker.port, share))
    said = io.StringIO()
    with redirect_stdout(said):
        assert main([*words, *given, *meter, *port]) in (0, 4)
    assert clock is not None
    text = agent.config.read_text()
    text = re.sub(r'trust = "assume".*', f'trust = "assume"\n{clock[1]}', text)
    agent.config.write_text(text.replace("least_b", "least_share = 0\nleast_b"))
    return " ".join(said.getvalue().split())


@pytest.mark.parametrize(("share", "mode"), [("1", "sums"), ("0.5", "both")])
async def test_a_strangers_first_hour_ends_with_a_sum_that_is_counted_PLN_21(
    tmp_path: Path, broker: RealBroker, share: str, mode: str
) -> None:
    """An invitation, a meter and a broker: `setup`, `run`, and an aggregator that answers from it.

    Created = counted + kept: each period is one report, under its own number. With "both"
    its owner gives gas by the hour, too, which the meter's line dates (AGT-38).
    """
    clock = fast_clock(60)
    aggregator = Aggregator(tmp_path, broker)
    lines = aggregator.config.read_text()
    for old, new in (
        ('fleet = "demo"', f'fleet = "{FLEET}"'),
        ("origin_s = 1700000000", f"origin_s = {clock.origin_s!r}"),
        ("ceiling = 4095", f"ceiling = {CEILING_W}"),
        ("slot_seconds = 1\n", f"slot_seconds = {SLOT_S}\n"),
    ):
        assert old in lines
        lines = lines.replace(old, new)
    if mode == "both":
        lines += OF_GAS
    lines = re.sub(r"started_s = .*", f"started_s = {clock.started_s!r}", lines)
    aggregator.config.write_text(re.sub(r"rate = .*", f"rate = {clock.rate!r}", lines))
    with in_memory():
        agent = Agent(tmp_path / "a", broker, clock, device=DEVICE)
        agent.show = full_p1_telegram  # of gas as many dm³ as Wh
        try:
            async with playing(agent):
                aggregator.start()
                said = await asyncio.to_thread(set_up, agent, broker, share)
                assert "Every day what power added up to leaves this home once" in said
                assert ("codes leave this home" in said) == (mode == "both")
                assert ("you give none: gas" in said) == (mode != "both")
                agent.start()
                names = ["power", *["gas"] * (mode == "both")]
                await until(partial(has_settled, aggregator, 2, *names))
                assert await asyncio.to_thread(agent.end) == 0
        finally:
            aggregator.end()
        stream, *_ = load_config(agent.config).streams
        accounts = {one["stream"]: one["created"] for one in agent.status()["streams"]}
    assert (stream.mode, stream.sums and stream.sums.share) == (mode, Decimal(share))
    assert (accounts.get(1, 0) > 0) == (mode == "both")
    found = kept_by(aggregator)
    assert {one.batch for one in found} <= set(range(1, accounts[FIRST_SUMS_KEY] + 1))
    assert len({one.period for one in found}) == len(found) >= 2
    for one in found:
        assert stream.sums is not None
        assert one.scale == stream.sums.least_b >= 209_157  # of the least connection measured
        assert abs(one.y[0] - MEAN_W * one.n[0]) <= OFF_W + REACH * one.scale
    assert set(aggregator.refused()) <= {"duplicate"}  # sent again before a receipt came
    for one in kept_by(aggregator, "gas"):
        assert (one.slot_seconds, one.unit, one.span) == (3600, "dm3", 6000)
        assert one.scale == 6000 * 2 // 8  # four quarters touch two hours; a quarter of ε 32
        assert one.n[0] <= 24
        assert abs(one.y[0] - 400 * one.n[0]) <= 300 * one.n[0] + REACH * one.scale
    if mode == "both":
        found = aggregator.ask("query", "--stream", "gas", "--mode", "sums", "--no-density")
        whole, slots = found["sums"]["whole"], sum(one.n[0] for one in kept_by(aggregator, "gas"))
        assert (found["unit"], whole["homes"], whole["slots"]) == ("dm3", 1, slots)
        assert whole["coverage"] == pytest.approx(slots / (24 * len(found["sums"]["periods"])))
        assert whole["exact"]

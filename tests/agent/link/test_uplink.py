"""The uplink in this process, against a real broker: cuts, refusals, receipts and the farewell."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from agent.claims.batches import Key
from agent.claims.delivery import Delivery
from agent.claims.slots import SlotValues
from agent.link.outgoing import Outgoing
from agent.link.uplink import Uplink, Vitals
from agent.state.device import Device
from agent.state.journal import Journal
from edge_ldp.protocol.messages import Receipt, StreamReceipt, parse_status, topic
from edge_ldp.protocol.presence import Presence
from edge_ldp.service.backoff import JITTER_STEPS
from edge_ldp.service.mqtt import Broker, Link, open_link
from tests.agent.paced import beside
from tests.agent.samples import (
    DEVICE,
    FLEET,
    SLOT_S,
    StillClock,
    local_device,
    make_config,
    make_plan,
)
from tests.integration.agent_bench import STORE, Hub, listening, until
from tests.integration.conftest import HOST, OPEN, RealBroker, broker, free_port, make_broker

__all__ = ["broker", "make_broker"]  # fixtures
pytestmark = pytest.mark.integration


class WatchedDelivery(Delivery):
    """Tells what is on its way, and what the broker has acknowledged since its last sending."""

    def __init__(self, device: Device) -> None:
        core = device.core
        super().__init__(core.delivery.window, core.delivery.resend_s, core.delivery.draw)
        self.flying: set[Key] = set()
        self.acked: set[Key] = set()
        self.most = 0  # on their way at once
        self.resume(core.journal.keys())
        core.delivery = self

    def take(self) -> Key | None:
        first = super().take()
        if first is not None:
            self.flying.add(first)
            self.acked.discard(first)
            self.most = max(self.most, len(self.flying))
        return first

    def acknowledged(self, key: Key, now_s: float) -> None:
        super().acknowledged(key, now_s)
        self.flying.discard(key)
        self.acked.add(key)

    def failed(self, key: Key) -> None:
        super().failed(key)
        self.flying.discard(key)

    def forget(self, keys: Iterable[Key]) -> None:
        gone = set(keys)
        super().forget(gone)
        self.flying -= gone
        self.acked -= gone


class Home:
    """A device with an uplink; slots pass when told to, real time does the sending."""

    def __init__(
        self,
        directory: Path,
        port: int,
        device: str = DEVICE,
        password: str | None = None,
        clock: StillClock | None = None,
        **changes: Any,
    ) -> None:
        self.clock = clock or StillClock()
        changes.setdefault("sending", "jitter_s = 0\nreceipt_interval_s = 3600")
        config = make_config(directory / f"{device}.db", broker_port=port, **changes)
        self.config = replace(config, device=replace(config.device, id=device))
        self.journal = Journal(directory / f"{device}.db")
        self.device = local_device(self.config, self.journal, self.clock)
        self.delivery = WatchedDelivery(self.device)
        self.device.trust_clock()
        self.clock.pass_s(2 * SLOT_S)
        self.device.accept_plan("power", make_plan().to_json())
        self.uplink = Uplink(self.config, self.device, self.clock, password)

    def live(self, slots: int, *, online: bool = True) -> None:
        for _ in range(slots):
            self.clock.pass_s(SLOT_S)
            closed = SlotValues(self.device.slot - 1, (500,))
            self.device.close_slot(closed, online=online)
        self.uplink.wake()

    @asynccontextmanager
    async def connecting(self) -> AsyncIterator[None]:
        try:
            async with beside(self.uplink.run()):
                yield
        finally:
            self.journal.close()

    def overdue(self) -> None:
        """Let so much time pass that a batch without a receipt goes again."""
        self.clock.pass_s(4 * 3600)
        self.device.housekeeping()
        self.uplink.wake()


async def test_what_a_receipt_does_not_cover_is_sent_again_bit_for_bit_PRV_02_NET_03(
    broker: RealBroker, tmp_path: Path
) -> None:
    home = Home(tmp_path, broker.port)
    home.live(5)
    async with listening(broker, receipts=False) as hub, home.connecting():
        await until(lambda: len(hub.payloads[DEVICE]) == 5)
        for key in sorted(hub.payloads[DEVICE])[1:3]:
            del hub.payloads[DEVICE][key]
        await hub.confirm(DEVICE)
        await until(lambda: len(home.journal.keys()) == 2)
        kept = {key: home.journal.payload(key) for key in sorted(home.journal.keys())}
        home.overdue()
        await until(lambda: len(hub.payloads[DEVICE]) == 4)  # one message until a receipt comes
        await hub.confirm(DEVICE)
        await until(lambda: len(hub.payloads[DEVICE]) == 5)
        assert {key: hub.payloads[DEVICE][key] for key in kept} == {
            key: [payload] for key, payload in kept.items()
        }
        await hub.confirm(DEVICE)
        await until(lambda: not home.journal.keys())


async def test_duplicate_and_reordered_receipts_do_no_harm_NET_16(
    broker: RealBroker, tmp_path: Path
) -> None:
    home = Home(tmp_path, broker.port)
    home.live(6)
    async with listening(broker, receipts=False) as hub, home.connecting():
        await until(lambda: len(hub.payloads[DEVICE]) == 6)
        first = min(number for _, number in hub.payloads[DEVICE])
        name = topic(FLEET, "receipt", DEVICE)
        series = hub.streams_of(DEVICE)[0].series
        link = await open_link(Broker(HOST, broker.port, "other"))
        for highest in (first + 3, first + 1, first + 3, 0, first + 1):
            told = Receipt((StreamReceipt(1, highest, series=series),), STORE, 0, DEVICE)
            await link.publish(name, told.to_json(), retain=True)
        for garbage in (
            b"",
            b"{",
            b'{"v":1,"streams":[{"stream":1,"highest":-1,"gaps":[]}]}',
            b"\xff" * 99,
        ):
            await link.publish(name, garbage, retain=True)
        await until(lambda: len(home.journal.keys()) == 2)
        await asyncio.sleep(0.1)
        assert [key.number for key in sorted(home.journal.keys())] == [first + 4, first + 5]
        assert home.uplink.online
        await link.close()


async def test_a_plan_from_the_broker_is_taken_and_a_refusal_told(
    broker: RealBroker, tmp_path: Path
) -> None:
    home = Home(tmp_path, broker.port)
    home.live(1)
    async with listening(broker) as hub, home.connecting():
        await hub.publish(make_plan(2))
        await until(
            lambda: bool(hub.statuses[DEVICE]) and hub.statuses[DEVICE][-1].streams[0].epoch == 2
        )
        before = len(hub.statuses[DEVICE])
        await hub.publish(b"garbage")
        await until(lambda: len(hub.statuses[DEVICE]) > before)
        assert home.device.status("online").refusals == ("json message",)
        assert hub.statuses[DEVICE][-1].refused == ("json message: a JSON object in UTF-8",)
        assert hub.statuses[DEVICE][-1].streams[0].epoch == 2


async def test_the_status_tells_how_the_agent_is_and_tells_it_anew_when_that_changes(
    broker: RealBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.link.uplink.LOOK_S", 1)
    home = Home(tmp_path, broker.port)
    home.live(1)
    now = Vitals("ok", {"telegram_s": 3, "commit_s": None})
    home.uplink.vitals = lambda: now
    async with listening(broker) as hub, home.connecting():
        await until(lambda: bool(hub.statuses[DEVICE]))
        first = hub.statuses[DEVICE][-1]
        assert (first.health, first.ages) == ("ok", {"telegram_s": 3})
        now = Vitals("degraded: port gone", home.uplink.ages)
        await until(lambda: hub.statuses[DEVICE][-1].health == "degraded: port gone")
        assert hub.statuses[DEVICE][-1].ages.keys() == {"link_s"}


async def test_the_status_is_retained_and_the_will_says_offline(
    broker: RealBroker, tmp_path: Path
) -> None:
    proxy = CuttingProxy(broker.port)
    async with proxy as port, listening(broker) as hub:
        home = Home(tmp_path, port)
        home.live(1)
        async with home.connecting():
            await until(lambda: any(s.state == "online" for s in hub.statuses[DEVICE]))
            proxy.cut()
            await until(lambda: any(s.state == "offline" for s in hub.statuses[DEVICE]))
            await until(lambda: hub.statuses[DEVICE][-1].state == "online")
            # as long as the home is there: its will takes the place of what it said
            late = await open_link(Broker(HOST, broker.port, "late"))
            await late.subscribe([topic(FLEET, "status", DEVICE)])
            message = await asyncio.wait_for(late.receive(), 60)
            await late.close()
    assert message.retain
    assert parse_status(message.payload).streams[0].created == 1


async def test_the_moment_of_sending_is_drawn_evenly_within_its_jitter(
    broker: RealBroker, tmp_path: Path
) -> None:
    """Every step of it is as likely; a busy machine may only be later."""
    home = Home(tmp_path, broker.port, sending="jitter_s = 0.25")
    drawn: list[int] = []
    begun_s: list[float] = []

    def draw(steps: int) -> int:
        drawn.append(steps)
        begun_s.append(time.monotonic())
        return steps * 4 // 5

    home.uplink = Uplink(home.config, home.device, home.clock, None, draw=draw)
    # a receipt begins a wait of its own, in which a report may be made
    async with listening(broker, receipts=False) as hub, home.connecting():
        await until(lambda: home.uplink.online)
        while not drawn:  # what is made before the first look for reports leaves with that
            came = len(hub.payloads[DEVICE])
            home.live(1)
            await until(lambda came=came: len(hub.payloads[DEVICE]) > came)  # type: ignore[misc]
        assert time.monotonic() - begun_s[-1] >= 0.19
    assert set(drawn) == {JITTER_STEPS}


async def test_the_farewell_sends_what_waits_and_says_offline(
    broker: RealBroker, tmp_path: Path
) -> None:
    home = Home(tmp_path, broker.port, sending="jitter_s = 86400\nbatch_interval_s = 86400")
    async with listening(broker) as hub, home.connecting():
        await until(lambda: home.uplink.online)
        home.live(3, online=False)
        await home.uplink.farewell()
        await until(lambda: len(hub.slots(DEVICE)) == 3)
        await until(lambda: hub.is_offline(DEVICE))
        hub.check_complete(DEVICE)
        await until(lambda: not home.uplink.online)


async def test_nothing_is_said_after_goodbye(broker: RealBroker, tmp_path: Path) -> None:
    """A status that falls due while the last one is on its way would show who left as there."""
    home = Home(tmp_path, broker.port)
    async with listening(broker) as hub, home.connecting():
        await until(lambda: home.uplink.online)
        uplink, link, late = home.uplink, home.uplink._link, list[asyncio.Task[None]]()  # noqa: SLF001
        assert link is not None
        told, publish, said = uplink.vitals, uplink._publish, list[bytes]()  # noqa: SLF001

        def vitals() -> Vitals:
            if not late:
                late.append(asyncio.create_task(uplink._publish_status(link, "online")))  # noqa: SLF001
            return told()

        async def record(link: Link, message: Outgoing) -> None:
            said.append(message.payload)
            await publish(link, message)

        uplink.vitals, uplink._publish = vitals, record  # type: ignore[method-assign] # noqa: SLF001
        await uplink.farewell()
        await asyncio.gather(*late)
        assert parse_status(said[-1]).state == "offline"
        await until(lambda: hub.is_offline(DEVICE))


async def test_a_farewell_without_a_link_is_short(tmp_path: Path) -> None:
    home = Home(tmp_path, free_port())
    async with home.connecting(), asyncio.timeout(1):
        await home.uplink.farewell()


async def test_while_the_broker_is_away_it_is_said_once_and_tried_again_NET_01_NET_02(
    tmp_path: Path, broker: RealBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.kill()
    home = Home(tmp_path, broker.port)
    home.live(3, online=False)
    with caplog.at_level(logging.DEBUG):
        async with home.connecting():
            await asyncio.sleep(0.8)
            broker.start()
            async with listening(broker) as hub:
                await until(lambda: len(hub.slots(DEVICE)) == 3)
    said = [r.message for r in caplog.records if "reports are kept" in r.message]
    assert len(said) == 1
    assert "Connection refused" in said[0]


async def test_refused_credentials_are_tried_again_slowly_and_never_logged_NET_11(
    tmp_path: Path, make_broker: Callable[[str], RealBroker], caplog: pytest.LogCaptureFixture
) -> None:
    guarded = make_broker(OPEN.replace("allow_anonymous true", "allow_anonymous false"))
    home = Home(tmp_path, guarded.port, password="wrong-horse", broker='username = "me"')  # noqa: S106 (refused)
    with caplog.at_level(logging.DEBUG):
        async with home.connecting():
            await until(lambda: any("authori" in r.message for r in caplog.records))
            tries = guarded.directory.joinpath("mosquitto.log").read_text().count("New connection")
            await asyncio.sleep(1.0)
            log = guarded.directory.joinpath("mosquitto.log").read_text()
    assert log.count("New connection") == tries
    assert "wrong-horse" not in caplog.text


async def test_a_publish_that_the_broker_refuses_keeps_the_reports_NET_12(
    tmp_path: Path, make_broker: Callable[[str], RealBroker], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "acl").write_text(f"topic readwrite edge-ldp/v1/{FLEET}/status/#\ntopic read #\n")
    guarded = make_broker(OPEN + f"acl_file {tmp_path / 'acl'}\n")
    home = Home(tmp_path, guarded.port)
    home.live(2)
    with caplog.at_level(logging.INFO):
        async with home.connecting():
            await until(lambda: "refused" in caplog.text)
            refused = topic(FLEET, "report", DEVICE)
            await until(lambda: home.uplink.health == f"degraded: auth: {refused}")
            assert len(home.journal.keys()) == 2
    assert f"broker refused {topic(FLEET, 'report', DEVICE)}: not authorized" in caplog.text


# NET-19


class CuttingProxy:
    """Passes bytes on; cuts its first connection after so many bytes of one direction, or `cut`."""

    def __init__(self, target: int, after: int | None = None, *, upward: bool = True) -> None:
        self.connections = 0
        self._ends: list[asyncio.StreamWriter] = []
        self._serving: set[asyncio.Task[None]] = set()
        self._target = target
        self._after = after
        self._upward = upward

    async def __aenter__(self) -> int:
        self._server = await asyncio.start_server(self._serve, HOST, 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def __aexit__(self, *_: object) -> None:
        self.cut(for_good=True)
        await asyncio.gather(*self._serving, return_exceptions=True)

    def cut(self, *, for_good: bool = False) -> None:
        """Cut every connection now; for good: and take no other."""
        if for_good:
            self._server.close()
        for end in self._ends:
            end.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(asyncio.ensure_future(self._carry(reader, writer)))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        first = self.connections == 1
        far_reader, far_writer = await asyncio.open_connection(HOST, self._target)
        self._ends += [writer, far_writer]
        limits = [
            self._after if first and self._upward else None,
            self._after if first and not self._upward else None,
        ]
        passing = [
            asyncio.create_task(_pass(reader, far_writer, limits[0])),
            asyncio.create_task(_pass(far_reader, writer, limits[1])),
        ]
        await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)
        for end in (writer, far_writer):
            end.transport.abort()


async def _pass(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int | None
) -> None:
    left = limit
    while left is None or left > 0:
        piece = await reader.read(4096)
        if not piece:
            return
        writer.write(piece if left is None else piece[:left])
        await writer.drain()
        left = None if left is None else left - len(piece)


async def cut_once(hub: Hub, target: int, directory: Path, after: int, *, upward: bool) -> int:
    """Send ten batches over a connection that is cut once; return how often it connected."""
    device = f"{'up' if upward else 'down'}-{after}"
    proxy = CuttingProxy(target, after, upward=upward)
    async with proxy as port:
        home = Home(directory, port, device)
        home.live(10)
        async with home.connecting():
            await until(lambda: len(hub.payloads[device]) == 10)
            await until(lambda: home.uplink.online and not home.delivery.flying)
            hub.check(device)
            await hub.confirm(device)
            await until(lambda: not home.journal.keys())
    return proxy.connections


async def test_a_connection_cut_after_any_byte_is_made_again_and_nothing_is_lost_NET_19(
    broker: RealBroker, tmp_path: Path
) -> None:
    """Through CONNECT, SUBSCRIBE, the status and ten PUBLISHes, and their answers."""
    async with listening(broker, receipts=False) as hub:
        cuts = [(after, True) for after in (*range(0, 120, 9), *range(120, 1500, 71))]
        cuts += [(after, False) for after in (*range(0, 60, 4), 70, 80, 100)]
        counts = []
        for at in range(0, len(cuts), 12):
            counts += await asyncio.gather(
                *(
                    cut_once(hub, broker.port, tmp_path, after, upward=up)
                    for after, up in cuts[at : at + 12]
                )
            )
    assert sum(count >= 2 for count in counts) >= len(cuts) - 6, "the proxy hardly cut anything"


async def test_a_retained_receipt_tells_of_a_rollback_before_anything_is_sent_AGT_25(
    broker: RealBroker, tmp_path: Path
) -> None:
    """The state is an older copy: what it made since must never be published."""
    home = Home(tmp_path, broker.port)
    home.live(30)
    (account,) = home.device.status("online").streams
    async with listening(broker, receipts=False) as hub:
        link = await open_link(Broker(HOST, broker.port, "aggregator"))
        told = (StreamReceipt(1, account.next + 7, series=account.series),)
        known = Receipt(told, STORE, 0, DEVICE)
        await link.publish(topic(FLEET, "receipt", DEVICE), known.to_json(), retain=True)
        async with home.connecting():
            await until(lambda: home.device.health == "degraded: rollback")
            home.overdue()
            await until(lambda: home.uplink.online and not home.device.delivery.due)
            assert home.journal.keys() == []
        await link.close()
        assert hub.payloads[DEVICE] == {}


def copied(tmp_path: Path, port: int, **changes: Any) -> Home:
    """Return the device in "one", stopped after 30 slots; "two" has a copy of it."""
    home = Home(tmp_path / "one", port, **changes)
    home.live(30, online=False)
    home.journal.close()
    copytree(tmp_path / "one", tmp_path / "two")
    return home


async def gives_up(older: Home) -> None:
    """Wait until an older copy knows what it is; it then has nothing to send, and sends nothing."""
    async with older.connecting():
        await until(lambda: older.device.health == "degraded: rollback")
        older.overdue()
        await until(lambda: older.uplink.online and not older.device.delivery.due)
        assert older.journal.keys() == []


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
async def test_an_older_copy_is_found_by_its_own_retained_status_AGT_25(
    broker: RealBroker, tmp_path: Path, protocol: str
) -> None:
    """Nothing was received yet, so no receipt tells of it."""
    changes: dict[str, Any] = {"broker": f'protocol = "{protocol}"'}
    first = copied(tmp_path, broker.port, **changes)
    async with listening(broker, receipts=False) as hub:
        later = Home(tmp_path / "one", broker.port, clock=first.clock, **changes)
        later.live(20, online=False)
        async with later.connecting():
            await until(lambda: later.uplink.online)
            await later.uplink.farewell()
            made = len(later.journal.keys())
        assert later.device.health == "ok"
        assert made
        await until(lambda: len(hub.payloads[DEVICE]) == made)  # it hears in its own time
        sent = dict(hub.payloads[DEVICE])
        older = Home(tmp_path / "two", broker.port, clock=first.clock, **changes)
        assert older.device.health == "ok"
        await gives_up(older)
        assert hub.payloads[DEVICE] == sent


async def test_after_a_power_cut_the_receipt_alone_tells_of_an_older_copy_AGT_25(
    broker: RealBroker, tmp_path: Path
) -> None:
    """The will, which tells of no report, has taken the place of what the device last said."""
    first = copied(tmp_path, broker.port)
    proxy = CuttingProxy(broker.port)
    async with proxy as port, listening(broker, receipts=False) as hub:
        later = Home(tmp_path / "one", port, clock=first.clock)
        later.live(20, online=False)
        async with later.connecting():
            await until(lambda: bool(hub.payloads[DEVICE]))
            await hub.confirm(DEVICE)
            await until(lambda: not later.journal.keys())
            proxy.cut(for_good=True)
            await until(lambda: hub.is_offline(DEVICE))
        assert hub.statuses[DEVICE][-1].streams == ()
        sent = dict(hub.payloads[DEVICE])
        older = Home(tmp_path / "two", broker.port, clock=first.clock)
        assert older.device.health == "ok"
        await gives_up(older)
        assert hub.payloads[DEVICE] == sent


async def test_a_device_that_was_only_restarted_is_no_copy_of_itself_AGT_25(
    broker: RealBroker, tmp_path: Path
) -> None:
    home = Home(tmp_path, broker.port)
    home.live(5)
    async with listening(broker, receipts=False):
        async with home.connecting():
            await until(lambda: home.uplink.online)
            await home.uplink.farewell()
            kept = home.journal.keys()
        again = Home(tmp_path, broker.port, clock=home.clock)
        async with again.connecting():
            await until(lambda: again.uplink.online)
            assert again.device.health == "ok"
            assert again.journal.keys() == kept


async def test_an_aggregator_that_says_it_is_there_ends_a_silence_NET_25(
    broker: RealBroker, tmp_path: Path
) -> None:
    """Through a real broker: retained, so that it is heard whenever the link comes."""
    home = Home(tmp_path, broker.port, sending="jitter_s = 0\nreceipt_interval_s = 3600")
    async with listening(broker, receipts=False) as hub, home.connecting():
        home.live(1)
        await until(lambda: len(hub.payloads[DEVICE]) == 1)
        home.overdue()
        await until(lambda: sum(map(len, hub.payloads[DEVICE].values())) == 2)
        await until(lambda: home.delivery.is_silent)
        home.live(3)
        asked = len(hub.statuses[DEVICE])
        link = await open_link(Broker(HOST, broker.port, "other"))
        told = Presence(is_online=True, since_s=1)
        await link.publish(topic(FLEET, "presence", "one"), told.to_json(), retain=True)
        await until(lambda: home.delivery.several)
        home.clock.pass_s(3600)  # within a receipt interval, at random
        home.device.housekeeping()
        home.uplink.wake()
        await until(lambda: len(hub.payloads[DEVICE]) == 4)
        assert hub.together == [1, 1, 3]  # all that is new, in one message
        await until(lambda: len(hub.statuses[DEVICE]) > asked)  # it asks for its receipt, too
        await hub.confirm(DEVICE)
        await until(lambda: not home.journal.keys())
        await link.close()

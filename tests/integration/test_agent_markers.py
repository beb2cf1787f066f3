"""S1: no reading in any file, log line, message, representation or error of the agent.

PRV-03, PRV-05: marker values go through feed, device, journal and uplink; then everything that they
left is searched for the markers in every encoding. A control shows that the search would find one.
"""

import asyncio
import gc
import logging
import re
import sqlite3
import struct
import traceback
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.claims.slots import SlotValues
from agent.config.sections import PageTable
from agent.errors import AgentError, StorageError
from agent.link.uplink import Uplink, Vitals
from agent.meters.obis.dsmr import P1Framer, P1Meter, RawTelegram, parse_telegram
from agent.page.gather import Household
from agent.page.http import encoded
from agent.page.record import LeftRecord
from agent.page.server import Page
from agent.running.feeds import Feeds
from agent.state.journal import Journal
from edge_ldp.device.errors import EdgeLdpError
from firmware_stubs.meters.telegram import p1_telegram
from tests.agent.samples import DEVICE, SLOT_S, StillClock, local_device, make_config, make_plan
from tests.integration.agent_bench import listening, until
from tests.integration.conftest import RealBroker

OF_THE_OWNER = ("agent.config", "agent.meters.section")  # what is written there, its name included
METER = "E0098765432123456"
POWER_W = 314_159  # far above the ceiling, so clamping is on the way too
BASE_WH = 271_828_182
RISE_WH = 1_414_213
SLOTS = 12
MARKERS = (POWER_W, RISE_WH, *(BASE_WH + k * RISE_WH for k in range(SLOTS + 1)))


def encodings(marker: int) -> Iterator[tuple[str, bytes]]:
    """Yield (name, bytes) of one marker in every encoding we can think of."""
    kilo = f"{marker // 1000}.{marker % 1000:03d}"
    for text in (str(marker), kilo, f"{marker:_}", f"{marker:,}", f"{marker:x}", f"{marker:X}"):
        yield f"text {text}", text.encode()
        yield f"hex of {text}", text.encode().hex().encode()
        yield f"UTF-16 of {text}", text.encode("utf-16-le")
        for shift in range(3):
            coded = b64encode(b"\0" * shift + text.encode())
            yield f"base64 of {text}", coded[-(-shift * 8 // 6) : (shift + len(text)) * 8 // 6]
    for order in "<>":
        for code in "IQfd":
            packed = struct.pack(order + code, marker)
            yield order + code, packed
            yield f"{order}{code} in hex", packed.hex().encode()
        for code in "fd":
            yield f"{order}{code} kilo", struct.pack(order + code, marker / 1000)


PATTERNS = [row for marker in MARKERS for row in encodings(marker)] + [
    ("meter", METER.encode()),
    ("meter in hex", METER.encode().hex().upper().encode()),
]


def search(content: bytes) -> list[str]:
    """Return the names of the encodings in which a marker stands in `content`."""
    return [name for name, pattern in PATTERNS if pattern in content]


def telegram(slot: int, time_s: int) -> bytes:
    return p1_telegram(
        meter_id=METER, time_s=time_s, import_wh=BASE_WH + slot * RISE_WH, power_w=POWER_W
    )


class Home:
    """Feed, device, journal and uplink of one home, on a clock that stands still."""

    def __init__(self, state: Path, port: int) -> None:
        self.clock = StillClock()
        config = make_config(
            state, broker_port=port, quantities=("power", "energy_import"), window=(2, 1),
            ceiling=10**7, meter=f'meter_id = "{METER}"',
        )  # fmt: skip
        self.journal = Journal(state)
        self.device = local_device(config, self.journal, self.clock)
        self.uplink = Uplink(config, self.device, self.clock, None)
        self.feeds = Feeds(config, self.device, self.uplink, self.clock)
        self.record = LeftRecord(self.journal, SLOT_S, self.clock.now)
        self.device.core.kept = self.record
        vitals = Vitals(self.feeds.health, {"telegram_s": self.feeds.telegram_age_s})
        household = Household(self.device, self.record, lambda: vitals)
        self.page = Page(PageTable(), household)
        self.meter = P1Meter(meter_id=METER)
        for stream_id, stream in enumerate(("power", "energy_import")):
            plan = make_plan(stream=stream, stream_id=stream_id, theta=10**6, ceiling=10**7)
            assert self.device.accept_plan(stream, plan.to_json()) is None

    def live(self) -> None:
        """Let the marked slots pass, with noise, half telegrams and wrong checksums in between."""
        for slot in range(SLOTS + 1):
            good = telegram(slot, int(self.clock.now()))
            for piece in (
                good[:200],
                None,
                good.replace(b"1.7.0", b"1.7.9"),
                good,
                good[100:],
                None,
            ):
                self.feeds.meters[0].receive(self.meter, piece)
            self.clock.pass_s(SLOT_S)
            self.feeds.tick()

    def objects(self) -> list[object]:
        """Return every object of ours that is alive, and what events and errors look like."""
        ours = ("agent.", "edge_ldp.")
        alive = [
            found
            for found in gc.get_objects()
            if (module := str(type(found).__module__)).startswith(ours)
            and not module.startswith(OF_THE_OWNER)
        ]
        (frame,) = (e for e in P1Framer().feed(telegram(0, 0)) if isinstance(e, RawTelegram))
        parsed = parse_telegram(frame, crc="required")
        events = self.meter.feed(telegram(1, int(self.clock.now())))
        readings = getattr(parsed, "readings", ())
        assert len(readings) >= 2
        values = SlotValues(1, (POWER_W, RISE_WH))
        return [*alive, frame, parsed, *events, *readings, values]

    async def served(self) -> bytes:
        """Return every byte that the household's page serves now."""
        paths = ("/", "/plan/power-1.plan", "/proof/power-1.json", "/proof/energy_import-1.json")
        replies = [await self.page.reply(path) for path in (*paths, "/x")]
        assert [reply.status for reply in replies] == [200] * len(paths) + [404]
        self.page = Page(PageTable(), self.page._household)  # noqa: SLF001 (made anew the next time)
        return b"".join(encoded(reply) for reply in replies)


def shown(found: object) -> bytes:
    return f"{found!r}\n{found}\n{found:}".encode() if _formats(found) else repr(found).encode()


def _formats(found: object) -> bool:
    return type(found).__format__ is object.__format__


def provoked(home: Home) -> list[str]:
    """Return the texts of errors raised while a marked value was in hand."""
    closed = SlotValues(home.device.slot, (POWER_W, RISE_WH))
    home.clock.pass_s(SLOT_S)
    texts = []
    real_draw = home.device.core.draw
    with home.journal.reading() as db:
        real_db = db

    def dry(_n: int) -> int:
        raise EdgeLdpError("the entropy source gave fewer bytes than asked for")

    for error, spoil in ((EdgeLdpError, "draw"), (StorageError, "disk")):
        if spoil == "draw":
            home.device.core.draw = dry  # type: ignore[assignment] # a source that fails
        else:
            real_db.set_authorizer(no_change)  # nothing that passes, as a full disk would
        with pytest.raises(error) as raised:
            home.device.close_slot(closed, online=True)
        texts += ["".join(traceback.format_exception(raised.value)), repr(raised.value)]
        home.device.core.draw = real_draw
        real_db.set_authorizer(None)
    return texts


def no_change(action: int, *_: object) -> int:
    """Let SQLite refuse to change any row."""
    is_change = action in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE)
    return sqlite3.SQLITE_DENY if is_change else sqlite3.SQLITE_OK


async def test_no_marker_is_found_in_anything_that_the_agent_leaves_PRV_03_PRV_05_PRV_28(
    tmp_path: Path, broker: RealBroker, caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    directory = tmp_path / "home"
    directory.mkdir()
    caplog.set_level(1)
    logging.getLogger("asyncio").setLevel(1)
    home = Home(directory / "state.db", broker.port)
    async with listening(broker) as hub:
        running = asyncio.create_task(home.uplink.run())
        await until(lambda: home.uplink.online)
        pages = [await home.served()]
        home.live()
        pages.append(await home.served())
        await until(lambda: len(hub.slots(DEVICE)) >= SLOTS - 1)
        texts = provoked(home)
        pages.append(await home.served())
        status = home.device.status("online").to_json()
        sent = b"".join(p for payloads in hub.payloads[DEVICE].values() for p in payloads[0:])
        files = {path.name: path.read_bytes() for path in directory.iterdir()}
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    objects = b"\n".join(shown(found) for found in home.objects())
    objects = re.sub(rb"0x[0-9a-f]{9,}", b"at", objects)  # an address has any digits
    home.journal.close()
    files |= {f"closed {path.name}": path.read_bytes() for path in directory.iterdir()}
    printed = capfd.readouterr()
    logs = "\n".join(
        f"{record.getMessage()} {record.args!r} {record.exc_text}" for record in caplog.records
    )
    searched = {
        **files,
        "logs": (logs + caplog.text).encode(),
        "objects": objects,
        "errors": "\n".join(texts).encode(),
        "published": sent,
        "status": status,
        "page": b"".join(pages),
        "printed": (printed.out + printed.err).encode(),
        "broker": b"".join(p.read_bytes() for p in broker.directory.iterdir() if p.is_file()),
    }
    assert {name: found for name, content in searched.items() if (found := search(content))} == {}
    # and the search had something to search
    assert {"state.db", "state.db-wal", "closed state.db", "state.db.left"} <= set(files)
    assert files["state.db.left"].count(b"made") >= SLOTS - 1
    assert pages[-1].count(b"read alone") >= SLOTS - 1
    assert len(files["state.db-wal"]) > 10_000
    assert objects.count(b"\n") > 100
    assert b"Device" in objects
    assert b"SlotBuilder" in objects
    assert len(sent) >= 23 * SLOTS
    assert "which is no fault" in logs
    assert all(
        issubclass(error, AgentError | EdgeLdpError) for error in (StorageError, EdgeLdpError)
    )


@pytest.mark.parametrize("place", ["row", "deleted row", "log", "repr", "error"])
def test_a_planted_marker_is_found(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, place: str
) -> None:
    """The control: each place that is searched would show a reading."""
    if place.endswith("row"):
        journal = Journal(tmp_path / "s.db")
        with journal.reading() as db:
            db.execute("INSERT INTO waiting VALUES (1, 1, 1, ?, 0)", (POWER_W,))
            if place == "deleted row":
                db.execute("DELETE FROM waiting")
        content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert search(content) == []  # SQLite keeps integers in 3 bytes: too short to tell
        with journal.reading() as db:
            db.execute("INSERT INTO plans VALUES ('x', 1, ?)", (str(BASE_WH),))
            if place == "deleted row":
                db.execute("DELETE FROM plans")
        content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        journal.close()
    elif place == "log":
        with caplog.at_level(logging.DEBUG):
            logging.getLogger("edge-ldp.agent").debug("mean %d W", POWER_W)
        content = caplog.text.encode()
    elif place == "repr":
        content = shown({"value": POWER_W})
    else:
        content = "".join(traceback.format_exception(ValueError(RISE_WH))).encode()
    assert search(content)


@pytest.mark.parametrize("marker", [POWER_W, BASE_WH, RISE_WH])
def test_every_encoding_of_a_marker_is_found(marker: int) -> None:
    for name, pattern in encodings(marker):
        assert name in search(b"\x07" * 11 + pattern + b"\x07" * 5)

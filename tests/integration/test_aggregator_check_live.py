"""`aggregator check --live`: every part that the service needs, tried against real ones."""

import asyncio
import base64
import hashlib
import json
import re
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aggregator.config import StreamTable, load_config, parse_config, read_password
from aggregator.counting.members import named_wishes
from aggregator.plans.planner import first_plan
from aggregator.plans.signing import PlanSeal, read_seal
from aggregator.running import rights, trial
from aggregator.running.rights import Stored, Trial, plan_verdict
from aggregator.running.trial import try_service
from aggregator.store.administration.registry import apply
from aggregator.store.contract import PlanRow
from aggregator.store.opening import open_session, open_store
from aggregator.store.rows import MOVED
from edge_ldp.protocol.messages import Status
from edge_ldp.protocol.plan import Plan
from edge_ldp.service.broker import Broker, LinkLostError
from edge_ldp.service.clock import Clock
from edge_ldp.service.mqtt import open_link
from edge_ldp.service.trial import Finding
from tests import disk, needs
from tests.aggregator.fakes import CONFIG
from tests.aggregator.test_wrong_turns import Desk, free_port, serving, started, wait_for
from tests.integration.conftest import RealBroker
from tests.integration.test_check_live import fails, retained
from tests.postgres import PostgresServer
from tests.unprivileged import told_to_nobody

MakeBroker = Callable[[str], RealBroker]


AT = "edge-ldp/v1/homes"
WAIT_S = 0.5
PARTS = ["store", "room", "service", "clock", "name", "connection", "login"]
STORED = Stored({}, frozenset(), 0, has_reports=False, is_served=False)
RIGHTS = ["publishing", "reports", "statuses", "plan power"]


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """Give a place that the broker's user may enter, on a machine whose clock is synchronised."""
    monkeypatch.setattr(trial, "kernel_synchronised", lambda: True)
    place = Path(tempfile.mkdtemp(prefix="check-", dir=disk.place()))
    place.chmod(0o755)
    yield Desk(place, monkeypatch)
    shutil.rmtree(place)


def tried(file: Path, wait_s: float = WAIT_S) -> dict[str, Finding]:
    found = try_service(load_config(file), str(file), Clock(), wait_s)
    return {one.what: one for one in found}


def configured(place: Path, port: int, more: str = "") -> Path:
    """Return the configuration of a fleet whose broker lets in anybody."""
    text = CONFIG.format(path=place / "a.db", intake="")
    text = text.replace('host = "127.0.0.1"', f'host = "127.0.0.1"\nport = {port}\n{more}')
    file = place / "aggregator.toml"
    file.write_text(text)
    return file


def untried(found: Mapping[str, Finding]) -> list[str]:
    return [what for what, one in found.items() if one.outcome == "untried"]


def ours(file: Path, name: str = "looks") -> Broker:
    config = load_config(file)
    table, password = config.broker, read_password(config.broker, str(file))
    return Broker(table.host, table.use_port, name, username=table.username, password=password)


def send(broker: Broker, at: str, payload: bytes, *, retain: bool = True) -> None:
    async def go() -> None:
        link = await open_link(broker)
        await link.publish(at, payload, retain=retain)
        await link.close()

    asyncio.run(go())


def left(file: Path) -> dict[str, bytes]:
    """Return what the broker retains of the fleet."""
    return asyncio.run(retained(ours(file), f"{AT}/#", end=f"{AT}/plan/end"))


def put_plan(file: Path, epoch: int) -> bytes:
    """Store a plan as the service would; return what that would publish."""
    config = load_config(file)
    plan = first_plan(config.fleet, config.streams[0], epoch=epoch, now_s=int(time.time()))
    with closing(open_store(config, str(file))) as store:
        store.add_plan(PlanRow(config.streams[0].id, epoch, plan.issued_s, plan.to_json()))
    return read_seal(config, str(file)).wrap(plan.to_json())


def lines(file: Path, *kept_out: str) -> None:
    """Take rights away from the access list of a fleet that was set up."""
    acl = file.parent / "broker" / "acl"
    text = acl.read_text().splitlines(keepends=True)
    left = [line for line in text if not line.startswith(kept_out)]
    assert len(left) == len(text) - len(kept_out)
    acl.write_text("".join(left))


def test_after_setup_all_is_ok_and_nothing_is_changed(desk: Desk) -> None:
    file = desk.set_up()
    with serving(desk):
        plan = put_plan(file, 3)
        send(ours(file), f"{AT}/plan/power", plan)
        before = left(file)
        stored = (file.parent / "aggregator.db").read_bytes()
        found = tried(file, 5)
        assert left(file) == before == {f"{AT}/plan/power": plan}
    assert (file.parent / "aggregator.db").read_bytes() == stored
    assert (file.parent / "aggregator.db-wal").stat().st_size == 0  # SQLite's own, to read
    assert list(found) == PARTS + RIGHTS
    assert fails(found) == []
    # Mosquitto's acl_file grants every subscription: only what comes shows whether it gives
    assert untried(found) == ["reports", "statuses"]
    line = f"under `user aggregator`: topic read {AT}/report/+, topic read {AT}/stream/+"
    assert found["reports"].remedy == f"see that the broker's access list has, {line}"
    assert found["plan power"].told == "epoch 3, θ 43470 W, stands"


def test_the_command_says_it_in_words_and_as_JSON_and_fails_with_4(desk: Desk) -> None:
    file = str(desk.set_up())
    text = " ".join(desk.says("check", "--live", "-c", file).split())
    assert "Connection refused → nothing listens there" in text
    assert "untried login connection fails, see above untried publishing" in text
    view = json.loads(desk.says("check", "--live", "-c", file, "--json"))
    assert [one["what"] for one in view["live"]] == PARTS + RIGHTS
    assert set(view["live"][0]) == {"what", "outcome", "told", "remedy"}
    assert "live" not in json.loads(desk.says("check", "-c", file, "--json"))


@pytest.mark.parametrize(
    ("missing", "at", "told", "line"),
    [
        ("topic readwrite {}/plan/+", "publishing", "/plan/edge-ldp-check-", "readwrite {}/plan/+"),
        (
            "topic write {}/receipt/+",
            "publishing",
            "/receipt/edge-ldp-check-",
            "write {}/receipt/+",
        ),
        ("topic read {}/status/+", "statuses", "retains them of 2 devices", "read {}/status/+"),
        ("", "", "", ""),
    ],
    ids=["plan", "receipt", "status", "none"],
)
def test_a_right_that_is_missing_is_named_with_its_line(
    desk: Desk, missing: str, at: str, told: str, line: str
) -> None:
    file = desk.set_up()
    device = broker_login(desk, file)
    if missing:
        lines(file, missing.format(AT))
    heard_of(file, "home-1", "home-2")
    with serving(desk):
        send(device, f"{AT}/status/home-1", Status("online", "1").to_json())
        found = tried(file, 3)
    assert fails(found) == ([at] if at else [])
    assert (found["statuses"].outcome == "ok") == (at != "statuses")
    if at:
        assert told in found[at].told
        assert f"lacks, under `user aggregator`: topic {line.format(AT)}" in found[at].remedy


def test_the_right_to_tell_home_assistant_of_sensors_is_tried_where_it_is_used(desk: Desk) -> None:
    file = desk.set_up()
    file.write_text(file.read_text() + '\n[announce]\ndiscovery = "homeassistant"\n')
    with serving(desk):
        found = tried(file, 1)["publishing"]
    assert (found.outcome, found.told) == ("ok", "plans, receipts, presences, sums, sensors")
    right = "topic write homeassistant/sensor/edge-ldp-homes/+/config"
    lines(file, right)
    with serving(desk):
        found = tried(file, 1)["publishing"]
    assert found.outcome == "fails"
    assert found.remedy.endswith(f"lacks, under `user aggregator`: {right}")


def broker_login(desk: Desk, file: Path) -> Broker:
    """Return a device's way to the broker: it was invited."""
    desk.says("devices", "invite", "-c", str(file), "home-1")
    given = json.loads((file.parent / "invitations" / "home-1.invitation").read_text())
    there, password = ours(file).port, given["password"]
    return Broker("127.0.0.1", there, "home-1", username="home-1", password=password)


def heard_of(file: Path, *devices: str) -> None:
    session = open_session(load_config(file), str(file))
    apply(session, named_wishes(devices, enrols=True), 1)
    with session.transaction():
        session.each("UPDATE devices SET state = ?, seen_s = ?", [("online", 1)])
    session.close()


@pytest.mark.parametrize(
    ("broker", "at", "advice"),
    [
        ('host = "localhost"\nport = {secure}', "connection", "tls = true"),
        ('host = "localhost"\nport = {secure}\ntls = true', "TLS", "[broker] ca_file"),
        ('host = "localhost"\nport = {port}\ntls = true', "TLS", "tls = false"),
        ('host = "localhost"\nport = {secure}\ntls = true\nca_file = "{ca}"', "", ""),
        ('host = "broker.invalid"\nport = 1\ntls = true', "name", "check [broker] host"),
    ],
    ids=["no TLS", "no ca_file", "TLS against a plain port", "right", "unknown"],
)
def test_TLS_that_is_wrong_says_what_to_write(
    desk: Desk, broker: str, at: str, advice: str
) -> None:
    port, secure = free_port(), free_port()
    file = desk.set_up("--host", "localhost", "--tls-port", str(secure), "--port", str(port))
    told = broker.format(port=port, secure=secure, ca=file.parent / "broker" / "ca.pem")
    file.write_text(file.read_text().replace(f'host = "127.0.0.1"\nport = {port}', told, 1))
    with serving(desk):
        found = tried(file)
    assert fails(found) == ([at] if at else [])
    if at:
        assert advice in found[at].remedy
        assert untried(found)[-5:] == ["login", *RIGHTS]
    else:
        assert found["TLS"].told == "the broker's certificate is verified"


def test_a_broker_that_answers_subscriptions_truly_is_believed(
    tmp_path: Path, make_broker: MakeBroker, desk: Desk
) -> None:
    """Mosquitto's other access list, its dynamic security, refuses what it does not give."""
    (tmp_path / "dynsec.json").write_text(json.dumps(dynamic(["report", "stream", "plan"])))
    broker = make_broker(DYNAMIC.format(plugin=plugin(), config=tmp_path / "dynsec.json"))
    (desk.place / "secret").write_text("right")
    (desk.place / "secret").chmod(0o600)
    login = f'username = "aggregator"\npassword_file = "{desk.place / "secret"}"'
    found = tried(configured(desk.place, broker.port, login))
    assert found["reports"] == Finding("reports", "ok", "the broker grants them")
    assert found["statuses"].told == "edge-ldp/v1/demo/status/+: not authorized"
    assert "topic read edge-ldp/v1/demo/status/+" in found["statuses"].remedy
    assert fails(found) == ["statuses"]


DYNAMIC = """
listener {{port}} 127.0.0.1
allow_anonymous false
user root
plugin {plugin}
plugin_opt_config_file {config}
log_dest file {{directory}}/mosquitto.log
"""


def plugin() -> Path:
    found = sorted(Path("/usr/lib").glob("*/mosquitto_dynamic_security.so"))
    return found[0] if found else needs.missing("mosquitto_dynamic_security.so")


def dynamic(readable: Sequence[str]) -> dict[str, Any]:
    """Return the file of that plug-in, with one user, who may read these and write all."""
    salt = b"0123456789ab"
    hashed = hashlib.pbkdf2_hmac("sha512", b"right", salt, 101)
    acls = [
        {"acltype": "publishClientSend", "topic": "edge-ldp/v1/demo/#", "allow": True},
        {"acltype": "publishClientReceive", "topic": "#", "allow": True},
        *(
            {"acltype": "subscribePattern", "topic": f"edge-ldp/v1/demo/{kind}/+", "allow": True}
            for kind in readable
        ),
    ]
    client = {
        "username": "aggregator",
        "password": base64.b64encode(hashed).decode(),
        "salt": base64.b64encode(salt).decode(),
        "iterations": 101,
        "roles": [{"rolename": "r"}],
    }
    return {
        "defaultACLAccess": dict.fromkeys(
            ("publishClientSend", "publishClientReceive", "subscribe", "unsubscribe"), False
        ),
        "clients": [client],
        "roles": [{"rolename": "r", "acls": acls}],
    }


@pytest.mark.parametrize(
    ("protocol", "outcome"), [("auto", "ok"), ("3.1.1", "untried")], ids=["5", "3.1.1"]
)
def test_an_open_broker_keeps_nothing_from_us(
    desk: Desk, broker: RealBroker, protocol: str, outcome: str
) -> None:
    found = tried(configured(desk.place, broker.port, f'protocol = "{protocol}"'), 4)
    assert fails(found) == []
    assert found["publishing"].outcome == outcome
    told = "the broker keeps no topic of the fleet from us"
    assert found["reports"] == Finding("reports", "ok", told)
    assert found["statuses"] == Finding("statuses", "ok", told)
    assert found["plan power"].told == "none yet: `edge-ldp aggregator run` makes the first"


def test_workers_that_share_lose_no_message_to_it(desk: Desk, broker: RealBroker) -> None:
    """A subscription within their group would take every other one."""
    file = configured(desk.place, broker.port, 'share = "workers"')
    text = file.read_text().replace(f'path = "{desk.place}/a.db"', AWAY)
    file.write_text(text)

    async def shared() -> tuple[list[int], list[Finding]]:
        link = await open_link(Broker("127.0.0.1", broker.port, "worker"))
        await link.subscribe(["$share/workers/edge-ldp/v1/demo/report/+"])
        out = await open_link(Broker("127.0.0.1", broker.port, "home"))
        work = asyncio.to_thread(try_service, load_config(file), "x", Clock())
        trying = asyncio.create_task(work)
        sent = 0
        while not trying.done():
            await out.publish("edge-ldp/v1/demo/report/home-1", str(sent).encode())
            sent += 1
        async with asyncio.timeout(30):
            got = [int((await link.receive()).payload) for _ in range(sent)]
        await link.close()
        await out.close()
        return got, trying.result()

    got, found = asyncio.run(shared())
    assert got == list(range(len(got)))
    assert len(got) > 10
    assert next(one for one in found if one.what == "reports").outcome == "ok"
    assert fails({one.what: one for one in found}) == ["store"]


AWAY = 'url = "postgresql://postgres@/fleet?host=/nowhere"'


def test_a_service_that_runs_is_not_disturbed(desk: Desk) -> None:
    file, log = desk.set_up(), desk.place / "log"
    command = [sys.executable, "-m", "edge_ldp.cli", "aggregator", "run", "-c", str(file)]
    with serving(desk), log.open("w") as out, started(command, out):
        wait_for(": epoch", log)
        for _ in range(2):
            found = tried(file, 3)
            assert fails(found) == []
            assert re.fullmatch(r"one runs; it said ok \d+ s ago", found["service"].told)
            assert found["plan power"].told.startswith("epoch 1, θ 43470 W")
        assert log.read_text().count("connected to") == 1
        assert "WARNING" not in log.read_text()


def test_a_plan_that_the_broker_lost_or_never_had_is_told(desk: Desk) -> None:
    file = desk.set_up()
    with serving(desk):
        desk.patch.setattr(rights, "AGAIN_S", 0.2)
        older, newer = put_plan(file, 3), put_plan(file, 4)
        found = tried(file)["plan power"]
        assert (found.outcome, found.told) == (
            "fails",
            "the broker retains none, and the store has one",
        )
        send(ours(file), f"{AT}/plan/power", older)
        found = tried(file)["plan power"]
        assert (found.outcome, found.told) == ("fails", "epoch 3 stands, and the store has 4")
        send(ours(file), f"{AT}/plan/power", newer)
        assert tried(file)["plan power"].outcome == "ok"
        send(ours(file), f"{AT}/plan/power", b"no plan")
        assert "is no plan of ours" in tried(file)["plan power"].told


def judged(
    stream: StreamTable, stands: Plan, known: Stored, now_s: float | None = None
) -> tuple[str, str, str]:
    found = plan_verdict(stream, known, stands.to_json(), PlanSeal(), now_s or time.time())
    return found.outcome, found.told, found.remedy


def test_a_plan_of_another_aggregator_is_told_NET_27(desk: Desk) -> None:
    (stream, *_) = load_config(desk.set_up()).streams
    plan, known = first_plan("homes", stream, epoch=9, now_s=1), STORED
    outcome, told, remedy = judged(stream, plan, known)
    assert (outcome, told) == ("fails", "epoch 9 stands, and the store has none")
    assert "another aggregator" in remedy
    _, told, _ = judged(stream, replace(plan, store="ab" * 8), replace(known, store="cd" * 8))
    assert "of another aggregator's store, abababababababab, not of cdcdcdcdcdcdcdcd" in told
    retired = replace(known, retired=frozenset([stream.id]))
    for known_of in (retired, None):
        found = plan_verdict(stream, known_of, plan.to_json(), PlanSeal(), time.time())
        assert found.outcome == "untried"


def test_a_plan_dated_ahead_that_stands_is_no_good_one_PLN_18(desk: Desk) -> None:
    (stream, *_), now_s = load_config(desk.set_up()).streams, time.time()
    plan = first_plan("homes", stream, epoch=1, now_s=int(now_s) + 86_400)
    known = replace(STORED, plans={stream.id: plan.to_json()})
    outcome, told, remedy = judged(stream, plan, known, now_s)
    assert (outcome, "devices refuse what is ahead" in told) == ("fails", True)
    assert "issues it anew" in remedy
    assert judged(stream, plan, known, now_s + 86_400)[0] == "ok"


def test_a_plan_sharper_than_devices_admit_that_stands_is_no_good_one_PLN_22(desk: Desk) -> None:
    (stream, *_) = load_config(desk.set_up()).streams
    first = first_plan("homes", stream, epoch=1, now_s=int(time.time()))
    plan = replace(first, share=(1, 2), stream_mechanism=stream.sums(stream.least_theta - 1))
    outcome, told, remedy = judged(stream, plan, replace(STORED, plans={stream.id: plan.to_json()}))
    assert outcome == "fails"
    assert f"devices refuse what is below {stream.least_theta} " in told
    assert "raises it" in remedy


def test_what_a_service_stores_and_publishes_meanwhile_is_no_difference(desk: Desk) -> None:
    file = desk.set_up()
    with serving(desk):
        plan = put_plan(file, 1)
        send(ours(file), f"{AT}/plan/power", plan)
        first = [Stored({1: b"an older one"}, frozenset(), 0, has_reports=True, is_served=True)]
        read = rights.read_stored
        desk.patch.setattr(trial, "read_stored", lambda *at: first.pop() if first else read(*at))
        assert tried(file)["plan power"].outcome == "ok"


class Losing:
    """A link that is lost as soon as anything is asked of it."""

    broker, protocol = Broker("broker.example", 1883, "x"), "5"

    async def publish(self, *_: object) -> None:
        raise LinkLostError("broker.example:1883", "Connection refused")


def test_a_link_that_is_lost_fails_what_was_being_tried(tmp_path: Path) -> None:
    config = load_config(configured(tmp_path, free_port()))
    asked = Trial(config, PlanSeal(), None, None, WAIT_S, Clock())
    (found,) = asyncio.run(rights.try_rights(asked, Losing()))  # type: ignore[arg-type]
    assert (found.what, found.outcome, found.told) == ("publishing", "fails", "Connection refused")
    assert "nothing listens there" in found.remedy


def store(desk: Desk, text: str = "") -> tuple[Path, Finding]:
    """Return the verdict on the store of a fleet whose broker does not run."""
    file = desk.place / "aggregator.toml"
    if not file.exists():
        configured(desk.place, free_port())
    if text:
        file.write_text(file.read_text().replace(f'path = "{desk.place}/a.db"', text))
    return file, tried(file)["store"]


def test_a_store_that_is_not_there_yet_is_made_where_it_can_be(desk: Desk) -> None:
    _, found = store(desk)
    told = f"{desk.place}/a.db is not there yet: `edge-ldp aggregator run` makes it"
    assert found == Finding("store", "ok", told)
    assert not (desk.place / "a.db").exists()
    _, found = store(desk, f'path = "{desk.place}/none/a.db"')
    assert (found.outcome, found.told) == ("fails", f"{desk.place}/none is not there")
    assert f"mkdir -p {desk.place}/none" in found.remedy


def test_a_store_of_another_fleet_or_version_or_that_moved_is_told(desk: Desk) -> None:
    file, _ = store(desk)
    with closing(open_store(load_config(file), "x")) as made:
        made.pin({"fleet": "other"})
    _, found = store(desk)
    assert found.told.endswith("was made for fleet = other, not demo")
    with closing(sqlite3.connect(desk.place / "a.db")) as db:
        db.execute("UPDATE facts SET value = 'demo' WHERE name = 'fleet'")
        db.commit()
        assert store(desk)[1].outcome == "ok"
        db.execute("INSERT INTO facts VALUES (?, 'postgresql://there')", (MOVED,))
        db.commit()
        assert "was moved to postgresql://there" in store(desk)[1].told
        db.execute("PRAGMA user_version = 3")
        found = store(desk)[1]
        assert found.outcome == "ok"
        assert "is of schema 3, this version reads" in found.told
        db.execute("PRAGMA user_version = 99")
        found = store(desk)[1]
        assert (found.outcome, found.remedy) == ("fails", "upgrade edge-ldp")


def test_a_store_that_this_user_may_only_read_fails(desk: Desk) -> None:
    file, _ = store(desk)
    open_store(load_config(file), "x").close()
    (desk.place / "a.db").chmod(0o644)
    if Path("/proc/self").owner() != "root":
        (desk.place / "a.db").chmod(0o444)
    check = ["check", "-c", str(file)]
    told = told_to_nobody("aggregator", [*check, "--live"], [*check, "--live"])
    assert re.search(rf"fails +store .*{desk.place}/a.db.* cannot be written by this user", told)
    assert "run this as the service's user" in told


def test_a_disk_without_room_fails(desk: Desk) -> None:
    file, _ = store(desk)
    file.write_text(file.read_text() + f'\n[archive]\npath = "{desk.place}/archive"\n')
    assert fails(tried(file)) == ["connection"]
    desk.patch.setattr(trial, "LEAST_BYTES", 1 << 60)
    found = tried(file)
    assert fails(found) == ["room", "archive", "connection"]
    assert "GiB free at" in found["room"].told


def test_a_clock_that_is_not_synchronised_or_behind_the_store_fails(desk: Desk) -> None:
    file = configured(desk.place, free_port())
    desk.patch.setattr(trial, "kernel_synchronised", lambda: False)
    clock = tried(file)["clock"]
    assert (clock.outcome, "not synchronised" in clock.told) == ("fails", True)
    assert "timedatectl set-ntp true" in clock.remedy
    fast = parse_config(file.read_text() + "\n[clock]\nrate = 10.0\n", "x")
    assert trial.try_service(fast, "x", Clock())[3].told == "a rehearsal's ([clock])"
    desk.patch.setattr("aggregator.store.sqlite.reader.SqliteReader.last_commit_s",
                       lambda _: time.time() + 1000)  # fmt: skip
    open_store(load_config(file), "x").close()
    assert re.fullmatch(r"\d+ s behind the store's last commit", tried(file)["clock"].told)


def test_postgresql_is_read_and_what_keeps_it_from_being_written_told(
    desk: Desk, postgres: PostgresServer
) -> None:
    url = postgres.new_database()
    file, found = store(desk, f'url = "{url}"')
    assert found.outcome == "ok"
    assert "is of schema 0" in found.told
    open_store(load_config(file), "x").close()
    assert store(desk)[1].outcome == "ok"
    assert tried(file)["room"].outcome == "untried"
    name = url.partition("@/")[2].partition("?")[0]
    postgres.ask(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    assert "read-only" in store(desk)[1].told
    postgres.ask(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    postgres.ask("CREATE ROLE looker LOGIN; GRANT pg_read_all_data TO looker")
    found = store(desk, "")[1]
    file.write_text(file.read_text().replace("postgres@", "looker@"))
    found = tried(file)["store"]
    assert "may not write into records, count_deltas, plans, facts, devices" in found.told


def test_postgresql_that_is_away_fails_and_the_broker_is_tried_all_the_same(
    desk: Desk, broker: RealBroker
) -> None:
    file = configured(desk.place, broker.port)
    file.write_text(file.read_text().replace(f'path = "{desk.place}/a.db"', AWAY))
    found = tried(file)
    assert fails(found) == ["store"]
    assert "is the server up" in found["store"].remedy
    assert found["reports"].outcome == "ok"
    assert untried(found) == ["room", "service", "plan power"]

"""A home goes on under another name on either store: nothing is lost, nothing counts twice."""

import json
from pathlib import Path
from secrets import randbelow
from typing import Any

import pytest

from aggregator.archive.directory import open_spool
from aggregator.archive.releases import read_releases
from aggregator.counting.members import named_wishes
from aggregator.counting.reporters import hash_of
from aggregator.enrolment.logins import changing_logins, hashed
from aggregator.errors import MemberError
from aggregator.intake.intake import commit
from aggregator.store.administration.erasure import erase, erased_devices
from aggregator.store.administration.registry import apply
from aggregator.store.administration.renaming import former_names, rename
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.cli import main
from edge_ldp.device.sums_frame import encode_sums
from edge_ldp.protocol.messages import topic
from edge_ldp.service.mqtt import Message
from tests.aggregator.archive.test_releases import SUMS, release
from tests.aggregator.archive_run import CONFIG, SEGMENT_BYTES, config_in, traffic
from tests.aggregator.counting.test_period_sums import RULES as SUMMED
from tests.aggregator.counting.test_period_sums import frame as summed
from tests.aggregator.engines import Engine
from tests.aggregator.home_traffic import report, seen, take
from tests.aggregator.store.test_erasure import NAME, OTHERS, fill, texts, who
from tests.aggregator.store.test_registry import AT_S, opened, refusals

NEW = "home-9"  # as long as the old one: codes are by a name's length


def test_AGG_41_all_of_a_renamed_home_goes_on_and_its_old_name_is_barred(engine: Engine) -> None:
    with opened(engine) as (store, session):
        fill(session, store)
        before, told, reporters = seen(store), texts(session), who(session)
        assert rename(session, NAME, NEW, AT_S)
        assert not rename(session, NAME, NEW, AT_S)
        after, now = seen(store), texts(session)
        assert (after.tally, after.presence) == (before.tally, before.presence)
        renamed = [((NEW if d == NAME else d, s), one) for (d, s), one in before.records]
        assert dict(after.records) == dict(renamed)
        assert who(session) == reporters - {hash_of(NAME)} | {hash_of(NEW)}
        for table, text in now.items():
            assert text.count(f"'{NAME}'") == {"devices": 1}.get(table, 0), table
            assert text.count(NEW) >= told[table].count(f"'{NAME}'"), table
        rows = {row.device: row for row in store.devices()}
        assert (rows[NEW].state, rows[NEW].revoked_s) == ("online", None)
        assert (rows[NAME].state, rows[NAME].revoked_s) == ("unknown", AT_S)
        # what waits on the device came, or comes, under either name
        take(store, report(NAME, 1), report(NAME, 2))
        assert seen(store).tally == before.tally
        assert refusals(store)["device"] >= 1
        again = Message(topic("demo", "report", NEW), encode_sums(summed()))
        totals = store.period_totals("power", 0, 1 << 40)
        take(store, report(NEW, 1), again, rules=SUMMED)
        assert seen(store).tally == before.tally
        assert store.period_totals("power", 0, 1 << 40) == totals
        take(store, report(NEW, 2))
        assert seen(store).tally.total == before.tally.total + 12
        for wanted in ({"enrols": True}, {"revoked": False}, {"held": False}, {"group": "east"}):
            with pytest.raises(MemberError, match=f"was renamed to {NEW}"):
                apply(session, named_wishes([NAME], **wanted), AT_S)


def test_AGG_41_a_name_that_was_seen_is_nobodys_new_one_and_erasing_erases_all_names(
    engine: Engine,
) -> None:
    with opened(engine) as (store, session):
        fill(session, store)
        rename(session, NAME, NEW, AT_S)
        for old, new in ((NAME, "x"), ("stranger", "x"), (NEW, NAME), (NEW, OTHERS[0]), (NEW, NEW)):
            with pytest.raises(MemberError):
                rename(session, old, new, AT_S)
        rename(session, NEW, "home-x", AT_S)
        assert former_names(session.facts()) == {NAME: "home-x", NEW: "home-x"}
        with pytest.raises(MemberError, match="was renamed to home-x"):
            erase(session, [NAME], AT_S, randbelow)
        ((found,), _) = erase(session, ["home-x"], AT_S, randbelow)
        assert erased_devices(session.facts()) == {NAME: 0, NEW: 0, "home-x": found.reports}
        assert former_names(session.facts()) == {}
        assert f" {NAME}'" not in texts(session)["audit"]
        for name in (NAME, NEW, "home-x"):
            with pytest.raises(MemberError, match="was erased"):
                apply(session, named_wishes([name], revoked=False), AT_S)


def test_AGG_41_an_archive_goes_on_with_a_renamed_home_its_login_too_and_all_is_erased(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, file, logins = config_in(tmp_path), tmp_path / "a.toml", tmp_path / "passwords"
    devices = f'[devices]\nhost = "broker.example"\npasswords_file = "{logins}"\n'
    file.write_text(CONFIG.format(place=tmp_path) + devices)
    kept = hashed("secret")
    with changing_logins(logins) as known:
        known["home-1"] = kept
    store = SqliteStore.open(tmp_path / "a.db")
    spool = open_spool(config, store, segment_bytes=SEGMENT_BYTES)
    assert spool is not None

    def take_in(*flushes: list[Message]) -> None:
        for flush in flushes:
            commit(store, fleet="demo", messages=flush, rules=SUMS, spool=spool)

    def asked(*words: str) -> tuple[int, Any]:
        code = main([*words, "-c", str(file), "--json"])
        return code, json.loads(capsys.readouterr().out)

    take_in([release(1)], *traffic(9))
    renamed = asked("aggregator", "devices", "rename", "home-1", "home-9")
    assert renamed == (
        0,
        {"device": "home-1", "to": "home-9", "changed": True, "login_moved": True},
    )
    assert logins.read_text() == f"home-9:{kept}\n"
    again = [Message(one.topic.replace("home-1", "home-9"), one.payload) for one in traffic(9)[0]]
    take_in([release(9)], again)  # both were settled
    for _ in range(2):
        code, told = asked("replay")
        assert (code, told["compared"]["differ"], told["reports"]) == (0, 0, 9 * 6 * 24)
        assert told["sums"] == {"releases": 1, "differ": 0, "totals_differ": 0}
    code, told = asked("aggregator", "devices", "erase", "--yes", "home-9")
    assert (code, told["archived"], told["logins_ended"]) == (0, 9 * 24, ["home-9"])
    assert asked("replay")[0] == 0
    assert [*read_releases(tmp_path / "archive")] == []
    spool.close()
    store.close()

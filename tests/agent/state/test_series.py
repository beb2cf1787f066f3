"""A device's series of batch numbers, and what receipts, true or forged, can do to it."""

from pathlib import Path

import pytest

from aggregator.plans.keys import make_key, read_signer
from edge_ldp.device.frame import decode
from edge_ldp.protocol.messages import Receipt, StreamReceipt, StreamStatus, parse_status
from edge_ldp.protocol.signing import RECEIPT_CONTEXT, Signer
from edge_ldp.protocol.strict_json import MessageError
from edge_ldp.service.verify import keyring
from tests.agent.samples import DEVICE, SLOT_S, T0, StillClock, make_plan
from tests.agent.state.device_bench import Bench, planned, receipt, restored, saved

DAY_S = 86_400
BACK_SLOTS, LIVED_SLOTS = 40, 5  # how far the clock of a copy goes back, and what it lives then


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    path = tmp_path_factory.mktemp("key") / "key"
    make_key(path)
    return read_signer(path)


def gone_back(tmp_path: Path, signer: Signer | None) -> tuple[Bench, Receipt, set[int]]:
    """Return a state copied, 50 slots on or more, restored with the clock before the newest report.

    With the receipt of all that was made, and the slots of the life that is gone. A receipt of
    nothing later than the clock would tell no copy where both lives used the same slots.
    """
    ring = None if signer is None else keyring([signer.public])
    bench = Bench(tmp_path / "state" / "s.db", window=(8, 97), keyring=ring)
    plan = make_plan().to_json()
    bench.device.accept_plan("power", plan if signer is None else signer.wrap(plan))
    bench.live(250)
    place = saved(bench, tmp_path / "copy")
    before = set(bench.made)
    bench.live(50)
    while (
        max(other_life := {slot for slot, _ in set(bench.made) - before}, default=0)
        <= bench.device.slot - BACK_SLOTS + LIVED_SLOTS
    ):
        bench.live(10)
    (account,) = bench.status.streams
    heard = receipt(account.next - 1, series=account.series, last=max(other_life))
    restored(bench, place)
    bench.clock.step(-BACK_SLOTS * SLOT_S)
    bench.live(LIVED_SLOTS)
    return bench, heard, other_life


def test_a_restored_state_is_found_by_a_signed_receipt_and_sits_out_a_window_AGT_25(
    tmp_path: Path, signer: Signer, caplog: pytest.LogCaptureFixture
) -> None:
    """Signed, it is proof: what waits is given up and what the other may have made is charged."""
    bench, heard, other_life = gone_back(tmp_path, signer)
    (mine,) = bench.status.streams
    kept = len(bench.made)
    assert bench.device.accept_receipt(heard) == 0
    assert "so it is an older copy" in caplog.text
    assert bench.device.health == "degraded: rollback"
    (anew,) = bench.status.streams
    assert (anew.created, anew.expired, bench.made) == (kept, kept, [])
    assert (anew.first, anew.next, anew.since) == (1, 1, bench.device.slot)
    assert anew.series not in (mine.series, 0)
    assert bench.device.accept_receipt(heard) == 0
    bench.restart()
    assert bench.device.health == "degraded: rollback"
    bench.live(96)
    assert bench.made == []
    bench.live(98)
    assert 0 < len(bench.made) <= 9
    assert bench.device.health == "ok"
    assert not {slot for slot, _ in bench.made} & other_life
    assert bench.status.ledger["reports"] >= kept + len(other_life) + len(bench.made)
    (after,) = bench.status.streams
    assert after.created == after.expired + len(bench.made)


def test_a_restored_state_that_anybody_may_have_lied_about_is_silent_and_loses_nothing_yet_AGT_25(
    tmp_path: Path,
) -> None:
    """Nothing goes while it is in doubt; if a window passes and nobody denied it, it was so."""
    bench, heard, other_life = gone_back(tmp_path, None)
    (mine,) = bench.status.streams
    made, spent = bench.made, bench.status.ledger["reports"]
    bench.device.accept_receipt(heard)
    assert bench.device.health == "degraded: rollback"
    (anew,) = bench.status.streams
    assert (anew.created, anew.expired, anew.next) == (mine.created, mine.expired, 1)
    assert bench.made == made
    assert bench.send() == []
    for restart in (False, True):
        if restart:
            bench.restart()
        bench.live(48)
        bench.device.accept_receipt(heard)
        bench.device.housekeeping()
        assert bench.send() == []
        assert bench.made == made
    bench.pass_slots(2)
    bench.device.housekeeping()
    (anew,) = bench.status.streams
    assert (anew.created, anew.expired, bench.made) == (len(made), len(made), [])
    assert bench.status.ledger["reports"] == spent
    bench.live(98)
    assert 0 < len(bench.made) <= 9
    assert bench.send() == bench.keys
    assert not {slot for slot, _ in bench.made} & other_life
    assert bench.device.health == "ok"


def forged(lie: str, own: StreamStatus, slot: int) -> Receipt:
    """Return a lie about the account of a device that lives in a slot."""
    if lie == "counted under another series":
        return receipt(9, series=9, last=slot - 1)
    highest = {"above the slot": slot + 10**6, "one more": own.next, "at the top": 2**32 - 1}
    return receipt(highest[lie], series=own.series)


@pytest.mark.parametrize(
    "lie", ["above the slot", "one more", "at the top", "counted under another series"]
)
def test_a_forged_receipt_costs_a_silence_and_no_report_no_budget_no_copy_NET_24(
    tmp_path: Path, lie: str
) -> None:
    bench = planned(tmp_path / "state" / "s.db", window=(8, 97))
    bench.live(200)
    bench.send()
    (own,) = bench.status.streams
    truth = receipt(own.next - 2, series=own.series)
    bench.device.accept_receipt(truth)
    while not bench.journal.waiting():
        bench.live(10, online=False)
    made, spent = bench.made, bench.status.ledger["reports"]
    for _ in range(100):
        bench.device.accept_receipt(forged(lie, own, bench.device.slot))
        bench.device.housekeeping()
    assert bench.made == made
    assert bench.status.ledger["reports"] == spent
    assert parse_status(bench.status.to_json()).streams == bench.status.streams
    assert bench.send() == []
    bench.device.accept_receipt(truth, is_live=False)  # the broker kept it: it may be older
    assert bench.send() == []
    bench.device.accept_receipt(truth)
    bench.device.pack_waiting(at_once=True)
    assert bench.send() != []
    assert sorted(bench.made) == sorted(made)
    bench.live(98)
    bench.send()
    assert bench.device.health == "ok"
    (now,) = bench.status.streams
    assert now.created - now.expired == own.next - 2 + len(bench.made) > own.created
    place = saved(bench, tmp_path / "copy")
    bench.live(100)
    (account,) = bench.status.streams
    restored(bench, place)
    bench.device.accept_receipt(receipt(account.next - 1, series=account.series))
    assert bench.device.health == "degraded: rollback"


@pytest.mark.parametrize("before", [60, 300, 1800, SLOT_S])
def test_another_slot_length_begins_another_series_and_what_waited_stays_AGT_28(
    tmp_path: Path, before: int
) -> None:
    bench = Bench(tmp_path / "s.db", slot_seconds=before)
    bench.device.accept_plan("power", make_plan(slot_seconds=before).to_json())
    for _ in range(8):
        bench.clock.pass_s(before)
        bench.close(online=False)
    waited = bench.journal.waiting()
    assert len(waited) == 7
    bench.restart(slot_seconds=SLOT_S)
    numbers = [(one.base, one.slot_seconds) for one in bench.journal.series()]
    if before == SLOT_S:
        assert numbers == [(0, before)]
        return
    assert numbers == [(0, before), (1, SLOT_S)]
    (frame,) = [decode(bench.payload(key) or b"") for key in bench.keys]
    assert (frame.batch, frame.slots) == (1, tuple(one.slot for one in waited))
    bench.device.accept_plan("power", make_plan(2).to_json())
    bench.pass_slots(30 * before // SLOT_S + 3)
    bench.live(2)
    frames = [decode(bench.payload(key) or b"") for key in bench.keys]
    new = [one for one in frames if one.series != frame.series]
    assert [one.batch for one in new] == [1, 2]
    assert len(frames) == 3


@pytest.mark.parametrize("days", [30, 365])
def test_a_clock_that_had_been_ahead_begins_another_series_AGT_23_AGT_29(
    tmp_path: Path, days: int
) -> None:
    """A new device: its first report is of a time that has not come yet."""
    clock = StillClock(T0 + days * DAY_S)
    bench = Bench(tmp_path / "s.db", clock=clock)
    plan = make_plan(expires_s=T0 + 2 * 365 * DAY_S)
    bench.device.accept_plan("power", plan.to_json())
    bench.live(5)
    bench.live(2, online=False)
    ahead = {slot for slot, _ in bench.made}
    bench.clock.step(-days * DAY_S)
    bench.live(4)
    (account,) = bench.status.streams
    frames = [decode(bench.payload(key) or b"") for key in bench.keys]
    of_now = [one for one in frames if one.series == account.series]
    assert [one.batch for one in of_now] == list(range(1, account.next))
    assert len(of_now) >= 2
    assert not {slot for one in of_now for slot in one.slots} & ahead
    assert {slot for one in frames for slot in one.slots} >= ahead


# who a receipt is of


def test_with_keys_no_receipt_is_taken_but_one_they_signed_for_this_device_NET_24(
    tmp_path: Path, signer: Signer
) -> None:
    bench = Bench(tmp_path / "s.db", keyring=keyring([signer.public]))
    other = tmp_path / "other"
    make_key(other)
    told = receipt(3, series=5)
    payload = told.to_json()
    assert bench.device.read_receipt(signer.wrap(payload, RECEIPT_CONTEXT)) == told
    assert bench.device.read_receipt(Receipt(()).to_json()) is None  # before the first batch
    for forged in (
        payload,
        Receipt((), told.store, T0, DEVICE).to_json(),
        Receipt((StreamReceipt(1, 3),)).to_json(),
        signer.wrap(payload),  # signed as a plan is
        read_signer(other).wrap(payload, RECEIPT_CONTEXT),
        signer.wrap(payload, RECEIPT_CONTEXT)[:-1],
        signer.wrap(Receipt(told.streams, told.store, T0, "home-8").to_json(), RECEIPT_CONTEXT),
    ):
        with pytest.raises(MessageError):
            bench.device.read_receipt(forged)


def test_without_keys_a_receipt_is_taken_signed_or_not_and_of_both_versions(
    tmp_path: Path, signer: Signer
) -> None:
    bench = Bench(tmp_path / "s.db")
    told, old = receipt(3, series=5), Receipt((StreamReceipt(1, 3),))
    assert bench.device.read_receipt(told.to_json()) == told
    assert bench.device.read_receipt(signer.wrap(told.to_json(), RECEIPT_CONTEXT)) == told
    assert bench.device.read_receipt(old.to_json()) == old

"""A device with keys: what it takes, what it refuses and why, whatever the broker sends (PLN)."""

import logging
import re
import sys
from dataclasses import replace as with_fields
from pathlib import Path

import pytest

from agent.claims.slots import SlotValues
from agent.config.secrets import keyring_of
from agent.config.sections import PlansTable
from agent.errors import ConfigError
from agent.state.journal import Journal
from aggregator.plans.keys import make_key, read_signer
from edge_ldp.extras import pip_install
from edge_ldp.protocol.messages import Receipt
from edge_ldp.protocol.plan import Plan, digest, last_epoch
from edge_ldp.protocol.signing import RECEIPT_CONTEXT, Signer
from edge_ldp.protocol.strict_json import MessageError
from tests.agent.samples import SLOT_S, T0, StillClock, local_device, make_config, make_plan
from tests.processes import run_told


class Signed:
    """A device that takes plans of `ours` and `following`; `foreign` is nobody's."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("ours", "following", "foreign"):
            make_key(directory / name)
        self.ours, self.following, self.foreign = (
            read_signer(directory / name) for name in ("ours", "following", "foreign")
        )
        self.clock = StillClock()
        self.start(self.ours, self.following)
        self.device.trust_clock()
        self.clock.pass_s(2 * SLOT_S)

    def start(self, *signers: Signer, following: Signer | None = None) -> None:
        keys = tuple(signer.public.hex() for signer in signers)
        plans = PlansTable(keys, None if following is None else following.public.hex())
        self.config = with_fields(make_config(self.directory / "s.db"), plans=plans)
        self.journal = Journal(self.directory / "s.db")
        keyring = keyring_of(self.config, "agent.toml")
        self.device = local_device(self.config, self.journal, self.clock, keyring=keyring)

    def restart(self, *signers: Signer, following: Signer | None = None) -> None:
        self.journal.close()
        self.start(*signers, following=following)
        self.device.trust_clock()

    def offer(self, plan: Plan | bytes, signer: Signer | None = None) -> str | None:
        payload = plan if isinstance(plan, bytes) else plan.to_json()
        return self.device.accept_plan("power", (signer or self.ours).wrap(payload))

    @property
    def in_force(self) -> tuple[int, str]:
        """Epoch and digest of the plan that the next report will be made by, as the status says."""
        self.clock.pass_s(SLOT_S)
        closed = SlotValues(self.device.slot - 1, (500,))
        self.device.close_slot(closed, online=False)
        found = self.device.status("online").streams
        return (found[0].epoch, found[0].plan) if found else (0, "-")


@pytest.fixture
def home(tmp_path: Path) -> Signed:
    return Signed(tmp_path)


def code(refusal: str | None) -> str:
    assert refusal is not None
    return refusal.split()[0]


def test_a_signed_plan_runs_and_the_status_shows_the_digest_of_its_exact_bytes(
    home: Signed,
) -> None:
    assert home.offer(make_plan()) is None
    assert home.in_force == (1, digest(make_plan().to_json()))
    assert home.offer(make_plan()) == "same"


def test_PLN_01_what_nobody_signed_right_is_refused_and_the_good_plan_stays(home: Signed) -> None:
    assert home.offer(make_plan()) is None
    plan = make_plan(2).to_json()
    wrapped = home.ours.wrap(plan)
    other = home.ours.wrap(make_plan(3).to_json())
    for payload in (
        plan,  # no signature
        wrapped[:16] + bytes(64) + plan,  # an empty one
        other[:80] + plan,  # of another message
        wrapped[:79],  # cut
        wrapped[:80],
        wrapped + b" ",  # extra bytes
        wrapped[:40] + bytes((wrapped[40] ^ 1,)) + wrapped[41:],
    ):
        assert code(home.device.accept_plan("power", payload)) == "sig"
    assert home.in_force[0] == 1
    assert home.device.accept_plan("power", wrapped) is None


def test_PLN_02_foreign_and_swapped_keys_are_refused(home: Signed) -> None:
    assert code(home.offer(make_plan(), home.foreign)) == "key"
    wrapped, other = (signer.wrap(make_plan().to_json()) for signer in (home.ours, home.following))
    swapped = wrapped[:8] + other[8:16] + wrapped[16:]
    assert code(home.device.accept_plan("power", swapped)) == "key"
    assert home.in_force == (0, "-")


def test_PLN_02_keys_change_by_overlap_and_a_revoked_key_counts_for_nothing(home: Signed) -> None:
    """Old and new stand on the ring; then the old one goes, and what it signed goes with it."""
    assert home.offer(make_plan(1)) is None
    assert home.offer(make_plan(2), home.following) is None
    home.restart(home.following)
    assert home.in_force[0] == 2
    assert code(home.offer(make_plan(3))) == "key"
    assert home.offer(make_plan(3), home.following) is None
    home.restart(home.foreign)
    assert home.device.status("online").refusals == ("key envelope",)
    assert home.offer(make_plan(3), home.foreign) == "epoch"  # it still rises only
    assert home.offer(make_plan(4), home.foreign) is None


def test_PLN_23_the_first_plan_of_the_next_key_ends_the_one_that_was_stolen(home: Signed) -> None:
    """For good, over restarts, without the file being touched; what is in force stays."""
    home.restart(home.ours, following=home.following)
    assert home.offer(make_plan(1)) is None
    forged = home.following.wrap(make_plan(1).to_json())
    forged = forged[:40] + bytes((forged[40] ^ 1,)) + forged[41:]
    assert home.device.accept_plan("power", forged) == "same"  # nothing comes of it:
    assert home.offer(make_plan(2)) is None
    for _ in range(2):
        assert home.offer(make_plan(2), home.following) == "same"  # kept as signed anew
        assert code(home.offer(make_plan(3))) == "key"
        with pytest.raises(MessageError, match="key"):
            home.device.read_receipt(receipt(home.ours))
        assert home.device.read_receipt(receipt(home.following)) is not None
        home.restart(home.ours, following=home.following)
        assert home.in_force[0] == 2
    assert code(home.offer(make_plan(3))) == "key"  # by what is stored alone
    assert home.offer(make_plan(1), home.following) == "epoch"
    assert home.offer(make_plan(3), home.following) is None
    home.restart(home.following)  # the file says so, too: nothing changes
    assert home.in_force[0] == 3


def receipt(signer: Signer) -> bytes:
    return signer.wrap(Receipt((), "0123456789abcdef", T0, "home-7").to_json(), RECEIPT_CONTEXT)


def test_PLN_01_a_plan_stored_unsigned_stops_when_keys_come(home: Signed) -> None:
    home.restart()
    assert home.device.accept_plan("power", make_plan(5).to_json()) is None
    home.restart(home.ours)
    assert home.device.status("online").refusals == ("sig envelope",)
    assert home.offer(make_plan(5)) == "epoch"
    assert home.offer(make_plan(6)) is None


def test_without_keys_a_device_runs_plans_with_and_without_envelope(home: Signed) -> None:
    home.restart()
    assert home.offer(make_plan(1), home.foreign) is None
    assert home.device.accept_plan("power", make_plan(1).to_json()) == "same"
    assert home.device.accept_plan("power", make_plan(2).to_json()) is None
    home.restart()
    assert home.in_force[0] == 2


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        pytest.param(make_plan(2, epsilon=2), "ratio", id="PLN_03"),
        pytest.param(make_plan(2, theta=4001), "theta", id="PLN_04"),
        pytest.param(make_plan(2).to_json().replace(b"65536]", b"0]"), "channel", id="PLN_05"),
        pytest.param(make_plan(1, theta=900), "epoch", id="PLN_06_equal"),
        pytest.param(make_plan(last_epoch(T0) + 25), "epoch", id="PLN_06_jump"),
        pytest.param(make_plan(2, expires_s=T0 - 1), "expired", id="PLN_07"),
        pytest.param(make_plan(2, fleet="other"), "audience", id="PLN_08"),
        pytest.param(make_plan(2, ceiling=4001), "range", id="PLN_10"),
        pytest.param(make_plan(2, slot_seconds=60), "slot", id="PLN_11"),
    ],
)
def test_signed_but_not_allowed_PLN_03_PLN_04_PLN_05_PLN_06_PLN_07_PLN_08_PLN_10_PLN_11(
    home: Signed, plan: Plan | bytes, reason: str
) -> None:
    """PLN_03 to PLN_11: the owner's policy wins over the key."""
    assert home.offer(make_plan()) is None
    assert code(home.offer(plan)) == reason
    assert home.in_force[0] == 1


def test_PLN_07_a_replay_waits_for_a_sane_clock_and_is_refused_then(home: Signed) -> None:
    """A board that wakes in 1970 must not take what expired long ago."""
    old = make_plan(9, expires_s=T0 - 1)
    home.restart(home.ours)
    home.journal.close()
    home.clock.step(-T0)
    home.start(home.ours)
    assert home.offer(old) == "held"
    assert home.in_force == (0, "-")
    home.clock.step(T0)
    home.device.trust_clock()
    assert home.device.status("online").refusals == ("expired",)
    assert home.in_force == (0, "-")


def test_PLN_07_a_good_plan_held_for_the_clock_runs_when_it_is_sane(home: Signed) -> None:
    home.journal.close()
    home.start(home.ours)
    assert home.offer(make_plan(1)) == "held"
    assert home.offer(make_plan(2)) == "held"  # the newest counts
    home.device.trust_clock()
    assert home.in_force[0] == 2


def test_PLN_09_of_two_signed_plans_of_one_epoch_the_first_stays_and_its_digest_shows(
    home: Signed,
) -> None:
    one, two = make_plan(2, theta=800), make_plan(2, theta=900)
    assert home.offer(one) is None
    assert home.offer(two) == "epoch"
    assert home.in_force == (2, digest(one.to_json()))


def test_PLN_12_the_same_content_in_another_encoding_needs_its_own_signature(home: Signed) -> None:
    plan = make_plan().to_json()
    for again in (plan.replace(b",", b", "), plan.replace(b'"v":1,', b'"v":1,"x":1,')):
        wrapped = home.ours.wrap(plan)[:80] + again
        assert code(home.device.accept_plan("power", wrapped)) == "sig"
        assert home.offer(again) is None or home.offer(again) == "epoch"
    twice = plan.replace(b'"epoch":1', b'"epoch":1,"epoch":1')
    assert code(home.offer(twice)) == "duplicate"
    assert code(home.offer(plan.replace(b'"epoch":1', b'"epoch":1.0'))) == "number"
    assert code(home.offer(plan.replace(b'"epoch":1,', b""))) == "missing"


def test_an_envelope_without_keys_costs_no_import_of_cryptography() -> None:
    script = (
        "import sys\n"
        "import agent.main, agent.running.reload, agent.config.secrets\n"
        "from agent.config.secrets import keyring_of\n"
        "from tests.agent.samples import make_config\n"
        "from pathlib import Path\n"
        "assert keyring_of(make_config(Path('s.db')), 'f') is None\n"
        "print('cryptography' in sys.modules, 'numpy' in sys.modules)"
    )
    done = run_told([sys.executable, "-c", script], check=True)
    assert done.stdout.split() == ["False", "False"]


def test_keys_without_the_extra_are_a_fault_of_the_configuration(
    home: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "edge_ldp.service.verify", None)
    told = f"plans.keys: expected the extra `sign` beside it: {pip_install('edge-ldp[sign]')}"
    with pytest.raises(ConfigError, match=re.escape(told)):
        keyring_of(home.config, "agent.toml")


def test_a_refused_signature_is_said_once(home: Signed, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        for epoch in range(2, 30):
            home.offer(make_plan(epoch), home.foreign)
    (said,) = [record.message for record in caplog.records]
    assert said.startswith("plan refused: key envelope: a key of this device's configuration;")

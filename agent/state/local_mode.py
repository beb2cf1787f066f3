"""The mode for a crowd (LDP): each closed slot becomes at most one claim, charged to the ledger."""

import logging
from collections.abc import Sequence

from agent.claims.elapsed import Elapsed, reconstructed
from agent.claims.ledger_opening import is_behind, is_other_time, next_window, opened
from agent.claims.lifetime import REACHED, Beside, days_left, end_words
from agent.claims.pipeline import decide
from agent.claims.rollback import ReportingLife, Told
from agent.claims.silence import BEHIND, FAULTS, WORDS, Silence, silence
from agent.claims.slots import SlotValues
from agent.config import AgentConfig
from agent.home_time import home_time
from agent.state.accepted_plans import AcceptedPlans
from agent.state.core import DeviceCore
from agent.state.state_file import earlier_states
from edge_ldp.protocol.ledger import Ledger, conceded
from edge_ldp.protocol.messages import StreamStatus
from edge_ldp.protocol.plan_bounds import Refusal
from edge_ldp.protocol.signing import Keyring
from edge_ldp.service.health import DEGRADED

KEEP_MS = 3_600_000
LATE_S = 5.0  # real seconds that a busy machine may take to close a slot: many slots of a demo's
NEVER = 1 << 62
log = logging.getLogger("edge-ldp.agent")


class LocalMode:
    """Owner of the ledger and of the accepted plans: claim and report are one commit.

    With a keyring, only plans that its keys signed are taken.
    """

    def __init__(self, core: DeviceCore) -> None:
        self._core = core
        self._ledger: Ledger | None = None
        self._elapsed: Elapsed | None = None  # as stored; None where the ledger is
        self._last_warning = ""  # of the lifetime
        self.beside = Beside()  # what sums of this home cost; theirs to say
        stored = core.journal.ledger()
        self._since = stored.floor if stored else NEVER  # claimed before this process began
        self._plans = AcceptedPlans(
            core.config, core.journal, core.storage, core.clock, core.keyring
        )

    @property
    def is_open(self) -> bool:
        """Whether there is a ledger to charge."""
        return self._ledger is not None

    @property
    def account(self) -> tuple[Ledger, Elapsed]:
        """The window that everything of this home is counted in, and its time; once it is open."""
        assert self._ledger is not None  # noqa: S101 (the device asked whether it is open)
        assert self._elapsed is not None  # noqa: S101 (they come together)
        return self._ledger, self._elapsed

    @property
    def health(self) -> str:
        """Return "ok", or "degraded: " and why it is silent although nothing new began."""
        if self._ledger is None or self._elapsed is None:
            return self._plans.health
        if self._has_ended():
            return DEGRADED + REACHED
        moment = self._core.moment
        facts = silence(self._ledger, self._elapsed.at(moment), moment)
        is_fault = facts is not None and facts.reason in FAULTS
        return DEGRADED + WORDS[facts.reason] if facts and is_fault else self._plans.health

    @property
    def refusals(self) -> list[Refusal]:
        """The last reasons for which plans were refused, and their numbers."""
        return self._plans.refusals

    def open(self) -> None:
        """Open the ledger if it is not, and look at the plans that waited for a sane clock."""
        self._plans.trust_clock()
        if self._ledger is None:
            self._core.count_from_now()
            self._reopen()
        elif is_behind(self._ledger, self._core.slot):
            self._reopen()

    def take(self, closed: SlotValues, *, online: bool) -> None:
        """Randomise a closed slot if it reports, and commit claim and report together."""
        core, (ledger, elapsed) = self._core, self.account
        if self._has_ended():
            return
        now = elapsed.when_over(closed.slot, core.moment, LATE_S * core.clock.rate)
        active = self._plans.active
        claim = core.drawn(lambda: decide(ledger, now, closed, active, core.draw))
        if claim is not None and core.commit(claim, online=online):
            self._ledger, self._elapsed = claim.ledger, claim.elapsed

    def _has_ended(self) -> bool:
        """Say whether the owner's limit of all reports is reached; said 30 days ahead, and then."""
        config = self._core.config
        if config.lifetime is None or not config.local_streams:
            return False
        left = config.lifetime.left(self._ledger, config.ratio, self.beside.epsilon)
        in_reports = float(self.beside.a_day) / config.ratio.epsilon
        days = days_left(left, config.window, config.slot_seconds, in_reports)
        has_ended = left < config.window.streams  # a slot may need so many
        self.tell_end(end_words(days, f"{left}", has_ended=has_ended))
        return has_ended

    def tell_end(self, words: str) -> None:
        """Say what is to be said of the owner's limit, each thing once."""
        kind = words.split(":", 1)[0]
        if kind not in ("", self._last_warning):
            log.warning("%s", words)
            self._last_warning = kind

    def flush(self, *, online: bool) -> None:
        """Do nothing: each slot was committed when it closed."""

    def pack_waiting(self) -> None:
        """Do nothing: all that waits is the core's."""

    def keep(self) -> None:
        """Store the time that passed, once an hour: what is not stored a reboot takes away."""
        if self._elapsed is not None:
            now = self._elapsed.at(self._core.moment)
            if now.ms - self._elapsed.ms >= KEEP_MS:
                self._core.journal.save_elapsed(now)
                self._elapsed = now

    def accept_plan(self, name: str, payload: bytes) -> str | None:
        """Put a plan in force, or return why not."""
        return self._plans.accept(name, payload)

    def reconfigure(self, old: AgentConfig, keyring: Keyring | None) -> None:
        """Drop plans that are no longer allowed; a changed window begins with its silence."""
        config = self._core.config
        self._plans.reconfigure(config, keyring)
        is_same = (config.window, config.sharing) == (old.window, old.sharing)
        if self._ledger is not None and not is_same:
            self._reopen()

    @property
    def life(self) -> ReportingLife:
        """From the end of the ledger's last silence to its last slot."""
        ledger = self._ledger or self._core.journal.ledger()
        slot = self._core.slot
        if ledger is None:
            return ReportingLife(NEVER, NEVER, slot)
        return ReportingLife(ledger.silent_until, ledger.floor, slot)

    @property
    def is_silent(self) -> bool:
        """Whether a window of silence is not over yet."""
        if self._ledger is None or self._elapsed is None:
            return False
        moment = self._core.moment
        facts = silence(self._ledger, self._elapsed.at(moment), moment)
        return facts is not None and facts.reason != BEHIND

    def suspect(self, told: Sequence[Told]) -> None:
        """Begin a window anew; nothing is charged on a word that anybody may have forged."""
        core = self._core
        ledger, elapsed = core.journal.ledger(), core.journal.elapsed()
        if ledger is not None:
            ledger, elapsed = self._after_rollback(ledger, elapsed)
        if core.suspect(told, ledger, elapsed) and self._ledger is not None:
            self._ledger, self._elapsed = ledger, elapsed

    def roll_back(self, told: Sequence[Told], *, is_proof: bool) -> None:
        """Give up what waits; proven, begin a window anew and charge what the other may have made.

        Without proof the window of silence was before this.
        """
        core = self._core
        ledger, elapsed = core.journal.ledger(), core.journal.elapsed()
        if is_proof and ledger is not None:
            ledger = conceded(ledger, self._since, core.slot, core.config.ratio)
            ledger, elapsed = self._after_rollback(ledger, elapsed)
        if core.roll_back(told, ledger, elapsed) and self._ledger is not None:
            self._ledger, self._elapsed, self._since = ledger, elapsed, core.slot

    def _after_rollback(self, ledger: Ledger, elapsed: Elapsed | None) -> tuple[Ledger, Elapsed]:
        seconds, moment = self._core.config.slot_seconds, self._core.moment
        before = elapsed or reconstructed(ledger, seconds, moment)
        return next_window(ledger, before.at(moment), "rollback", seconds, moment)

    def described(self, account: StreamStatus) -> StreamStatus:
        """Return a stream's account with the plan in force for it."""
        return self._plans.described(account)

    def spent(self) -> dict[str, int]:
        """Return what the ledger counts, and the window that the owner allows."""
        ledger, window = self._ledger or self._core.journal.ledger(), self._core.config.window
        return {
            "reports": ledger.reports if ledger else 0,
            "day_reports": ledger.day_reports if ledger else 0,
            "window_reports": window.reports,
            "window_slots": window.slots,
        }

    def _reopen(self) -> None:
        """Go by the stored ledger, or by a new one; by none while none can be drawn or stored."""
        self._ledger, self._elapsed = self._core.drawn(self._opened) or (None, None)

    def _opened(self) -> tuple[Ledger, Elapsed] | None:
        core, journal, moment = self._core, self._core.journal, self._core.moment
        stored, before, seconds = journal.ledger(), journal.elapsed(), core.config.slot_seconds
        ledger, elapsed = opened(
            stored,
            before,
            window=core.config.window,
            slot_seconds=seconds,
            moment=moment,
            taken_until=journal.released_until(),
            draw=core.draw,
            is_lost=any(earlier_states(journal.path)),
        )
        sharing = core.config.sharing
        is_shared_anew = journal.sharing() != sharing
        if stored is not None and is_shared_anew:
            ledger, elapsed = next_window(ledger, elapsed, "window", seconds, moment)
        is_other = stored is not None and is_other_time(stored, before, seconds, moment)
        if is_other and not core.count_otherwise(ledger, elapsed):
            return None
        if (stored, before) != (ledger, elapsed) and not core.storage.done(
            lambda: journal.save_ledger(ledger, elapsed, sharing if is_shared_anew else None)
        ):
            return None
        if silent := silence(ledger, elapsed.at(moment), moment):
            _tell(silent)
        return ledger, elapsed


def _tell(silent: Silence) -> None:
    """Say until when nothing is reported, and why: as `edge-ldp agent status` does."""
    spent = ", so the window counts as spent, which is no fault"
    why = WORDS[silent.reason] + ("" if silent.reason == BEHIND else spent)
    log.warning("silent until %s: %s", home_time(silent.until_s), why)

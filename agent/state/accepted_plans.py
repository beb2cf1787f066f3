"""The plans in force on this device, in step with the journal; the device's policy judges each."""

import logging
from contextlib import suppress
from dataclasses import dataclass

from agent.claims.pipeline import ActiveStream
from agent.config import AgentConfig
from agent.state.disk_trouble import Storage
from agent.state.journal import Journal
from agent.state.plan_journal import StoredPlan
from agent.state.plan_log import QUIET_S, Logged, accepted, too_soon
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.protocol.messages import MAX_REFUSALS, StreamStatus
from edge_ldp.protocol.plan import (
    MAX_PLAN_BYTES,
    Plan,
    Policy,
    digest,
    judge,
    parse_plan,
)
from edge_ldp.protocol.plan_bounds import Refusal
from edge_ldp.protocol.signing import HEAD_BYTES, Keyring, plan_bytes
from edge_ldp.protocol.strict_json import MessageError
from edge_ldp.service.clock import Clock
from edge_ldp.service.health import DEGRADED, OK

_UNTRUSTED = ("sig", "key")
_WORDS = 200
_LARGEST = MAX_PLAN_BYTES + HEAD_BYTES
log = logging.getLogger("edge-ldp.agent")


@dataclass(slots=True)
class _Stream:
    """One configured stream, the plan in force for it, and the highest epoch ever accepted.

    `is_refused`: since there was a plan in force, one came that this home does not allow.
    """

    policy: Policy
    plan: Plan | None = None
    plan_digest: str = "-"
    epoch: int | None = None
    is_refused: bool = False

    def active(self) -> ActiveStream | None:
        plan = self.plan
        if plan is None:
            return None
        tag = int.from_bytes(bytes.fromhex(self.plan_digest[:8]), "little")  # as `plan_tag`
        return ActiveStream(plan.stream_id, plan.epoch, plan.reporter(), self.policy.ratio, tag)


class AcceptedPlans:
    """Takes plans that the policy allows and, with a keyring, that one of its keys signed.

    `active`: what each configured stream reports by, or None. `refusals`: the last few reasons,
    with the numbers of the last plan that was refused for each.
    """

    def __init__(
        self,
        config: AgentConfig,
        journal: Journal,
        storage: Storage,
        clock: Clock,
        keyring: Keyring | None,
    ) -> None:
        self.active: list[ActiveStream | None] = []
        self.refusals: list[Refusal] = []
        self._journal = journal
        self._storage = storage
        self._clock = clock
        self._keyring = keyring
        self._held: dict[str, bytes] = {}
        self._is_clock_sane = False
        self._log = journal.plan_log()
        self._noted: dict[tuple[str, str], int] = {}  # not yet written
        self._written_s: dict[tuple[str, str], int] = {}
        self._streams = [_Stream(policy) for policy in config.policies()]
        self._load()

    @property
    def health(self) -> str:
        """Return "ok", or for which streams only plans came that are refused: none is reported."""
        names = [one.policy.stream for one in self._streams if one.plan is None and one.is_refused]
        return f"{DEGRADED}no plan that this home allows ({', '.join(names)})" if names else OK

    def reconfigure(self, config: AgentConfig, keyring: Keyring | None) -> None:
        """Go by a configuration that only tightens this one; drop plans that it does not allow."""
        self._keyring = keyring
        for stream, policy in zip(self._streams, config.policies(), strict=True):
            stream.policy, stream.plan, stream.plan_digest = policy, None, "-"
        self._load()

    def trust_clock(self) -> None:
        """Look at what was held: now it can be said whether a plan has expired."""
        self._is_clock_sane = True
        held, self._held = self._held, {}
        for name, payload in held.items():
            self.accept(name, payload)

    def accept(self, name: str, payload: bytes) -> str | None:
        """Put a plan in force, or return why not: "same", or a short reason that is remembered.

        Until the clock is sane, while nothing can be stored, and until the plan in force has had
        the time that the policy gives it, the newest one of each stream is "held" and looked at
        again with every slot. So is one that is dated "ahead", which is refused until then.
        """
        stream = next((s for s in self._streams if s.policy.stream == name), None)
        if stream is not None and _digest_of(payload) == stream.plan_digest:
            self._keep_anew(stream, payload)
            return "same"
        if stream is not None and not self._is_clock_sane and len(payload) <= _LARGEST:
            self._held[name] = payload
            return "held"
        found = self._weighed(stream, name, payload)
        if stream is None or isinstance(found, Refusal):
            assert isinstance(found, Refusal)  # noqa: S101 (no stream of the name is one)
            return self._put_off(name, payload, found)
        if self._is_begun(stream, *found, payload):
            return None
        self._held[name] = payload
        return "held"

    def _put_off(self, name: str, payload: bytes, refusal: Refusal) -> str:
        """Refuse a plan; look again at one that is only too soon: its date may come."""
        if refusal.code in ("early", "ahead"):
            self._held[name] = payload
        if refusal.code != "early":
            return self._refuse(name, refusal)
        self._note(name, refusal)
        return "held"

    def described(self, account: StreamStatus) -> StreamStatus:
        """Return a stream's account with the plan in force for it, if there is one."""
        for stream in self._streams:
            if stream.plan is not None and stream.plan.stream_id == account.stream:
                return account._replace(epoch=stream.plan.epoch, plan=stream.plan_digest)
        return account

    def _weighed(
        self, stream: _Stream | None, name: str, payload: bytes
    ) -> tuple[Plan, str] | Refusal:
        """Return the plan in a payload and its digest, or why it is refused."""
        if stream is None:
            return Refusal("audience", "a stream of no such name")
        try:
            plan, plan_digest = self._open(payload)
        except MessageError as exc:
            return _unread(exc)
        if plan.stream != name:
            return Refusal("audience", f"for stream {plan.stream}")
        if self._is_taken(plan, stream):
            return _taken(plan)
        now_s, refusal = int(self._clock.now()), None
        if stream.plan is None:  # the one that was in force is retained: its epoch is not why
            refusal = judge(plan, stream.policy, epoch=None, now_s=now_s)
        refusal = refusal or judge(plan, stream.policy, epoch=stream.epoch, now_s=now_s)
        return refusal or (plan, plan_digest)

    def _is_begun(self, stream: _Stream, plan: Plan, plan_digest: str, payload: bytes) -> bool:
        """Put a plan in force, unless the one in force has to stay or nothing can be stored."""
        row = accepted(plan, at_s=int(self._clock.now()), reports=self._made(plan.stream_id))
        refusal = self._too_soon(stream, row)
        if refusal:
            self._note(plan.stream, refusal)
            return False
        stored = StoredPlan(plan.stream, plan.epoch, payload)
        if not self._storage.done(lambda: self._journal.save_plan(stored, row)):
            return False
        self._log = self._journal.plan_log()
        self._activate(stream, plan, plan_digest)
        log.info("plan of %s: epoch %d in force: %s", plan.stream, plan.epoch, row.words)
        return True

    def _is_taken(self, plan: Plan, stream: _Stream) -> bool:
        """Say whether another stream reports by the plan's id already."""
        others = {s.plan.stream_id for s in self._streams if s.plan and s is not stream}
        return plan.stream_id in others

    def _made(self, stream_id: int) -> int:
        """Return how many reports of a stream were ever made."""
        accounts = self._journal.status()
        return next((one.created for one in accounts if one.stream == stream_id), 0)

    def _too_soon(self, stream: _Stream, row: Logged) -> Refusal | None:
        """Say whether the plan in force has to stay a while; where there is none, none does."""
        if stream.plan is None:
            return None
        rows = [one for one in self._log if one.stream == row.stream]
        return too_soon(row, rows, stream.policy.shape)

    def _refuse(self, name: str, refusal: Refusal) -> str:
        code, words = refusal
        stream = next((s for s in self._streams if s.policy.stream == name), None)
        stays = "the last good plan stays in force"
        if stream is not None and stream.plan is None:
            stream.is_refused = True
            stays = "none is in force, so nothing is reported: `edge-ldp agent plans` shows all"
        others = [one for one in self.refusals if one.code != code]
        if len(others) == len(self.refusals):
            log.warning("plan refused: %s: %s; %s", code, words, stays)
        self.refusals = [*others, Refusal(code, words[:_WORDS])][-MAX_REFUSALS:]
        self._note(name, refusal)
        return code

    def _note(self, name: str, refusal: Refusal) -> None:
        """Put a refusal into the owner's log: a reason at most once in QUIET_S, with its count."""
        stream = name if any(s.policy.stream == name for s in self._streams) else "-"
        code = refusal.code.partition(" ")[0]
        if not self._is_clock_sane:
            return
        now_s, times = int(self._clock.now()), self._noted.get((stream, code), 0) + 1
        self._noted[stream, code] = times
        written_s = self._written_s.get((stream, code))
        if written_s is not None and 0 <= now_s - written_s < QUIET_S:
            return
        before = sum(one.times for one in self._log if (one.stream, one.code) == (stream, code))
        row = Logged(now_s, stream, code, refusal.words[:_WORDS], times=before + times)
        if self._storage.done(lambda: self._journal.log_plan(row)):
            self._written_s[stream, code] = now_s
            self._noted[stream, code] = 0
            self._log = self._journal.plan_log()

    def _open(self, payload: bytes) -> tuple[Plan, str]:
        """Return the plan in a payload and its digest, its signature checked where keys are."""
        found = plan_bytes(payload) if self._keyring is None else self._keyring.open(payload)
        return parse_plan(found), digest(found)

    def _activate(self, stream: _Stream, plan: Plan, plan_digest: str) -> None:
        stream.plan, stream.plan_digest, stream.epoch = plan, plan_digest, plan.epoch
        stream.is_refused = False
        self.active = [s.active() for s in self._streams]

    def _load(self) -> None:
        """Take the stored plans up again if the policy still allows them.

        The epoch of one that it no longer allows still counts: epochs only rise.
        """
        stored = {plan.name: plan for plan in self._journal.plans()}
        kept = [
            (one, stored[name]) for one in self._streams if (name := one.policy.stream) in stored
        ]
        for stream, plan in sorted(kept, key=lambda one: self._ends_keys(one[1].payload)):
            self._take_up(stream, plan)
        self.active = [stream.active() for stream in self._streams]

    def _ends_keys(self, payload: bytes) -> bool:
        return self._keyring is not None and self._keyring.is_of_following(payload)

    def _keep_anew(self, stream: _Stream, payload: bytes) -> None:
        """Keep the plan in force as the key that follows signed it: the other's word ends."""
        kept = StoredPlan(stream.policy.stream, stream.epoch or 0, payload)
        if self._ends_keys(payload) and kept not in self._journal.plans():
            with suppress(MessageError):
                self._open(payload)
                self._storage.done(lambda: self._journal.save_plan(kept))

    def _take_up(self, stream: _Stream, kept: StoredPlan) -> None:
        try:
            plan, plan_digest = self._open(kept.payload)
        except MessageError as exc:
            if exc.reason in _UNTRUSTED:  # its key is no longer on the ring
                stream.epoch = kept.epoch
                self._refuse(kept.name, _unread(exc))
            return
        except EdgeLdpError:
            return
        refusal = judge(plan, stream.policy, epoch=None, now_s=None)  # its time was judged then
        if refusal is None and self._is_taken(plan, stream):  # while the policy did not allow it
            refusal = _taken(plan)
        if refusal is None:
            self._activate(stream, plan, plan_digest)
            return
        stream.epoch = None if refusal.code == "audience" else kept.epoch
        self._refuse(kept.name, refusal)


def _taken(plan: Plan) -> Refusal:
    return Refusal("stream_id", f"{plan.stream_id} is another stream's")


def _unread(exc: MessageError) -> Refusal:
    """Return why a message is no plan; nothing of it is quoted."""
    return Refusal(f"{exc.reason} {exc.field}"[:64], exc.expected or "not there")


def _digest_of(payload: bytes) -> str:
    """Return the digest of the plan in a payload; an envelope that is cut holds none."""
    try:
        return digest(plan_bytes(payload))
    except MessageError:
        return ""

"""The plans in force on this device, in step with the journal; the device's policy judges each."""

import logging
from dataclasses import dataclass, replace

from agent.config import AgentConfig
from agent.pipeline import ActiveStream
from agent.shell.journal import Journal, StoredPlan
from agent.shell.storage import Storage
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.messages import MAX_REFUSALS, StreamStatus
from edge_ldp.plan import Plan, Policy, digest, judge, parse_plan
from edge_ldp.shell.clock import Clock
from edge_ldp.signing import Keyring, plan_bytes
from edge_ldp.strict_json import MAX_BYTES, MessageError

_UNTRUSTED = ("sig", "key")
log = logging.getLogger("edge-ldp.agent")


@dataclass(slots=True)
class _Stream:
    """One configured stream, the plan in force for it, and the highest epoch ever accepted."""

    policy: Policy
    plan: Plan | None = None
    plan_digest: str = "-"
    epoch: int | None = None

    def active(self) -> ActiveStream | None:
        plan = self.plan
        if plan is None:
            return None
        return ActiveStream(plan.stream_id, plan.epoch, plan.reporter(), self.policy.ratio)


class PlanBook:
    """Takes plans that the policy allows and, with a keyring, that one of its keys signed.

    `active`: what each configured stream reports by, or None. `refusals`: the last few reasons.
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
        self.refusals: list[str] = []
        self._journal = journal
        self._storage = storage
        self._clock = clock
        self._keyring = keyring
        self._held: dict[str, bytes] = {}
        self._is_clock_sane = False
        self._streams = [_Stream(policy) for policy in config.policies()]
        self._load()

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

        Until the clock is sane, or while nothing can be stored, the newest one of each stream is
        "held" and looked at then.
        """
        stream = next((s for s in self._streams if s.policy.stream == name), None)
        if stream is not None and _digest_of(payload) == stream.plan_digest:
            return "same"
        if stream is not None and not self._is_clock_sane and len(payload) <= MAX_BYTES:
            self._held[name] = payload
            return "held"
        try:
            plan, plan_digest = self._open(payload)
        except MessageError as exc:
            return self._refuse(f"{exc.reason} {exc.field}"[:64])
        refusal = self._judge(stream, plan, name)
        if stream is None or refusal:
            return self._refuse(refusal or "audience")
        stored = StoredPlan(name, plan.epoch, payload)
        if not self._storage.done(lambda: self._journal.save_plan(stored)):
            self._held[name] = payload
            return "held"
        self._activate(stream, plan, plan_digest)
        log.info("plan of %s: epoch %d in force, θ %d %s", name, plan.epoch, plan.theta, plan.unit)
        return None

    def described(self, account: StreamStatus) -> StreamStatus:
        """Return a stream's account with the plan in force for it, if there is one."""
        for stream in self._streams:
            if stream.plan is not None and stream.plan.stream_id == account.stream:
                return replace(account, epoch=stream.plan.epoch, plan=stream.plan_digest)
        return account

    def _judge(self, stream: _Stream | None, plan: Plan, name: str) -> str | None:
        if stream is None or plan.stream != name:
            return "audience"
        if self._is_taken(plan, stream):
            return "stream_id"
        return judge(plan, stream.policy, epoch=stream.epoch, now_s=int(self._clock.now()))

    def _is_taken(self, plan: Plan, stream: _Stream) -> bool:
        """Say whether another stream reports by the plan's id already."""
        others = {s.plan.stream_id for s in self._streams if s.plan and s is not stream}
        return plan.stream_id in others

    def _refuse(self, reason: str) -> str:
        if reason not in self.refusals:
            log.warning("plan refused: %s; the last good plan stays in force", reason)
            self.refusals = [*self.refusals, reason][-MAX_REFUSALS:]
        return reason

    def _open(self, payload: bytes) -> tuple[Plan, str]:
        """Return the plan in a payload and its digest, its signature checked where keys are."""
        if len(payload) > MAX_BYTES:
            raise MessageError("size", "message", f"at most {MAX_BYTES} bytes")
        found = plan_bytes(payload) if self._keyring is None else self._keyring.open(payload)
        return parse_plan(found), digest(found)

    def _activate(self, stream: _Stream, plan: Plan, plan_digest: str) -> None:
        stream.plan, stream.plan_digest, stream.epoch = plan, plan_digest, plan.epoch
        self.active = [s.active() for s in self._streams]

    def _load(self) -> None:
        """Take the stored plans up again if the policy still allows them.

        The epoch of one that it no longer allows still counts: epochs only rise.
        """
        stored = {plan.name: plan for plan in self._journal.plans()}
        for stream in self._streams:
            kept = stored.get(stream.policy.stream)
            if kept is not None:
                self._take_up(stream, kept)
        self.active = [stream.active() for stream in self._streams]

    def _take_up(self, stream: _Stream, kept: StoredPlan) -> None:
        try:
            plan, plan_digest = self._open(kept.payload)
        except MessageError as exc:
            if exc.reason in _UNTRUSTED:  # its key is no longer on the ring
                stream.epoch = kept.epoch
                self._refuse(f"{exc.reason} {exc.field}"[:64])
            return
        except EdgeLdpError:
            return
        refusal = judge(plan, stream.policy, epoch=plan.epoch - 1, now_s=0)
        if refusal is None and self._is_taken(plan, stream):  # while the policy did not allow it
            refusal = "stream_id"
        if refusal is None:
            self._activate(stream, plan, plan_digest)
            return
        stream.epoch = None if refusal == "audience" else kept.epoch
        self._refuse(refusal)


def _digest_of(payload: bytes) -> str:
    """Return the digest of the plan in a payload; an envelope that is cut holds none."""
    try:
        return digest(plan_bytes(payload))
    except MessageError:
        return ""

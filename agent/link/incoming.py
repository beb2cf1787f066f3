"""What the aggregator says to a device: plans, receipts, that it is there, a group's month."""

import logging
from collections.abc import Callable
from contextlib import suppress

from agent.config import AgentConfig
from agent.link.plan_queue import HeardMonth, PlanQueue, ReceiptQueue
from agent.link.trouble import NO_RECEIPT, NOT_COUNTED, Audience, Presences, Receipts
from agent.state.device import Device
from edge_ldp.protocol.messages import name_in_topic, parse_status, topic
from edge_ldp.protocol.presence import parse_presence
from edge_ldp.protocol.strict_json import MessageError
from edge_ldp.service.clock import Clock
from edge_ldp.service.health import OK
from edge_ldp.service.mqtt import Message

Log = Callable[[str, int], None]


class Incoming:
    """Takes messages in, and keeps what they tell of the other side; `wake` looks for batches.

    `receipt_s`: when the last receipt came, in monotonic time. `audience`: of our topics, which
    the uplink tells of, too.
    """

    def __init__(
        self, config: AgentConfig, device: Device, clock: Clock, log: Log, wake: Callable[[], None]
    ) -> None:
        self._fleet, self._id = config.device.fleet, config.device.id
        self.interval_s = config.sending.receipt_interval_s
        self.plans = PlanQueue()
        self.month = HeardMonth(config, clock.now)
        self.receipts = Receipts()
        self.receipt_s: float | None = None
        self.audience = Audience()
        self._waiting = ReceiptQueue()
        self._is_receipt_new = False
        self._presences = Presences()
        self._device, self._clock, self._log, self._wake = device, clock, log, wake

    @property
    def health(self) -> str:
        """`ok`, or what of the other side is wrong while there is a link."""
        if self.receipts.are_late(self._clock.monotonic(), self.interval_s):
            return NO_RECEIPT
        if self.receipt_s is not None and self._device.delivery.is_uncounted:
            return NOT_COUNTED
        return self.audience.health or OK

    def handle(self, message: Message) -> None:
        """Take a message in, or put it where it waits for its turn."""
        name = name_in_topic(self._fleet, "plan", message.topic)
        if name is not None:
            self.plans.put(name, message.payload)
        elif message.topic == self._topic("receipt"):
            self._waiting.put(message)
        elif (name := name_in_topic(self._fleet, "presence", message.topic)) is not None:
            self._handle_presence(name, message)
        elif message.topic in self.month.topics:
            self.month.hear(message.payload)
        elif message.topic == self._topic("status") and message.retain:
            with suppress(MessageError):  # not from this program, so it proves nothing
                self._device.accept_own_status(parse_status(message.payload))

    async def weigh_receipts(self) -> None:
        """Take receipts as they come, each in its turn."""
        while True:
            await self._clock.sleep(await self._waiting.due(self._clock.monotonic))
            self.take_receipts()

    def take_receipts(self) -> None:
        """Take the receipts that may be looked at now, the oldest first."""
        while (message := self._waiting.take(self._clock.monotonic())) is not None:
            self._handle_receipt(message)

    def _handle_receipt(self, message: Message) -> None:
        try:
            receipt = self._device.read_receipt(message.payload)
        except MessageError as exc:
            self._log(f"receipt ignored: {exc}", logging.WARNING)
            return
        if receipt is None:
            return
        covered = self._device.accept_receipt(receipt, is_live=not message.retain)
        self.receipts.arrived()
        self._is_receipt_new = bool(receipt.store)  # version 2: from who takes several batches
        self._device.delivery.several = self._presences.several or self._is_receipt_new
        if not message.retain:  # an aggregator is there now, and answers a status
            self.audience.note(self._topic("status"), has_listener=True)
        if covered:
            for kind in ("report", "stream"):
                self.audience.note(self._topic(kind), has_listener=True)
        self.receipt_s = self._clock.monotonic()
        if self.health == NOT_COUNTED:
            self._log(NOT_COUNTED, logging.WARNING)
        self._wake()

    def _handle_presence(self, name: str, message: Message) -> None:
        try:
            presence = parse_presence(message.payload)
        except MessageError:
            return
        delivery = self._device.delivery
        if self._presences.heard(name, presence):
            delivery.met(self._clock.monotonic(), self.interval_s)
        delivery.several = self._presences.several or self._is_receipt_new

    def _topic(self, kind: str) -> str:
        return topic(self._fleet, kind, self._id)

"""One Modbus meter: asked at its pace, block after block; what it answers in a round is a telegram.

Which register holds the power may depend on which phases have a voltage: a meter of one phase, and
one that tells no voltage, answer 0 where others have their total. Presence never depends on power.
docs/faults.md, SER-14, SER-22, SER-27, SER-33.
"""

from collections.abc import Generator

from agent.meters.framed_meter import DamagedError
from agent.meters.modbus.frames import EXCEPTION, LIMIT_BYTES, Frames
from agent.meters.modbus.numbers import nano_of
from agent.meters.modbus.table import KEYS, Block, MarkTable, ModelTable, blocks_of
from agent.meters.obis.registers import DRAWN_ENERGY, GIVEN_ENERGY, electricity
from agent.meters.reading import Discarded, Event, Reason, Send, Telegram
from agent.meters.scale import NANO

ANSWER_MS = 1000
"""How long an answer is waited for; meters take 20 to 200 ms, slow lines 100 ms more."""

MAX_BACKOFF_MS = 60_000

Numbers = dict[str, int]
_Round = Generator[Block, Numbers | None, Telegram]


class ModbusMeter:
    """Asks one meter every `poll_ms`, and later after each round that failed.

    `prove`: the model's marks are asked for first, and must hold.
    """

    def __init__(
        self,
        model: ModelTable,
        frames: Frames,
        *,
        poll_ms: int = 1000,
        prove: bool = False,
    ) -> None:
        self._model = model
        self._frames = frames
        self._poll_ms = poll_ms
        self._prove = prove
        self.wake_ms = 0
        self._due_ms = 0  # of the next round
        self._round: _Round | None = None
        self._block: Block | None = None  # what was asked for
        self._held = b""
        self._failures = 0

    def tick(self, now_ms: int) -> list[Event]:
        """Begin a round when it is time; give up an answer that was waited for too long."""
        if now_ms < self.wake_ms:
            return []
        if self._block is not None:
            return [self._fail(self._verdict(self._block), now_ms)]
        self._due_ms = now_ms + self._poll_ms
        self._round = self._asking()
        return [self._ask(next(self._round), now_ms)]

    def feed(self, data: bytes, now_ms: int) -> list[Event]:
        """Take received bytes; return the telegram or the next request that they complete."""
        if self._block is None or self._round is None:
            return [Discarded(len(data), "noise")]
        self._held += data[: LIMIT_BYTES - len(self._held)]
        function = self._block.ask.function
        size = self._block.size
        octets = self._frames.answer(self._held, bytes((function, size)), size)
        if octets is None:
            refusal = self._frames.answer(self._held, bytes((function | EXCEPTION,)), 1)
            if refusal is None:
                return []
        try:
            return [self._ask(self._round.send(_numbers(self._block, octets)), now_ms)]
        except DamagedError as damage:
            return [self._fail(damage.reason, now_ms, damage.line)]
        except StopIteration as over:
            self._rest(self._due_ms)
            self._failures = 0
            return [over.value]

    def _asking(self) -> _Round:
        """Yield each block that is asked for; take its numbers, None where the meter refuses it.

        Raises DamagedError where its answers make no telegram.
        """
        model = self._model
        if self._prove and not (yield from self._holds(model.marks)):
            raise DamagedError("refused", "of the model's marks")
        is_one = bool(model.voltages) and (yield from self._is_one_phase(model.voltages))
        special = {one.shows for one in model.registers if one.when == "one"} if is_one else set()
        chosen = {
            KEYS[one.shows]: one
            for one in model.registers
            if (one.when == "one") == (one.shows in special)
        }
        found: Numbers = {}
        for block in blocks_of(model.function, dict(chosen)):
            numbers = yield block
            if numbers is None:
                raise DamagedError("refused", f"0x{block.ask.first:04X}")
            found |= numbers
        for key, number in found.items():
            if number < 0 and key in (DRAWN_ENERGY, GIVEN_ENERGY):
                raise DamagedError("value", key)
        read = electricity(found, found.__getitem__)
        return Telegram(str(self._frames.address), None, read.readings, read.withheld)

    def _is_one_phase(
        self, voltages: tuple[MarkTable, ...]
    ) -> Generator[Block, Numbers | None, bool]:
        """Ask for the voltages; say whether the first phase alone has one."""
        shown: Numbers = {}
        for block in _marks(self._model.function, voltages):
            numbers = yield block
            if numbers is None:  # some refuse what they do not have, along with what they have
                (first,) = _marks(self._model.function, voltages[:1])
                numbers = (yield first) or {}
            shown |= numbers
        is_there = [_is_between(one, shown.get(str(at), 0)) for at, one in enumerate(voltages)]
        return is_there[0] and not any(is_there[1:])

    def _holds(self, marks: tuple[MarkTable, ...]) -> Generator[Block, Numbers | None, bool]:
        """Ask for the marks; say whether any is answered as only this model does."""
        for block in _marks(self._model.function, marks):
            numbers = (yield block) or {}
            if any(_is_between(marks[int(name)], number) for name, number in numbers.items()):
                return True
        return False

    def _ask(self, block: Block, now_ms: int) -> Send:
        self._block, self._held = block, b""
        self.wake_ms = now_ms + ANSWER_MS
        return Send(self._frames.wrap(block.ask))

    def _fail(self, reason: Reason, now_ms: int, line: str = "") -> Discarded:
        """Give up this round; wait twice as long after each failure, never in step with others."""
        size = len(self._held)
        self._failures += 1
        wait_ms = min(self._poll_ms << min(self._failures, 16), MAX_BACKOFF_MS)
        # jitter: the clock's last digits
        self._rest(now_ms + wait_ms - now_ms % (wait_ms // 4 + 1))
        return Discarded(size, reason, line)

    def _rest(self, until_ms: int) -> None:
        self._round, self._block, self._held = None, None, b""
        self.wake_ms = until_ms

    def _verdict(self, block: Block) -> Reason:
        if not self._held:
            return "silence"
        return "crc" if self._frames.is_damaged(self._held, block.ask.function) else "syntax"


def _numbers(block: Block, octets: bytes | None) -> Numbers | None:
    """Return a block's numbers in NANO parts by name; None where it was refused.

    Raises DamagedError for a number that no register shows.
    """
    if octets is None:
        return None
    found: Numbers = {}
    for at, place in enumerate(block.places):
        end = block.places[at + 1].at if at + 1 < len(block.places) else len(octets)
        number = nano_of(octets[place.at : end], place.form, place.factor, place.words)
        if number is None:
            raise DamagedError("value", place.name)
        found[place.name] = number
    return found


def _marks(function: int, marks: tuple[MarkTable, ...]) -> tuple[Block, ...]:
    return blocks_of(function, {str(at): one for at, one in enumerate(marks)})


def _is_between(mark: MarkTable, number: int) -> bool:
    return mark.least * NANO <= number <= mark.most * NANO

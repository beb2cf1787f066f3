"""The courier: `python -m aggregator.courier.process FD` holds a link for its aggregator.

Reading packets takes a core by itself; in a process of its own it does not take the aggregator's.
It keeps nothing: a message is the broker's until the aggregator says that it may be acknowledged.
It ends with the wire or the link, whichever is first, and by no signal that stops the aggregator,
which still has acknowledgements to send then.
"""

import asyncio
import signal
import socket
import sys

from aggregator.courier import wire as packets
from edge_ldp.service.broker import Broker
from edge_ldp.service.mqtt import Link, LinkLostError, Message, RefusedError, TooBigError, open_link

AT_ONCE = 500  # messages in a frame, at most


class Courier:
    """One link, held for whoever is at the other end of the wire."""

    def __init__(self, wire: packets.Wire) -> None:
        self._wire = wire
        self._link: Link | None = None
        self._told_to_close = False
        self._doing: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Carry messages up and orders down until the wire or the link ends."""
        first = await self._wire.read()
        order = None if first is None else packets.ORDERS.decode(first)
        if not isinstance(order, packets.Open):
            return
        tasks = [asyncio.create_task(self._carry(order.broker))]
        tasks.append(asyncio.create_task(self._listen(packets.patience_s(order.broker))))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*tasks, *self._doing):
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            await self._wire.close()
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _carry(self, broker: Broker) -> None:
        """Open the link and carry up what comes, until it is lost."""
        try:
            self._link = await open_link(broker)
            self._wire.write(packets.Opened(self._link.protocol, self._link.valid_until_s))
            while True:
                came = [await self._link.receive(), *self._link.receive_ready(AT_ONCE - 1)]
                self._wire.write(
                    packets.Came([(m.topic, m.payload, m.retain, m.mid) for m in came])
                )
                await self._wire.drain()
        except LinkLostError as exc:
            self._wire.write(packets.Lost(exc.reason))
        finally:
            if self._link is not None:
                await self._link.close(abrupt=not self._told_to_close)

    async def _listen(self, patience: float) -> None:
        """Do what is ordered, until the end is, or nothing more is heard."""
        while (frame := await self._wire.read(patience)) is not None:
            order = packets.ORDERS.decode(frame)
            if isinstance(order, packets.Beat):
                self._wire.write(order)
            elif isinstance(order, packets.Close):
                self._told_to_close = True
                return
            elif self._link is not None:  # nothing else is ordered before it is open
                self._carry_out(self._link, order)

    def _carry_out(self, link: Link, order: packets.Order) -> None:
        if isinstance(order, packets.Ack):
            for mid in order.mids:
                link.ack(Message("", b"", mid=mid))
        elif isinstance(order, packets.Subscribe | packets.Publish):
            task = asyncio.create_task(self._do(link, order))
            self._doing.add(task)
            task.add_done_callback(self._doing.discard)

    async def _do(self, link: Link, order: packets.Subscribe | packets.Publish) -> None:
        """Subscribe or publish, and answer; of a lost link `_carry` tells."""
        try:
            if isinstance(order, packets.Subscribe):
                await link.subscribe(order.topics)
            else:
                await link.publish(order.topic, order.payload, retain=order.retain, qos=order.qos)
        except TooBigError as exc:
            self._wire.write(packets.Refused(order.number, exc.topic, exc.reason, exc.limit))
        except RefusedError as exc:
            self._wire.write(packets.Refused(order.number, exc.topic, exc.reason))
        except LinkLostError:
            return
        else:
            self._wire.write(packets.Done(order.number))


async def main(fd: int) -> None:
    """Serve over the socket that was inherited under this number."""
    await Courier(await packets.Wire.on(socket.socket(fileno=fd))).serve()


if __name__ == "__main__":
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.SIG_IGN)
    asyncio.run(main(int(sys.argv[1])))

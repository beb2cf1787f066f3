"""Any port: serial device, pseudo-terminal, network adapter, page or topic, opened by its name.

What opens it is imported when it is asked for: a network port needs no pyserial, a serial port no
Telnet. Source: docs/design.md, The device; docs/faults.md, SER-08, SER-09, SER-23.
"""

import asyncio

from agent.meters.port_names import address_of, is_device, source_of
from agent.meters.section import AccessTable, MeterTable
from agent.ports import port as ports

PAGE_MS = 10_000
"""How often a page is asked for unless `poll_ms` says it."""


async def open_meter(
    table: MeterTable, *, silence_s: float | None = None, quiet_s: float = ports.QUIET_S
) -> ports.Port:
    """Open a [meter] table's port as `open_port` does."""
    baud, data_bits, parity = table.line
    return await open_port(
        table.port,
        baud,
        parity=parity,
        data_bits=data_bits,
        silence_s=silence_s,
        quiet_s=quiet_s,
        access=table.access,
        every_s=(table.poll_ms or PAGE_MS) / 1000,
    )


async def open_port(  # noqa: PLR0913 (what a line is made of)
    path: str,
    baud: int,
    *,
    parity: ports.Parity | None = None,
    data_bits: ports.DataBits | None = None,
    silence_s: float | None = None,
    quiet_s: float = ports.QUIET_S,
    access: AccessTable | None = None,
    every_s: float = PAGE_MS / 1000,
) -> ports.Port:
    """Open a port for this process alone; what waited in a device is dropped.

    Unless given: 7 data bits and even parity up to 9600 baud, as IEC 62056-21 and with it DSMR 2.2
    and 3 have it, else 8 and none; always one stop bit. A page is asked for each `every_s`.
    Raises PortError(path, reason, remedy) when it cannot be had.
    """
    if source := source_of(path):
        access, silence_s = access or AccessTable(), silence_s or ports.NETWORK_SILENCE_S
        if source.is_asked:
            from agent.ports.page_port import open_page  # noqa: PLC0415 (memory: one kind of port)

            return await open_page(path, source, access, every_s)
        from agent.ports.topic_port import open_topic  # noqa: PLC0415 (same)

        return await open_topic(path, source, access, silence_s=silence_s, quiet_s=quiet_s)
    is_slow = baud <= ports.SEVEN_BITS_BAUD
    data_bits, parity = data_bits or (7 if is_slow else 8), parity or ("E" if is_slow else "N")
    address = address_of(path)
    if address is None:
        from agent.ports.serial_port import open_serial  # noqa: PLC0415 (memory: one kind of port)

        return open_serial(path, baud, data_bits, parity, silence_s or ports.SILENCE_S)
    from agent.ports.network_port import open_network  # noqa: PLC0415 (same)

    line = (baud, data_bits, parity)
    silence_s = silence_s or ports.NETWORK_SILENCE_S
    return await open_network(path, address, line, silence_s=silence_s, quiet_s=quiet_s)


def retry_s(path: str, failures: int) -> float:
    """Return how long to wait for a port: ever longer in the network, never in step with others."""
    if is_device(path):
        return ports.RETRY_S  # looking for a device of this machine costs nothing
    wait_s = min(ports.RETRY_S * (1 << min(failures, 9)), ports.MOST_RETRY_S)
    return wait_s * (1 - asyncio.get_running_loop().time() % 0.25)  # the clock's last digits

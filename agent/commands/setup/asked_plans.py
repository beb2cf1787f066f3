"""What a fleet's broker tells before `setup` writes anything: the ε of its plans, and a namesake.

What the invitation says of it may be old, and who sets up by hand has none. Nothing is sent but a
login and a subscription; a broker that cannot be asked is no obstacle, as all is tried at the end.
Source: docs/faults.md, PLN-20, AGT-37.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import ROUND_UP, Context, Decimal
from pathlib import Path

from agent.commands.live import retained_plans
from edge_ldp.protocol.messages import topic
from edge_ldp.protocol.plan import parse_plan
from edge_ldp.protocol.signing import plan_bytes
from edge_ldp.protocol.strict_json import MessageError
from edge_ldp.service.broker import Broker
from edge_ldp.service.mqtt import Link
from edge_ldp.service.trial import Finding, try_broker

WAIT_S = 3.0
_DIGITS = Context(prec=3, rounding=ROUND_UP)


def asked_epsilon(broker: Broker, ca: str | None, fleet: str, names: Sequence[str]) -> Decimal:
    """Return the least ε that allows the retained plans of these streams; 0: none was heard.

    ca: the authority's certificate itself, where it is in no file yet.
    """
    payloads: dict[str, bytes] = {}

    async def use(link: Link) -> list[Finding]:
        await link.subscribe([topic(fleet, "plan", name) for name in names])
        payloads.update(await retained_plans(link, fleet, names, WAIT_S))
        return []

    _asked(broker, ca, use)
    return epsilon_of(payloads)


def has_namesake(broker: Broker, ca: str | None, fleet: str, device: str) -> bool:
    """Say whether a device of this name was ever heard: its last status is kept."""
    found = False

    async def use(link: Link) -> list[Finding]:
        nonlocal found
        await link.subscribe([topic(fleet, "status", device)])
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_S):
                found = bool((await link.receive()).payload)
        return []

    _asked(broker, ca, use)
    return found


def _asked(broker: Broker, ca: str | None, use: Callable[[Link], Awaitable[list[Finding]]]) -> None:
    """Use a link to the broker, if there can be one."""
    with tempfile.TemporaryDirectory() as place:
        if ca is not None:
            file = Path(place, "ca.pem")
            file.write_text(ca)
            broker = replace(broker, ca_file=str(file))
        asyncio.run(try_broker(broker, [], use))


def epsilon_of(payloads: Mapping[str, bytes]) -> Decimal:
    """Return the largest ε of a report under these plans, rounded up; who signed them is not asked.

    It is told and never taken: what the home allows is its owner's to say.
    """
    found = Decimal(0)
    for payload in payloads.values():
        with suppress(MessageError):
            plan = parse_plan(plan_bytes(payload))
            asked = max(plan.stream_mechanism.epsilon, plan.survey_mechanism.epsilon)
            found = max(found, _DIGITS.create_decimal(repr(asked)).normalize())
    return found

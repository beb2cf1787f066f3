"""What is invited: a device's way into the fleet of a configuration."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Literal

from aggregator.config import AggregatorConfig, ConfigError, DevicesTable
from aggregator.config.streams import HomeSums
from aggregator.enrolment.logins import changing_logins, write_secret
from edge_ldp.protocol.invitation import Invitation, InvitedBroker, InvitedStream, InvitedSums

ENDING = ".invitation"
MOST_IN_QR = 2953
"""Bytes of the largest code, with the least correction: a chain of certificates may be above it."""

QrForm = Literal["svg", "png"]


def invitation(  # noqa: PLR0913 (what an invitation is made of)
    config: AggregatorConfig,
    devices: DevicesTable,
    device: str,
    password: str,
    *,
    ca: str | None,
    plan_keys: tuple[str, ...],
) -> Invitation:
    """Return a device's invitation; `ca` in PEM, `plan_keys` in hex.

    Of gas, and of slots that are longer than the shortest, homes give sums alone.
    """
    streams = sorted(config.streams, key=lambda stream: stream.slot_seconds)
    reported = [
        one
        for one in streams
        if one.slot_seconds == streams[0].slot_seconds and one.use_quantity != "gas"
    ]
    if not any(one in reported or one.home_sums for one in streams):
        raise ConfigError("invitation", "streams.home_sums", "expected where only gas is counted")
    return Invitation(
        fleet=config.fleet,
        device=device,
        broker=InvitedBroker(devices.host, devices.use_port, devices.tls, ca),
        username=device,
        password=password,
        plan_keys=plan_keys,
        streams=tuple(
            InvitedStream(
                name=stream.name,
                quantity=stream.use_quantity,
                unit=stream.unit,
                low=stream.low,
                ceiling=stream.ceiling,
                slot_seconds=stream.slot_seconds,
                epsilon=str(stream.epsilon) if stream in reported else None,
                sums=_sums(stream.home_sums),
            )
            for stream in streams
            if stream in reported or stream.home_sums
        ),
    )


@contextmanager
def changing_invited(passwords_file: Path) -> Iterator[tuple[dict[str, str], dict[str, int]]]:
    """Give the logins, and until when invitations that run out are good, by device.

    What is changed in them is written at the end; raises ConfigError (`changing_logins`).
    """
    path = passwords_file.with_name(passwords_file.name + ".invited")
    with changing_logins(passwords_file) as logins:
        before = _running_out(path)
        until_s = dict(before)
        yield logins, until_s
        if until_s != before:
            write_secret(path, json.dumps(until_s, indent=1) + "\n")


def _running_out(path: Path) -> dict[str, int]:
    try:
        found = json.loads(path.read_bytes())
        return {str(device): int(until_s) for device, until_s in found.items()}
    except FileNotFoundError:
        return {}
    except OSError as exc:
        expected = f"expected a readable file ({exc.strerror})"
    except (ValueError, TypeError, AttributeError):
        expected = "expected what `devices invite --days` keeps: delete it, and nothing runs out"
    raise ConfigError(str(path), "invitations", expected)


def qr_picture(text: str, form: QrForm) -> bytes:
    """Return an invitation's text as a picture for a camera: as secret as it is.

    Raises ModuleNotFoundError without the extra `qr`.
    """
    import segno  # noqa: PLC0415 (an extra)

    made = BytesIO()
    segno.make(text, micro=False, boost_error=False, error="l").save(made, kind=form, scale=4)
    return made.getvalue()


def _sums(wanted: HomeSums | None) -> InvitedSums | None:
    if wanted is None:
        return None
    return InvitedSums(**{**asdict(wanted), "share": f"{wanted.share:f}"})

"""The files of a new fleet, as texts that belong together: aggregator.toml and the broker's."""

import json
from dataclasses import dataclass

from aggregator.config import is_loopback

AGGREGATOR, SIMULATOR = "aggregator", "simulator"
WANTED = {  # what an operator wants to know, and the lines that ask for it (ADR 33)
    "total": (
        "[streams.home_sums]                # each home's sum of a day, with noise, for totals",
        "share = 0.75                       # of the ε of a home's window; reports have the rest",
        "days = 1",
    ),
    "part-of-day": ('horizon = "hour-of-day over 28 days"   # what reports are to tell best',),
    "density": ("survey_share = 0.5                 # surveys tell how values are spread",),
}
GAS_SLOT_S = 3600
GAS = """
[[streams]]                         # gas of meters behind a P1 port: each home's sum of a week
name = "gas"
id = 2
unit = "dm3"
ceiling = {ceiling:<25}# the meter's label: a G4 has 6 m³ an hour
epsilon = {epsilon:<25}# of no report: gas has sums alone
slot_seconds = {slot:<20} # a gas meter moves once an hour
bucket_slots = 1
[streams.home_sums]
share = 0.125                       # of the ε of a home's window
days = 7                            # 28: a month twice as exactly, but no week of it
"""
DAY_S = 86_400


THRESHOLDS = {  # of how many homes a figure has to be, and who says so
    "usual": (10, "what ships"),
    "gb": (5, "GB: no source was found for this number"),
    "nl": (10, "NL: connections a line in Stedin's open data"),
    "california": (100, "California: residential, CPUC D.14-05-016; others 15, none above 15 %"),
}


@dataclass(frozen=True, slots=True)
class NewFleet:
    """What an operator says of a new fleet; `directory` is absolute and holds all of its files.

    `host`: how devices reach the broker, None: on this machine alone, without TLS. `clock`: of a
    rehearsal: (the simulated time it begins at, the real time, simulated seconds in a real one).
    `user`: whose rights the broker takes. `wanted`: one of WANTED. `day_s`: how long
    after midnight UTC the day of homes' sums begins. `gas`: the most in an hour, dm³, 0: none.
    """

    directory: str
    fleet: str
    host: str | None
    port: int
    tls_port: int
    zone: str
    epsilon: str
    mechanism: str
    ceiling: int
    slot_seconds: int
    wanted: str
    day_s: int
    is_signed: bool
    next_key: str | None
    threshold: str
    gas: int
    clock: tuple[float, float, float] | None
    user: str

    def at(self, name: str) -> str:
        """Return the path of one of its files."""
        return f"{self.directory}/{name}"


def aggregator_toml(new: NewFleet) -> str:
    """Return the aggregator's configuration."""
    least, whose = THRESHOLDS[new.threshold]
    following = "" if new.next_key is None else f"next_key = {_text(new.next_key)}\n"
    plans = f"""\
[plans]                            # devices take no plan that is not signed by it
signing_key_file = {_text(new.at("plan.key"))}
{following}
"""
    ca_file = "" if new.host is None else f"ca_file = {_text(new.at('broker/ca.pem'))}\n"
    return f"""\
# Written by `edge-ldp aggregator setup`. Every key there is: config/aggregator.toml of
# edge-ldp. What it means: edge-ldp aggregator check -c <this file>

fleet = {_text(new.fleet)}

[broker]
host = "127.0.0.1"
port = {new.port}
username = "{AGGREGATOR}"
password_file = {_text(new.at("aggregator.password"))}

[store]
path = {_text(new.at("aggregator.db"))}

{plans if new.is_signed else ""}[query]
min_devices = {least:<18} # figures of fewer are not given out; {whose}
zone = {_text(new.zone)}

[devices]                          # for `devices invite`
host = {_text(new.host or "127.0.0.1")}
port = {new.port if new.host is None else new.tls_port}
tls = {"false" if new.host is None else "true"}
{ca_file}passwords_file = {_text(new.at("broker/passwords"))}
pid_file = {_text(new.at("broker/data/mosquitto.pid"))}

{_clock(new)}
{_stream(new)}
"""


def _clock(new: NewFleet) -> str:
    if new.clock is None:
        return """\
[intake]
enrolment = "store"                # only devices that were invited or enrolled
"""
    origin_s, started_s, rate = new.clock
    return f"""\
# A rehearsal: simulated homes on a fast clock. Never for real ones.
[rehearsal]
username = "{SIMULATOR}"
password_file = {_text(new.at("simulator.password"))}

[clock]
origin_s = {origin_s!r}
started_s = {started_s!r}
rate = {rate!r}                     # a day takes {DAY_S / rate:.3g} s

[intake]
tolerance_s = {DAY_S}
"""


def _stream(new: NewFleet) -> str:
    lines = [
        "[[streams]]",
        'name = "power"',
        "id = 1",
        'unit = "W"                         # of a meter that tells none, its register makes it',
        f"ceiling = {new.ceiling:<25}# the largest value considered possible, W",
        f"epsilon = {new.epsilon:<25}# of one report; devices refuse more than their owners allow",
        f"slot_seconds = {new.slot_seconds}",
        f'mechanism = "{new.mechanism}"',
        *WANTED[new.wanted],
    ]
    begins = f"offset_s = {new.day_s:<24}# their day begins at midnight (of winter)"
    if new.wanted == "total" and new.day_s:
        lines.append(begins)
    if new.gas:
        lines += (
            GAS.format(ceiling=new.gas, epsilon=new.epsilon, slot=GAS_SLOT_S).rstrip().split("\n")
        )
        lines += [begins] * (new.day_s % GAS_SLOT_S == 0 < new.day_s)
    return "\n".join(lines)


def mosquitto_conf(new: NewFleet) -> str:
    """Return the configuration of a broker (Mosquitto 2) that serves this fleet alone."""
    devices = (
        ""
        if new.host is None
        else f"""
listener {new.tls_port}{_address(new.host)}
cafile {new.at("broker/ca.pem")}
certfile {new.at("broker/broker.pem")}
keyfile {new.at("broker/broker.key")}
tls_version tlsv1.2
"""
    )
    return f"""\
# Written by `edge-ldp aggregator setup`; reasons: config/mosquitto.conf of edge-ldp
user {new.user}
listener {new.port} 127.0.0.1
{devices}
allow_anonymous false
password_file {new.at("broker/passwords")}
acl_file {new.at("broker/acl")}
pid_file {new.at("broker/data/mosquitto.pid")}

persistence true
persistence_location {new.at("broker/data")}/
autosave_interval 1800
autosave_on_changes false
max_queued_messages 10000000
max_queued_bytes 1610612736
persistent_client_expiration 35d
max_inflight_messages 1000
# noted at each start, and why it stays: config/mosquitto.conf of edge-ldp
message_size_limit 65536
"""


def _address(host: str) -> str:
    """Return which address devices are listened for at: this machine's own, where it is named."""
    if not is_loopback(host):
        return ""
    return " 127.0.0.1" if host == "localhost" else f" {host}"


def access_list(new: NewFleet) -> str:
    """Return who may do what at the broker: a device's login has its topics, of this fleet only."""
    at = f"edge-ldp/v1/{new.fleet}"
    lines = [
        "# Written by `edge-ldp aggregator setup`. A device's user name is its id.",
        *_rights(AGGREGATOR, at, up="read", receipt="write", plan="readwrite"),
        f"topic write {at}/presence/+",
        f"topic write {at}/sum/+",
        f"topic write {at}/group/+",
        f"topic write homeassistant/sensor/edge-ldp-{new.fleet}/+/config",
    ]
    if new.clock is not None:
        lines += _rights(SIMULATOR, at, up="write", receipt="read", plan="read")
        lines.append(f"topic read {at}/presence/+")
    lines += [
        "",
        *(f"pattern write {at}/{kind}/%u" for kind in ("report", "stream")),
        f"pattern readwrite {at}/status/%u",
        f"pattern read {at}/receipt/%u",
        f"pattern read {at}/plan/+",
        f"pattern read {at}/presence/+",
        f"pattern read {at}/group/+",
        "",
    ]
    return "\n".join(lines)


def _rights(name: str, at: str, *, up: str, receipt: str, plan: str) -> list[str]:
    return [
        "",
        f"user {name}",
        *(f"topic {up} {at}/{kind}/+" for kind in ("report", "stream", "status")),
        f"topic {receipt} {at}/receipt/+",
        f"topic {plan} {at}/plan/+",
    ]


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)  # a JSON string is a TOML basic string

"""The configuration file: the example loads, and every bad file names file, key and form."""

from decimal import Decimal
from pathlib import Path

import pytest

from agent.claims.ledger_opening import LOST_DAYS
from agent.claims.slots import Kind
from agent.config import AgentConfig, BrokerTable, load_config, parse_config, read_password
from agent.config.doubts import doubts_of
from agent.config.secrets import check_files, place_credentials, read_secrets
from agent.errors import ConfigError
from agent.meters.protocols import PROTOCOLS
from agent.meters.reading import SIGNED, UNITS
from edge_ldp.protocol.ledger import Window
from edge_ldp.ratio import floor_ratio
from tests.agent.samples import config_text, make_config

EXAMPLE = Path(__file__).parents[3] / "config" / "agent.toml"
KEY = "8139770ea87d175f56a35466c34c7ecccb8d8a91b4ee37a25df60f5b8fc9b394"
SECRET = "hunter2-hunter2"  # noqa: S105 (planted, to see that it is not echoed)
STREAM = '[[streams]]\nname = "power"\nquantity = "power"\nunit = "W"\nceiling = 4000\n'
PORT = 'port = "/dev/ttyUSB0"'
FIELD = '{ quantity = "power", unit = "W", field = "p" }'
GOOD = f"""
[device]
fleet = "street"
id = "home-7"
state = "/var/lib/x.db"
[broker]
host = "127.0.0.1"
[meter]
port = "/dev/ttyUSB0"
[policy]
epsilon = 1
[policy.window]
reports = 8
slots = 97
[clock]
[sending]
{STREAM}"""

OTHER = STREAM.replace('name = "power"', 'name = "b"\nslot_seconds = 60')


def of_lines(more: str) -> str:
    return f'[meter]\nprotocol = "lines"\n{more}'


def field_of(more: str) -> str:
    return of_lines(f'fields = [{{ quantity = "power", {more} }}]')


# (table, its lines, key named, part of the expected form): PRV-27, PRV-28, and the tap's
HOUSEHOLD = [
    ("page", "listen = '0.0.0.0'\nreaders = ['192.168.1.9']", "listen", ""),
    ("page", "listen = '198.51.100.7'\nreaders = ['192.168.1.9']", "listen", ""),
    ("page", "listen = '192.168.1.5'", "listen", ""),
    ("page", "readers = ['198.51.100.7']", "readers[0]", ""),
    ("page", "hosts = ['a b']", "hosts[0]", ""),
    ("page", "port = 2000\n[share]\nport = 2000", "port", ""),
    ("share", "port = 2000\nlisten = '0.0.0.0'\nreaders = ['192.168.1.9']", "listen", ""),
    ("share", "port = 2000\nlisten = '198.51.100.7'\nreaders = ['192.168.1.9']", "listen", ""),
    ("share", "port = 2000\nlisten = '192.168.1.5'", "listen", ""),
    ("share", "port = 2000\nlisten = '192.168.1.5'\nreaders = ['laptop']", "readers[0]", ""),
    ("share", "port = 2000\nreaders = ['198.51.100.7']", "readers[0]", ""),
    ("share", "port = 0", "port", ""),
    *(
        ("tap", f"host = '{host}'\nport = 1883\nallow_plaintext = true", "host", "never the one")
        for host in ("127.0.0.1", "localhost", "::1")
    ),
    *(
        ("tap", f"host = '{host}'\nport = 1884\nallow_plaintext = true", "host", "your own network")
        for host in ("93.184.216.34", "2606:4700::1", "100.64.0.1", "::ffff:8.8.8.8")
    ),
    ("tap", "host = '192.168.1.20'", "tls", ""),
]
# (what to replace, with what, key named, part of the expected form)
BAD = [
    # syntax
    ("[device]", "[device", "syntax", "TOML"),
    ('host = "127.0.0.1"', 'host = "127.0.0.1', "syntax", "line 7"),
    ("[device]", "[device]\nid = 1", "syntax", "overwrite"),
    ("epsilon = 1", "epsilon = 1e99999999999999999999", "syntax", "TOML"),
    ("epsilon = 1", "epsilon = " + "9" * 5000, "syntax", "TOML"),
    ("epsilon = 1", "epsilon = " + "[" * 50_000, "syntax", "TOML"),
    # unknown and missing keys
    ("[sending]", "[sending]\ntypo = 1", "sending.typo", "no such key"),
    ("[clock]", "[clocks]", "clocks", "no such key"),
    ("[clock]", f'[clock]\npassword = "{SECRET}"', "clock.password", "no such key"),
    ("[broker]", f'[broker]\npassword = "{SECRET}"', "broker.password", "no such key"),
    (STREAM, STREAM + "theta = 5\n", "streams[0].theta", "no such key"),
    ('fleet = "street"\n', "", "device.fleet", "missing"),
    ('state = "/var/lib/x.db"\n', "", "device.state", "missing"),
    ('[meter]\nport = "/dev/ttyUSB0"\n', "", "meter", "missing"),
    (STREAM, "", "streams", "missing"),
    ("ceiling = 4000\n", "", "streams[0].ceiling", "missing"),
    # wrong types
    ('id = "home-7"', "id = 7", "device.id", "`str`"),
    ("epsilon = 1", 'epsilon = "1"', "policy.epsilon", "decimal"),
    ("epsilon = 1", "epsilon = true", "policy.epsilon", "decimal"),
    ("ceiling = 4000", "ceiling = 4000.0", "streams[0].ceiling", "`int`"),
    ("ceiling = 4000", 'ceiling = "4 kW"', "streams[0].ceiling", "`int`"),
    ("[sending]", "[sending]\njitter_s = true", "sending.jitter_s", "`float`"),
    ("[broker]", '[broker]\ntls = "yes"', "broker.tls", "`bool"),
    ("[broker]", "[broker]\nusername = 1979-05-27", "broker.username", "`str"),
    ("[broker]", '[broker]\nport = "1883"', "broker.port", "`int"),
    # names and texts
    ('id = "home-7"', 'id = "Home 7"', "device.id", "a-z 0-9"),
    ('id = "home-7"', 'id = ""', "device.id", "1 to 63"),
    ('id = "home-7"', f'id = "{"x" * 64}"', "device.id", "1 to 63"),
    ('id = "home-7"', 'id = "a/b"', "device.id", "a-z 0-9"),
    ('id = "home-7"', 'id = "+"', "device.id", "a-z 0-9"),
    ('fleet = "street"', 'fleet = "#"', "device.fleet", "a-z 0-9"),
    ('state = "/var/lib/x.db"', 'state = ""', "device.state", "text"),
    ('port = "/dev/ttyUSB0"', 'port = ""', "meter.port", "text"),
    ("[meter]", '[meter]\nmeter_id = "a\\u0000"', "meter.meter_id", "control"),
    ('name = "power"', 'name = "Power"', "streams[0].name", "a-z 0-9"),
    # choices are listed, never the value that was there
    ("[broker]", f'[broker]\nprotocol = "{SECRET}"', "broker.protocol", "'auto', '5', '3.1.1'"),
    ("[clock]", '[clock]\ntrust = "always"', "clock.trust", "'kernel', 'assume'"),
    ("[meter]", '[meter]\nprotocol = "smll"', "meter.protocol", "'dsmr', 'sml'"),
    ("[meter]", '[meter]\nparity = "M"', "meter.parity", "'N', 'E', 'O'"),
    ("[meter]", "[meter]\n[meter.options]\na = 1", "meter.port", "missing"),
    ("[meter]", "[meter]\noptions = { a = 1 }", "meter.options", "'plugin:NAME'"),
    ("[meter]", '[meter]\nprotocol = "modbus"\nmodel = "x"', "meter.model", "'sdm630'"),
    ("[meter]", '[meter]\nprotocol = "modbus"\naddress = 248', "meter.address", "<= 247"),
    ("[meter]", "[meter]\npoll_ms = 500", "meter.poll_ms", "or 'modbus'"),
    ("[meter]", '[meter]\nprotocol = "iec62056-21"\npoll_ms = 500', "meter.poll_ms", "'request'"),
    ("[meter]", '[meter]\ndevice_address = "/!"', "meter.device_address", "text"),
    ("[meter]", '[meter]\nprotocol = "lines"', "meter.fields", "[[meter.fields]]"),
    ("[meter]", '[meter]\ndate_by = "me"', "meter.date_by", "'arrival', 'meter'"),
    ("[meter]", '[meter]\ncrc = "none"', "meter.crc", "'required', 'absent-allowed'"),
    ('quantity = "power"', 'quantity = "water"', "streams[0].quantity", "'energy_import'"),
    ('unit = "W"', 'unit = "kW"', "streams[0].unit", "'W', 'Wh'"),
    # the broker
    ('"127.0.0.1"', f'"mqtt://me:{SECRET}@h"', "broker.host", "a name or address"),
    ('"127.0.0.1"', '"h:1883"', "broker.host", "the port is a key apart"),
    ('"127.0.0.1"', '""', "broker.host", "a name or address"),
    ('"127.0.0.1"', '"mqtt..example"', "broker.host", "a name or address"),
    ('"127.0.0.1"', '".local"', "broker.host", "a name or address"),
    ('"127.0.0.1"', f'"{"a" * 64}.example"', "broker.host", "a name or address"),
    ('"127.0.0.1"', '"h"\ntls = false', "broker.tls", "allow_plaintext"),
    ("[broker]", '[broker]\npassword_file = "/x"', "broker.username", "the user"),
    ("[broker]", '[broker]\nca_file = "/x"', "broker.ca_file", "tls = true"),
    ("[broker]", "[broker]\nport = 0", "broker.port", ">= 1"),
    ("[broker]", "[broker]\nport = 65536", "broker.port", "<= 65535"),
    ("[broker]", "[broker]\nkeepalive_s = 1", "broker.keepalive_s", ">= 5"),
    # the policy
    ("epsilon = 1", "epsilon = 0", "policy.epsilon", "finite"),
    ("epsilon = 1", "epsilon = -1", "policy.epsilon", "finite"),
    ("epsilon = 1", "epsilon = inf", "policy.epsilon", "finite"),
    ("epsilon = 1", "epsilon = nan", "policy.epsilon", "finite"),
    ("epsilon = 1", "epsilon = 0.00001", "policy.epsilon", "2**-16"),
    ("epsilon = 1", "epsilon = 32.000001", "policy.epsilon", "at most 32"),
    ("epsilon = 1", 'mechanisms = ["laplace"]', "policy.mechanisms", "square-wave"),
    ("epsilon = 1", 'mechanisms = ["hybrid"]', "policy.mechanisms", "square-wave"),
    ("epsilon = 1", 'mechanisms = ["square-wave"]', "policy.mechanisms", "hybrid"),
    ("epsilon = 1", "mechanisms = []", "policy.mechanisms", "hybrid"),
    ("epsilon = 1", "max_codes = 65537", "policy.max_codes", "65536"),
    ("reports = 8", "reports = 0", "policy.window.reports", ">= 1"),
    ("reports = 8", "reports = 98", "policy.window", "slots times streams"),
    ("slots = 97", "slots = 0", "policy.window.slots", ">= 1"),
    ("slots = 97", "slots = 65537", "policy.window", "65536"),
    # the streams
    (STREAM, "streams = []", "sending.streams", "no such key"),
    ("[device]", "streams = []\n[device]", "syntax", "TOML"),
    (STREAM, STREAM + STREAM, "streams.name", "different"),
    ("ceiling = 4000", "ceiling = 0", "streams[0].ceiling", "more than low"),
    ("ceiling = 4000", "ceiling = 4000\nlow = 4000", "streams[0].ceiling", "more than low"),
    ("ceiling = 4000", "ceiling = 1099511627776", "streams[0].ceiling", "2**40"),
    ("ceiling = 4000", "ceiling = 4000\nslot_seconds = 0", "streams[0].slot_seconds", ">= 1"),
    ("ceiling = 4000", "ceiling = 4000\nslot_seconds = 86401", "streams[0].slot_seconds", "86400"),
    ('unit = "W"', 'unit = "Wh"', "streams[0].unit", "'W' for power"),
    (STREAM, STREAM + OTHER, "streams[1].slot_seconds", "the same for all"),
    # sending and clock
    ("[sending]", "[sending]\nreceipt_interval_s = 0", "sending.receipt_interval_s", "> 0"),
    ("[sending]", "[sending]\njitter_s = -1", "sending.jitter_s", ">= 0"),
    ("[sending]", "[sending]\njitter_s = nan", "sending.jitter_s", ">= 0"),
    ("[sending]", "[sending]\nmax_age_days = 0", "sending.max_age_days", ">= 1"),
    ("[sending]", "[sending]\nin_flight = 0", "sending.in_flight", ">= 1"),
    ("[clock]", "[clock]\nrate = 0", "clock.rate", "> 0"),
    ("[clock]", "[clock]\nrate = inf", "clock.rate", "<= 1000000"),
    ("[clock]", "[clock]\norigin_s = nan", "clock.origin_s", ">= 0"),
    ("[clock]", "[clock]\nstarted_s = -inf", "clock.started_s", ">= 0"),
    ("[meter]", "[meter]\nbaud = 0", "meter.baud", ">= 1"),
    ("[meter]", "[meter]\nclock_tolerance_s = 0", "meter.clock_tolerance_s", ">= 1"),
    *(
        ("[clock]", f"[{table}]\n{lines}\n[clock]", f"{table}.{key}", form)
        for table, lines, key, form in HOUSEHOLD
    ),
    # keys and certificates
    ("[broker]", '[broker]\ntls = true\ncert_file = "/c"', "broker.key_file", ""),
    ("[broker]", '[broker]\ntls = true\nkey_file = "/k"', "broker.key_file", ""),
    ("[broker]", '[broker]\ncert_file = "/c"\nkey_file = "/k"', "broker.cert_file", ""),
    ("[broker]", '[broker]\ncrl_file = "/c"', "broker.crl_file", ""),
    *(
        ("[clock]", f'[plans]\nkeys = ["{key}"]\n[clock]', "plans.keys[0]", "64 digits")
        for key in ("", "0a", "0A" * 32, "0a" * 33)
    ),
    *(
        ("[clock]", f'[plans]\nkeys = [{keys}]\nnext_key = "{KEY}"\n[clock]', "plans.next_key", "")
        for keys in ("", f'"{KEY}"')
    ),
    ("[clock]", "[policy.lifetime]\n[clock]", "policy.lifetime", ""),
    ("[clock]", "[policy.lifetime]\nepsilon = 0\n[clock]", "policy.lifetime.epsilon", ""),
    ("[clock]", "[policy.lifetime]\nreports = 0\n[clock]", "policy.lifetime.reports", ""),
    # lines of text
    ("[meter]", '[meter]\nprotocol = "sml"\ncrc = "absent-allowed"', "meter.crc", "nothing unless"),
    ("[meter]", of_lines(f'meter_id = "1"\nfields = [{FIELD}]'), "meter.meter_id", "no identity"),
    ("[meter]", of_lines(f"fields = [{FIELD}, {FIELD}]"), "meter.fields.quantity", "once"),
    ("[meter]", field_of('unit = "W"'), "meter.fields[0]", "field (a name) or column"),
    ("[meter]", field_of('unit = "kWh", column = 1'), "meter.fields[0].unit", "a unit of power"),
    ("[meter]", field_of('unit = "W", field = "p", scale = 0'), "meter.fields[0].scale", "1e-9"),
    ("[meter]", field_of('unit = "W", field = "p", scale = nan'), "meter.fields[0].scale", "1e-9"),
]


@pytest.mark.parametrize(("old", "new", "key", "expected"), BAD)
def test_a_bad_file_is_refused_with_file_key_and_form_AGT_12_PRV_27_PRV_28(
    old: str, new: str, key: str, expected: str
) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError) as refused:
        parse_config(GOOD.replace(old, new, 1), "/etc/agent.toml")
    error = refused.value
    assert (error.file, error.key) == ("/etc/agent.toml", key)
    assert expected in error.expected
    assert str(error).startswith(f"/etc/agent.toml: {key}: expected {error.expected}")
    assert key == "syntax" or error.line is not None or f" {key} = " not in new
    assert SECRET not in str(error)


def test_the_file_that_the_bad_ones_are_made_from_is_good() -> None:
    config = parse_config(GOOD, "x")
    assert isinstance(config, AgentConfig)
    assert config.window == Window(8, 97, 1, period=107)
    assert [policy.ratio for policy in config.policies()] == [floor_ratio(1)]


def test_the_example_loads_and_says_what_it_means() -> None:
    config = load_config(EXAMPLE)
    assert config.window == Window(2, 97, 1, period=107)
    assert config.shared == Decimal("0.75")
    assert (config.slot_seconds, config.sending.max_age_days) == (900, LOST_DAYS)
    (policy,) = config.policies()
    assert (policy.low, policy.ceiling, policy.unit, policy.ratio) == (
        0,
        43_470,
        "W",
        floor_ratio(1),
    )
    assert not config.clock.simulated
    assert config.clock.trust == "kernel"


def test_the_example_shows_every_optional_key_in_its_right_table() -> None:
    """What is commented out must be right too: a user takes the # away."""
    lines = EXAMPLE.read_text().splitlines()
    shown = [
        line.removeprefix("# ")
        if line.startswith("# ") and (" = " in line or line.startswith("# ["))
        else line
        for line in lines
    ]
    limit = shown.index(next(line for line in shown if line.startswith("[policy.lifetime]")))
    sums = [line for line in shown if line.startswith(("mode =", "sums ="))]
    assert len(sums) == 4
    gas = next(at for at, line in enumerate(shown) if "# gas" in line)
    beside = parse_config("\n".join(shown[:limit] + shown[limit + 3 :]), "example")
    assert [stream.mode for stream in beside.streams] == ["both", "sums"]
    assert (beside.local_reports, beside.apart) == (1, frozenset({1}))
    del shown[gas : gas + 8]
    config = parse_config("\n".join(line for line in shown if line not in sums), "example")
    assert config.lifetime is not None
    assert config.broker.username == "home-0001"
    assert config.broker.password_file == str(Path("/etc/edge-ldp/broker-password"))
    assert (config.all_meters[0].meter_id, config.all_meters[0].date_by) == (
        "E0043007052870318",
        "meter",
    )
    assert len(config.plans.keys) == 1
    assert config.tap is not None
    assert config.tap.host == "192.168.1.20"


@pytest.mark.parametrize("written", ["1", "0.1", "1.0", "0.30000000000000004", "2.5"])
def test_epsilon_is_exactly_what_was_written(written: str) -> None:
    config = parse_config(GOOD.replace("epsilon = 1", f"epsilon = {written}"), "x")
    assert config.policies()[0].ratio == floor_ratio(Decimal(written))


def test_each_stream_has_its_policy_and_the_window_counts_all_of_them(tmp_path: Path) -> None:
    config = make_config(tmp_path / "s", quantities=("power", "energy_import"), window=(3, 10))
    assert config.window == Window(3, 10, 2)
    assert [(policy.stream, policy.unit) for policy in config.policies()] == [
        ("power", "W"),
        ("energy_import", "Wh"),
    ]


@pytest.mark.parametrize(
    ("lines", "tls", "port"),
    [
        ('host = "127.0.0.1"', False, 1883),
        ('host = "localhost"', False, 1883),
        ('host = "::1"', False, 1883),
        ('host = "fe80::1%eth0"', True, 8883),
        ('host = "broker.example."', True, 8883),
        ('host = "broker.example"', True, 8883),
        ('host = "127.0.0.1"\ntls = true', True, 8883),
        ('host = "broker.example"\nport = 1234', True, 1234),
        ('host = "broker.example"\ntls = false\nallow_plaintext = true', False, 1883),
        ('host = "broker.example"\nallow_plaintext = true', True, 8883),
        ('host = "127.0.0.2"', True, 8883),
        ('host = "localhost.example.org"', True, 8883),
    ],
)
def test_off_this_machine_the_link_is_encrypted_unless_the_owner_writes_otherwise(
    lines: str, port: int, *, tls: bool
) -> None:
    broker = parse_config(GOOD.replace('host = "127.0.0.1"', lines), "x").broker
    assert (broker.use_tls, broker.use_port) == (tls, port)


@pytest.mark.parametrize(
    ("path", "expected"),
    [("absent.toml", "No such file"), (".", "directory"), ("latin.toml", "UTF-8")],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, path: str, expected: str) -> None:
    (tmp_path / "latin.toml").write_bytes(GOOD.encode() + b"# caf\xe9")
    with pytest.raises(ConfigError, match=expected) as refused:
        load_config(tmp_path / path)
    assert (refused.value.file, refused.value.key) == (str(tmp_path / path), "file")


def test_a_ca_file_that_is_not_there_is_found_before_the_link_needs_it(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(GOOD.replace("[broker]", '[broker]\ntls = true\nca_file = "/absent.pem"'))
    with pytest.raises(ConfigError, match=r"broker\.ca_file.*No such file"):
        load_config(file)


def broker_with(path: Path) -> BrokerTable:
    return BrokerTable(host="127.0.0.1", username="me", password_file=str(path))


def test_the_password_comes_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text(SECRET + "\n")
    path.chmod(0o600)
    assert read_password(broker_with(path), "x") == SECRET
    assert read_password(BrokerTable(host="127.0.0.1"), "x") is None
    assert SECRET not in repr(broker_with(path))


@pytest.mark.parametrize(
    ("content", "mode", "expected"),
    [
        *((SECRET.encode(), mode, "chmod 600") for mode in (0o604, 0o640, 0o620, 0o602, 0o666)),
        (SECRET.encode(), 0o601, "chmod 600"),
        (b"", 0o600, "a password"),
        (b"\n", 0o600, "a password"),
        (b"\xff\xfe", 0o600, "UTF-8"),
        (None, 0, "No such file"),
    ],
)
def test_a_password_that_is_none_or_that_others_may_read_is_refused_and_not_echoed_AGT_12(
    tmp_path: Path, content: bytes | None, mode: int, expected: str
) -> None:
    path = tmp_path / "password"
    if content is not None:
        path.write_bytes(content)
        path.chmod(mode)
    with pytest.raises(ConfigError, match=expected) as refused:
        read_password(broker_with(path), "agent.toml")
    assert (refused.value.file, refused.value.key) == ("agent.toml", "broker.password_file")
    assert SECRET not in str(refused.value)


def test_SER_44_readings_are_never_taken_from_the_broker_that_reports_go_to() -> None:
    source = 'port = "mqtt://{}/t"'
    for host in ("127.0.0.1", "localhost", "[::1]"):
        text = GOOD.replace(PORT, source.format(host))
        with pytest.raises(ConfigError, match=r"meter.port: expected a broker of your own"):
            parse_config(text, "agent.toml")
    for host in ("127.0.0.1:1884", "broker.lan"):
        parse_config(GOOD.replace(PORT, source.format(host)), "agent.toml")


def test_a_meters_secrets_are_files_that_their_owner_alone_may_read(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(SECRET)
    text = GOOD.replace(PORT, f'port = "https://dongle.lan/t"\naccess.token_file = "{token}"')
    config = parse_config(text, "agent.toml")
    for mode in (0o644, 0o640):
        token.chmod(mode)
        with pytest.raises(ConfigError, match=r"meter.access.token_file: expected a file of mode"):
            check_files(config, "agent.toml")
    token.chmod(0o600)
    check_files(config, "agent.toml")
    placed = parse_config(text.replace(str(token), "credential:dongle"), "agent.toml")
    check_files(placed, "agent.toml")
    with pytest.raises(ConfigError, match=r"meter.access.token_file: expected a systemd service"):
        read_secrets(placed, "agent.toml")
    meter = place_credentials(placed, str(tmp_path)).all_meters[0]
    assert meter.access is not None
    assert meter.access.token_file == str(tmp_path / "dongle")


MANY = """\
mode = "locl"
typo = 1

[device]
fleet = "street"
id = "Home 7"
state = ""

[broker]
host = "mqtt://me:hunter2-hunter2@h"
port = "1883"

[meter]
port = "/dev/ttyUSB0"
baud = 0
[[meter.fields]]
quantity = "power"

[policy]
epsilon = inf

[policy.window]
reports = 0
[[streams]]
name = "power"
quantity = "power"
unit = "W"
ceiling = 0
[[streams]]
name = "power"
quantity = "water"
unit = "W"
"""


def test_every_fault_of_a_file_is_listed_at_once_with_its_line_AGT_12() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_config(MANY, "f")
    error = refused.value
    assert [(one.key, one.line) for one in (error, *error.others)] == [
        ("mode", 1),
        ("typo", 2),
        ("device.state", 7),
        ("broker.host", 10),
        ("broker.port", 11),
        ("meter.baud", 15),
        ("meter.fields[0].unit", 16),
        ("policy.window.reports", 23),
        ("streams[1].ceiling", 29),
        ("streams[1].quantity", 31),
    ]
    assert SECRET not in str(error)
    assert str(error).count("\n") == 9
    assert "f: broker.port: expected `int` >= 1 and <= 65535, got `str` (line 11)" in str(error)


def test_contradictions_are_listed_together_and_beside_wrong_keys_AGT_12() -> None:
    text = GOOD.replace("epsilon = 1", "epsilon = inf").replace("ceiling = 4000", "ceiling = 0")
    with pytest.raises(ConfigError) as refused:
        parse_config(text.replace("[sending]", "[sending]\njitter_s = -1"), "f")
    keys = [one.key for one in (refused.value, *refused.value.others)]
    assert keys == ["policy.epsilon", "sending.jitter_s", "streams[0].ceiling"]


@pytest.mark.parametrize("quantity", UNITS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_SER_26_a_quantity_that_a_protocol_never_tells_is_refused(
    protocol: str, quantity: str
) -> None:
    meter = f'[meter]\nprotocol = "{protocol}"\n'
    meter += f"fields = [{FIELD}]\n" if protocol == "lines" else ""
    stream = STREAM.replace('quantity = "power"', f'quantity = "{quantity}"')
    stream = stream.replace('"W"', f'"{UNITS[quantity]}"')
    text = GOOD.replace("[meter]\n", meter).replace(STREAM, stream)
    known = PROTOCOLS[protocol].quantities or ("power",)
    if quantity in known:
        parse_config(text, "a.toml")
        return
    with pytest.raises(ConfigError) as refused:
        parse_config(text, "a.toml")
    assert refused.value.key == "streams[0].quantity"
    assert all(one in refused.value.expected for one in (*known, protocol, f"no {quantity}"))


@pytest.mark.parametrize("quantity", UNITS)
def test_SER_36_only_what_can_be_negative_may_have_a_low_below_0(quantity: str) -> None:
    protocol = "linky" if "apparent" in quantity else "dsmr"
    stream = STREAM.replace('quantity = "power"', f'quantity = "{quantity}"\nlow = -10000')
    stream = stream.replace('"W"', f'"{UNITS[quantity]}"')
    text = GOOD.replace("[meter]\n", f'[meter]\nprotocol = "{protocol}"\n')
    text = text.replace(STREAM, stream)
    if quantity in SIGNED:
        assert parse_config(text, "a.toml").streams[0].low == -10_000
        doubts = doubts_of(parse_config(text.replace("low = -10000", ""), "a.toml"))
        assert any("below 0 would count as 0" in one for one in doubts)
        return
    with pytest.raises(ConfigError, match=f"{quantity} is never below"):
        parse_config(text, "a.toml")


@pytest.mark.parametrize(
    ("protocol", "quantity", "is_right"),
    [
        ("linky", "power", True),
        ("sml", "power_export", True),
        ("linky", "apparent_power", False),
        ("sml", "energy_import", False),
    ],
)
def test_a_power_may_be_made_of_its_register_and_nothing_else_may(
    protocol: str, quantity: str, *, is_right: bool
) -> None:
    """A meter that tells no power, as a Linky in historique mode or a German one without PIN."""
    text = GOOD.replace("[meter]\n", f'[meter]\nprotocol = "{protocol}"\n')
    stream = STREAM.replace('quantity = "power"', f'quantity = "{quantity}"\nfrom_register = true')
    text = text.replace(STREAM, stream.replace('"W"', f'"{UNITS[quantity]}"'))
    if not is_right:
        with pytest.raises(ConfigError, match="nothing but for power and power_export") as refused:
            parse_config(text, "a.toml")
        assert refused.value.key == "streams[0].from_register"
        return
    (stream_table,) = parse_config(text, "a.toml").streams
    assert stream_table.source == f"energy_{'export' if 'export' in quantity else 'import'}"
    assert stream_table.kind is Kind.RATE


SEVERAL = """[[meters]]
name = "house"
port = "/dev/ttyUSB0"
[[meters]]
name = "heat"
port = "/dev/ttyUSB1"
protocol = "modbus"
"""


def several(old: str = "", new: str = "", *, streams: tuple[str, ...] = ("house", "heat")) -> str:
    head, first = config_text(Path("s.db"), quantities=("power",)).split("[[streams]]")
    begin, end = head.index("[meter]"), head.index("[clock]")
    text = head[:begin] + SEVERAL + head[end:]
    for at, name in enumerate(streams):
        stream = first.replace('name = "power"', f'name = "power{at}"')
        text += f'[[streams]]\nmeter = "{name}"{stream}'
    assert old in text
    return text.replace(old, new, 1)


def test_several_meters_share_one_window_and_each_stream_names_its_own_AGT_26() -> None:
    config = parse_config(several(streams=("heat", "house", "heat")), "a.toml")
    house, heat = config.all_meters
    assert (house.name, heat.name) == ("house", "heat")
    assert (config.positions_of(house), config.positions_of(heat)) == ((1,), (0, 2))
    assert config.window.streams == 3


def test_a_single_meter_may_be_one_of_several_and_then_needs_no_name_in_its_streams() -> None:
    old = config_text(Path("s.db"))
    text = old.replace("[meter]", '[[meters]]\nname = "house"')
    alone, listed = parse_config(old, "a.toml"), parse_config(text, "a.toml")
    assert listed.positions_of(listed.all_meters[0]) == alone.positions_of(alone.all_meters[0])


@pytest.mark.parametrize(
    ("old", "new", "key", "expected"),
    [
        ('name = "heat"', 'name = "house"', "meters[1].name", "no other meter"),
        ('name = "heat"', 'name = "a b"', "meters[1].name", "a-z"),
        ('name = "heat"\n', "", "meters[1].name", "a-z"),
        ("ttyUSB1", "ttyUSB0", "meters[1].port", "no other meter"),
        ('"modbus"', '"dlms"', "meters[1].protocol", "one of"),
        ('meter = "heat"', 'meter = "heating"', "streams[1].meter", "'house', 'heat'"),
        ('meter = "heat"', 'meter = "house"', "meters[1]", "a stream of this meter"),
        ("[[meters]]", '[meter]\nport = "/dev/ttyUSB7"\n[[meters]]', "meter", "there are both"),
    ],
)
def test_several_meters_that_cannot_be_meant_are_refused(
    old: str, new: str, key: str, expected: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_config(several(old, new), "a.toml")
    found = {one.key: one.expected for one in (refused.value, *refused.value.others)}
    assert expected in found[key]


def test_a_stream_of_a_single_meter_names_none() -> None:
    text = config_text(Path("s.db")).replace("[[streams]]", '[[streams]]\nmeter = "heat"')
    with pytest.raises(ConfigError, match="nothing with"):
        parse_config(text, "a.toml")

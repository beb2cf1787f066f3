"""The configuration: every fault names file, key and what was expected."""

import json
from dataclasses import fields
from decimal import Decimal
from pathlib import Path

import pytest

from aggregator.config import (
    BrokerTable,
    ConfigError,
    DevicesTable,
    RehearsalTable,
    load_config,
    parse_config,
    read_password,
)
from edge_ldp.mechanisms import Hybrid, Tuned
from edge_ldp.service.zones import zone_of

KEY = "8139770ea87d175f56a35466c34c7ecccb8d8a91b4ee37a25df60f5b8fc9b394"
EXAMPLE = Path(__file__).parents[3] / "config" / "aggregator.toml"
GOOD = """
fleet = "demo"
[broker]
host = "127.0.0.1"
[store]
path = "aggregator.db"
[[streams]]
name = "power"
id = 1
unit = "W"
ceiling = 20000
epsilon = 1.5
horizon = 100000
"""


def test_the_example_loads_and_shows_every_key() -> None:
    config = load_config(EXAMPLE)
    assert config.streams
    text = EXAMPLE.read_text()
    tables = [config.broker, config.store, config.clock, config.intake, config.streams[0]]
    tables += [config.guard, config.query]
    tables.append(config.retention)
    tables += [DevicesTable("h", "p"), RehearsalTable("u", "p")]
    for table in tables:
        for field in fields(table):  # type: ignore[arg-type] # each of them is a dataclass
            assert f"{field.name} =" in text, f"the example does not mention {field.name}"


def test_a_short_file_gets_the_documented_defaults() -> None:
    config = parse_config(GOOD, "f.toml")
    stream = config.streams[0]
    assert stream.epsilon == Decimal("1.5")
    assert (stream.survey_share, stream.share) == (None, (32_768, 65_536))
    assert stream.hysteresis == Decimal("0.1")
    assert parse_config(GOOD.replace("horizon = 100000\n", ""), "f").streams[0].horizon == (
        "hour-of-day over 28 days"
    )
    assert (stream.bucket_s, stream.slot_seconds) == (3600, 900)
    assert (config.broker.use_tls, config.broker.use_port) == (False, 1883)
    assert config.client_id == "edge-ldp-demo-aggregator"
    assert config.intake.resend_window_s == 35 * 86_400


@pytest.mark.parametrize(
    ("old", "new", "key", "expected"),
    [
        ("fleet", "fleets", "fleets", "no such key"),
        ('fleet = "demo"', "", "fleet", "the key is missing"),
        ('fleet = "demo"', 'fleet = "De mo"', "fleet", "1 to 63 of a-z"),
        ('fleet = "demo"', "fleet = 3", "fleet", "`str`, got `int`"),
        ('fleet = "demo"', 'fleet = "demo', "syntax", "TOML"),
        ("epsilon = 1.5", "epsilon = " + "[" * 50_000, "syntax", "TOML"),
        ("epsilon = 1.5", "epsilon = 1e" + "9" * 50, "syntax", "TOML"),
        ("ceiling = 20000", "ceiling = 0", "streams[0].ceiling", "more than low"),
        ("ceiling = 20000", "ceiling = 20000.0", "streams[0].ceiling", "`int`"),
        ("ceiling = 20000", "ceiling = 500", "streams[0].survey_size", "ceiling - low + 1"),
        ("ceiling = 20000", "ceiling = true", "streams[0].ceiling", "`int`, got `bool`"),
        ("epsilon = 1.5", "epsilon = 0", "streams[0].epsilon", "2**-16"),
        ("epsilon = 1.5", "epsilon = inf", "streams[0].epsilon", "2**-16"),
        ("epsilon = 1.5", "epsilon = nan", "streams[0].epsilon", "2**-16"),
        ("epsilon = 1.5", "epsilon = true", "streams[0].epsilon", "got `bool`"),
        ("horizon = 100000", "horizon = 0", "streams[0].horizon", ">= 1"),
        ("horizon = 100000", 'horizon = "hour over 7 days"', "streams[0].horizon", "over N days"),
        ("horizon = 100000", 'horizon = "day over 0 days"', "streams[0].horizon", '"hour-of-day"'),
        ("horizon = 100000", 'horizon = "whole over 7 day"', "streams[0].horizon", "over N days"),
        ("horizon = 100000", 'horizon = "day over 10000 days"', "streams[0].horizon", "over N"),
        ("horizon = 100000", 'horizon = ""', "streams[0].horizon", "over N days"),
        ("horizon = 100000", "horizon = 7.5", "streams[0].horizon", "`int` >= 1 or `str`"),
        ("horizon = 100000", "horizon = true", "streams[0].horizon", "got `bool`"),
        ("horizon = 100000", "horizon = 9\nsize = 1", "streams[0].size", ">= 2"),
        ("horizon = 100000", "horizon = 9\nhorzon = 1", "streams[0].horzon", "no such key"),
        ("horizon = 100000", "horizon = 9\nhysteresis = 1", "streams[0].hysteresis", "below 1"),
        ('unit = "W"', 'unit = "W\\t"', "streams[0].unit", "printable"),
        ("horizon = 100000", "horizon = 9\nhysteresis = nan", "streams[0].hysteresis", "below 1"),
        (
            "horizon = 100000",
            "horizon = 9\nsurvey_share = nan",
            "streams[0].survey_share",
            "most 1",
        ),
        ("ceiling = 20000", f"ceiling = {1 << 62}", "streams[0].ceiling", "less than low + 2**48"),
        ("horizon = 100000", "horizon = 9\nsurvey_share = 0", "streams[0].survey_share", "above 0"),
        ("horizon = 100000", "horizon = 9\nsurvey_share = 2", "streams[0].survey_share", "most 1"),
        ("horizon = 100000", "horizon = 9\nslot_seconds = 0", "streams[0].slot_seconds", ">= 1"),
        (
            "horizon = 100000",
            'horizon = 9\nmechanism = "grr"',
            "streams[0].mechanism",
            "one of 'hybrid', 'tuned'",
        ),
        ("horizon = 100000", "horizon = 9\nbits = 5", "streams[0].bits", "one of 3, 4"),
        ("id = 1", "id = 256", "streams[0].id", "<= 255"),
        ('name = "power"', 'name = "a/b"', "streams[0].name", "1 to 63 of a-z"),
        ('host = "127.0.0.1"', 'host = "h"\ntls = false', "broker.tls", "allow_plaintext = true"),
        ('host = "127.0.0.1"', 'host = "h"\nport = 0', "broker.port", ">= 1"),
        (
            'host = "127.0.0.1"',
            'host = "localhost"\npassword_file = "p"',
            "broker.username",
            "user name",
        ),
        (
            "[store]",
            '[intake]\nenrolment = "closed"\n[store]',
            "intake.enrolment",
            "one of 'open', 'store'",
        ),
        ("[store]", '[intake]\nenrolment = ["A b"]\n[store]', "intake.enrolment[0]", "1 to 63"),
        ("[store]", "[intake]\nflush_ms = 51\n[store]", "intake.flush_ms", "<= 50"),
        ("[store]", "[intake]\nquota_messages = 9\n[store]", "intake.quota_messages", ">= 100"),
        ("[store]", "[clock]\nrate = 0\n[store]", "clock.rate", "> 0"),
    ],
)
def test_a_fault_names_the_file_the_key_and_what_was_expected(
    old: str, new: str, key: str, expected: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(GOOD.replace(old, new, 1), "f.toml")
    assert (caught.value.file, caught.value.key) == ("f.toml", key)
    assert expected in caught.value.expected
    assert "f.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("sums", "key", "expected"),
    [
        ("days = 7", "home_sums.share", "missing"),
        ("share = 1.5", "home_sums.share", "<= 1"),
        ("share = 1.0\ndays = 0", "home_sums.days", ">= 1"),
        ("share = 1.0\ncells = 7", "home_sums.cells", "one of 1, 2, 3"),
        ("share = 1.0\ncells = 96", "home_sums.cells", "at least 2 slots in each"),
        (
            "share = 1.0\ncells = 6\nblock_hours = 2",
            "home_sums.block_hours",
            "hours of whole cells",
        ),
        ("share = 1.0\noffset_s = 1", "home_sums.offset_s", "whole slots"),
    ],
)
def test_sums_that_no_home_could_make_are_not_asked_for(sums: str, key: str, expected: str) -> None:
    text = f"{GOOD}[streams.home_sums]\n{sums}\n"
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "f.toml")
    assert caught.value.key == f"streams[0].{key}"
    assert expected in caught.value.expected
    name = key.rpartition(".")[2]
    lines = text.splitlines()
    at = [number for number, line in enumerate(lines, 1) if line.startswith(f"{name} = ")]
    where = at[-1] if name in sums else lines.index("[streams.home_sums]") + 1
    assert str(caught.value).endswith(f"(line {where})")


def test_slots_that_no_day_has_are_named_by_their_key() -> None:
    text = f"{GOOD}slot_seconds = 1000\n[streams.home_sums]\nshare = 1.0\n"
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "f.toml")
    assert caught.value.key == "streams[0].slot_seconds"
    assert "a length that divides the day" in caught.value.expected


def test_a_stream_may_ask_for_a_ready_table() -> None:
    tuned = GOOD.replace("horizon = 100000", 'horizon = 9\nmechanism = "tuned"')
    stream = parse_config(tuned, "f").streams[0]
    assert stream.sums(500) == Tuned(epsilon="1.5", low=0, high=500, bits=4)
    eight = parse_config(tuned + "bits = 3\n", "f").streams[0]
    assert eight.sums(500).code_count == 8
    assert parse_config(GOOD, "f").streams[0].sums(500) == Hybrid(
        epsilon="1.5", low=0, high=500, size=16
    )


def test_an_epsilon_without_a_ready_table_names_those_there_are() -> None:
    wanted = GOOD.replace("epsilon = 1.5", 'epsilon = 1.51\nmechanism = "tuned"')
    with pytest.raises(ConfigError) as caught:
        parse_config(wanted, "f.toml")
    assert caught.value.key == "streams[0].epsilon"
    for ready in ("0.1,", "0.5,", "1,", "1.5,", "2,", "4,"):
        assert ready in caught.value.expected
    assert parse_config(wanted.replace("tuned", "hybrid"), "f").streams[0].epsilon


@pytest.mark.parametrize(
    ("epsilon", "theta", "name"),
    [
        ("0.01", 500, "hybrid"),  # the table's is larger by 3e-5
        ("1.5", 500, "tuned"),
        ("1.5", 2, "tuned"),
        ("1.51", 500, "hybrid"),  # no ready table
    ],
)
def test_of_hybrid_and_ready_table_the_one_of_less_variance_is_chosen(
    epsilon: str, theta: int, name: str
) -> None:
    chosen = GOOD.replace("1.5", epsilon).replace("= 100000", '= 9\nmechanism = "chosen"')
    stream = parse_config(chosen, "f").streams[0]
    made = stream.sums(theta)
    assert made.name == name
    hybrid = Hybrid(epsilon=epsilon, low=0, high=theta, size=16)
    assert made.unit_variance <= hybrid.unit_variance
    assert stream.allows(made)
    assert stream.allows(hybrid) == (name == "hybrid")
    assert parse_config(chosen + 'theta = "published"\n', "f").streams[0].sums(theta) == made


@pytest.mark.parametrize("value", ["true", "false", '"yes"'])
def test_a_key_of_the_version_before_is_told_to_be_left_out_and_why(value: str) -> None:
    with pytest.raises(ConfigError, match="line to be left out: θ is always chosen") as caught:
        parse_config(GOOD + f"corrected_sums = {value}\n", "f.toml")
    assert caught.value.key == "streams[0].corrected_sums"


@pytest.mark.parametrize(
    ("horizon", "days", "reports", "strata", "text"),
    [
        ("5000", 28, 5000, 1, "5,000 values as a whole"),
        ('"whole over 7 days"', 7, 1400, 1, "whole over 7 days"),
        ('"hour-of-day over 28 days"', 28, 5600, 24, "hour-of-day over 28 days"),
        ('"day over 10 days"', 10, 2000, 10, "day over 10 days"),
        ('"week over 30 days"', 30, 6000, 4, "week over 30 days"),
        ('"week over 6 days"', 6, 1200, 1, "week over 6 days"),
        ('"day over 9999 days"', 9999, 1_999_800, 9999, "day over 9999 days"),
    ],
)
def test_a_horizon_is_a_number_of_reports_in_equal_strata(
    horizon: str, days: int, reports: int, strata: int, text: str
) -> None:
    """Of 200 reports a day."""
    stream = parse_config(GOOD.replace("100000", horizon), "f").streams[0]
    asked = stream.question(200 / 86_400)
    assert (stream.horizon_days, asked.strata, stream.horizon_text) == (days, strata, text)
    assert asked.reports == pytest.approx(reports)
    assert stream.question(0.0).reports >= 1  # a stream that nothing came of yet


def test_a_survey_share_that_is_not_given_begins_at_what_its_rule_begins_with() -> None:
    for theta, share in (("adaptive", 32_768), ("published", 4096)):
        text = GOOD + f'theta = "{theta}"\n'
        stream = parse_config(text, "f").streams[0]
        assert (stream.survey_share, stream.share) == (None, (share, 65_536))
        given = parse_config(text + "survey_share = 0.3\n", "f").streams[0]
        assert (given.survey_share, given.share) == (Decimal("0.3"), (19_661, 65_536))


def test_streams_must_differ_and_be_there() -> None:
    stream = GOOD[GOOD.index("[[streams]]") :]
    with pytest.raises(ConfigError, match=r"streams\.id"):
        parse_config(GOOD + stream.replace("power", "gas"), "f")
    with pytest.raises(ConfigError, match=r"streams\.name"):
        parse_config(GOOD + stream.replace("id = 1", "id = 2"), "f")
    with pytest.raises(ConfigError, match="streams"):
        parse_config("streams = []\n" + GOOD.replace(stream, ""), "f")
    assert len(parse_config(GOOD + stream.replace("power", "gas").replace("1", "2"), "f").streams)


def test_plaintext_off_this_machine_must_be_named() -> None:
    assert parse_config(GOOD.replace("127.0.0.1", "mqtt.example"), "f").broker.use_port == 8883
    accepted = GOOD.replace('"127.0.0.1"', '"10.0.0.1"\ntls = false\nallow_plaintext = true')
    assert not parse_config(accepted, "f").broker.use_tls


def test_a_password_file_must_be_private(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("correct horse\n")
    table = BrokerTable(host="localhost", username="u", password_file=str(secret))
    secret.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600") as caught:
        read_password(table, "f")
    assert "horse" not in str(caught.value)
    secret.chmod(0o600)
    assert read_password(table, "f") == "correct horse"
    secret.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"broker.password_file.*UTF-8"):
        read_password(table, "f")
    secret.unlink()
    with pytest.raises(ConfigError, match="readable"):
        read_password(table, "f")
    assert read_password(BrokerTable(host="localhost"), "f") is None


def test_a_file_that_cannot_be_read_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="aggregator setup DIR` writes one"):
        load_config(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="readable file \\(Is a directory"):
        load_config(tmp_path)
    bad = tmp_path / "bad.toml"
    bad.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_config(bad)


def test_all_faults_are_told_at_once_with_their_lines() -> None:
    """Also what contradicts, beside a stream that cannot be made."""
    wrong = GOOD.replace("ceiling = 20000", "ceilin = 20000") + '[query]\nzone = "Berlin"\n'
    with pytest.raises(ConfigError) as caught:
        parse_config(wrong, "f.toml")
    told = [line.partition(": expected")[0] for line in str(caught.value).splitlines()]
    assert told == [
        f"f.toml: {key}" for key in ("streams[0].ceiling", "streams[0].ceilin", "query.zone")
    ]
    wrong = GOOD.replace("ceiling = 20000", "ceilin = 20000").replace('path = "a', 'paht = "a')
    with pytest.raises(ConfigError) as caught:
        parse_config(wrong.replace("epsilon = 1.5", "epsilon = true"), "f.toml")
    assert str(caught.value).splitlines() == [
        "f.toml: store.paht: expected no such key; did you mean path? (line 6)",
        "f.toml: streams[0].ceiling: expected a value: the key is missing (line 7)",
        "f.toml: streams[0].ceilin: expected no such key; did you mean ceiling? (line 11)",
        "f.toml: streams[0].epsilon: expected `decimal` or `int`, got `bool` (line 12)",
    ]


@pytest.mark.parametrize(
    ("offset_s", "more", "named"),
    [
        (0, "", "UTC"),
        (19_800, "", "UTC+05:30"),
        (-86_399, "", "UTC-23:59:59"),
        (86_400, "", "UTC"),  # accepted, and the same days
        (3600, '[query]\nzone = "Asia/Tokyo"\n', "Asia/Tokyo"),
        (3600, '[query]\nzone = "UTC"\n', "UTC"),
    ],
)
def test_the_zone_is_that_of_query_else_of_the_streams_offset(
    offset_s: int, more: str, named: str
) -> None:
    config = parse_config(f"{GOOD}utc_offset_s = {offset_s}\n{more}", "f")
    assert str(config.zone()) == str(config.zone(config.streams[0])) == named
    assert str(zone_of(named)) == named


@pytest.mark.parametrize(
    "zone", ["UTC+25:00", "UTC+1", "UTC+01:60", "Europe/Nowhere", "", "../etc", "Europe", "UTC\x00"]
)
def test_a_zone_that_is_none_is_named(zone: str) -> None:
    with pytest.raises(ConfigError, match=r"query\.zone: expected a time zone"):
        parse_config(GOOD + f"[query]\nzone = {json.dumps(zone)}\n", "f")


@pytest.mark.parametrize("more", ['signing_key_file = "k"\nnext_key = "0a"', f'next_key = "{KEY}"'])
def test_a_next_key_is_one_that_follows_another(more: str) -> None:
    with pytest.raises(ConfigError, match=r"plans\.next_key"):
        parse_config(f"{GOOD}[plans]\n{more}\n", "f")


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ('host = "h"\ntls = false', "devices.tls"),
        ('host = "::1"\ntls = false\nca_file = "c"', "ca"),
    ],
)
def test_how_devices_reach_the_broker_must_make_sense(given: str, key: str) -> None:
    table = f'[devices]\npasswords_file = "p"\n{given}\n'
    with pytest.raises(ConfigError, match=key):
        parse_config(GOOD + table, "f")

"""Names of ports: devices, and adapters in the network."""

import pytest

from agent.config import parse_meter
from agent.errors import ConfigError
from agent.meters.port_names import Address, address_of, fault_of, host_of, shown


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("socket://192.168.1.7:2000", Address("socket", "192.168.1.7", 2000)),
        ("rfc2217://ser2net.lan:4000", Address("rfc2217", "ser2net.lan", 4000)),
        ("socket://[fe80::1]:65535", Address("socket", "fe80::1", 65_535)),
    ],
)
def test_a_network_port_has_a_scheme_a_host_and_a_port(name: str, address: Address) -> None:
    assert address_of(name) == address
    assert fault_of(name) is None


@pytest.mark.parametrize(
    "name", ["/dev/ttyUSB0", "/dev/serial/by-path/pci-0:14.0-usb-0:1:1.0", "meter", "./10.0.0.7:23"]
)
def test_anything_else_without_a_scheme_is_a_device(name: str) -> None:
    assert (address_of(name), fault_of(name)) == (None, None)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("192.168.1.5:23", "socket://192.168.1.5:23"),
        ("nas.local:4000", "socket://nas.local:4000"),
        ("[fe80::1]:502", "socket://[fe80::1]:502"),
        ("192.168.1.5", "socket://192.168.1.5:PORT"),
    ],
)
def test_SER_23_an_address_without_its_scheme_is_refused_with_the_one_meant(
    name: str, meant: str
) -> None:
    """By `check`, too: a service would wait for such a device for ever."""
    with pytest.raises(ConfigError, match=r"meter\.port: expected a scheme") as refused:
        parse_meter(f'port = "{name}"', "agent.toml")
    assert f"{meant}, or rfc2217://" in str(refused.value)


@pytest.mark.parametrize(
    "name",
    [
        "socket://host",
        "socket://host:0",
        "socket://host:65536",
        "socket://:2000",
        "socket://host:2000/x",
        "socket://a b:2000",
        "socket://fe80::1:2000",
        "tcp://host:2000",
        "SOCKET://host:2000",
        "spy:///dev/ttyUSB0",
        "socket://host:٣",
        "socket://head..local:4000",
        "rfc2217://.local:4000",
        f"socket://{'a' * 64}.local:4000",
    ],
)
def test_what_only_looks_like_a_network_port_is_refused_with_the_form_expected(name: str) -> None:
    assert address_of(name) is None
    with pytest.raises(ConfigError, match=r"meter.port: expected a device .* rfc2217://HOST:PORT"):
        parse_meter(f'port = "{name}"', "agent.toml")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mqtt://broker.lan/tele/#", "one topic, without + and #"),
        ("mqtts://broker.lan:8883", "one topic, without + and #"),
        ("mqtt://me:secret@broker.lan/t", "a login stands in [meter.access]"),
        ("http://192.168.1.7", "a login or token stands in a file that"),
        ("HTTPS://homewizard.local/api", "a login or token stands in a file that"),
        ("http://192.168.1.7/cm?user=a&password=b&cmnd=x", "never in the address"),
        ("https://192.168.1.7/t?Api_Key=83457219", "never in the address"),
        ("wss://homewizard.local/api", "web sockets are not read"),
    ],
)
def test_SER_34_a_port_that_is_a_broker_or_a_page_says_what_is_supported(
    name: str, said: str
) -> None:
    told = fault_of(name)
    assert told is not None
    assert said in told
    assert "socket://HOST:PORT" in told
    assert "83457219" not in told


def test_a_meter_that_changes_its_speed_cannot_be_asked_through_plain_tcp() -> None:
    lines = 'protocol = "iec62056-21"\nmode = "request"\nport = "{}://host:1"'
    with pytest.raises(ConfigError, match="the speed must change"):
        parse_meter(lines.format("socket"), "agent.toml")
    assert parse_meter(lines.format("rfc2217"), "agent.toml").mode == "request"
    kept = parse_meter(lines.format("socket") + "\nkeep_speed = true", "agent.toml")
    assert (kept.keep_speed, kept.line) == (True, (300, 7, "E"))
    with pytest.raises(ConfigError, match="keep_speed: expected nothing unless mode"):
        parse_meter('protocol = "iec62056-21"\nport = "x"\nkeep_speed = true', "agent.toml")


@pytest.mark.parametrize(
    ("host", "exposed"), [("localhost", False), ("127.0.0.1", False), ("::1", False), ("nas", True)]
)
def test_readings_are_exposed_when_they_leave_the_machine(host: str, *, exposed: bool) -> None:
    assert Address("socket", host, 1).is_exposed == exposed


def test_SER_46_what_a_page_is_asked_is_no_part_of_the_name_that_logs_have() -> None:
    assert parse_meter('port = "http://h/rpc/EM.GetStatus?id=0"', "x").shown_port == (
        "http://h/rpc/EM.GetStatus?…"
    )
    for other in ("http://h/t", "/dev/tty?", "mqtt://h/a?b"):
        assert shown(other) == other
    assert host_of("http://h:80/") == host_of("http://h:80") == "http://h:80"
    assert [host_of(one) for one in ("http://h/t", "mqtts://h", "/dev/x")] == [
        None,
        "mqtts://h",
        None,
    ]

"""Products that tell a meter's readings in a network: where, and what their words mean.

One table: docs/meters.md is made of it, `probe` and `setup` know products by it. Source: the
makers' documents (docs/adr/0013-meters.md); docs/faults.md, SER-37, SER-41, SER-46.
"""

from typing import NamedTuple

from agent.meters.lines import field, parse_line
from agent.meters.obis.dsmr import P1Meter
from agent.meters.port_names import Source
from agent.meters.reading import Telegram

Told = tuple[str, str, str, int]
"""Where in JSON a quantity stands, which, its unit, and what it is multiplied by."""


class Product(NamedTuple):
    """What a product is called, and where and in which words it tells; without any it sends P1.

    Its port has HOST for an address, and NAME for a name that its owner chose.
    """

    name: str
    port: str
    words: tuple[Told, ...] = ()
    remark: str = ""

    @property
    def scheme(self) -> str:
        """How it is spoken to."""
        return self.port.partition("://")[0]

    @property
    def path(self) -> str:
        """Where on its host, or at its owner's broker, it tells; NAME is any word."""
        return self.port.partition("HOST/")[2]

    def tells(self, payload: bytes) -> bool:
        """Say whether a payload, made a line, is what this product sends."""
        if not self.words:
            heard = P1Meter(crc="required").feed(payload)
            return any(isinstance(one, Telegram) for one in heard)
        fields = [field(*word) for word in self.words]
        return isinstance(parse_line(payload.strip(), fields), Telegram)

    @property
    def keys(self) -> dict[str, object]:
        """What [meter] says of it beside the port."""
        if not self.words:
            return {"protocol": "dsmr"}
        names = ("field", "quantity", "unit", "scale")
        fields = [dict(zip(names, told[: 3 + (told[3] != 1)], strict=False)) for told in self.words]
        return {"protocol": "lines", "fields": fields}


def _net(place: str) -> tuple[Told, ...]:
    """Return a power that is below 0 while the home gives: also each direction by itself."""
    return (
        (place, "power", "W", 1),
        (place, "power_export", "W", -1),
        (place, "power_net", "W", 1),
    )


PRODUCTS = (
    Product(
        "HomeWizard P1 (v1)",
        "http://HOST/api/v1/telegram",
        remark="its app's settings, Meters, Local API: on",
    ),
    Product("HomeWizard P1 (v2)", "https://HOST/api/telegram"),
    Product("ESPHome `dsmr`, its telegram", "mqtt://HOST/NAME/sensor/telegram/state"),
    Product(
        "Shelly Pro 3EM and others of Gen2 and later",
        "http://HOST/rpc/Shelly.GetStatus",
        (
            *_net("em:0.total_act_power"),
            ("emdata:0.total_act", "energy_import", "Wh", 1),
            ("emdata:0.total_act_ret", "energy_export", "Wh", 1),
        ),
    ),
    Product("Shelly 3EM (Gen1)", "http://HOST/status", _net("total_power")),
    Product(
        "Shelly EM (Gen1), its first channel",
        "http://HOST/status",
        (*_net("emeters.0.power"), ("emeters.0.total", "energy_import", "Wh", 1)),
    ),
    Product(
        "Tasmota, a plug or Teleinfo head",
        "mqtt://HOST/tele/NAME/SENSOR",
        (("ENERGY.Power", "power", "W", 1), ("ENERGY.Total", "energy_import", "kWh", 1)),
    ),
    Product(
        "Tasmota, an SML head (names as in its script)",
        "mqtt://HOST/tele/NAME/SENSOR",
        (
            *_net("SML.Power_curr"),
            ("SML.Total_in", "energy_import", "kWh", 1),
            ("SML.Total_out", "energy_export", "kWh", 1),
        ),
    ),
    Product(
        "AMS reader (JSON)",
        "mqtt://HOST/NAME/power",
        (("data.P", "power", "W", 1), ("data.PO", "power_export", "W", 1)),
    ),
    Product(
        "zigbee2mqtt",
        "mqtt://HOST/zigbee2mqtt/NAME",
        (("power", "power", "W", 1), ("energy", "energy_import", "kWh", 1)),
    ),
)


def product_of(source: Source, payload: bytes) -> Product | None:
    """Return the first product that tells such a thing there; None: no one that is known."""
    kind = ("mqtt", "mqtts") if not source.is_asked else ("http", "https")
    known = sorted(PRODUCTS, key=lambda one: one.scheme != source.scheme)  # a proxy may add TLS
    return next((one for one in known if one.scheme in kind and one.tells(payload)), None)

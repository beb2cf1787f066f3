"""An IEC 62056-21 readout as meters with an optical eye push it (mode D), in EasyMeter's form.

Written apart from the agent's parser, from the same standard, so that each checks the other.
"""

from firmware_stubs.meters.telegram import check_printable


def readout_telegram(  # noqa: PLR0913 (the fields of a telegram)
    *,
    meter_id: str,
    time_s: int,  # noqa: ARG001 (these meters tell no time)
    import_wh: int,
    power_w: int,
    export_wh: int = 0,
    export_power_w: int = 0,
    is_net: bool = False,
) -> bytes:
    """Return the telegram of a meter that shows its registers in kWh with seven decimals.

    `is_net`: power drawn goes below 0 while it gives, and there is no register of power given.

    Raises ParameterError for what a meter cannot print.
    """
    check_printable(import_wh, power_w, export_wh, export_power_w)
    lines = (
        "/TST5Q3DB1024 V3.04",
        "",
        "1-0:0.0.0*255(0272031312565)",
        f"1-0:1.8.0*255({_kilo(import_wh)}0000*kWh)",
        f"1-0:2.8.0*255({_kilo(export_wh)}0000*kWh)",
        "1-0:21.7.0*255(000126.00*W)",
        *(
            (f"1-0:1.7.0*255({power_w - export_power_w:07d}.00*W)",)
            if is_net
            else (
                f"1-0:1.7.0*255({power_w:06d}.00*W)",
                f"1-0:2.7.0*255({export_power_w:06d}.00*W)",
            )
        ),
        "1-0:96.5.5*255(80)",
        f"0-0:96.1.255*255({meter_id})",
        "!",
        "",
    )
    return "\r\n".join(lines).encode("ascii")


def _kilo(number: int) -> str:
    return f"{number // 1000:08d}.{number % 1000:03d}"

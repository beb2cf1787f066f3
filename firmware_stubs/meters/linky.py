"""French TIC telegrams in both modes, byte for byte as in the captures.

Written apart from the agent's parser, from the same standard, so that each checks the other.
Standard: Enedis-NOI-CPT_54E (docs/adr/0013-meters.md).
"""

from firmware_stubs.meters.telegram import check_printable, timestamp

MAX_VA = 10**5 - 1


def linky_telegram(  # noqa: PLR0913 (the fields of a telegram)
    *,
    meter_id: str,
    time_s: int,
    import_wh: int,
    power_w: int,
    export_wh: int = 0,
    export_power_w: int = 0,
) -> bytes:
    """Return a frame of the standard mode of a meter that also gives; its load has no reactance.

    The meter's number is the last twelve digits or capitals of `meter_id`.
    Raises ParameterError for what a meter cannot print.
    """
    check_printable(import_wh, power_w, export_wh, export_power_w, MAX_VA)
    local = timestamp(time_s)  # YYMMDDhhmmss and S or W, where the French have E and H
    clock = ("E" if local.endswith("S") else "H") + local[:-1]
    groups = (
        ("ADSC", meter_id[-12:]),
        ("VTIC", "02"),
        ("DATE", clock, ""),
        ("NGTF", "PRODUCTEUR      "),
        ("LTARF", "INDEX NON CONSO "),
        ("EAST", f"{import_wh:09d}"),
        ("EASF01", f"{import_wh:09d}"),
        ("EAIT", f"{export_wh:09d}"),
        ("IRMS1", "005"),
        ("URMS1", "228"),
        ("PREF", "03"),
        ("SINSTS", f"{power_w:05d}"),
        ("SMAXSN", "E180716063417", "00021"),
        ("SINSTI", f"{export_power_w:05d}"),
        ("MSG1", "PAS DE          MESSAGE         "),
    )
    return b"\x02" + b"".join(_group("\t", *fields) for fields in groups) + b"\x03"


def historique_telegram(  # noqa: PLR0913 (one interface for all meters)
    *,
    meter_id: str,
    time_s: int,  # noqa: ARG001 (this mode tells no time)
    import_wh: int,
    power_w: int,
    export_wh: int = 0,
    export_power_w: int = 0,
) -> bytes:
    """Return a frame of the historique mode with peak and off-peak registers; it cannot give."""
    check_printable(import_wh, power_w, export_wh, export_power_w, MAX_VA)
    groups = (
        ("ADCO", meter_id[-12:]),
        ("OPTARIF", "HC.."),
        ("ISOUSC", "15"),
        ("HCHC", f"{import_wh // 2:09d}"),
        ("HCHP", f"{import_wh - import_wh // 2:09d}"),
        ("PTEC", "HP.."),
        ("IINST", "001"),
        ("IMAX", "002"),
        ("PAPP", f"{power_w:05d}"),
        ("HHPHC", "A"),
        ("MOTDETAT", "000000"),
    )
    return b"\x02" + b"".join(_group(" ", *fields) for fields in groups) + b"\x03"


def _group(separator: str, *fields: str) -> bytes:
    text = separator.join(fields)
    counted = text + separator if separator == "\t" else text
    check = (sum(counted.encode()) & 0x3F) + 0x20
    return f"\n{text}{separator}".encode() + bytes([check]) + b"\r"

"""French TIC telegrams in both modes, byte for byte as in the captures.

Written apart from the agent's parser, from the same standard, so that each checks the other.
Standard: Enedis-NOI-CPT_54E (docs/adr/0013-meters.md).
"""

from typing import Any

from firmware_stubs.meters.telegram import Display, check_printable, timestamp

MAX_VA = 10**5 - 1


def linky_telegram(**shown: Any) -> bytes:
    """Return a frame of the standard mode of a meter that also gives; its load has no reactance.

    The meter's number is the last twelve digits or capitals of `meter_id`.
    Raises ParameterError for what a meter cannot print.
    """
    now = Display(**shown)
    check_printable(now, MAX_VA)
    local = timestamp(now.time_s)  # YYMMDDhhmmss and S or W, where the French have E and H
    clock = ("E" if local.endswith("S") else "H") + local[:-1]
    groups = (
        ("ADSC", now.meter_id[-12:]),
        ("VTIC", "02"),
        ("DATE", clock, ""),
        ("NGTF", "PRODUCTEUR      "),
        ("LTARF", "INDEX NON CONSO "),
        ("EAST", f"{now.import_wh:09d}"),
        ("EASF01", f"{now.import_wh:09d}"),
        ("EAIT", f"{now.export_wh:09d}"),
        ("IRMS1", "005"),
        ("URMS1", "228"),
        ("PREF", "03"),
        ("SINSTS", f"{now.power_w:05d}"),
        ("SMAXSN", "E180716063417", "00021"),
        ("SINSTI", f"{now.export_power_w:05d}"),
        ("MSG1", "PAS DE          MESSAGE         "),
    )
    return b"\x02" + b"".join(_group("\t", *fields) for fields in groups) + b"\x03"


def historique_telegram(**shown: Any) -> bytes:
    """Return a frame of the historique mode with peak and off-peak registers; it cannot give."""
    now = Display(**shown)
    check_printable(now, MAX_VA)
    groups = (
        ("ADCO", now.meter_id[-12:]),
        ("OPTARIF", "HC.."),
        ("ISOUSC", "15"),
        ("HCHC", f"{now.import_wh // 2:09d}"),
        ("HCHP", f"{now.import_wh - now.import_wh // 2:09d}"),
        ("PTEC", "HP.."),
        ("IINST", "001"),
        ("IMAX", "002"),
        ("PAPP", f"{now.power_w:05d}"),
        ("HHPHC", "A"),
        ("MOTDETAT", "000000"),
    )
    return b"\x02" + b"".join(_group(" ", *fields) for fields in groups) + b"\x03"


def _group(separator: str, *fields: str) -> bytes:
    text = separator.join(fields)
    counted = text + separator if separator == "\t" else text
    check = (sum(counted.encode()) & 0x3F) + 0x20
    return f"\n{text}{separator}".encode() + bytes([check]) + b"\r"

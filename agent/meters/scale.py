"""From what a meter shows to whole watts and watt-hours, in integers from end to end.

Meters show tenths of a watt-hour, hundredths of a watt or whole kilowatt-hours. In between, a
number is an integer of NANO parts of its unit, anything finer cut off: rounding half up, which is
done once and last, cannot notice that. Digits never decide whether there is a reading: that would
tell something about its value (docs/design.md, Privacy model). What is no number, or no register's,
is refused.
"""

NANO = 10**9
LIMIT = 10**12 * NANO
"""More than any register shows: nine digits of kilowatt-hours."""

_NANO_DIGITS = 9
_MAX_SHIFT = 40
_MAX_DIGITS = 18


def shifted(number: int, exponent: int) -> int | None:
    """Return number·10^exponent in NANO parts, finer ones cut off; None for no register's."""
    if not -_MAX_SHIFT <= exponent <= _NANO_DIGITS:
        return None
    places = exponent + _NANO_DIGITS
    scaled = number * 10**places if places >= 0 else number // 10**-places
    return scaled if -LIMIT < scaled < LIMIT else None


def printed(text: bytes, exponent: int, *, signed: bool = False) -> int | None:
    """Return decimal text times 10^exponent in NANO parts; None for any other form.

    The form is digits, and at most one point with digits on both sides; with `signed` one sign in
    front. No spaces, commas, exponents or separators of thousands (docs/faults.md, SER-13, SER-14).
    """
    negative = signed and text[:1] == b"-"
    digits = text[1:] if signed and text[:1] in (b"-", b"+") else text
    whole, point, part = digits.partition(b".")
    if not whole.isdigit() or (point and not part.isdigit()):
        return None
    if len(whole) > _MAX_DIGITS or len(part) > _MAX_DIGITS:
        return None
    number = int(whole + part)
    return shifted(-number if negative else number, exponent - len(part))


def rounded(scaled: int) -> int:
    """Return NANO parts as a whole number of units, halves upwards."""
    return (2 * scaled + NANO) // (2 * NANO)

"""Whether 32 bytes are an Ed25519 public key that only one private key signs for (RFC 8032).

Libraries verify under any bytes. Under a point of small order a signature made without any key is
valid for every eighth message or more, and two encodings of one point would be two keys with one
owner. Nothing here is secret, so nothing is constant-time. Source: RFC 8032 §5.1.3; docs/faults.md,
PLN-17.
"""

P = 2**255 - 19
_D = -121665 * pow(121666, -1, P) % P
_ROOT = pow(2, (P - 1) // 4, P)  # of −1

Point = tuple[int, int]


def is_sound(public: bytes) -> bool:
    """Say whether a key is a canonical encoding of a point of the curve of no small order."""
    point = _point(public)
    if point is None:
        return False
    for _ in range(3):
        point = _doubled(point)
    return point != (0, 1)


def _point(public: bytes) -> Point | None:
    """Return the point that is encoded, or None where there is none or another encoding of it."""
    number = int.from_bytes(public, "little")
    y, sign = number & ((1 << 255) - 1), number >> 255
    if y >= P:
        return None
    above, below = (y * y - 1) % P, (_D * y * y + 1) % P
    square = above * pow(below, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * _ROOT % P
    if x * x % P != square or (not x and sign):
        return None
    return (P - x if x % 2 != sign else x), y


def _doubled(point: Point) -> Point:
    x, y = point
    product = _D * x * x * y * y % P
    return (
        2 * x * y * pow(1 + product, -1, P) % P,
        (y * y + x * x) * pow(1 - product, -1, P) % P,
    )

"""How long the first 65,536 transactions of two sets are, in the order the authors' code has them.

The bundled sets hold no order, and the noise-free score's θ moves by one or two with it: so the
reference's table of θ is compared on these counts. Sources: BMS-POS and FIMI retail, as in
`studies/data/LICENSES.txt`.
"""

from __future__ import annotations

from collections import Counter

_POS = """
2:10256 3:9610 4:7654 5:6390 6:5081 7:4050 8:3310 9:2940 10:2292 11:1921 12:1641 13:1428 14:1236
15:1029 16:893 17:752 18:685 19:538 20:471 21:445 22:337 23:313 24:286 25:241 26:232 27:185 28:157
29:134 30:118 31:119 32:80 33:82 34:68 35:58 36:57 37:51 38:37 39:36 40:25 41:30 42:37 43:20 44:21
45:15 46:28 47:7 48:12 49:8 50:14 51:11 52:7 53:9 54:7 55:6 56:5 57:5 58:4 59:5 60:3 61:1 62:4
63:6 64:2 65:4 66:3 67:1 68:2 69:2 70:1 71:1 72:1 74:1 75:2 76:1 77:1 78:1 79:3 85:1 86:1 94:1
98:1 106:1 121:1 135:1
"""
_RETAIL = """
1:2249 2:4137 3:5128 4:5371 5:5060 6:4565 7:4285 8:3826 9:3431 10:3075 11:2842 12:2458 13:2124
14:1961 15:1662 16:1559 17:1374 18:1213 19:1087 20:950 21:857 22:733 23:649 24:616 25:506 26:443
27:454 28:351 29:359 30:274 31:225 32:235 33:199 34:172 35:139 36:99 37:110 38:94 39:91 40:77
41:58 42:52 43:52 44:43 45:39 46:33 47:25 48:25 49:25 50:17 51:16 52:18 53:15 54:5 55:11 56:6 57:7
58:8 59:3 60:8 61:6 62:3 63:4 64:2 65:2 66:4 67:3 68:2 71:1 73:1 74:1 76:1
"""


def first_readings(name: str) -> Counter[int]:
    """Return the counts for "pos" or "retail"."""
    pairs = (word.split(":") for word in {"pos": _POS, "retail": _RETAIL}[name].split())
    return Counter({int(length): int(count) for length, count in pairs})

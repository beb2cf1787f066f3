"""What a provider of OpenID Connect says of who signed on: an ID token, checked or refused.

All is checked that OpenID Connect Core 1.0 asks in 3.1.3.7; of several audiences none is believed.
What is refused is never told but by its kind. Source: docs/adr/0038-sign-on.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from aggregator.errors import SignOnError

ALGORITHMS = ("RS256", "PS256", "ES256")  # never none, nor what the client's secret could sign
SKEW_S = 60
MOST_AGE_S = 600
MOST_WORDS = 200


@dataclass(frozen=True, slots=True)
class ExpectedToken:
    """What a token has to say to be believed."""

    issuer: str
    client_id: str
    nonce: str
    now_s: float


def claims_of(token: object, keys: Mapping[str, Any], expected: ExpectedToken) -> dict[str, Any]:
    """Return what a token says; raises SignOnError."""
    try:
        found = jwt.decode(str(token), KeySet.import_key_set(keys), algorithms=[*ALGORITHMS])  # type: ignore[arg-type] # JSON
    except (JoseError, ValueError, TypeError, KeyError, AttributeError) as exc:
        raise SignOnError("token", "its signature is not one that is believed") from exc
    claims = found.claims
    if claims.get("iss") != expected.issuer:
        raise SignOnError("token", "it is another issuer's")
    if claims.get("aud") not in (expected.client_id, [expected.client_id]):
        raise SignOnError("token", "it is for another client")
    if claims.get("nonce") != expected.nonce:
        raise SignOnError("token", "it is of another sign-on")
    _timely(claims, expected.now_s)
    if not isinstance(claims.get("sub"), str) or not claims["sub"]:
        raise SignOnError("token", "it names nobody")
    return claims


def words_of_claim(claims: Mapping[str, Any], claim: str) -> list[str]:
    """Return what roles are asked for by: the values of a claim; none of an unproved address."""
    if claim == "email" and claims.get("email_verified") is not True:
        return []
    found = claims.get(claim)
    values = found if isinstance(found, list) else [found]
    return [one for one in values if isinstance(one, str)][:MOST_WORDS]


def _timely(claims: Mapping[str, Any], now_s: float) -> None:
    """Refuse what is over, or not begun, but for clocks that differ by a minute."""
    try:
        made, ends = float(claims["iat"]), float(claims["exp"])
        begins = float(claims.get("nbf", made))
    except (KeyError, TypeError, ValueError, OverflowError) as exc:
        raise SignOnError("token", "it has no times") from exc
    clocks = "if this stays, the provider's clock and this machine's differ"
    if not now_s < min(ends + SKEW_S, made + MOST_AGE_S):
        raise SignOnError("token", f"it has expired; {clocks}")
    if not max(made, begins) < now_s + SKEW_S:
        raise SignOnError("token", f"it is of the future; {clocks}")

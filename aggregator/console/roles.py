"""Who may see what of the console: one table, which the guard asks before anything is answered.

A role is written as one text, `viewer` or `viewer feeder-1 feeder-2`: in a token's row, and for a
proxy's groups in [console.sign_on]. What a role's line does not name is refused; the operator's
names everything. Source: docs/adr/0037-roles.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from starlette.datastructures import QueryParams

from aggregator.config import SignOnTable
from edge_ldp.device.errors import ParameterError

API = "/api/v1/"
OPERATOR = "operator"
ALWAYS = (  # none tells a figure
    *("/login", "/logout", "/sign-on", "/signed-on"),
    *("/events", f"{API}openapi.json"),
)
OF_GROUPS = ("/stream", *(f"{API}{one}" for one in ("query", "quantiles", "ranges", "load-curve")))
PLANNED = "theta plan streams forecast"
MAY: Mapping[str, tuple[str, ...]] = {
    role: (*pages.split(), *(f"{API}{one}" for one in answers.split()))
    for role, pages, answers in (
        (
            "viewer",
            "/ /stream /groups",
            f"query quantiles ranges sums load-curve groups announced {PLANNED}",
        ),
        (
            "privacy-officer",
            "/privacy /dossier /plans /audit",
            f"dossier audit check plan/message plan/certificate {PLANNED}",
        ),
        ("installer", "/devices /device", "devices device"),
        ("monitor", "/metrics", "status"),
    )
}
ROLES = (OPERATOR, *MAY)


@dataclass(frozen=True, slots=True)
class Viewer:
    """Somebody who looks; with `groups`, at figures of these alone."""

    name: str
    role: str
    groups: tuple[str, ...] = ()

    @property
    def sees_devices(self) -> bool:
        """Whether single devices may be named to him."""
        return self.role == OPERATOR

    def may(self, path: str) -> bool:
        """Say whether a path may be asked for at all."""
        if self.groups:
            return path in OF_GROUPS or path in ALWAYS
        return self.role == OPERATOR or path in ALWAYS or path in MAY[self.role]

    def elsewhere(self, path: str, query: str) -> str | None:
        """Return the page that is shown in the place of one that names none of his groups."""
        if path == "/" and not self.may(path):
            return "/stream" if self.groups else MAY[self.role][0]
        if path != "/stream" or not self.groups or not self._other_groups(query):
            return None
        given = [pair for pair in QueryParams(query).multi_items() if pair[0] != "group"]
        return f"{path}?{QueryParams([*given, ('group', self.groups[0])])}"

    def refusal(self, path: str, query: str) -> str | None:
        """Return why a request is refused, None: it is not."""
        if not self.may(path):
            others = [] if self.groups else [role for role, seen in MAY.items() if path in seen]
            role, who = " ".join([self.role, *self.groups]), " or ".join([OPERATOR, *others])
            return f"the role {role} does not see this: ask somebody who is {who}"
        if self.groups and path in OF_GROUPS and self._other_groups(query):
            return f"group: expected one of {', '.join(self.groups)}"
        return None

    def _other_groups(self, query: str) -> bool:
        asked = QueryParams(query).getlist("group")
        return not asked or not {*asked} <= {*self.groups}


ANYBODY = Viewer("", OPERATOR)
"""Who looks where nobody has to say who he is."""


def viewer_of(name: str, text: object) -> Viewer:
    """Return somebody of a role as it is written; raises ParameterError."""
    role, *groups = str(text).split() or [""]
    if role not in ROLES or (groups and role != "viewer"):
        raise ParameterError("role", f"one of {', '.join(ROLES)}; viewer with groups, if wanted")
    return Viewer(name, role, tuple(groups))


def signed_on(table: SignOnTable, headers: Mapping[str, str], address: str) -> Viewer | str:
    """Return whom the proxy names, or why that is not believed."""
    if address != table.proxy:
        return f"{table.user}: only the proxy of [console.sign_on] says who asks"
    user = headers.get(table.user.lower(), "")
    names = [user]  # a name may have a comma in it; of groups there is a list
    if table.groups:
        names = [one.strip() for one in headers.get(table.groups.lower(), "").split(",")]
    role = role_among(table.roles, names)
    if not user or role is None:
        return "no role in [console.sign_on.roles] is of this user"
    return viewer_of(user, role)


def role_among(roles: Mapping[str, object], names: Iterable[str]) -> str | None:
    """Return the first role that is of one of these names, or of everybody; None: none is."""
    ours = {"*", *names}
    return next((str(text) for of, text in roles.items() if of in ours), None)

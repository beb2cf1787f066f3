"""The console's routes: pages, the API, metrics, events. Nothing here knows how to write."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import Any
from urllib.parse import parse_qs

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.filters import do_mark_safe
from jinja2.runtime import Context
from msgspec.json import decode
from msgspec.structs import asdict
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from aggregator.answers.dossier import DossierAnswer, dossier_parts
from aggregator.answers.fleet.alarms import STEP_S, Lately, alarms, worst_first
from aggregator.answers.fleet.check_view import home_sums_text
from aggregator.answers.fleet.status_answer import FleetSummary
from aggregator.answers.fleet.status_text import beat_ages
from aggregator.answers.units import age_text, clock_text
from aggregator.commands.common import EXIT_CONFIG, EXIT_NOTHING, EXIT_STORE
from aggregator.config import ConsoleTable
from aggregator.console.answering import EXIT_BUSY, Given, Reply
from aggregator.console.desks import Desks
from aggregator.console.guard import COOKIE, Guard
from aggregator.console.metrics import METRICS_TYPE, OPENMETRICS, OPENMETRICS_TYPE, metrics_text
from aggregator.console.pages import PAGES as MADE_OF
from aggregator.console.pages import OverviewPage, StreamPage
from aggregator.console.pulse import Pulse
from aggregator.console.questions import FORMATS, QUESTIONS, openapi
from aggregator.console.roles import ANYBODY, Viewer
from aggregator.console.signing_on import SignOn
from aggregator.console.tables import arrow_of, csv_of
from aggregator.errors import SignOnError
from edge_ldp.extras import pip_install
from edge_ldp.service.zones import zone_of

STATIC = Path(__file__).parent / "static"
STATUS = {EXIT_CONFIG: 400, EXIT_STORE: 503, EXIT_NOTHING: 404, EXIT_BUSY: 503}
NOT_SIGNED_ON = {"provider": 503, "state": 400}  # anything else: 403
MOST_BODY = 4096
LEAST_PACKED = 2048
MOST_PAGES = 64
PAGES = {
    "/": "overview",
    **{f"/{name}": name for name in ("stream", "devices", "groups", "privacy", "plans", "audit")},
    "/device": "device",
    "/dossier": "dossier",
}
MONTH_S = 30 * 86_400


class Console:
    """What is served, of one store; `file` is the configuration's name."""

    def __init__(self, file: str, table: ConsoleTable, desks: Desks) -> None:
        self._file = file
        self._table = table
        self._desks = desks
        self._has_tokens = table.tokens_file is not None
        self._sign_on = None if table.oidc is None else SignOn(table.oidc, desks)
        self._pulse = Pulse(desks)
        self._lately = Lately()
        self._made_of: dict[tuple[str, Given, Viewer], tuple[Reply, bytes]] = {}
        self._pages = Environment(
            loader=PackageLoader("aggregator.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._pages.filters.update(age=age_text, ages=beat_ages, time=_time)
        self._pages.filters.update(
            number=_number, sentence=_sentence, sh=quote, home_sums=home_sums_text
        )
        signs_on = self._sign_on is not None
        told = {"config": quote(file), "has_tokens": self._has_tokens, "signs_on": signs_on}
        price, _, currency = (table.price or "").partition(" ")
        self._pages.globals |= {**told, "price": price, "currency": currency}

    def app(self) -> ASGIApp:
        """Return it as an application."""
        routes = [
            *(Route(path, self._page) for path in PAGES),
            Route("/api/v1/openapi.json", self._openapi),
            Route("/api/v1/{name:path}", self._answer),
            Route("/metrics", self._metrics),
            Route("/events", self._events),
            Route("/login", self._login, methods=["GET", "POST"]),
            Route("/logout", self._logout, methods=["POST"]),
            *(Route(f"/{name}", self._signed, name=name) for name in ("sign-on", "signed-on")),
            Mount("/static", _Assets(directory=STATIC)),
        ]
        served = Starlette(
            routes=routes,
            middleware=[Middleware(GZipMiddleware, minimum_size=LEAST_PACKED)],
            exception_handlers={HTTPException: self._not_there},
            lifespan=self._living,
        )
        served.router.redirect_slashes = False
        owner = self._desks.owner if self._has_tokens else None
        session = None if self._sign_on is None else self._sign_on.viewer
        return Guard(served, self._table, owner, session, self._refused)

    def end(self) -> None:
        """Let those who listen go, so that the server can end."""
        self._desks.end()
        self._pulse.end()

    @asynccontextmanager
    async def _living(self, _app: Starlette) -> AsyncIterator[None]:
        await self._desks.start()
        watching = asyncio.create_task(self._watch(), name="watch")
        yield
        watching.cancel()
        await self._pulse.close()
        self._desks.close()

    async def _page(self, request: Request) -> Response:
        name = PAGES[request.url.path]
        given, viewer = tuple(request.query_params.multi_items()), request.scope["viewer"]
        return _small(request, await self._made(name, given, replace(viewer, name="")))

    async def _made(self, name: str, given: Given, viewer: Viewer) -> Response:
        made_of = "privacy" if name == "dossier" else name
        reply = await self._desks.ask("make", made_of, given)
        if reply.code:
            return self._html(
                "trouble", {"reply": reply, "given": dict(given)}, STATUS[reply.code], viewer
            )
        of, body = self._made_of.get((name, given, viewer), (None, b""))
        if of is reply:  # the same answer makes the same page
            return HTMLResponse(body)
        page = decode(reply.out, type=MADE_OF[made_of][1])
        found: dict[str, object] = {**asdict(page), "given": dict(given)}
        if isinstance(page, DossierAnswer):
            found["parts"] = dossier_parts(page)
        elif isinstance(page, OverviewPage):
            lately = self._lately.note(page)
            marked = page.marked_one if viewer.sees_devices else None
            found["alarms"] = worst_first(alarms(page, lately, quote(self._file), marked))
        elif isinstance(page, StreamPage):
            found["groups"] = [*viewer.groups] or page.groups
            found["curated"] = page.curated and viewer.sees_devices
        made = self._html(name, found, viewer=viewer)
        if len(self._made_of) >= MOST_PAGES:
            self._made_of.clear()
        self._made_of[name, given, viewer] = (reply, bytes(made.body))
        return made

    def _html(
        self,
        name: str,
        found: Mapping[str, object],
        status: int = 200,
        viewer: Viewer = ANYBODY,
    ) -> Response:
        template = self._pages.get_template(f"{name}.html")
        text = template.render(page=name, viewer=viewer, **found)
        return HTMLResponse(text, status)

    async def _answer(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in QUESTIONS:
            return _problem(404, f"expected one of {', '.join(QUESTIONS)}")
        given = tuple(request.query_params.multi_items())
        form = request.query_params.get("format", "json")
        if form not in FORMATS or not (QUESTIONS[name].rows or form == "json"):
            return _problem(400, f"format: expected one of {', '.join(FORMATS)}, of what has rows")
        reply = await self._desks.ask("ask", name, tuple(p for p in given if p[0] != "format"))
        if form == "json":
            return _small(request, _as_printed(reply))
        return as_table(reply, QUESTIONS[name].rows, form)

    async def _openapi(self, _request: Request) -> Response:
        return JSONResponse(openapi())

    async def _metrics(self, request: Request) -> Response:
        reply = await self._desks.ask("make", "summary")
        console = {
            "answers": float(self._desks.answered),
            "seconds": self._desks.worked_s,
            "viewers": float(self._pulse.viewers),
        }
        found = None if reply.code else decode(reply.out, type=FleetSummary)
        rings = () if found is None else alarms(found, self._lately.note(found), "")
        raised = {one["name"]: one["severity"] for one in rings}
        is_open = OPENMETRICS in request.headers.get("accept", "")
        text = metrics_text(found, raised, console, is_open=is_open)
        kind = OPENMETRICS_TYPE if is_open else METRICS_TYPE
        return Response(text, media_type=kind, headers={"vary": "Accept"})

    async def _watch(self) -> None:
        """Note what is counted up, whoever looks."""
        while True:
            reply = await self._desks.ask("make", "summary")
            if not reply.code:
                self._lately.note(decode(reply.out, type=FleetSummary))
            await asyncio.sleep(STEP_S)

    async def _events(self, _request: Request) -> Response:
        if self._pulse.is_full:
            return _problem(503, "too many viewers")
        return StreamingResponse(self._pulse.listen(), media_type="text/event-stream")

    async def _login(self, request: Request) -> Response:
        if not self._has_tokens and self._sign_on is None:
            return RedirectResponse("/", 303)
        if request.method != "POST" or not self._has_tokens:
            return self._html("login", {"trouble": ""})
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MOST_BODY:
                return _problem(413, "too long")
        token = parse_qs(body.decode(errors="replace")).get("token", [""])[0].strip()
        if not (await self._desks.owner(token)).out:
            wrong = "Nobody has this token: it may have been revoked."
            return self._html("login", {"trouble": wrong}, 401)
        found = RedirectResponse("/", 303)
        found.set_cookie(
            COOKIE,
            token,
            max_age=MONTH_S,
            httponly=True,
            samesite="strict",
            secure=self._table.cert_file is not None,
        )
        return found

    async def _logout(self, request: Request) -> Response:
        found: Response = RedirectResponse("/login", 303)
        if self._sign_on is not None:
            if place := await self._sign_on.leave(request):
                found = self._html("login", {"trouble": "", "leaves": place})
                # no redirect: the policy lets a form lead nowhere else
                found.headers["refresh"] = f"0; url={place}"
            self._sign_on.forget(found)
        found.delete_cookie(COOKIE)
        return found

    async def _signed(self, request: Request) -> Response:
        """Send a browser to the provider, or take it back from there."""
        if self._sign_on is None:
            return RedirectResponse("/", 303)
        begins = request.url.path == "/sign-on"
        try:
            return await (self._sign_on.begin if begins else self._sign_on.end)(request)
        except SignOnError as exc:
            trouble = f"Not signed on. {exc.kind.capitalize()}: {exc.reason}."
            return self._html("login", {"trouble": trouble}, NOT_SIGNED_ON.get(exc.kind, 403))

    def _refused(self, viewer: Viewer, reason: str) -> Response:
        return self._html("missing", {"reason": reason}, 403, viewer)

    async def _not_there(self, request: Request, exc: Exception) -> Response:
        assert isinstance(exc, HTTPException)  # noqa: S101 (it is the handler of these)
        if request.url.path.startswith("/api/"):
            return _problem(exc.status_code, exc.detail)
        found = {"reason": exc.detail}
        return self._html("missing", found, exc.status_code, request.scope.get("viewer", ANYBODY))


class _Assets(StaticFiles):
    """What a browser may keep for an hour."""

    def file_response(self, *args: Any, **named: Any) -> Response:
        found = super().file_response(*args, **named)
        found.headers["cache-control"] = "max-age=3600"
        return found


def _small(request: Request, found: Response) -> Response:
    """Return an answer compressed, if it is worth it: once, however many ask for it."""
    body = bytes(found.body)
    if len(body) < LEAST_PACKED or "gzip" not in request.headers.get("accept-encoding", ""):
        return found
    found.body = _packed(body)
    found.headers["content-length"] = str(len(found.body))
    found.headers["content-encoding"] = "gzip"
    found.headers["vary"] = "Accept-Encoding"
    return found


@lru_cache(maxsize=64)
def _packed(body: bytes) -> bytes:
    return gzip.compress(body)


def _as_printed(reply: Reply) -> Response:
    """Return what a command printed as it is; its exit code stands in a header."""
    if not reply.out:
        return _problem(STATUS.get(reply.code, 500), reply.err)
    return Response(reply.out, headers=_exit_code(reply), media_type="application/json")


def as_table(reply: Reply, rows: tuple[str, ...], form: str) -> Response:
    """Return the rows of what a command printed."""
    if not reply.out:
        return _as_printed(reply)
    view = json.loads(reply.out)
    try:
        parts = (view, rows)
        made = csv_of(*parts) if form == "csv" else arrow_of(*parts, as_file=form == "parquet")
    except ModuleNotFoundError:
        missing = pip_install("edge-ldp-aggregator[archive]")
        return _problem(400, f"format: {form} needs {missing}")
    return Response(made, headers=_exit_code(reply), media_type=FORMATS[form])


def _exit_code(reply: Reply) -> dict[str, str]:
    return {"edge-ldp-exit-code": str(reply.code)}


def _problem(status: int, reason: str) -> Response:
    return JSONResponse({"error": reason}, status)


@pass_context
def _time(context: Context, seconds: int | None) -> str:
    """Return a time in the page's zone, with that of UTC for who points at it."""
    shown = clock_text(seconds, zone_of(context["zone"]))
    return do_mark_safe(f'<time title="{clock_text(seconds)} UTC">{shown}</time>')


def _sentence(text: str) -> str:
    first, _, _ = text.partition(" ")
    begin = text if first.endswith(":") else text[:1].upper() + text[1:]  # a stream's name stays
    return begin if text.endswith("?") else f"{begin}."


def _number(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"

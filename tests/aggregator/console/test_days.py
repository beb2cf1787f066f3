"""A day of each role in a browser: what it finds, what it is refused, whom it is told to ask."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests import needs
from tests.aggregator.console.conftest import PATIENCE_MS
from tests.aggregator.console.small_fleet import (
    Fleet,
    add_looks,
    add_plans,
    add_reports,
    make_fleet,
    serving,
)
from tests.aggregator.console.test_pages import looking, serious
from tests.integration.conftest import free_port

SCRIPT = Path(__file__).with_name("oidc_provider.mjs")
LIBRARY = Path(__file__).parents[3] / ".node/node_modules/oidc-provider/lib/index.js"
CONSOLE = """per_minute = 1000000
tokens_file = "{place}/tokens"
[console.oidc]
issuer = "{issuer}"
client_id = "edge-ldp"
secret_file = "{place}/secret"
address = "{address}"
roles = {{ grid = "operator" }}
"""
# what each role finds in the menu, and one page that it is refused, with who else sees it
DAYS = {
    "viewer": ("Overview Stream Groups", "/devices", "operator or installer"),
    "installer": ("Devices", "/stream", "operator or viewer"),
    "privacy-officer": ("Privacy Plans Changes", "/devices", "operator or installer"),
}


@contextmanager
def provider(address: str) -> Iterator[str]:
    """Run npm's oidc-provider; give its issuer."""
    if not LIBRARY.exists():
        needs.missing("oidc-provider in .node")
    words = [needs.program("node"), str(SCRIPT), str(LIBRARY)]
    words += [f"{address}/{path}" for path in ("signed-on", "login")]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as one:
        assert one.stdout is not None
        try:
            yield one.stdout.readline().strip()
        finally:
            one.terminate()


def log_in(page: Page, token: str) -> None:
    page.goto("/devices")
    for tried in ("ldp_wrong", token):
        page.fill("[name=token]", tried)
        page.get_by_role("button", name="Log in").click()
        if tried != token:
            assert "Nobody has this token" in page.get_by_role("alert").inner_text()
    expect(page.locator("#link")).to_contain_text("live", timeout=PATIENCE_MS)


def sign_on(page: Page, name: str) -> None:
    page.goto("/devices")
    page.get_by_role("link", name="Sign on").click()
    page.fill("[name=name]", name)
    page.get_by_role("button", name="Continue").click()


def menu(page: Page) -> str:
    return " ".join(page.get_by_role("navigation").get_by_role("link").all_inner_texts())


def a_day(browser: Browser, address: str, role: str, token: str) -> None:
    """Let somebody with a role look at all that he may, and at what he may not."""
    seen, refused, who = DAYS[role]
    with looking(browser, address, loses=True) as page:
        log_in(page, token)
        assert page.evaluate("document.cookie") == ""  # no script may read it
        assert menu(page) == seen
        for name in seen.split():
            page.get_by_role("navigation").get_by_role("link", name=name).click()
            expect(page.locator("#link")).to_contain_text("live", timeout=PATIENCE_MS)
        told = page.goto(refused)
        assert told is not None
        assert told.status == 403
        words = f"The role {role} does not see this: ask somebody who is {who}."
        assert page.get_by_role("heading").inner_text() == words
        assert serious(page) == []
        page.get_by_role("link", name="Back to the first page").click()
        assert menu(page) == seen
        page.get_by_role("button", name="Log out").click()
        assert page.goto("/") is not None
        assert page.url.endswith("/login")


def an_operators_day(browser: Browser, address: str, issuer: str, fleet: Fleet) -> None:
    """Sign on at the provider, erase a home as somebody wished, see it gone, and sign off."""
    with looking(browser, address, issuer, loses=True) as page:
        begun: list[str] = []
        page.on("request", lambda one: begun.append(one.url))
        page.goto("/login")
        assert serious(page) == []
        page.get_by_role("link", name="Sign on").click()
        kept = page.context.cookies(address)
        page.fill("[name=name]", "grid")
        page.get_by_role("button", name="Continue").click()
        expect(page.locator("#link")).to_contain_text("live", timeout=PATIENCE_MS)
        assert len(menu(page).split()) == 7
        assert page.evaluate("document.cookie") == ""
        verdict = page.locator('[data-figure="verdict"]')
        assert "ServiceDown, critical" in verdict.inner_text()
        page.goto("/devices")
        home = page.locator("#devices tr", has_text="north-0003")
        expect(home).to_contain_text("online")
        expect(page.locator("#link")).to_contain_text("live", timeout=PATIENCE_MS)
        ((code, _),) = fleet.ask(
            ["aggregator", "devices", "erase", "-c", str(fleet.file), "--yes", "north-0003"]
        )
        assert code == 0
        # only its name is left, barred; nobody loads the page again
        expect(home).not_to_contain_text("online", timeout=PATIENCE_MS)
        page.goto("/audit")
        expect(page.locator("main")).to_contain_text("devices erase")
        page.get_by_role("button", name="Log out").click()
        page.get_by_role("button", name="Sign me out").click()  # the provider asks
        page.wait_for_url(f"{address}/login")
        page.get_by_role("link", name="Sign on").click()
        assert page.locator("[name=name]").is_visible()  # whom it knew nothing of any more
        (back,) = [one for one in begun if "/signed-on?" in one]
        page.context.add_cookies(kept)  # type: ignore[arg-type] # as they were given
        page.goto(back)  # whoever finds it in a history, in this very browser
        assert "Code: it was used before" in page.get_by_role("alert").inner_text()
    with looking(browser, address, issuer, loses=True) as page:
        sign_on(page, "mallory")
        told = page.get_by_role("alert").inner_text()
        assert told.endswith("nothing in [console.oidc.roles] is of you: ask the operator.")


@pytest.mark.slow
def test_AGG_47_AGG_48_a_day_of_each_role(browser: Browser, tmp_path: Path) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    (tmp_path / "secret").write_text("of-the-console")
    (tmp_path / "secret").chmod(0o600)
    with provider(address) as issuer:
        fleet = make_fleet(
            tmp_path, console=CONSOLE.format(place=tmp_path, issuer=issuer, address=address)
        )
        add_reports(fleet, add_plans(fleet, 1), {"north": 12}, 1)
        add_looks(fleet, (900.0, 700.0))
        made = ["console", "tokens", "make", "-c", str(fleet.file)]
        told = fleet.ask(*([*made, role, "--role", role] for role in DAYS))
        with serving(fleet, int(address.rpartition(":")[2])):
            an_operators_day(browser, address, issuer, fleet)
            for role, (_, token) in zip(DAYS, told, strict=True):
                a_day(browser, address, role, token.strip())

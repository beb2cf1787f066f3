"""One small fleet and its console for all tests that only look."""

from collections.abc import Iterator

import pytest
from httpx._config import DEFAULT_TIMEOUT_CONFIG
from playwright.sync_api import Browser, sync_playwright

from tests import needs
from tests.aggregator.console.small_fleet import (
    Fleet,
    add_looks,
    add_many,
    add_plans,
    add_reports,
    make_fleet,
    serving,
)

DEVICES = 100_000
PATIENCE_MS = 60_000  # a machine may be slow; nothing is about how soon but where it says so


@pytest.fixture(scope="session", autouse=True)
def _patience() -> None:
    """Give a console more than httpx's 5 s for an answer: other tests are at work, too."""
    for wait in ("connect", "read", "write", "pool"):
        setattr(DEFAULT_TIMEOUT_CONFIG, wait, 60.0)


@pytest.fixture(scope="module", autouse=True)
def _no_roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have a client look for roots where none is: it reads them for each `httpx.get`, also by http.

    A test that is about a certificate says itself whom it trusts.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("roots")))
        yield


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """Give a fleet of two feeders, one of which has too few homes for figures."""
    lines = 'per_minute = 1000000\nprice = "0.30 EUR"'
    made = make_fleet(tmp_path_factory.mktemp("fleet"), console=lines)
    add_reports(made, add_plans(made, 3), {"north": 20, "south": 6}, 3)
    add_looks(made, (900.0, 700.0, 650.0, 600.0))
    return made


@pytest.fixture(scope="session")
def console(fleet: Fleet) -> Iterator[str]:
    with serving(fleet) as (address, _):
        yield address


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """Give a fleet of 100,000 devices, each of which reported twice."""
    made = make_fleet(tmp_path_factory.mktemp("large"), least=1, console="per_minute = 1000000")
    add_many(made, add_plans(made, 1), DEVICES)
    return made


@pytest.fixture(scope="module")  # its loop runs in this thread: no other module's may meet it
def browser() -> Iterator[Browser]:
    with sync_playwright() as play:
        made = play.chromium.launch(executable_path=needs.chromium(), timeout=PATIENCE_MS)
        yield made
        made.close()

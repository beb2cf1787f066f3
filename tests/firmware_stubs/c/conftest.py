"""The runner, built once for each place it runs in."""

from pathlib import Path

import pytest

from tests.firmware_stubs.c.builds import PLACES, Runner


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("c-kernel")


# what the host tells alone, it tells under the sanitizers too
@pytest.fixture(
    scope="session",
    params=[pytest.param(at, marks=[pytest.mark.slow] * (at == "host")) for at in PLACES],
)
def run(request: pytest.FixtureRequest, build: Path) -> Runner:
    """Return the runner on the host, under the sanitizers, and on the emulated Cortex-M3."""
    return Runner(request.param, build)


@pytest.fixture(scope="session")
def host(build: Path) -> Runner:
    """Return the runner on the host."""
    return Runner("host", build)

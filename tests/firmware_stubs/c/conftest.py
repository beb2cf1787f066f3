"""The runner, built once for each place it runs in."""

import os
from pathlib import Path

import pytest

from tests.firmware_stubs.c.builds import PLACES, Runner


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where it is built: one place for all workers of a run."""
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "c-kernel"
    place.mkdir(exist_ok=True)
    return place


# what the host tells alone, it tells under the sanitizers too
@pytest.fixture(
    scope="session",
    params=[pytest.param(at, marks=[pytest.mark.slow] * (at == "host")) for at in PLACES],
)
def run(
    request: pytest.FixtureRequest, build: Path, tmp_path_factory: pytest.TempPathFactory
) -> Runner:
    """Return the runner on the host, under the sanitizers, and on the emulated Cortex-M3."""
    return Runner(request.param, build, tmp_path_factory.mktemp("scripts"))


@pytest.fixture(scope="session")
def host(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    return Runner("host", build, tmp_path_factory.mktemp("scripts"))

"""A clean Debian for ARM: the agent is installed without a compiler, and passes its tests there."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.emulated.machines import ROOT
from tests.needs import missing

pytestmark = [pytest.mark.slow, pytest.mark.integration, pytest.mark.timeout(4 * 3600)]
CANNOT = 2  # in_root.sh's exit code where this machine lacks what it needs
INSTALL = (
    "! command -v cc",
    "python3 -m venv /opt/agent && /opt/agent/bin/pip install -q -c constraints.txt '.[agent]'",
    "/opt/agent/bin/edge-ldp agent --help",
)
# Cut into telegrams by NumPy, where a test does that; what needs a broker, a database's driver or
# a parser to compare with is not about the processor.
TRY = (
    "apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-numpy",
    """python3 -m venv --system-site-packages /opt/tests &&
    /opt/tests/bin/pip install -q -c constraints.txt '.[agent]' \
        hypothesis pytest pytest-asyncio pytest-timeout""",
    """CI=1 /opt/tests/bin/python -m pytest -q -p no:cacheprovider --timeout 3600 \
        -m 'not slow and not integration' --ignore tests/agent/meters/test_dsmr_oracle.py \
        --ignore tests/agent/shell/test_uplink.py --ignore tests/agent/shell/test_signed_plans.py \
        tests/agent tests/edge_ldp/test_ledger.py tests/edge_ldp/test_plan.py \
        tests/edge_ldp/test_typed_table.py tests/edge_ldp/test_utc.py""",
)


@pytest.mark.parametrize(
    ("suite", "arch"), [("bookworm", "armhf"), ("trixie", "armhf"), ("trixie", "arm64")]
)
def test_the_agent_installs_without_a_compiler_and_passes_its_tests(suite: str, arch: str) -> None:
    done = subprocess.run(
        ["sh", str(ROOT / "tools" / "in_root.sh"), suite, arch, *INSTALL, *TRY],
        check=False,
        capture_output=True,
        env=os.environ,
        text=True,
    )
    if done.returncode == CANNOT and done.stderr.startswith("in_root:"):
        missing(f"clean root for {arch} ({done.stderr.strip()})", "see there")
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]

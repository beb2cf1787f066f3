"""A clean Debian, a fresh clone, nothing prepared: README's commands, and the service."""

import os
import platform
import shlex
import subprocess
from pathlib import Path

import pytest

from tests import needs

IN_ROOT = Path(__file__).parents[2] / "tools" / "in_root.sh"
DEBIAN = ["bookworm", "trixie"]
# installed, removed, installed again, purged, installed again: what is there each time
SERVICE = """set -ex
unit=/etc/systemd/system/edge-ldp-agent.service config=/etc/edge-ldp/agent.toml
state=/var/lib/edge-ldp/home-1.db
sh packaging/install.sh agent
test -e $unit
test $(stat -c %a $config) = 640
test $(stat -c %a /var/lib/edge-ldp) = 700
/opt/edge-ldp/bin/python -c 'import sys
from pathlib import Path
from agent.state.journal import Journal
import cryptography
Journal(Path(sys.argv[1])).close()' $state
echo "# mine" >> $config
sh packaging/install.sh agent --remove | grep kept
test ! -e $unit
test -e $state
grep "# mine" $config
sh packaging/install.sh agent
test -e $state
grep "# mine" $config
sh packaging/install.sh agent --purge | grep "silence of one window"
test ! -e /var/lib/edge-ldp
test ! -e $config
test ! -e $unit
test -z "$(getent passwd edge-ldp)"
sh packaging/install.sh agent
: what was purged does not come back: PRV-12 spends a window
test ! -e $state
: what --with left: an upgrade needs not be told again
echo oidc,postgres > /opt/edge-ldp/aggregator.extras
sh packaging/install.sh aggregator | grep "enable --now edge-ldp-console"
/opt/edge-ldp/bin/python -c "import aggregator.console.provider, psycopg"
/opt/edge-ldp/bin/edge-ldp console --help | grep "it only reads"
test -e /etc/systemd/system/edge-ldp-console.service
sh packaging/install.sh aggregator --remove
test ! -e /etc/systemd/system/edge-ldp-console.service
"""


def play(*arguments: str) -> "subprocess.CompletedProcess[str]":
    if os.geteuid() != 0:
        pytest.skip("only root may make and enter a root")
    needs.program("debootstrap")
    return subprocess.run(
        ["sh", str(IN_ROOT), *arguments],
        env={**os.environ, "CI": "true"},  # a tool that was not installed fails
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("suite", DEBIAN)
def test_both_commands_of_readme_pass_on_a_clean_debian(suite: str) -> None:
    done = play(suite)
    assert done.returncode == 0, done.stdout[-8000:]
    assert "in_root: make demo: passed" in done.stdout
    assert "in_root: make test: passed" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_command_that_fails_is_told_and_the_next_is_played_all_the_same() -> None:
    done = play(DEBIAN[0], "", "exit 3", "test -e README.md")
    assert done.returncode == 3
    assert "in_root: exit 3: FAILED (3)" in done.stdout
    assert "in_root: test -e README.md: passed" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("suite", DEBIAN)
def test_removed_purged_and_reinstalled_the_state_stays_goes_and_spends_a_window_SVC_06_PRV_12(
    suite: str,
) -> None:
    done = play(suite, "", f"sh -c {shlex.quote(SERVICE)}")
    assert done.returncode == 0, done.stdout[-8000:]


# a machine without a network, one that is given a wheel, a card: from wheels that another made
WHEELS = """set -ex
python3 -m venv /tmp/other
/tmp/other/bin/pip wheel -q -c constraints.txt -w /tmp/wheels . './agent[sign]'
sh packaging/install.sh agent --from /tmp/wheels
/opt/edge-ldp/bin/python -c 'import cryptography'
edge-ldp agent check -c /etc/edge-ldp/agent.toml
sh packaging/install.sh agent --purge
sh packaging/install.sh agent --from /tmp/wheels/edge_ldp_agent-*.whl
edge-ldp agent check -c /etc/edge-ldp/agent.toml
edge-ldp aggregator --help && exit 1
edge-ldp aggregator --help 2>&1 | grep 'comes with edge-ldp-aggregator'
: an image that is being built, from either
sh packaging/install.sh agent --purge
mkdir -p /tmp/card/tmp
tar -C / --one-file-system --exclude ./tmp --exclude ./root -cf - . | tar -C /tmp/card -xf -
wants=/tmp/card/etc/systemd/system/multi-user.target.wants
for from in /tmp/wheels /tmp/wheels/edge_ldp_agent-*.whl .; do
    sh packaging/install.sh agent --root /tmp/card --image --from $from
    chroot /tmp/card edge-ldp agent check -c /etc/edge-ldp/agent.toml
    test -e $wants/edge-ldp-agent-first.service
    sh packaging/install.sh agent --root /tmp/card --purge
    test ! -L $wants/edge-ldp-agent-first.service
done
test -z "$(ls /tmp/card/tmp)"
test ! -e /opt/edge-ldp
"""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_installer_takes_wheels_in_a_directory_or_one_also_for_a_card() -> None:
    done = play(DEBIAN[-1], "", f"sh -c {shlex.quote(WHEELS)}")
    assert done.returncode == 0, done.stdout[-8000:]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_AGT_37_an_image_starts_takes_its_invitation_and_tells_how_it_is() -> None:
    if platform.machine() != "x86_64":
        pytest.skip("only a PC is started")
    done = play(DEBIAN[-1], "", "sh tools/boot_image.sh")
    assert done.returncode == 0, done.stdout[-8000:]
    assert "boot_image: passed" in done.stdout


# The oldest system of 32 bits, whose time ends in 2038, its successor, and 64 bits. NumPy cuts
# streams for tests. Apart stay what needs a broker, a database's driver, another parser or a
# compiler; what asks when a process began, as an emulator makes that up for its own; and what says
# nothing of the processor: bulk, each single bit, long days, what an interpreter imports. Of the
# properties ten examples each are tried: emulated, all of it took an hour.
ARM = [("bookworm", "armhf"), ("trixie", "armhf"), ("trixie", "arm64")]
APART = (
    "ended_while_nobody_looked or megabytes_without or never_ends or every_flipped_bit or"
    " no_damaged_byte or thousand_ways or stuck_meter or repeats_one_telegram or ten_telegrams or"
    " imports_its_own or loads_its_library or the_manager_hears or well_under_a_millisecond"
)
INSTALL = (
    "! command -v cc",
    "python3 -m venv /opt/agent && /opt/agent/bin/pip install -q -c constraints.txt . ./agent",
    "/opt/agent/bin/edge-ldp agent check -c config/agent.toml",
)
TRY = (
    "apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-numpy",
    """python3 -m venv --system-site-packages /opt/tests &&
    /opt/tests/bin/pip install -q -c constraints.txt . ./agent \\
        hypothesis pytest pytest-asyncio pytest-timeout""",
    f"""/opt/tests/bin/python -m pytest -q -p no:cacheprovider --timeout 3600 \\
        --hypothesis-profile few -m 'not slow and not integration' -k 'not ({APART})' \\
        --ignore tests/agent/meters/test_dsmr_oracle.py \\
        --ignore tests/agent/link/test_uplink.py --ignore tests/agent/state/test_signed_plans.py \\
        --ignore tests/agent/state/test_power_cut.py --durations 30 \\
        tests/agent tests/edge_ldp/protocol/test_ledger.py tests/edge_ldp/protocol/test_plan.py \\
        tests/edge_ldp/service/test_typed_table.py tests/edge_ldp/protocol/test_utc.py""",
)


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize(("suite", "arch"), ARM)
def test_on_arm_the_agent_needs_no_compiler_and_passes_its_tests(suite: str, arch: str) -> None:
    done = play(suite, arch, *INSTALL, *TRY)
    if "do not run here: " in done.stdout:  # no emulator, or the kernel was not told of it
        needs.missing(f"machine for {arch}", done.stdout.partition("do not run here: ")[2].strip())
    assert done.returncode == 0, done.stdout[-8000:]

"""docs/first-hour-operator.md, played as it stands: from a clean Debian to kWh for 50 homes.

A rehearsal is played by a user who may `sudo` and has the paths of any user, the real homes by root
in the same clone; there a device takes its invitation, as docs/first-hour-household.md has it. Only
the rehearsal's port is another than on the page, since others may play beside this; the real ones
have a network of their own. A root is Debian's least system: `sudo` and `ip` are put there first,
as an installer does.
"""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.integration.conftest import free_port
from tests.integration.test_first_hour_household import with_clock
from tests.packaging.test_clean_root import DEBIAN, play

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "first-hour-operator.md"
PORT = "18831"
TEN_MINUTES_S = 600
INSTALLED = """set -e
apt-get update -qq && apt-get install -y -qq --no-install-recommends iproute2 sudo
useradd --create-home visitor
echo "visitor ALL=(ALL) NOPASSWD: ALL" > /etc/sudoers.d/visitor
git clone -q . ~visitor/edge-ldp && chown -R visitor: ~visitor/edge-ldp
"""
AS_VISITOR = """cd ~visitor/edge-ldp && exec runuser -u visitor -- \\
    env HOME=/home/visitor PATH=/usr/local/bin:/usr/bin:/bin:/usr/games sh -c {}"""
HOMES = """set -e
ip link set lo up
echo "127.0.0.1 broker.example.net" >> /etc/hosts
cd ~visitor/edge-ldp && . .venv/bin/activate
{lines}
edge-ldp simulate meter --link /tmp/meter --data constant:378 --step 1 &
until test -e /tmp/meter; do sleep 0.2; done
{setup}
"""
INVITATION = "/srv/fleet/invitations/home-0001.invitation"
SETUP = f"edge-ldp agent setup --invitation {INVITATION} --port /tmp/meter"


def commands_of(page: str, heading: str) -> list[str]:
    """Return the commands of the first block under a heading."""
    block = re.search(rf"## {heading}\n((?!\n## ).)*?```sh\n(?P<lines>.*?)```", page, re.DOTALL)
    assert block
    return block["lines"].splitlines()


def test_the_page_has_at_most_eight_commands() -> None:
    page = PAGE.read_text()
    assert len(commands_of(page, "A rehearsal")) <= 8
    assert len(commands_of(page, "Real homes")) <= 8


@pytest.mark.parametrize("suite", DEBIAN)
def test_in_a_clean_debian_its_commands_lead_to_energy_with_an_interval_within_ten_minutes(
    suite: str,
) -> None:
    page = PAGE.read_text()
    lines = commands_of(page, "A rehearsal")
    script = "\n".join(["set -e", *lines, "echo", f"{lines[-1]} --json"])
    script = script.replace(PORT, str(free_port()))
    homes = HOMES.format(
        lines="\n".join(commands_of(page, "Real homes")), setup=with_clock([SETUP])[0]
    )
    done = play(
        suite,
        "",
        f"sh -c {shlex.quote(INSTALLED)}",
        AS_VISITOR.format(shlex.quote(script)),
        f"unshare --net sh -c {shlex.quote(homes)}",
    )
    said = done.stdout
    assert done.returncode == 0, said[-8000:]
    found = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    whole = found["whole"]
    end = r"end: days (\d+), .*sums (\d+), created (\d+), confirmed (\d+), pending 0"
    told = re.search(end, said)
    assert told
    days, sums, created, confirmed = map(int, told.groups())
    assert days >= 27  # of the first day what ended before there was a plan is left out
    counted = found["counts"]["counted"] + 50 * sums  # of which each home made one a day
    assert (counted, found["counts"]["rejected"]) == (created, 0)
    assert confirmed == created > 50 * 27 * 96
    assert (whole["devices"], whole["missing"]) == (50, 0)
    assert 0 < whole["energy_kwh_low"] < whole["energy_kwh_high"]
    assert whole["energy_kwh"] > 0  # unbiased: it may lie outside (`edge_ldp.sums.means`)
    assert "energy kWh" in said
    assert "2 devices invited: home-0001, home-0002" in said
    assert "tell the broker" not in said  # it was told
    assert "ok      plan power" in said
    assert "next: edge-ldp agent run -c agent.toml" in said
    spent_s = int(re.findall(r"passed, (\d+) s", said)[1])
    sys.stdout.write(f"{suite}: {spent_s} s\n")
    assert spent_s < TEN_MINUTES_S

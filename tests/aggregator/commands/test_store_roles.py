"""PostgreSQL: each login runs its commands, and is refused all others, in words."""

import io
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from edge_ldp.cli import main
from tests import needs
from tests.aggregator.console.small_fleet import Fleet, add_plans, add_reports, make_fleet
from tests.postgres import PostgresServer
from tests.processes import run_told

CONFIG = Path(__file__).parents[3] / "config"
# what each may; whatever else stands here, it is refused
MAY = {
    "installer": """devices list
devices groups
devices enrol home-1
devices group --to feeder-2 north-0000
devices invite home-2
devices expire
devices revoke north-0000
devices reinstate north-0000""",
    "privacy-officer": """devices list
devices show --device north-0002
devices groups
audit
plan show
devices expire
devices revoke north-0000
devices reinstate north-0000
devices quarantine north-0002
plan hold
plan release
streams retire power
streams reinstate power
devices erase --yes north-0001""",
    "reader": """devices list
devices show --device north-0002
devices groups
audit
plan show
query
status
completeness
load-curve""",
}
OTHERS = """devices rename north-0002 north-0009
plan publish --theta 1900"""
EVERY = dict.fromkeys("\n".join([*MAY.values(), OTHERS]).splitlines())
REFUSED = 4
REFUSES = re.compile(r"^[^\n]*refuses us \([^\n]*grant this user the rights[^\n]*\n$")  # one line


def _said(file: Path, command: str) -> tuple[int, str]:
    words = command.split()
    parts = 2 if words[0] in ("devices", "plan", "streams") else 1
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as told:
        code = main(["aggregator", *words[:parts], "-c", str(file), *words[parts:]])
    return code, told.getvalue()


def _figures(fleet: Fleet) -> list[float]:
    whole = fleet.json("query")["whole"]
    return [whole[name] for name in ("n", "total", "total_low", "total_high")]


def _file_of(place: Path, fleet: Fleet, url: str, own: str) -> Path:
    """Write the configuration of a colleague, who names his login."""
    file = place / "own.toml"
    devices = (
        f'[devices]\nhost = "127.0.0.1"\ntls = false\npasswords_file = "{place / "passwords"}"\n'
    )
    file.write_text(fleet.file.read_text().replace(url, own) + devices)
    return file


@pytest.mark.parametrize("role", MAY)
def test_AGG_47_a_login_of_the_store_runs_the_commands_of_its_role_alone(
    server: PostgresServer, tmp_path: Path, role: str
) -> None:
    url, login = server.new_database(), f"ldp_{role}".replace("-", "_")
    own = url.replace("postgres@", f"{login}@")
    fleet = make_fleet(tmp_path, store=f'url = "{url}"', least=1)
    add_reports(fleet, add_plans(fleet, 1), {"north": 3}, 1, slots=4)
    named = ["-v", f"login={login}", "-v", f"role={role}", "-v", f"reader={login}"]
    script = CONFIG / f"postgres-{'readonly' if role == 'reader' else 'roles'}.sql"
    for _ in range(2):  # again, as after an upgrade
        done = run_told([needs.program("psql"), url, *named, "-f", str(script)])
        assert done.returncode == 0, done.stderr
    file = _file_of(tmp_path, fleet, url, own)
    before = _figures(fleet)
    wrong = {}
    for command in EVERY:
        code, told = _said(file, command)
        may = command in MAY[role].splitlines()
        if code not in ((0,) if may else (REFUSED,)) or (REFUSES.search(told) is None) is not may:
            wrong[command] = code, told
    assert wrong == {}
    assert _figures(fleet) == before
    kept = str(tmp_path / "backup")
    moved = (["aggregator", word, "-c", str(fleet.file), kept] for word in ("backup", "restore"))
    assert [code for code, _ in fleet.ask(*moved)] == [0, 0]  # what the file made moves along
    assert run_told([needs.program("psql"), url, *named, "-f", str(script)]).returncode == 0
    assert _said(file, "devices list")[0] == 0


# in this order, of an installer of south alone: what is refused, and that no other home is there
BOUND = """0 devices list
0 devices groups
0 devices enrol --group south home-1
0 devices group --to south south-0000
0 devices invite --group west home-2
0 devices revoke south-0000
0 devices reinstate south-0000
0 devices enrol home-3
4 devices enrol --group north home-4
4 devices enrol --group east home-4
4 devices group --to north south-0000
2 devices revoke north-0000
2 devices group --to south north-0000
4 devices enrol --group south north-0000"""


def test_AGG_47_an_installer_of_a_group_finds_and_changes_no_other(
    server: PostgresServer, tmp_path: Path
) -> None:
    url = server.new_database()
    own = url.replace("postgres@", "ldp_south@")
    fleet = make_fleet(tmp_path, store=f'url = "{url}"', least=1)
    add_reports(fleet, add_plans(fleet, 1), {"north": 2, "south": 1}, 1, slots=4)
    file = _file_of(tmp_path, fleet, url, own)
    psql = [needs.program("psql"), url, "-v", "login=ldp_south", "-f"]
    psql += [str(CONFIG / "postgres-roles.sql"), "-v", "role=installer"]
    assert run_told([*psql[:-1], "role=privacy-officer", "-v", "groups=south"]).returncode == 3
    assert run_told(psql).returncode == 0  # of all, and then of fewer
    assert _said(file, "devices group --to north north-0000")[0] == 0
    for _ in range(2):
        assert run_told([*psql, "-v", "groups=south,west"]).returncode == 0
    before = fleet.ask(["aggregator", "devices", "list", "-c", str(fleet.file)])
    codes = [f"{_said(file, line[2:])[0]} {line[2:]}" for line in BOUND.splitlines()]
    assert codes == BOUND.splitlines()
    with redirect_stdout(io.StringIO()) as told:
        assert main(["aggregator", "devices", "list", "-c", str(file)]) == 0
    seen = {*re.findall(r"(?:north|south|home)-\d+", told.getvalue())}
    assert seen == {"south-0000", "home-1", "home-2", "home-3"}
    after = fleet.ask(["aggregator", "devices", "list", "-c", str(fleet.file)])
    north = [re.findall(r"(north-\d+) +(\S+)", text) for ((_, text),) in (before, after)]
    assert north[0] == north[1] == [("north-0000", "north"), ("north-0001", "north")]
    with psycopg.connect(own, autocommit=True) as db:
        for table in ("public.devices", "public.groups", "records", "counts"):
            with pytest.raises(errors.InsufficientPrivilege):
                db.execute(f"TABLE {table}".encode())
        with pytest.raises(errors.InsufficientPrivilege):
            db.execute("SELECT command FROM audit")

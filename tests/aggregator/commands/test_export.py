"""Answers in views for a role that reads nothing else, as `load-curve` says them."""

import json
from pathlib import Path

import psycopg
import pytest
from psycopg import errors
from psycopg.sql import SQL, Identifier

from aggregator.commands.export import FIGURES, SUM_FIGURES, Row, apart
from tests import needs
from tests.aggregator.console.small_fleet import (
    END_S,
    Fleet,
    add_plans,
    add_reports,
    add_sums,
    make_fleet,
)
from tests.postgres import PostgresServer
from tests.processes import run_told

SCRIPT = Path(__file__).parents[3] / "config" / "postgres-answers.sql"
DAY_S = 86_400
SUMS = {"north": 12, "south": 11, "west": 1}  # homes of each group that release sums


def of(day: int | None, *hours: int | None) -> list[Row]:
    lengths = ["day", *["hour"] * len(hours)]
    return [
        {**dict.fromkeys(FIGURES, many), "length": length, "withheld": many is None}
        for length, many in zip(lengths, (day, *hours), strict=True)
    ]


@pytest.mark.parametrize(
    ("groups", "withheld"),
    [
        ({"a": of(40, 20, 20), "b": of(60, 30, 30)}, ""),
        ({"a": of(40, 20, 20), "b": of(60, 30, 30), "c": of(None, None, None)}, "aaaccc"),
        ({"a": of(90, 40, 50), "b": of(60, 30, 30), "c": of(None, None, None)}, "bbbccc"),
        ({"a": of(90, None, None), "b": of(60, 30, 30), "c": of(50, 20, 30)}, "aaccc"),
        ({"a": of(None, None, None), "b": of(60, None, None)}, "aaabbb"),
        ({"a": of(40, 20, 20), "b": [], "c": of(None, None, None)}, "aaaccc"),
    ],
)
def test_AGG_46_no_group_is_what_the_others_leave(
    groups: dict[str, list[Row]], withheld: str
) -> None:
    """Beside one that is withheld another one is, with all of its hours."""
    names = [name for name, rows in groups.items() for _ in rows]
    rows = apart(groups)
    assert "".join(n for n, row in zip(names, rows, strict=True) if row["withheld"]) == withheld
    assert all(row["mean"] is None for row in rows if row["withheld"])


@pytest.fixture
def fleet(server: PostgresServer, tmp_path: Path) -> Fleet:
    made = make_fleet(tmp_path, store=f'url = "{server.new_database()}"')
    plan = add_plans(made, 3)
    add_reports(made, plan, {"north": 14, "south": 12, "west": 2}, 3, slots=288)
    homes = [f"{of}-{at:04d}" for of, many in SUMS.items() for at in range(many)]
    add_sums(made, plan, homes, 3)
    return made


def test_AGG_46_a_role_reads_answers_and_no_table(fleet: Fleet) -> None:
    url = str(fleet.config.store.url)
    export = ["aggregator", "export", "-c", str(fleet.file), "--json"]
    assert fleet.ask(export)[0][0] == 4  # there are no tables yet
    psql = [needs.program("psql"), url, "-v", "reader=ldp_answers", "-f", str(SCRIPT)]
    told = ""
    for _ in range(2):
        assert run_told(psql).returncode == 0
        ((code, told),) = fleet.ask(export)
        assert code == 0
    with psycopg.connect(url.replace("postgres@", "ldp_answers@"), autocommit=True) as db:
        found = db.execute("SELECT * FROM edge_ldp_answers.hours ORDER BY 2, 3")
        names = [column.name for column in found.description or ()]
        hours = [dict(zip(names, row, strict=True)) for row in found]
        days = db.execute('SELECT "group", mean, withheld FROM edge_ldp_answers.days').fetchall()
        sums = db.execute("SELECT * FROM edge_ldp_answers.sums").fetchall()
        assert json.loads(told)["rows"] == len(hours) + len(days) + len(sums)
        begins = END_S - END_S % DAY_S - DAY_S  # yesterday's
        (answer,) = fleet.ask(
            fleet.aggregator("load-curve", f"--since={begins}", f"--until={begins + DAY_S}")
        )
        said = json.loads(answer[1])["hours"]
        ours = [
            one for one in hours if one["group"] == "*" and one["from_at"].timestamp() >= begins
        ]
        assert [one["mean"] for one in ours] == [one["mean"] for one in said]
        assert len(said) == 24
        assert {name for name, mean, _ in days if mean is None} == {"south", "west"}
        assert all((mean is None) == is_withheld for _, mean, is_withheld in days)
        found = db.execute("SELECT * FROM edge_ldp_answers.sums ORDER BY from_at")
        names = [column.name for column in found.description or ()]
        periods = [dict(zip(names, row, strict=True)) for row in found]
        (answer,) = fleet.ask(fleet.aggregator("query", "--mode=sums", "--no-density"))
        said = json.loads(answer[1])["sums"]["periods"]
        ours = [one for one in periods if one["group"] == "*"]
        assert [[one[name] for name in SUM_FIGURES] for one in ours] == [
            [one[name] for name in SUM_FIGURES] for one in said
        ]
        assert all(one["low"] < one["mean"] < one["high"] for one in ours)
        assert len(said) == 3
        shown = {one["group"] for one in periods if one["mean"] is not None}
        assert shown == {"*", "north"}  # one home's alone would be a release, and the rest tells it
        assert all((one["homes"] is None) == one["withheld"] for one in periods)
        for schema in ("public", "edge_ldp_answers"):
            tables = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,))
            for (table,) in tables.fetchall():
                with pytest.raises(errors.InsufficientPrivilege):
                    db.execute(SQL("SELECT * FROM {}").format(Identifier(schema, table)))
        db.execute("SET default_transaction_read_only = off")
        with pytest.raises(errors.InsufficientPrivilege):
            db.execute("DELETE FROM edge_ldp_answers.days")
        assert run_told([*psql, "-v", "groups=north,south"]).returncode == 0  # of two groups alone
        for view in ("hours", "days", "sums"):
            found = db.execute(SQL("SELECT * FROM ldp_answers.{}").format(Identifier(view)))
            assert {row[1] for row in found} == {"north", "south"}
            with pytest.raises(errors.InsufficientPrivilege):
                db.execute(SQL("SELECT * FROM edge_ldp_answers.{}").format(Identifier(view)))
        assert run_told(psql).returncode == 0  # of all again
        assert ("*",) in db.execute('SELECT "group" FROM edge_ldp_answers.days').fetchall()


def test_a_store_without_tables_for_others_says_so(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path)
    assert fleet.ask(["aggregator", "export", "-c", str(fleet.file)])[0][0] == 2

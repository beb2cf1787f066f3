"""What a replay asks of every engine: one text over integers, so there is one answer.

An engine has three tables: `reports` (the archive's columns), `streams` (stream, bucket_slots) and
`excluded` (name: devices whose reports are told apart). Densities and sums follow from the counts
in one place, `aggregator.answers.query`, whichever engine made them. Source: docs/design.md,
Growth.
"""

from collections.abc import Mapping
from dataclasses import dataclass

# what a count returns
COLUMNS = ("stream", "epoch", "grp", "cls", "bucket", "code", "n", "left_out")
# of files that are older than groups, `grp` is null, and `cls` of those older than classes
_QUERY = """
SELECT stream, epoch, coalesce(grp, 0) AS grp, coalesce(cls, 0) AS cls, {bucket} AS bucket, code,
    count(*) AS n, {left_out} AS left_out
FROM reports JOIN streams USING (stream) {excluded}
GROUP BY stream, epoch, coalesce(grp, 0), coalesce(cls, 0), bucket, code
"""


@dataclass(frozen=True, slots=True)
class Dialect:
    """All that engines write differently: the quotient of two integers, rounded down."""

    quotient: str


DUCKDB = Dialect("{} // {}")
SPARK = Dialect("{} DIV {}")


@dataclass(frozen=True, slots=True)
class Selection:
    """What is counted: `bucket_slots` of each stream; `without`: devices that are told apart."""

    bucket_slots: Mapping[int, int]
    without: frozenset[str] = frozenset()

    def text(self, dialect: Dialect) -> str:
        """Return the query: reports by cell (`n`), and how many of them are of excluded devices.

        Without excluded devices the column of devices is never read.
        """
        joined = "LEFT JOIN excluded ON device = excluded.name"
        return _QUERY.format(
            bucket=dialect.quotient.format("slot", "bucket_slots"),
            left_out="count(excluded.name)" if self.without else "0",
            excluded=joined if self.without else "",
        )

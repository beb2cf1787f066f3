"""Plans in the agent's file: those in force, in their exact bytes, and the owner's log of them."""

from typing import NamedTuple

from agent.state.journal_file import JournalFile
from agent.state.plan_log import ACCEPTED, KEPT, STAYING, Logged


class StoredPlan(NamedTuple):
    """The plan in force of one stream name, in its exact bytes."""

    name: str
    epoch: int
    payload: bytes


class PlanJournal(JournalFile):
    """The state file as far as plans go; every method is one transaction. Raises as JournalFile."""

    def plans(self) -> list[StoredPlan]:
        """Return the plans in force."""
        rows = self.rows("SELECT name, epoch, payload FROM plans")
        return [StoredPlan(name, epoch, bytes(payload)) for name, epoch, payload in rows]

    def save_plan(self, plan: StoredPlan, row: Logged | None = None) -> None:
        """Put a plan in force, with its row of the log."""
        with self.transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO plans VALUES (?, ?, ?)",
                (plan.name, plan.epoch, plan.payload),
            )
            if row is not None:
                self._put_log(row)

    def forget_plan(self, row: Logged) -> None:
        """Forget a stream's plan and its epoch; the ledger and everything else stay."""
        with self.transaction():
            self._db.execute("DELETE FROM plans WHERE name = ?", (row.stream,))
            self._put_log(row)

    def log_plan(self, row: Logged) -> None:
        """Write what became of a plan that is not in force."""
        with self.transaction():
            self._put_log(row)

    def plan_log(self) -> list[Logged]:
        """Return the owner's log of plans, oldest first; empty in a file of an older version."""
        if not self.rows("SELECT 1 FROM sqlite_schema WHERE name = 'plan_log'"):
            return []
        columns = ", ".join(Logged._fields)
        return [Logged(*row) for row in self.rows(f"SELECT {columns} FROM plan_log ORDER BY id")]  # noqa: S608 (our own names)

    def _put_log(self, row: Logged) -> None:
        """Put a row in the place of the one that it goes on: a renewal's, or the same refusal's."""
        last = self._db.execute(
            "SELECT id, code, question, at_s, reports FROM plan_log"
            " WHERE stream = ?1 AND (code = ?2 OR ?3) ORDER BY id DESC LIMIT 1",
            (row.stream, row.code, row.code in STAYING),
        ).fetchone()
        if last and last[1] == row.code == ACCEPTED and last[2] == row.question:
            goes_on = "UPDATE plan_log SET epoch = ?, times = times + 1 WHERE id = ?"
            self._db.execute(goes_on, (row.epoch, last[0]))
            return
        if last and row.code not in STAYING:
            self._db.execute("DELETE FROM plan_log WHERE id = ?", (last[0],))
        places = ", ".join("?" * len(row))
        self._db.execute(f"INSERT INTO plan_log VALUES (NULL, {places})", row)  # noqa: S608 (our own names)
        self._db.execute(
            "DELETE FROM plan_log WHERE id <= (SELECT id FROM plan_log ORDER BY id DESC"
            " LIMIT 1 OFFSET ?)",
            (KEPT,),
        )

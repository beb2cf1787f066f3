"""Print the tables of docs/results.md, of every study that a folder has rows of.

    edge-ldp evaluate STUDY --out DIR        # or python -m studies.sums --out DIR
    python -m studies.papers DIR

`tops` also computes what needs no rows: the noise constants K and θ of the score without noise.
"""

import sys
from importlib import import_module
from pathlib import Path

from edge_ldp.evaluate.main import STUDIES
from edge_ldp.evaluate.rows import parse

PAGES = {name: (f"edge_ldp.evaluate.{name}", f"studies.papers.{name}") for name in STUDIES}
PAGES["sums"] = ("studies.sums.study", "studies.sums.tables")


def main(folder: Path) -> None:
    for name, (made, shown) in PAGES.items():
        file = folder / f"{name}.csv"
        if file.exists():
            study = import_module(made).STUDY
            rows = list(parse(file.read_text(), study, {}, str(file)).rows.values())
            sys.stdout.write(import_module(shown).tables(rows) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

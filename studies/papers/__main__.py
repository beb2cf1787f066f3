"""Print the tables of every study that a folder has rows of.

    edge-ldp evaluate STUDY --out DIR
    python -m studies.papers DIR

`tops` also computes what needs no repeats of a run: the noise constants K and θ of the score.
"""

import sys
from importlib import import_module
from pathlib import Path

from studies.evaluate.main import STUDIES
from studies.evaluate.rows import parse


def main(folder: Path) -> None:
    for name in STUDIES:
        file = folder / f"{name}.csv"
        if file.exists():
            study = import_module(f"studies.evaluate.{name}").STUDY
            rows = list(parse(file.read_text(), study, {}, str(file)).rows.values())
            sys.stdout.write(import_module(f"studies.papers.{name}").tables(rows) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

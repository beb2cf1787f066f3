"""Run the study, with the options of `edge-ldp evaluate`.

    python -m studies.sums [--data DIR] --out DIR
    python -m studies.papers DIR                  # its page

Without --data, which names the folder of the real sets: the made-up laws and the bundled homes.
"""

import sys

from edge_ldp.evaluate.main import main
from studies.sums.study import STUDY

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], STUDY))

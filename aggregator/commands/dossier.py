"""`edge-ldp dossier`: What a data-protection officer asks of a fleet, every number computed.

Exit codes: 0 written; 2 a configuration that cannot be used; 4 a store that cannot be read.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from aggregator.answers.dossier import DossierAnswer, dossier_answer, dossier_text
from aggregator.commands.asking import KeysFormatter, Shown, keys_of
from aggregator.commands.common import ended, reading
from edge_ldp.arguments import Parser


def main(argv: Sequence[str]) -> int:
    """Print the dossier of a fleet; return the exit code."""
    parser = Parser(
        prog="edge-ldp dossier",
        description=(__doc__ or "").partition(": ")[2],
        epilog=keys_of(DossierAnswer),
        formatter_class=KeysFormatter,
    )
    parser.add_argument("-c", "--config", type=Path, required=True, help="the aggregator's TOML")
    parser.add_argument("--json", action="store_true", help="for machines; Markdown without")
    args = parser.parse_args(argv)
    return ended(lambda: _dossier(args), "edge-ldp dossier")


def _dossier(args: argparse.Namespace) -> int:
    with reading(args) as (config, reader):
        view = dossier_answer(reader, config)
    return Shown(view, lambda: dossier_text(view)).show(args)

"""`edge-ldp dossier`: What a data-protection officer asks of a fleet, every number computed.

Exit codes: 0 written; 2 a configuration that cannot be used; 4 a store that cannot be read.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from aggregator.answers.dossier import DossierAnswer, dossier_answer, dossier_text
from aggregator.commands.asking import KeysFormatter, Shown, keys_of
from aggregator.commands.common import EXIT_CONFIG, EXIT_STORE, reading
from aggregator.config import ConfigError
from aggregator.errors import StoreError
from edge_ldp.arguments import Parser

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    try:
        with reading(args) as (config, reader):
            view = dossier_answer(reader, config)
    except (ConfigError, StoreError) as exc:
        sys.stderr.write(f"edge-ldp dossier: {exc}\n")
        return EXIT_CONFIG if isinstance(exc, ConfigError) else EXIT_STORE
    return Shown(view, lambda: dossier_text(view)).show(args)

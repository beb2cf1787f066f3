"""`edge-ldp dossier`: What a data-protection officer asks of a fleet, every number computed.

Exit codes: 0 written; 2 a configuration that cannot be used; 4 a store that cannot be read.
"""

from collections.abc import Sequence
from functools import partial

from aggregator.answers.dossier import DossierAnswer, dossier_answer, dossier_text
from aggregator.commands.asking import CONFIG, Asked, KeysFormatter, Shown, ask, keys_of, run
from edge_ldp.arguments import Parser


def main(argv: Sequence[str]) -> int:
    """Print the dossier of a fleet; return the exit code."""
    parser = Parser(
        prog="edge-ldp dossier",
        description=(__doc__ or "").partition(": ")[2],
        epilog=keys_of(DossierAnswer),
        formatter_class=KeysFormatter,
    )
    CONFIG(parser)
    parser.add_argument("--json", action="store_true", help="for machines; Markdown without")
    parser.set_defaults(command=partial(ask, _dossier))
    return run(parser.parse_args(argv), "edge-ldp dossier")


def _dossier(asked: Asked) -> Shown:
    view = dossier_answer(asked.reader, asked.config)
    return Shown(view, lambda: dossier_text(view))

"""Between a curator and its row in the journal: the state sealed, and opened again."""

import logging

from agent.curator import StreamCurator, open_state, seal_state
from agent.curator_outbox import SeriesRow
from agent.curator_setup import Setup
from edge_ldp.continual import CuratorState
from edge_ldp.strict_json import MessageError

log = logging.getLogger("edge-ldp.agent")


def is_news(kept: CuratorState, state: CuratorState) -> bool:
    """Say whether a state tells more than that another reading for θ was heard."""
    return (state.released, state.choices, state.theta) != (kept.released, kept.choices, kept.theta)


def series_row(curator: StreamCurator, state: CuratorState) -> SeriesRow:
    """Return a curator's row with this state, the running chunk's key apart from it."""
    stored, key = seal_state(state)
    setup = curator.setup
    return SeriesRow(
        setup.key, curator.series, state.slot, setup.public.encode(), setup.terms, stored, key
    )


def stored_state(row: SeriesRow, setup: Setup) -> CuratorState | None:
    """Return the state in a row, or None when it is of another design or cannot be read."""
    if (row.design, row.terms) != (setup.public.encode(), setup.terms):
        log.warning("stream %s: its settings changed: a new series begins", setup.public.name)
        return None
    try:
        return open_state(row.state, row.key)
    except MessageError:
        return None

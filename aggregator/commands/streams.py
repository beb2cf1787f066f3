"""`edge-ldp aggregator streams …`: which streams count, and which are retired.

Streams are added in the configuration. What is retired goes into the store; the running service
takes it from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aggregator.commands.asking import add_command, show
from aggregator.commands.common import (
    add_zone,
    changing,
    find_stream,
    find_zone,
    make_clock,
    reading,
)
from aggregator.commands.stream_view import changed_text, streams_text, streams_view
from aggregator.store.registry import reinstate_stream, retire_stream

if TYPE_CHECKING:
    import argparse

CHANGED = "stream; retired: whether it counts nothing more; changed: whether it was otherwise"


def list_(args: argparse.Namespace) -> int:
    """List the configured streams: unit, slots, the plan in force, since when one is retired."""
    with reading(args) as (config, reader):
        view = streams_view(config.fleet, config.streams, reader.newest_epochs(), reader.retired())
        zone = find_zone(args, config)
    show(args, view, lambda: streams_text(view, zone))
    return 0


def retire(args: argparse.Namespace) -> int:
    """Count nothing more of a stream and issue no plan for it; its past stays as it is."""
    with changing(args) as (config, session):
        stream = find_stream(args, config, "stream")
        changed = retire_stream(session, stream.id, int(make_clock(config).now()))
    return _changed(args, stream.name, retired=True, changed=changed)


def reinstate(args: argparse.Namespace) -> int:
    """Let a stream that was retired count again, under the plans that it had."""
    with changing(args) as (config, session):
        stream = find_stream(args, config, "stream")
        changed = reinstate_stream(session, stream.id)
    return _changed(args, stream.name, retired=False, changed=changed)


def _changed(args: argparse.Namespace, stream: str, *, retired: bool, changed: bool) -> int:
    view = {"stream": stream, "retired": retired, "changed": changed}
    show(args, view, lambda: changed_text(view))
    return 0


def add(commands: Any) -> None:
    """Add the commands' options."""
    parser = commands.add_parser("streams", help="which streams count: list, retire, reinstate")
    below = parser.add_subparsers(required=True, metavar="COMMAND")
    add_zone(add_command(below, list_, streams_view.__doc__))
    for command in (retire, reinstate):
        add_command(below, command, CHANGED).add_argument("stream", help="its name")

"""`edge-ldp aggregator streams …`: which streams count, and which are retired.

Streams are added in the configuration. What is retired goes into the store; the running service
takes it from there.
"""

import argparse

from aggregator.answers.fleet import lists
from aggregator.commands import common
from aggregator.commands.asking import Commands, Shown, add_command, add_question
from aggregator.config import AggregatorConfig
from aggregator.store.administration.registry import reinstate_stream, retire_stream
from aggregator.store.contract import Reader


def list_(args: argparse.Namespace, config: AggregatorConfig, reader: Reader) -> Shown:
    """List the configured streams: unit, slots, the plan in force, since when one is retired."""
    epochs, retired = reader.newest_epochs(), reader.retired()
    view = lists.streams_answer(config.fleet, config.streams, epochs, retired)
    zone = common.find_zone(args, config)
    return Shown(view, lambda: lists.streams_text(view, zone))


def retire(args: argparse.Namespace) -> int:
    """Count nothing more of a stream and issue no plan for it; its past stays as it is."""
    with common.changing(args) as (config, session):
        stream = common.find_stream(args, config, "stream")
        changed = retire_stream(session, stream.id, int(common.make_clock(config).now()))
    return _changed(args, stream.name, retired=True, changed=changed)


def reinstate(args: argparse.Namespace) -> int:
    """Let a stream that was retired count again, under the plans that it had."""
    with common.changing(args) as (config, session):
        stream = common.find_stream(args, config, "stream")
        changed = reinstate_stream(session, stream.id)
    return _changed(args, stream.name, retired=False, changed=changed)


def _changed(args: argparse.Namespace, stream: str, *, retired: bool, changed: bool) -> int:
    view = lists.RetiredStream(stream=stream, retired=retired, changed=changed)
    return Shown(view, lambda: lists.retired_text(view)).show(args)


def add(commands: Commands) -> None:
    """Add the commands' options."""
    parser = commands.add_parser("streams", help="which streams count: list, retire, reinstate")
    below = parser.add_subparsers(required=True, metavar="COMMAND")
    common.add_zone(add_question(below, list_, lists.StreamsAnswer))
    for command in (retire, reinstate):
        add_command(below, command, lists.RetiredStream).add_argument("stream", help="its name")

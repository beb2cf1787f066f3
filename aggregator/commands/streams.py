"""`edge-ldp aggregator streams …`: which streams count, and which are retired.

Streams are added in the configuration. What is retired goes into the store; the running service
takes it from there.
"""

from aggregator.answers.fleet import lists
from aggregator.commands.asking import ZONE, Asked, Commands, Shown, option
from aggregator.commands.common import find_stream
from aggregator.config import StreamTable
from aggregator.store.administration.registry import reinstate_stream, retire_stream
from aggregator.store.contract import Session


def list_(asked: Asked) -> Shown:
    """List the configured streams: unit, slots, the plan in force, since when one is retired."""
    config, reader, zone = asked.config, asked.reader, asked.zone
    epochs, retired = reader.newest_epochs(), reader.retired()
    view = lists.streams_answer(config.fleet, config.streams, epochs, retired)
    return Shown(view, lambda: lists.streams_text(view, zone))


def retire(asked: Asked, session: Session) -> Shown:
    """Count nothing more of a stream and issue no plan for it; its past stays as it is."""
    stream = find_stream(asked.args, asked.config, "stream")
    changed = retire_stream(session, stream.id, asked.now_s)
    return _changed(stream, retired=True, changed=changed)


def reinstate(asked: Asked, session: Session) -> Shown:
    """Let a stream that was retired count again, under the plans that it had."""
    stream = find_stream(asked.args, asked.config, "stream")
    return _changed(stream, retired=False, changed=reinstate_stream(session, stream.id))


def _changed(stream: StreamTable, *, retired: bool, changed: bool) -> Shown:
    view = lists.RetiredStream(stream=stream.name, retired=retired, changed=changed)
    return Shown(view, lambda: lists.retired_text(view))


def add(commands: Commands) -> None:
    """Add the commands' options."""
    below = commands.below("streams", "Say which streams count: list, retire, reinstate.")
    below.question(list_, lists.StreamsAnswer, ZONE)
    for order in (retire, reinstate):
        below.order(order, lists.RetiredStream, option("stream", help="its name"))

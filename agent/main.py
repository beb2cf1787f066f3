"""Reads a meter and reports each value as a random code; no reading leaves this device.

Begin with `ports`, `probe` and `check`. Exit codes: 0 fine; 2 wrong usage or configuration; 3 no
valid telegram; 4 a port, file, link or source of randomness that cannot be used; 130 interrupted.
"""

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent.config import AgentConfig
from agent.config.doubts import doubts_of
from agent.errors import AgentError, ConfigError
from agent.link.uplink import Uplink, Vitals
from agent.running.feeds import Feeds
from agent.running.health_file import forget_health, note_health
from agent.running.loading import Loaded, startable
from agent.running.memory import forbid_dumps, give_back
from agent.running.reload import Reloader
from agent.running.vitals import keep_answering
from agent.state.core import DeviceCore
from agent.state.device import Device, Mode
from agent.state.journal import Journal
from agent.state.local_mode import LocalMode
from agent.state.place import doubt_of_place, forget_left
from edge_ldp.arguments import Parser
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.service.clock import Clock
from edge_ldp.service.health import combined
from edge_ldp.service.service_manager import ServiceManager, keep_telling
from edge_ldp.service.tasks import task_group

if TYPE_CHECKING:
    from agent.page.server import Page
    from agent.tap.link import Tap
    from agent.tap.share import Share

EXIT_CONFIG = 2
EXIT_UNUSABLE = 4
ROOT_WORDS = (
    "a user of its own (packaging/install.sh makes one): the agent needs no root rights; "
    "--as-root runs it anyway"
)
log = logging.getLogger("edge-ldp.agent")


def main(argv: Sequence[str]) -> int:
    """Run one agent command; return its exit code."""
    args = _parser(argv).parse_args(argv)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        return int(args.command(args))
    except ConfigError as exc:
        return _fail(exc, EXIT_CONFIG)
    except (AgentError, EdgeLdpError) as exc:
        return _fail(exc, EXIT_UNUSABLE)


def run(args: argparse.Namespace) -> int:
    """Read the meter, randomise and report until SIGTERM or SIGINT; SIGHUP reads the file again."""
    if os.geteuid() == 0 and "INVOCATION_ID" in os.environ and not args.as_root:  # a service's
        return _fail(ConfigError("--as-root", "user", ROOT_WORDS), EXIT_CONFIG)
    forbid_dumps()
    loaded = startable(args.config, os.environ.get("CREDENTIALS_DIRECTORY"))
    config = loaded.config
    for doubt in filter(None, [*doubts_of(config), doubt_of_place(Path(config.device.state))]):
        log.warning("%s: %s", args.config, doubt)
    clock = config.clock.make()
    journal = open_journal(config)
    try:
        if journal.set_aside:
            is_lost = ".lost-" in journal.set_aside.name
            told = "the state is lost, noted as %s" if is_lost else "damaged state set aside as %s"
            log.warning(told, journal.set_aside)
        asyncio.run(_serve(loaded, journal, clock))
    except BaseExceptionGroup as group:  # a task failed: say what, once
        raise _first_agent_error(group) from group
    finally:
        journal.close()
        forget_health(journal.path)
    return 0


async def _serve(loaded: Loaded, journal: Journal, clock: Clock) -> None:
    config = loaded.config
    core = DeviceCore(config, journal, clock, keyring=loaded.keyring)
    device = Device(core, _mode(core))
    uplink = Uplink(config, device, clock, loaded.secrets.broker)
    tap = _tap(loaded, uplink)
    share = _share(config)
    feeds = Feeds(config, device, uplink, clock, tap.offer if tap else None)
    if share is not None:
        feeds.meters[0].share = share.offer
    ways: list[Tap | Share | Page] = [way for way in (tap, share) if way]
    vitals = partial(_vitals, device, feeds, uplink, ways)
    if (page := _page(config, device, vitals, uplink)) is not None:
        ways.append(page)
    give_back()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with task_group() as tasks:
        reading = [
            *(tasks.create_task(meter.run(), name="feed") for meter in feeds.meters),
            tasks.create_task(feeds.keep_time(), name="keep-time"),
        ]
        linking = tasks.create_task(uplink.run(), name="uplink")
        tapping = [tasks.create_task(tap.run(), name="tap")] if tap else []
        sharing = [tasks.create_task(share.run(), name="share")] if share else []
        sharing += [tasks.create_task(page.run(), name="page")] if page else []
        reloader = Reloader(loaded, device, uplink, lambda: [task.cancel() for task in tapping])
        loop.add_signal_handler(signal.SIGHUP, reloader.reload)
        manager = ServiceManager(os.environ)
        uplink.vitals = partial(vitals, leaves=True)
        answering = tasks.create_task(
            keep_answering(journal.path, lambda: vitals()._asdict()), name="answering"
        )
        telling = tasks.create_task(
            keep_telling(
                manager,
                lambda: vitals().health,
                lambda: feeds.ticked_s,
                lambda text: note_health(journal.path, text),
                lambda: {name.removesuffix("_s"): age for name, age in vitals().ages.items()},
            ),
            name="telling",
        )
        manager.tell("READY=1")
        await stop.wait()
        manager.tell("STOPPING=1")
        for task in (*reading, *tapping, *sharing, telling, answering):
            task.cancel()
        await uplink.farewell()
        linking.cancel()


def _vitals(
    device: Device,
    feeds: Feeds,
    uplink: Uplink,
    ways: "Sequence[Tap | Share | Page]",
    *,
    leaves: bool = False,
) -> Vitals:
    """Return health and ages of this moment; `leaves`: as the status that leaves this house."""
    reading = feeds.state if leaves else feeds.health
    health = [
        device.health,
        reading,
        uplink.health,
        *(way.health for way in ways),
    ]
    ages = {"telegram_s": feeds.telegram_age_s, "commit_s": device.core.commit_age_s}
    if (swap_age_s := feeds.swap_age_s) is not None:
        ages["meter_swap_s"] = swap_age_s
    return Vitals(combined(health), ages | uplink.ages)


def open_journal(config: AgentConfig) -> Journal:
    """Return the state file; what another mode began on it and is to do no more, ends."""
    journal = Journal(Path(config.device.state))
    if config.mode == "local" and journal.released_until() >= 0:
        from agent.curator.journal import CuratorJournal  # noqa: PLC0415 (memory: its mode only)

        if CuratorJournal(journal).retire():
            log.warning("the curator's series of this file ended: its budget stays in the ledger")
    if journal.sharing() and not config.sharing:
        from agent.curator.sums_mode import forget_sums  # noqa: PLC0415 (memory: who had sums)

        forget_sums(config, journal)
    return journal


def _tap(loaded: Loaded, uplink: Uplink) -> "Tap | None":
    if loaded.config.tap is None:
        return None
    from agent.tap.link import Tap  # noqa: PLC0415 (memory, and nothing of it where none asked)

    return Tap(loaded.config, loaded.secrets.tap, lambda: uplink.peer, uplink.month.shown)


def _share(config: AgentConfig) -> "Share | None":
    if config.share is None:
        return None
    from agent.tap.share import Share  # noqa: PLC0415 (same)

    return Share(config.share)


def _page(
    config: AgentConfig, device: Device, vitals: Callable[[], Vitals], uplink: Uplink
) -> "Page | None":
    """Return the household's page; where there is none, nothing is kept for it."""
    if config.page is None:
        forget_left(device.core.journal.path)
        return None
    from agent.page.gather import Household  # noqa: PLC0415 (same)
    from agent.page.record import LeftRecord  # noqa: PLC0415 (same)
    from agent.page.server import Page  # noqa: PLC0415 (same)

    core = device.core
    core.kept = record = LeftRecord(core.journal, config.slot_seconds, core.clock.now)
    return Page(config.page, Household(device, record, vitals, uplink.month.shown))


def _mode(core: DeviceCore) -> Mode:
    if core.config.sharing:
        from agent.curator.sums_mode import sums_mode  # noqa: PLC0415 (memory: who has sums)

        return sums_mode(core)
    if core.config.mode == "local":
        return LocalMode(core)
    from agent.curator.mode import curator_mode  # noqa: PLC0415 (memory: its mode only)

    return curator_mode(core)


def _first_agent_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    for exc in group.exceptions:
        found = _first_agent_error(exc) if isinstance(exc, BaseExceptionGroup) else exc
        if isinstance(found, (AgentError, EdgeLdpError)):
            return found
    return group


def _fail(exc: Exception, code: int) -> int:
    sys.stderr.write(f"edge-ldp agent: {exc}\n")
    return code


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of what is asked for; the service holds nothing of the other commands."""
    parser: argparse.ArgumentParser = Parser(prog="edge-ldp agent", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    sub = commands.add_parser("run", help=run.__doc__, description=run.__doc__)
    sub.add_argument("-c", "--config", type=Path, required=True, help="the agent's TOML file")
    sub.add_argument("--as-root", action="store_true", help="run as a service of root anyway")
    sub.set_defaults(command=run)
    if argv[:1] != ["run"]:
        from agent.commands.house import add_house_commands  # noqa: PLC0415 (memory)
        from agent.commands.meter import add_commands  # noqa: PLC0415 (memory)

        add_house_commands(commands)
        add_commands(commands)
    return parser

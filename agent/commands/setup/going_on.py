"""`edge-ldp agent setup --from FILE`: a trial becomes a service, with its ledger and its reports.

The trial's file is taken as it is but for the places that it names, so its owner's policy, and with
it the window, stays what it was: nothing is silent again, and nothing is randomised twice. Secrets
and state go along; the trial's file is kept as *.before, so that no second agent starts by mistake.
"""

import argparse
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.commands.setup.talk import SetupError, Talk
from agent.config import AgentConfig, load_config, parse_config
from agent.config.secrets import CREDENTIAL, PUBLIC, SECRET
from agent.errors import ConfigError, StateGoneError
from agent.state.moving import is_movable, move_state

BEGINS_ANEW = "so the service begins with a silence of one window"
_STRING = re.compile(r"""=\s*("(?:[^"\\]|\\.)*"|'[^']*')""")
_TABLE = re.compile(r"\s*\[+\s*([^\[\]]*?)\s*\]+\s*(?:#.*)?")
_ALONG = ("config", "trial", "state", "seconds", "replace", "yes")  # options beside --from
Places = Mapping[tuple[str, str], str]  # (table, key) → path


def placed(
    config: AgentConfig, source: Path, target: Path, state: str
) -> dict[tuple[str, str], str]:
    """Return the new path of each file that a trial's configuration names.

    What lies beside the trial's file comes beside the new one; what lies elsewhere stays there.
    """
    found = {("device", "state"): state}
    for table in ("broker", "tap", "meter.access"):
        for key in (*PUBLIC, *SECRET):
            named = getattr(_table(config, table), key, None)
            if named is None or named.startswith(CREDENTIAL):
                continue
            path = Path(named).absolute()
            is_beside = path.parent == source.absolute().parent
            found[table, key] = str(target.absolute().parent / path.name if is_beside else path)
    return found


def rewritten(text: str, places: Places) -> str:
    """Return a configuration with other paths; comments and everything else stay as they were."""
    lines, table = [], ""
    for line in text.split("\n"):
        if header := _TABLE.fullmatch(line):
            table = header[1]
        key = f"{table}.{line.partition('=')[0].strip()}".rpartition(".")
        path = places.get((key[0], key[2]))
        if path is not None and (old := _STRING.search(line)):
            new = json.dumps(path, ensure_ascii=False)
            lines.append(f"{line[: old.start()]}= {new}{line[old.end() :]}")
        else:
            lines.append(line)
    return "\n".join(lines)


def relocated(config: AgentConfig, places: Places) -> AgentConfig:
    """Return what a configuration with other paths must say."""
    changed: Any = config
    for (table, key), path in places.items():
        changed = _changed(changed, table.split("."), {key: path})
    made: AgentConfig = changed
    return made


def _table(config: AgentConfig, name: str) -> Any:
    """Return a table, or one inside another; None where there is none."""
    found: Any = config
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _changed(node: Any, way: list[str], keys: dict[str, Any]) -> Any:
    if not way:
        return replace(node, **keys)
    return replace(node, **{way[0]: _changed(getattr(node, way[0]), way[1:], keys)})


class TrialFile:
    """A trial that goes on elsewhere: what is to be written, and what is to be moved."""

    def __init__(self, source: Path, target: Path, state: str | None) -> None:
        self.source = source
        if source.absolute() == target.absolute():
            raise SetupError(
                f"setup: --from {source} is the file that would be written; name it with -c"
            )
        self._config = load_config(source)
        self._places = placed(self._config, source, target, state or self._config.device.state)
        self.text = rewritten(source.read_text(), self._places)
        try:
            self.config = parse_config(self.text, str(target))
        except ConfigError:
            self.config = self._config
        if self.config != relocated(self._config, self._places):
            raise SetupError(
                f"setup: {source} does not say plainly where its files are: write each as "
                'a line of its own, KEY = "PATH", in its table'
            )

    @property
    def device(self) -> str:
        """The device's name."""
        return self._config.device.id

    @property
    def state(self) -> Path:
        """Where the trial's state is."""
        return Path(self._config.device.state)

    def files(self) -> dict[Path, tuple[str, int]]:
        """Return the files to be written beside the configuration, what is in each and its mode."""
        found = {}
        for (table, key), path in self._places.items():
            old = getattr(_table(self._config, table), key)
            if table != "device" and Path(path) != Path(old).absolute():
                mode = 0o600 if key in SECRET else 0o644
                found[Path(path)] = (Path(old).read_text(), mode)
        return found

    def look(self, talk: Talk) -> bool:
        """Say what becomes of the state; return whether it is to be moved. Raises StorageError."""
        target = Path(self.config.device.state)
        try:
            moves = is_movable(self.state, target)
        except StateGoneError as exc:
            talk.say(f"{exc.path}: {exc.reason}: it stays there, {BEGINS_ANEW}")
            return False
        if moves:
            talk.say(f"the state {self.state} moves to {target}: it goes on, without a new silence")
        elif target.exists():
            talk.say(f"the state {target} is there already, and goes on")
        else:
            talk.say(f"{self.state}: the trial never ran, {BEGINS_ANEW}")
        return moves

    def move(self) -> None:
        """Move the state."""
        move_state(self.state, Path(self.config.device.state))

    def retire(self) -> Path:
        """Keep the trial's file under another name, and no secret twice; return that name."""
        for (table, key), path in self._places.items():
            old = getattr(_table(self._config, table), key)
            if key in SECRET and Path(path) != Path(old).absolute():
                Path(old).unlink(missing_ok=True)
        kept = self.source.with_name(self.source.name + ".before")
        self.source.replace(kept)
        return kept


def trial_here(target: Path, fleet: str, device: str, state: str) -> tuple[Path, Path] | None:
    """Return file and state of a trial of this device in this directory, if there is one."""
    found = Path("agent.toml")
    if found.absolute() == target.absolute() or not found.is_file():
        return None
    try:
        config = parse_config(found.read_text(), str(found))
    except (ConfigError, OSError, UnicodeDecodeError):
        return None
    path = Path(config.device.state)
    is_same = (config.device.fleet, config.device.id) == (fleet, device)
    return (found, path) if is_same and path.exists() and path != Path(state) else None


def refuse_beside(args: argparse.Namespace) -> None:
    """Raise SetupError for options that say again what a trial's file says: all but `_ALONG`."""
    for name, given in vars(args).items():
        if name not in _ALONG and given != args.usual(name):
            option = "--" + name.replace("_", "-")
            raise SetupError(
                f"setup: {option}: the trial's file says it; change it there, or later"
            )

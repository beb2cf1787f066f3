"""An operator at the command line: a configuration in a file, commands, what they print."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aggregator.main import main


@dataclass(frozen=True)
class Operator:
    file: Path
    capsys: pytest.CaptureFixture[str]

    def text(self, *command: str, code: int = 0) -> str:
        """Return what a command prints for people, on both outputs."""
        self.capsys.readouterr()
        at = 2 if command[0] in ("devices", "plan", "streams") else 1
        done = main([*command[:at], "-c", str(self.file), *command[at:]])
        said = self.capsys.readouterr()
        assert done == code, said.err
        return said.out + said.err

    def json(self, *command: str, code: int = 0) -> Any:
        """Return what a command prints for machines."""
        text = self.text(*command, "--json", code=code)
        return json.loads(text.splitlines()[0])


def operator(place: Path, text: str, capsys: pytest.CaptureFixture[str]) -> Operator:
    file = place / "aggregator.toml"
    file.write_text(text)
    return Operator(file, capsys)

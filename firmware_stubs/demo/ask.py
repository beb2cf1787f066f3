"""Asking the product for figures as any other program would: by its commands and their JSON."""

import json
import subprocess
from pathlib import Path
from typing import Any

from firmware_stubs.demo.files import command

PATIENCE_S = 120.0


class AskError(Exception):
    """A command gave no answer; the text says which, and why."""


def ask_command(part: str, verb: str, config: Path, *flags: str) -> dict[str, Any]:
    """Return the object that `edge-ldp PART VERB -c CONFIG FLAGS --json` prints."""
    return ask_json(f"{part} {verb}", part, verb, "-c", str(config), *flags)


def ask_json(name: str, *words: str) -> dict[str, Any]:
    """Return the object that `edge-ldp WORDS --json` prints; raises AskError, by `name`."""
    try:
        process = subprocess.run(  # noqa: S603 (our own command)
            command(*words, "--json"), capture_output=True, check=False, timeout=PATIENCE_S
        )
    except subprocess.TimeoutExpired as exc:
        raise AskError(f"{name}: no answer in {PATIENCE_S:.0f} s") from exc
    if process.returncode:
        raise AskError(f"{name}: {process.stderr.decode(errors='replace').strip()}")
    found: dict[str, Any] = json.loads(process.stdout)
    return found

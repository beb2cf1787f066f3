"""Asking the product for figures as any other program would: by its commands and their JSON."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from firmware_stubs.demo.files import command

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S = 120.0


class AskError(Exception):
    """A command gave no answer; the text says which, and why."""


def ask_command(part: str, verb: str, config: Path, *flags: str) -> dict[str, Any]:
    """Return the object that `edge-ldp PART VERB -c CONFIG FLAGS --json` prints."""
    words = command(part, verb, "-c", str(config), *flags, "--json")
    try:
        process = subprocess.run(  # noqa: S603 (our own command)
            words, capture_output=True, check=False, timeout=PATIENCE_S
        )
    except subprocess.TimeoutExpired as exc:
        raise AskError(f"{part} {verb}: no answer in {PATIENCE_S:.0f} s") from exc
    if process.returncode:
        raise AskError(f"{part} {verb}: {process.stderr.decode(errors='replace').strip()}")
    found: dict[str, Any] = json.loads(process.stdout)
    return found

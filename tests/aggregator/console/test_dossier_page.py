"""The dossier in a browser and by the API: what the command prints; the attacker's table."""

import json
from html import unescape

import httpx

from tests.aggregator.console.small_fleet import Fleet


def test_the_page_and_the_api_say_what_the_command_prints(fleet: Fleet, console: str) -> None:
    (_, printed), (_, text) = fleet.ask(
        ["dossier", "-c", str(fleet.file), "--json"], ["dossier", "-c", str(fleet.file)]
    )
    assert httpx.get(f"{console}/api/v1/dossier").json() == json.loads(printed)
    page = unescape(httpx.get(f"{console}/dossier").text)
    said = [line.lstrip("#- ") for line in text.splitlines() if line]
    assert len(said) > 20
    assert [one for one in said if f">{one}</" not in page] == []

"""The aggregator's signature: on every plan it publishes, asked of every one that is retained."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from aggregator.config import ConfigError, PlansTable
from aggregator.plans import planner
from aggregator.plans.keys import make_key, read_signer
from aggregator.plans.publisher import PlanPublisher
from aggregator.plans.signing import PlanSeal, read_seal
from aggregator.store.sqlite.store import SqliteStore
from aggregator.store.store_thread import StoreThread
from edge_ldp.protocol.plan import parse_plan
from edge_ldp.protocol.signing import MAGIC
from edge_ldp.protocol.strict_json import MessageError
from edge_ldp.service.clock import Clock
from edge_ldp.service.verify import keyring
from tests.aggregator.fakes import FakeLink, make_config, until

TOPIC = "edge-ldp/v1/demo/plan/power"


class Bench:
    """A desk that signs, over a real store and a link that remembers."""

    def __init__(self, directory: Path) -> None:
        self.public = make_key(directory / "plan.key")
        config = make_config(directory / "a.db")
        plans = PlansTable(signing_key_file=str(directory / "plan.key"))
        self.config = replace(config, plans=plans)
        self.keeper = StoreThread(SqliteStore.open(directory / "a.db"))

    async def published(
        self, retained: dict[str, bytes], seal: PlanSeal | None = None, *, silent: bool = False
    ) -> bytes:
        """Return what a desk has published at last after a start; nothing where it is `silent`."""
        seal = seal or read_seal(self.config, "a.toml")
        desk, link = PlanPublisher(self.config, Clock(), self.keeper, seal), FakeLink()
        await desk.load()
        task = asyncio.create_task(desk.run(link, retained))
        await until(lambda: bool(desk.rules().streams[1].plans))
        await until(lambda: silent or TOPIC in link.published)
        await asyncio.sleep(0.05)
        task.cancel()
        return link.published.get(TOPIC, b"")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.keeper.close()


async def test_what_is_published_is_signed_and_a_device_with_the_key_takes_it(bench: Bench) -> None:
    payload = await bench.published({})
    assert payload.startswith(MAGIC)
    assert parse_plan(keyring([bench.public]).open(payload)).epoch == 1


async def test_after_a_restart_the_same_bytes_are_in_force_and_not_published_again(
    bench: Bench,
) -> None:
    payload = await bench.published({})
    assert await bench.published({TOPIC: payload}, silent=True) == b""
    assert await bench.published({}) == payload


async def test_an_unsigned_or_foreign_plan_that_is_retained_moves_no_epoch(
    bench: Bench, tmp_path: Path
) -> None:
    """Whoever holds the broker could else push the epochs up to their end."""
    stream = bench.config.streams[0]
    foreign = planner.first_plan("demo", stream, epoch=4_000_000_000, now_s=1).to_json()
    make_key(tmp_path / "foreign.key")
    signed = read_signer(tmp_path / "foreign.key").wrap(foreign)
    for payload in (foreign, signed):
        again = await bench.published({TOPIC: payload})
        assert parse_plan(keyring([bench.public]).open(again)).epoch == 1


async def test_without_a_key_plans_are_published_as_they_are(bench: Bench) -> None:
    payload = await bench.published({}, PlanSeal())
    assert payload.startswith(b"{")


def test_a_seal_opens_only_its_own(bench: Bench) -> None:
    seal = read_seal(bench.config, "a.toml")
    assert seal.open(seal.wrap(b"{}")) == b"{}"
    with pytest.raises(MessageError):
        seal.open(b"{}")


@pytest.mark.parametrize("fault", ["gone", "open", "empty"])
def test_a_key_file_that_cannot_be_used_is_named(bench: Bench, tmp_path: Path, fault: str) -> None:
    path = tmp_path / "plan.key"
    if fault == "gone":
        path.unlink()
    elif fault == "open":
        path.chmod(0o644)
    else:
        path.write_bytes(b"")
    with pytest.raises(ConfigError, match=r"plans\.signing_key_file"):
        read_seal(bench.config, "a.toml")

"""The model that remembers everything, on both stores: AGG-19, REP-06."""

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from aggregator.store.postgres.store import PostgresStore
from aggregator.store.sqlite.store import SqliteStore
from tests.aggregator.counting.remembering import Action, World
from tests.aggregator.counting.test_remembering import actions
from tests.integration.both_stores import House
from tests.postgres import PostgresServer

QUICK = [Phase.explicit, Phase.generate]  # shrinking is for the model alone


@settings(
    max_examples=4,
    deadline=None,
    phases=QUICK,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(actions, min_size=20, max_size=40))
def test_both_stores_keep_what_a_model_that_remembers_everything_keeps_AGG_19_REP_06(
    postgres: PostgresServer, given_: list[Action]
) -> None:
    kept = []
    with TemporaryDirectory() as place:
        for store in (
            SqliteStore.open(Path(place) / "a.db"),
            PostgresStore.open(postgres.new_database()),
        ):
            with closing(store):
                world = World(House(store))
                world.play(given_)
                world.settle()
                world.check()
                kept.append((world.house.kept(), world.house.refused(), world.counted))
    assert kept[0] == kept[1]

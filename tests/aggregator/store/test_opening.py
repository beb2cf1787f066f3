"""Which store a configuration names, and what it may not hold."""

from pathlib import Path

import pytest

from aggregator.config import AggregatorConfig, ConfigError, parse_config
from aggregator.main import main
from aggregator.store.opening import database, open_reader, open_store
from aggregator.store.postgres.reader import PostgresReader
from aggregator.store.postgres.store import PostgresStore
from aggregator.store.sqlite.store import SqliteStore
from tests.aggregator.fakes import CONFIG
from tests.postgres import running_postgres


def text(store: str) -> str:
    return CONFIG.replace('path = "{path}"', store).format(intake="")


def config(store: str) -> AggregatorConfig:
    return parse_config(text(store), "a.toml")


@pytest.mark.parametrize(
    ("store", "key", "expected"),
    [
        ("", "store", "one of them"),
        ('path = "a.db"\nurl = "postgresql://a@b/c"', "store", "one of them"),
        ('path = "a.db"\npassword_file = "x"', "store.password_file", "none for a SQLite file"),
        ('url = "mysql://a@b/c"', "store.url", "postgresql://user@host/database"),
        ('url = "postgresql://a:secret@b/c"', "store.url", "password_file"),
        ('url = "postgresql://a:secret@?host=b"', "store.url", "password_file"),
    ],
)
def test_a_store_that_cannot_be_meant_is_refused(store: str, key: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected) as caught:
        config(store)
    assert caught.value.key == key
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://a@b/c?password=secret",
        "postgresql://a@b/c?%70assword=secret",
        "postgresql://a@b/c?sslpassword=secret",
    ],
)
def test_a_password_is_refused_however_the_url_holds_it(url: str) -> None:
    made = config(f'url = "{url}"')
    for use in (open_store, open_reader):
        with pytest.raises(ConfigError, match="password_file") as caught:
            use(made, "a.toml")
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://a@db.example.net/c",
        "postgresql://a@db.example.net/c?sslmode=prefer",
        "postgresql://a@db.example.net/c?sslmode=disable",
        "postgresql://a@10.0.0.9/c?sslmode=allow",
        "postgresql://a@localhost,db.example.net/c",
        "postgresql://a@/c?host=db.example.net",
        "postgresql://a@localhost/c?hostaddr=10.0.0.9",
        "postgresql://a@/c?service=fleet",
    ],
)
def test_a_database_elsewhere_needs_tls_and_what_to_write_is_said(url: str) -> None:
    made = config(f'url = "{url}"')
    for use in (open_store, open_reader):
        with pytest.raises(ConfigError, match="sslmode=verify-full") as caught:
            use(made, "a.toml")
        assert (caught.value.file, caught.value.key) == ("a.toml", "store.url")


def test_a_host_of_the_environment_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    made = config('url = "postgresql:///c"')
    monkeypatch.setenv("PGHOST", "db.example.net")
    with pytest.raises(ConfigError, match=r"db\.example\.net is not this machine"):
        database(made, "a.toml")
    monkeypatch.setenv("PGSSLMODE", "require")
    assert database(made, "a.toml") == ("postgresql:///c", None)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://a@db.example.net/c?sslmode=require",
        "postgresql://a@db.example.net/c?sslmode=verify-ca",
        "postgresql://a@db.example.net,other/c?sslmode=verify-full",
        "postgresql:///c",
        "postgresql://a@localhost/c",
        "postgresql://a@127.0.0.7/c",
        "postgresql://a@[::1]/c",
        "postgresql://a@/c?host=/var/run/postgresql",
        "postgresql://a@db.example.net/c?hostaddr=127.0.0.1",
    ],
)
def test_with_tls_or_on_this_machine_a_database_is_taken(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGSSLMODE"):
        monkeypatch.delenv(name, raising=False)
    assert database(config(f'url = "{url}"'), "a.toml") == (url, None)


def test_a_url_that_does_not_parse_is_a_fault_of_the_configuration() -> None:
    with pytest.raises(ConfigError, match="nosuchoption"):
        open_store(config('url = "postgresql://a@b/c?nosuchoption=1"'), "a.toml")


def test_a_password_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("pw\n")
    secret.chmod(0o644)
    made = config(f'url = "postgresql://a@b/c"\npassword_file = "{secret}"')
    with pytest.raises(ConfigError, match="chmod 600"):
        open_store(made, "a.toml")


def test_the_password_of_the_file_is_the_one_that_is_given(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("open sesame\n")
    secret.chmod(0o600)
    with running_postgres() as server:
        with (server.directory / "data" / "pg_hba.conf").open("w") as rules:
            rules.write("local all postgres trust\nlocal all reader scram-sha-256\n")
        url = server.new_database()
        server.ask("CREATE USER reader PASSWORD 'open sesame'")
        server.ask("SELECT pg_reload_conf()")
        made = config(f'url = "{url}"')
        store = open_store(made, "a.toml")
        assert isinstance(store, PostgresStore)
        store.close()
        name = url.split("/", 3)[3].partition("?")[0]
        server.ask("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader", name)
        by_password = url.replace("postgres@", "reader@")
        reader = open_reader(config(f'url = "{by_password}"\npassword_file = "{secret}"'), "a.toml")
        assert isinstance(reader, PostgresReader)
        assert reader.plans() == []
        reader.close()


def test_a_path_is_a_sqlite_file(tmp_path: Path) -> None:
    made = config(f'path = "{tmp_path}/a.db"')
    store = open_store(made, "a.toml")
    assert isinstance(store, SqliteStore)
    store.close()
    reader = open_reader(made, "a.toml")
    assert reader.plans() == []
    reader.close()


def test_the_commands_answer_from_either_store_in_the_same_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    with running_postgres() as server:
        for store in (f'path = "{tmp_path}/a.db"', f'url = "{server.new_database()}"'):
            file = tmp_path / "a.toml"
            file.write_text(text(store))
            assert main(["status", "-c", str(file)]) == 4
            assert "edge-ldp aggregator run" in capsys.readouterr().err
            open_store(config(store), "a.toml").close()
            codes = [main([name, "-c", str(file)]) for name in ("status", "query", "theta")]
            assert codes == [0, 5, 5]
            assert main(["released", "-c", str(file)]) == 5
            said.append(capsys.readouterr())
    assert said[0] == said[1]

"""What a changed file means: tighter at once, looser never while it runs, the rest at a restart."""

from pathlib import Path

import pytest

from agent.config import AgentConfig, parse_config
from agent.config.changes import changes_to
from tests.agent.samples import config_text

KEY = "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c"
OTHER = "8139770ea87d175f56a35466c34c7ecccb8d8a91b4ee37a25df60f5b8fc9b394"
BASE = config_text(
    Path("s.db"),
    host="broker.example",
    window=(8, 97),
    policy="epsilon = 1",
    broker='username = "me"',
    sending="jitter_s = 0",
    tables=f'[plans]\nkeys = ["{KEY}", "{OTHER}"]\n',
)
TAP = '[tap]\nhost = "127.0.0.1"\n'


def parsed(text: str) -> AgentConfig:
    return parse_config(text, "agent.toml")


@pytest.mark.parametrize(
    ("old", "new", "keys"),
    [
        ('host = "broker.example"', 'host = "other.example"', ("broker.host",)),
        ("port = 1883", "port = 8884", ("broker.port",)),
        ('username = "me"', 'username = "you"', ("broker.username",)),
        ("jitter_s = 0", "jitter_s = 9", ("sending.jitter_s",)),
        ("jitter_s = 0", "jitter_s = 0\nmax_age_days = 7", ("sending.max_age_days",)),
        ("epsilon = 1", "epsilon = 0.5", ("policy.epsilon",)),
        ("reports = 8", "reports = 4", ("policy.window",)),
        ("slots = 97", "slots = 193", ("policy.window",)),
        ("epsilon = 1", "epsilon = 1\nmax_codes = 4096", ("policy.max_codes",)),
        (f'"{KEY}", ', "", ("plans.keys",)),
        (f', "{OTHER}"]', f']\nnext_key = "{OTHER}"', ("plans.keys", "plans.next_key")),
        ("sharpness = 1000000", "sharpness = 9", ("policy.plans",)),
        ("range_days = 0", "range_days = 7", ("policy.plans",)),
    ],
)
def test_what_tightens_or_touches_no_promise_is_applied(
    old: str, new: str, keys: tuple[str, ...]
) -> None:
    wanted = parsed(BASE.replace(old, new))
    verdict = changes_to(parsed(BASE), wanted)
    assert verdict.applied == keys
    assert (verdict.loosens, verdict.restart) == ((), ())
    assert verdict.config == wanted


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("epsilon = 1", "epsilon = 1.0000000001", "policy.epsilon"),
        ("theta_halvings = 12", "theta_halvings = 13", "policy.plans.theta_halvings"),
        ("sharpness = 1000000", "sharpness = 1000001", "policy.plans.sharpness"),
        ("reports = 8", "reports = 9", "policy.window.reports"),
        ("slots = 97", "slots = 96", "policy.window.slots"),
        ("epsilon = 1", "epsilon = 1\nmax_codes = 8193", "policy.max_codes"),
        ("jitter_s = 0", "jitter_s = 0\nmax_age_days = 36", "sending.max_age_days"),
        ('username = "me"', 'username = "me"\ntls = false\nallow_plaintext = true', "broker.tls"),
        ('username = "me"', 'username = "me"\nallow_plaintext = true', "broker.allow_plaintext"),
        (f'keys = ["{KEY}", "{OTHER}"]', "keys = []", "plans.keys"),
        (f'"{OTHER}"', f'"{OTHER}", "{"0c" * 32}"', "plans.keys"),
        (f'"{OTHER}"]', f'"{OTHER}"]\nnext_key = "{"0c" * 32}"', "plans.keys"),
        ("[plans]", TAP + "[plans]", "tap"),
    ],
)
def test_one_key_that_loosens_keeps_the_whole_running_file(old: str, new: str, key: str) -> None:
    running = parsed(BASE)
    text = BASE.replace(old, new).replace('"broker.example"', '"other.example"')
    verdict = changes_to(running, parsed(text))
    assert key in verdict.loosens
    assert verdict.config is running
    assert verdict.applied == ()


def test_fewer_mechanisms_are_applied_and_more_are_not() -> None:
    few = BASE.replace("epsilon = 1", 'epsilon = 1\nmechanisms = ["hybrid", "square-wave"]')
    assert changes_to(parsed(BASE), parsed(few)).applied == ("policy.mechanisms",)
    assert changes_to(parsed(few), parsed(BASE)).loosens == ("policy.mechanisms",)


@pytest.mark.parametrize(
    ("old", "new", "table"),
    [
        ('id = "home-7"', 'id = "home-8"', "device"),
        ('port = "/dev/null"', 'port = "/dev/zero"', "meter"),
        ('trust = "assume"', 'trust = "kernel"', "clock"),
        ("ceiling = 4000", "ceiling = 3000", "streams"),
    ],
)
def test_what_the_agent_was_built_from_needs_a_restart_and_the_rest_is_taken(
    old: str, new: str, table: str
) -> None:
    running = parsed(BASE)
    text = BASE.replace(old, new).replace("jitter_s = 0", "jitter_s = 9")
    verdict = changes_to(running, parsed(text))
    assert (verdict.applied, verdict.restart) == (("sending.jitter_s",), (table,))
    assert verdict.config.sending.jitter_s == 9
    assert getattr(verdict.config, table) == getattr(running, table)


def test_a_tap_goes_at_once_and_comes_or_changes_only_with_a_restart() -> None:
    tapped = BASE.replace("[plans]", TAP + "[plans]")
    assert changes_to(parsed(tapped), parsed(BASE)).applied == ("tap",)
    moved = tapped.replace(TAP, TAP + "port = 1999\n")
    assert changes_to(parsed(tapped), parsed(moved)).loosens == ("tap",)


def test_keys_where_none_were_tighten() -> None:
    bare = BASE.replace(f'keys = ["{KEY}", "{OTHER}"]', "keys = []")
    assert changes_to(parsed(bare), parsed(BASE)).applied == ("plans.keys",)


def test_the_same_file_changes_nothing() -> None:
    verdict = changes_to(parsed(BASE), parsed(BASE))
    assert (verdict.applied, verdict.loosens, verdict.restart) == ((), (), ())


@pytest.mark.parametrize(
    ("old", "new", "loosens"),
    [
        ("", "reports = 100", ()),
        ("reports = 100", "reports = 99\nepsilon = 5", ()),
        ("reports = 100", "reports = 101", ("policy.lifetime.reports",)),
        ("reports = 100", "epsilon = 5", ("policy.lifetime.reports",)),
        ("epsilon = 5", "epsilon = 5.1", ("policy.lifetime.epsilon",)),
        ("epsilon = 5", "", ("policy.lifetime.epsilon",)),
    ],
)
def test_a_lifetime_may_be_shortened_while_it_runs_and_not_lengthened_AGT_27(
    old: str, new: str, loosens: tuple[str, ...]
) -> None:
    def config(lines: str) -> AgentConfig:
        table = f"[policy.lifetime]\n{lines}\n" if lines else ""
        return parsed(BASE.replace("[plans]", table + "[plans]"))

    assert changes_to(config(old), config(new)).loosens == loosens

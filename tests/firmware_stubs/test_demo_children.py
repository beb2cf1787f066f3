"""Processes of the demo: an early death is told with its last words, and all are ended."""

import os
import sys
import time
from pathlib import Path

import pytest

from firmware_stubs.demo.broker import NoBrokerError, choose_broker
from firmware_stubs.demo.children import Child, ChildDiedError, Crew

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
AWAKE = [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(60)"]
IGNORE = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
DEAF = [sys.executable, "-c", f"{IGNORE}; print(1, flush=True); time.sleep(60)"]


def wait_for_end(crew: Crew, name: str) -> None:
    deadline = time.monotonic() + 60
    while not crew.ended(name):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_for_words(child: Child) -> None:
    deadline = time.monotonic() + 60
    while not child.stdout.read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_early_death_is_told_with_exit_code_and_last_words(tmp_path: Path) -> None:
    with Crew() as crew:
        crew.start("broker", SLEEP, tmp_path)
        words = "import sys; sys.stderr.write('no such port'); sys.exit(4)"
        crew.start("agent", [sys.executable, "-c", words], tmp_path)
        wait_for_end(crew, "agent")
        with pytest.raises(ChildDiedError, match=r"exit code 4; its last words:\nno such"):
            crew.check()


def test_a_process_that_may_end_must_end_well(tmp_path: Path) -> None:
    with Crew() as crew:
        crew.start("meter", [sys.executable, "-c", ""], tmp_path, may_end=True)
        wait_for_end(crew, "meter")
        crew.check()
        crew.start("homes", [sys.executable, "-c", "raise SystemExit(1)"], tmp_path, may_end=True)
        wait_for_end(crew, "homes")
        with pytest.raises(ChildDiedError, match="homes"):
            crew.check()


def play_and_fail(directory: Path, pids: list[int]) -> None:
    with Crew(term_s=0.3) as crew:
        pids.append(crew.start("one", SLEEP, directory).process.pid)
        deaf = crew.start("two", DEAF, directory)
        pids.append(deaf.process.pid)
        wait_for_words(deaf)
        raise KeyboardInterrupt


def test_every_process_is_ended_also_the_deaf_and_after_an_error(tmp_path: Path) -> None:
    pids: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        play_and_fail(tmp_path, pids)
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_usage_is_what_the_process_used_and_stays_when_it_is_gone(tmp_path: Path) -> None:
    with Crew() as crew:
        wait_for_words(crew.start("one", AWAKE, tmp_path))  # until then it may hold no page yet
        (usage,) = crew.usages()
        assert (usage.name, usage.state) == ("one", "running")
        assert usage.rss_mib > 0
        crew.stop("one")
        (after,) = crew.usages()
        assert (after.state, after.pid) == ("done", usage.pid)


def test_a_missing_broker_is_named_with_its_remedy(tmp_path: Path) -> None:
    nowhere = str(tmp_path)
    with pytest.raises(NoBrokerError, match="apt-get install mosquitto"):
        choose_broker("mosquitto", tmp_path, nowhere)
    assert choose_broker("auto", tmp_path, nowhere).name == "iotcore"
    assert choose_broker("iotcore", tmp_path, nowhere).protocol == "3.1.1"

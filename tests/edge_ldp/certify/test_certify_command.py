"""The command: what it says, what it saves, what it refuses, and how it exits."""

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_ldp import Hybrid, SquareWave
from edge_ldp.certify import Verdict, certify, certify_plan, judge_file, judge_plan
from edge_ldp.certify.build import KINDS
from edge_ldp.certify.certify_command import EXIT_FAILS, EXIT_USAGE, main
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.mechanisms import Tuned
from edge_ldp.protocol.plan import Plan
from edge_ldp.protocol.signing import Envelope, key_id
from edge_ldp.protocol.strict_json import MessageError
from tests.edge_ldp.protocol.test_plan import PLAN as SOUND
from tests.tables import each

PLAN = replace(
    SOUND,
    stream_mechanism=Hybrid(epsilon=1, low=0, high=410, size=32),
    survey_mechanism=SquareWave(epsilon=1, low=0, high=4000, size=64),
)
CERTIFIED = replace(PLAN, certificate=certify_plan(PLAN).digest)
Shown = pytest.CaptureFixture[str]


def changed(payload: bytes, *path: str | int, to: Any) -> bytes:
    """Return a file with one place set to another JSON value."""
    table = json.loads(payload)
    place = table
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return json.dumps(table).encode()


def failed(verdict: Verdict) -> set[str]:
    proved = verdict.certificate
    parts = [] if proved is None else [proved, *proved.parts.values()]
    claims = [*verdict.checks, *(claim for part in parts for claim in part.claims)]
    assert verdict.holds == (proved is not None and all(claim.holds for claim in claims))
    return {claim.name for claim in claims if not claim.holds}


# NAME


def test_a_mechanism_is_proved_in_words_and_the_exit_is_0(capsys: Shown) -> None:
    assert main(["hybrid", "--epsilon", "1", "--low", "-5", "--high", "100", "--size", "16"]) == 0
    shown = capsys.readouterr().out
    assert "hybrid, values -5..100" in shown
    assert "largest ratio    178145/65536" in shown
    assert "bias             0 exactly" in shown
    assert "FAILS" not in shown
    assert all(len(line) <= 100 for line in shown.splitlines())
    assert "claims hold; certificate " in shown


def test_machines_get_stable_keys_and_fractions(capsys: Shown) -> None:
    assert main(["square-wave", "--epsilon", "0.5", "--size", "64", "--json"]) == 0
    view = json.loads(capsys.readouterr().out)
    assert list(view) == ["holds", "bound", "digest", "certificate", "checks", "failed"]
    assert view["holds"] is True
    assert (view["checks"], view["failed"]) == ({}, [])
    proved = view["certificate"]
    assert proved["nominal"] == "1/2"
    assert set(proved["figures"]) == {
        *("ratio", "epsilon", "margin", "bias", "worst_variance", "unit_variance", "influence"),
        *("codes", "bits"),
    }
    assert Fraction(proved["figures"]["ratio"]) == Fraction(54_025, 32_768)
    channel = proved["channels"][0]
    assert (channel["inputs"], channel["rows"], channel["method"]) == (64, 64, "structure")
    assert set(proved["claims"].values()) == {True}


@pytest.mark.parametrize(
    ("said", "given"),
    each(
        ("one of NAME", "", "hybrid --epsilon 1 --plan x", "--plan x --check y"),
        ("--epsilon", "hybrid", "--check x --epsilon 4"),
        ("--size", "--plan x --size 4"),
        ("invalid choice", "fancy --epsilon 1"),
        ("invalid int", "hybrid --epsilon 1 --size many"),
        ("epsilon: expected a finite number", "hybrid --epsilon 0", "hybrid --epsilon nan"),
        ("bits: expected only with tuned", "hybrid --epsilon 1 --bits 3"),
        ("size", "square-wave --epsilon 1 --high 5"),
        ("one of the ready tables'", "tuned --epsilon 1.2345"),
        ("no-such-file: No such file", "--plan no-such-file"),
        ("directory", "--check /"),
    ),
)
def test_wrong_usage_and_what_cannot_be_certified_exit_with_2_and_a_sentence(
    given: str, said: str, capsys: Shown
) -> None:
    try:
        code: object = main(given.split())
    except SystemExit as left:  # of argparse
        code = left.code
    assert code == EXIT_USAGE
    assert said in capsys.readouterr().err


# --save and --check


def test_a_saved_certificate_is_checked_and_its_hash_is_the_digest(
    tmp_path: Path, capsys: Shown
) -> None:
    file = tmp_path / "certificate.json"
    assert main(["hrr", "--epsilon", "1", "--size", "20", "--save", str(file), "--json"]) == 0
    digest = json.loads(capsys.readouterr().out)["digest"]
    assert sha256(file.read_bytes()).hexdigest().startswith(digest)
    assert main(["--check", str(file)]) == 0
    assert digest in capsys.readouterr().out


@pytest.mark.parametrize("name", KINDS)
def test_every_certificate_is_told_in_lines_that_fit_and_can_be_checked_again(
    name: str, tmp_path: Path, capsys: Shown
) -> None:
    file = str(tmp_path / "certificate.json")
    options = ["--size", "8"] if "size" in KINDS[name].options else []
    assert main([name, "--epsilon", "1", *options, "--save", file]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{name}, ")
    assert all(len(line) <= 110 for line in lines)
    assert main(["--check", file]) == 0


SAVED = certify(Hybrid(epsilon=1, low=0, high=100, size=16), Fraction(1)).to_json()


@pytest.mark.parametrize(
    ("path", "to", "wanted"),
    [
        (("figures", "ratio"), "178144/65536", "file.figures.ratio"),
        (("figures", "bits"), 4, "file.figures.bits"),
        (("claims", "ratio"), False, "file.claims.ratio"),
        (("claims", "ratio"), 1, "file.claims.ratio"),
        (("channels", 0, "rows"), 9, "file.channels[0].rows"),
        (("channels",), [], "file.channels"),
        (("later",), 1, "file.later"),
        (("nominal",), "9/10", "ratio"),
        (("subject", "waves", 1, 2), 178_146, "ratio"),
        (("subject", "coin"), [1, 3], "file.figures.unit_variance"),
        (("subject", "waves", 0, 2), 1, "subject"),
        (("subject", "waves"), None, "subject"),
        (("subject", "mechanism"), "fancy", "subject"),
        (("nominal",), "0/1", "subject"),
        (("nominal",), 1, "subject"),
        (("nominal",), "1/" + "3" * 2000, "subject"),
    ],
)
def test_a_certificate_that_was_changed_is_refuted(
    path: tuple[str | int, ...], to: Any, wanted: str
) -> None:
    assert failed(judge_file(SAVED)) == set()
    assert wanted in failed(judge_file(changed(SAVED, *path, to=to)))


def test_a_table_with_a_wrong_total_or_a_weight_of_0_is_refuted() -> None:
    saved = certify(Tuned(epsilon=1, low=0, high=100), Fraction(1)).to_json()
    assert failed(judge_file(saved)) == set()
    weight = ("subject", "table", "weights", 3, 7)
    number = json.loads(saved)["subject"]["table"]["weights"][3][7]
    for wrong in (number + 1, 0, -1):
        assert failed(judge_file(changed(saved, *weight, to=wrong))) == {"subject"}


@pytest.mark.parametrize(
    "payload", [b"", b"{}", b"[1]", b"\xff", b'{"certificate":1.5,"subject":{}}', b'{"a":1,"a":1}']
)
def test_what_is_no_file_of_ours_is_unreadable_not_refuted(payload: bytes, tmp_path: Path) -> None:
    other_version = changed(SAVED, "certificate", to=2)
    for unreadable in (payload, other_version):
        with pytest.raises(MessageError):
            judge_file(unreadable)
    file = tmp_path / "file"
    file.write_bytes(payload)
    assert main(["--check", str(file)]) == EXIT_USAGE


PLACES = st.sampled_from(
    [
        (place,)
        for place in ("certificate", "subject", "nominal", "figures", "claims", "channels", "parts")
    ]
    + [("subject", place) for place in ("mechanism", "low", "high", "coin", "waves")]
    + [("subject", place) for place in ("stream_mechanism", "survey_mechanism", "share")]
    + [("subject", "waves", 0), ("subject", "waves", 0, 0), ("channels", 0), ("figures", "ratio")]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 300) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def judged(path: tuple[Any, ...], to: Any) -> None:
    """Judge a changed file: nothing is raised but our errors."""
    try:
        verdict = judge_file(changed(SAVED, *path, to=to))
    except EdgeLdpError:
        return
    failed(verdict)


@settings(max_examples=40)
@given(PLACES, JSON)
def test_no_changed_file_raises_anything_but_our_errors(path: tuple[Any, ...], to: Any) -> None:
    judged(path, to)


@pytest.mark.slow
@settings(max_examples=500)
@given(PLACES, JSON)
def test_none_of_many_changed_files_does(path: tuple[Any, ...], to: Any) -> None:
    judged(path, to)


# --plan, and --check of a plan


def test_a_plan_is_proved_part_by_part(tmp_path: Path, capsys: Shown) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(CERTIFIED.to_json())
    assert main(["--plan", str(file), "--epsilon", "1"]) == 0
    shown = capsys.readouterr().out
    for part in ("survey share 1/4", "stream_mechanism: hybrid", "survey_mechanism: square-wave"):
        assert part in shown
    assert f"the plan carries {CERTIFIED.certificate}, as proved" in shown
    assert main(["--check", str(file)]) == 0


def test_the_nominal_epsilon_of_a_plan_is_the_owners_to_say(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(CERTIFIED.to_json())
    assert main(["--plan", str(file)]) == 0
    assert main(["--plan", str(file), "--epsilon", "0.99999"]) == EXIT_FAILS
    assert failed(judge_plan(CERTIFIED.to_json(), Fraction(99, 100))) == {"ratio"}


KEY = bytes(range(32))
SIGNED = Envelope(key_id(KEY), bytes(64), CERTIFIED.to_json()).to_bytes()


def test_a_signed_plan_is_proved_as_it_was_published_and_its_signature_is_no_proof_PRV_23(
    tmp_path: Path, capsys: Shown
) -> None:
    file = tmp_path / "power-7.plan"
    file.write_bytes(SIGNED)
    for option in ("--plan", "--check"):
        assert main([option, str(file)]) == 0
        assert "the signature was not checked" in capsys.readouterr().out
    plain = judge_plan(CERTIFIED.to_json(), Fraction(1))
    assert judge_plan(SIGNED, Fraction(1)) == replace(plain, is_signed=True)
    file.write_bytes(SIGNED[:40])  # a file that was cut
    assert main(["--plan", str(file)]) == EXIT_USAGE


@pytest.mark.parametrize(
    ("given", "bound", "told"),
    [
        (["--plan"], None, "NO BOUND was proved"),
        (["--plan", "--epsilon", "13"], "13", ""),
        (["--check"], None, "NO BOUND was proved"),
        (["hybrid", "--epsilon", "1"], "1", ""),
    ],
)
def test_what_was_compared_with_no_epsilon_says_that_no_bound_was_proved_PRV_23(
    given: list[str], bound: str | None, told: str, tmp_path: Path, capsys: Shown
) -> None:
    bold = replace(PLAN, stream_mechanism=Hybrid(epsilon=8, low=0, high=410, size=32))
    file = tmp_path / "plan"
    file.write_bytes(replace(bold, certificate=certify_plan(bold).digest).to_json())
    if given[0].startswith("--"):
        given = [given[0], str(file), *given[1:]]
    assert main(given) == 0
    shown = capsys.readouterr().out
    assert ("NO BOUND" in shown) == bool(told)
    assert main([*given, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bound"] == bound
    if told:
        assert "8.000000 is what a report may tell" in shown  # rounded up


LATER = {"epoch": 8, "issued_s": 1_850_000_000, "expires_s": 1_950_000_000}


@pytest.mark.parametrize(
    ("fails", "change"),
    each(
        ("certificate", {"share": (1, 5)}),  # the digest is of other integers
        ("range", {"ceiling": PLAN.theta - 1}, {"ceiling": PLAN.survey_mechanism.high - 1}),
        ("range", {"low": PLAN.low - 1}, {"low": PLAN.low + 1}),
        (None, {}, LATER),  # a renewed plan keeps its certificate
    ),
)
def test_a_plan_that_contradicts_its_digest_or_its_own_range_is_refuted(
    fails: str | None, change: dict[str, Any]
) -> None:
    payload = replace(CERTIFIED, **change).to_json()
    assert failed(judge_plan(payload)) == failed(judge_file(payload)) == {fails} - {None}
    assert failed(judge_plan(PLAN.to_json())) == set()
    assert failed(judge_file(PLAN.to_json())) == {"certificate"}  # without one: proved, not checked


def test_a_plan_whose_integers_make_no_channel_is_refuted(tmp_path: Path, capsys: Shown) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(changed(PLAN.to_json(), "stream_mechanism", "waves", 0, 2, to=1))
    assert main(["--plan", str(file)]) == EXIT_FAILS
    assert "1 of 1 claims FAIL" in capsys.readouterr().out
    assert main(["--plan", str(file), "--json"]) == EXIT_FAILS
    view = json.loads(capsys.readouterr().out)
    assert (view["holds"], view["digest"], view["certificate"]) == (False, None, None)
    assert view["failed"][0]["claim"] == "subject"


def test_a_plans_certificate_is_saved_and_checked_only_if_it_holds(
    tmp_path: Path, capsys: Shown
) -> None:
    plan, saved = tmp_path / "plan.json", tmp_path / "certificate.json"
    plan.write_bytes(CERTIFIED.to_json())
    assert main(["--plan", str(plan), "--epsilon", "0.5", "--save", str(saved)]) == EXIT_FAILS
    assert not saved.exists()
    assert "nothing was saved" in capsys.readouterr().err
    assert main(["--plan", str(plan), "--save", str(saved)]) == 0
    assert main(["--check", str(saved)]) == 0
    wrong = changed(saved.read_bytes(), "subject", "share", to=[1, 2, 3])
    assert failed(judge_file(wrong)) == {"subject"}


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: replace(plan, stream_mechanism=Hybrid(epsilon=1, low=0, high=411, size=32)),
        lambda plan: replace(plan, stream_mechanism=Tuned(epsilon=1, low=0, high=410)),
        lambda plan: replace(plan, share=(2, 8)),
    ],
)
def test_other_integers_have_another_digest(change: Callable[[Plan], Plan]) -> None:
    assert certify_plan(change(PLAN)).digest != CERTIFIED.certificate


def test_the_output_in_the_documentation_is_the_real_one(capsys: Shown) -> None:
    guide = Path(__file__).parents[3] / "docs" / "certify.md"
    assert main(["hybrid", "--epsilon", "1"]) == 0
    block = guide.read_text().partition("```text\n")[2].partition("```\n")[0]
    first, _, last = block.partition("  …\n")
    shown = capsys.readouterr().out
    assert shown.startswith(first)
    assert shown.endswith(last)
    assert first.count("\n") > 10
    assert last


def test_what_is_wrong_with_a_file_names_the_file(tmp_path: Path, capsys: Shown) -> None:
    file = tmp_path / "odd.json"
    file.write_text('{"v": 1}')
    for option, why in (("--plan", "fleet: missing"), ("--check", "fleet: missing")):
        assert main([option, str(file)]) == EXIT_USAGE
        assert capsys.readouterr().err == f"edge-ldp certify: {file}: {why}\n"


def test_the_help_says_what_each_integer_of_sums_is(capsys: Shown) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "--span SPAN range of a value, ceiling − low, in its unit" in told
    assert "--window WINDOW slots (97)" in told
    assert "unless given --" not in told.partition("of period-sums")[2]


@pytest.mark.parametrize(
    ("layout", "title"),
    [
        (["--days", "1"], "period-sums: 1 sum of a home every day\n"),
        (["--cells", "24"], "period-sums: 24 sums of a home every 7 days\n"),
    ],
)
def test_one_is_not_told_as_many(layout: list[str], title: str, capsys: Shown) -> None:
    main(["period-sums", "--span", "9000", "--scale", "900000", "--epsilon", "8", *layout])
    assert capsys.readouterr().out.startswith(title)

"""Plans: what is read, what is refused and why (docs/faults.md, PLN, NET_14)."""

import json
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp import (
    Hybrid,
    Mechanism,
    ParameterError,
    Piecewise,
    SquareWave,
    StochasticRounding,
    Tuned,
)
from edge_ldp.certify import certify_plan
from edge_ldp.protocol.plan import Plan, Policy, digest, judge, parse_plan, plan_tag
from edge_ldp.protocol.plan_bounds import PlanBounds
from edge_ldp.protocol.strict_json import MessageError
from edge_ldp.ratio import Ratio, floor_ratio
from tests.edge_ldp.laws import small
from tests.tables import each

ONE = floor_ratio(1)
ANY_SHAPE = PlanBounds(40, 40, 65_536, sharpness=1 << 40)  # tests of the shape: test_plan_bounds.py
POLICY = Policy(
    fleet="north",
    stream="power",
    unit="W",
    slot_seconds=900,
    low=0,
    ceiling=4000,
    ratio=ONE,
    shape=ANY_SHAPE,
)
PLAN = Plan(
    fleet="north",
    stream="power",
    stream_id=1,
    unit="W",
    epoch=7,
    issued_s=1_800_000_000,
    expires_s=1_900_000_000,
    slot_seconds=900,
    low=0,
    ceiling=4000,
    share=(1, 4),
    stream_mechanism=Hybrid(epsilon=1, low=0, high=410),
    survey_mechanism=SquareWave(epsilon=1, low=0, high=4000),
)
NOW = 1_850_000_000
TABLE: dict[str, Any] = json.loads(PLAN.to_json())


def changed(*path: str | int, to: Any) -> bytes:
    """Return the plan's message with one place set to another JSON value."""
    table = json.loads(PLAN.to_json())
    place = table
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return json.dumps(table).encode()


def reason(plan: Plan, epoch: int | None = 6, now_s: int = NOW, **allowed: Any) -> str | None:
    refusal = judge(plan, replace(POLICY, **allowed), epoch=epoch, now_s=now_s)
    return refusal and refusal.code


def refusal(payload: bytes) -> tuple[str, str]:
    with pytest.raises(MessageError) as refused:
        parse_plan(payload)
    return refused.value.reason, refused.value.field


def with_wave(r_num: int, r_den: int) -> Plan:
    """Return the plan with stochastic rounding of other odds."""
    return replace(PLAN, stream_mechanism=small(StochasticRounding, 0, 410, (2, 0, r_num, r_den)))


def test_an_honest_plan_is_accepted_and_read_back_as_it_was() -> None:
    assert parse_plan(PLAN.to_json()) == PLAN
    assert reason(PLAN) is None
    assert PLAN.theta == 410
    assert PLAN.reporter().code_count == 414 + PLAN.survey_mechanism.code_count


def test_a_device_runs_the_stream_mechanism_for_sums_and_the_other_for_surveys() -> None:
    made = PLAN.reporter()
    assert made.stream == PLAN.stream_mechanism.randomizer
    assert made.survey == PLAN.survey_mechanism.randomizer
    assert made.share == PLAN.share


@pytest.mark.parametrize(
    "mechanism",
    [
        Hybrid(epsilon="0.5", low=-40, high=900, size=64),
        Piecewise(epsilon=2, low=0, high=41),
        StochasticRounding(epsilon=8, low=-(1 << 46), high=1 << 46),
    ],
    ids=repr,
)
def test_every_stream_mechanism_travels(mechanism: Mechanism) -> None:
    plan = replace(PLAN, stream_mechanism=mechanism, low=-(1 << 46), ceiling=1 << 46)
    assert parse_plan(plan.to_json()) == plan


def test_the_widest_numbers_of_a_plan_are_read() -> None:
    widest = replace(PLAN, epoch=(1 << 32) - 1, stream_id=255, issued_s=1 << 40, expires_s=1 << 40)
    assert parse_plan(widest.to_json()) == widest


@pytest.mark.parametrize(
    ("changes", "agrees"),
    [
        ({}, True),
        ({"low": -1, "stream_mechanism": Hybrid(epsilon=1, low=-1, high=410)}, True),
        ({"stream_mechanism": Hybrid(epsilon=1, low=0, high=4000)}, True),
        ({"stream_mechanism": Hybrid(epsilon=1, low=0, high=4001)}, False),
        ({"stream_mechanism": Hybrid(epsilon=1, low=1, high=410)}, False),
        ({"stream_mechanism": Hybrid(epsilon=1, low=-1, high=410)}, False),
        ({"survey_mechanism": SquareWave(epsilon=1, low=512, high=1535)}, True),
        ({"survey_mechanism": SquareWave(epsilon=1, low=-1, high=4000)}, False),
        ({"survey_mechanism": SquareWave(epsilon=1, low=0, high=4001)}, False),
    ],
)
def test_mechanisms_agree_with_the_plans_range_or_not(
    changes: dict[str, Any], *, agrees: bool
) -> None:
    assert replace(PLAN, **changes).agrees == agrees


def test_a_plan_holds_no_epsilon_and_no_float() -> None:
    text = PLAN.to_json().decode()
    assert "epsilon" not in text
    assert "." not in text


# The certificate: for auditors; a device neither needs it nor goes by it

CERTIFICATE = "0123456789abcdef" * 2


def test_a_certificate_travels_and_changes_nothing_for_the_device() -> None:
    certified = replace(PLAN, certificate=CERTIFICATE)
    assert parse_plan(certified.to_json()) == certified
    assert b"certificate" not in PLAN.to_json()
    assert reason(certified) is None
    assert certified.reporter() == PLAN.reporter()


def test_a_certificate_makes_no_ratio_smaller() -> None:
    steep = replace(with_wave(3, 1), certificate=certify_plan(with_wave(3, 1)).digest)
    assert reason(parse_plan(steep.to_json())) == "ratio"


def test_the_store_that_made_a_plan_travels_with_it() -> None:
    made = replace(PLAN, store="0123456789abcdef")
    assert parse_plan(made.to_json()) == made
    assert b"store" not in PLAN.to_json()


def test_the_tag_of_a_plan_is_the_start_of_its_digest() -> None:
    payload = PLAN.to_json()
    assert plan_tag(payload).to_bytes(4, "little").hex() == digest(payload)[:8]


def test_the_digest_is_of_the_exact_bytes() -> None:
    payload = PLAN.to_json()
    assert len(digest(payload)) == 16
    assert digest(payload) == digest(bytes(payload))
    assert digest(payload) != digest(payload + b" ")


# The ratio of the whole channel, in integers: PLN_03, PLN_05


@pytest.mark.parametrize(
    ("r_num", "r_den", "wanted"),
    [
        (178_145, 65_536, None),
        (178_144, 65_536, None),
        (178_146, 65_536, "ratio"),  # one unit in the last place
        (178_145 + 10**6, 65_536, "ratio"),
        (178_145 * 10**6, 65_536, "ratio"),
        (2, 1, None),
        (3, 1, "ratio"),
        (178_145 * 10**12, 65_536 * 10**12, None),
        (178_145 * 10**12 + 1, 65_536 * 10**12, "ratio"),  # doubles could not tell
    ],
)
def test_pln_03_a_ratio_above_the_policys_is_refused(
    r_num: int, r_den: int, wanted: str | None
) -> None:
    plan = with_wave(r_num, r_den)
    assert parse_plan(plan.to_json()) == plan
    assert reason(plan) == wanted


@pytest.mark.parametrize("coin", [(1, 4), (0, 4), (4, 4)])
@pytest.mark.parametrize("steep", [0, 1])
def test_pln_05_a_branch_above_the_ratio_is_refused_also_if_it_never_serves(
    coin: tuple[int, int], steep: int
) -> None:
    waves = [(8, 2, 178_145, 65_536), (2, 0, 178_145, 65_536)]
    assert reason(replace(PLAN, stream_mechanism=small(Hybrid, 0, 9, *waves, coin=coin))) is None
    d, c, r_num, r_den = waves[steep]
    waves[steep] = (d, c, r_num + 1, r_den)
    plan = replace(PLAN, stream_mechanism=small(Hybrid, 0, 9, *waves, coin=coin))
    assert reason(plan) == "ratio"


@pytest.mark.parametrize("share", [(1, 4), (0, 1)])
def test_pln_05_a_survey_above_the_ratio_is_refused(share: tuple[int, int]) -> None:
    survey = SquareWave(epsilon="1.0001", low=0, high=4000)
    assert reason(replace(PLAN, survey_mechanism=survey, share=share)) == "ratio"


@pytest.mark.parametrize(
    "wave",  # one of what device/test_channel.py refuses, and what is no channel at all
    [[1, 0, 3, 1], [2, 0, 3], [2, 0, 3, 1, 1], [2, 0, "3", 1], [2, 0, [3], 1], {}, None],
)
@pytest.mark.parametrize("place", [0, 1])
def test_pln_05_integers_that_make_no_channel_are_refused(wave: Any, place: int) -> None:
    found, field = refusal(changed("stream_mechanism", "waves", place, to=wave))
    assert found == "channel"
    assert field.startswith("stream_mechanism.")
    if not place:
        assert refusal(changed("survey_mechanism", "waves", 0, to=wave))[0] == "channel"


def test_a_plan_whose_codes_do_not_fit_a_frame_is_refused_at_parse_and_at_use() -> None:
    wide = replace(PLAN, stream_mechanism=small(Piecewise, 0, 410, (65_000, 0, 178_145, 65_536)))
    assert refusal(wide.to_json()) == ("channel", "size")
    with pytest.raises(ParameterError):
        wide.reporter()


# Threshold, epoch, time, audience, range: PLN_04, PLN_06 to PLN_11


def sums_to(low: int, high: int) -> dict[str, Any]:
    return {"stream_mechanism": Hybrid(epsilon=1, low=low, high=high)}


def survey_to(low: int, high: int) -> dict[str, Any]:
    return {"survey_mechanism": SquareWave(epsilon=1, low=low, high=high)}


@pytest.mark.parametrize(
    ("wanted", "changes"),
    each(
        (None, {}, sums_to(0, 4000), sums_to(0, 1), survey_to(0, 4000)),
        ("theta", *(sums_to(0, high) for high in (4001, 5000, 1 << 47))),  # PLN_04
        ("theta", sums_to(1, 410), sums_to(-1, 410), sums_to(-10, 0), sums_to(-10, -5)),
        ("audience", {"fleet": "south"}, {"stream": "gas"}, {"unit": "Wh"}),  # PLN_08
        ("range", {"ceiling": 4001}, {"low": -1}, {"low": 4000}, {"low": 4001}),  # PLN_10
        ("range", survey_to(-1, 4000), survey_to(0, 4001)),
        ("survey", survey_to(10, 1200)),
        ("slot", *({"slot_seconds": seconds} for seconds in (1, 899, 901))),  # PLN_11
    ),
)
def test_a_plan_of_what_the_policy_does_not_say_is_refused_PLN_04_PLN_08_PLN_10_PLN_11(
    wanted: str | None, changes: dict[str, Any]
) -> None:
    plan = replace(PLAN, **changes)
    assert reason(plan) == wanted
    if wanted == "theta":
        assert parse_plan(plan.to_json()) == plan


@pytest.mark.parametrize(
    ("wanted", "asked"),
    each(
        (None, {"now_s": PLAN.expires_s}, {"ratio": Ratio(178_145 * 10**30, 65_536 * 10**30)}),
        ("expired", {"now_s": PLAN.expires_s + 1}),  # PLN_07
        ("ratio", {"ratio": Ratio(178_145 * 10**30 - 1, 65_536 * 10**30)}),  # PLN_03
        ("mechanism", *({"mechanisms": frozenset(m)} for m in (["hybrid"], ["square-wave"], []))),
        ("epoch", {"epoch": PLAN.epoch}),  # PLN_06, whatever else it says
    ),
)
def test_what_a_policy_does_not_allow_is_refused_PLN_03_PLN_07(
    wanted: str | None, asked: dict[str, Any]
) -> None:
    assert reason(PLAN, **asked) == wanted


@pytest.mark.parametrize(
    ("seen", "offered", "wanted"),
    [
        (6, 7, None),
        (7, 7, "epoch"),
        (8, 7, "epoch"),
        (1, 513_888 + 1024, None),  # hours since 1970, and a few
        (1, 513_888 + 1025, "early"),
        (1, 513_888 + 1024 + 24, "early"),
        (1, 513_888 + 1024 + 25, "epoch"),
        (1, 1_000_000_001, "epoch"),
        (None, 7, None),
        (None, (1 << 32) - 1, "epoch"),
        (0, 1, None),
    ],
)
def test_pln_06_epochs_rise_and_do_not_jump(
    seen: int | None, offered: int, wanted: str | None
) -> None:
    assert reason(replace(PLAN, epoch=offered), epoch=seen) == wanted


def test_pln_10_more_codes_than_the_policy_allows_are_refused() -> None:
    count = PLAN.reporter().code_count
    assert reason(PLAN, max_codes=count) is None
    assert reason(PLAN, max_codes=count - 1) == "size"


# Encodings of one content: PLN_12


def test_pln_12_order_and_spaces_change_nothing_but_the_digest() -> None:
    again = json.dumps(dict(reversed(TABLE.items())), indent=3).encode()
    assert parse_plan(again) == PLAN
    assert digest(again) != digest(PLAN.to_json())


def test_pln_12_unknown_fields_are_ignored() -> None:
    assert parse_plan(changed("later", to={"a": [1, 2]})) == PLAN
    assert parse_plan(changed("stream_mechanism", "later", to=1)) == PLAN


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        *(((name,), ("missing", name)) for name in TABLE),
        *((("stream_mechanism", name), ("channel",)) for name in TABLE["stream_mechanism"]),
    ],
)
def test_pln_12_a_missing_field_is_refused(name: tuple[str, ...], wanted: tuple[str, ...]) -> None:
    table = json.loads(PLAN.to_json())
    *inside, last = name
    del (table[inside[0]] if inside else table)[last]
    assert refusal(json.dumps(table).encode())[: len(wanted)] == wanted


@pytest.mark.parametrize(
    ("written", "again", "wanted"),
    [
        (b'"epoch":7', b'"epoch":7,"epoch":7', "duplicate"),
        (b'"high":410', b'"high":410,"high":410', "duplicate"),
        (b'"epoch":7', b'"epoch":7.0', "number"),
        (b'"epoch":7', b'"epoch":7e0', "number"),
        (b'"epoch":7', b'"epoch":07', "json"),
        (b'"epoch":7', b'"epoch":"7"', "value"),
        (b'"epoch":7', b'"epoch":true', "value"),
        *((b'"high":410', b'"high":' + one, "number") for one in (b"410.0", b"NaN", b"Infinity")),
        (b'"high":410', b'"high":' + b"4" * 10_000, "number"),
    ],
)
def test_pln_12_other_ways_to_write_a_number_or_a_key_are_refused(
    written: bytes, again: bytes, wanted: str
) -> None:
    payload = PLAN.to_json()
    assert written in payload
    assert refusal(payload.replace(written, again))[0] == wanted


WRONG_PLACE = {"low": 0, "high": 9, "coin": [1, 1], "waves": [[2, 0, 2, 1]]}


@pytest.mark.parametrize(
    ("name", "value"),
    each(
        ("v", 0, 2, "1", True, None),  # PLN_08
        ("stream_id", 256, -1),
        ("epoch", 0, 1 << 32),
        ("issued_s", -1),
        ("expires_s", 1 << 41),
        ("slot_seconds", 0, 86_401),
        ("low", -(1 << 48)),
        ("ceiling", 1 << 48),
        ("unit", "", "W" * 17, "W\n"),
        ("fleet", "North", "a/b", "+", "#", "n" * 64),
        ("stream", "$sys", "no\u0440th", " power"),
        ("stream_mechanism", [], {"mechanism": "square-wave", **WRONG_PLACE}),
        ("survey_mechanism", None, {"mechanism": "stochastic-rounding", **WRONG_PLACE}),
        ("certificate", "", "0" * 31, "0" * 33, "0" * 31 + "g", "0" * 31 + "A", "０" * 32),
        ("certificate", 0, None, True, ["0" * 32]),
        ("store", "0123", "0123456789ABCDEF", 7),
        ("share", [1], [1, 2, 3], [True, 2], ["1", "2"], 1, None, {}),
    ),
)
def test_a_field_outside_its_range_is_refused_by_name_PLN_05_PLN_08(name: str, value: Any) -> None:
    assert refusal(changed(name, to=value)) == ("value", name)


@pytest.mark.parametrize(
    ("path", "value"),
    each(
        (("share",), [0, 0], [1, 0], [-1, 2], [3, 2], [1, 1 << 33]),
        (("stream_mechanism", "coin"), [0, 0], [1, 0], [-1, 2], [3, 2], [1], [1, 2, 3], "1/2"),
        (("stream_mechanism", "coin"), None),
        (("stream_mechanism", "high"), 0, -5, 1 << 48, "410", True, None, [410]),
    ),
)
def test_numbers_that_make_no_channel_are_refused_PLN_04_PLN_05(
    path: tuple[str, ...], value: Any
) -> None:
    assert refusal(changed(*path, to=value))[0] == "channel"


# NET_14 and everything else that may lie on a retained topic


@pytest.mark.parametrize(
    "payload",
    [
        *(b"", b"\x00" * 10_000_000, b'"' + b"x" * 10_000_000 + b'"', b"\xff\xfe\x00"),
        *(b"[" * 100_000, b'{"v":1,"fleet":' + b"[" * 100_000),
        *(b'{"v":1,"x":["' + b"]" * 100_000 + b'",' + b"[" * 100_000, b'{"v":1}'),
        *(b'{"v":1,"theta":41,"epsilon":1}', b"theta=41", b"null", b"[1,2,3]"),
    ],
    ids=lambda payload: f"{payload[:16]!r}",
)
@pytest.mark.timeout(5)
def test_net_14_garbage_is_a_message_error(payload: bytes) -> None:
    refusal(payload)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 70_000) | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)
PLACES: list[tuple[str | int, ...]] = [(name,) for name in TABLE] + [
    (kind, *place)
    for kind in ("stream_mechanism", "survey_mechanism")
    for place in (("mechanism",), ("low",), ("high",), ("coin",), ("waves",), ("waves", 0))
]


@given(st.sampled_from(PLACES), JSON)
def test_any_value_in_any_place_gives_a_plan_or_a_message_error(
    place: tuple[str | int, ...], value: Any
) -> None:
    with suppress(MessageError):
        plan = parse_plan(changed(*place, to=value))
        assert plan.reporter().code_count > 0
        reason(plan)


@given(st.integers(0, len(PLAN.to_json()) - 1), st.binary(max_size=4), st.integers(0, 6))
def test_any_damage_to_the_bytes_gives_a_plan_or_a_message_error(
    at: int, inserted: bytes, removed: int
) -> None:
    payload = PLAN.to_json()
    with suppress(MessageError):
        reason(parse_plan(payload[:at] + inserted + payload[at + removed :]))


@given(
    st.integers(2, 9),
    st.integers(0, 4),
    st.integers(1, 400_000),
    st.integers(1, 100_000),
    st.integers(1, 5_000),
)
def test_no_accepted_plan_exceeds_the_policys_ratio(
    d: int, c: int, r_num: int, r_den: int, high: int
) -> None:
    with suppress(ParameterError):
        plan = replace(PLAN, stream_mechanism=small(Piecewise, 0, high, (d, c, r_num, r_den)))
        laws = [plan.stream_mechanism.probabilities(value) for value in (0, high // 2, high)]
        worst = max(max(column) / min(column) for column in zip(*laws, strict=True))
        if reason(plan) is None:
            assert worst <= Fraction(ONE.num, ONE.den)
        elif high <= PLAN.ceiling:
            assert worst > Fraction(ONE.num, ONE.den)


# PLN_16: oversized tables


@pytest.mark.parametrize(("rows", "codes"), [(33, 32), (2, 2000), (200, 6), (1024, 2)])
def test_oversized_tables_are_refused_before_any_arithmetic_PLN_16(
    rows: int, codes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = {"weights": [[1] * codes] * rows, "outputs": list(range(codes)), "scale": 1}
    bomb = {"mechanism": "tuned", "low": 0, "high": 410, "table": weights}
    monkeypatch.setattr("edge_ldp.protocol.plan.from_plan", lambda _: pytest.fail("arithmetic"))
    assert refusal(changed("stream_mechanism", to=bomb))[0] == "size"


@pytest.mark.parametrize("size", [16_385, 45_000, 240_000, 10_000_000])
def test_messages_larger_than_any_plan_are_not_even_parsed_PLN_16(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edge_ldp.protocol.plan.loads", lambda _: pytest.fail("parsed"))
    assert refusal(PLAN.to_json().ljust(size)) == ("size", "message")


def test_every_ready_table_travels_in_a_plan() -> None:
    for epsilon in ("0.05", "1", "4", "8"):
        with suppress(ParameterError):  # no ready table for this ε
            tuned = Tuned(epsilon=epsilon, low=0, high=410)
            plan = replace(PLAN, stream_mechanism=tuned)
            assert parse_plan(plan.to_json()) == plan

"""What an aggregator's configuration means, in words for its operator; nothing is sent."""

from collections.abc import Iterator
from math import exp

from msgspec import UNSET, UnsetType

from aggregator.answers.parts import AnswerPart, Share, Span
from aggregator.config import AggregatorConfig, StreamTable

MUCH_EPSILON = 8
LITTLE_W = 500  # a kettle takes more


class AskedSums(AnswerPart, frozen=True, kw_only=True):
    """What homes are asked to release, too: share of the window's ε, days, cells, their offset_s.

    block_hours: so many hours share one noise.
    """

    share: str
    days: int
    cells: int
    block_hours: int
    offset_s: Span


class CheckedStream(AnswerPart, frozen=True, kw_only=True):
    """What a stream's configuration means.

    name, id, unit, values (range), epsilon, theta, mechanism; noise_at_ceiling: standard deviation
    of one report before anything is known, in the unit; survey_share (null: chosen with θ);
    horizon: how many values, or which question, answers are to be best for; home_sums: what
    invitations ask of homes besides, as configured, or null (sums of any layout are counted);
    is_summed_alone (else left out): they are asked for no reports, which most here is of.
    """

    name: str
    id: int
    unit: str
    values: list[int]
    epsilon: str
    theta: str
    mechanism: str
    noise_at_ceiling: int
    survey_share: Share | None
    horizon: int | str
    home_sums: AskedSums | None
    is_summed_alone: bool | UnsetType = UNSET


class TriedPart(AnswerPart, frozen=True, kw_only=True):
    """What was tried: what, outcome ("ok", "fails", "untried"), told, remedy ("": none)."""

    what: str
    outcome: str
    told: str
    remedy: str


class CheckAnswer(AnswerPart, frozen=True, kw_only=True):
    """What `check` answers.

    fleet; broker; enrolment ("open", "store", or how many are listed); streams[]; warnings[]: what
    is allowed and yet hardly meant, in words; live[], with --live alone: what was tried.
    """

    fleet: str
    broker: str
    enrolment: str
    streams: list[CheckedStream]
    warnings: list[str]
    live: list[TriedPart] | UnsetType = UNSET


def check_answer(config: AggregatorConfig) -> CheckAnswer:
    """Return what `check` answers when nothing is tried."""
    broker, listed = config.broker, config.intake.enrolment
    link = "with TLS" if broker.use_tls else "without TLS"
    return CheckAnswer(
        fleet=config.fleet,
        broker=f"{broker.host}:{broker.use_port} {link}",
        enrolment=listed if isinstance(listed, str) else f"{len(listed)} devices",
        streams=[_stream(stream) for stream in config.streams],
        warnings=[told for stream in config.streams for told in _warnings(stream)],
    )


def _warnings(stream: StreamTable) -> Iterator[str]:
    """Yield what is allowed and yet hardly meant."""
    if stream.epsilon > MUCH_EPSILON:
        yield (
            f"{stream.name}: ε {stream.epsilon} hides little: one report may make one value"
            f" {exp(stream.epsilon):,.0f} times as likely as another; devices' owners allow 1"
            " unless they say otherwise"
        )
    if stream.unit == "W" and stream.ceiling < LITTLE_W:
        yield (
            f"{stream.name}: no home stays below {stream.ceiling} W: larger loads count as that;"
            " is the ceiling in kW by mistake?"
        )


def check_text(view: CheckAnswer) -> str:
    """Return the facts as lines."""
    facts = {"fleet": view.fleet, "broker": view.broker, "enrolment": view.enrolment}
    lines = [f"{key:<12}{fact}" for key, fact in facts.items()]
    for stream in view.streams:
        low, high = stream.values
        unit, asked = stream.unit, stream.horizon
        noise = f"one of them errs by {stream.noise_at_ceiling:,} {unit} while θ is the ceiling"
        share = "the share of surveys is chosen with θ"
        if stream.survey_share is not None:
            share = f"{stream.survey_share:.2%} of the slots are surveys once θ is chosen"
        asked = f"{asked:,} values as a whole" if isinstance(asked, int) else asked
        head = f"{'stream':<12}{stream.name} (id {stream.id}): {low:,} to {high:,} {unit}"
        reports = [
            f"{head}, ε {stream.epsilon} a report",
            f"{'':<12}θ {stream.theta}, {stream.mechanism} reports; {noise}",
            f"{'':<12}{share}, for {asked}",
        ]
        lines += [head] if stream.is_summed_alone else reports
        lines.append(f"{'':<12}{home_sums_text(stream.home_sums)}")
    lines += [f"warning: {told}" for told in view.warnings]
    return "\n".join(lines) + "\n"


def asked_sums(stream: StreamTable) -> AskedSums | None:
    """Return what invitations ask homes for of a stream, besides reports or instead of them."""
    asked = stream.home_sums
    return None if asked is None else AskedSums.of(asked, share=str(asked.share))


def home_sums_text(sums: AskedSums | None) -> str:
    """Return the same in words."""
    if sums is None:
        return "homes are asked for no sums; those that send some are counted"
    days = "1 day" if sums.days == 1 else f"{sums.days} days"
    cells = f" in {sums.cells} parts of the day" if sums.cells > 1 else ""
    cells += f" from {sums.offset_s:,} s past midnight UTC" if sums.offset_s else ""
    cells += f", {sums.block_hours} h of which share a noise" if sums.block_hours > 1 else ""
    return f"homes are asked for their sums of {days}{cells}, at {sums.share} of a window's ε"


def _stream(stream: StreamTable) -> CheckedStream:
    return CheckedStream.of(
        stream,
        values=[stream.low, stream.ceiling],
        epsilon=str(stream.epsilon),
        noise_at_ceiling=round(stream.sums(stream.ceiling).worst_variance ** 0.5),
        survey_share=None if stream.survey_share is None else float(stream.survey_share),
        home_sums=asked_sums(stream),
        is_summed_alone=stream.is_summed_alone or UNSET,
    )

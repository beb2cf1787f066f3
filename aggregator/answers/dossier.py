"""What a data-protection officer asks of a fleet, every number computed: figures and sentences."""

from collections.abc import Sequence

from aggregator.answers import promises
from aggregator.answers.fleet.check_view import AskedSums, asked_sums, home_sums_text
from aggregator.answers.lookup import newest_plan
from aggregator.answers.parts import AnswerPart, Span
from aggregator.answers.plan_view import EpsilonStep, epsilon_steps, epsilon_texts
from aggregator.answers.promises import attacker
from aggregator.config import AggregatorConfig, StreamTable
from aggregator.counting.retention import DAY_S
from aggregator.plans.epsilons import epsilon_changes
from aggregator.store.contract import PlanRow, Reader, stored_plan
from edge_ldp.protocol.released import FIRST_SUMS_KEY
from edge_ldp.version import __version__


class DossierStream(AnswerPart, frozen=True, kw_only=True):
    """A stream.

    stream, unit, low, ceiling, slot_seconds, home_sums (as of `check`), asked (ε as written),
    epsilon over time, epsilon_changes[] (as of `plan show`), plan in force, or null; epsilon and
    plan are null of gas, of which homes give sums alone.
    """

    stream: str
    unit: str
    low: int
    ceiling: int
    slot_seconds: Span
    home_sums: AskedSums | None
    asked: str
    epsilon: promises.EpsilonOverTime | None
    epsilon_changes: list[EpsilonStep]
    plan: promises.PlanPromise | None


class KeptFor(AnswerPart, frozen=True, kw_only=True):
    """How long counts are kept: days by bucket, hour and day (null: for ever).

    bucket_days, hour_days, day_days; resend_days: for how long a report may come again; archive:
    whether every report is archived.
    """

    bucket_days: int | None
    hour_days: int | None
    day_days: int | None
    resend_days: float
    archive: bool


class AccessRules(AnswerPart, frozen=True, kw_only=True):
    """Who sees what.

    least_devices of a figure, enrolment, quarantine, tls, signed_plans, console_tokens.
    """

    least_devices: int
    enrolment: str
    quarantine: str
    tls: bool
    signed_plans: bool
    console_tokens: bool


class DossierAnswer(AnswerPart, frozen=True, kw_only=True):
    """What `dossier` answers.

    fleet, version; devices; streams[]; retention; access; curated: devices that publish a stream of
    their own; summed: series of sums that homes made themselves; attacker, who chooses every plan.
    """

    fleet: str
    version: str
    devices: int
    streams: list[DossierStream]
    retention: KeptFor
    access: AccessRules
    curated: int
    summed: int
    attacker: promises.Attacker


USE = "Means, totals, load curves and distributions of many homes together; of no single home."
OPERATORS = (
    "Yours to write: no figure of a fleet tells of them. The headings so far are those of a GB"
    " network operator's data privacy plan (Western Power Distribution, 2018, for Ofgem)."
)
OUR_WORDS = (
    "That guideline (March 2025) has a pyramid of nine parts, and no list of questions: the words"
    " are ours."
)
NIST = {
    "Privacy parameters: which ε, and is there a δ": (
        "ε of a report: {asked}; of a window, a day, a year: above. Reports and homes' sums have no"
        " δ."
    ),
    "Unit of privacy: what is one person's data": (
        "One value of one slot of one device (event level), which may be any other (bounded); by"
        " composition a window's values together, at its ε. Not a home's whole history, nor that it"
        " takes part."
    ),
    "Algorithms and correctness: which, and who proved them": (
        "Mechanisms: {made}: tables of integers, proved anew for this page without floating point,"
        " or by you: `edge-ldp certify`. Randomness is the operating system's."
    ),
    "Utility: how exact is a figure": (
        "Each has an interval that assumes nothing of how values are spread; `edge-ldp forecast`"
        " tells its width beforehand."
    ),
    "Bias: whom does noise hit": (
        "Small groups: their intervals are wider. Means are unbiased, and homes weigh by their"
        " time, not by how often they report; single hours count values above θ as θ."
    ),
    "Access control: who sees what": "Security processes, above.",
    "Trust models: whom must a home trust": (
        "Its own device and its owner's policy (local model). Broker and aggregator see no reading."
    ),
    "Side channels: what else tells": (
        "When a device reports and is there; how long randomising takes was not measured on boards."
    ),
    "Data collection exposure: where do readings lie": (
        "In the device's memory until they are randomised. What the same meter tells a utility"
        " otherwise, no ε here covers."
    ),
}


def dossier_answer(reader: Reader, config: AggregatorConfig) -> DossierAnswer:
    """Return what `dossier` answers."""
    rows = reader.plans()
    kept, mode = config.retention, config.intake.enrolment
    return DossierAnswer(
        fleet=config.fleet,
        version=__version__,
        devices=reader.device_sums(0).enrolled,
        streams=[_stream(stream, rows) for stream in config.streams],
        retention=KeptFor.of(
            kept,
            resend_days=config.intake.resend_window_s / DAY_S,
            archive=config.archive is not None,
        ),
        access=AccessRules(
            least_devices=config.query.min_devices,
            enrolment=mode if isinstance(mode, str) else "listed",
            quarantine=config.guard.quarantine,
            tls=config.broker.use_tls,
            signed_plans=config.plans.signing_key_file is not None,
            console_tokens=config.console.tokens_file is not None,
        ),
        curated=len({row.device for row in reader.released_chunks()}),
        summed=sum(row.devices for row in reader.report_sums() if row.stream >= FIRST_SUMS_KEY),
        attacker=attacker(config.planned),
    )


def _stream(stream: StreamTable, rows: Sequence[PlanRow]) -> DossierStream:
    plans = {row.epoch: stored_plan(row) for row in rows if row.stream == stream.id}
    newest = None if stream.is_summed_alone else newest_plan(rows, stream)
    return DossierStream.of(
        stream,
        stream=stream.name,
        home_sums=asked_sums(stream),
        asked=str(stream.epsilon),
        epsilon=None if stream.is_summed_alone else promises.epsilon_over_time(stream),
        epsilon_changes=epsilon_steps(epsilon_changes(plans)),
        plan=None if newest is None else promises.plan_promise(plans[newest.epoch], newest.payload),
    )


def dossier_text(view: DossierAnswer) -> str:
    """Return the dossier as Markdown, for printing."""
    lines = [f"# Privacy dossier of the fleet {view.fleet}", ""]
    for head, sentences in dossier_parts(view):
        lines += [f"## {head}", "", *(f"- {sentence}" for sentence in sentences), ""]
    return "\n".join(lines)


def dossier_parts(view: DossierAnswer) -> list[tuple[str, list[str]]]:
    """Return the dossier as headings and their sentences."""
    return [
        ("Data to be accessed", _data(view)),
        ("Use of consumption data", [USE]),
        ("Data processing", _retention(view.retention)),
        (
            "Data protection techniques",
            [sentence for one in view.streams for sentence in _stream_sentences(one)],
        ),
        ("Privacy impact assessment", _weak(view)),
        ("Security processes", _access(view.access)),
        ("Executive summary, commercial use, stakeholder engagement", [OPERATORS]),
        ("NIST SP 800-226, part by part", _nist(view)),
    ]


def _data(view: DossierAnswer) -> list[str]:
    values = [
        f"{one.stream}: one value every {one.slot_seconds:,} s, {one.low:,} to"
        f" {one.ceiling:,} {one.unit}, "
        + (
            "summed on the device and given noise there before a sum is stored or sent."
            if one.epsilon is None
            else "randomised on the device before it is stored or sent."
        )
        for one in view.streams
    ]
    others = (
        "Kept besides: devices' names, groups, software, last status, on which days of a month one"
        " came, which slots they reported."
    )
    curated = f"{view.curated:,} devices publish a stream of their own under central privacy."
    summed = (
        f"{view.summed:,} series are of homes' own sums of whole periods, given noise at home from"
        " a share of the window's ε; each is kept as it came, and only totals are given out."
    )
    kept = ((view.curated, curated), (view.summed, summed))
    devices = f"{view.devices:,} devices are enrolled. Software: edge-ldp {view.version}."
    return [devices, *values, others, *(told for many, told in kept if many)]


def _nist(view: DossierAnswer) -> list[str]:
    """Return an answer to what each part asks; what another heading says is not said again."""
    plans = [one.plan for one in view.streams if one.plan is not None]
    known = {
        "asked": ", ".join(f"{one.stream} {one.asked}" for one in view.streams if one.epsilon)
        or "of no report",
        "made": ", ".join(sorted({name for one in plans for name in one.mechanisms})) or "none yet",
    }
    told = [f"{asked}? {answer.format(**known)}" for asked, answer in NIST.items()]
    return [OUR_WORDS, *told]


def _stream_sentences(one: DossierStream) -> list[str]:
    name, epsilon, plan = one.stream, one.epsilon, one.plan
    asked = f"{name}: {home_sums_text(one.home_sums)}; each home's owner decides."
    if epsilon is None:
        return [asked, f"{name}: no device that is invited reports a single value of it."]
    window = epsilon.default_window
    over_time = (
        f"{name}: ε {one.asked} a report. With the window that ships ({window.reports}"
        f" reports in any {window.slots} slots): ε {epsilon.window:g} in any window,"
        f" {epsilon.day:.2f} a day, {epsilon.year:,.0f} a year. Every slot, where an owner"
        f" allows it: {epsilon.every_slot:g} a day."
    )
    changed = [f"{name}: {text}." for text in epsilon_texts(one.epsilon_changes)]
    if plan is None:
        return [over_time, asked, f"{name}: no plan was issued yet, so no device reports."]
    verdict = "every claim of its certificate holds" if plan.holds else "its certificate FAILS"
    proved = (
        f"{name}: plan {plan.epoch} in force; {verdict}, proved anew for this page: no code is"
        f" more than {plan.ratio} times likelier under one value than under another, ε ="
        f" {plan.epsilon:.6f}. Certificate {plan.digest}."
    )
    guess = (
        f"{name}: who knows that a value is one of two, equally likely, says rightly from one"
        f" report which it was in at most {100 * plan.guess:.1f} % of cases (50 % without it)."
    )
    moved = f"{plan.shift_per_percent:,.1f} {one.unit}"
    lies = f"{name}: each per cent of lying devices moves a mean by at most {moved}."
    return [over_time, asked, *changed, proved, guess, lies]


def _retention(kept: KeptFor) -> list[str]:
    spans = [
        f"by {name} {'for ever' if days is None else f'{days:,} days'}"
        for name, days in (
            ("time bucket", kept.bucket_days),
            ("hour", kept.hour_days),
            ("day", kept.day_days),
        )
    ]
    return [
        f"Counts are kept {', '.join(spans)}.",
        f"A device may send a report again for {kept.resend_days:g} days.",
        "Every counted report is archived." if kept.archive else "No single report is archived.",
    ]


def _access(access: AccessRules) -> list[str]:
    least = access.least_devices
    link = "encrypted" if access.tls else "NOT encrypted"
    plans = "signed" if access.signed_plans else "NOT signed"
    token = "for a token" if access.console_tokens else "no token, on this machine alone"
    mode, held = access.enrolment, access.quarantine
    return [
        f"Figures of fewer than {least:,} devices are not given out."
        if least > 1
        else "Figures are given out however few devices they are of: [query] min_devices is 1.",
        f"Who may report: {mode}. Quarantine of marked devices: {held}.",
        f"The link to the broker is {link}; plans are {plans}; the console asks {token}.",
        "The console reads statistics and devices' names. It holds no key and cannot write.",
    ]


def _weak(view: DossierAnswer) -> list[str]:
    a_year = max((one.epsilon.year for one in view.streams if one.epsilon), default=0)
    habit = (
        "ε protects a value, not a habit: what is the same in every slot shows in the mean of many"
        " reports, or of sums."
    )
    if a_year:
        habit += (
            f" The total of a year, {a_year:,.0f} with the window that ships, promises nothing."
        )
    policy = (
        "What an owner's policy allows is known to his device, not to the aggregator: a device"
        " refuses a plan that asks for more."
    )
    return [
        habit,
        *_attacked(view.attacker),
        "That a device exists, which slots it reported and under which plan is not hidden.",
        policy,
        "A liar who mixes at legal rates is not noticed; how far he moves a mean is bounded above.",
    ]


def _attacked(found: promises.Attacker) -> list[str]:
    by_load: dict[str, list[str]] = {}
    for one in found.errors:
        told = f"{one.error_w:g} W after {one.days:,} day{'s' if one.days != 1 else ''}"
        by_load.setdefault(one.load, []).append(told)
    loads = "; ".join(f"{load}: {', '.join(told)}" for load, told in by_load.items())
    known = (
        "Who chooses every plan, within the policy that ships, and knows that a home's base load is"
        f" at most 3,000 W, errs about it (root mean square in simulation, ε {found.epsilon},"
        f" {found.reports_a_day} reports a day, values to {found.ceiling:,} W) by the"
        f" following. A load that {loads}."
    )
    unlike = f"That was not measured for: {', '.join(found.unlike)}."
    return [known, *([unlike] if found.unlike else [])]

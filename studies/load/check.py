"""What an aggregator counted against what it was sent."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aggregator.config import AggregatorConfig
    from aggregator.store.contract import Reader
    from studies.load.traffic import Traffic
    from studies.load.truth import ExpectedCounts

LAST_BUCKET = 1 << 32
SHOWN = 20


def check_counts(reader: Reader, config: AggregatorConfig, truth: ExpectedCounts) -> dict[str, Any]:
    """Return reports expected and counted, how many cells are wrong, and the first of them."""
    wrong, shown, counted = 0, [], 0
    for stream in config.streams:
        rows = reader.counts(stream.id, 0, LAST_BUCKET)
        counted += int(rows.count.sum())
        found = list(truth.wrong(stream.id, rows.epoch, (rows.bucket, rows.code, rows.count)))
        wrong += len(found)
        shown += [
            {
                "stream": one.stream,
                "epoch": one.epoch,
                "bucket": one.bucket,
                "code": one.code,
                "expected": one.expected,
                "counted": one.counted,
            }
            for one in islice(found, SHOWN)
        ]
    return {"expected": truth.reports, "counted": counted, "wrong": wrong, "first": shown[:SHOWN]}


def check_refused(reader: Reader, truth: ExpectedCounts) -> dict[str, Any]:
    """Return messages refused, by reason, and the reasons whose number is not what was sent."""
    found: dict[str, list[int]] = {}
    for row in reader.refused():
        one = found.setdefault(row.reason, [0, 0])
        one[0] += row.messages
        one[1] += row.reports
    sent = {
        reason: [messages, truth.refused_reports[reason]]
        for reason, messages in truth.refused.items()
    }
    reasons = sorted(found.keys() | sent.keys())
    return {
        "refused": {reason: found.get(reason, [0, 0])[0] for reason in reasons},
        "refused_wrong": [one for one in reasons if found.get(one) != sent.get(one)],
    }


def check_accounts(reader: Reader, traffic: Traffic) -> dict[str, Any]:
    """Return created, counted, rejected, expired and pending, and the accounts that do not add up.

    Of every device and stream: what its present state made must be what was settled of it, and
    nothing may be missing, unless it was `gone` with a lost state.
    """
    index = {name: at for at, name in enumerate(traffic.names)}
    sums = dict.fromkeys(("created", "counted", "rejected", "expired", "pending"), 0)
    wrong = []
    for (device, stream), record in reader.records():
        if device not in index:
            continue
        made = traffic.created(index[device])
        settled = record.counted + record.rejected - record.before
        if (record.created, settled + record.expired, record.pending) != (made, made, 0):
            wrong.append(f"{device}/{stream}")
        for name in sums:
            sums[name] += getattr(record, name)
        sums["created"] += record.before
    return {"accounts": sums, "gone": traffic.truth.gone, "accounts_wrong": wrong[:SHOWN]}

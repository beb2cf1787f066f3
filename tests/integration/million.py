"""A frame of each of very many devices, in one window, into an aggregator's store; then SIGKILL.

`python -m tests.integration.million CONFIG DEVICES` works on a store that the aggregator has made;
it prints the seconds of CPU and the peak memory (KiB), and ends itself without closing anything.
"""

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

from aggregator.config import load_config
from aggregator.counting.refusals import Rules, StreamRules, allowed_codes
from aggregator.intake.intake import commit
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.device.frame import encode
from edge_ldp.protocol.messages import topic
from edge_ldp.protocol.plan import parse_plan
from edge_ldp.service.broker import Message

FLUSH, REPORTS = 1000, 4


def main() -> None:
    config = load_config(Path(sys.argv[1]))
    (stream,) = config.streams
    store = SqliteStore.open(Path(config.store.path or ""))
    plan = parse_plan(store.plans()[-1].payload)
    rules = Rules(
        {
            stream.id: StreamRules(
                stream.slot_seconds, stream.bucket_slots, {1: allowed_codes(plan)}
            )
        },
        *(
            None,
            config.intake.max_devices,
            config.intake.resend_window_s,
            300,
            plan.issued_s + 60.0,
        ),
    )
    first = plan.stream_mechanism.code_count
    frames = [
        encode(
            stream.id, 1, 1, range(plan.issued_s, plan.issued_s + REPORTS), [first + at] * REPORTS
        )
        for at in range(plan.survey_mechanism.code_count)
    ]
    devices = int(sys.argv[2])
    for start in range(0, devices, FLUSH):
        messages = [
            Message(topic(config.fleet, "report", f"home-{at:07d}"), frames[at % len(frames)])
            for at in range(start, min(devices, start + FLUSH))
        ]
        commit(store, fleet=config.fleet, messages=messages, rules=rules)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.write(json.dumps({"cpu_s": time.process_time(), "peak_kib": peak}))
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()

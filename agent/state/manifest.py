"""The privacy manifest: what is measured, how it is protected, and who may see what, in one object.

Made from the configuration alone, so nothing in it depends on a value; it goes out in the retained
status and is what `edge-ldp agent check` tells its owner. Integers and words only, as in every
message.
"""

from agent.config.curator_section import CuratorTable
from agent.config.sections import AgentConfig

VERSION = 1
NOBODY = "nobody: they stay in this device's memory for a slot"
THE_HOME = "the household's own broker (local tap), and whoever may read there"


def manifest(config: AgentConfig) -> dict[str, object]:
    """Return the manifest of a configuration; a curator's tells what of a home it publishes."""
    ratio, window = config.ratio, config.window
    facts: dict[str, object] = {
        "v": VERSION,
        "measures": [
            {
                "stream": stream.name,
                "quantity": stream.quantity,
                "unit": stream.unit,
                "low": stream.low,
                "ceiling": stream.ceiling,
                "slot_seconds": stream.slot_seconds,
            }
            for stream in config.local_streams
        ],
        "epsilon_per_report": str(config.policy.epsilon),
        "ratio": [ratio.num, ratio.den],
        "window": {
            "reports": window.reports,
            "slots": window.slots,
            "period": window.period,
        },
        "mechanisms": sorted(config.policy.mechanisms),
        "kept_days": config.sending.max_age_days,
        "signed_plans": bool(config.plans.keys),
        "encrypted": config.broker.use_tls,
        "local_tap": config.tap is not None or config.share is not None,
        "who": {
            "readings": NOBODY if config.tap is None else THE_HOME,
            "reports": "the broker and the aggregator of the fleet",
            "plans": "everybody of the fleet",
            "state": "whoever may read this device's disk: randomised codes, never a reading",
        },
    }
    if config.sharing:
        facts["sums"] = [
            {
                "stream": stream.name,
                "quantity": stream.quantity,
                "unit": stream.unit,
                "slot_seconds": stream.slot_seconds,
                "days": stream.sums.days,
                "cells": stream.sums.cells,
                "share": str(stream.sums.share),
            }
            for stream in config.streams
            if stream.sums is not None
        ]
    return facts if config.curator is None else _curated(config, config.curator, facts)


def _curated(
    config: AgentConfig, table: CuratorTable, facts: dict[str, object]
) -> dict[str, object]:
    """Return the manifest of a device that publishes its streams: no crowd, no plans, no window."""
    crowd = ("epsilon_per_report", "ratio", "window", "mechanisms", "signed_plans", "who")
    readings = NOBODY if config.tap is None else THE_HOME
    return {
        **{key: value for key, value in facts.items() if key not in crowd},
        "mode": config.mode,
        "curated": {
            "epsilon": str(table.epsilon),
            "theta_epsilon": str(table.theta_epsilon or table.epsilon),
            "method": table.method,
            "readings": table.readings or 0,
            "chunk": table.chunk,
            "missing": table.missing,
        },
        "who": {
            "readings": readings,
            "released": "the broker and the aggregator of the fleet: every slot, with noise",
            "state": "whoever may read this device's disk: released values, and the key of the "
            "running chunk, with which that chunk's readings can be found",
        },
    }

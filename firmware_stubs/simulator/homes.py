"""One day of a whole fleet, from values to frames: the device's draws over arrays.

The values live only here, in memory, as on a device. Entropy is an argument; production passes the
operating system's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.vectorized import draw_many, encode_frame, perturb_many

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge_ldp.device.draw import Entropy
    from edge_ldp.protocol.plan import Plan

    Ints = NDArray[np.int64]


def randomise(plan: Plan, values: Ints, entropy: Entropy) -> Ints:
    """Return one code for each value, shape as given: survey or stream by the plan's coin.

    Stream codes come first, survey codes follow them (docs/design.md, Messages). Every value is
    drawn for once: whoever keeps the codes must not call this again for the same slots.
    """
    num, den = plan.share
    flat = values.ravel()
    surveyed = draw_many(den, len(flat), entropy=entropy) < num
    codes = np.empty(len(flat), np.int64)
    stream, survey = plan.stream_mechanism, plan.survey_mechanism
    codes[~surveyed] = perturb_many(stream, flat[~surveyed], entropy=entropy)
    codes[surveyed] = stream.code_count + perturb_many(survey, flat[surveyed], entropy=entropy)
    return codes.reshape(values.shape)


def day_frames(  # noqa: PLR0913, PLR0917 (the fields of a frame)
    plan: Plan,
    values: Ints,
    first_slot: int,
    batch: int,
    entropy: Entropy,
    series: int = 0,
    tag: int = 0,
) -> list[bytes]:
    """Return one frame for each home: its reports of consecutive slots from `first_slot`.

    Shape: values is (homes, slots), unit of the stream; 1 to 1024 slots. All homes use the same
    batch number and series, for they all started together.
    """
    codes = randomise(plan, values, entropy)
    slots = np.arange(first_slot, first_slot + values.shape[1])
    return [
        encode_frame(plan.stream_id, batch, plan.epoch, slots, row, series, tag) for row in codes
    ]

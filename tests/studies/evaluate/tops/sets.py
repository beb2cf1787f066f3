"""A small stream for these tests: values of a fixed rule, no noise."""

import numpy as np

from studies.evaluate.study import Values


def small(name: str = "own", count: int = 4352, low: int = 0) -> Values:
    values = (np.arange(count) ** 2 * 7 + np.arange(count)) % 61
    return Values(name, values.astype(np.int64) + low, low, low + 100, "W", "a rule")

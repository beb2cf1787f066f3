"""What the authors' code gives on their two shipped data sets, 12 runs each: to compare with.

SW is EMS with its last row mended, without pruning; SW-W is EM with pruning. Both with the
published constants of eq 8, m = 65,536, r = 2^20, stream ε = 1, 1024 buckets; the error is the
expectation under the hybrid mechanism on the stream that follows the survey.
Source: runs of the published code (dp-cont) at commit 7a1e85a, made to run again.
"""

from typing import NamedTuple

RUNS = 12


class Published(NamedTuple):
    """Mean and standard deviation over runs of θ and of the expected squared error."""

    theta: float
    theta_sd: float
    mse: float
    mse_sd: float


PUBLISHED: dict[tuple[str, str, float], Published] = {
    ("pos", "SW", 0.2): Published(596.4, 343.7, 1.706e11, 2.275e11),
    ("pos", "SW", 0.6): Published(231.4, 161.3, 2.85e10, 3.563e10),
    ("pos", "SW", 1.0): Published(347.5, 287.2, 7.029e10, 8.562e10),
    ("pos", "SW", 1.6): Published(228.9, 185.4, 3.208e10, 4.841e10),
    ("pos", "SW", 2.0): Published(223.8, 145.4, 2.57e10, 2.811e10),
    ("pos", "SW-W", 0.2): Published(170.6, 45.97, 1.147e10, 6.421e09),
    ("pos", "SW-W", 0.6): Published(62.25, 25.56, 1.842e09, 1.554e09),
    ("pos", "SW-W", 1.0): Published(43.06, 11.8, 2.276e09, 2.264e09),
    ("pos", "SW-W", 1.6): Published(35.99, 10.84, 4.378e09, 5.426e09),
    ("pos", "SW-W", 2.0): Published(28.39, 3.135, 6.879e09, 5.125e09),
    ("retail", "SW", 0.2): Published(6176, 3548, 1.826e13, 2.359e13),
    ("retail", "SW", 0.6): Published(2871, 2272, 4.772e12, 6.214e12),
    ("retail", "SW", 1.0): Published(4083, 3304, 9.571e12, 1.085e13),
    ("retail", "SW", 1.6): Published(2831, 2058, 4.561e12, 5.883e12),
    ("retail", "SW", 2.0): Published(2807, 1629, 3.816e12, 3.727e12),
    ("retail", "SW-W", 0.2): Published(1583, 505.3, 1.013e12, 6.638e11),
    ("retail", "SW-W", 0.6): Published(339.1, 203.5, 5.663e10, 7.511e10),
    ("retail", "SW-W", 1.0): Published(140.7, 73.59, 9.444e09, 1.177e10),
    ("retail", "SW-W", 1.6): Published(67.02, 24.57, 2.319e09, 1.766e09),
    ("retail", "SW-W", 2.0): Published(63, 21.09, 2.462e09, 1.515e09),
}

"""How arrays are called in annotations: of whole numbers, real ones, 64-bit words, and truth."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
WordArray = NDArray[np.uint64]
Truths = NDArray[np.bool_]

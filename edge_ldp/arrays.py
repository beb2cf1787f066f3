"""How arrays are called in annotations: of whole numbers, and of real ones."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

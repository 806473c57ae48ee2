"""`workbench.draws` for numpy arrays: the same random numbers, computed many at a time. Never loaded on a mote."""

import numpy as np


def mix64(z: np.ndarray) -> np.ndarray:
    """Return `draws.mix64` of each number of a uint64 array of any shape; the arithmetic wraps around at 2**64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))

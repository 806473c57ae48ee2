"""`workbench.draws` for arrays: the same numbers, made many at a time with numpy. Never on a mote."""

import numpy as np


def mix64(z: np.ndarray) -> np.ndarray:
    """`draws.mix64` of arrays of 64 bits (uint64, any shape), which wrap around by themselves."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))

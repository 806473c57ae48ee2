"""Random draws for code compiled with numba, equal to `workbench.draws` for equal keys and counters.

``key`` is a uint64, ``counter`` an integer, 0 or more. ``core`` is the run's `layout.Core`, the arrays of the engine.
"""

import numpy as np

from workbench.sim.fast.compiled import compiled

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FACTOR_1 = np.uint64(0xBF58476D1CE4E5B9)
_FACTOR_2 = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 1.0 / (1 << 53)


@compiled
def mix64(z):
    """Return a hash of the uint64 ``z``, by the output function of SplitMix64."""
    z = (z ^ (z >> np.uint64(30))) * _FACTOR_1
    z = (z ^ (z >> np.uint64(27))) * _FACTOR_2
    return z ^ (z >> np.uint64(31))


@compiled
def bits(key, counter):
    """Return 64 random bits: element ``counter`` of the random sequence that ``key`` identifies."""
    return mix64(key + np.uint64(counter + 1) * _GOLDEN)


@compiled
def uniform(key, counter):
    """Return a random float in [0, 1): element ``counter`` of the random sequence that ``key`` identifies."""
    return np.float64(bits(key, counter) >> np.uint64(11)) * _TO_UNIT


@compiled
def below(key, counter, bound):
    """Return a random integer in [0, bound): element ``counter`` of the random sequence that ``key`` identifies.

    ``bound``: at most 2**32.
    """
    return np.int64(((bits(key, counter) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@compiled
def key_of(prefix, word):
    """Extend the key ``prefix`` by the number ``word``.

    If ``prefix`` is ``draws.make_key(*numbers)``, the result is ``draws.make_key(*numbers, word)``.
    """
    return mix64(prefix ^ mix64(np.uint64(word) + _GOLDEN))


@compiled
def stream_uniform(core, i):
    """Return the next float in [0, 1) of the random stream that belongs to node ``i``."""
    core.drawn[i] += 1
    return uniform(core.protocol_keys[i], core.drawn[i] - 1)


@compiled
def stream_below(core, i, bound):
    """Return the next integer in [0, bound) of the random stream that belongs to node ``i``."""
    core.drawn[i] += 1
    return below(core.protocol_keys[i], core.drawn[i] - 1, bound)

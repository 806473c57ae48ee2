"""Counter-based random draws: every draw is a hash of (seed, node, purpose, counter).

Theory of operation
    A *key* is computed once from the scenario's seed and the purpose of the draw (a node, a link, ...). Draw number
    ``counter`` of that key is SplitMix64's output function applied to ``key + (counter + 1) * GOLDEN``. GOLDEN is
    SplitMix64's increment, 2**64 divided by the golden ratio. No draw depends on any other draw. So a scenario
    gives the same trace in any process, in any Spark task and in either engine.

Reference
    G. Steele, D. Lea, C. Flood: Fast splittable pseudorandom number generators, OOPSLA 2014 (SplitMix64);
    J. Salmon et al.: Parallel random numbers: as easy as 1, 2, 3, SC 2011 (counter-based generators).

This file runs on a mote too (MicroPython's subset of Python).
"""

import math

_MASK = 0xFFFFFFFFFFFFFFFF
GOLDEN = 0x9E3779B97F4A7C15

# The purpose of a node's own draws. The purposes of a simulation's draws are in purposes.py.
PROTOCOL = 3

_TO_UNIT = 1.0 / (1 << 53)


def mix64(number):
    """Return SplitMix64's output function of an integer: 64 well-mixed bits.

    Only the lowest 64 bits of ``number`` count.
    """
    z = number & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def make_key(seed, *numbers):
    """Return a 64-bit key: the hash of a seed and any number of integers (purpose, node, link, ...)."""
    key = mix64(seed + GOLDEN)
    for number in numbers:
        key = mix64(key ^ mix64(number + GOLDEN))
    return key


def bits(key, counter):
    """Return draw number ``counter`` of ``key`` as an integer of 64 random bits."""
    return mix64(key + (counter + 1) * GOLDEN)


def uniform(key, counter):
    """Return draw number ``counter`` of ``key`` as a float in [0, 1) with 53 random bits."""
    return (mix64(key + (counter + 1) * GOLDEN) >> 11) * _TO_UNIT


def below(key, counter, bound):
    """Return draw number ``counter`` of ``key`` as an integer in [0, bound); ``bound`` is at most 2**32."""
    return ((mix64(key + (counter + 1) * GOLDEN) >> 32) * bound) >> 32


class Stream:
    """A sequence of random numbers that its key determines: the random number generator of a protocol node."""

    def __init__(self, key, counter=0):
        self.key = key
        self.counter = counter

    def bits(self):
        """Return the next 64 random bits."""
        self.counter += 1
        return bits(self.key, self.counter - 1)

    def uniform(self):
        """Return the next random float in [0, 1)."""
        self.counter += 1
        return uniform(self.key, self.counter - 1)

    def below(self, bound):
        """Return the next random integer in [0, bound)."""
        self.counter += 1
        return below(self.key, self.counter - 1, bound)

    def normal(self):
        """Return the next random number with the standard normal distribution, from two uniform ones (Box, Muller)."""
        radius = math.sqrt(-2.0 * math.log(1.0 - self.uniform()))
        return radius * math.cos(2.0 * math.pi * self.uniform())

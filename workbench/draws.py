"""Counter-based random draws: every draw is a hash of (seed, node, purpose, counter).

Theory of operation
    A *key* is made once from the scenario's seed and what the draw is for (a node, a link, a purpose). Draw
    number ``counter`` of that key is SplitMix64's output function applied to ``key + (counter + 1) * golden``.
    No draw depends on who else drew before it, so a scenario gives the same trace in any process, in any Spark
    task and in either engine.

Reference
    G. Steele, D. Lea, C. Flood: Fast splittable pseudorandom number generators, OOPSLA 2014 (SplitMix64);
    J. Salmon et al.: Parallel random numbers: as easy as 1, 2, 3, SC 2011 (counter-based generators).

This file runs on a mote too (MicroPython's subset of Python).
"""

import math

_MASK = 0xFFFFFFFFFFFFFFFF
GOLDEN = 0x9E3779B97F4A7C15

# What a draw is for: a node's own. What simulations draw for stands in purposes.py.
PROTOCOL = 3

_TO_UNIT = 1.0 / (1 << 53)


def mix64(number):
    """SplitMix64's output function: 64 bits in, 64 well-mixed bits out."""
    z = number & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def make_key(seed, *words):
    """Hash a seed and any number of integers (purpose, node, link, ...) into a 64-bit key."""
    key = mix64(seed + GOLDEN)
    for word in words:
        key = mix64(key ^ mix64(word + GOLDEN))
    return key


def bits(key, counter):
    """Draw number ``counter`` of ``key``: an integer of 64 random bits."""
    return mix64(key + (counter + 1) * GOLDEN)


def uniform(key, counter):
    """Draw number ``counter`` of ``key``: a float in [0, 1) with 53 random bits."""
    return (mix64(key + (counter + 1) * GOLDEN) >> 11) * _TO_UNIT


def below(key, counter, bound):
    """Draw number ``counter`` of ``key``: an integer in [0, bound), bound at most 2**32."""
    return ((mix64(key + (counter + 1) * GOLDEN) >> 32) * bound) >> 32


class Stream:
    """The draws of one key in order: what a protocol node is given as its own source of randomness."""

    def __init__(self, key, counter=0):
        self.key = key
        self.counter = counter

    def bits(self):
        """The next 64 random bits."""
        self.counter += 1
        return bits(self.key, self.counter - 1)

    def uniform(self):
        """The next float in [0, 1)."""
        self.counter += 1
        return uniform(self.key, self.counter - 1)

    def below(self, bound):
        """The next integer in [0, bound)."""
        self.counter += 1
        return below(self.key, self.counter - 1, bound)

    def normal(self):
        """The next draw from the standard normal distribution (Box and Muller; it takes two uniforms)."""
        radius = math.sqrt(-2.0 * math.log(1.0 - self.uniform()))
        return radius * math.cos(2.0 * math.pi * self.uniform())

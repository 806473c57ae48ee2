/* Counter-based random draws: SplitMix64 over a key and a counter. `workbench/draws.py` defines them. */
#include "draws.h"

static const uint64_t GOLDEN = 0x9E3779B97F4A7C15u;

uint64_t mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint32_t random_below(struct random *random, uint32_t bound)
{
    random->counter += 1;
    uint64_t high = mix64(random->key + random->counter * GOLDEN) >> 32;
    return (uint32_t)((high * bound) >> 32);
}

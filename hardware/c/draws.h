/* Counter-based random draws: every draw is a hash of a key and a counter. `workbench/draws.py` defines them. */
#ifndef DRAWS_H
#define DRAWS_H

#include <stdint.h>

/* The draws of one key in order: a node's own source of randomness. */
struct random {
    uint64_t key;
    uint64_t counter;
};

/* SplitMix64's output function: 64 bits in, 64 well-mixed bits out. */
uint64_t mix64(uint64_t z);

/* The next integer in [0, bound). */
uint32_t random_below(struct random *random, uint32_t bound);

#endif

/* Division of 64 bits in 50 bytes of code; the compiler's own takes 900 on a chip that has none. */
#ifndef DIVISION_H
#define DIVISION_H

#include <stdint.h>

/* The whole part of a quotient. */
uint64_t divide(uint64_t number, uint32_t divisor);

#endif

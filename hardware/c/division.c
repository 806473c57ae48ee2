/* Division of 64 bits, bit by bit. */
#include "division.h"

uint64_t divide(uint64_t number, uint32_t divisor)
{
    uint64_t rest = 0;
    for (int bit = 0; bit < 64; bit++) {
        rest = rest << 1 | number >> 63;
        number <<= 1;
        if (rest >= divisor) {
            rest -= divisor;
            number |= 1;
        }
    }
    return number;
}

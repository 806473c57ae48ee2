/* Frames on a serial line: where a message begins and ends, and whether it arrived whole.
 * `workbench/motes/framing.py` defines them. */
#ifndef FRAMING_H
#define FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LONGEST_BODY = 2048,
    CHECKSUM_B = 4,
    /* One byte more in 254, so that no byte is zero; and a zero before and behind. */
    LONGEST_FRAME = LONGEST_BODY + CHECKSUM_B + (LONGEST_BODY + CHECKSUM_B) / 254 + 1,
    NO_BODY = -1
};

/* What has come of a frame so far. `spoilt` counts what was none. */
struct deframer {
    uint32_t spoilt;
    bool is_too_long;
    size_t size;
    uint8_t bytes[LONGEST_FRAME];
};

/* Take a byte of the line. If it completes a frame: the size of the body, which is at `bytes` until the next byte, with a
 * zero behind it. Otherwise NO_BODY. */
int deframe(struct deframer *deframer, uint8_t byte);

/* The frame of a body of up to LONGEST_BODY bytes; returns its size. */
size_t enframe(const uint8_t *body, size_t size, uint8_t frame[LONGEST_FRAME + 2]);

#endif

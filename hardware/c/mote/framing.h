/* Frames on a serial line: they delimit messages and detect damaged ones.
 * `workbench/motes/framing.py` defines them. */
#ifndef FRAMING_H
#define FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest message of a host, and the buffer for the mote's own messages; a small board may define less. */
#ifndef LONGEST_BODY
#define LONGEST_BODY 2048
#endif
#ifndef ENFRAMER_B
#define ENFRAMER_B 1024
#endif

enum { CHECKSUM_B = 4, LONGEST_BLOCK = 254, NO_BODY = -1 };
/* One byte more in 254, so that no byte is zero. */
#define STUFFED_B(body) ((body) + CHECKSUM_B + ((body) + CHECKSUM_B) / LONGEST_BLOCK + 1)

/* The received part of a frame, in memory of the caller. `spoilt` counts damaged frames. */
struct deframer {
    uint32_t spoilt;
    bool is_too_long;
    size_t size;
    size_t room;
    uint8_t *bytes;
};

/* Take a byte of the line. If it completes a frame: the size of the body, which is at `bytes` until the next byte, with a
 * zero behind it. Otherwise NO_BODY. */
int deframe(struct deframer *deframer, uint8_t byte);

/* A frame on its way out: it is written whenever the next block might not fit. */
struct enframer {
    void *context;
    void (*write)(void *context, const uint8_t *bytes, size_t size);
    uint32_t checksum;
    size_t size;
    size_t block; /* the place of the byte that says how long the present block is */
    uint8_t bytes[ENFRAMER_B];
};

void enframe_begin(struct enframer *enframer, void *context,
                   void (*write)(void *context, const uint8_t *bytes, size_t size));
void enframe_put(struct enframer *enframer, uint8_t byte);
void enframe_end(struct enframer *enframer);

#endif

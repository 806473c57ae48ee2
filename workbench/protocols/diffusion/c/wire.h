/* TinyDiffusion's frames: bytes <-> interest and data messages. `workbench/protocols/diffusion/wire.py` defines them. */
#ifndef WIRE_H
#define WIRE_H

#include "attributes.h"

/* After a byte for the packet type. A list of sinks stands behind the header of data: their number, and two bytes each. */
enum { INTEREST_HEADER_B = 13, DATA_HEADER_B = 10, OTHERS_AT = 1 + DATA_HEADER_B + 1, OTHER_B = 2 };

/* A ttl may be one more than its byte holds: what a node begins to send loses a hop on its way out. */
struct interest {
    uint32_t sequence;
    uint16_t sink;
    uint8_t round;
    uint16_t previous_hop;
    uint16_t ttl;
    uint16_t expiration_s;
    struct attributes attributes;
};

struct data {
    uint32_t sequence;
    uint16_t source;
    int32_t previous_hop; /* NOBODY: of this node's own */
    uint16_t ttl;
    bool is_aggregate;
    uint8_t other_count; /* of the sinks that other copies of the message serve */
    const uint8_t *others;
    struct attributes attributes;
};

/* Whether a frame is an interest message, or data; for any other bytes neither is true. */
bool interest_decode(const uint8_t *frame, size_t size, struct interest *interest);
bool data_decode(const uint8_t *frame, size_t size, struct data *data);

/* What stands before the attributes, the packet type included. */
void interest_encode(const struct interest *interest, uint8_t header[1 + INTEREST_HEADER_B]);

/* Of data as a node sends it on, with its address and one hop less: writes what stands before the attributes and returns
 * its size. The list of `other_count` sinks is at `header + OTHERS_AT` already. */
size_t data_encode_next(const struct data *data, uint16_t address, uint8_t other_count, uint8_t *header);

#endif

/* Encode and decode TinyDiffusion's frames. `workbench/protocols/diffusion/wire.py` defines them. */
#ifndef WIRE_H
#define WIRE_H

#include "attributes.h"
#include "frames.h"

/* Sizes without the byte of the type. A list of sinks follows the header of data: count, then two bytes each. */
enum { INTEREST_HEADER_B = INTEREST_BODY_AT - 1, DATA_HEADER_B = DATA_BODY_AT - 1 };
enum { OTHERS_AT = DATA_BODY_AT + 1, OTHER_B = 2 };

/* A ttl may exceed its byte by one: a node lowers the ttl of its own messages, too, before it sends them. */
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
    int32_t previous_hop; /* NOBODY: own data */
    uint16_t ttl;
    bool is_aggregate;
    uint8_t other_count; /* of the sinks that other copies of the message serve */
    const uint8_t *others;
    struct attributes attributes;
};

/* Decode a frame; return false if it is not an interest message, or not data. Data may have any attributes. */
bool interest_decode(const uint8_t *frame, size_t size, struct interest *interest);
bool data_decode(const uint8_t *frame, size_t size, struct data *data);

/* Write the bytes before the attributes, including the packet type. */
void interest_encode(const struct interest *interest, uint8_t header[INTEREST_BODY_AT]);

/* Write the bytes before the attributes of data that a node forwards, with its address and a lower ttl; return their
 * size. The caller has written the list of `other_count` sinks at `header + OTHERS_AT`. */
size_t data_encode_next(const struct data *data, uint16_t address, uint8_t other_count, uint8_t *header);

#endif

/* TinyDiffusion's frames. `workbench/protocols/diffusion/wire.py` defines them.
 *
 *     interest   type, sequence u32, sink u16, round u8, previous hop u16, ttl u8, expiration u16 (s), AttNum u8
 *     data       type, sequence u32, source u16, previous hop u16, ttl u8, flags and AttNum u8
 *     list       only if its flag is set: count u8, then a sink u16 each */
#include "wire.h"

#include "bytes.h"

enum { AGGREGATE = 0x80, LISTED = 0x40, MOST_ATTRIBUTES = LISTED - 1 }; /* of a data message's AttNum */

/* Both headers begin alike: type, sequence, sink or source. */
enum { TYPE_AT = 0, SEQUENCE_AT = 1, ORIGIN_AT = 5 };
enum { INTEREST_ROUND_AT = 7, INTEREST_HOP_AT = 8, INTEREST_TTL_AT = 10, INTEREST_EXPIRATION_AT = 11 };
enum { INTEREST_COUNT_AT = 13 };
enum { DATA_HOP_AT = 7, DATA_TTL_AT = 9, DATA_COUNT_AT = 10 };

bool interest_decode(const uint8_t *frame, size_t size, struct interest *interest)
{
    if (size < 1 + INTEREST_HEADER_B || frame[TYPE_AT] != INTEREST_PACKET)
        return false;
    interest->sequence = get_u32(frame + SEQUENCE_AT);
    interest->sink = get_u16(frame + ORIGIN_AT);
    interest->round = frame[INTEREST_ROUND_AT];
    interest->previous_hop = get_u16(frame + INTEREST_HOP_AT);
    interest->ttl = frame[INTEREST_TTL_AT];
    interest->expiration_s = get_u16(frame + INTEREST_EXPIRATION_AT);
    const uint8_t *body = frame + 1 + INTEREST_HEADER_B;
    return attributes_decode(body, size - 1 - INTEREST_HEADER_B, frame[INTEREST_COUNT_AT], &interest->attributes);
}

bool data_decode(const uint8_t *frame, size_t size, struct data *data)
{
    if (size < 1 + DATA_HEADER_B || frame[TYPE_AT] != DATA_PACKET)
        return false;
    uint8_t count = frame[DATA_COUNT_AT];
    data->sequence = get_u32(frame + SEQUENCE_AT);
    data->source = get_u16(frame + ORIGIN_AT);
    data->previous_hop = get_u16(frame + DATA_HOP_AT);
    data->ttl = frame[DATA_TTL_AT];
    data->is_aggregate = count >= AGGREGATE;
    const uint8_t *body = frame + 1 + DATA_HEADER_B;
    const uint8_t *end = frame + size;
    data->other_count = 0;
    data->others = body;
    if ((count & LISTED) != 0) {
        if (body == end || *body == 0 || (size_t)(end - body) < 1u + OTHER_B * *body)
            return false;
        data->other_count = *body;
        data->others = body + 1;
        body += 1 + OTHER_B * *body;
    }
    return attributes_decode(body, (size_t)(end - body), count & MOST_ATTRIBUTES, &data->attributes);
}

void interest_encode(const struct interest *interest, uint8_t header[1 + INTEREST_HEADER_B])
{
    header[TYPE_AT] = INTEREST_PACKET;
    put_u32(header + SEQUENCE_AT, interest->sequence);
    put_u16(header + ORIGIN_AT, interest->sink);
    header[INTEREST_ROUND_AT] = interest->round;
    put_u16(header + INTEREST_HOP_AT, interest->previous_hop);
    header[INTEREST_TTL_AT] = (uint8_t)interest->ttl;
    put_u16(header + INTEREST_EXPIRATION_AT, interest->expiration_s);
    header[INTEREST_COUNT_AT] = (uint8_t)interest->attributes.count;
}

size_t data_encode_next(const struct data *data, uint16_t address, uint8_t other_count, uint8_t *header)
{
    size_t count = data->attributes.count | (data->is_aggregate ? AGGREGATE : 0u) | (other_count > 0 ? LISTED : 0u);
    header[TYPE_AT] = DATA_PACKET;
    put_u32(header + SEQUENCE_AT, data->sequence);
    put_u16(header + ORIGIN_AT, data->source);
    put_u16(header + DATA_HOP_AT, address);
    header[DATA_TTL_AT] = (uint8_t)(data->ttl - 1);
    header[DATA_COUNT_AT] = (uint8_t)count;
    if (other_count == 0)
        return 1 + DATA_HEADER_B;
    header[OTHERS_AT - 1] = other_count;
    return OTHERS_AT + (size_t)OTHER_B * other_count;
}

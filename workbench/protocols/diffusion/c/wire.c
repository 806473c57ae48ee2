/* TinyDiffusion's frames. `workbench/protocols/diffusion/wire.py` defines them; `frames.h` has their layout. */
#include "wire.h"

#include "bytes.h"

bool interest_decode(const uint8_t *frame, size_t size, struct interest *interest)
{
    if (size < INTEREST_BODY_AT || frame[0] != INTEREST_TYPE)
        return false;
    interest->sequence = get_u32(frame + INTEREST_SEQUENCE_AT);
    interest->sink = get_u16(frame + INTEREST_SINK_AT);
    interest->round = frame[INTEREST_ROUND_AT];
    interest->previous_hop = get_u16(frame + INTEREST_PREVIOUS_HOP_AT);
    interest->ttl = frame[INTEREST_TTL_AT];
    interest->expiration_s = get_u16(frame + INTEREST_EXPIRATION_S_AT);
    const uint8_t *body = frame + INTEREST_BODY_AT;
    return attributes_decode(body, size - INTEREST_BODY_AT, frame[INTEREST_ATTRIBUTE_COUNT_AT], &interest->attributes);
}

bool data_decode(const uint8_t *frame, size_t size, struct data *data)
{
    if (size < DATA_BODY_AT || frame[0] != DATA_TYPE)
        return false;
    uint8_t count = frame[DATA_ATTRIBUTE_COUNT_AT];
    data->sequence = get_u32(frame + DATA_SEQUENCE_AT);
    data->source = get_u16(frame + DATA_SOURCE_AT);
    data->previous_hop = get_u16(frame + DATA_PREVIOUS_HOP_AT);
    data->ttl = frame[DATA_TTL_AT];
    data->is_aggregate = (count & DATA_IS_AGGREGATE) != 0;
    const uint8_t *body = frame + DATA_BODY_AT;
    const uint8_t *end = frame + size;
    data->other_count = 0;
    data->others = body;
    if ((count & DATA_IS_LISTED) != 0) {
        if (body == end || *body == 0 || (size_t)(end - body) < 1u + OTHER_B * *body)
            return false;
        data->other_count = *body;
        data->others = body + 1;
        body += 1 + OTHER_B * *body;
    }
    return attributes_decode(body, (size_t)(end - body), count & DATA_ATTRIBUTE_COUNT_BITS, &data->attributes);
}

void interest_encode(const struct interest *interest, uint8_t header[INTEREST_BODY_AT])
{
    header[0] = INTEREST_TYPE;
    put_u32(header + INTEREST_SEQUENCE_AT, interest->sequence);
    put_u16(header + INTEREST_SINK_AT, interest->sink);
    header[INTEREST_ROUND_AT] = interest->round;
    put_u16(header + INTEREST_PREVIOUS_HOP_AT, interest->previous_hop);
    header[INTEREST_TTL_AT] = (uint8_t)interest->ttl;
    put_u16(header + INTEREST_EXPIRATION_S_AT, interest->expiration_s);
    header[INTEREST_ATTRIBUTE_COUNT_AT] = (uint8_t)interest->attributes.count;
}

size_t data_encode_next(const struct data *data, uint16_t address, uint8_t other_count, uint8_t *header)
{
    size_t count = data->attributes.count;
    count |= (data->is_aggregate ? DATA_IS_AGGREGATE : 0u) | (other_count > 0 ? DATA_IS_LISTED : 0u);
    header[0] = DATA_TYPE;
    put_u32(header + DATA_SEQUENCE_AT, data->sequence);
    put_u16(header + DATA_SOURCE_AT, data->source);
    put_u16(header + DATA_PREVIOUS_HOP_AT, address);
    header[DATA_TTL_AT] = (uint8_t)(data->ttl - 1);
    header[DATA_ATTRIBUTE_COUNT_AT] = (uint8_t)count;
    if (other_count == 0)
        return DATA_BODY_AT;
    header[OTHERS_AT - 1] = other_count;
    return OTHERS_AT + (size_t)OTHER_B * other_count;
}

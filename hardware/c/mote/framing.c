/* Frames on a serial line: a body and its CRC-32, stuffed so that no byte is zero. `workbench/motes/framing.py` defines
 * them. */
#include "framing.h"

enum { LONGEST_BLOCK = 254 };

static uint32_t add_to_checksum(uint32_t checksum, uint8_t byte)
{
    checksum ^= byte;
    for (int bit = 0; bit < 8; bit++)
        checksum = checksum & 1 ? checksum >> 1 ^ 0xEDB88320u : checksum >> 1;
    return checksum;
}

static uint32_t checksum_of(const uint8_t *body, size_t size)
{
    uint32_t checksum = UINT32_MAX;
    for (size_t i = 0; i < size; i++)
        checksum = add_to_checksum(checksum, body[i]);
    return ~checksum;
}

/* Take the stuffing out, in place; returns the size, or NO_BODY. */
static int unstuff(uint8_t *bytes, size_t size)
{
    size_t read = 0;
    size_t written = 0;
    while (read < size) {
        size_t length = bytes[read];
        if (length == 0 || read + length > size)
            return NO_BODY;
        for (size_t i = 1; i < length; i++)
            bytes[written++] = bytes[read + i];
        read += length;
        if (length <= LONGEST_BLOCK && read < size)
            bytes[written++] = 0;
    }
    return (int)written;
}

/* The size of the body in a frame that has ended, or NO_BODY. */
static int body_size(struct deframer *deframer)
{
    int size = unstuff(deframer->bytes, deframer->size);
    if (deframer->is_too_long || size < CHECKSUM_B)
        return NO_BODY;
    size_t end = (size_t)size - CHECKSUM_B;
    uint32_t checksum = checksum_of(deframer->bytes, end);
    for (size_t i = 0; i < CHECKSUM_B; i++)
        if (deframer->bytes[end + i] != (uint8_t)(checksum >> 8 * i))
            return NO_BODY;
    deframer->bytes[end] = 0;
    return (int)end;
}

int deframe(struct deframer *deframer, uint8_t byte)
{
    if (byte != 0) {
        if (deframer->size < LONGEST_FRAME)
            deframer->bytes[deframer->size++] = byte;
        else
            deframer->is_too_long = true;
        return NO_BODY;
    }
    if (deframer->size == 0)
        return NO_BODY;
    int size = body_size(deframer);
    if (size == NO_BODY)
        deframer->spoilt++;
    deframer->size = 0;
    deframer->is_too_long = false;
    return size;
}

/* A frame that is being written: `block` is the place of the byte that says how long the present block is. */
struct writer {
    uint8_t *frame;
    size_t size;
    size_t block;
};

static void end_block(struct writer *writer)
{
    writer->frame[writer->block] = (uint8_t)(writer->size - writer->block);
    writer->block = writer->size++;
}

static void put(struct writer *writer, uint8_t byte)
{
    if (byte == 0) {
        end_block(writer);
        return;
    }
    writer->frame[writer->size++] = byte;
    if (writer->size - writer->block > LONGEST_BLOCK)
        end_block(writer);
}

size_t enframe(const uint8_t *body, size_t size, uint8_t frame[LONGEST_FRAME + 2])
{
    struct writer writer = {.frame = frame, .size = 2, .block = 1};
    uint32_t checksum = checksum_of(body, size);
    frame[0] = 0;
    for (size_t i = 0; i < size; i++)
        put(&writer, body[i]);
    for (size_t i = 0; i < CHECKSUM_B; i++)
        put(&writer, (uint8_t)(checksum >> 8 * i));
    end_block(&writer);
    frame[writer.block] = 0;
    return writer.block + 1;
}

/* Frames on a serial line: a body and its CRC-32, stuffed so that no byte is zero. `workbench/motes/framing.py` defines
 * them. */
#include "framing.h"

/* A block, the byte before it, and the zeros around them. */
typedef char enframer_b_fits[ENFRAMER_B >= LONGEST_BLOCK + 4 ? 1 : -1];

static uint32_t add_to_checksum(uint32_t checksum, uint8_t byte)
{
    checksum ^= byte;
    for (int bit = 0; bit < 8; bit++)
        checksum = checksum & 1 ? checksum >> 1 ^ 0xEDB88320u : checksum >> 1;
    return checksum;
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
    uint32_t checksum = UINT32_MAX;
    for (size_t i = 0; i < end; i++)
        checksum = add_to_checksum(checksum, deframer->bytes[i]);
    for (size_t i = 0; i < CHECKSUM_B; i++)
        if (deframer->bytes[end + i] != (uint8_t)(~checksum >> 8 * i))
            return NO_BODY;
    deframer->bytes[end] = 0;
    return (int)end;
}

int deframe(struct deframer *deframer, uint8_t byte)
{
    if (byte != 0) {
        if (deframer->size < deframer->room)
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

static void end_block(struct enframer *enframer)
{
    enframer->bytes[enframer->block] = (uint8_t)(enframer->size - enframer->block);
    if (enframer->size + LONGEST_BLOCK + 2 > ENFRAMER_B) {
        enframer->write(enframer->context, enframer->bytes, enframer->size);
        enframer->size = 0;
    }
    enframer->block = enframer->size++;
}

static void stuff(struct enframer *enframer, uint8_t byte)
{
    if (byte == 0) {
        end_block(enframer);
        return;
    }
    enframer->bytes[enframer->size++] = byte;
    if (enframer->size - enframer->block > LONGEST_BLOCK)
        end_block(enframer);
}

void enframe_begin(struct enframer *enframer, void *context,
                   void (*write)(void *context, const uint8_t *bytes, size_t size))
{
    enframer->context = context;
    enframer->write = write;
    enframer->checksum = UINT32_MAX;
    enframer->bytes[0] = 0;
    enframer->block = 1;
    enframer->size = 2;
}

void enframe_put(struct enframer *enframer, uint8_t byte)
{
    enframer->checksum = add_to_checksum(enframer->checksum, byte);
    stuff(enframer, byte);
}

void enframe_end(struct enframer *enframer)
{
    for (size_t i = 0; i < CHECKSUM_B; i++)
        stuff(enframer, (uint8_t)(~enframer->checksum >> 8 * i));
    enframer->bytes[enframer->block] = (uint8_t)(enframer->size - enframer->block);
    enframer->bytes[enframer->size++] = 0;
    enframer->write(enframer->context, enframer->bytes, enframer->size);
}

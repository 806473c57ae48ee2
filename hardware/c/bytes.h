/* Numbers of a frame: little-endian, at any address. */
#ifndef BYTES_H
#define BYTES_H

#include <stdint.h>

static inline void put_u16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)(value & 0xFF);
    at[1] = (uint8_t)(value >> 8);
}

static inline void put_u32(uint8_t *at, uint32_t value)
{
    put_u16(at, (uint16_t)(value & 0xFFFF));
    put_u16(at + 2, (uint16_t)(value >> 16));
}

static inline uint16_t get_u16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t get_u32(const uint8_t *at)
{
    return get_u16(at) | (uint32_t)get_u16(at + 2) << 16;
}

#endif

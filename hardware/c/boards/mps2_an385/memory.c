/* What C's library has for memory, as small as it gets: newlib's own functions are written for speed, and take 600 bytes
 * of flash more. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    return memmove(to, from, size);
}

void *memmove(void *to, const void *from, size_t size)
{
    uint8_t *target = to;
    const uint8_t *source = from;
    if (target < source)
        for (size_t i = 0; i < size; i++)
            target[i] = source[i];
    else
        for (size_t i = size; i > 0; i--)
            target[i - 1] = source[i - 1];
    return to;
}

void *memset(void *to, int byte, size_t size)
{
    uint8_t *target = to;
    for (size_t i = 0; i < size; i++)
        target[i] = (uint8_t)byte;
    return to;
}

int memcmp(const void *one, const void *other, size_t size)
{
    const uint8_t *first = one;
    const uint8_t *second = other;
    for (size_t i = 0; i < size; i++)
        if (first[i] != second[i])
            return first[i] - second[i];
    return 0;
}

int strncmp(const char *one, const char *other, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (one[i] != other[i] || one[i] == '\0')
            return (uint8_t)one[i] - (uint8_t)other[i];
    return 0;
}

size_t strlen(const char *text)
{
    size_t size = 0;
    while (text[size] != '\0')
        size++;
    return size;
}

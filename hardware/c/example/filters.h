/* The filters that are compiled in. This file is yours: these two are an example.
 *
 * A filter has a key (200-250; the table is in ascending order of keys), says whether it is about interests, which
 * readings it wants, and a function that passes, replaces or drops them. What it remembers is a struct beside it, for
 * the one node of a mote. `built_in.h` has the filters of Python that make sense on a mote. */
#ifndef FILTERS_H
#define FILTERS_H

#include "built_in.h"
#include "contract.h"

/* One of your own: what was measured below 0 °C is taken for 0 °C. */
static enum filter_answer no_frost(void *state, const struct filtered *message)
{
    (void)state;
    const uint8_t *next = message->attributes.bytes;
    for (size_t i = 0; i < message->attributes.count; i++) {
        struct attribute one = next_attribute(&next);
        if (one.key != TEMP_KEY || one.number >= 0)
            return FILTER_PASS; /* more than a temperature, or nothing to do */
        (void)add_number(message->answer, TEMP_KEY, IS, 0);
    }
    return FILTER_REPLACE;
}

/* A reading within 0.5 °C of the last one passed is dropped, but for one a minute. */
static struct suppress_unchanged unchanged = {
    .key = TEMP_KEY,
    .tolerance = 50,
    .heartbeat_us = (int64_t)60 * SECOND_US,
};

static const uint8_t ANY_TEMPERATURE[] = {TEMP_KEY, EQ_ANY, 0, 0};

static const struct filter FILTERS[] = {
    {200, false, {ANY_TEMPERATURE, sizeof ANY_TEMPERATURE, 1}, no_frost, NULL, NULL, NULL},
    {201, false, {ANY_TEMPERATURE, sizeof ANY_TEMPERATURE, 1}, suppress_unchanged, &unchanged, NULL, NULL},
};

enum { FILTER_COUNT = sizeof FILTERS / sizeof FILTERS[0] };

#endif

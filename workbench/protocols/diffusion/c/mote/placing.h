/* Filters that a host places on a mote: by their names, with their settings. */
#ifndef PLACING_H
#define PLACING_H

#include "diffusion.h"
#include "filters.h"

/* The most filters that a node may carry. */
#ifndef MAX_FILTERS
#define MAX_FILTERS 0
#endif

struct refusal;

/* The data of one filter beside its row of the table. */
struct filter_room {
    union filter_state state;
    struct attribute_list match;
};

struct placed_filters {
#if MAX_FILTERS > 0
    struct filter table[MAX_FILTERS];
    struct filter_room rooms[MAX_FILTERS];
#else
    bool are_none; /* a struct must not be empty */
#endif
};

/* Place filters, a list in JSON, at a node with these settings; refused with the name of one that cannot be placed. */
struct refusal filters_place(const char *filters, struct placed_filters *placed, struct diffusion_settings *settings);

#endif

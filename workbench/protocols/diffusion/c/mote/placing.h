/* Filters that a host places on a mote: by their names, with their settings. */
#ifndef PLACING_H
#define PLACING_H

#include "filters.h"

/* How many filters a node may carry. */
#ifndef MAX_FILTERS
#define MAX_FILTERS 0
#endif

#if MAX_FILTERS > 0
struct refusal;

/* What one filter needs beside its row of the table. */
struct filter_room {
    union filter_state state;
    struct attribute_list match;
};

/* Whether one of the filters (a list in JSON) cannot be placed, and which. */
struct refusal filters_refused(const char *filters, struct filter_room *spare);

/* Place filters that are not refused; returns how many there are. */
size_t filters_place(const char *filters, struct filter *table, struct filter_room *rooms);
#endif

#endif

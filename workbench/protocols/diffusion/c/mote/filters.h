/* The filters that are compiled into the program of a mote. A host places them by the names that they have in Python.
 *
 * A filter of your own is a function and a row in `filters.c`, and a struct in `filter_state` if it has a memory. */
#ifndef FILTERS_H
#define FILTERS_H

#include "built_in.h"

/* The settings and the memory of a filter on this mote. */
union filter_state {
    struct suppress_unchanged suppress_unchanged;
    struct running_window running_window;
    struct neighborhood_average neighborhood_average;
    struct rate_limit rate_limit;
    struct threshold_alarm threshold_alarm;
};

/* `read` writes a filter's settings to a state of zeros; false for settings that are not supported here. `settings` is
 * the JSON object "in_c" from the host, with numbers as in frames. */
struct filter_kind {
    const char *name;
    enum filter_answer (*decide)(void *state, const struct filtered *message);
    bool (*read)(const char *settings, union filter_state *state);
    void (*emit)(void *state, struct attribute_list *answer); /* NULL, or the function of a filter that sends later */
};

extern const struct filter_kind FILTER_KINDS[];
extern const size_t FILTER_KIND_COUNT;

#endif

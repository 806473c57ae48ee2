/* The built-in filters for motes. `workbench/protocols/diffusion/filters/built_in.py` defines them.
 *
 * A filter is a struct with its settings and its memory, and a function of the same name; filters.h combines both in a
 * `struct filter`. Values are those of frames: 2650 for 26.5 °C.
 *
 * Differs from Python in: a filter remembers MAX_FILTER_SOURCES sources, and forgets the oldest. */
#ifndef BUILT_IN_H
#define BUILT_IN_H

#include "filter.h"

#ifndef MAX_FILTER_SOURCES
#define MAX_FILTER_SOURCES 10
#endif
#ifndef MAX_FILTER_WINDOW
#define MAX_FILTER_WINDOW 5
#endif

/* A filter's memory of a source. */
struct source {
    int64_t passed_us;
    int16_t value;
    uint16_t origin;
    bool is_alarmed;
};

/* A ring: once it is full, the next source is stored at `oldest`. */
struct sources {
    uint8_t count;
    uint8_t oldest;
    struct source list[MAX_FILTER_SOURCES];
};

/* Drop a reading that differs from the last one passed for its source by no more than `tolerance`. */
struct suppress_unchanged {
    uint8_t key;
    double tolerance;
    int64_t heartbeat_us;
    struct sources sources;
};
enum filter_answer suppress_unchanged(void *state, const struct filtered *message);

/* Pass at most one message of each source per `interval_us`. */
struct rate_limit {
    int64_t interval_us;
    struct sources sources;
};
enum filter_answer rate_limit(void *state, const struct filtered *message);

/* Pass a source's reading only when it rises above `high`, or falls below `low` again. */
struct threshold_alarm {
    uint8_t key;
    double high;
    double low;
    struct sources sources;
};
enum filter_answer threshold_alarm(void *state, const struct filtered *message);

/* Pass one reading per `period_us`: the mean of the latest reading of each source heard since the last one. With `flush`
 * it is sent when the period ends: then the filter's `emission` and `emit` are those of this struct. */
struct neighborhood_average {
    uint8_t key;
    bool flush;
    bool has_begun;
    bool is_collecting; /* whether `emission.due_us` is set */
    int64_t period_us;
    int64_t next_us;
    struct emission emission;
    struct attribute_list last;
    struct sources sources;
};
void emit_average(void *state, struct attribute_list *answer);
enum filter_answer neighborhood_average(void *state, const struct filtered *message);

/* The last readings of a source, oldest first. */
struct window {
    uint16_t origin;
    uint8_t count;
    int16_t values[MAX_FILTER_WINDOW];
};

/* Replace each reading by the mean, minimum or maximum of its source's last `window` readings, at most
 * MAX_FILTER_WINDOW. The three functions take the same struct. */
struct running_window {
    uint8_t key;
    uint8_t window;
    uint8_t count;
    uint8_t oldest;
    struct window list[MAX_FILTER_SOURCES];
};
enum filter_answer running_mean(void *state, const struct filtered *message);
enum filter_answer running_minimum(void *state, const struct filtered *message);
enum filter_answer running_maximum(void *state, const struct filtered *message);

#endif

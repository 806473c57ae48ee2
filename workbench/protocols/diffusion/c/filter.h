/* A filter: a function on a node that passes, replaces or drops the messages that the node forwards.
 * `workbench/protocols/diffusion/filters/` defines it. */
#ifndef FILTER_H
#define FILTER_H

#include "attributes.h"

enum filter_answer { FILTER_PASS, FILTER_REPLACE, FILTER_DROP };

/* A filter's input, an interest's attributes or one reading; it writes replacing attributes to `answer`. */
struct filtered {
    struct attributes attributes;
    struct attribute_list *answer;
    uint16_t origin;
    int64_t now;
};

/* When a filter sends what it has dropped before (INT64_MAX: never), and the data message that it has dropped last, as
 * which it is sent. The node writes all fields but `due_us`. */
struct emission {
    int64_t due_us;
    int32_t previous_hop;
    uint32_t sequence;
    uint16_t origin;
    uint16_t ttl;
    bool has_dropped; /* a part of the message that is being filtered */
    bool has_held;
};

/* `match` selects readings, and interests that contain all of its keys. A filter that sends later has an `emission`, and
 * `emit` writes the attributes to be sent and the next `due_us`; for other filters both are NULL. */
struct filter {
    uint8_t key;
    bool is_for_interests;
    struct attributes match;
    enum filter_answer (*decide)(void *state, const struct filtered *message);
    void *state;
    struct emission *emission;
    void (*emit)(void *state, struct attribute_list *answer);
};

#endif

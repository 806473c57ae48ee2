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

/* `match` selects readings, and interests that contain all of its keys. */
struct filter {
    uint8_t key;
    bool is_for_interests;
    struct attributes match;
    enum filter_answer (*decide)(void *state, const struct filtered *message);
    void *state;
};

#endif

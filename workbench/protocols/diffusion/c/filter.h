/* A filter: code at a node that sees messages on their way and passes, replaces or drops them.
 * `workbench/protocols/diffusion/filters/` defines what it may do. */
#ifndef FILTER_H
#define FILTER_H

#include "attributes.h"

enum filter_answer { FILTER_PASS, FILTER_REPLACE, FILTER_DROP };

/* What a filter is asked about: an interest's attributes, or one reading. What replaces them goes into `answer`. */
struct filtered {
    struct attributes attributes;
    struct attribute_list *answer;
    uint16_t origin;
    int64_t now;
};

/* `match` chooses the readings that it sees; of interests it sees those that are about all keys of `match`. */
struct filter {
    uint8_t key;
    bool is_for_interests;
    struct attributes match;
    enum filter_answer (*decide)(void *state, const struct filtered *message);
    void *state;
};

#endif

/* Attributes: key, operator, value; their bytes, and how they match. `workbench/attributes/` defines them.
 *
 * A list of attributes is kept as the bytes that it has in a frame. A list that these functions take has been checked
 * before, by `attributes_decode`, or it was put together with `add_number` and `add_blob`. */
#ifndef ATTRIBUTES_H
#define ATTRIBUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tiny_diffusion.h"

/* One attribute. The value of a blob is `length` bytes; `number` is then 0. */
struct attribute {
    uint8_t key;
    uint8_t op;
    int16_t number;
    const uint8_t *blob;
    uint8_t length;
};

/* A list of attributes in somebody else's memory. */
struct attributes {
    const uint8_t *bytes;
    size_t size;
    size_t count;
};

/* A list of attributes with memory of its own: what fits a message. */
struct attribute_list {
    uint8_t size;
    uint8_t count;
    uint8_t bytes[ATTRIBUTES_ROOM];
};

/* Put an attribute behind the others; false, and nothing is done, if it is not valid or does not fit. */
bool add_number(struct attribute_list *list, uint8_t key, uint8_t op, int16_t number);
bool add_blob(struct attribute_list *list, uint8_t key, uint8_t op, const uint8_t *blob, uint8_t length);
bool add_all(struct attribute_list *list, struct attributes more);

/* The list, for functions that only look at it. */
struct attributes view(const struct attribute_list *list);

/* Make the list a copy of attributes that are known to fit; it is left empty if they do not. */
void keep(struct attribute_list *list, struct attributes attributes);

/* The `count` attributes that these bytes are; false if they are not exactly that. */
bool attributes_decode(const uint8_t *bytes, size_t size, size_t count, struct attributes *attributes);

/* The attribute at `*next`, which then points behind it. */
struct attribute next_attribute(const uint8_t **next);

/* Whether all are IS attributes; whether one at least is not. */
bool are_readings(struct attributes attributes);
bool constrain(struct attributes attributes);

/* Whether the two have the same bytes. */
bool are_equal(struct attributes one, struct attributes other);

/* Whether each constraint of a subscription is met by some IS attribute of a publication. */
bool one_way_match(struct attributes subscription, struct attributes publication);

/* Whether for each key of a subscription a single IS attribute of a publication meets all its constraints. */
bool strict_match(struct attributes subscription, struct attributes publication);

/* Whether an interest brings its sink all data that the other one would bring; `is_strict`: by strict_match. */
bool covers(struct attributes interest, struct attributes other, bool is_strict);

/* Whether two interests overlap: the same constraints in any order, whatever their INTERVAL (A16). */
bool same_constraints(struct attributes one, struct attributes other);

/* The INTERVAL of an interest in tenths of a second; 0 if it has none. */
uint16_t interval_of(struct attributes interest);

/* Whether a reinforcement is further constrained than an interest, never less (A20). */
bool is_within(struct attributes reinforcement, struct attributes interest);

/* The first sample of an aggregate: up to where its first key comes again (A26). `*rest` is what is behind it. */
struct attributes first_sample(struct attributes aggregate, struct attributes *rest);

/* Whether the first key comes once. */
bool begins_once(struct attributes attributes);

#endif

/* Attributes: their bytes, and how they match. `workbench/attributes/model.py`, `wire.py` and `interests.py` define them. */
#include "attributes.h"

#include <string.h>

/* A list counts its bytes in one: a longer message is one that no compiler takes. */
typedef char message_b_fits[MESSAGE_B >= 16 && MESSAGE_B <= UINT8_MAX ? 1 : -1];

enum { ATTRIBUTE_B = 4, BLOB_HEADER_B = 3 };
enum { LOWEST = -32768, HIGHEST = 32767 };

/* Bytes */

static bool is_valid(uint8_t key, uint8_t op)
{
    if (key < FIRST_KEY || key > LAST_KEY || op < IS || op > EQ_ANY)
        return false;
    return !IS_BLOB(key) || op == IS || op == EQ || op == NE || op == EQ_ANY;
}

bool attributes_decode(const uint8_t *bytes, size_t size, size_t count, struct attributes *attributes)
{
    size_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        if (size - offset < BLOB_HEADER_B)
            return false;
        uint8_t key = bytes[offset];
        size_t needed = IS_BLOB(key) ? (size_t)BLOB_HEADER_B + bytes[offset + 2] : (size_t)ATTRIBUTE_B;
        if (size - offset < needed || !is_valid(key, bytes[offset + 1]))
            return false;
        offset += needed;
    }
    *attributes = (struct attributes){bytes, size, count};
    return offset == size;
}

struct attribute next_attribute(const uint8_t **next)
{
    const uint8_t *at = *next;
    struct attribute one = {.key = at[0], .op = at[1]};
    if (IS_BLOB(one.key)) {
        one.length = at[2];
        one.blob = at + BLOB_HEADER_B;
        *next = one.blob + one.length;
    } else {
        int32_t unsigned_value = at[2] | at[3] << 8;
        one.number = (int16_t)(unsigned_value > HIGHEST ? unsigned_value - 0x10000 : unsigned_value);
        *next = at + ATTRIBUTE_B;
    }
    return one;
}

static bool has_room(const struct attribute_list *list, size_t size)
{
    return size <= (size_t)(ATTRIBUTES_ROOM - list->size);
}

bool add_number(struct attribute_list *list, uint8_t key, uint8_t op, int16_t number)
{
    if (!is_valid(key, op) || IS_BLOB(key) || !has_room(list, ATTRIBUTE_B))
        return false;
    uint16_t value = (uint16_t)number;
    const uint8_t bytes[ATTRIBUTE_B] = {key, op, (uint8_t)(value & 0xFF), (uint8_t)(value >> 8)};
    return add_all(list, (struct attributes){bytes, ATTRIBUTE_B, 1});
}

bool add_blob(struct attribute_list *list, uint8_t key, uint8_t op, const uint8_t *blob, uint8_t length)
{
    if (!is_valid(key, op) || !IS_BLOB(key) || !has_room(list, (size_t)BLOB_HEADER_B + length))
        return false;
    const uint8_t header[BLOB_HEADER_B] = {key, op, length};
    memcpy(list->bytes + list->size, header, BLOB_HEADER_B);
    if (length > 0)
        memcpy(list->bytes + list->size + BLOB_HEADER_B, blob, length);
    list->size = (uint8_t)(list->size + BLOB_HEADER_B + length);
    list->count = (uint8_t)(list->count + 1);
    return true;
}

bool add_all(struct attribute_list *list, struct attributes more)
{
    if (!has_room(list, more.size))
        return false;
    if (more.size > 0)
        memcpy(list->bytes + list->size, more.bytes, more.size);
    list->size = (uint8_t)(list->size + more.size);
    list->count = (uint8_t)(list->count + more.count);
    return true;
}

struct attributes view(const struct attribute_list *list)
{
    return (struct attributes){list->bytes, list->size, list->count};
}

void keep(struct attribute_list *list, struct attributes attributes)
{
    list->size = 0;
    list->count = 0;
    (void)add_all(list, attributes);
}

/* What they say */

bool are_readings(struct attributes attributes)
{
    const uint8_t *next = attributes.bytes;
    for (size_t i = 0; i < attributes.count; i++)
        if (next_attribute(&next).op != IS)
            return false;
    return true;
}

bool constrain(struct attributes attributes)
{
    return !are_readings(attributes);
}

bool are_equal(struct attributes one, struct attributes other)
{
    return one.size == other.size && (one.size == 0 || memcmp(one.bytes, other.bytes, one.size) == 0);
}

static bool is_same_value(struct attribute one, struct attribute other)
{
    if (!IS_BLOB(one.key))
        return one.number == other.number;
    return one.length == other.length && (one.length == 0 || memcmp(one.blob, other.blob, one.length) == 0);
}

/* Matching */

/* Whether the value of an IS attribute meets a constraint on the same key. */
static bool satisfies(struct attribute value, struct attribute constraint)
{
    switch (constraint.op) {
    case EQ_ANY:
        return true;
    case EQ:
        return is_same_value(value, constraint);
    case NE:
        return !is_same_value(value, constraint);
    case GE:
        return value.number >= constraint.number;
    case LE:
        return value.number <= constraint.number;
    case GT:
        return value.number > constraint.number;
    case LT:
        return value.number < constraint.number;
    default:
        return false;
    }
}

static bool is_met(struct attribute constraint, struct attributes publication)
{
    const uint8_t *next = publication.bytes;
    for (size_t i = 0; i < publication.count; i++) {
        struct attribute one = next_attribute(&next);
        if (one.key == constraint.key && one.op == IS && satisfies(one, constraint))
            return true;
    }
    return false;
}

bool one_way_match(struct attributes subscription, struct attributes publication)
{
    const uint8_t *next = subscription.bytes;
    for (size_t i = 0; i < subscription.count; i++) {
        struct attribute one = next_attribute(&next);
        if (one.op != IS && !is_met(one, publication))
            return false;
    }
    return true;
}

/* Whether a value meets all constraints that a list has on its key. */
static bool meets_all(struct attribute value, struct attributes attributes)
{
    const uint8_t *next = attributes.bytes;
    for (size_t i = 0; i < attributes.count; i++) {
        struct attribute one = next_attribute(&next);
        if (one.key == value.key && one.op != IS && !satisfies(value, one))
            return false;
    }
    return true;
}

/* Whether a value meets all constraints of a key. */
static bool is_key_met(uint8_t key, struct attributes subscription, struct attributes publication)
{
    const uint8_t *next = publication.bytes;
    for (size_t i = 0; i < publication.count; i++) {
        struct attribute one = next_attribute(&next);
        if (one.key == key && one.op == IS && meets_all(one, subscription))
            return true;
    }
    return false;
}

bool strict_match(struct attributes subscription, struct attributes publication)
{
    const uint8_t *next = subscription.bytes;
    for (size_t i = 0; i < subscription.count; i++) {
        struct attribute one = next_attribute(&next);
        if (one.op != IS && !is_key_met(one.key, subscription, publication))
            return false;
    }
    return true;
}

/* How two interests compare */

/* An INTERVAL that constrains data is a constraint; one that describes is none. */
static bool plays_a_part(struct attribute one)
{
    return one.key != INTERVAL_KEY || one.op != IS;
}

static size_t count_of(struct attribute wanted, struct attributes attributes)
{
    size_t count = 0;
    const uint8_t *next = attributes.bytes;
    for (size_t i = 0; i < attributes.count; i++) {
        struct attribute one = next_attribute(&next);
        /* The value beside EQ_ANY means nothing. */
        if (one.key == wanted.key && one.op == wanted.op && (one.op == EQ_ANY || is_same_value(one, wanted)))
            count++;
    }
    return count;
}

static size_t constraint_count(struct attributes attributes)
{
    size_t count = 0;
    const uint8_t *next = attributes.bytes;
    for (size_t i = 0; i < attributes.count; i++)
        count += plays_a_part(next_attribute(&next));
    return count;
}

bool same_constraints(struct attributes one, struct attributes other)
{
    if (constraint_count(one) != constraint_count(other))
        return false;
    const uint8_t *next = one.bytes;
    for (size_t i = 0; i < one.count; i++) {
        struct attribute wanted = next_attribute(&next);
        if (plays_a_part(wanted) && count_of(wanted, one) != count_of(wanted, other))
            return false;
    }
    return true;
}

uint16_t interval_of(struct attributes interest)
{
    const uint8_t *next = interest.bytes;
    for (size_t i = 0; i < interest.count; i++) {
        struct attribute one = next_attribute(&next);
        if (one.key == INTERVAL_KEY && one.op == IS)
            return one.number > 0 ? (uint16_t)one.number : 0;
    }
    return 0;
}

/* Whether a list has this key with this operator, and any value. */
static bool says(struct attributes attributes, uint8_t key, uint8_t op)
{
    const uint8_t *next = attributes.bytes;
    for (size_t i = 0; i < attributes.count; i++) {
        struct attribute one = next_attribute(&next);
        if (one.key == key && one.op == op)
            return true;
    }
    return false;
}

static bool constrains_key(struct attributes attributes, uint8_t key)
{
    const uint8_t *next = attributes.bytes;
    for (size_t i = 0; i < attributes.count; i++) {
        struct attribute one = next_attribute(&next);
        if (one.key == key && one.op != IS)
            return true;
    }
    return false;
}

static bool is_hole(struct attributes attributes, uint8_t key, int32_t number)
{
    if (number < LOWEST || number > HIGHEST)
        return false;
    struct attribute hole = {.key = key, .op = NE, .number = (int16_t)number};
    return count_of(hole, attributes) > 0;
}

/* The integers that meet all constraints on a key: from `low` to `high` without the holes between them. */
struct range {
    int32_t low;
    int32_t high;
};

static void narrow(struct range *range, struct attribute constraint)
{
    int32_t bound = constraint.number;
    uint8_t op = constraint.op;
    if (op == GT)
        bound += 1;
    if (op == LT)
        bound -= 1;
    if ((op == EQ || op == GE || op == GT) && bound > range->low)
        range->low = bound;
    if ((op == EQ || op == LE || op == LT) && bound < range->high)
        range->high = bound;
}

static struct range range_of(struct attributes attributes, uint8_t key)
{
    struct range range = {LOWEST, HIGHEST};
    const uint8_t *next = attributes.bytes;
    for (size_t i = 0; i < attributes.count; i++) {
        struct attribute one = next_attribute(&next);
        if (one.key == key)
            narrow(&range, one);
    }
    while (is_hole(attributes, key, range.low))
        range.low++;
    while (is_hole(attributes, key, range.high))
        range.high--;
    return range;
}

static bool integers_within(struct attributes inner, struct attributes outer, uint8_t key)
{
    struct range range = range_of(inner, key);
    struct range allowed = range_of(outer, key);
    if (range.low > range.high)
        return true;
    if (range.low < allowed.low || range.high > allowed.high)
        return false;
    const uint8_t *next = outer.bytes;
    for (size_t i = 0; i < outer.count; i++) {
        struct attribute hole = next_attribute(&next);
        if (hole.key == key && hole.op == NE && hole.number >= range.low && hole.number <= range.high &&
            !is_hole(inner, key, hole.number))
            return false;
    }
    return true;
}

/* Each blob that the inner list names and admits has to be admitted by the outer one. */
static bool named_blobs_within(struct attributes inner, struct attributes outer, uint8_t key)
{
    const uint8_t *next = inner.bytes;
    for (size_t i = 0; i < inner.count; i++) {
        struct attribute one = next_attribute(&next);
        if (one.key == key && one.op == EQ && meets_all(one, inner) && !meets_all(one, outer))
            return false;
    }
    return true;
}

static bool blobs_within(struct attributes inner, struct attributes outer, uint8_t key)
{
    if (says(inner, key, EQ))
        return named_blobs_within(inner, outer, key);
    const uint8_t *next = outer.bytes;
    for (size_t i = 0; i < outer.count; i++) {
        struct attribute one = next_attribute(&next);
        if (one.key != key || one.op == IS || one.op == EQ_ANY)
            continue;
        if (one.op != NE || count_of(one, inner) == 0)
            return false;
    }
    return true;
}

bool is_within(struct attributes reinforcement, struct attributes interest)
{
    const uint8_t *next = interest.bytes;
    for (size_t i = 0; i < interest.count; i++) {
        struct attribute one = next_attribute(&next);
        if (one.op == IS)
            continue;
        if (!constrains_key(reinforcement, one.key))
            return false;
        bool within = IS_BLOB(one.key) ? blobs_within(reinforcement, interest, one.key)
                                       : integers_within(reinforcement, interest, one.key);
        if (!within)
            return false;
    }
    return true;
}

/* Whether the other list has the IS attributes of the first list, except INTERVAL, as often. */
static bool has_descriptions(struct attributes one, struct attributes other)
{
    const uint8_t *next = one.bytes;
    for (size_t i = 0; i < one.count; i++) {
        struct attribute wanted = next_attribute(&next);
        if (wanted.op == IS && plays_a_part(wanted) && count_of(wanted, one) != count_of(wanted, other))
            return false;
    }
    return true;
}

/* Whether one attribute of a list lies within a constraint. */
static bool has_within(struct attributes attributes, struct attributes constraint)
{
    const uint8_t *next = attributes.bytes;
    for (size_t i = 0; i < attributes.count; i++) {
        const uint8_t *at = next;
        (void)next_attribute(&next);
        if (is_within((struct attributes){at, (size_t)(next - at), 1}, constraint))
            return true;
    }
    return false;
}

bool covers(struct attributes interest, struct attributes other, bool is_strict)
{
    if (interval_of(interest) > 0 || !has_descriptions(interest, other) || !has_descriptions(other, interest))
        return false;
    if (is_strict)
        return is_within(other, interest);
    /* Different values of a key may meet the constraints of `other`, so each has to follow from a single one. */
    const uint8_t *next = interest.bytes;
    for (size_t i = 0; i < interest.count; i++) {
        const uint8_t *at = next;
        struct attribute one = next_attribute(&next);
        if (one.op != IS && !has_within(other, (struct attributes){at, (size_t)(next - at), 1}))
            return false;
    }
    return true;
}

/* Samples */

struct attributes first_sample(struct attributes aggregate, struct attributes *rest)
{
    const uint8_t *next = aggregate.bytes;
    const uint8_t *end = aggregate.bytes;
    size_t count = 0;
    while (count < aggregate.count) {
        uint8_t key = next_attribute(&next).key;
        if (count > 0 && key == aggregate.bytes[0])
            break;
        end = next;
        count++;
    }
    size_t size = (size_t)(end - aggregate.bytes);
    *rest = (struct attributes){end, aggregate.size - size, aggregate.count - count};
    return (struct attributes){aggregate.bytes, size, count};
}

bool begins_once(struct attributes attributes)
{
    struct attributes rest;
    (void)first_sample(attributes, &rest);
    return rest.count == 0;
}

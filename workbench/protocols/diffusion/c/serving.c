/* Forwarding of data: one copy to each of a few neighbors, with a list of the sinks that other copies serve.
 * `workbench/protocols/diffusion/node.py` defines it.
 *
 * A path is one copy for one sink. Fields of its first gradient represent it, instead of a list of paths: `is_path`;
 * `is_open`, until a neighbor is chosen for it; `hop`, the index of that neighbor among the next hops;
 * `may_spread`: any gradient as near to the sink may be used instead; `is_further`: not the first copy for its sink. */
#include "bytes.h"
#include "node.h"

#include <string.h>

#include "rules.h"

/* A message to forward. Sinks that other copies serve: those of the message's list, those with bits in `served` (may be
 * NULL), and this node itself if it `wants` the data. */
struct serving {
    struct diffusion *node;
    const struct data *data;
    const uint8_t *served;
    int64_t now;
    int32_t not_to; /* the neighbor that has brought the data */
    bool wants;
    uint8_t hop_count;
    uint16_t hops[MAX_NEXT_HOPS];
};

enum { NO_SINK = UINT16_MAX + 1 };

/* Sinks */

static bool has_bit(const uint8_t *bits, size_t place)
{
    return (bits[place / 8] >> place % 8 & 1) != 0;
}

/* Return the lowest sink above a given one that other copies serve. */
static int32_t next_other(const struct serving *serving, int32_t above)
{
    const struct diffusion *node = serving->node;
    const struct data *data = serving->data;
    int32_t lowest = serving->wants && node->address > above ? node->address : NO_SINK;
    for (size_t i = 0; i < data->other_count; i++) {
        int32_t sink = get_u16(data->others + OTHER_B * i);
        if (sink > above && sink < lowest)
            lowest = sink;
    }
    for (size_t i = 0; serving->served != NULL && i < node->served_count; i++) {
        int32_t sink = node->served_sinks[i];
        if (has_bit(serving->served, i) && sink > above && sink < lowest)
            lowest = sink;
    }
    return lowest;
}

static bool is_left_out(const struct serving *serving, uint16_t sink)
{
    return sink == serving->node->address || sink == serving->data->source ||
           next_other(serving, (int32_t)sink - 1) == sink;
}

/* Return the bit of a sink with a gradient; if all are in use, that of a sink without gradients. */
static size_t bit_of(struct diffusion *node, uint16_t sink)
{
    for (size_t i = 0; i < node->served_count; i++)
        if (node->served_sinks[i] == sink)
            return i;
    size_t place = 0;
    if (node->served_count < SERVED_SINKS) {
        place = node->served_count++;
    } else {
        for (size_t i = 0; i < node->entry_count;) {
            bool is_used = has_sink(entry_at(node, i), node->served_sinks[place]);
            i = is_used ? 0 : i + 1;
            place += is_used;
        }
        for (size_t i = 0; i < node->seen_data_count; i++)
            node->seen_data[i].served[place / 8] &= (uint8_t) ~(1u << place % 8);
    }
    node->served_sinks[place] = sink;
    return place;
}

/* The gradients of the whole cache, one after the other */

struct cursor {
    struct diffusion *node;
    size_t place; /* index of the entry */
    size_t next;
    struct interest_entry *entry; /* entry of the last gradient */
};

static struct cursor first_of(const struct serving *serving)
{
    return (struct cursor){.node = serving->node};
}

static struct gradient *next_gradient(struct cursor *cursor)
{
    for (; cursor->place < cursor->node->entry_count; cursor->place++, cursor->next = 0) {
        cursor->entry = entry_at(cursor->node, cursor->place);
        if (cursor->next < cursor->entry->gradient_count)
            return &cursor->entry->gradients[cursor->next++];
    }
    return NULL;
}

static struct gradient *next_path(struct cursor *cursor, bool is_open)
{
    struct gradient *one = next_gradient(cursor);
    while (one != NULL && (!one->is_path || one->is_open != is_open))
        one = next_gradient(cursor);
    return one;
}

/* Paths */

static bool is_live(const struct serving *serving, const struct gradient *gradient)
{
    return gradient->expires_us > serving->now && gradient->neighbor != serving->not_to;
}

/* Return an entry's first path to a gradient's sink among the gradients before it, and count these paths. */
static struct gradient *first_path(struct interest_entry *entry, const struct gradient *gradient, unsigned *count)
{
    struct gradient *first = NULL;
    *count = 0;
    for (struct gradient *one = entry->gradients; one < gradient; one++) {
        if (!one->is_path || one->sink != gradient->sink)
            continue;
        if (first == NULL)
            first = one;
        ++*count;
    }
    return first;
}

/* Mark a gradient as a path if it is the first of its sink, or one of the first few. For data that neighbor `failed`
 * did not acknowledge (else NOBODY), it is the sink's first gradient to another neighbor or, without one, to `failed`. */
static void mark_path(struct interest_entry *entry, struct gradient *gradient, uint8_t exploratory, int32_t failed)
{
    unsigned count;
    struct gradient *first = first_path(entry, gradient, &count);
    bool is_detour = first != NULL && failed != NOBODY && first->neighbor == failed;
    if (is_detour)
        first->is_path = false;
    else if (first != NULL && (first->is_reinforced || count >= exploratory))
        return;
    gradient->is_path = true;
    gradient->is_open = true;
    gradient->is_further = first != NULL && !is_detour;
    gradient->may_spread = first == NULL && failed == NOBODY && exploratory == 1 && !gradient->is_reinforced;
}

/* Find the paths of data; return whether there are any. */
static bool find_paths(const struct serving *serving, uint8_t exploratory, int32_t failed)
{
    struct gradient *gradient;
    const struct interest_entry *last = NULL;
    bool is_wanted = false;
    bool are_any = false;
    for (struct cursor cursor = first_of(serving); (gradient = next_gradient(&cursor)) != NULL;) {
        gradient->is_path = false;
        if (cursor.entry != last)
            is_wanted = is_match(serving->node, view(&cursor.entry->attributes), serving->data->attributes);
        last = cursor.entry;
        if (!is_wanted || !is_live(serving, gradient) || is_left_out(serving, gradient->sink))
            continue;
        mark_path(cursor.entry, gradient, exploratory, failed);
        are_any = true;
    }
    return are_any;
}

/* Return whether a path of an entry may go to a neighbor. */
static bool may_go_to(const struct serving *serving, const struct interest_entry *entry, const struct gradient *path,
                      uint16_t neighbor)
{
    if (path->neighbor == neighbor || !path->may_spread)
        return path->neighbor == neighbor;
    int place = gradient_place(entry, path->sink, neighbor);
    return place != NO_PLACE && is_live(serving, &entry->gradients[place]) && entry->gradients[place].ttl >= path->ttl;
}

/* Count the open paths, first or further ones, that may go to a neighbor, and those whose head leads to it. */
static unsigned count_paths(const struct serving *serving, uint16_t neighbor, bool are_further, unsigned *heads)
{
    const struct gradient *path;
    unsigned count = 0;
    *heads = 0;
    for (struct cursor cursor = first_of(serving); (path = next_path(&cursor, true)) != NULL;) {
        if (path->is_further != are_further || !may_go_to(serving, cursor.entry, path, neighbor))
            continue;
        count++;
        *heads += path->neighbor == neighbor;
    }
    return count;
}

/* Return the neighbor that serves most of the open paths, first or further ones; NOBODY without open paths. */
static int32_t best_hop(const struct serving *serving, bool are_further)
{
    const struct gradient *gradient;
    int32_t best = NOBODY;
    unsigned most = 0;
    unsigned most_heads = 0;
    for (struct cursor cursor = first_of(serving); (gradient = next_gradient(&cursor)) != NULL;) {
        unsigned heads;
        unsigned count = gradient->neighbor == best ? 0 : count_paths(serving, gradient->neighbor, are_further, &heads);
        if (count > 0 && is_better_hop(count, heads, gradient->neighbor, most, most_heads, best)) {
            best = gradient->neighbor;
            most = count;
            most_heads = heads;
        }
    }
    return best;
}

/* Choose next hops, each for as many paths as it can serve; false if more are needed than fit. */
static bool choose_hops(struct serving *serving)
{
    for (;;) {
        struct gradient *path;
        int32_t best = best_hop(serving, false);
        if (best == NOBODY)
            best = best_hop(serving, true);
        if (best == NOBODY)
            return true;
        if (serving->hop_count >= MAX_NEXT_HOPS)
            return false;
        for (struct cursor cursor = first_of(serving); (path = next_path(&cursor, true)) != NULL;)
            if (may_go_to(serving, cursor.entry, path, (uint16_t)best)) {
                path->is_open = false;
                path->hop = serving->hop_count;
            }
        serving->hops[serving->hop_count++] = (uint16_t)best;
    }
}

/* Frames */

/* Return whether a path serves a sink: by the given next hop, or (NO_PLACE) by any. */
static bool is_served(const struct serving *serving, int32_t sink, int hop)
{
    const struct gradient *path;
    for (struct cursor cursor = first_of(serving); (path = next_path(&cursor, false)) != NULL;)
        if (path->sink == sink && (hop == NO_PLACE || path->hop == hop))
            return true;
    return false;
}

/* Return the lowest sink above a given one that this node's copies to other next hops serve. */
static int32_t next_served(const struct serving *serving, int32_t above, int hop)
{
    const struct gradient *path;
    int32_t lowest = NO_SINK;
    for (struct cursor cursor = first_of(serving); (path = next_path(&cursor, false)) != NULL;)
        if (path->sink > above && path->sink < lowest && !is_served(serving, path->sink, hop))
            lowest = path->sink;
    return lowest;
}

/* Write the sinks that copies to other next hops serve, as many as fit; return their number. Those that this node's own
 * copies serve come first, as the end of a long list is cut. */
static uint8_t list_others(const struct serving *serving, int hop, uint8_t *list)
{
    size_t size = serving->data->attributes.size + DATA_HEADER_B + 1;
    size_t room = size < MESSAGE_B ? (MESSAGE_B - size) / OTHER_B : 0;
    uint8_t count = 0;
    bool are_own = true;
    for (int32_t sink = NOBODY; count < room;) {
        sink = are_own ? next_served(serving, sink, hop) : next_other(serving, sink);
        if (sink == NO_SINK) {
            if (!are_own)
                break;
            are_own = false;
            sink = NOBODY;
        } else if (sink != serving->hops[hop] && (are_own || !is_served(serving, sink, NO_PLACE))) {
            put_u16(list + OTHER_B * count++, (uint16_t)sink);
        }
    }
    return count;
}

static void send_data(const struct serving *serving)
{
    const struct driver *driver = serving->node->driver;
    struct attributes attributes = serving->data->attributes;
    uint8_t header[1 + MESSAGE_B]; /* a list that fits leaves enough bytes for the attributes */
    for (int hop = 0; hop < serving->hop_count; hop++) {
        uint8_t count = list_others(serving, hop, header + OTHERS_AT);
        size_t size = data_encode_next(serving->data, serving->node->address, count, header);
        struct frame frame = {header, size, attributes.bytes, attributes.size};
        driver->send(driver->context, serving->hops[hop], &frame);
    }
}

/* Note the sinks that a message was sent towards. */
static void note_served(const struct serving *serving, struct seen_data *seen)
{
    const struct gradient *path;
    for (int hop = 0; hop < serving->hop_count; hop++)
        for (struct cursor cursor = first_of(serving); (path = next_path(&cursor, false)) != NULL;) {
            if (path->hop != hop)
                continue;
            size_t bit = bit_of(serving->node, path->sink);
            seen->served[bit / 8] |= (uint8_t)(1u << bit % 8);
        }
}

/* Return whether a path is for a sink that this node has sent the message towards. */
static bool goes_to_served(const struct serving *serving, const struct seen_data *seen)
{
    const struct gradient *path;
    for (struct cursor cursor = first_of(serving); (path = next_path(&cursor, true)) != NULL;)
        for (size_t i = 0; i < serving->node->served_count; i++)
            if (has_bit(seen->served, i) && serving->node->served_sinks[i] == path->sink)
                return true;
    return false;
}

bool forward_data(struct diffusion *node, const struct data *data, struct seen_data *seen, int64_t now)
{
    struct serving serving = {.node = node, .data = data, .now = now};
    serving.not_to = data->previous_hop;
    serving.wants = data_is_wanted(node, data->attributes);
    uint8_t exploratory = gradients_to_try(node, now);
    bool are_any = find_paths(&serving, exploratory, NOBODY);
    bool is_repeated = goes_to_served(&serving, seen);
    if (is_repeated && has_circled(data->ttl, seen->ttl) && may_retry(seen->retries)) {
        /* A reinforcement has moved the path meanwhile, so the copy is forwarded as if it were new. */
        seen->retries++;
        seen->ttl = data->ttl;
        memset(seen->served, 0, sizeof seen->served);
    } else {
        serving.served = seen->served;
        if (is_repeated)
            are_any = find_paths(&serving, exploratory, NOBODY);
    }
    if (!are_any)
        return false;
    if (data->ttl <= 1) {
        drop_data(node, data, DIFFUSION_TTL);
        return true;
    }
    if (!choose_hops(&serving))
        drop_data(node, data, DIFFUSION_FULL); /* once for all neighbors that are left out */
    send_data(&serving);
    tell(node, FORWARDED, data->previous_hop, "data", data->source, data->sequence, serving.hop_count, "");
    note_served(&serving, seen);
    return true;
}

/* Frames that were not acknowledged */

/* Decode a data message that this node has sent; false for any other frame. */
static bool own_data(const struct diffusion *node, const uint8_t *frame, size_t size, struct data *data)
{
    return size <= 1 + MESSAGE_B && data_decode(frame, size, data) && may_be_data(node, data->attributes) &&
           data->previous_hop == node->address;
}

/* Send data again that a neighbor did not acknowledge. */
static void send_again(struct diffusion *node, uint16_t failed, uint16_t not_to, struct data *data, int64_t now)
{
    struct serving serving = {.node = node, .data = data, .now = now};
    serving.not_to = not_to == NO_HOP ? NOBODY : not_to;
    clean(node, now);
    (void)find_paths(&serving, 1, failed);
    (void)choose_hops(&serving);
    data->ttl++; /* send_data lowers it by one hop, as it did with this frame before */
    send_data(&serving);
}

void send_waiting(struct diffusion *node, int64_t now)
{
    for (size_t i = 0; i < node->waiting_count;) {
        struct waiting *due = &node->waiting[i];
        struct data data;
        if (kept_time(due->due_us) > now) {
            i++;
            continue;
        }
        if (own_data(node, due->frame, due->size, &data))
            send_again(node, due->failed, due->previous_hop, &data, now);
        node->waiting_count--;
        memmove(due, due + 1, (node->waiting_count - i) * sizeof *due);
    }
}

void diffusion_sent(struct diffusion *node, uint32_t destination, const uint8_t *frame, size_t size, bool ok,
                    int64_t now)
{
    struct data data;
    if (ok || !own_data(node, frame, size, &data))
        return;
    struct seen_data *seen = seen_data_of(node, data.source, data.sequence);
    if (seen == NULL || !may_retry(seen->retries))
        return;
    seen->retries++;
    if (node->waiting_count >= MAX_WAITING) {
        send_again(node, (uint16_t)destination, seen->previous_hop, &data, now);
        return;
    }
    struct waiting *waiting = &node->waiting[node->waiting_count++];
    keep_time(waiting->due_us, now + 1 + random_below(&node->random, RETRY_WITHIN_US));
    waiting->failed = (uint16_t)destination;
    waiting->previous_hop = seen->previous_hop;
    waiting->size = (uint8_t)size;
    memcpy(waiting->frame, frame, size);
    plan_wake(node);
}

/* Reinforcement: rules by which a sink chooses one of its data's paths, and by which nodes set up that path.
 * `workbench/protocols/diffusion/reinforcement.py` defines them. */
#include "node.h"

/* The next hops of a reinforcement, each with its source. */
struct paths {
    uint8_t count;
    struct {
        uint16_t neighbor;
        uint16_t source;
    } list[MAX_NEXT_HOPS];
};

static bool leads_to(const struct paths *paths, uint16_t neighbor)
{
    for (size_t i = 0; i < paths->count; i++)
        if (paths->list[i].neighbor == neighbor)
            return true;
    return false;
}

/* Add the path along a data gradient. `same`: whether reinforcement and interest have the same constraints. */
static void add_path(struct diffusion *node, struct paths *paths, const struct interest *reinforcement, bool same,
                     struct data_gradient *one)
{
    bool is_new = !leads_to(paths, one->neighbor);
    enum diffusion_reason reason = DIFFUSION_FULL;
    bool is_full = (same && one->sink_count >= MAX_SINKS) || (is_new && paths->count >= MAX_NEXT_HOPS);
    bool is_listed = is_black_listed(node, one->neighbor);
    if (is_listed || is_full) {
        if (is_listed)
            reason = DIFFUSION_BLACKLISTED;
        drop(node, one->neighbor, "reinforcement", reinforcement->sink, reinforcement->sequence, reason);
        return;
    }
    if (same)
        one->sinks[one->sink_count++] = reinforcement->sink;
    if (is_new) {
        paths->list[paths->count].neighbor = one->neighbor;
        paths->list[paths->count].source = one->source;
        paths->count++;
    }
}

/* Add an interest's data gradients that match a reinforcement, one for each neighbor. */
static void add_paths(struct diffusion *node, struct paths *paths, const struct interest *reinforcement, bool same,
                      struct data_gradient *data_gradients, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct data_gradient *one = &data_gradients[i];
        /* A source whose path is already reinforced is left out, unless the reinforcement is further constrained. */
        if (one->neighbor == reinforcement->previous_hop || (same && is_reinforced_for(one, reinforcement->sink)))
            continue;
        if (is_match(node, reinforcement->attributes, view(&one->attributes)))
            add_path(node, paths, reinforcement, same, one);
    }
}

/* Send a reinforcement along these paths; return the number of neighbors. */
static uint8_t send_along(struct diffusion *node, const struct interest *reinforcement, const struct paths *paths)
{
    if (paths->count > 0 && reinforcement->ttl <= 1) {
        drop_interest(node, reinforcement, "reinforcement", DIFFUSION_TTL);
        return 0;
    }
    struct interest next = *reinforcement;
    next.previous_hop = node->address;
    next.ttl--;
    uint8_t header[INTEREST_BODY_AT];
    interest_encode(&next, header);
    struct frame frame = {header, sizeof header, next.attributes.bytes, next.attributes.size};
    for (size_t i = 0; i < paths->count; i++) {
        uint16_t neighbor = paths->list[i].neighbor;
        node->driver->send(node->driver->context, neighbor, &frame);
        tell(node, REINFORCED, neighbor, "reinforcement", next.sink, next.sequence, paths->list[i].source, "");
    }
    return paths->count;
}

/* Send a reinforcement along these data gradients of an own interest. */
uint8_t start_reinforcement(struct diffusion *node, struct own_interest *own, struct attributes attributes,
                            struct data_gradient *data_gradients, size_t count, int64_t now)
{
    struct interest reinforcement = {
        .sequence = take_sequence(node),
        .sink = node->address,
        .round = own->round,
        .previous_hop = node->address,
        /* send_along lowers the ttl by one hop */
        .ttl = (uint16_t)(node->settings->ttl + 1),
        .expiration_s = own_expiration_s(node, own, now),
        .attributes = attributes,
    };
    struct paths paths = {0};
    bool same = same_constraints(view(&own->attributes), attributes);
    add_paths(node, &paths, &reinforcement, same, data_gradients, count);
    return send_along(node, &reinforcement, &paths);
}

/* Return whether a further constrained reinforcement lies within the interest of this entry (A20). */
static bool is_around(const struct interest_entry *entry, const struct interest *reinforcement)
{
    return is_within(reinforcement->attributes, view(&entry->attributes)) && has_sink(entry, reinforcement->sink);
}

static bool lies_within_any(struct diffusion *node, const struct interest *reinforcement)
{
    for (size_t i = 0; i < node->entry_count; i++)
        if (is_around(entry_at(node, i), reinforcement))
            return true;
    return false;
}

/* Return whether a reinforcement is accepted; if not, set `*reason`. `entry`: the equally constrained one, or NULL. */
static bool is_taken(struct diffusion *node, const struct interest *reinforcement, const struct interest_entry *entry,
                     enum diffusion_reason *reason)
{
    uint16_t sink = reinforcement->sink;
    *reason = DIFFUSION_DUPLICATE;
    if (sink == node->address)
        return false;
    if (entry == NULL) {
        *reason = DIFFUSION_NO_INTEREST;
        return lies_within_any(node, reinforcement);
    }
    int64_t newest = newest_reinforcement(entry, sink);
    if (newest == reinforcement->sequence)
        return false;
    *reason = DIFFUSION_STALE;
    return newest < reinforcement->sequence && !has_newer_round(entry, sink, reinforcement->round);
}

/* Add the paths of a reinforcement from all interests that contain it. */
static void find_paths(struct diffusion *node, const struct interest *reinforcement, struct paths *paths)
{
    for (size_t i = 0; i < node->entry_count; i++) {
        struct interest_entry *other = entry_at(node, i);
        if (is_around(other, reinforcement))
            add_paths(node, paths, reinforcement, false, other->data_gradients.list, other->data_gradients.count);
    }
}

void receive_reinforcement(struct diffusion *node, const struct interest *reinforcement, int64_t now)
{
    clean(node, now);
    struct interest_entry *entry = entry_of(node, reinforcement->attributes);
    enum diffusion_reason reason;
    if (!is_taken(node, reinforcement, entry, &reason)) {
        drop_interest(node, reinforcement, "reinforcement", reason);
        return;
    }
    struct paths paths = {0};
    if (entry != NULL) {
        add_paths(node, &paths, reinforcement, true, entry->data_gradients.list, entry->data_gradients.count);
    } else {
        /* Find the paths first, as the new entry may evict one of these entries. */
        find_paths(node, reinforcement, &paths);
        entry = new_entry(node, reinforcement);
    }
    set_gradient(node, entry, reinforcement, now, true);
    set_pace(node, entry, reinforcement);
    (void)send_along(node, reinforcement, &paths);
    plan_tick(node, now);
}

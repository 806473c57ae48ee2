/* Interests, own ones and those of other nodes, and the interest cache.
 * `workbench/protocols/diffusion/node.py` defines it. */
#include "node.h"
#include "rules.h"

/* Orders: indices of an array, oldest first */

static uint8_t free_place(const uint8_t *order, uint8_t count)
{
    for (uint8_t place = 0;; place++) {
        bool is_free = true;
        for (size_t i = 0; i < count; i++)
            is_free = is_free && order[i] != place;
        if (is_free)
            return place;
    }
}

static void take_out(uint8_t *order, uint8_t *count, size_t place)
{
    *count = (uint8_t)(*count - 1);
    for (size_t i = place; i < *count; i++)
        order[i] = order[i + 1];
}

/* Own interests */

struct own_interest *own_at(struct diffusion *node, size_t place)
{
    return &node->own_interests[node->own_order[place]];
}

int own_place_of(const struct diffusion *node, struct attributes attributes)
{
    for (int i = 0; i < node->own_count; i++) {
        const struct own_interest *own = &node->own_interests[node->own_order[i]];
        if (same_constraints(view(&own->attributes), attributes))
            return i;
    }
    return NO_PLACE;
}

/* Add an own interest and return its index, or an error. */
int64_t new_own_interest(struct diffusion *node, struct attributes attributes)
{
    if (node->own_count >= MAX_INTERESTS)
        return TOO_MANY_INTERESTS;
    uint32_t sequence = take_sequence(node);
    if (attributes.size > MESSAGE_B - INTEREST_HEADER_B)
        return TOO_LONG;
    uint8_t place = free_place(node->own_order, node->own_count);
    node->own_order[node->own_count] = place;
    struct own_interest *own = &node->own_interests[place];
    own->sequence = sequence;
    own->round = 0;
    own->reinforcements = 0;
    own->refresh_us = NEVER;
    own->repeat_us = NEVER;
    own->is_new = true;
    own->data_gradients.count = 0;
    keep(&own->attributes, attributes);
    return node->own_count++;
}

void remove_own(struct diffusion *node, size_t place)
{
    take_out(node->own_order, &node->own_count, place);
}

static bool belongs_to(const struct diffusion *node, const struct diffusion_subscription *subscription,
                       const struct own_interest *own)
{
    return &node->own_interests[subscription->own] == own;
}

/* Return when the last subscription of an own interest ends, or INT64_MIN if it has none. */
int64_t own_end(const struct diffusion *node, const struct own_interest *own)
{
    int64_t ends_us = INT64_MIN;
    for (size_t i = 0; i < node->subscription_count; i++)
        if (belongs_to(node, &node->subscriptions[i], own) && node->subscriptions[i].expires_us > ends_us)
            ends_us = node->subscriptions[i].expires_us;
    return ends_us;
}

/* Return the lifetime of an own interest's gradients (s): until its last subscription ends, if not too long. */
uint16_t own_expiration_s(const struct diffusion *node, const struct own_interest *own, int64_t now)
{
    int64_t ends_us = own_end(node, own);
    if (ends_us == NEVER)
        return node->settings->lifetime_s;
    return expiration_s(now, ends_us, node->settings->lifetime_s);
}

/* Return whether the first of two own interests brings all data of the second and ends no earlier. */
static bool covers_own(const struct diffusion *node, const struct own_interest *own, const struct own_interest *other)
{
    return own_end(node, own) >= own_end(node, other) &&
           covers(view(&own->attributes), view(&other->attributes), node->settings->matching == MATCHING_STRICT);
}

/* Return whether another own interest covers the one at an index; of two that cover each other, the older one does. */
static bool is_covered(struct diffusion *node, size_t place)
{
    const struct own_interest *own = own_at(node, place);
    for (size_t i = 0; i < node->own_count; i++) {
        const struct own_interest *other = own_at(node, i);
        if (i != place && covers_own(node, other, own) && (i < place || !covers_own(node, own, other)))
            return true;
    }
    return false;
}

/* Flood the own interests that are not flooded yet, except covered ones, which are no longer refreshed. */
void flood_interests(struct diffusion *node, int64_t now)
{
    for (size_t place = 0; place < node->own_count; place++) {
        struct own_interest *own = own_at(node, place);
        if (node->settings->merge_interests && is_covered(node, place)) {
            own->is_flooded = false;
            own->refresh_us = NEVER;
            own->repeat_us = NEVER;
        } else if (!own->is_flooded) {
            own->is_flooded = true;
            send_interest(node, own, now);
        }
    }
    plan_wake(node);
}

static void broadcast_interest(const struct diffusion *node, const struct interest *interest)
{
    uint8_t header[INTEREST_BODY_AT];
    interest_encode(interest, header);
    struct frame frame = {header, sizeof header, interest->attributes.bytes, interest->attributes.size};
    node->driver->send(node->driver->context, BROADCAST, &frame);
}

static struct interest interest_of(const struct diffusion *node, const struct own_interest *own, uint16_t lasts_s)
{
    return (struct interest){
        .sequence = own->sequence,
        .sink = node->address,
        .round = own->round,
        .previous_hop = node->address,
        .ttl = node->settings->ttl,
        .expiration_s = lasts_s,
        .attributes = view(&own->attributes),
    };
}

/* Flood an own interest, in the next round unless it is new: with the known round, neighbors would drop it and not
 * learn a later expiration. */
void send_interest(struct diffusion *node, struct own_interest *own, int64_t now)
{
    if (!own->is_new) {
        own->round = next_round(own->round);
        own->reinforcements = 0;
        forget_reinforcements(&own->data_gradients, node->address);
    }
    own->is_new = false;
    tell_attributes(node, INTEREST_CACHED, NOBODY, "interest", node->address, own->sequence, own->round,
                    view(&own->attributes));
    own->refresh_us = node->settings->refresh_us > 0 ? now + node->settings->refresh_us : NEVER;
    own->repeats = 0;
    flood(node, own, now);
}

/* Send the current round of an own interest, and plan to repeat it unless a neighbor forwards it. */
void flood(struct diffusion *node, struct own_interest *own, int64_t now)
{
    struct interest interest = interest_of(node, own, own_expiration_s(node, own, now));
    broadcast_interest(node, &interest);
    own->repeat_us = NEVER;
    if (own->repeats < node->settings->max_repeats)
        own->repeat_us = now + REPEAT_AFTER_US + random_below(&node->random, REPEAT_WITHIN_US);
}

/* Cancel an own interest in the whole network. */
void cancel_own(struct diffusion *node, struct own_interest *own)
{
    own->round = next_round(own->round);
    struct interest interest = interest_of(node, own, 0);
    broadcast_interest(node, &interest);
}

/* Cancel the repetition of an own interest, as a neighbor has forwarded it. */
static void hear_own(struct diffusion *node, const struct interest *interest)
{
    for (size_t i = 0; i < node->own_count; i++) {
        struct own_interest *own = own_at(node, i);
        if (own->sequence == interest->sequence && own->round == interest->round && own->repeat_us != NEVER) {
            own->repeat_us = NEVER;
            plan_wake(node);
        }
    }
}

/* Interests already seen */

static struct seen_interest *seen(struct diffusion *node, const struct interest *interest)
{
    for (size_t i = 0; i < node->seen_interest_count; i++) {
        struct seen_interest *one = &node->seen_interests[i];
        if (one->sink == interest->sink && one->sequence == interest->sequence)
            return one;
    }
    return NULL;
}

/* Return the round of an interest; NOBODY if it is unknown or was heard too long ago to compare rounds. */
static int known_round(struct diffusion *node, const struct interest *interest, int64_t now)
{
    const struct seen_interest *one = seen(node, interest);
    if (one == NULL || now - one->heard_us >= node->settings->known_for_us)
        return NOBODY;
    return one->round;
}

static bool is_older(const struct seen_interest *one, const struct seen_interest *other)
{
    if (one->heard_us != other->heard_us)
        return one->heard_us < other->heard_us;
    if (one->sink != other->sink)
        return one->sink < other->sink;
    return one->sequence < other->sequence;
}

/* Return a free entry for an interest, or that of the interest not heard for longest. */
static struct seen_interest *place_to_note(struct diffusion *node)
{
    if (node->seen_interest_count < MAX_SEEN_INTERESTS)
        return &node->seen_interests[node->seen_interest_count++];
    struct seen_interest *oldest = &node->seen_interests[0];
    for (size_t i = 1; i < MAX_SEEN_INTERESTS; i++)
        if (is_older(&node->seen_interests[i], oldest))
            oldest = &node->seen_interests[i];
    return oldest;
}

static void note_seen(struct diffusion *node, const struct interest *interest, int64_t now)
{
    struct seen_interest *one = seen(node, interest);
    if (one == NULL)
        one = place_to_note(node);
    *one = (struct seen_interest){now, interest->sequence, interest->sink, interest->round};
}

/* The cache */

struct interest_entry *entry_at(struct diffusion *node, size_t place)
{
    return &node->entries[node->entry_order[place]];
}

struct interest_entry *entry_of(struct diffusion *node, struct attributes attributes)
{
    for (size_t i = 0; i < node->entry_count; i++)
        if (same_constraints(view(&entry_at(node, i)->attributes), attributes))
            return entry_at(node, i);
    return NULL;
}

static void tell_removed(const struct diffusion *node, const struct gradient *gradient, const char *reason)
{
    uint32_t number = gradient_number(gradient);
    tell(node, GRADIENT_REMOVED, gradient->neighbor, "interest", gradient->sink, number, 0, reason);
}

/* Report a sink's first gradient if it differs from `before`. */
static void tell_head(const struct diffusion *node, const struct interest_entry *entry, uint16_t sink,
                      struct head before)
{
    struct head head = head_of(entry, sink);
    bool is_same = before.exists && head.neighbor == before.neighbor && head.number == before.number &&
                   head.is_reinforced == before.is_reinforced;
    if (head.exists && !is_same)
        tell(node, HEAD_SET, head.neighbor, "interest", sink, head.number, head.is_reinforced, "");
}

/* Report the gradients that have become the first of their sinks since `note_heads`, after others were removed. */
static void tell_new_heads(const struct diffusion *node, const struct interest_entry *entry)
{
    for (int i = 0; i < entry->gradient_count; i++) {
        const struct gradient *one = &entry->gradients[i];
        if (!one->was_head && head_place(entry, one->sink) == i)
            tell_head(node, entry, one->sink, (struct head){0});
    }
}

static void take_gradient(struct diffusion *node, struct interest_entry *entry, size_t place, const char *reason)
{
    tell_removed(node, &entry->gradients[place], reason);
    remove_gradient(entry, place);
}

static void take_entry(struct diffusion *node, size_t place, const char *reason)
{
    const struct interest_entry *entry = entry_at(node, place);
    forget_paces(node, node->entry_order[place]);
    take_out(node->entry_order, &node->entry_count, place);
    tell(node, INTEREST_REMOVED, NOBODY, "interest", entry->sink, entry->sequence, 0, reason);
}

/* Add an entry to the cache, which evicts the oldest if the cache is full. */
struct interest_entry *new_entry(struct diffusion *node, const struct interest *interest)
{
    node->is_evicting = node->entry_count >= MAX_INTERESTS;
    if (node->is_evicting) {
        const struct interest_entry *oldest = entry_at(node, 0);
        for (size_t i = 0; i < oldest->gradient_count; i++)
            tell_removed(node, &oldest->gradients[i], "evicted");
        take_entry(node, 0, "evicted");
    }
    uint8_t place = free_place(node->entry_order, node->entry_count);
    node->entry_order[node->entry_count++] = place;
    struct interest_entry *entry = &node->entries[place];
    entry->gradient_count = 0;
    entry->sink = interest->sink;
    entry->sequence = interest->sequence;
    entry->data_gradients.count = 0;
    keep(&entry->attributes, interest->attributes);
    return entry;
}

/* Append a gradient, which may replace another in a full list; return its index, NO_PLACE if it was dropped. */
static int add_gradient(struct diffusion *node, struct interest_entry *entry, const struct interest *interest,
                        int64_t expires_us, bool is_reinforcement)
{
    if (entry->gradient_count >= MAX_GRADIENTS) {
        int place = gradient_to_replace(entry, interest->sink, is_reinforcement);
        if (place == NO_PLACE)
            return NO_PLACE;
        take_gradient(node, entry, (size_t)place, "evicted");
    }
    append_gradient(entry, interest->sink, interest->previous_hop, expires_us);
    return entry->gradient_count - 1;
}

/* `set_gradient` without a report of the sink's first gradient. */
static void renew_gradient(struct diffusion *node, struct interest_entry *entry, const struct interest *interest,
                           int64_t now, bool is_reinforcement)
{
    int64_t expires_us = now + (int64_t)interest->expiration_s * SECOND_US;
    int place = gradient_place(entry, interest->sink, interest->previous_hop);
    bool is_new = place == NO_PLACE;
    if (is_new)
        place = add_gradient(node, entry, interest, expires_us, is_reinforcement);
    if (place == NO_PLACE)
        return;
    struct gradient *gradient = &entry->gradients[place];
    gradient->round = interest->round;
    if (!is_reinforcement) {
        gradient->ttl = (uint8_t)interest->ttl;
        if (!is_new && !gradient->has_sequence) {
            /* Its events have the interest's number after this. */
            tell_removed(node, gradient, "interest");
            is_new = true;
        }
        if (!gradient->has_sequence || gradient->sequence < interest->sequence)
            gradient->sequence = interest->sequence;
        gradient->has_sequence = true;
    }
    if (!is_reinforcement && !is_new && gradient->expires_us >= expires_us)
        return;
    if (gradient->expires_us < expires_us)
        gradient->expires_us = expires_us;
    expires_us = gradient->expires_us;
    if (expires_us < node->first_expiry_us)
        node->first_expiry_us = expires_us;
    if (is_reinforcement)
        reinforce_gradient(entry, (size_t)place, interest->sequence);
    const char *kind = is_reinforcement ? "reinforcement" : "interest";
    tell(node, GRADIENT_SET, interest->previous_hop, kind, interest->sink, interest->sequence, expires_us, kind);
}

/* Set or renew the gradient towards the neighbor that sent an interest, or a reinforcement. */
void set_gradient(struct diffusion *node, struct interest_entry *entry, const struct interest *interest, int64_t now,
                  bool is_reinforcement)
{
    struct head before = head_of(entry, interest->sink);
    renew_gradient(node, entry, interest, now, is_reinforcement);
    tell_head(node, entry, interest->sink, before);
}

void forget_neighbor(struct diffusion *node, uint16_t neighbor)
{
    for (size_t place = 0; place < node->entry_count; place++) {
        struct interest_entry *entry = entry_at(node, place);
        note_heads(entry);
        for (size_t i = 0; i < entry->gradient_count;) {
            if (entry->gradients[i].neighbor == neighbor)
                take_gradient(node, entry, i, "blacklisted");
            else
                i++;
        }
        tell_new_heads(node, entry);
    }
}

static void remove_expired(struct diffusion *node, struct interest_entry *entry, int64_t now)
{
    note_heads(entry);
    for (size_t i = 0; i < entry->gradient_count;) {
        if (entry->gradients[i].expires_us <= now)
            take_gradient(node, entry, i, "expired");
        else
            i++;
    }
    tell_new_heads(node, entry);
}

/* Remove expired gradients, and entries without gradients. */
void clean(struct diffusion *node, int64_t now)
{
    if (now < node->first_expiry_us)
        return;
    node->first_expiry_us = NEVER;
    for (size_t place = 0; place < node->entry_count;) {
        struct interest_entry *entry = entry_at(node, place);
        remove_expired(node, entry, now);
        if (entry->gradient_count == 0) {
            take_entry(node, place, "expired");
            continue;
        }
        for (size_t i = 0; i < entry->gradient_count; i++)
            if (entry->gradients[i].expires_us < node->first_expiry_us)
                node->first_expiry_us = entry->gradients[i].expires_us;
        place++;
    }
}

/* Interests of other nodes */

/* Plan to match waiting samples again at the next tick, as the interests have changed (A25). */
void plan_tick(struct diffusion *node, int64_t now)
{
    if (node->sample_count > 0 && node->tick_us == NEVER) {
        node->tick_us = now + node->settings->tick_us;
        plan_wake(node);
    }
}

/* Remove a sink's gradients, except one set by a reinforcement of the round that begins. */
static void begin_round_of(struct diffusion *node, struct interest_entry *entry, const struct interest *interest)
{
    for (size_t i = 0; i < entry->gradient_count;) {
        const struct gradient *one = &entry->gradients[i];
        if (one->sink == interest->sink && !is_path_of_round(one, interest->sequence, interest->round))
            take_gradient(node, entry, i, "round");
        else
            i++;
    }
}

/* Store a new interest, or a new round of a known one. */
static void cache_interest(struct diffusion *node, const struct interest *interest, int64_t now)
{
    struct interest_entry *entry = entry_of(node, interest->attributes);
    if (entry == NULL)
        entry = new_entry(node, interest);
    entry->sink = interest->sink;
    entry->sequence = interest->sequence;
    struct head before = head_of(entry, interest->sink);
    begin_round_of(node, entry, interest);
    for (size_t i = 0; i < node->entry_count; i++) {
        struct interest_entry *other = entry_at(node, i);
        if (other == entry || is_within(view(&other->attributes), interest->attributes))
            forget_reinforcements(&other->data_gradients, interest->sink);
    }
    tell_attributes(node, INTEREST_CACHED, interest->previous_hop, "interest", interest->sink, interest->sequence,
                    interest->round, interest->attributes);
    renew_gradient(node, entry, interest, now, false);
    tell_head(node, entry, interest->sink, before);
    set_pace(node, entry, interest);
    plan_tick(node, now);
}

/* Remove a sink's gradients that only reinforcements have set and, if the interest is `cancelled`, those of interests
 * up to it: a later one may have overtaken this message on another path. Return whether there were any. */
static bool cancel_gradients(struct diffusion *node, struct interest_entry *entry, const struct interest *interest,
                             bool is_cancelled)
{
    uint8_t before = entry->gradient_count;
    struct head head = head_of(entry, interest->sink);
    for (size_t i = 0; i < entry->gradient_count;) {
        const struct gradient *one = &entry->gradients[i];
        bool is_meant = !one->has_sequence || (is_cancelled && one->sequence <= interest->sequence);
        if (one->sink == interest->sink && is_meant)
            take_gradient(node, entry, i, "cancelled");
        else
            i++;
    }
    tell_head(node, entry, interest->sink, head);
    return entry->gradient_count < before;
}

/* Remove a sink's gradients of a cancelled interest, and those of its reinforcements within the interest. */
static void cancel(struct diffusion *node, const struct interest *interest)
{
    const struct interest_entry *cancelled = entry_of(node, interest->attributes);
    for (size_t place = 0; place < node->entry_count;) {
        struct interest_entry *entry = entry_at(node, place);
        bool is_meant = entry == cancelled || is_within(view(&entry->attributes), interest->attributes);
        if (is_meant && cancel_gradients(node, entry, interest, entry == cancelled) && entry->gradient_count == 0)
            take_entry(node, place, "cancelled");
        else
            place++;
    }
}

static void pass_on(struct diffusion *node, const struct interest *interest)
{
    if (interest->ttl <= 1) {
        drop_interest(node, interest, "interest", DIFFUSION_TTL);
        return;
    }
    struct interest next = *interest;
    next.previous_hop = node->address;
    next.ttl--;
    broadcast_interest(node, &next);
    tell(node, FORWARDED, interest->previous_hop, "interest", interest->sink, interest->sequence, 0, "");
}

/* Use a known interest for a spare gradient, in case the first one fails (A14); an own one needs no repetition. */
static void receive_known(struct diffusion *node, const struct interest *interest, int64_t now)
{
    struct interest_entry *entry = entry_of(node, interest->attributes);
    if (interest->sink == node->address)
        hear_own(node, interest);
    else if (entry != NULL && interest->expiration_s > 0)
        set_gradient(node, entry, interest, now, false);
    drop_interest(node, interest, "interest", DIFFUSION_DUPLICATE);
}

void receive_interest(struct diffusion *node, struct interest *interest, int64_t now)
{
    clean(node, now);
    int known = known_round(node, interest, now);
    if (interest->sink == node->address || known == interest->round) {
        receive_known(node, interest, now);
        return;
    }
    if (known != NOBODY && is_older_round(interest->round, (uint8_t)known)) {
        drop_interest(node, interest, "interest", DIFFUSION_STALE);
        return;
    }
    struct attribute_list answer;
    enum diffusion_reason reason;
    bool is_left = filter_interest(node, interest, &answer, now, &reason);
    note_seen(node, interest, now);
    if (!is_left) {
        drop_interest(node, interest, "interest", reason);
        return;
    }
    if (interest->expiration_s == 0)
        cancel(node, interest);
    else
        cache_interest(node, interest, now);
    pass_on(node, interest);
}

/* Data: waiting samples, aggregation at the source, forwarding, and delivery at sinks.
 * `workbench/protocols/diffusion/node.py` defines it. */
#include "bytes.h"
#include "node.h"

#include <string.h>

#include "rules.h"

void drop_data(struct diffusion *node, const struct data *data, enum diffusion_reason reason)
{
    drop(node, data->previous_hop, "data", data->source, data->sequence, reason);
}

/* Messages already seen */

struct seen_data *seen_data_of(struct diffusion *node, uint16_t source, uint32_t sequence)
{
    for (size_t i = 0; i < node->seen_data_count; i++)
        if (node->seen_data[i].source == source && node->seen_data[i].sequence == sequence)
            return &node->seen_data[i];
    return NULL;
}

static struct seen_data *note_seen(struct diffusion *node, const struct data *data, int64_t now)
{
    struct seen_data *seen = seen_data_of(node, data->source, data->sequence);
    if (seen == NULL) {
        uint16_t place = node->seen_data_oldest;
        if (node->seen_data_count < MAX_DATA)
            place = node->seen_data_count++;
        else
            node->seen_data_oldest = (uint16_t)((place + 1) % MAX_DATA);
        seen = &node->seen_data[place];
    }
    *seen = (struct seen_data){
        .sequence = data->sequence,
        .source = data->source,
        .previous_hop = data->previous_hop == NOBODY ? NO_HOP : (uint16_t)data->previous_hop,
        .ttl = data->ttl,
    };
    keep_time(seen->came_us, now);
    return seen;
}

/* Return how many gradients of a sink carry new data: only one if copies could return unrecognized. */
uint8_t gradients_to_try(const struct diffusion *node, int64_t now)
{
    bool is_full = node->seen_data_count >= MAX_DATA;
    int64_t oldest_us = kept_time(node->seen_data[node->seen_data_oldest].came_us);
    return may_explore(is_full, oldest_us, now) ? node->settings->exploratory_gradients : 1;
}

/* Delivery at sinks */

static void deliver_sample(const struct diffusion *node, const struct diffusion_subscription *subscription,
                           struct attributes wanted, struct attributes sample, const struct data *data)
{
    if (is_match(node, wanted, sample))
        tell_attributes(node, DELIVERED, data->previous_hop, "data", data->source, data->sequence,
                        (int64_t)node->first_number + subscription->number, sample);
}

/* Deliver the matching samples of a message to a subscription. */
static void deliver_to(const struct diffusion *node, const struct diffusion_subscription *subscription,
                       const struct own_interest *own, const struct data *data)
{
    struct attributes wanted = view(&own->attributes);
    struct attributes left = data->attributes;
    if (!data->is_aggregate) {
        deliver_sample(node, subscription, wanted, left, data);
        return;
    }
    while (left.count > 0) {
        struct attributes sample = first_sample(left, &left);
        deliver_sample(node, subscription, wanted, sample, data);
    }
}

/* Note which neighbor brought a source's new data; return NULL for own data. */
static struct data_gradient *note_path(const struct diffusion *node, struct data_gradients *data_gradients,
                                       const struct data *data)
{
    if (data->previous_hop == NOBODY)
        return NULL;
    bool changed;
    struct data_gradient *one =
        update_data_gradient(data_gradients, data->source, (uint16_t)data->previous_hop, data->attributes, &changed);
    if (changed)
        tell(node, DATA_GRADIENT_SET, data->previous_hop, "data", data->source, data->sequence, 0, "");
    return one;
}

/* Deliver data to the subscriptions of an own interest, and reinforce the source's path if it is due. */
static void deliver(struct diffusion *node, struct own_interest *own, const struct data *data, int64_t now)
{
    for (size_t i = 0; i < node->subscription_count; i++) {
        const struct diffusion_subscription *one = &node->subscriptions[i];
        if (&node->own_interests[one->own] == own && now < one->expires_us)
            deliver_to(node, one, own, data);
    }
    struct data_gradient *path = note_path(node, &own->data_gradients, data);
    /* The interest that covers this one has a path from the same neighbor, and reinforces that. */
    if (path == NULL || is_reinforced_for(path, node->address) || !own->is_flooded)
        return;
    if (may_reinforce(path->messages, node->settings->reinforce_after, own->reinforcements)) {
        own->reinforcements++;
        (void)start_reinforcement(node, own, view(&own->attributes), path, 1, now);
    }
}

/* Deliver data to all matching own interests; return whether there are any. */
static bool deliver_all(struct diffusion *node, const struct data *data, int64_t now)
{
    bool is_held = false;
    for (size_t i = 0; i < node->own_count; i++) {
        struct own_interest *own = own_at(node, i);
        if (!is_match(node, view(&own->attributes), data->attributes))
            continue;
        if (!is_held)
            tell(node, HELD, data->previous_hop, "data", data->source, data->sequence,
                 hops_taken(node->settings->ttl, data->ttl), "");
        is_held = true;
        deliver(node, own, data, now);
    }
    return is_held;
}

/* Forwarding */

/* Return whether a subscription of this node matches. */
bool data_is_wanted(struct diffusion *node, struct attributes attributes)
{
    for (size_t i = 0; i < node->own_count; i++)
        if (is_match(node, view(&own_at(node, i)->attributes), attributes))
            return true;
    return false;
}

/* Note the path of new data at each matching cached interest; return whether there are any. */
static bool note_paths(struct diffusion *node, const struct data *data)
{
    bool is_wanted = false;
    for (size_t i = 0; i < node->entry_count; i++) {
        struct interest_entry *entry = entry_at(node, i);
        if (!is_match(node, view(&entry->attributes), data->attributes))
            continue;
        is_wanted = true;
        (void)note_path(node, &entry->data_gradients, data);
    }
    return is_wanted;
}

/* Apply the filters to new data; false if they drop it. Their result is for all sinks, and later copies are dropped. */
static bool pass_filters(struct diffusion *node, struct data *data, struct seen_data *seen,
                         struct attribute_list *answer, int64_t now)
{
    enum diffusion_reason reason;
    struct attributes original = data->attributes;
    bool is_left = filter_data(node, data, answer, now, &reason);
    if (next_emission(node) != NEVER)
        plan_wake(node);
    if (!is_left) {
        seen->is_settled = true;
        drop_data(node, data, reason);
        return false;
    }
    seen->is_settled = !are_equal(original, data->attributes);
    if (seen->is_settled)
        data->other_count = 0;
    return true;
}

/* Return why new data is dropped: its sender knows an interest that this node does not, or no gradient leads on. */
static enum diffusion_reason why_not_sent(const struct diffusion *node, const struct data *data, bool is_wanted)
{
    if (is_wanted)
        return DIFFUSION_NO_GRADIENT;
    return node->is_evicting && data->previous_hop != NOBODY ? DIFFUSION_EVICTED : DIFFUSION_NO_INTEREST;
}

/* Deliver data, note its path, and forward or drop it. */
static void take_on(struct diffusion *node, struct data *data, struct seen_data *seen, int64_t now)
{
    bool is_held = deliver_all(node, data, now);
    bool is_wanted = note_paths(node, data);
    if (!forward_data(node, data, seen, now) && !is_held)
        drop_data(node, data, why_not_sent(node, data, is_wanted));
}

/* Pass new data through filters, own subscriptions and interest cache, and forward or drop it (A23). */
static void route(struct diffusion *node, struct data *data, struct seen_data *seen, int64_t now)
{
    struct attribute_list answer;
    if (pass_filters(node, data, seen, &answer, now))
        take_on(node, data, seen, now);
}

/* Send what filters have dropped before and emit now, as the message that they have dropped last. */
void send_held(struct diffusion *node, int64_t now)
{
    for (size_t i = 0; i < node->settings->filter_count; i++) {
        struct attribute_list answer;
        if (!emit(node, i, &answer, now))
            continue;
        const struct emission *emission = node->settings->filters[i].emission;
        struct data data = {
            .sequence = emission->sequence,
            .source = emission->origin,
            .previous_hop = emission->previous_hop,
            .ttl = emission->ttl,
            .attributes = view(&answer),
        };
        clean(node, now);
        struct seen_data *seen = seen_data_of(node, data.source, data.sequence);
        if (seen == NULL)
            seen = note_seen(node, &data, now);
        seen->is_settled = true;
        take_on(node, &data, seen, now);
    }
}

void receive_data(struct diffusion *node, struct data *data, int64_t now)
{
    clean(node, now);
    struct seen_data *seen = seen_data_of(node, data->source, data->sequence);
    if (seen == NULL) {
        seen = note_seen(node, data, now);
        if (data->source != node->address) {
            route(node, data, seen, now);
            return;
        }
        /* The message has returned to its source, which has forgotten it. */
    }
    if (seen->is_settled || !forward_data(node, data, seen, now))
        drop_data(node, data, DIFFUSION_DUPLICATE);
}

/* Samples */

static void remove_sample(struct diffusion *node, size_t place)
{
    node->sample_count--;
    memmove(&node->samples[place], &node->samples[place + 1],
            (size_t)(node->sample_count - place) * sizeof node->samples[0]);
}

/* Drop the samples that have waited for longer than their lifetime. */
void drop_old_samples(struct diffusion *node, int64_t now)
{
    for (size_t i = 0; i < node->sample_count;) {
        if (kept_time(node->samples[i].ends_us) > now) {
            i++;
            continue;
        }
        drop(node, NOBODY, "data", node->address, 0, DIFFUSION_EXPIRED);
        remove_sample(node, i);
    }
}

/* Store a waiting sample, which replaces the oldest if the list is full. */
void offer_sample(struct diffusion *node, int64_t number, struct attributes attributes, int64_t now)
{
    if (node->sample_count >= MAX_DATA) {
        remove_sample(node, 0);
        drop(node, NOBODY, "data", node->address, 0, DIFFUSION_NO_INTEREST);
    }
    struct sample *sample = &node->samples[node->sample_count++];
    sample->number = (uint32_t)(number - node->first_number);
    keep_time(sample->ends_us, now + node->settings->sample_lifetime_us);
    keep(&sample->attributes, attributes);
}

static bool is_wanted(struct diffusion *node, struct attributes sample)
{
    if (data_is_wanted(node, sample))
        return true;
    for (size_t i = 0; i < node->entry_count; i++)
        if (is_match(node, view(&entry_at(node, i)->attributes), sample))
            return true;
    return false;
}

/* Return the first sample from an index on that matches an interest. */
static size_t next_wanted(const struct diffusion *node, size_t place)
{
    while (place < MAX_DATA && place < node->sample_count && !node->samples[place].is_wanted)
        place++;
    return place;
}

/* Return whether a message may have further samples beside this one: a sink splits a message where the first key
 * repeats, and constraints would hold for all samples. */
static bool may_be_aggregated(struct attributes sample)
{
    return begins_once(sample) && are_readings(sample);
}

static bool may_follow(struct attributes aggregate, struct attributes sample)
{
    bool begins_alike = sample.bytes[0] == aggregate.bytes[0];
    return aggregate.size + sample.size <= ATTRIBUTES_ROOM && begins_alike && may_be_aggregated(sample);
}

static int64_t reading_number(const struct diffusion *node, const struct sample *sample)
{
    uint32_t later = (uint32_t)node->readings - sample->number;
    return diffusion_next_reading(node) - later;
}

/* Send the wanted sample at an index and the next ones that fit its message (A26); return the next index. */
static size_t send_aggregate(struct diffusion *node, size_t place, int64_t now)
{
    struct attribute_list aggregate = node->samples[place].attributes;
    size_t count = 1;
    bool is_alone = !may_be_aggregated(view(&aggregate));
    size_t end = next_wanted(node, place + 1);
    while (end < node->sample_count && !is_alone) {
        struct attributes more = view(&node->samples[end].attributes);
        bool is_for_same = memcmp(node->samples[end].early, node->samples[place].early, PACES_B) == 0;
        if (!is_for_same || !may_follow(view(&aggregate), more))
            break;
        (void)add_all(&aggregate, more);
        count++;
        end = next_wanted(node, end + 1);
    }
    uint8_t early[MAX_INTERESTS * OTHER_B];
    uint8_t early_count = early_sinks(node, &node->samples[place], early);
    uint32_t sequence = take_sequence(node);
    for (size_t i = place; i < end; i = next_wanted(node, i + 1))
        tell(node, ORIGINATED, NOBODY, "data", node->address, sequence, reading_number(node, &node->samples[i]), "");
    struct data data = {
        .sequence = sequence,
        .source = node->address,
        .previous_hop = NOBODY,
        .ttl = (uint16_t)(node->settings->ttl + 1), /* send_data lowers it by one hop */
        .is_aggregate = count > 1,
        .other_count = early_count,
        .others = early,
        .attributes = view(&aggregate),
    };
    route(node, &data, note_seen(node, &data, now), now);
    return end;
}

/* Mark a sample if an interest matches it. Drop it and return false if all sinks have asked for fewer samples. */
static bool mark_wanted(struct diffusion *node, struct sample *sample)
{
    sample->is_wanted = is_wanted(node, view(&sample->attributes));
    memset(sample->early, 0, sizeof sample->early);
    if (!sample->is_wanted || node->pace_count == 0)
        return true;
    bool is_due = find_early(node, sample);
    uint8_t early[MAX_INTERESTS * OTHER_B];
    uint8_t count = early_sinks(node, sample, early);
    for (size_t i = 0; i < count; i++)
        tell(node, WITHHELD, get_u16(early + OTHER_B * i), "data", node->address, 0, reading_number(node, sample), "");
    if (count == 0 || is_due || data_is_wanted(node, view(&sample->attributes)))
        return true;
    drop(node, NOBODY, "data", node->address, 0, DIFFUSION_INTERVAL);
    return false;
}

/* Send the samples that match an interest, as many in a message as fit; the others keep waiting. */
void send_samples(struct diffusion *node, int64_t now)
{
    clean(node, now);
    drop_old_samples(node, now);
    for (size_t i = 0; i < node->sample_count;) {
        if (mark_wanted(node, &node->samples[i]))
            i++;
        else
            remove_sample(node, i);
    }
    for (size_t i = next_wanted(node, 0); i < node->sample_count;)
        i = send_aggregate(node, i, now);
    for (size_t i = 0; i < node->sample_count;) {
        if (node->samples[i].is_wanted)
            remove_sample(node, i);
        else
            i++;
    }
}

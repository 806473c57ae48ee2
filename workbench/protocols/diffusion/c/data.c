/* Data: samples that wait, aggregation at the source, the way through the network, delivery at sinks.
 * `workbench/protocols/diffusion/node.py` defines it. */
#include "node.h"

#include <string.h>

#include "rules.h"

static void drop_data(struct diffusion *node, const struct data *data, enum diffusion_reason reason)
{
    drop(node, data->previous_hop, "data", data->source, data->sequence, reason);
}

/* The duplicate list */

static struct seen_data *seen(struct diffusion *node, uint16_t source, uint32_t sequence)
{
    for (size_t i = 0; i < node->seen_data_count; i++)
        if (node->seen_data[i].source == source && node->seen_data[i].sequence == sequence)
            return &node->seen_data[i];
    return NULL;
}

static void note_seen(struct diffusion *node, uint16_t source, uint32_t sequence, int64_t now)
{
    struct seen_data *one = seen(node, source, sequence);
    if (one != NULL) {
        one->came_us = now;
        return;
    }
    uint16_t place = node->seen_data_oldest;
    if (node->seen_data_count < MAX_DATA)
        place = node->seen_data_count++;
    else
        node->seen_data_oldest = (uint16_t)((place + 1) % MAX_DATA);
    node->seen_data[place] = (struct seen_data){now, sequence, source};
}

/* How many gradients of a sink carry new data: one alone if its copies might be back when it is forgotten. */
static uint8_t gradients_to_try(const struct diffusion *node, int64_t now)
{
    bool is_full = node->seen_data_count >= MAX_DATA;
    int64_t oldest_us = node->seen_data[node->seen_data_oldest].came_us;
    return may_explore(is_full, oldest_us, now) ? node->settings->exploratory_gradients : 1;
}

/* At sinks */

static void deliver_sample(const struct diffusion *node, const struct diffusion_subscription *subscription,
                           struct attributes wanted, struct attributes sample, const struct data *data)
{
    if (one_way_match(wanted, sample))
        tell_attributes(node, DELIVERED, data->previous_hop, "data", data->source, data->sequence, subscription->number,
                        sample);
}

/* Hand a subscription the samples that match: those that the source aggregated, or the one. */
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

/* Note which neighbor brought a source's new data; NULL for the node's own. */
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

/* Hand data to the subscriptions of an own interest; reinforce the source's path when it is time. */
static void deliver(struct diffusion *node, struct own_interest *own, const struct data *data, int64_t now)
{
    for (size_t i = 0; i < node->subscription_count; i++) {
        const struct diffusion_subscription *one = &node->subscriptions[i];
        if (&node->own_interests[one->own] == own && now < one->expires_us)
            deliver_to(node, one, own, data);
    }
    struct data_gradient *path = note_path(node, &own->data_gradients, data);
    if (path == NULL || is_reinforced_for(path, node->address))
        return;
    if (may_reinforce(path->messages, node->settings->reinforce_after, own->reinforcements)) {
        own->reinforcements++;
        (void)start_reinforcement(node, own, view(&own->attributes), path, 1, now);
    }
}

/* Hand data to all own interests that match; whether any did. */
static bool deliver_all(struct diffusion *node, const struct data *data, int64_t now)
{
    bool is_held = false;
    for (size_t i = 0; i < node->own_count; i++) {
        struct own_interest *own = own_at(node, i);
        if (!one_way_match(view(&own->attributes), data->attributes))
            continue;
        if (!is_held)
            tell(node, HELD, data->previous_hop, "data", data->source, data->sequence,
                 hops_taken(node->settings->ttl, data->ttl), "");
        is_held = true;
        deliver(node, own, data, now);
    }
    return is_held;
}

/* On its way */

static void send_data(struct diffusion *node, const struct data *data, const struct next_hops *hops)
{
    if (data->ttl <= 1) {
        drop_data(node, data, DIFFUSION_TTL);
        return;
    }
    struct data next = *data;
    next.previous_hop = node->address;
    next.ttl--;
    uint8_t header[1 + DATA_HEADER_B];
    data_encode(&next, header);
    struct frame frame = {header, sizeof header, next.attributes.bytes, next.attributes.size};
    for (size_t i = 0; i < hops->count; i++)
        node->driver->send(node->driver->context, hops->list[i], &frame);
    tell(node, FORWARDED, data->previous_hop, "data", data->source, data->sequence, hops->count, "");
}

/* Where data goes by the interest cache; whether any interest wants it. */
static bool find_next_hops(struct diffusion *node, const struct data *data, int64_t now, struct next_hops *hops)
{
    bool is_wanted = false;
    uint8_t exploratory = gradients_to_try(node, now);
    for (size_t i = 0; i < node->entry_count; i++) {
        struct interest_entry *entry = entry_at(node, i);
        if (!one_way_match(view(&entry->attributes), data->attributes))
            continue;
        is_wanted = true;
        (void)note_path(node, &entry->data_gradients, data);
        add_next_hops(entry, now, exploratory, data->previous_hop, hops);
    }
    return is_wanted;
}

/* Filters, own subscriptions, interest cache: where new data goes, be it the node's own or a neighbor's (A23). */
static void route(struct diffusion *node, struct data *data, int64_t now)
{
    struct attribute_list answer;
    enum diffusion_reason reason;
    if (!filter_data(node, data, &answer, now, &reason)) {
        drop_data(node, data, reason);
        return;
    }
    bool is_held = deliver_all(node, data, now);
    struct next_hops hops = {0};
    bool is_wanted = find_next_hops(node, data, now, &hops);
    if (hops.is_full)
        drop_data(node, data, DIFFUSION_FULL); /* once for all neighbors that are left out */
    if (hops.count > 0)
        send_data(node, data, &hops);
    else if (!is_held)
        drop_data(node, data, is_wanted ? DIFFUSION_NO_GRADIENT : DIFFUSION_NO_INTEREST);
}

void receive_data(struct diffusion *node, struct data *data, int64_t now)
{
    if (data->source == node->address || seen(node, data->source, data->sequence) != NULL) {
        drop_data(node, data, DIFFUSION_DUPLICATE);
        return;
    }
    note_seen(node, data->source, data->sequence, now);
    clean(node, now);
    route(node, data, now);
}

/* Samples */

static void remove_sample(struct diffusion *node, size_t place)
{
    node->sample_count--;
    memmove(&node->samples[place], &node->samples[place + 1],
            (size_t)(node->sample_count - place) * sizeof node->samples[0]);
}

/* Samples that have waited for too long are too old for whoever asks now. */
void drop_old_samples(struct diffusion *node, int64_t now)
{
    for (size_t i = 0; i < node->sample_count;) {
        if (node->samples[i].ends_us > now) {
            i++;
            continue;
        }
        drop(node, NOBODY, "data", node->address, 0, DIFFUSION_EXPIRED);
        remove_sample(node, i);
    }
}

/* Let a sample wait, in place of the oldest if there is no room. */
void offer_sample(struct diffusion *node, int64_t number, struct attributes attributes, int64_t now)
{
    if (node->sample_count >= MAX_DATA) {
        remove_sample(node, 0);
        drop(node, NOBODY, "data", node->address, 0, DIFFUSION_NO_INTEREST);
    }
    struct sample *sample = &node->samples[node->sample_count++];
    sample->number = number;
    sample->ends_us = now + node->settings->sample_lifetime_us;
    keep(&sample->attributes, attributes);
}

static bool is_wanted(struct diffusion *node, struct attributes sample)
{
    for (size_t i = 0; i < node->own_count; i++)
        if (one_way_match(view(&own_at(node, i)->attributes), sample))
            return true;
    for (size_t i = 0; i < node->entry_count; i++)
        if (one_way_match(view(&entry_at(node, i)->attributes), sample))
            return true;
    return false;
}

/* The first sample from a place on that some interest wants. */
static size_t next_wanted(const struct diffusion *node, size_t place)
{
    while (place < MAX_DATA && place < node->sample_count && !node->samples[place].is_wanted)
        place++;
    return place;
}

/* Whether a sample may stand behind others in one message: where the first key comes again, a sink takes it apart. */
static bool may_follow(struct attributes aggregate, struct attributes sample)
{
    bool begins_alike = sample.bytes[0] == aggregate.bytes[0];
    return aggregate.size + sample.size <= ATTRIBUTES_ROOM && begins_alike && begins_once(sample);
}

/* Send the wanted sample at a place with those behind it that fit the same message (A26); where the next one is. */
static size_t send_aggregate(struct diffusion *node, size_t place, int64_t now)
{
    struct attribute_list aggregate = node->samples[place].attributes;
    size_t count = 1;
    bool is_alone = !begins_once(view(&aggregate));
    size_t end = next_wanted(node, place + 1);
    while (end < node->sample_count && !is_alone) {
        struct attributes more = view(&node->samples[end].attributes);
        if (!may_follow(view(&aggregate), more))
            break;
        (void)add_all(&aggregate, more);
        count++;
        end = next_wanted(node, end + 1);
    }
    uint32_t sequence = take_sequence(node);
    for (size_t i = place; i < end; i = next_wanted(node, i + 1))
        tell(node, ORIGINATED, NOBODY, "data", node->address, sequence, node->samples[i].number, "");
    note_seen(node, node->address, sequence, now);
    struct data data = {
        .sequence = sequence,
        .source = node->address,
        .previous_hop = NOBODY,
        .ttl = (uint16_t)(node->settings->ttl + 1), /* one hop more than it may go: send_data takes it off again */
        .is_aggregate = count > 1,
        .attributes = view(&aggregate),
    };
    route(node, &data, now);
    return end;
}

/* Send the samples that some interest wants, as many as fit in one message; the rest keep waiting. */
void send_samples(struct diffusion *node, int64_t now)
{
    clean(node, now);
    drop_old_samples(node, now);
    for (size_t i = 0; i < node->sample_count; i++)
        node->samples[i].is_wanted = is_wanted(node, view(&node->samples[i].attributes));
    for (size_t i = next_wanted(node, 0); i < node->sample_count;)
        i = send_aggregate(node, i, now);
    for (size_t i = 0; i < node->sample_count;) {
        if (node->samples[i].is_wanted)
            remove_sample(node, i);
        else
            i++;
    }
}

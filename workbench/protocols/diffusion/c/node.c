/* The node of TinyDiffusion: contract, subscriptions, time. `workbench/protocols/diffusion/node.py` defines it. */
#include "node.h"

#include <string.h>

#include "rules.h"

/* Counters of lists have one byte, those of long lists two: a size that does not fit is a compile-time error. */
#define FITS(size, most) [(size) >= 1 && (size) <= (most) ? 1 : -1]
typedef char max_interests_fits FITS(MAX_INTERESTS, UINT8_MAX);
typedef char max_gradients_fits FITS(MAX_GRADIENTS, UINT8_MAX);
typedef char max_reinforcements_fits FITS(MAX_REINFORCEMENTS, UINT8_MAX);
typedef char max_attributes_fits FITS(MAX_ATTRIBUTES, UINT8_MAX);
typedef char max_sinks_fits FITS(MAX_SINKS, UINT8_MAX);
typedef char max_next_hops_fits FITS(MAX_NEXT_HOPS, UINT8_MAX);
typedef char max_data_fits FITS(MAX_DATA, UINT16_MAX);
typedef char max_subscriptions_fits FITS(MAX_SUBSCRIPTIONS, UINT16_MAX);
typedef char max_black_fits FITS(MAX_BLACK, UINT16_MAX);
typedef char max_seen_interests_fits FITS(MAX_SEEN_INTERESTS, UINT16_MAX);
#undef FITS

static const char *const REASON_NAMES[DIFFUSION_REASONS] = {
    [DIFFUSION_MALFORMED] = "malformed",
    [DIFFUSION_PREVIOUS_HOP] = "previous_hop",
    [DIFFUSION_BLACKLISTED] = "blacklisted",
    [DIFFUSION_TTL] = "ttl",
    [DIFFUSION_TOO_LONG] = "too_long",
    [DIFFUSION_DUPLICATE] = "duplicate",
    [DIFFUSION_STALE] = "stale",
    [DIFFUSION_FILTER] = "filter",
    [DIFFUSION_NO_INTEREST] = "no_interest",
    [DIFFUSION_NO_GRADIENT] = "no_gradient",
    [DIFFUSION_EXPIRED] = "expired",
    [DIFFUSION_FULL] = "full",
    [DIFFUSION_EVICTED] = "evicted",
    [DIFFUSION_INTERVAL] = "interval",
};

/* Events */

static void tell_event(const struct diffusion *node, struct event event)
{
    node->driver->event(node->driver->context, &event);
}

void tell(const struct diffusion *node, int kind, int32_t peer, const char *message, int32_t origin, uint32_t sequence,
          int64_t value, const char *detail)
{
    tell_event(node, (struct event){kind, peer, message, origin, sequence, value, detail, {0}});
}

void tell_attributes(const struct diffusion *node, int kind, int32_t peer, const char *message, int32_t origin,
                     uint32_t sequence, int64_t value, struct attributes attributes)
{
    tell_event(node, (struct event){kind, peer, message, origin, sequence, value, "", attributes});
}

void drop(struct diffusion *node, int32_t previous_hop, const char *message, int32_t origin, uint32_t sequence,
          enum diffusion_reason reason)
{
    node->drops[reason]++;
    if (node->driver->tells_all)
        tell(node, DROPPED, previous_hop, message, origin, sequence, 0, REASON_NAMES[reason]);
}

void drop_interest(struct diffusion *node, const struct interest *interest, const char *message,
                   enum diffusion_reason reason)
{
    drop(node, interest->previous_hop, message, interest->sink, interest->sequence, reason);
}

uint32_t diffusion_drops(const struct diffusion *node, enum diffusion_reason reason)
{
    return node->drops[reason];
}

const char *diffusion_reason_name(enum diffusion_reason reason)
{
    return REASON_NAMES[reason];
}

/* Matching */

bool is_match(const struct diffusion *node, struct attributes subscription, struct attributes publication)
{
    if (node->settings->matching == MATCHING_STRICT)
        return strict_match(subscription, publication);
    /* Only with two-way matching has a publication constraints. */
    return one_way_match(subscription, publication) && one_way_match(publication, subscription);
}

bool may_be_data(const struct diffusion *node, struct attributes attributes)
{
    bool has_value = attributes.count == 0;
    const uint8_t *next = attributes.bytes;
    for (size_t i = 0; i < attributes.count; i++) {
        struct attribute one = next_attribute(&next);
        if (one.op == IS)
            has_value = true;
        else if (node->settings->matching != MATCHING_TWO_WAY || one.key == INTERVAL_KEY)
            return false;
    }
    return has_value;
}

/* Called by the application */

void diffusion_start(struct diffusion *node, const struct diffusion_settings *settings, uint32_t address,
                     struct random random, const struct driver *driver, int64_t now, unsigned boot)
{
    (void)now;
    memset(node, 0, sizeof *node);
    node->settings = settings;
    node->driver = driver;
    node->random = random;
    node->address = (uint16_t)address;
    node->first_number = (uint32_t)(boot & 0xFF) * NUMBERS_PER_BOOT;
    node->next_wake = NEVER;
    node->tick_us = NEVER;
    node->first_expiry_us = NEVER;
}

/* Return the error for a subscription to these attributes, or 0. */
static int64_t why_refused(const struct diffusion *node, struct attributes attributes, bool match_all)
{
    if (!match_all && !constrain(attributes))
        return CONSTRAINS_NOTHING;
    if (node->subscription_count >= MAX_SUBSCRIPTIONS)
        return TOO_MANY_SUBSCRIPTIONS;
    if (attributes.count > MAX_ATTRIBUTES)
        return TOO_MANY_ATTRIBUTES;
    return 0;
}

int64_t diffusion_subscribe(struct diffusion *node, const struct attributes *attributes, int64_t now, int64_t lasts_us,
                            bool match_all)
{
    struct attributes wanted;
    if (!attributes_decode(attributes->bytes, attributes->size, attributes->count, &wanted))
        return WRONG_ATTRIBUTES;
    int64_t refused = why_refused(node, wanted, match_all);
    if (refused != 0)
        return refused;
    int64_t place = own_place_of(node, wanted);
    if (place != NO_PLACE) {
        struct own_interest *own = own_at(node, (size_t)place);
        if (interval_of(wanted) < interval_of(view(&own->attributes))) {
            /* Subscriptions that share an interest get readings at the highest of their rates. */
            if (wanted.size > MESSAGE_B - INTEREST_HEADER_B)
                return TOO_LONG;
            keep(&own->attributes, wanted);
        }
    } else {
        place = new_own_interest(node, wanted);
        if (place < 0)
            return place;
    }
    struct diffusion_subscription *one = &node->subscriptions[node->subscription_count++];
    int64_t number = diffusion_next_subscription(node);
    one->number = (uint32_t)node->subscribed++;
    one->expires_us = lasts_us == NEVER ? NEVER : now + lasts_us;
    one->own = node->own_order[place];
    own_at(node, (size_t)place)->is_flooded = false;
    flood_interests(node, now);
    plan_tick(node, now);
    return number;
}

static bool has_number(const struct diffusion *node, size_t place, int64_t number)
{
    return (int64_t)node->first_number + node->subscriptions[place].number == number;
}

static void remove_subscription(struct diffusion *node, size_t place)
{
    node->subscription_count--;
    memmove(&node->subscriptions[place], &node->subscriptions[place + 1],
            (size_t)(node->subscription_count - place) * sizeof node->subscriptions[0]);
}

static bool has_subscriptions(const struct diffusion *node, const struct own_interest *own)
{
    return own_end(node, own) != INT64_MIN;
}

void diffusion_unsubscribe(struct diffusion *node, int64_t number, int64_t now)
{
    for (size_t i = 0; i < node->subscription_count; i++)
        if (has_number(node, i, number)) {
            struct own_interest *own = &node->own_interests[node->subscriptions[i].own];
            remove_subscription(node, i);
            if (!has_subscriptions(node, own))
                remove_own(node, (size_t)own_place_of(node, view(&own->attributes)));
            flood_interests(node, now);
            /* Other nodes now know the interests that this one covered. Its slot is free, but unchanged. */
            if (!has_subscriptions(node, own) && !own->is_new)
                cancel_own(node, own);
            break;
        }
    plan_wake(node);
}

int64_t diffusion_next_subscription(const struct diffusion *node)
{
    return node->first_number + node->subscribed;
}

int64_t diffusion_next_reading(const struct diffusion *node)
{
    return node->first_number + node->readings;
}

bool diffusion_was_made(const struct diffusion *node, int64_t number)
{
    return number >= node->first_number && number < diffusion_next_subscription(node);
}

bool diffusion_is_open(const struct diffusion *node, int64_t number)
{
    for (size_t i = 0; i < node->subscription_count; i++)
        if (has_number(node, i, number))
            return true;
    return false;
}

int64_t diffusion_publish(struct diffusion *node, const struct attributes *attributes, int64_t now)
{
    struct attributes reading;
    if (!attributes_decode(attributes->bytes, attributes->size, attributes->count, &reading))
        return WRONG_ATTRIBUTES;
    if (reading.count == 0 || !may_be_data(node, reading))
        return NOT_A_READING;
    if (reading.count > MAX_ATTRIBUTES)
        return TOO_MANY_ATTRIBUTES;
    if (reading.size > ATTRIBUTES_ROOM)
        return TOO_LONG;
    int64_t number = diffusion_next_reading(node);
    node->readings++;
    drop_old_samples(node, now);
    offer_sample(node, number, reading, now);
    send_samples(node, now);
    if (node->sample_count > 0)
        plan_wake(node);
    return number;
}

/* Return the error for a reinforcement of a subscription with these attributes, or 0. */
static int64_t why_not_reinforced(const struct own_interest *own, struct attributes attributes)
{
    if (!is_within(attributes, view(&own->attributes)))
        return LESS_CONSTRAINED;
    if (attributes.count > MAX_ATTRIBUTES)
        return TOO_MANY_ATTRIBUTES;
    return attributes.size > MESSAGE_B - INTEREST_HEADER_B ? TOO_LONG : 0;
}

static struct own_interest *own_of(struct diffusion *node, int64_t number)
{
    for (size_t i = 0; i < node->subscription_count; i++)
        if (has_number(node, i, number))
            return &node->own_interests[node->subscriptions[i].own];
    return NULL;
}

int64_t diffusion_reinforce(struct diffusion *node, int64_t number, const struct attributes *attributes, int64_t now)
{
    struct own_interest *own = own_of(node, number);
    if (own == NULL)
        return 0;
    struct attributes wanted = view(&own->attributes);
    if (attributes != NULL && !attributes_decode(attributes->bytes, attributes->size, attributes->count, &wanted))
        return WRONG_ATTRIBUTES;
    int64_t refused = why_not_reinforced(own, wanted);
    if (refused != 0)
        return refused;
    struct data_gradients *paths = &own->data_gradients;
    forget_reinforcements(paths, node->address);
    return start_reinforcement(node, own, wanted, paths->list, paths->count, now);
}

uint32_t take_sequence(struct diffusion *node)
{
    return node->first_number + node->messages++;
}

/* The black list */

static int black_place(const struct diffusion *node, uint16_t neighbor)
{
    for (int i = 0; i < node->black_count; i++)
        if (node->black_list[i] == neighbor)
            return i;
    return NO_PLACE;
}

bool is_black_listed(const struct diffusion *node, uint16_t neighbor)
{
    return black_place(node, neighbor) != NO_PLACE;
}

void diffusion_link_quality(struct diffusion *node, uint16_t neighbor, double inbound, double outbound, int64_t now)
{
    (void)now;
    const struct diffusion_settings *settings = node->settings;
    int place = black_place(node, neighbor);
    bool was_listed = place != NO_PLACE;
    bool is_listed = is_black(was_listed, inbound, outbound, settings->blacklist_loss, settings->blacklist_hysteresis);
    if (is_listed == was_listed)
        return;
    if (is_listed && node->black_count >= MAX_BLACK) {
        drop(node, neighbor, "", NOBODY, 0, DIFFUSION_FULL);
        return;
    }
    tell(node, BLACKLISTED, neighbor, "", NOBODY, 0, is_listed, "");
    if (is_listed) {
        node->black_list[node->black_count++] = neighbor;
        forget_neighbor(node, neighbor);
        return;
    }
    node->black_count--;
    memmove(&node->black_list[place], &node->black_list[place + 1],
            (size_t)(node->black_count - place) * sizeof node->black_list[0]);
}

/* Time */

static int64_t earlier(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

void plan_wake(struct diffusion *node)
{
    int64_t wake_us = earlier(node->tick_us, next_emission(node));
    for (size_t i = 0; i < node->sample_count; i++)
        wake_us = earlier(wake_us, kept_time(node->samples[i].ends_us));
    for (size_t i = 0; i < node->waiting_count; i++)
        wake_us = earlier(wake_us, kept_time(node->waiting[i].due_us));
    for (size_t i = 0; i < node->subscription_count; i++)
        wake_us = earlier(wake_us, node->subscriptions[i].expires_us);
    for (size_t i = 0; i < node->own_count; i++) {
        wake_us = earlier(wake_us, own_at(node, i)->refresh_us);
        wake_us = earlier(wake_us, own_at(node, i)->repeat_us);
    }
    node->next_wake = wake_us;
}

int64_t diffusion_next_wake(const struct diffusion *node)
{
    return node->next_wake;
}

static void expire_subscriptions(struct diffusion *node, int64_t now)
{
    for (size_t i = 0; i < node->subscription_count;) {
        if (node->subscriptions[i].expires_us <= now)
            remove_subscription(node, i);
        else
            i++;
    }
}

/* Send an own interest again if it is due: the next round, or the same because no neighbor was heard to forward it. */
static void refresh(struct diffusion *node, struct own_interest *own, int64_t now)
{
    if (own->refresh_us <= now) {
        send_interest(node, own, now);
    } else if (own->repeat_us <= now) {
        own->repeats++;
        flood(node, own, now);
    }
}

void diffusion_wake(struct diffusion *node, int64_t now)
{
    expire_subscriptions(node, now);
    for (size_t place = 0; place < node->own_count;) {
        struct own_interest *own = own_at(node, place);
        if (!has_subscriptions(node, own)) {
            remove_own(node, place);
            continue;
        }
        refresh(node, own, now);
        place++;
    }
    send_waiting(node, now);
    drop_old_samples(node, now);
    if (node->tick_us <= now) {
        node->tick_us = NEVER;
        send_samples(node, now);
    }
    send_held(node, now);
    plan_wake(node);
}

/* Frames */

/* Return whether a neighbor's message is accepted; if not, set `*reason`. */
static bool is_welcome(const struct diffusion *node, uint16_t said_hop, uint16_t ttl, size_t size,
                       uint32_t previous_hop, enum diffusion_reason *reason)
{
    if (said_hop != previous_hop)
        *reason = DIFFUSION_PREVIOUS_HOP;
    else if (is_black_listed(node, said_hop))
        *reason = DIFFUSION_BLACKLISTED;
    else if (ttl < 1)
        *reason = DIFFUSION_TTL;
    else if (size - 1 > MESSAGE_B)
        *reason = DIFFUSION_TOO_LONG;
    else
        return true;
    return false;
}

void diffusion_receive(struct diffusion *node, const uint8_t *frame, size_t size, uint32_t previous_hop, int64_t now,
                       bool broadcast)
{
    enum diffusion_reason reason;
    struct interest interest;
    struct data data;
    int32_t peer = (int32_t)previous_hop;
    if (data_decode(frame, size, &data) && may_be_data(node, data.attributes)) {
        if (is_welcome(node, (uint16_t)data.previous_hop, data.ttl, size, previous_hop, &reason))
            receive_data(node, &data, now);
        else
            drop(node, peer, "data", data.source, data.sequence, reason);
        return;
    }
    if (!interest_decode(frame, size, &interest)) {
        drop(node, peer, "", NOBODY, 0, DIFFUSION_MALFORMED);
        return;
    }
    const char *message = broadcast ? "interest" : "reinforcement";
    if (!is_welcome(node, interest.previous_hop, interest.ttl, size, previous_hop, &reason))
        drop(node, peer, message, interest.sink, interest.sequence, reason);
    else if (broadcast)
        receive_interest(node, &interest, now);
    else
        receive_reinforcement(node, &interest, now);
}

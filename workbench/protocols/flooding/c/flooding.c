/* The node of the flooding protocol. `workbench/protocols/flooding/node.py` defines it, and `frames.h` has the layout of
 * the frame. */
#include "flooding.h"

#include <string.h>

#include "bytes.h"
#include "frames.h"

enum { MOST_ATTRIBUTES = 255 };

static const char *const REASON_NAMES[FLOODING_REASONS] = {"duplicate", "malformed", "ttl"};

struct flood {
    uint32_t origin;
    uint32_t sequence;
    uint16_t ttl;
    struct attributes attributes;
};

/* Frames */

static bool decode_header(const uint8_t *frame, size_t size, struct flood *flood)
{
    if (size < FLOOD_BODY_AT || frame[0] != FLOOD_TYPE)
        return false;
    flood->origin = get_u32(frame + FLOOD_ORIGIN_AT);
    flood->sequence = get_u32(frame + FLOOD_SEQUENCE_AT);
    flood->ttl = get_u16(frame + FLOOD_TTL_AT);
    return true;
}

static bool decode_body(const uint8_t *frame, size_t size, struct flood *flood)
{
    const uint8_t *body = frame + FLOOD_BODY_AT;
    return attributes_decode(body, size - FLOOD_BODY_AT, frame[FLOOD_ATTRIBUTE_COUNT_AT], &flood->attributes) &&
           are_readings(flood->attributes);
}

static void send(const struct flooding *node, const struct flood *flood)
{
    uint8_t header[FLOOD_BODY_AT] = {FLOOD_TYPE};
    put_u32(header + FLOOD_ORIGIN_AT, flood->origin);
    put_u32(header + FLOOD_SEQUENCE_AT, flood->sequence);
    put_u16(header + FLOOD_TTL_AT, flood->ttl);
    header[FLOOD_ATTRIBUTE_COUNT_AT] = (uint8_t)flood->attributes.count;
    struct frame frame = {header, FLOOD_BODY_AT, flood->attributes.bytes, flood->attributes.size};
    node->driver->send(node->driver->context, BROADCAST, &frame);
}

/* Events */

static struct event event_of(int kind, int64_t peer, const struct flood *flood, int64_t value)
{
    return (struct event){
        .kind = kind,
        .peer = peer,
        .message = "flood",
        .origin = flood->origin,
        .sequence = flood->sequence,
        .value = value,
        .detail = "",
    };
}

static void tell(const struct flooding *node, struct event event)
{
    node->driver->event(node->driver->context, &event);
}

static void drop(struct flooding *node, int64_t previous_hop, const struct flood *flood, enum flooding_reason reason)
{
    node->drops[reason]++;
    if (!node->driver->tells_all)
        return;
    struct event event = event_of(DROPPED, previous_hop, flood, 0);
    event.detail = REASON_NAMES[reason];
    tell(node, event);
}

static void drop_malformed(struct flooding *node, int64_t previous_hop)
{
    node->drops[FLOODING_MALFORMED]++;
    if (node->driver->tells_all)
        tell(node, (struct event){.kind = DROPPED,
                                  .peer = previous_hop,
                                  .message = "",
                                  .origin = NOBODY,
                                  .detail = REASON_NAMES[FLOODING_MALFORMED]});
}

/* Memory of publications */

static bool is_known(const struct flooding *node, const struct flood *flood)
{
    for (size_t i = 0; i < node->known_count; i++)
        if (node->known[i].origin == flood->origin && node->known[i].sequence == flood->sequence)
            return true;
    return false;
}

static void remember(struct flooding *node, const struct flood *flood)
{
    size_t place = node->oldest;
    if (node->known_count < MAX_EVENTS)
        place = node->known_count++;
    else
        node->oldest = (node->oldest + 1) % MAX_EVENTS;
    node->known[place] = (struct flooding_id){flood->origin, flood->sequence};
}

/* Hold a publication, and deliver it to matching subscriptions. */
static void hold(struct flooding *node, const struct flood *flood, int64_t previous_hop, int64_t hops, int64_t now)
{
    if (!is_known(node, flood))
        remember(node, flood);
    tell(node, event_of(HELD, previous_hop, flood, hops));
    if (flood->attributes.count == 0)
        return;
    for (size_t i = 0; i < node->subscription_count; i++) {
        const struct flooding_subscription *one = &node->subscriptions[i];
        if (now >= one->expires_us || !one_way_match(view(&one->attributes), flood->attributes))
            continue;
        struct event event = event_of(DELIVERED, previous_hop, flood, one->number);
        event.attributes = flood->attributes;
        tell(node, event);
    }
}

/* The contract */

void flooding_start(struct flooding *node, const struct flooding_settings *settings, uint32_t address,
                    struct random random, const struct driver *driver, int64_t now, unsigned boot)
{
    (void)random;
    (void)now;
    memset(node, 0, sizeof *node);
    node->settings = settings;
    node->driver = driver;
    node->address = address;
    node->first_number = (uint32_t)(boot & 0xFF) * NUMBERS_PER_BOOT;
}

void flooding_receive(struct flooding *node, const uint8_t *frame, size_t size, uint32_t previous_hop, int64_t now,
                      bool broadcast)
{
    (void)broadcast;
    struct flood flood;
    if (!decode_header(frame, size, &flood)) {
        drop_malformed(node, previous_hop);
        return;
    }
    if (is_known(node, &flood)) {
        drop(node, previous_hop, &flood, FLOODING_DUPLICATE);
        return;
    }
    if (!decode_body(frame, size, &flood)) {
        drop_malformed(node, previous_hop);
        return;
    }
    hold(node, &flood, previous_hop, (int64_t)node->settings->ttl - flood.ttl + 1, now);
    if (flood.ttl <= 1) {
        drop(node, previous_hop, &flood, FLOODING_TTL);
        return;
    }
    flood.ttl--;
    send(node, &flood);
    if (node->driver->tells_all)
        tell(node, event_of(FORWARDED, previous_hop, &flood, 0));
}

/* A flood is broadcast, so a radio has no outcome to report. */
void flooding_sent(struct flooding *node, uint32_t destination, const uint8_t *frame, size_t size, bool ok, int64_t now)
{
    (void)node;
    (void)destination;
    (void)frame;
    (void)size;
    (void)ok;
    (void)now;
}

void flooding_wake(struct flooding *node, int64_t now)
{
    (void)node;
    (void)now;
}

int64_t flooding_next_wake(const struct flooding *node)
{
    (void)node;
    return NEVER;
}

/* Close a subscription and move the later ones up. */
static void close_subscription(struct flooding *node, size_t place)
{
    node->subscription_count--;
    memmove(&node->subscriptions[place], &node->subscriptions[place + 1],
            (size_t)(node->subscription_count - place) * sizeof node->subscriptions[0]);
}

/* A node without timers checks expiration here. */
static void expire(struct flooding *node, int64_t now)
{
    for (size_t i = node->subscription_count; i > 0; i--)
        if (now >= node->subscriptions[i - 1].expires_us)
            close_subscription(node, i - 1);
}

int64_t flooding_subscribe(struct flooding *node, const struct attributes *attributes, int64_t now, int64_t lasts_us,
                           bool match_all)
{
    struct attributes wanted;
    if (!attributes_decode(attributes->bytes, attributes->size, attributes->count, &wanted))
        return WRONG_ATTRIBUTES;
    if (!match_all && !constrain(wanted))
        return CONSTRAINS_NOTHING;
    if (wanted.size > ATTRIBUTES_ROOM)
        return TOO_LONG;
    expire(node, now);
    if (node->subscription_count >= MAX_SUBSCRIPTIONS)
        return TOO_MANY_SUBSCRIPTIONS;
    struct flooding_subscription *one = &node->subscriptions[node->subscription_count++];
    one->number = flooding_next_subscription(node);
    node->subscribed++;
    one->expires_us = lasts_us == NEVER ? NEVER : now + lasts_us;
    keep(&one->attributes, wanted);
    return one->number;
}

void flooding_unsubscribe(struct flooding *node, int64_t number, int64_t now)
{
    (void)now;
    for (size_t i = 0; i < node->subscription_count; i++)
        if (node->subscriptions[i].number == number) {
            close_subscription(node, i);
            return;
        }
}

int64_t flooding_publish(struct flooding *node, const struct attributes *attributes, int64_t now)
{
    struct flood flood = {node->address, node->first_number + node->published, node->settings->ttl, {0}};
    if (!attributes_decode(attributes->bytes, attributes->size, attributes->count, &flood.attributes))
        return WRONG_ATTRIBUTES;
    if (flood.attributes.count == 0 || !are_readings(flood.attributes))
        return NOT_A_READING;
    if (flood.attributes.count > MOST_ATTRIBUTES)
        return TOO_MANY_ATTRIBUTES;
    node->published++;
    tell(node, event_of(ORIGINATED, NOBODY, &flood, flood.sequence));
    hold(node, &flood, NOBODY, 0, now);
    send(node, &flood);
    return flood.sequence;
}

int64_t flooding_next_subscription(const struct flooding *node)
{
    return (int64_t)node->first_number + node->subscribed;
}

int64_t flooding_next_reading(const struct flooding *node)
{
    return (int64_t)node->first_number + node->published;
}

bool flooding_is_open(const struct flooding *node, int64_t number)
{
    for (size_t i = 0; i < node->subscription_count; i++)
        if (node->subscriptions[i].number == number)
            return true;
    return false;
}

uint32_t flooding_drops(const struct flooding *node, enum flooding_reason reason)
{
    return node->drops[reason];
}

const char *flooding_reason_name(enum flooding_reason reason)
{
    return REASON_NAMES[reason];
}

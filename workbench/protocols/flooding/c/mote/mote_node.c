/* The node of the flooding protocol in the program of a mote. */
#include "json.h"
#include "node_calls.h"

const char NODE_CLASS[] = "workbench.protocols.flooding.node:FloodingNode";

struct refusal node_start(struct mote_node *node, const char *settings, uint32_t address, struct random random,
                          const struct driver *driver, int64_t now, unsigned boot)
{
    uint64_t number;
    if (!json_integer(settings, "max_events", UINT64_MAX, &number) || number != MAX_EVENTS)
        return (struct refusal){COMPILED_WITH, "max_events", MAX_EVENTS};
    if (!json_integer(settings, "ttl", UINT16_MAX, &number))
        return (struct refusal){CANNOT_HAVE, "ttl", 0};
    node->settings.ttl = (uint16_t)number;
    flooding_start(&node->flooding, &node->settings, address, random, driver, now, boot);
    return (struct refusal){NULL, NULL, 0};
}

void node_receive(struct mote_node *node, const uint8_t *frame, size_t size, uint32_t previous_hop, int64_t now,
                  bool broadcast)
{
    flooding_receive(&node->flooding, frame, size, previous_hop, now, broadcast);
}

void node_sent(struct mote_node *node, uint32_t destination, const uint8_t *frame, size_t size, bool ok, int64_t now)
{
    flooding_sent(&node->flooding, destination, frame, size, ok, now);
}

void node_wake(struct mote_node *node, int64_t now)
{
    flooding_wake(&node->flooding, now);
}

int64_t node_next_wake(const struct mote_node *node)
{
    return flooding_next_wake(&node->flooding);
}

int64_t node_subscribe(struct mote_node *node, const struct attributes *attributes, int64_t now, int64_t lasts_us,
                       bool match_all)
{
    return flooding_subscribe(&node->flooding, attributes, now, lasts_us, match_all);
}

void node_unsubscribe(struct mote_node *node, int64_t number, int64_t now)
{
    flooding_unsubscribe(&node->flooding, number, now);
}

int64_t node_publish(struct mote_node *node, const struct attributes *attributes, int64_t now)
{
    return flooding_publish(&node->flooding, attributes, now);
}

/* A flooding node always broadcasts, so it ignores link quality. */
void node_link_quality(struct mote_node *node, uint16_t neighbor, double inbound, double outbound, int64_t now)
{
    (void)node;
    (void)neighbor;
    (void)inbound;
    (void)outbound;
    (void)now;
}

int64_t node_next_subscription(const struct mote_node *node)
{
    return flooding_next_subscription(&node->flooding);
}

int64_t node_next_reading(const struct mote_node *node)
{
    return flooding_next_reading(&node->flooding);
}

bool node_was_made(const struct mote_node *node, int64_t number)
{
    return number >= node->flooding.first_number && number < flooding_next_subscription(&node->flooding);
}

bool node_is_open(const struct mote_node *node, int64_t number)
{
    return flooding_is_open(&node->flooding, number);
}

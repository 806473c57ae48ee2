/* The node of TinyDiffusion in the program of a mote. */
#include "json.h"
#include "node_calls.h"
#include "settings.h"

const char NODE_CLASS[] = "workbench.protocols.diffusion.node:DiffusionNode";

struct refusal node_start(struct mote_node *node, const char *settings, uint32_t address, struct random random,
                          const struct driver *driver, int64_t now, unsigned boot)
{
    struct refusal refusal = settings_read(settings, &node->settings);
    if (refusal.why != NULL)
        return refusal;
    refusal = filters_place(json_member(settings, "filters"), &node->filters, &node->settings);
    if (refusal.why == NULL)
        diffusion_start(&node->diffusion, &node->settings, address, random, driver, now, boot);
    return refusal;
}

void node_receive(struct mote_node *node, const uint8_t *frame, size_t size, uint32_t previous_hop, int64_t now,
                  bool broadcast)
{
    diffusion_receive(&node->diffusion, frame, size, previous_hop, now, broadcast);
}

void node_sent(struct mote_node *node, uint32_t destination, const uint8_t *frame, size_t size, bool ok, int64_t now)
{
    diffusion_sent(&node->diffusion, destination, frame, size, ok, now);
}

void node_wake(struct mote_node *node, int64_t now)
{
    diffusion_wake(&node->diffusion, now);
}

int64_t node_next_wake(const struct mote_node *node)
{
    return diffusion_next_wake(&node->diffusion);
}

int64_t node_subscribe(struct mote_node *node, const struct attributes *attributes, int64_t now, int64_t lasts_us,
                       bool match_all)
{
    return diffusion_subscribe(&node->diffusion, attributes, now, lasts_us, match_all);
}

void node_unsubscribe(struct mote_node *node, int64_t number, int64_t now)
{
    diffusion_unsubscribe(&node->diffusion, number, now);
}

int64_t node_publish(struct mote_node *node, const struct attributes *attributes, int64_t now)
{
    return diffusion_publish(&node->diffusion, attributes, now);
}

void node_link_quality(struct mote_node *node, uint16_t neighbor, double inbound, double outbound, int64_t now)
{
    diffusion_link_quality(&node->diffusion, neighbor, inbound, outbound, now);
}

int64_t node_next_subscription(const struct mote_node *node)
{
    return diffusion_next_subscription(&node->diffusion);
}

int64_t node_next_reading(const struct mote_node *node)
{
    return diffusion_next_reading(&node->diffusion);
}

bool node_was_made(const struct mote_node *node, int64_t number)
{
    return diffusion_was_made(&node->diffusion, number);
}

bool node_is_open(const struct mote_node *node, int64_t number)
{
    return diffusion_is_open(&node->diffusion, number);
}

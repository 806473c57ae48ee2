/* Flooding: every node broadcasts every publication once, and subscribers keep those that match.
 * `workbench/protocols/flooding/node.py` defines it. */
#ifndef FLOODING_H
#define FLOODING_H

#include "contract.h"
#include "draws.h"

/* Publications that a node remembers: as many as in Python. */
#ifndef MAX_EVENTS
#define MAX_EVENTS 1000
#endif

enum flooding_reason { FLOODING_DUPLICATE, FLOODING_MALFORMED, FLOODING_TTL, FLOODING_REASONS };

struct flooding_settings {
    uint16_t ttl;
};

struct flooding_subscription {
    int64_t number;
    int64_t expires_us;
    struct attribute_list attributes;
};

struct flooding_id {
    uint32_t origin;
    uint32_t sequence;
};

/* A node: the caller's block of memory. */
struct flooding {
    const struct flooding_settings *settings;
    const struct driver *driver;
    uint32_t address;
    uint32_t first_number;
    uint32_t published;
    uint32_t subscribed;
    uint32_t drops[FLOODING_REASONS];
    size_t subscription_count;
    struct flooding_subscription subscriptions[MAX_SUBSCRIPTIONS];
    /* A ring: once it is full, the next one is stored at `oldest`. */
    size_t known_count;
    size_t oldest;
    struct flooding_id known[MAX_EVENTS];
};

void flooding_start(struct flooding *node, const struct flooding_settings *settings, uint32_t address,
                    struct random random, const struct driver *driver, int64_t now, unsigned boot);
void flooding_receive(struct flooding *node, const uint8_t *frame, size_t size, uint32_t previous_hop, int64_t now,
                      bool broadcast);
void flooding_sent(struct flooding *node, uint32_t destination, const uint8_t *frame, size_t size, bool ok,
                   int64_t now);
void flooding_wake(struct flooding *node, int64_t now);
int64_t flooding_next_wake(const struct flooding *node);
int64_t flooding_subscribe(struct flooding *node, const struct attributes *attributes, int64_t now, int64_t lasts_us,
                           bool match_all);
void flooding_unsubscribe(struct flooding *node, int64_t number, int64_t now);
int64_t flooding_publish(struct flooding *node, const struct attributes *attributes, int64_t now);

/* Return the numbers of the next subscription and the next reading; whether a subscription has neither ended nor
 * expired, as far as the node has checked. */
int64_t flooding_next_subscription(const struct flooding *node);
int64_t flooding_next_reading(const struct flooding *node);
bool flooding_is_open(const struct flooding *node, int64_t number);

/* Return how often a node has dropped a message for a reason; the reason's name. */
uint32_t flooding_drops(const struct flooding *node, enum flooding_reason reason);
const char *flooding_reason_name(enum flooding_reason reason);

#endif

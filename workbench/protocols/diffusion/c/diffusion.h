/* TinyDiffusion: directed diffusion for motes, in memory that the compiler knows the size of.
 * `workbench/protocols/diffusion/node.py` defines it; the essay stands in `__init__.py` beside it. */
#ifndef DIFFUSION_H
#define DIFFUSION_H

#include "contract.h"
#include "draws.h"
#include "filter.h"
#include "interest_cache.h"

/* The protocol's own events, in the order of `events.py`. */
enum {
    FILTERED = FIRST_OF_PROTOCOL,
    INTEREST_CACHED,
    INTEREST_REMOVED,
    GRADIENT_SET,
    GRADIENT_REMOVED,
    DATA_GRADIENT_SET,
    REINFORCED,
    BLACKLISTED,
    HEAD_SET
};

/* Why a message ends at a node. */
enum diffusion_reason {
    DIFFUSION_MALFORMED,
    DIFFUSION_PREVIOUS_HOP,
    DIFFUSION_BLACKLISTED,
    DIFFUSION_TTL,
    DIFFUSION_TOO_LONG,
    DIFFUSION_DUPLICATE,
    DIFFUSION_STALE,
    DIFFUSION_FILTER,
    DIFFUSION_NO_INTEREST,
    DIFFUSION_NO_GRADIENT,
    DIFFUSION_EXPIRED,
    DIFFUSION_FULL,
    DIFFUSION_EVICTED,
    DIFFUSION_REASONS
};

/* What a node is set to: TINY_DIFFUSION_SETTINGS of the definition file, and the filters of filters.h. */
struct diffusion_settings {
    uint8_t ttl;
    uint8_t max_repeats;
    uint16_t reinforce_after;
    uint8_t exploratory_gradients;
    uint16_t lifetime_s;
    int64_t refresh_us; /* 0: never */
    int64_t known_for_us;
    int64_t tick_us;
    int64_t sample_lifetime_us;
    double blacklist_loss;
    double blacklist_hysteresis;
    const struct filter *filters; /* in ascending order of their keys */
    size_t filter_count;
};

/* Frames that wait to be sent again; a bit for each sink that gradients may lead to. */
enum { NO_HOP = 0xFFFF, MAX_WAITING = 4, SERVED_SINKS = MAX_INTERESTS * MAX_GRADIENTS, SERVED_B = (SERVED_SINKS + 7) / 8 };

/* A data message that was here: when and from where it came first, the sinks that it was sent towards, how often it was
 * sent again. `ttl`: with which it came first, or last in a circle; `is_settled`: further copies are duplicates, whatever
 * they are for. */
struct seen_data {
    uint32_t came_us[2];
    uint32_t sequence;
    uint16_t source;
    uint16_t previous_hop; /* NO_HOP: of this node's own */
    uint16_t ttl;
    uint8_t served[SERVED_B];
    unsigned retries : 7;
    bool is_settled : 1;
};

/* Data that a neighbor did not acknowledge, when it is sent again, and the neighbor that brought it. */
struct waiting {
    uint32_t due_us[2];
    uint16_t failed;
    uint16_t previous_hop;
    uint8_t size;
    uint8_t frame[1 + MESSAGE_B];
};

/* A sample that waits for an interest. `number` counts the node's readings, modulo 2^32. Times in lists are in two words
 * where one of 64 bits would leave gaps. */
struct sample {
    uint32_t ends_us[2];
    uint32_t number;
    bool is_wanted;
    struct attribute_list attributes;
};

/* An interest of the node's own: one per distinct constraints, shared by the subscriptions that ask for it. */
struct own_interest {
    int64_t refresh_us;
    int64_t repeat_us; /* when this round is sent again, unless a neighbor is heard to pass it on */
    uint32_t sequence;
    uint8_t round;
    uint8_t repeats;
    uint8_t reinforcements; /* started in this round */
    struct attribute_list attributes;
    struct data_gradients data_gradients;
};

struct diffusion_subscription {
    int64_t expires_us;
    uint32_t number; /* among the node's subscriptions */
    uint8_t own;     /* the place of its interest in `own_interests` */
};

/* A node: the caller's block of memory. Lists of `order` have the oldest first. */
struct diffusion {
    const struct diffusion_settings *settings;
    const struct driver *driver;
    struct random random;
    uint32_t first_number;
    uint32_t messages;
    int64_t readings;
    int64_t subscribed;
    int64_t next_wake;
    int64_t tick_us;
    int64_t first_expiry_us; /* no gradient expires before */
    uint16_t address;
    bool is_evicting; /* the newest entry of the cache has pushed another out */
    uint32_t drops[DIFFUSION_REASONS];

    uint8_t entry_count;
    uint8_t own_count;
    uint8_t waiting_count;
    uint8_t entry_order[MAX_INTERESTS];
    uint8_t own_order[MAX_INTERESTS];
    uint16_t subscription_count;
    uint16_t sample_count;
    uint16_t seen_data_count;
    uint16_t seen_data_oldest; /* of a ring: once it is full, the place of the next one */
    uint16_t seen_interest_count;
    uint16_t served_count;
    uint16_t black_count;

    struct interest_entry entries[MAX_INTERESTS];
    struct own_interest own_interests[MAX_INTERESTS];
    struct diffusion_subscription subscriptions[MAX_SUBSCRIPTIONS];
    struct seen_interest seen_interests[MAX_SEEN_INTERESTS];
    struct sample samples[MAX_DATA];
    struct waiting waiting[MAX_WAITING];
    struct seen_data seen_data[MAX_DATA];
    uint16_t served_sinks[SERVED_SINKS]; /* that bits of `served` stand for */
    uint16_t black_list[MAX_BLACK];
};

void diffusion_start(struct diffusion *node, const struct diffusion_settings *settings, uint32_t address,
                     struct random random, const struct driver *driver, int64_t now, unsigned boot);
void diffusion_receive(struct diffusion *node, const uint8_t *frame, size_t size, uint32_t previous_hop, int64_t now,
                       bool broadcast);
void diffusion_sent(struct diffusion *node, uint32_t destination, const uint8_t *frame, size_t size, bool ok, int64_t now);
void diffusion_wake(struct diffusion *node, int64_t now);
int64_t diffusion_next_wake(const struct diffusion *node);
int64_t diffusion_subscribe(struct diffusion *node, const struct attributes *attributes, int64_t now, int64_t lasts_us,
                            bool match_all);
void diffusion_unsubscribe(struct diffusion *node, int64_t number, int64_t now);
int64_t diffusion_publish(struct diffusion *node, const struct attributes *attributes, int64_t now);

/* The numbers that the next subscription and the next reading get. Whether a subscription was made, and has neither been
 * ended nor expired. */
int64_t diffusion_next_subscription(const struct diffusion *node);
int64_t diffusion_next_reading(const struct diffusion *node);
bool diffusion_was_made(const struct diffusion *node, int64_t number);
bool diffusion_is_open(const struct diffusion *node, int64_t number);

/* Reinforce the paths of a subscription's sources, or of those that `attributes` (NULL: none) constrain it to. Returns to
 * how many neighbors a reinforcement was sent, or an error. */
int64_t diffusion_reinforce(struct diffusion *node, int64_t number, const struct attributes *attributes, int64_t now);

/* The link layer estimates these delivery ratios from and to a neighbor: keeps the black list (A27). */
void diffusion_link_quality(struct diffusion *node, uint16_t neighbor, double inbound, double outbound, int64_t now);

/* How often a node has dropped something for a reason, and what the reason is called. */
uint32_t diffusion_drops(const struct diffusion *node, enum diffusion_reason reason);
const char *diffusion_reason_name(enum diffusion_reason reason);

#endif

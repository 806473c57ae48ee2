/* TinyDiffusion: directed diffusion for motes, in statically allocated memory.
 * `workbench/protocols/diffusion/node.py` defines it; `__init__.py` beside it describes the protocol. */
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
    HEAD_SET,
    WITHHELD
};

/* Reasons for which a node drops a message. */
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
    DIFFUSION_INTERVAL,
    DIFFUSION_REASONS
};

/* The rules by which publications match subscriptions (A11): any value of a repeated key may meet each constraint; one
 * value has to meet all constraints of its key; the IS attributes of each side have to meet the other's constraints. */
enum diffusion_matching { MATCHING_ANY, MATCHING_STRICT, MATCHING_TWO_WAY, MATCHINGS };

/* The settings of a node: TINY_DIFFUSION_SETTINGS of the definition file, and the filters of filters.h. */
struct diffusion_settings {
    uint8_t ttl;
    uint8_t max_repeats;
    uint16_t reinforce_after;
    uint8_t exploratory_gradients;
    unsigned matching : 7;    /* an enum diffusion_matching */
    bool merge_interests : 1; /* whether no interest is flooded that another own interest covers (A16) */
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
enum {
    NO_HOP = 0xFFFF,
    MAX_WAITING = 4,
    SERVED_SINKS = MAX_INTERESTS * MAX_GRADIENTS,
    SERVED_B = (SERVED_SINKS + 7) / 8,
    PACES_B = (MAX_INTERESTS + 7) / 8
};

/* The memory of a data message: time and sender of the first copy, the sinks that it was sent towards, how often it was
 * sent again. `ttl`: that of the first copy, or of the last one that circled; `is_settled`: all further copies are
 * duplicates, even those for other sinks. */
struct seen_data {
    uint32_t came_us[2];
    uint32_t sequence;
    uint16_t source;
    uint16_t previous_hop; /* NO_HOP: own data */
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

/* How often readings that match an entry of the cache go to a sink. `last_us`: when the last one was published. */
struct pace {
    uint32_t last_us[2];
    uint16_t interval; /* tenths of a second */
    uint16_t sink;
    uint8_t entry; /* its index in `entries` */
    bool has_last;
};

/* A sample that waits for an interest. `number` counts the node's readings, modulo 2^32; `early`: a bit for the first
 * pace of each sink for which it is too early. Times in lists have two words of 32 bits where 64 bits would cause
 * padding. */
struct sample {
    uint32_t ends_us[2];
    uint32_t number;
    bool is_wanted;
    uint8_t early[PACES_B];
    struct attribute_list attributes;
};

/* An own interest, shared by all subscriptions of the node with the same constraints. `is_flooded`: whether it is
 * flooded and refreshed; if not, another one covers it. `is_new`: whether it was never flooded. */
struct own_interest {
    int64_t refresh_us;
    int64_t repeat_us; /* when this round is sent again, unless a neighbor is heard to forward it */
    uint32_t sequence;
    uint8_t round;
    uint8_t repeats;
    uint8_t reinforcements; /* started in this round */
    bool is_flooded : 1;
    bool is_new : 1;
    struct attribute_list attributes;
    struct data_gradients data_gradients;
};

struct diffusion_subscription {
    int64_t expires_us;
    uint32_t number; /* among the node's subscriptions */
    uint8_t own;     /* index of its interest in `own_interests` */
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
    int64_t first_expiry_us; /* no gradient expires before this time */
    uint16_t address;
    bool is_evicting; /* whether adding the newest entry of the cache evicted another */
    uint32_t drops[DIFFUSION_REASONS];

    uint8_t entry_count;
    uint8_t own_count;
    uint8_t waiting_count;
    uint8_t pace_count;
    uint8_t entry_order[MAX_INTERESTS];
    uint8_t own_order[MAX_INTERESTS];
    uint16_t subscription_count;
    uint16_t sample_count;
    uint16_t seen_data_count;
    uint16_t seen_data_oldest; /* index in a full ring, where the next one is stored */
    uint16_t seen_interest_count;
    uint16_t served_count;
    uint16_t black_count;

    struct interest_entry entries[MAX_INTERESTS];
    struct own_interest own_interests[MAX_INTERESTS];
    struct pace paces[MAX_INTERESTS]; /* oldest first */
    struct diffusion_subscription subscriptions[MAX_SUBSCRIPTIONS];
    struct seen_interest seen_interests[MAX_SEEN_INTERESTS];
    struct sample samples[MAX_DATA];
    struct waiting waiting[MAX_WAITING];
    struct seen_data seen_data[MAX_DATA];
    uint16_t served_sinks[SERVED_SINKS]; /* the sink of each bit of `served` */
    uint16_t black_list[MAX_BLACK];
};

void diffusion_start(struct diffusion *node, const struct diffusion_settings *settings, uint32_t address,
                     struct random random, const struct driver *driver, int64_t now, unsigned boot);
void diffusion_receive(struct diffusion *node, const uint8_t *frame, size_t size, uint32_t previous_hop, int64_t now,
                       bool broadcast);
void diffusion_sent(struct diffusion *node, uint32_t destination, const uint8_t *frame, size_t size, bool ok,
                    int64_t now);
void diffusion_wake(struct diffusion *node, int64_t now);
int64_t diffusion_next_wake(const struct diffusion *node);
int64_t diffusion_subscribe(struct diffusion *node, const struct attributes *attributes, int64_t now, int64_t lasts_us,
                            bool match_all);
void diffusion_unsubscribe(struct diffusion *node, int64_t number, int64_t now);
int64_t diffusion_publish(struct diffusion *node, const struct attributes *attributes, int64_t now);

/* Return the numbers of the next subscription and the next reading; whether a subscription was made; whether it has
 * neither been ended nor expired. */
int64_t diffusion_next_subscription(const struct diffusion *node);
int64_t diffusion_next_reading(const struct diffusion *node);
bool diffusion_was_made(const struct diffusion *node, int64_t number);
bool diffusion_is_open(const struct diffusion *node, int64_t number);

/* Reinforce the paths to a subscription's sources, or to those that match the narrower `attributes` (may be NULL).
 * Return the number of neighbors to which a reinforcement was sent, or an error. */
int64_t diffusion_reinforce(struct diffusion *node, int64_t number, const struct attributes *attributes, int64_t now);

/* Update the black list with the link layer's estimates of a neighbor's delivery ratios (A27). */
void diffusion_link_quality(struct diffusion *node, uint16_t neighbor, double inbound, double outbound, int64_t now);

/* Return how often a node has dropped a message for a reason; the reason's name. */
uint32_t diffusion_drops(const struct diffusion *node, enum diffusion_reason reason);
const char *diffusion_reason_name(enum diffusion_reason reason);

#endif

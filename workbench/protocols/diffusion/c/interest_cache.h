/* The interest cache: other nodes' interests, with the next hops of data for them and the previous hops of that data.
 * `workbench/protocols/diffusion/interest_cache.py` defines it. */
#ifndef INTEREST_CACHE_H
#define INTEREST_CACHE_H

#include "attributes.h"

/* Data for `sink` may go to `neighbor` until `expires_us`. `sequence`: number of the sink's interest that set it;
 * `reinforced_by`: number of its reinforcement; `round`: that of the message that set it last; `ttl`: that of the
 * interest, the higher, the nearer the neighbor is to the sink. Other fields are temporary: see `serving.c`,
 * `pacing.c` and `note_heads`. */
struct gradient {
    int64_t expires_us;
    uint32_t sequence;
    uint32_t reinforced_by;
    uint16_t sink;
    uint16_t neighbor;
    uint8_t round;
    uint8_t ttl;
    uint8_t hop;
    bool has_sequence : 1;
    bool is_reinforced : 1;
    bool was_head : 1;
    bool is_path : 1;
    bool is_open : 1;
    bool may_spread : 1;
    bool is_further : 1;
    bool is_due : 1;
};

/* New data of `source` came first from `neighbor`; `sinks`: those whose reinforcements were sent there. */
struct data_gradient {
    uint16_t source;
    uint16_t neighbor;
    uint16_t messages; /* counts to 65535 */
    uint16_t sinks[MAX_SINKS];
    uint8_t sink_count;
    struct attribute_list attributes;
};

/* The data gradients of an interest, one per source: a FIFO. */
struct data_gradients {
    uint8_t count;
    struct data_gradient list[MAX_REINFORCEMENTS];
};

/* All interests with the same constraints. Gradients are in the order in which data prefers them; `sink` and `sequence`
 * are those of the interest that was cached last. */
struct interest_entry {
    uint8_t gradient_count;
    struct attribute_list attributes;
    uint16_t sink;
    struct gradient gradients[MAX_GRADIENTS];
    uint32_t sequence;
    struct data_gradients data_gradients;
};

/* A sink's first gradient, as HEAD_SET reports it. */
struct head {
    bool exists;
    bool is_reinforced;
    uint16_t neighbor;
    uint32_t number;
};

/* A received interest. */
struct seen_interest {
    int64_t heard_us;
    uint32_t sequence;
    uint16_t sink;
    uint8_t round;
};

enum { NO_PLACE = -1 };

/* Return the index of the gradient for a sink towards a neighbor, or of the one that a new gradient replaces (A17). */
int gradient_place(const struct interest_entry *entry, uint16_t sink, uint16_t neighbor);
int gradient_to_replace(const struct interest_entry *entry, uint16_t sink, bool is_reinforced);

struct gradient *append_gradient(struct interest_entry *entry, uint16_t sink, uint16_t neighbor, int64_t expires_us);
void remove_gradient(struct interest_entry *entry, size_t place);

/* Move a sink's gradient to the front, and make it the sink's only reinforced one. */
void reinforce_gradient(struct interest_entry *entry, size_t place, uint32_t reinforced_by);

/* Return whether a gradient's reinforcement belongs to this round of interest `sequence`. */
bool is_path_of_round(const struct gradient *gradient, uint32_t sequence, uint8_t round);

/* Return the highest number of a sink's reinforcements among the gradients, or NOBODY. */
int64_t newest_reinforcement(const struct interest_entry *entry, uint16_t sink);

/* Return whether an interest of a sink has arrived in a newer round; whether the entry has a gradient of the sink. */
bool has_newer_round(const struct interest_entry *entry, uint16_t sink, uint8_t round);
bool has_sink(const struct interest_entry *entry, uint16_t sink);

/* Return the number of a gradient's interest, or 0 if only reinforcements have set it. */
uint32_t gradient_number(const struct gradient *gradient);

/* Return a sink's first gradient; its index, or NO_PLACE. */
struct head head_of(const struct interest_entry *entry, uint16_t sink);
int head_place(const struct interest_entry *entry, uint16_t sink);

/* Mark the gradients that are now the first of their sinks. */
void note_heads(struct interest_entry *entry);

/* Note new data of a source; `*changed`: whether its neighbor has changed. */
struct data_gradient *update_data_gradient(struct data_gradients *data_gradients, uint16_t source, uint16_t neighbor,
                                           struct attributes attributes, bool *changed);

bool is_reinforced_for(const struct data_gradient *data_gradient, uint16_t sink);

/* Forget which data gradients a sink has reinforced, as a new round of its interest begins. */
void forget_reinforcements(struct data_gradients *data_gradients, uint16_t sink);

#endif

/* The interest cache: what a node knows of others' interests, where data for them goes, and where it came from.
 * `workbench/protocols/diffusion/interest_cache.py` defines it. */
#ifndef INTEREST_CACHE_H
#define INTEREST_CACHE_H

#include "attributes.h"

/* Data for `sink` may go to `neighbor` until `expires_us`. `sequence` is the number of the sink's interest that set it,
 * `wave` that of its reinforcement; `round` that of the message which set it last; `ttl` that of the interest, so the
 * nearer the neighbor is to the sink, the higher. The rest is of the moment: see `serving.c` and `note_heads`. */
struct gradient {
    int64_t expires_us;
    uint32_t sequence;
    uint32_t wave;
    uint16_t sink;
    uint16_t neighbor;
    uint8_t round;
    uint8_t ttl;
    uint8_t hop;
    bool has_sequence : 1;
    bool has_wave : 1;
    bool was_head : 1;
    bool is_path : 1;
    bool is_open : 1;
    bool may_spread : 1;
    bool is_further : 1;
};

/* New data of `source` came first from `neighbor`; `sinks`: whose reinforcement went there. */
struct data_gradient {
    uint16_t source;
    uint16_t neighbor;
    uint16_t messages; /* counts to 65535 */
    uint16_t sinks[MAX_SINKS];
    uint8_t sink_count;
    struct attribute_list attributes;
};

/* Per source, the neighbor that brought its newest data first: a FIFO. */
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

/* An interest that was heard. */
struct seen_interest {
    int64_t heard_us;
    uint32_t sequence;
    uint16_t sink;
    uint8_t round;
};

enum { NO_PLACE = -1 };

/* Places of gradients: of the one for a sink towards a neighbor; of the one that makes room for another (A17). */
int gradient_place(const struct interest_entry *entry, uint16_t sink, uint16_t neighbor);
int replaced(const struct interest_entry *entry, uint16_t sink, bool is_reinforced);

struct gradient *append_gradient(struct interest_entry *entry, uint16_t sink, uint16_t neighbor, int64_t expires_us);
void remove_gradient(struct interest_entry *entry, size_t place);

/* Make a sink's gradient the head of the list, and the only one that its reinforcement `wave` has set. */
void reinforce_gradient(struct interest_entry *entry, size_t place, uint32_t wave);

/* Whether a gradient's reinforcement is of this round of interest `sequence`. */
bool is_path_of_round(const struct gradient *gradient, uint32_t sequence, uint8_t round);

/* The number of a sink's newest reinforcement among the gradients, or NOBODY. */
int64_t newest_wave(const struct interest_entry *entry, uint16_t sink);

/* Whether a sink's interest has come here in a newer round than this one; whether it has any gradient here. */
bool is_past(const struct interest_entry *entry, uint16_t sink, uint8_t round);
bool has_sink(const struct interest_entry *entry, uint16_t sink);

/* The number of a gradient's interest, or 0 if reinforcements alone have set it. */
uint32_t gradient_number(const struct gradient *gradient);

/* A sink's first gradient; and the place of that, or NO_PLACE. */
struct head head_of(const struct interest_entry *entry, uint16_t sink);
int head_place(const struct interest_entry *entry, uint16_t sink);

/* Mark the gradients that are the first of their sinks now. */
void note_heads(struct interest_entry *entry);

/* Note new data of a source; `*changed`: its neighbor is another one than before. */
struct data_gradient *update_data_gradient(struct data_gradients *data_gradients, uint16_t source, uint16_t neighbor,
                                           struct attributes attributes, bool *changed);

bool is_reinforced_for(const struct data_gradient *data_gradient, uint16_t sink);

/* A new round of a sink's interest begins: its paths are open again. */
void forget_reinforcements(struct data_gradients *data_gradients, uint16_t sink);

#endif

/* Internal interfaces of a node; an application needs only `diffusion.h`. */
#ifndef NODE_H
#define NODE_H

#include "diffusion.h"
#include "wire.h"

/* Times in two words */
static inline void keep_time(uint32_t kept[2], int64_t time_us)
{
    kept[0] = (uint32_t)time_us;
    kept[1] = (uint32_t)((uint64_t)time_us >> 32);
}

static inline int64_t kept_time(const uint32_t kept[2])
{
    return (int64_t)((uint64_t)kept[1] << 32 | kept[0]);
}

/* Events. `message` is "interest", "reinforcement" or "data". */
void tell(const struct diffusion *node, int kind, int32_t peer, const char *message, int32_t origin, uint32_t sequence,
          int64_t value, const char *detail);
void tell_attributes(const struct diffusion *node, int kind, int32_t peer, const char *message, int32_t origin,
                     uint32_t sequence, int64_t value, struct attributes attributes);
void drop(struct diffusion *node, int32_t previous_hop, const char *message, int32_t origin, uint32_t sequence,
          enum diffusion_reason reason);
void drop_interest(struct diffusion *node, const struct interest *interest, const char *message,
                   enum diffusion_reason reason);

/* node.c */

/* Return whether a publication matches a subscription, by the node's rule (A11). Return whether the attributes may be
 * those of data: constraints need two-way matching and an IS attribute beside them, and must not be on INTERVAL. */
bool is_match(const struct diffusion *node, struct attributes subscription, struct attributes publication);
bool may_be_data(const struct diffusion *node, struct attributes attributes);
uint32_t take_sequence(struct diffusion *node);
bool is_black_listed(const struct diffusion *node, uint16_t neighbor);
void plan_wake(struct diffusion *node);

/* interests.c */
struct interest_entry *entry_at(struct diffusion *node, size_t place);
struct own_interest *own_at(struct diffusion *node, size_t place);
int own_place_of(const struct diffusion *node, struct attributes attributes);
int64_t new_own_interest(struct diffusion *node, struct attributes attributes);
void remove_own(struct diffusion *node, size_t place);
void flood_interests(struct diffusion *node, int64_t now);
void send_interest(struct diffusion *node, struct own_interest *own, int64_t now);
void flood(struct diffusion *node, struct own_interest *own, int64_t now);
void cancel_own(struct diffusion *node, struct own_interest *own);
int64_t own_end(const struct diffusion *node, const struct own_interest *own);
uint16_t own_expiration_s(const struct diffusion *node, const struct own_interest *own, int64_t now);
void receive_interest(struct diffusion *node, struct interest *interest, int64_t now);
void plan_tick(struct diffusion *node, int64_t now);
struct interest_entry *entry_of(struct diffusion *node, struct attributes attributes);
struct interest_entry *new_entry(struct diffusion *node, const struct interest *interest);
void set_gradient(struct diffusion *node, struct interest_entry *entry, const struct interest *interest, int64_t now,
                  bool is_reinforcement);
void forget_neighbor(struct diffusion *node, uint16_t neighbor);
void clean(struct diffusion *node, int64_t now);

/* pacing.c: how often a source sends readings to each sink, by the INTERVAL of the sink's interests. */
void set_pace(struct diffusion *node, const struct interest_entry *entry, const struct interest *interest);
void forget_paces(struct diffusion *node, uint8_t entry);
bool find_early(struct diffusion *node, struct sample *sample);
uint8_t early_sinks(const struct diffusion *node, const struct sample *sample, uint8_t sinks[MAX_INTERESTS * OTHER_B]);

/* data.c */
void drop_old_samples(struct diffusion *node, int64_t now);
void offer_sample(struct diffusion *node, int64_t number, struct attributes attributes, int64_t now);
void send_samples(struct diffusion *node, int64_t now);
void receive_data(struct diffusion *node, struct data *data, int64_t now);
void send_held(struct diffusion *node, int64_t now);

void drop_data(struct diffusion *node, const struct data *data, enum diffusion_reason reason);
struct seen_data *seen_data_of(struct diffusion *node, uint16_t source, uint32_t sequence);
bool data_is_wanted(struct diffusion *node, struct attributes attributes);
uint8_t gradients_to_try(const struct diffusion *node, int64_t now);

/* serving.c: send data towards the sinks that no copy has served yet, and return whether such sinks exist; send the
 * waiting frames again that are due. */
bool forward_data(struct diffusion *node, const struct data *data, struct seen_data *seen, int64_t now);
void send_waiting(struct diffusion *node, int64_t now);

/* reinforcement.c */
uint8_t start_reinforcement(struct diffusion *node, struct own_interest *own, struct attributes attributes,
                            struct data_gradient *data_gradients, size_t count, int64_t now);
void receive_reinforcement(struct diffusion *node, const struct interest *reinforcement, int64_t now);

/* filtering.c: apply the matching filters to a message; false if it is dropped, for `*reason`. */
bool filter_interest(struct diffusion *node, struct interest *interest, struct attribute_list *answer, int64_t now,
                     enum diffusion_reason *reason);
bool filter_data(struct diffusion *node, struct data *data, struct attribute_list *answer, int64_t now,
                 enum diffusion_reason *reason);

/* Return when a filter sends what it has dropped, or NEVER. Let the filter at an index do so if it is due: write the
 * attributes that the filters behind it pass; return false if they pass none. */
int64_t next_emission(const struct diffusion *node);
bool emit(const struct diffusion *node, size_t place, struct attribute_list *answer, int64_t now);

#endif

/* Rules of TinyDiffusion as functions of plain numbers. `workbench/protocols/diffusion/rules.py` defines them. */
#ifndef RULES_H
#define RULES_H

#include "contract.h"
#include "division.h"

enum { REPEAT_AFTER_US = SECOND_US / 2, REPEAT_WITHIN_US = SECOND_US, COPIES_MEET_US = SECOND_US };
enum { RETRY_WITHIN_US = SECOND_US, MAX_RETRIES = 3 };

/* Return the round of an interest's next refresh, counted modulo 256 (A15). */
static inline uint8_t next_round(uint8_t round)
{
    return (uint8_t)(round + 1);
}

/* Return whether a round is older than the known one, by the shorter distance modulo 256 (A15). */
static inline bool is_older_round(uint8_t round, uint8_t known)
{
    return (uint8_t)(round - known) >= 128;
}

/* Return the lifetime of an interest's gradients (s), 1 to `longest_s`; its subscription ends at `ends_us`. */
static inline uint16_t expiration_s(int64_t now, int64_t ends_us, uint16_t longest_s)
{
    if (ends_us <= now)
        return 1;
    uint64_t left_s = divide((uint64_t)(ends_us - now) + SECOND_US - 1, SECOND_US);
    return left_s > longest_s ? longest_s : (uint16_t)left_s;
}

/* Return whether a source sends a reading to a sink (A16): the last one, if any, was published an interval before, less
 * a sixteenth of it. */
static inline bool is_due(int64_t published_us, bool has_last, int64_t last_us, int64_t interval_us)
{
    return !has_last || published_us < last_us || published_us - last_us >= interval_us - (interval_us >> 4);
}

/* Return the number of hops of a message that was first sent with `first_ttl` and arrives with `ttl`. */
static inline int hops_taken(int first_ttl, int ttl)
{
    return first_ttl - ttl + 1;
}

/* Return whether a source's path is reinforced after `messages` new messages (`reinforce_after` 0: never). `started`:
 * reinforcements started in this round. */
static inline bool may_reinforce(uint16_t messages, uint16_t reinforce_after, uint8_t started)
{
    return reinforce_after > 0 && reinforce_after <= messages && started < MAX_REINFORCEMENTS;
}

/* Return whether data may use more gradients than the first: only if the node recognizes all returning copies. */
static inline bool may_explore(bool is_full, int64_t oldest_us, int64_t now)
{
    return !is_full || now - oldest_us >= COPIES_MEET_US;
}

/* Return whether data should go to a neighbor rather than to the `best` so far (NOBODY: not chosen yet). `count`: sinks
 * whose next hop it may be; `heads`: of these, sinks whose first gradient leads to it. The lower address wins a tie. */
static inline bool is_better_hop(unsigned count, unsigned heads, int32_t neighbor, unsigned best_count,
                                 unsigned best_heads, int32_t best)
{
    if (best == NOBODY || count != best_count)
        return best == NOBODY || count > best_count;
    return heads != best_heads ? heads > best_heads : neighbor < best;
}

/* Return whether a copy of a known message has passed this node before: a circle has at least three hops. */
static inline bool has_circled(int ttl, int seen_ttl)
{
    return ttl <= seen_ttl - 3;
}

/* Return whether a message that was sent again `retries` times may be sent again. */
static inline bool may_retry(unsigned retries)
{
    return retries < MAX_RETRIES;
}

/* Return whether a neighbor whose link has these delivery ratios belongs on the black list (A27). */
static inline bool is_black(bool was_black, double inbound, double outbound, double most, double hysteresis)
{
    double loss = 1.0 - inbound * outbound;
    return was_black ? loss >= most - hysteresis : loss > most;
}

#endif

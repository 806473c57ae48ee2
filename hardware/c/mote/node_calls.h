/* The functions of a node that the program of a mote calls. A protocol implements them in its folder c/mote, where
 * `mote_node.h` defines `struct mote_node`: the node, its settings, and other state of the protocol. */
#ifndef NODE_CALLS_H
#define NODE_CALLS_H

#include "contract.h"
#include "draws.h"
#include "mote_node.h"

/* Why a configuration is refused, and the name of what is wrong, which ends in a zero or a quotation mark. `why` is
 * NULL if it is not refused. `size`: the value that this program takes instead, which the host writes behind the name;
 * 0 if there is none. */
struct refusal {
    const char *why;
    const char *what;
    uint32_t size;
};
#define COMPILED_WITH "this mote's program was compiled with "
#define CANNOT_HAVE "a mote in C cannot have this "

/* The class of the nodes in Python: "module:class". */
extern const char NODE_CLASS[];

/* Start a node with these settings (JSON). Where they are refused there is no node: they are read into its memory. */
struct refusal node_start(struct mote_node *node, const char *settings, uint32_t address, struct random random,
                          const struct driver *driver, int64_t now, unsigned boot);

/* As in `contract.h`. */
void node_receive(struct mote_node *node, const uint8_t *frame, size_t size, uint32_t previous_hop, int64_t now,
                  bool broadcast);
void node_sent(struct mote_node *node, uint32_t destination, const uint8_t *frame, size_t size, bool ok, int64_t now);
void node_wake(struct mote_node *node, int64_t now);
int64_t node_next_wake(const struct mote_node *node);
int64_t node_subscribe(struct mote_node *node, const struct attributes *attributes, int64_t now, int64_t lasts_us,
                       bool match_all);
void node_unsubscribe(struct mote_node *node, int64_t number, int64_t now);
int64_t node_publish(struct mote_node *node, const struct attributes *attributes, int64_t now);
void node_link_quality(struct mote_node *node, uint16_t neighbor, double inbound, double outbound, int64_t now);

/* The numbers that the next subscription and the next reading get. Whether a subscription was made, and has neither
 * been ended nor expired. */
int64_t node_next_subscription(const struct mote_node *node);
int64_t node_next_reading(const struct mote_node *node);
bool node_was_made(const struct mote_node *node, int64_t number);
bool node_is_open(const struct mote_node *node, int64_t number);

#endif

/* The protocol contract in C: what a node is called with, and what it answers. `workbench/protocols/contract.py` defines it.
 *
 * A node of protocol NAME is one block of memory, a `struct NAME`, which the caller gives and never looks into:
 *
 *     NAME_start(node, settings, address, random, driver, now, boot)    once, before anything else
 *     NAME_receive(node, frame, size, previous_hop, now, broadcast)     a neighbor sent a frame
 *     NAME_sent(node, destination, frame, size, ok, now)                the radio has delivered a unicast frame, or given
 *                                                                       it up; at most once a frame
 *     NAME_wake(node, now)                                              `now` has reached NAME_next_wake(node)
 *     NAME_subscribe(node, attributes, now, lasts_us, match_all)        -> number of the subscription, or an error
 *     NAME_unsubscribe(node, number, now)
 *     NAME_publish(node, attributes, now)                               -> number of the reading, or an error
 *
 * Times are in microseconds. Nothing is allocated, printed or kept outside of the block. */
#ifndef CONTRACT_H
#define CONTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attributes.h"

#define NOBODY (-1)
#define NEVER INT64_MAX
#define BROADCAST UINT32_MAX
#define SECOND_US 1000000
/* A node that has lost its memory must not number from 0 again: its neighbors would take what is new for known. */
#define NUMBERS_PER_BOOT 0x1000000

/* Events have the numbers that they have on the host link; a protocol's own begin with FIRST_OF_PROTOCOL. */
enum { ORIGINATED, HELD, FORWARDED, DELIVERED, DROPPED, FIRST_OF_PROTOCOL = 32 };

/* What happened at a node. `message` and `detail` are names or ""; `attributes` is empty but where an event has some. */
struct event {
    int kind;
    int64_t peer;
    const char *message;
    int64_t origin;
    int64_t sequence;
    int64_t value;
    const char *detail;
    struct attributes attributes;
};

/* A frame in two parts, for a node passes on what it has just received without copying it. */
struct frame {
    const uint8_t *head;
    size_t head_size;
    const uint8_t *body;
    size_t body_size;
};

/* Who drives a node. Both functions are given `context`, and what they are handed is theirs until they return. They may
 * not call the node: it is in the middle of something. */
struct driver {
    void *context;
    void (*send)(void *context, uint32_t destination, const struct frame *frame);
    void (*event)(void *context, const struct event *event);
    bool tells_all; /* false: drops are counted alone, and a node may leave out FORWARDED */
};

/* Why a node refuses a subscription, a reading or a reinforcement. */
enum {
    WRONG_ATTRIBUTES = -1,
    CONSTRAINS_NOTHING = -2,
    NOT_A_READING = -3,
    TOO_MANY_ATTRIBUTES = -4,
    TOO_LONG = -5,
    TOO_MANY_INTERESTS = -6,
    TOO_MANY_SUBSCRIPTIONS = -7,
    LESS_CONSTRAINED = -8
};

/* The digits of a size, which is a macro of a plain number. */
#define AS_TEXT(number) #number
#define TEXT_OF(size) AS_TEXT(size)

/* The sentence of an error. */
const char *sentence(int64_t error);

#endif

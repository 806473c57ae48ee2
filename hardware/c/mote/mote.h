/* The program of a mote in C: one node of TinyDiffusion behind the host link, whose host plays the radio.
 * `hardware/mote/mote.py` defines it, and `workbench/motes/messages.py` the messages. */
#ifndef MOTE_H
#define MOTE_H

#include "configuration.h"
#include "framing.h"

enum { SECRET_B = 8 };

/* What a board has. All functions are given `context`. */
struct board {
    void *context;
    const char *name;
    uint32_t boot;                    /* how often the mote began before */
    int64_t (*now_us)(void *context); /* a clock that never goes back */
    void (*write)(void *context, const uint8_t *bytes, size_t size);
    void (*reset)(void *context);
};

/* What the mote tells of itself before the first thing that its node does in a call: that it published, say. */
struct announcement {
    bool is_pending;
    uint8_t kind;
    int64_t number;
    int64_t value;
    struct attributes attributes;
};

struct mote {
    const struct board *board;
    bool is_configured;
    bool has_secret;
    bool is_held;
    uint8_t secret[SECRET_B];
    uint32_t contested; /* greetings and commands of others so far */
    uint32_t spoilt;    /* as far as it was told */
    int64_t greeted_us;
    int64_t offset_us;
    int64_t held_us;
    struct announcement announcement;
    struct configuration configuration;
    struct driver driver;
    struct diffusion node;
    struct deframer deframer;
};

void mote_start(struct mote *mote, const struct board *board);

/* Bytes that came over the host link. */
void mote_feed(struct mote *mote, const uint8_t *bytes, size_t size);

/* Do what is due; returns in how many µs to be stepped again, NEVER if nothing is planned. */
int64_t mote_step(struct mote *mote);

#endif

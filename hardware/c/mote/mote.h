/* The program of a mote in C: one node behind the host link, of the protocol in whose folder c/mote it finds
 * `mote_node.h`. Its radio's frames go over the host link, or over a line of the radio.
 * `hardware/mote/mote.py` defines it, and `workbench/motes/messages.py` the messages. */
#ifndef MOTE_H
#define MOTE_H

#include "framing.h"
#include "node_calls.h"

enum { SECRET_B = 8 };
/* The most that comes over the radio's line: a frame of 802.15.4 behind the head of HEARD. */
enum { LONGEST_HEARD = 16 + 127 };

/* What a board has. All functions are given `context`. */
struct board {
    void *context;
    const char *name;
    uint32_t boot;                    /* how often the mote began before */
    int64_t (*now_us)(void *context); /* a clock that never goes back */
    int64_t (*used_B)(void *context); /* memory in use */
    void (*write)(void *context, const uint8_t *bytes, size_t size);
    void (*write_radio)(void *context, const uint8_t *bytes, size_t size); /* NULL: frames go over the host link */
    void (*reset)(void *context);
    const char *(*trouble)(void *context); /* a sentence if the board is not well, else NULL; NULL: it never knows */
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
    const char *reported; /* the board's trouble that this host was sent */
    int64_t greeted_us;
    int64_t offset_us;
    int64_t held_us;
    uint32_t address;
    struct announcement announcement;
    struct driver driver;
    struct mote_node node;
    struct enframer message; /* that is being written */
    struct deframer line;
    struct deframer radio;
    uint8_t line_bytes[STUFFED_B(LONGEST_BODY)];
    uint8_t radio_bytes[STUFFED_B(LONGEST_HEARD)];
};

void mote_start(struct mote *mote, const struct board *board);

/* Bytes that came over the host link. */
void mote_feed(struct mote *mote, const uint8_t *bytes, size_t size);

/* Bytes that came over the radio's line. While the clock is held, or without a node, they are dropped. */
void mote_hear(struct mote *mote, const uint8_t *bytes, size_t size);

/* Execute everything due; return the µs until the next step, or NEVER if nothing is planned. */
int64_t mote_step(struct mote *mote);

enum { REAL_TIME_PPM = 1000000 };

/* The time of a clock after `real_us` of real time; `speed_ppm` is its speed in millionths of real time. */
int64_t mote_clock_us(int64_t real_us, uint32_t speed_ppm);

/* The real time of a step's answer `wait_us`, at most a second. */
int32_t mote_pause_us(int64_t wait_us, uint32_t speed_ppm);

#endif

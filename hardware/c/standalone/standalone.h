/* A mote without a host: a node of TinyDiffusion on the calls of an operating system, and commands as lines of text.
 * `hardware/c/README.md` describes it. */
#ifndef STANDALONE_H
#define STANDALONE_H

#include "diffusion.h"

/* Unicast frames whose outcome the radio has not reported yet; the outcome of further frames remains unknown. */
#ifndef MAX_FLYING
#define MAX_FLYING 4
#endif

enum { LONGEST_LINE = 80 };

/* A unicast frame from its transmission until the node has its outcome. */
struct flying {
    bool is_used;
    bool is_settled;
    bool is_delivered;
    uint32_t destination;
    size_t size;
    uint8_t bytes[1 + MESSAGE_B];
};

/* The calls of an operating system. They must not call the node. */
struct system {
    /* Send a frame to BROADCAST or to an address. `flying` is NULL for a broadcast and if no place is free. Otherwise
     * the radio's outcome goes to `standalone_sent` with it, during this call or later. */
    void (*send)(uint32_t destination, const struct frame *frame, struct flying *flying);
    /* Print a line. */
    void (*print)(const char *line);
};

/* The caller's memory of a mote. */
struct standalone {
    const struct system *system;
    struct driver driver;
    struct diffusion node;
    struct flying flying[MAX_FLYING];
};

/* Start the node. `seed` is the key of its random draws; `boot` is the number of earlier starts. */
void standalone_start(struct standalone *mote, const struct system *system, uint16_t address, uint64_t seed,
                      int64_t now, unsigned boot);

/* Process a frame that the radio has received. */
void standalone_receive(struct standalone *mote, const uint8_t *frame, size_t size, uint16_t sender, int64_t now,
                        bool broadcast);

/* Record the outcome of a unicast frame. It may be called while the node is called: `standalone_step` passes it on. */
void standalone_sent(struct flying *flying, bool is_delivered);

/* Execute a line: "subscribe 25" or "publish 26.5", in °C. The answer is printed. */
void standalone_command(struct standalone *mote, const char *line, int64_t now);

/* Execute everything due; return the µs until the next step, or NEVER if nothing is planned. */
int64_t standalone_step(struct standalone *mote, int64_t now);

#endif

/* The configuration of a mote: the members of the JSON of CONFIGURE that every node in C needs. */
#ifndef CONFIGURATION_H
#define CONFIGURATION_H

#include <stdbool.h>
#include <stdint.h>

struct configuration {
    uint32_t address;
    uint64_t key; /* of the node's draws */
    bool has_boot;
    unsigned boot;
    const char *settings; /* the node's: JSON, in the text that was read */
};

/* Read a configuration from a text that ends in a zero. NULL, or the name of what this program cannot have: it has no
 * sensors and no keys for blobs but its own. If the nodes are of another class than `node_class` (Python's
 * "module:class"), it is that class. */
const char *configuration_read(const char *text, const char *node_class, struct configuration *configuration);

#endif

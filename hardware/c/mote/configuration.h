/* What a host makes of a mote: the JSON of CONFIGURE, as far as a mote in C needs it. */
#ifndef CONFIGURATION_H
#define CONFIGURATION_H

#include "diffusion.h"

struct configuration {
    uint32_t address;
    uint64_t key; /* of the node's draws */
    bool has_boot;
    unsigned boot;
    struct diffusion_settings settings;
};

/* Read a configuration from a text that ends in a zero. NULL, or the name of what this program cannot be: it was compiled
 * for certain sizes of lists, for one node, and without filters and keys for blobs other than its own. */
const char *configuration_read(const char *text, struct configuration *configuration);

#endif

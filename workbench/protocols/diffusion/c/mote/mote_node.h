/* A node of diffusion, as the program of a mote has it: with the filters that its host has placed there. */
#ifndef MOTE_NODE_H
#define MOTE_NODE_H

#include "diffusion.h"
#include "placing.h"

struct mote_node {
    struct diffusion_settings settings;
    struct diffusion diffusion;
#if MAX_FILTERS > 0
    struct filter filters[MAX_FILTERS];
    struct filter_room rooms[MAX_FILTERS];
    struct filter_room spare; /* where a filter is tried that may be refused */
#endif
};

#endif

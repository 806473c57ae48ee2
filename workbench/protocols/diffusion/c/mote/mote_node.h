/* The node of TinyDiffusion in the program of a mote, with the filters that its host has placed there. */
#ifndef MOTE_NODE_H
#define MOTE_NODE_H

#include "diffusion.h"
#include "placing.h"

struct mote_node {
    struct diffusion_settings settings;
    struct diffusion diffusion;
    struct placed_filters filters;
};

#endif

/* A node that floods, as the program of a mote has it. */
#ifndef MOTE_NODE_H
#define MOTE_NODE_H

#include "flooding.h"

struct mote_node {
    struct flooding_settings settings;
    struct flooding flooding;
};

#endif

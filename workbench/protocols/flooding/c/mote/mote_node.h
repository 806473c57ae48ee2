/* The node of the flooding protocol in the program of a mote. */
#ifndef MOTE_NODE_H
#define MOTE_NODE_H

#include "flooding.h"

struct mote_node {
    struct flooding_settings settings;
    struct flooding flooding;
};

#endif

/* The settings of a node, as a host sends them in JSON. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "diffusion.h"

struct refusal;

/* Read the settings; the first missing one, or a size that this program was not compiled for, is refused. Filters do
 * not change. */
struct refusal settings_read(const char *text, struct diffusion_settings *settings);

#endif

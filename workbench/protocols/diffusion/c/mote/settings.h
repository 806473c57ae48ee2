/* The settings of a node, as a host says them: in JSON. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "diffusion.h"

struct refusal;

/* Read them; refused is the first that is missing, or a size that this program was not compiled for. Filters are left as
 * they are. */
struct refusal settings_read(const char *text, struct diffusion_settings *settings);

#endif

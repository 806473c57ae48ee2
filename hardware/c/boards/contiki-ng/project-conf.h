/* The configuration of the mote for Contiki-NG. */
#ifndef PROJECT_CONF_H_
#define PROJECT_CONF_H_

/* The lists of a small mote; hardware/c/README.md has their memory. */
#define MESSAGE_B 29
#define MAX_INTERESTS 5
#define MAX_GRADIENTS 4
#define MAX_REINFORCEMENTS 4

#endif

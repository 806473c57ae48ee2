/* The board mps2-an385 (Cortex-M3, 25 MHz), as qemu-system-arm emulates it: what its parts call, and begin with. */
#ifndef BOARD_H
#define BOARD_H

#include <stdbool.h>
#include <stdint.h>

/* Interrupts of the chip count from 16: 0 and 2 are what the UARTs have heard, 8 is the first timer. */
enum { FIRST_INTERRUPT = 16, HOST_INTERRUPT = 0, RADIO_INTERRUPT = 2, ALARM_INTERRUPT = 8 };
enum { LAST_INTERRUPT = FIRST_INTERRUPT + ALARM_INTERRUPT };

void clock_wrapped(void);
void host_heard(void);
void radio_heard(void);
void alarm_went_off(void);

/* Static memory, and the stack as deep as it has ever been. */
uint32_t memory_in_use_B(void);

/* Whether the stack has ever reached its guard, the lowest words of its memory. */
bool is_stack_low(void);

/* Why a mote begins again. */
enum ending { ENDED_BY_COMMAND, ENDED_BY_STACK, ENDED_BY_FAULT };

/* As after power-on, but for the count of beginnings and this reason. Does not return. */
void begin_again(enum ending ending);

#endif

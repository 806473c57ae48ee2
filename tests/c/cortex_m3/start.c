/* The vector table of a program that talks to the emulator by semihosting: its C library begins at _start. */
#include <stdint.h>

extern uint32_t stack_top;
void _start(void);

static void reset(void)
{
    _start();
}

static void fault(void)
{
    for (;;)
        __asm__ volatile("bkpt 0xFF");
}

/* The first word is where the stack begins; then what is called at a reset and at each kind of fault. */
struct vectors {
    uint32_t *stack;
    void (*handlers[6])(void);
};

__attribute__((section(".vectors"), used)) static const struct vectors VECTORS = {
    &stack_top,
    {reset, fault, fault, fault, fault, fault},
};

/* What happens before `main`: the vector table, and memory as C wants it. */
#include <stddef.h>
#include <stdint.h>

#include "board.h"

extern uint32_t stack_bottom[];
extern uint32_t stack_guard[];
extern uint32_t stack_painted[];
extern uint32_t stack_top[];
extern const uint32_t data_image[];
extern uint32_t data_begin[];
extern uint32_t data_end[];
extern uint32_t bss_begin[];
extern uint32_t bss_end[];
extern uint32_t ram_end[];

int main(void);
void reset(void);

/* What the stack is painted with, but for the top of it, where `reset` itself is. */
enum { UNUSED_STACK = 0x5AFE5AFE };

void reset(void)
{
    for (uint32_t *at = stack_bottom; at < stack_painted; at++)
        *at = UNUSED_STACK;
    for (size_t i = 0; &data_begin[i] < data_end; i++)
        data_begin[i] = data_image[i];
    for (uint32_t *at = bss_begin; at < bss_end; at++)
        *at = 0;
    (void)main();
}

uint32_t memory_in_use_B(void)
{
    const uint32_t *deepest = stack_bottom;
    while (*deepest == UNUSED_STACK)
        deepest++;
    return (uint32_t)((ram_end - deepest) * (ptrdiff_t)sizeof *deepest);
}

bool is_stack_low(void)
{
    for (const uint32_t *at = stack_bottom; at < stack_guard; at++)
        if (*at != UNUSED_STACK)
            return true;
    return false;
}

__attribute__((used)) static void end_by_fault(void)
{
    begin_again(is_stack_low() ? ENDED_BY_STACK : ENDED_BY_FAULT);
}

/* What the mote did is lost, as with any reset; its host is sent the reason. A stack that has overflowed is no use to the
 * handler, so it begins at the top again. */
__attribute__((naked)) static void fault(void)
{
    __asm__ volatile("ldr sp, =stack_top\n"
                     "b end_by_fault\n"
                     ".ltorg");
}

static void nothing(void)
{
}

/* The first word is where the stack begins; then what is called, by number. */
struct vectors {
    uint32_t *stack;
    void (*handlers[LAST_INTERRUPT])(void);
};

/* clang-format off */
__attribute__((section(".vectors"), used)) static const struct vectors VECTORS = {
    stack_top,
    {reset, fault, fault, fault, fault, fault, NULL, NULL, NULL, NULL, nothing, fault, NULL, nothing, clock_wrapped,
     host_heard, nothing, radio_heard, nothing, nothing, nothing, nothing, nothing, alarm_went_off},
};
/* clang-format on */

/* A mote on a Cortex-M3: UART 0 is the host link, UART 1 the radio. Both are read by interrupts, and the processor
 * sleeps when there is nothing to do. Time is SysTick's; a timer ends the sleep when the mote wants to be stepped. */
#include "board.h"
#include "division.h"
#include "mote.h"

/* The chip's parts, by their addresses */

struct uart {
    volatile uint32_t data;
    volatile uint32_t state;
    volatile uint32_t control;
    volatile uint32_t interrupt;
    volatile uint32_t divider;
};
enum { UART_FULL = 1, UART_HEARD = 2 };                         /* state */
enum { UART_SENDS = 1, UART_HEARS = 2, UART_TELLS_HEARD = 8 };  /* control */
enum { UART_INTERRUPT_HEARD = 2, UART_DIVIDER = 217 };          /* 25 MHz / 115,200 */

struct timer {
    volatile uint32_t control;
    volatile uint32_t value;
    volatile uint32_t reload;
    volatile uint32_t interrupt;
};
enum { TIMER_RUNS = 1, TIMER_TELLS = 8 };

struct systick {
    volatile uint32_t control;
    volatile uint32_t reload;
    volatile uint32_t value;
};
enum { SYSTICK_RUNS = 7, SYSTICK_PERIOD = 1 << 24 };

#define UART0 ((struct uart *)0x40004000)
#define UART1 ((struct uart *)0x40005000)
#define TIMER0 ((struct timer *)0x40000000)
#define SYSTICK ((struct systick *)0xE000E010)
struct protection {
    volatile uint32_t control;
    volatile uint32_t region;
    volatile uint32_t base;
    volatile uint32_t attributes;
};
enum { PROTECTION_ON = 5, REGION_ON = 1, REGION_OF_4_KB = 11 << 1, NOT_EXECUTED = 1 << 28 };

#define PROTECTION ((struct protection *)0xE000ED94)
#define INTERRUPTS_ON (*(volatile uint32_t *)0xE000E100)
#define PENDING (*(volatile uint32_t *)0xE000ED04)
#define RESET_CONTROL (*(volatile uint32_t *)0xE000ED0C)

enum { SYSTICK_IS_PENDING = 1 << 26, CYCLES_IN_US = 25 };
static const uint32_t RESET_REQUEST = 0x05FA0004;

extern const volatile uint32_t settings_page[];
extern uint32_t stack_bottom[];
enum { BOOTS_AT, SPEED_AT };

static void lock(void)
{
    __asm__ volatile("cpsid i" ::: "memory");
}

static void unlock(void)
{
    __asm__ volatile("cpsie i" ::: "memory");
}

/* Bytes that a UART has heard, until they are taken: a ring, whose counts go on */

enum { RING_B = 128 };

struct ring {
    volatile uint8_t put;
    volatile uint8_t taken;
    uint8_t bytes[RING_B];
};

static struct ring from_host;
static struct ring from_radio;

static bool is_full(const struct ring *ring)
{
    return (uint8_t)(ring->put - ring->taken) == RING_B;
}

/* While the ring is full its UART keeps its byte, and does not ask to be heard. */
static void listen(struct ring *ring, struct uart *uart)
{
    uart->interrupt = UART_INTERRUPT_HEARD;
    while ((uart->state & UART_HEARD) != 0 && !is_full(ring)) {
        ring->bytes[ring->put % RING_B] = (uint8_t)uart->data;
        ring->put++;
    }
    uart->control = UART_SENDS | UART_HEARS | (is_full(ring) ? 0u : (uint32_t)UART_TELLS_HEARD);
}

void host_heard(void)
{
    listen(&from_host, UART0);
}

void radio_heard(void)
{
    listen(&from_radio, UART1);
}

/* Hand the mote what has come; whether there was anything. */
static bool hand_over(struct mote *mote, struct ring *ring, struct uart *uart,
                      void (*take)(struct mote *mote, const uint8_t *bytes, size_t size))
{
    if (ring->put == ring->taken)
        return false;
    while (ring->put != ring->taken) {
        uint8_t byte = ring->bytes[ring->taken % RING_B];
        ring->taken++;
        take(mote, &byte, 1);
    }
    lock();
    listen(ring, uart);
    unlock();
    return true;
}

static void write_to(struct uart *uart, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        while ((uart->state & UART_FULL) != 0)
            ;
        uart->data = bytes[i];
    }
}

/* What the mote asks of its board */

static uint32_t speed_ppm;
static volatile uint32_t wraps;

void clock_wrapped(void)
{
    wraps++;
}

static int64_t now_us(void *context)
{
    (void)context;
    lock();
    uint32_t left = SYSTICK->value;
    int64_t periods = wraps;
    if ((PENDING & SYSTICK_IS_PENDING) != 0) {
        left = SYSTICK->value; /* It may have wrapped after it was read. */
        periods++;
    }
    unlock();
    int64_t cycles = periods * SYSTICK_PERIOD + (SYSTICK_PERIOD - 1 - (int64_t)left);
    return mote_clock_us((int64_t)divide((uint64_t)cycles, CYCLES_IN_US), speed_ppm);
}

static int64_t used_B(void *context)
{
    (void)context;
    return memory_in_use_B();
}

/* What a reset leaves as it is; at power-on, memory is zero. */
__attribute__((section(".noinit"))) static uint32_t resets;
__attribute__((section(".noinit"))) static enum ending last_ending;

static const char *trouble(void *context)
{
    (void)context;
    if (is_stack_low())
        return "the stack reached its guard";
    if (last_ending == ENDED_BY_STACK)
        return "restarted: the stack overflowed";
    return last_ending == ENDED_BY_FAULT ? "restarted after a fault" : NULL;
}

static void write_host(void *context, const uint8_t *bytes, size_t size)
{
    (void)context;
    write_to(UART0, bytes, size);
}

static void write_radio(void *context, const uint8_t *bytes, size_t size)
{
    (void)context;
    write_to(UART1, bytes, size);
}

void begin_again(enum ending ending)
{
    last_ending = ending;
    RESET_CONTROL = RESET_REQUEST;
    for (;;)
        ;
}

static void reset_board(void *context)
{
    (void)context;
    begin_again(ENDED_BY_COMMAND);
}

/* Sleep until something is heard, or for so long. */
static void sleep_us(int32_t pause_us)
{
    lock(); /* before the alarm is set: one that has gone off would not end the sleep */
    TIMER0->control = 0;
    TIMER0->interrupt = 1;
    TIMER0->value = (uint32_t)pause_us * CYCLES_IN_US;
    TIMER0->control = TIMER_RUNS | TIMER_TELLS;
    /* An interrupt that is locked out still ends the sleep. */
    if (from_host.put == from_host.taken && from_radio.put == from_radio.taken)
        __asm__ volatile("wfi");
    unlock();
}

void alarm_went_off(void)
{
    TIMER0->control = 0;
    TIMER0->interrupt = 1;
}

static void power_up(void)
{
    speed_ppm = settings_page[SPEED_AT] > 0 ? settings_page[SPEED_AT] : REAL_TIME_PPM;
    /* Without this, what lies below a stack that overflows reads as zeros, and the mote goes on with them. */
    PROTECTION->base = (uint32_t)stack_bottom - 4096;
    PROTECTION->attributes = REGION_ON | REGION_OF_4_KB | NOT_EXECUTED;
    PROTECTION->control = PROTECTION_ON;
    SYSTICK->reload = SYSTICK_PERIOD - 1;
    SYSTICK->value = 0;
    SYSTICK->control = SYSTICK_RUNS;
    UART0->divider = UART_DIVIDER;
    UART1->divider = UART_DIVIDER;
    UART0->control = UART_SENDS | UART_HEARS | UART_TELLS_HEARD;
    UART1->control = UART_SENDS | UART_HEARS | UART_TELLS_HEARD;
    INTERRUPTS_ON = 1u << HOST_INTERRUPT | 1u << RADIO_INTERRUPT | 1u << ALARM_INTERRUPT;
    unlock();
}

int main(void)
{
    static struct mote mote;
    const struct board board = {NULL, "Cortex-M3", settings_page[BOOTS_AT] + resets, now_us, used_B, write_host,
                                write_radio, reset_board, trouble};
    resets++;
    power_up();
    mote_start(&mote, &board);
    for (;;) {
        bool has_heard = hand_over(&mote, &from_host, UART0, mote_feed);
        has_heard |= hand_over(&mote, &from_radio, UART1, mote_hear);
        int32_t pause_us = mote_pause_us(mote_step(&mote), speed_ppm);
        if (!has_heard && pause_us > 0)
            sleep_us(pause_us);
    }
}

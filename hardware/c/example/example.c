/* An application: mote 1 subscribes to temperatures from 25 °C on, mote 3 measures, and mote 2 between them relays and has
 * the filters. Here all three are in one process, and a queue is the radio; on a mote there is one, and a real one. */
#include <stdio.h>
#include <string.h>

#include "diffusion.h"
#include "filters.h"

enum { MOTES = 3, MOST_FRAMES = 32 };

struct flying {
    uint32_t sender;
    uint32_t destination;
    size_t size;
    uint8_t bytes[1 + MESSAGE_B];
};

static struct diffusion motes[1 + MOTES];
static struct flying air[MOST_FRAMES];
static size_t first, last;

/* The driver's side: what a mote sends, and what happens there. */

static void send_frame(void *context, uint32_t destination, const struct frame *frame)
{
    struct flying *flying = &air[last++ % MOST_FRAMES];
    flying->sender = *(const uint32_t *)context;
    flying->destination = destination;
    flying->size = frame->head_size + frame->body_size;
    memcpy(flying->bytes, frame->head, frame->head_size);
    memcpy(flying->bytes + frame->head_size, frame->body, frame->body_size);
}

static void take_event(void *context, const struct event *event)
{
    if (event->kind != DELIVERED)
        return;
    const uint8_t *next = event->attributes.bytes;
    int number = next_attribute(&next).number;
    printf("mote %u: %d.%02d °C at mote %d\n", (unsigned)*(const uint32_t *)context, number / 100, number % 100,
           (int)event->origin);
}

/* Everybody next to the sender hears a frame, or the one that it is for. */
static void settle(int64_t now)
{
    while (first < last) {
        const struct flying flying = air[first++ % MOST_FRAMES];
        for (uint32_t mote = 1; mote <= MOTES; mote++) {
            bool is_near = mote + 1 == flying.sender || flying.sender + 1 == mote;
            bool is_broadcast = flying.destination == BROADCAST;
            if (is_near && (is_broadcast || flying.destination == mote))
                diffusion_receive(&motes[mote], flying.bytes, flying.size, flying.sender, now, is_broadcast);
        }
    }
}

int main(void)
{
    static uint32_t addresses[1 + MOTES] = {0, 1, 2, 3};
    static const struct diffusion_settings plain = TINY_DIFFUSION_SETTINGS;
    static struct diffusion_settings filtering = TINY_DIFFUSION_SETTINGS;
    static struct driver drivers[1 + MOTES];
    filtering.filters = FILTERS;
    filtering.filter_count = FILTER_COUNT;
    for (uint32_t mote = 1; mote <= MOTES; mote++) {
        drivers[mote] = (struct driver){&addresses[mote], send_frame, take_event, false};
        struct random random = {mote, 0};
        diffusion_start(&motes[mote], mote == 2 ? &filtering : &plain, mote, random, &drivers[mote], 0, 0);
    }
    struct attribute_list warm = {0};
    (void)add_number(&warm, TEMP_KEY, GE, 2500);
    struct attributes wanted = view(&warm);
    int64_t subscription = diffusion_subscribe(&motes[1], &wanted, 0, NEVER, false);
    if (subscription < 0)
        printf("%s\n", sentence(subscription));
    settle(0);
    static const int16_t measured[] = {2650, 2680, 2400, 2720, 2710};
    for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++) {
        int64_t now = (int64_t)(1 + i) * SECOND_US;
        struct attribute_list list = {0};
        (void)add_number(&list, TEMP_KEY, IS, measured[i]);
        struct attributes reading = view(&list);
        (void)diffusion_publish(&motes[3], &reading, now);
        settle(now);
    }
    return 0;
}

/* Gives a node random and mutated frames, and everything else that may happen to it, for sanitizers to watch.
 *
 *     cc -DDIFFUSION ... fuzz.c && ./a.out FRAMES SEED
 *
 * It ends with status 1 and a sentence if a frame is lost without an event, a node sends what no frame may be, or asks to
 * be woken again and again at once. At the end it prints how many frames it gave, and how often each reason was met. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draws.h"

#ifdef DIFFUSION
#include "built_in.h"
#include "diffusion.h"
#define NODE struct diffusion
#define CALL(name) diffusion_##name
#define REASONS DIFFUSION_REASONS
#define LONGEST_FRAME (1 + MESSAGE_B)
#else
#include "flooding.h"
#define NODE struct flooding
#define CALL(name) flooding_##name
#define REASONS FLOODING_REASONS
#define LONGEST_FRAME MOST_BYTES
#endif

enum { MOST_BYTES = 300, CORPUS = 64, ADDRESS = 5, NEIGHBORS = 6, MOST_WAKES = 1000 };

struct kept_frame {
    size_t size;
    uint8_t bytes[MOST_BYTES];
};

static struct random dice;
static struct kept_frame corpus[CORPUS];
static uint64_t events;
static volatile uint8_t touched; /* every byte that a node hands out is read */

static uint32_t roll(uint32_t bound)
{
    return random_below(&dice, bound);
}

static void fail(const char *why)
{
    printf("%s\n", why);
    exit(1);
}

static void touch(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        touched ^= bytes[i];
}

static void take_frame(void *context, uint32_t destination, const struct frame *frame)
{
    (void)context;
    (void)destination;
    touch(frame->head, frame->head_size);
    touch(frame->body, frame->body_size);
    size_t size = frame->head_size + frame->body_size;
    if (size > LONGEST_FRAME)
        fail("a node sent a frame that is too long");
    struct kept_frame *kept = &corpus[roll(CORPUS)];
    memcpy(kept->bytes, frame->head, frame->head_size);
    if (frame->body_size > 0)
        memcpy(kept->bytes + frame->head_size, frame->body, frame->body_size);
    kept->size = size;
}

static void take_event(void *context, const struct event *event)
{
    (void)context;
    events++;
    touch((const uint8_t *)event->message, strlen(event->message));
    touch((const uint8_t *)event->detail, strlen(event->detail));
    touch(event->attributes.bytes, event->attributes.size);
}

static const struct driver DRIVER = {NULL, take_frame, take_event, true};

/* Attributes */

static void random_attributes(struct attribute_list *list, bool are_data)
{
    static const uint8_t keys[] = {TEMP_KEY, X_KEY, INTERVAL_KEY, PAYLOAD_KEY, TOPIC_KEY};
    static const int16_t numbers[] = {-32768, -1, 0, 25, 26, 27, 32767};
    static const uint8_t blob[20] = "a blob of some bytes";
    *list = (struct attribute_list){0};
    for (uint32_t left = roll(5); left > 0; left--) {
        uint8_t key = keys[roll(5)];
        uint8_t op = are_data ? (uint8_t)IS : (uint8_t)(1 + roll(8));
        if (IS_BLOB(key))
            (void)add_blob(list, key, op, blob, (uint8_t)roll(20));
        else
            (void)add_number(list, key, op, numbers[roll(7)]);
    }
}

/* Frames */

/* A frame as a neighbor might send it. */
static void make_frame(struct kept_frame *made, uint8_t previous_hop)
{
    struct attribute_list list;
#ifdef DIFFUSION
    bool is_data = roll(2) == 0;
    random_attributes(&list, is_data);
    uint8_t interest[14] = {INTEREST_PACKET,
                            (uint8_t)roll(4),
                            0,
                            0,
                            0,
                            (uint8_t)(4 + roll(6)),
                            0,
                            (uint8_t)roll(3),
                            previous_hop,
                            0,
                            50,
                            3,
                            0,
                            list.count};
    uint8_t data[11] = {DATA_PACKET,
                        (uint8_t)roll(256),
                        0,
                        0,
                        0,
                        (uint8_t)(4 + roll(6)),
                        0,
                        previous_hop,
                        0,
                        50,
                        (uint8_t)(list.count | roll(2) << 7)};
    size_t head = is_data ? sizeof data : sizeof interest;
    memcpy(made->bytes, is_data ? data : interest, head);
#else
    (void)previous_hop;
    random_attributes(&list, true);
    uint8_t flood[12] = {0x46, (uint8_t)(4 + roll(6)), 0, 0, 0, (uint8_t)roll(256), 0, 0, 0, 50, 0, list.count};
    size_t head = sizeof flood;
    memcpy(made->bytes, flood, head);
#endif
    memcpy(made->bytes + head, list.bytes, list.size);
    made->size = head + list.size;
}

static void mutate(struct kept_frame *frame)
{
    switch (roll(5)) {
    case 0:
        if (frame->size > 0)
            frame->bytes[roll((uint32_t)frame->size)] ^= (uint8_t)(1u << roll(8));
        break;
    case 1:
        frame->size = roll((uint32_t)frame->size + 1);
        break;
    case 2:
        while (frame->size < MOST_BYTES && roll(6) > 0)
            frame->bytes[frame->size++] = (uint8_t)roll(256);
        break;
    case 3:
        for (size_t i = 0; i < frame->size; i++)
            frame->bytes[i] = (uint8_t)roll(256);
        break;
    default:
        if (frame->size > 0)
            frame->bytes[roll((uint32_t)frame->size)] = (uint8_t)roll(256);
    }
}

static struct kept_frame next_frame(uint8_t previous_hop)
{
    struct kept_frame frame = corpus[roll(CORPUS)];
    if (frame.size == 0 || roll(3) == 0)
        make_frame(&frame, previous_hop);
#ifdef DIFFUSION
    else if (frame.size > 10)
        /* What the node itself has sent comes back from a neighbor that says who it is. */
        frame.bytes[frame.bytes[0] == INTEREST_PACKET ? 8 : 7] = previous_hop;
#endif
    while (roll(3) == 0)
        mutate(&frame);
    return frame;
}

/* Each frame lies in a block of exactly its size, so that reading past it is seen. */
static void give_frame(NODE *node, int64_t now)
{
    uint8_t previous_hop = (uint8_t)roll(NEIGHBORS);
    struct kept_frame frame = next_frame(previous_hop);
    uint8_t *exact = malloc(frame.size > 0 ? frame.size : 1);
    if (exact == NULL)
        fail("no memory");
    memcpy(exact, frame.bytes, frame.size);
    uint64_t before = events;
    CALL(receive)(node, exact, frame.size, previous_hop, now, roll(3) > 0);
    free(exact);
    if (events == before)
        fail("a frame was lost without a word");
}

/* What else happens */

static void wake_until(NODE *node, int64_t *now, int64_t end)
{
    for (int wakes = 0; CALL(next_wake)(node) <= end; wakes++) {
        if (CALL(next_wake)(node) > *now)
            *now = CALL(next_wake)(node);
        if (wakes == MOST_WAKES)
            fail("a node asks again and again to be woken");
        CALL(wake)(node, *now);
    }
    *now = end;
}

static void do_something_else(NODE *node, int64_t *now)
{
    static const int64_t times_us[] = {0, 1, 100000, 2 * SECOND_US, 40 * SECOND_US};
    struct attribute_list list;
    random_attributes(&list, roll(2) == 0);
    struct attributes attributes = view(&list);
    switch (roll(5)) {
    case 0:
        (void)CALL(publish)(node, &attributes, *now);
        break;
    case 1:
        (void)CALL(subscribe)(node, &attributes, *now, roll(2) == 0 ? NEVER : 3 * SECOND_US, roll(2) == 0);
        break;
    case 2:
        CALL(unsubscribe)(node, roll(100), *now);
        break;
    case 3:
        wake_until(node, now, *now + times_us[roll(5)]);
        break;
    default:
#ifdef DIFFUSION
        CALL(link_quality)(node, (uint16_t)roll(NEIGHBORS), roll(4) == 0 ? 0.1 : 1.0, 1.0, *now);
#endif
        break;
    }
}

int main(int count, char **arguments)
{
    if (count != 3)
        fail("usage: fuzz FRAMES SEED");
    uint64_t frames = strtoull(arguments[1], NULL, 10);
    dice.key = mix64(strtoull(arguments[2], NULL, 10));
#ifdef DIFFUSION
    static struct running_window means = {.key = TEMP_KEY, .window = 3};
    static struct rate_limit limit = {.interval_us = SECOND_US};
    const struct filter filters[] = {{200, false, {NULL, 0, 0}, running_mean, &means},
                                     {201, true, {NULL, 0, 0}, rate_limit, &limit}};
    struct diffusion_settings settings = TINY_DIFFUSION_SETTINGS;
    settings.exploratory_gradients = 2;
    settings.filters = filters;
    settings.filter_count = roll(3);
#else
    struct flooding_settings settings = {50};
#endif
    static NODE node;
    int64_t now = 0;
    struct random own = {1, 0};
    CALL(start)(&node, &settings, ADDRESS, own, &DRIVER, now, roll(300));
    for (uint64_t i = 0; i < frames; i++) {
        give_frame(&node, now);
        if (roll(8) == 0)
            do_something_else(&node, &now);
    }
    printf("%" PRIu64 " frames, %" PRIu64 " events", frames, events);
    for (int reason = 0; reason < (int)REASONS; reason++)
        printf(", %s %" PRIu32, CALL(reason_name)(reason), CALL(drops)(&node, reason));
    printf("\n");
    return 0;
}

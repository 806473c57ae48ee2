/* Gives a node random and mutated frames, and everything else that may happen to it, for sanitizers to watch.
 *
 *     cc -DDIFFUSION -DFRAMES=100000 -DSEED=1 ... fuzz.c && ./a.out
 *
 * It ends with status 1 and a sentence if a frame is lost without an event, a node sends what no frame may be, or asks to
 * be woken again and again at once. At the end it prints how many frames it gave, how often each reason was met, and a
 * digest of all that the node sent and told: on any machine the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draws.h"

#ifdef DIFFUSION
#include "built_in.h"
#include "diffusion.h"
#include "wire.h"
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
static uint64_t digest; /* of every byte that a node hands out */

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
        digest = mix64(digest + bytes[i] + 1);
}

static void touch_number(int64_t number)
{
    digest = mix64(digest ^ (uint64_t)number);
}

static void take_frame(void *context, uint32_t destination, const struct frame *frame)
{
    (void)context;
    touch_number(destination);
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
    touch_number(event->kind);
    touch_number(event->peer);
    touch_number(event->origin);
    touch_number(event->sequence);
    touch_number(event->value);
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
        uint8_t op = are_data && roll(8) > 0 ? (uint8_t)IS : (uint8_t)(1 + roll(8)); /* some data has constraints */
        if (IS_BLOB(key))
            (void)add_blob(list, key, op, blob, (uint8_t)roll(20));
        else
            (void)add_number(list, key, op, numbers[roll(7)]);
    }
}

/* Frames */

/* Each roll is a statement of its own here: C leaves open in which order the parts of an expression are computed, and
 * every machine is to roll the same. */

static uint8_t some_origin(void)
{
    return (uint8_t)(4 + roll(6));
}

static void put(struct kept_frame *made, const uint8_t *header, size_t size, const struct attribute_list *list)
{
    memcpy(made->bytes, header, size);
    memcpy(made->bytes + size, list->bytes, list->size);
    made->size = size + list->size;
}

#ifdef DIFFUSION
static void make_interest(struct kept_frame *made, uint8_t previous_hop)
{
    struct attribute_list list;
    random_attributes(&list, false);
    struct interest interest = {.previous_hop = previous_hop, .ttl = 50, .attributes = view(&list)};
    interest.sequence = roll(4);
    interest.sink = some_origin();
    interest.round = (uint8_t)roll(3);
    interest.expiration_s = (uint16_t)roll(5);
    uint8_t header[INTEREST_BODY_AT];
    interest_encode(&interest, header);
    put(made, header, sizeof header, &list);
}

static void make_data(struct kept_frame *made, uint8_t previous_hop)
{
    struct attribute_list list;
    random_attributes(&list, true);
    struct data data = {.attributes = view(&list)};
    data.sequence = roll(256);
    data.source = some_origin();
    data.ttl = (uint16_t)(1 + roll(51));
    data.is_aggregate = roll(2) == 0;
    uint8_t header[OTHERS_AT + 5 * OTHER_B];
    uint8_t others = roll(2) == 0 ? (uint8_t)roll(6) : 0;
    for (size_t i = 0; i < others; i++) {
        header[OTHERS_AT + OTHER_B * i] = some_origin();
        header[OTHERS_AT + OTHER_B * i + 1] = 0;
    }
    size_t size = data_encode_next(&data, previous_hop, others, header);
    put(made, header, size, &list);
}
#endif

/* A frame as a neighbor might send it. */
static void make_frame(struct kept_frame *made, uint8_t previous_hop)
{
#ifdef DIFFUSION
    if (roll(2) == 0)
        make_interest(made, previous_hop);
    else
        make_data(made, previous_hop);
#else
    (void)previous_hop;
    struct attribute_list list;
    random_attributes(&list, true);
    uint8_t header[12] = {0x46, [9] = 50, [11] = list.count};
    header[1] = some_origin();
    header[5] = (uint8_t)roll(256);
    put(made, header, sizeof header, &list);
#endif
}

static void flip(struct kept_frame *frame)
{
    size_t place = roll((uint32_t)frame->size);
    frame->bytes[place] ^= (uint8_t)(1u << roll(8));
}

static void replace(struct kept_frame *frame)
{
    size_t place = roll((uint32_t)frame->size);
    frame->bytes[place] = (uint8_t)roll(256);
}

static void mutate(struct kept_frame *frame)
{
    switch (roll(5)) {
    case 0:
        if (frame->size > 0)
            flip(frame);
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
            replace(frame);
    }
}

static struct kept_frame next_frame(uint8_t previous_hop)
{
    struct kept_frame frame = corpus[roll(CORPUS)];
    if (frame.size == 0 || roll(3) == 0)
        make_frame(&frame, previous_hop);
#ifdef DIFFUSION
    else if (frame.size >= DATA_BODY_AT)
        /* What the node itself has sent comes back from a neighbor that says who it is. */
        frame.bytes[frame.bytes[0] == INTEREST_TYPE ? INTEREST_PREVIOUS_HOP_AT : DATA_PREVIOUS_HOP_AT] = previous_hop;
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
    touch_number(CALL(next_wake)(node));
}

/* Report the outcome of a frame: of one that the node may have sent, or of any other. */
static void report(NODE *node, int64_t now)
{
    struct kept_frame frame = corpus[roll(CORPUS)];
#ifdef DIFFUSION
    if (roll(2) == 0 && frame.size >= DATA_BODY_AT && frame.bytes[0] == DATA_TYPE)
        frame.bytes[DATA_PREVIOUS_HOP_AT] = ADDRESS;
#endif
    if (roll(4) == 0)
        mutate(&frame);
    uint8_t *exact = malloc(frame.size > 0 ? frame.size : 1);
    if (exact == NULL)
        fail("no memory");
    memcpy(exact, frame.bytes, frame.size);
    uint32_t destination = roll(NEIGHBORS);
    CALL(sent)(node, destination, exact, frame.size, roll(4) == 0, now);
    free(exact);
}

static void do_something_else(NODE *node, int64_t *now)
{
    static const int64_t times_us[] = {0, 1, 100000, 2 * SECOND_US, 40 * SECOND_US};
    struct attribute_list list;
    bool is_meant = roll(2) == 0;
    random_attributes(&list, is_meant);
    struct attributes attributes = view(&list);
    switch (roll(8)) {
    case 0:
        (void)CALL(publish)(node, &attributes, *now);
        break;
    case 1:
        is_meant = roll(2) == 0;
        (void)CALL(subscribe)(node, &attributes, *now, is_meant ? NEVER : 3 * SECOND_US, roll(2) == 0);
        break;
    case 2:
        CALL(unsubscribe)(node, roll(100), *now);
        break;
    case 3:
        wake_until(node, now, *now + times_us[roll(5)]);
        break;
    case 4:
    case 5:
    case 6:
        report(node, *now);
        break;
    default:
#ifdef DIFFUSION
        is_meant = roll(4) == 0;
        CALL(link_quality)(node, (uint16_t)roll(NEIGHBORS), is_meant ? 0.1 : 1.0, 1.0, *now);
#endif
        break;
    }
}

int main(void)
{
    dice.key = mix64(SEED);
#ifdef DIFFUSION
    static struct running_window means = {.key = TEMP_KEY, .window = 3};
    static struct rate_limit limit = {.interval_us = SECOND_US};
    const struct filter filters[] = {{200, false, {NULL, 0, 0}, running_mean, &means, NULL, NULL},
                                     {201, true, {NULL, 0, 0}, rate_limit, &limit, NULL, NULL}};
    struct diffusion_settings settings = TINY_DIFFUSION_SETTINGS;
    settings.exploratory_gradients = 2;
    settings.matching = roll(MATCHINGS) & 0x7Fu;
    settings.sample_lifetime_us = 3 * SECOND_US;
    settings.filters = filters;
    settings.filter_count = roll(3);
#else
    struct flooding_settings settings = {50};
#endif
    static NODE node;
    int64_t now = 0;
    struct random own = {1, 0};
    CALL(start)(&node, &settings, ADDRESS, own, &DRIVER, now, roll(300));
    for (uint64_t i = 0; i < FRAMES; i++) {
        give_frame(&node, now);
        if (roll(8) == 0)
            do_something_else(&node, &now);
    }
    printf("%llu frames, %llu events, digest %016llx", (unsigned long long)FRAMES, (unsigned long long)events,
           (unsigned long long)digest);
    for (int reason = 0; reason < (int)REASONS; reason++)
        printf(", %s %lu", CALL(reason_name)(reason), (unsigned long)CALL(drops)(&node, reason));
    printf("\n");
    return 0;
}

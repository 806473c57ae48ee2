/* The flood in plain C: an event per transmission, whose receivers are a loop over the sender's neighbors.

   The network comes as CSR arrays: the neighbors of i are neighbors[starts[i]] .. neighbors[starts[i + 1] - 1]. Who knows
   what is a byte per publication and node. Events are in a binary heap, ordered by (time, counter). The jitter is
   SplitMix64's. Returns the receptions, or -1 when memory runs out. */
#include <stdint.h>
#include <stdlib.h>

struct event {
    int64_t time_us;
    int64_t counter;
    int32_t node;
    int32_t publication;
};

struct heap {
    struct event *events;
    int64_t length;
    int64_t room;
};

static int before(const struct event *a, const struct event *b)
{
    return a->time_us < b->time_us || (a->time_us == b->time_us && a->counter < b->counter);
}

static int push(struct heap *heap, struct event event)
{
    if (heap->length == heap->room) {
        int64_t room = heap->room ? 2 * heap->room : 1024;
        struct event *events = realloc(heap->events, (size_t)room * sizeof *events);
        if (!events)
            return 0;
        heap->events = events;
        heap->room = room;
    }
    int64_t hole = heap->length++;
    while (hole > 0) {
        int64_t parent = (hole - 1) / 2;
        if (before(&heap->events[parent], &event))
            break;
        heap->events[hole] = heap->events[parent];
        hole = parent;
    }
    heap->events[hole] = event;
    return 1;
}

static struct event pop(struct heap *heap)
{
    struct event *events = heap->events, first = events[0], last = events[--heap->length];
    int64_t hole = 0, child;
    while ((child = 2 * hole + 1) < heap->length) {
        if (child + 1 < heap->length && before(&events[child + 1], &events[child]))
            child++;
        if (before(&last, &events[child]))
            break;
        events[hole] = events[child];
        hole = child;
    }
    events[hole] = last;
    return first;
}

static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t flood(int64_t nodes, const int64_t *starts, const int32_t *neighbors, int64_t floods, int64_t source,
              int64_t jitter_from_us, int64_t jitter_to_us, int64_t airtime_us)
{
    struct heap heap = {0};
    uint8_t *known = calloc((size_t)(floods * nodes), 1);
    uint64_t state = 7;
    uint64_t jitters = (uint64_t)(jitter_to_us - jitter_from_us + 1);
    int64_t receptions = 0, counter = 0, published = 0;
    int enough = known != NULL;

    while (enough && (published < floods || heap.length > 0)) {
        int64_t publish_us = published * 1000000;
        if (published < floods && (heap.length == 0 || publish_us <= heap.events[0].time_us)) {
            int64_t end_us = publish_us + jitter_from_us + (int64_t)(draw(&state) % jitters) + airtime_us;
            known[published * nodes + source] = 1;
            enough = push(&heap, (struct event){end_us, counter++, (int32_t)source, (int32_t)published++});
            continue;
        }
        struct event event = pop(&heap);
        uint8_t *knows = known + event.publication * nodes;
        for (int64_t i = starts[event.node]; i < starts[event.node + 1]; i++) {
            int32_t neighbor = neighbors[i];
            receptions++;
            if (!knows[neighbor]) {
                int64_t delay_us = jitter_from_us + (int64_t)(draw(&state) % jitters) + airtime_us;
                knows[neighbor] = 1;
                if (!push(&heap, (struct event){event.time_us + delay_us, counter++, neighbor, event.publication}))
                    enough = 0;
            }
        }
    }
    free(known);
    free(heap.events);
    return enough ? receptions : -1;
}

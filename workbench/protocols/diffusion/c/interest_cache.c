/* The interest cache: gradients and data gradients. `workbench/protocols/diffusion/interest_cache.py` defines it. */
#include "interest_cache.h"

#include <string.h>

#include "rules.h"

/* Gradients */

int gradient_place(const struct interest_entry *entry, uint16_t sink, uint16_t neighbor)
{
    for (int i = 0; i < entry->gradient_count; i++)
        if (entry->gradients[i].sink == sink && entry->gradients[i].neighbor == neighbor)
            return i;
    return NO_PLACE;
}

bool has_sink(const struct interest_entry *entry, uint16_t sink)
{
    return head_place(entry, sink) != NO_PLACE;
}

int gradient_to_replace(const struct interest_entry *entry, uint16_t sink, bool is_reinforced)
{
    if (!is_reinforced && has_sink(entry, sink))
        return NO_PLACE;
    for (int i = entry->gradient_count - 1; i >= 0; i--)
        if (entry->gradients[i].sink == sink || head_place(entry, entry->gradients[i].sink) < i)
            return i;
    /* If the list left out a reinforced gradient, the reinforced path would end here or turn back on itself. */
    return is_reinforced ? entry->gradient_count - 1 : NO_PLACE;
}

struct gradient *append_gradient(struct interest_entry *entry, uint16_t sink, uint16_t neighbor, int64_t expires_us)
{
    struct gradient *gradient = &entry->gradients[entry->gradient_count++];
    *gradient = (struct gradient){.sink = sink, .neighbor = neighbor, .expires_us = expires_us};
    return gradient;
}

void remove_gradient(struct interest_entry *entry, size_t place)
{
    entry->gradient_count--;
    memmove(&entry->gradients[place], &entry->gradients[place + 1],
            (size_t)(entry->gradient_count - place) * sizeof entry->gradients[0]);
}

void reinforce_gradient(struct interest_entry *entry, size_t place, uint32_t reinforced_by)
{
    struct gradient head = entry->gradients[place];
    for (size_t i = 0; i < entry->gradient_count; i++)
        if (entry->gradients[i].sink == head.sink)
            entry->gradients[i].is_reinforced = false;
    memmove(&entry->gradients[1], &entry->gradients[0], place * sizeof entry->gradients[0]);
    head.reinforced_by = reinforced_by;
    head.is_reinforced = true;
    entry->gradients[0] = head;
}

bool is_path_of_round(const struct gradient *gradient, uint32_t sequence, uint8_t round)
{
    return gradient->is_reinforced && gradient->reinforced_by > sequence && gradient->round == round;
}

int64_t newest_reinforcement(const struct interest_entry *entry, uint16_t sink)
{
    int64_t newest = NOBODY;
    for (size_t i = 0; i < entry->gradient_count; i++) {
        const struct gradient *one = &entry->gradients[i];
        if (one->sink == sink && one->is_reinforced && one->reinforced_by > newest)
            newest = one->reinforced_by;
    }
    return newest;
}

bool has_newer_round(const struct interest_entry *entry, uint16_t sink, uint8_t round)
{
    for (size_t i = 0; i < entry->gradient_count; i++) {
        const struct gradient *one = &entry->gradients[i];
        if (one->sink == sink && one->has_sequence && is_older_round(round, one->round))
            return true;
    }
    return false;
}

/* Heads */

uint32_t gradient_number(const struct gradient *gradient)
{
    return gradient->has_sequence ? gradient->sequence : 0;
}

int head_place(const struct interest_entry *entry, uint16_t sink)
{
    for (int i = 0; i < entry->gradient_count; i++)
        if (entry->gradients[i].sink == sink)
            return i;
    return NO_PLACE;
}

struct head head_of(const struct interest_entry *entry, uint16_t sink)
{
    int place = head_place(entry, sink);
    if (place == NO_PLACE)
        return (struct head){0};
    const struct gradient *gradient = &entry->gradients[place];
    return (struct head){true, gradient->is_reinforced, gradient->neighbor, gradient_number(gradient)};
}

void note_heads(struct interest_entry *entry)
{
    for (int i = 0; i < entry->gradient_count; i++)
        entry->gradients[i].was_head = head_place(entry, entry->gradients[i].sink) == i;
}

/* Data gradients */

static struct data_gradient *data_gradient_of(struct data_gradients *data_gradients, uint16_t source)
{
    for (size_t i = 0; i < data_gradients->count; i++)
        if (data_gradients->list[i].source == source)
            return &data_gradients->list[i];
    return NULL;
}

/* Add a data gradient for a new source, which replaces the oldest in a full list. */
static struct data_gradient *new_data_gradient(struct data_gradients *data_gradients, uint16_t source)
{
    if (data_gradients->count >= MAX_REINFORCEMENTS) {
        data_gradients->count--;
        memmove(&data_gradients->list[0], &data_gradients->list[1],
                data_gradients->count * sizeof data_gradients->list[0]);
    }
    struct data_gradient *made = &data_gradients->list[data_gradients->count++];
    made->source = source;
    made->messages = 0;
    made->sink_count = 0;
    return made;
}

struct data_gradient *update_data_gradient(struct data_gradients *data_gradients, uint16_t source, uint16_t neighbor,
                                           struct attributes attributes, bool *changed)
{
    struct data_gradient *one = data_gradient_of(data_gradients, source);
    *changed = one == NULL || one->neighbor != neighbor;
    if (one == NULL)
        one = new_data_gradient(data_gradients, source);
    one->neighbor = neighbor;
    keep(&one->attributes, attributes);
    if (one->messages < UINT16_MAX)
        one->messages++;
    return one;
}

bool is_reinforced_for(const struct data_gradient *data_gradient, uint16_t sink)
{
    for (size_t i = 0; i < data_gradient->sink_count; i++)
        if (data_gradient->sinks[i] == sink)
            return true;
    return false;
}

static void forget_sink(struct data_gradient *data_gradient, uint16_t sink)
{
    uint8_t kept = 0;
    for (size_t i = 0; i < data_gradient->sink_count; i++)
        if (data_gradient->sinks[i] != sink)
            data_gradient->sinks[kept++] = data_gradient->sinks[i];
    data_gradient->sink_count = kept;
}

void forget_reinforcements(struct data_gradients *data_gradients, uint16_t sink)
{
    for (size_t i = 0; i < data_gradients->count; i++)
        forget_sink(&data_gradients->list[i], sink);
}

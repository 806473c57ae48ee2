/* How often a source sends readings to each sink. `workbench/protocols/diffusion/pacing.py` defines it. */
#include "bytes.h"
#include "node.h"

#include <string.h>

#include "rules.h"

enum { INTERVAL_UNIT_US = SECOND_US / 10 };

static void remove_pace(struct diffusion *node, size_t place)
{
    node->pace_count--;
    memmove(&node->paces[place], &node->paces[place + 1],
            (size_t)(node->pace_count - place) * sizeof node->paces[0]);
}

static struct pace *pace_of(struct diffusion *node, uint8_t entry, uint16_t sink)
{
    for (size_t i = 0; i < node->pace_count; i++)
        if (node->paces[i].entry == entry && node->paces[i].sink == sink)
            return &node->paces[i];
    return NULL;
}

void set_pace(struct diffusion *node, const struct interest_entry *entry, const struct interest *interest)
{
    uint8_t place = (uint8_t)(entry - node->entries);
    uint16_t interval = interval_of(interest->attributes);
    struct pace *pace = pace_of(node, place, interest->sink);
    if (pace == NULL) {
        if (interval == 0)
            return;
        if (node->pace_count >= MAX_INTERESTS)
            remove_pace(node, 0);
        pace = &node->paces[node->pace_count++];
        *pace = (struct pace){.sink = interest->sink, .entry = place};
    }
    pace->interval = interval;
}

void forget_paces(struct diffusion *node, uint8_t entry)
{
    for (size_t i = 0; i < node->pace_count;) {
        if (node->paces[i].entry == entry)
            remove_pace(node, i);
        else
            i++;
    }
}

/* Return whether a reading goes to a sink of an entry, and note that it does. */
static bool take_turn(struct diffusion *node, uint8_t entry, uint16_t sink, int64_t published_us)
{
    struct pace *pace = pace_of(node, entry, sink);
    if (pace == NULL)
        return true;
    if (!is_due(published_us, pace->has_last, kept_time(pace->last_us), (int64_t)pace->interval * INTERVAL_UNIT_US))
        return false;
    keep_time(pace->last_us, published_us);
    pace->has_last = true;
    return true;
}

static void mark_early(const struct diffusion *node, struct sample *sample, uint16_t sink)
{
    for (size_t i = 0; i < node->pace_count; i++) {
        if (node->paces[i].sink == sink) {
            sample->early[i / 8] |= (uint8_t)(1u << i % 8);
            return;
        }
    }
}

/* Return whether the sample is due for another interest of the sink. */
static bool is_due_for(struct diffusion *node, uint16_t sink)
{
    for (size_t i = 0; i < node->entry_count; i++) {
        const struct interest_entry *entry = entry_at(node, i);
        for (size_t j = 0; j < entry->gradient_count; j++)
            if (entry->gradients[j].sink == sink && entry->gradients[j].is_due)
                return true;
    }
    return false;
}

/* Find the sinks for which it is too early to send a sample; return whether it is due for another sink. */
bool find_early(struct diffusion *node, struct sample *sample)
{
    int64_t published_us = kept_time(sample->ends_us) - node->settings->sample_lifetime_us;
    bool is_due_now = false;
    memset(sample->early, 0, sizeof sample->early);
    for (size_t i = 0; i < node->entry_count; i++) {
        struct interest_entry *entry = entry_at(node, i);
        bool matches = is_match(node, view(&entry->attributes), view(&sample->attributes));
        for (int j = 0; j < entry->gradient_count; j++) {
            struct gradient *gradient = &entry->gradients[j];
            gradient->is_due = false;
            if (!matches || head_place(entry, gradient->sink) != j)
                continue;
            gradient->is_due = take_turn(node, node->entry_order[i], gradient->sink, published_us);
            if (!gradient->is_due)
                mark_early(node, sample, gradient->sink);
            is_due_now = is_due_now || gradient->is_due;
        }
    }
    for (size_t i = 0; i < node->pace_count; i++)
        if (is_due_for(node, node->paces[i].sink))
            sample->early[i / 8] &= (uint8_t) ~(1u << i % 8);
    return is_due_now;
}

/* Write the sinks for which it is too early, in ascending order, as a message lists them; return their number. */
uint8_t early_sinks(const struct diffusion *node, const struct sample *sample, uint8_t sinks[MAX_INTERESTS * OTHER_B])
{
    uint8_t count = 0;
    int32_t above = NOBODY;
    for (;;) {
        int32_t lowest = UINT16_MAX + 1;
        for (size_t i = 0; i < node->pace_count; i++) {
            int32_t sink = node->paces[i].sink;
            if ((sample->early[i / 8] >> i % 8 & 1) != 0 && sink > above && sink < lowest)
                lowest = sink;
        }
        if (lowest > UINT16_MAX)
            return count;
        put_u16(sinks + OTHER_B * count++, (uint16_t)lowest);
        above = lowest;
    }
}

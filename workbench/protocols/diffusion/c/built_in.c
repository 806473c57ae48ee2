/* The built-in filters for motes. `workbench/protocols/diffusion/filters/built_in.py` defines them. */
#include "built_in.h"

/* Readings */

/* Read the first IS value of a key; return false if it is missing. */
static bool value_of(struct attributes attributes, uint8_t key, int16_t *value)
{
    const uint8_t *next = attributes.bytes;
    for (size_t i = 0; i < attributes.count; i++) {
        struct attribute one = next_attribute(&next);
        if (one.key == key && one.op == IS) {
            *value = one.number;
            return true;
        }
    }
    return false;
}

/* Replace the first IS value of a key in the attributes. */
static enum filter_answer replace_value(const struct filtered *message, uint8_t key, int16_t value)
{
    const uint8_t *next = message->attributes.bytes;
    bool is_replaced = false;
    for (size_t i = 0; i < message->attributes.count; i++) {
        const uint8_t *at = next;
        struct attribute one = next_attribute(&next);
        if (one.key == key && one.op == IS && !is_replaced) {
            (void)add_number(message->answer, key, IS, value);
            is_replaced = true;
        } else {
            (void)add_all(message->answer, (struct attributes){at, (size_t)(next - at), 1});
        }
    }
    return FILTER_REPLACE;
}

/* Return the mean, rounded to the nearest (half up), with integers only: equal on every machine. */
static int16_t mean(int32_t sum, int32_t count)
{
    int32_t twice = 2 * sum + count;
    int32_t quotient = twice / (2 * count);
    if (twice % (2 * count) < 0)
        quotient--;
    return (int16_t)quotient;
}

/* Sources */

static struct source *source_of(struct sources *sources, uint16_t origin)
{
    for (size_t i = 0; i < sources->count; i++)
        if (sources->list[i].origin == origin)
            return &sources->list[i];
    return NULL;
}

/* Return the memory of a source; a new one replaces the oldest in a full list. */
static struct source *noted_source(struct sources *sources, uint16_t origin)
{
    struct source *one = source_of(sources, origin);
    if (one != NULL)
        return one;
    uint8_t place = sources->oldest;
    if (sources->count < MAX_FILTER_SOURCES)
        place = sources->count++;
    else
        sources->oldest = (uint8_t)((place + 1) % MAX_FILTER_SOURCES);
    sources->list[place] = (struct source){.origin = origin};
    return &sources->list[place];
}

/* Filters */

enum filter_answer suppress_unchanged(void *state, const struct filtered *message)
{
    struct suppress_unchanged *filter = state;
    int16_t value;
    if (!value_of(message->attributes, filter->key, &value))
        return FILTER_PASS;
    const struct source *last = source_of(&filter->sources, message->origin);
    if (last != NULL && message->now - last->passed_us < filter->heartbeat_us) {
        int32_t change = value > last->value ? value - last->value : last->value - value;
        if (change <= filter->tolerance)
            return FILTER_DROP;
    }
    struct source *noted = noted_source(&filter->sources, message->origin);
    noted->value = value;
    noted->passed_us = message->now;
    return FILTER_PASS;
}

enum filter_answer rate_limit(void *state, const struct filtered *message)
{
    struct rate_limit *filter = state;
    const struct source *last = source_of(&filter->sources, message->origin);
    if (last != NULL && message->now - last->passed_us < filter->interval_us)
        return FILTER_DROP;
    noted_source(&filter->sources, message->origin)->passed_us = message->now;
    return FILTER_PASS;
}

enum filter_answer threshold_alarm(void *state, const struct filtered *message)
{
    struct threshold_alarm *filter = state;
    int16_t value;
    if (!value_of(message->attributes, filter->key, &value))
        return FILTER_PASS;
    const struct source *known = source_of(&filter->sources, message->origin);
    bool is_alarmed = known != NULL && known->is_alarmed;
    bool has_changed = is_alarmed ? value < filter->low : value > filter->high;
    if (!has_changed)
        return FILTER_DROP;
    noted_source(&filter->sources, message->origin)->is_alarmed = !is_alarmed;
    return FILTER_PASS;
}

/* Return the mean of the sources' values, and forget them. */
static int16_t take_average(struct sources *sources)
{
    int32_t sum = 0;
    for (size_t i = 0; i < sources->count; i++)
        sum += sources->list[i].value;
    int16_t average = mean(sum, sources->count);
    sources->count = 0;
    sources->oldest = 0;
    return average;
}

enum filter_answer neighborhood_average(void *state, const struct filtered *message)
{
    struct neighborhood_average *filter = state;
    struct sources *sources = &filter->sources;
    int16_t value;
    if (!value_of(message->attributes, filter->key, &value))
        return FILTER_PASS;
    if (!filter->has_begun)
        filter->next_us = message->now + filter->period_us;
    filter->has_begun = true;
    noted_source(sources, message->origin)->value = value;
    if (filter->flush) {
        if (!filter->is_collecting)
            filter->emission.due_us = message->now + filter->period_us;
        filter->is_collecting = true;
        keep(&filter->last, message->attributes);
        return FILTER_DROP;
    }
    if (message->now < filter->next_us)
        return FILTER_DROP;
    filter->next_us = message->now + filter->period_us;
    return replace_value(message, filter->key, take_average(sources));
}

void emit_average(void *state, struct attribute_list *answer)
{
    struct neighborhood_average *filter = state;
    struct filtered last = {view(&filter->last), answer, 0, 0};
    filter->is_collecting = false;
    filter->emission.due_us = INT64_MAX;
    if (replace_value(&last, filter->key, take_average(&filter->sources)) == FILTER_PASS)
        *answer = filter->last;
}

/* Running windows */

static struct window *window_of(struct running_window *filter, uint16_t origin)
{
    for (size_t i = 0; i < filter->count; i++)
        if (filter->list[i].origin == origin)
            return &filter->list[i];
    uint8_t place = filter->oldest;
    if (filter->count < MAX_FILTER_SOURCES)
        place = filter->count++;
    else
        filter->oldest = (uint8_t)((place + 1) % MAX_FILTER_SOURCES);
    filter->list[place] = (struct window){.origin = origin};
    return &filter->list[place];
}

static void append_value(struct window *window, uint8_t size, int16_t value)
{
    if (size == 0)
        size = 1; /* the smallest size in Python */
    if (window->count >= size || window->count >= MAX_FILTER_WINDOW) {
        window->count--;
        for (size_t i = 0; i < window->count; i++)
            window->values[i] = window->values[i + 1];
    }
    window->values[window->count++] = value;
}

/* Note a reading and return its source's window; NULL if the reading lacks the key. */
static const struct window *noted_window(struct running_window *filter, const struct filtered *message)
{
    int16_t value;
    if (!value_of(message->attributes, filter->key, &value))
        return NULL;
    struct window *window = window_of(filter, message->origin);
    append_value(window, filter->window, value);
    return window;
}

enum filter_answer running_mean(void *state, const struct filtered *message)
{
    struct running_window *filter = state;
    const struct window *window = noted_window(filter, message);
    if (window == NULL)
        return FILTER_PASS;
    int32_t sum = 0;
    for (size_t i = 0; i < window->count; i++)
        sum += window->values[i];
    return replace_value(message, filter->key, mean(sum, window->count));
}

/* Replace the value by the window's lowest, or by its highest. */
static enum filter_answer replace_by_extreme(struct running_window *filter, const struct filtered *message,
                                             bool is_lowest)
{
    const struct window *window = noted_window(filter, message);
    if (window == NULL)
        return FILTER_PASS;
    int16_t extreme = window->values[0];
    for (size_t i = 1; i < window->count; i++)
        if (is_lowest ? window->values[i] < extreme : window->values[i] > extreme)
            extreme = window->values[i];
    return replace_value(message, filter->key, extreme);
}

enum filter_answer running_minimum(void *state, const struct filtered *message)
{
    return replace_by_extreme(state, message, true);
}

enum filter_answer running_maximum(void *state, const struct filtered *message)
{
    return replace_by_extreme(state, message, false);
}

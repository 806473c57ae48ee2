/* The filters that are compiled into the program of a mote, and the parsers of their settings.
 * `workbench/protocols/diffusion/filters/value.py` writes these. */
#include "filters.h"

#include "json.h"

/* The longest time that a node can add without overflow. */
#define LONGEST_US (INT64_MAX / 8)

static bool read_key(const char *settings, uint8_t *key)
{
    uint64_t number;
    bool is_read = json_integer(settings, "key", UINT8_MAX, &number);
    if (is_read)
        *key = (uint8_t)number;
    return is_read;
}

static bool read_us(const char *settings, const char *name, int64_t *time_us)
{
    uint64_t number;
    bool is_read = json_integer(settings, name, LONGEST_US, &number);
    if (is_read)
        *time_us = (int64_t)number;
    return is_read;
}

static bool read_suppress_unchanged(const char *settings, union filter_state *state)
{
    struct suppress_unchanged *filter = &state->suppress_unchanged;
    return read_key(settings, &filter->key) && json_number(settings, "tolerance", &filter->tolerance) &&
           read_us(settings, "heartbeat_us", &filter->heartbeat_us);
}

static bool read_running_window(const char *settings, union filter_state *state)
{
    struct running_window *filter = &state->running_window;
    uint64_t window;
    if (!read_key(settings, &filter->key) || !json_integer(settings, "window", MAX_FILTER_WINDOW, &window))
        return false;
    filter->window = (uint8_t)window;
    return true;
}

static bool read_neighborhood_average(const char *settings, union filter_state *state)
{
    struct neighborhood_average *filter = &state->neighborhood_average;
    filter->flush = json_begins_with(json_member(settings, "flush"), "true");
    filter->emission.due_us = INT64_MAX;
    return read_key(settings, &filter->key) && read_us(settings, "period_us", &filter->period_us);
}

static bool read_rate_limit(const char *settings, union filter_state *state)
{
    return read_us(settings, "interval_us", &state->rate_limit.interval_us);
}

static bool read_threshold_alarm(const char *settings, union filter_state *state)
{
    struct threshold_alarm *filter = &state->threshold_alarm;
    return read_key(settings, &filter->key) && json_number(settings, "high", &filter->high) &&
           json_number(settings, "low", &filter->low);
}

const struct filter_kind FILTER_KINDS[] = {
    {"suppress_unchanged", suppress_unchanged, read_suppress_unchanged, NULL},
    {"running_mean", running_mean, read_running_window, NULL},
    {"running_minimum", running_minimum, read_running_window, NULL},
    {"running_maximum", running_maximum, read_running_window, NULL},
    {"neighborhood_average", neighborhood_average, read_neighborhood_average, emit_average},
    {"rate_limit", rate_limit, read_rate_limit, NULL},
    {"threshold_alarm", threshold_alarm, read_threshold_alarm, NULL},
};
const size_t FILTER_KIND_COUNT = sizeof FILTER_KINDS / sizeof FILTER_KINDS[0];

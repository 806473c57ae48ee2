/* The settings of a node, as a host sends them. `workbench/protocols/diffusion/__init__.py` defines them. */
#include "settings.h"

#include "json.h"
#include "node_calls.h"

struct size {
    const char *name;
    uint32_t value;
};

static const struct size SIZES[] = {
    {"max_interests", MAX_INTERESTS},
    {"max_gradients", MAX_GRADIENTS},
    {"max_reinforcements", MAX_REINFORCEMENTS},
    {"max_attributes", MAX_ATTRIBUTES},
    {"max_data", MAX_DATA},
    {"max_sinks", MAX_SINKS},
    {"max_next_hops", MAX_NEXT_HOPS},
    {"max_subscriptions", MAX_SUBSCRIPTIONS},
    {"max_black", MAX_BLACK},
    {"max_seen_interests", MAX_SEEN_INTERESTS},
};

/* Return the first size that this program was not compiled for, or NULL. */
static const struct size *other_size(const char *settings)
{
    static const struct size profile = {MESSAGE_B == 29 ? "profile='strict'" : "profile='wide'", 0};
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        uint64_t wanted;
        if (!json_integer(settings, SIZES[i].name, UINT64_MAX, &wanted) || wanted != SIZES[i].value)
            return &SIZES[i];
    }
    bool is_right = json_begins_with(json_member(settings, "profile"), MESSAGE_B == 29 ? "\"strict\"" : "\"wide\"");
    return is_right ? NULL : &profile;
}

/* Whole numbers with their maximum; then other numbers with their minimum and maximum. */
enum { TTL, MAX_REPEATS, REINFORCE_AFTER, EXPLORATORY_GRADIENTS, INTEGERS };
static const struct size INTEGER_NAMES[INTEGERS] = {
    [TTL] = {"ttl", UINT8_MAX},
    [MAX_REPEATS] = {"max_repeats", UINT8_MAX},
    [REINFORCE_AFTER] = {"reinforce_after", UINT16_MAX},
    [EXPLORATORY_GRADIENTS] = {"exploratory_gradients", UINT8_MAX},
};

enum { REFRESH_S, LIFETIME_S, TICK_S, SAMPLE_LIFETIME_S, TIMES, LOSS = TIMES, HYSTERESIS, NUMBERS };
static const char *const NUMBER_NAMES[NUMBERS] = {
    [REFRESH_S] = "refresh_s", [LIFETIME_S] = "gradient_lifetime_s",
    [TICK_S] = "tick_s",       [SAMPLE_LIFETIME_S] = "sample_lifetime_s",
    [LOSS] = "blacklist_loss", [HYSTERESIS] = "blacklist_hysteresis",
};

static const char *const MATCHING_NAMES[MATCHINGS] = {
    [MATCHING_ANY] = "\"any\"",
    [MATCHING_STRICT] = "\"strict\"",
    [MATCHING_TWO_WAY] = "\"two-way\"",
};

/* Convert seconds to whole microseconds, rounded towards zero as in Python. */
static int64_t microseconds(double seconds)
{
    return (int64_t)(seconds * SECOND_US);
}

struct refusal settings_read(const char *text, struct diffusion_settings *settings)
{
    uint64_t integers[INTEGERS];
    double numbers[NUMBERS];
    const struct size *other = other_size(text);
    if (other != NULL)
        return (struct refusal){COMPILED_WITH, other->name, other->value};
    for (size_t i = 0; i < INTEGERS; i++)
        if (!json_integer(text, INTEGER_NAMES[i].name, INTEGER_NAMES[i].value, &integers[i]))
            return (struct refusal){CANNOT_HAVE, INTEGER_NAMES[i].name, 0};
    for (size_t i = 0; i < NUMBERS; i++) {
        bool is_read = json_number(text, NUMBER_NAMES[i], &numbers[i]);
        double least = i == LIFETIME_S ? 1 : 0;
        if (!is_read || (i < TIMES && !(numbers[i] >= least && numbers[i] <= UINT16_MAX)))
            return (struct refusal){CANNOT_HAVE, NUMBER_NAMES[i], 0};
    }
    const char *matching = json_member(text, "matching");
    settings->matching = 0;
    while (settings->matching < MATCHINGS && !json_begins_with(matching, MATCHING_NAMES[settings->matching]))
        settings->matching++;
    if (settings->matching == MATCHINGS)
        return (struct refusal){CANNOT_HAVE, "matching", 0};
    const char *merge_interests = json_member(text, "merge_interests");
    settings->merge_interests = json_begins_with(merge_interests, "true");
    if (!settings->merge_interests && !json_begins_with(merge_interests, "false"))
        return (struct refusal){CANNOT_HAVE, "merge_interests", 0};
    double refresh_s = numbers[REFRESH_S];
    settings->ttl = (uint8_t)integers[TTL];
    settings->max_repeats = (uint8_t)integers[MAX_REPEATS];
    settings->reinforce_after = (uint16_t)integers[REINFORCE_AFTER];
    settings->exploratory_gradients = (uint8_t)integers[EXPLORATORY_GRADIENTS];
    settings->lifetime_s = refresh_s > 0 ? (uint16_t)numbers[LIFETIME_S] : UINT16_MAX;
    settings->refresh_us = microseconds(refresh_s);
    settings->known_for_us = microseconds(refresh_s > 0 ? 2 * refresh_s : numbers[LIFETIME_S]);
    settings->tick_us = microseconds(numbers[TICK_S]);
    settings->sample_lifetime_us = microseconds(numbers[SAMPLE_LIFETIME_S]);
    settings->blacklist_loss = numbers[LOSS];
    settings->blacklist_hysteresis = numbers[HYSTERESIS];
    return (struct refusal){NULL, NULL, 0};
}

/* The settings of a node, as a host says them. `workbench/protocols/diffusion/__init__.py` defines them. */
#include "settings.h"

#include "json.h"

struct size {
    const char *name;
    uint64_t value;
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

/* NULL, or the name of a size that is not the one that this program was compiled for. */
static const char *other_size(const char *settings)
{
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        uint64_t wanted;
        if (!json_integer(settings, SIZES[i].name, UINT64_MAX, &wanted) || wanted != SIZES[i].value)
            return SIZES[i].name;
    }
    if (!json_begins_with(json_member(settings, "profile"), MESSAGE_B == 29 ? "\"strict\"" : "\"wide\""))
        return "profile";
    return NULL;
}

static const char *read_integers(const char *text, struct diffusion_settings *settings)
{
    uint64_t number;
    if (!json_integer(text, "ttl", UINT8_MAX, &number))
        return "ttl";
    settings->ttl = (uint8_t)number;
    if (!json_integer(text, "max_repeats", UINT8_MAX, &number))
        return "max_repeats";
    settings->max_repeats = (uint8_t)number;
    if (!json_integer(text, "reinforce_after", UINT16_MAX, &number))
        return "reinforce_after";
    settings->reinforce_after = (uint16_t)number;
    if (!json_integer(text, "exploratory_gradients", UINT8_MAX, &number))
        return "exploratory_gradients";
    settings->exploratory_gradients = (uint8_t)number;
    return NULL;
}

/* Seconds as whole microseconds, cut as Python cuts them. */
static int64_t microseconds(double seconds)
{
    return (int64_t)(seconds * SECOND_US);
}

static const char *read_times(const char *text, struct diffusion_settings *settings)
{
    double refresh_s;
    double lifetime_s;
    double tick_s;
    double sample_lifetime_s;
    if (!json_number(text, "refresh_s", &refresh_s) || !(refresh_s >= 0 && refresh_s <= UINT16_MAX))
        return "refresh_s";
    if (!json_number(text, "gradient_lifetime_s", &lifetime_s) || !(lifetime_s >= 1 && lifetime_s <= UINT16_MAX))
        return "gradient_lifetime_s";
    if (!json_number(text, "tick_s", &tick_s) || !(tick_s >= 0 && tick_s <= UINT16_MAX))
        return "tick_s";
    if (!json_number(text, "sample_lifetime_s", &sample_lifetime_s) ||
        !(sample_lifetime_s >= 0 && sample_lifetime_s <= UINT16_MAX))
        return "sample_lifetime_s";
    settings->lifetime_s = refresh_s > 0 ? (uint16_t)lifetime_s : UINT16_MAX;
    settings->refresh_us = microseconds(refresh_s);
    settings->known_for_us = microseconds(refresh_s > 0 ? 2 * refresh_s : lifetime_s);
    settings->tick_us = microseconds(tick_s);
    settings->sample_lifetime_us = microseconds(sample_lifetime_s);
    return NULL;
}

const char *settings_read(const char *text, struct diffusion_settings *settings)
{
    const char *wrong = other_size(text);
    if (wrong == NULL)
        wrong = read_integers(text, settings);
    if (wrong == NULL)
        wrong = read_times(text, settings);
    if (wrong != NULL)
        return wrong;
    if (!json_number(text, "blacklist_loss", &settings->blacklist_loss))
        return "blacklist_loss";
    return json_number(text, "blacklist_hysteresis", &settings->blacklist_hysteresis) ? NULL : "blacklist_hysteresis";
}

/* What a host makes of a mote: a part of JSON that is read where it stands, without memory of its own. */
#include "configuration.h"

#if __STDC_HOSTED__
#include <stdlib.h>
#endif
#include <string.h>

#include "rules.h"

static const char NODE[] = "\"workbench.protocols.diffusion.node:DiffusionNode\"";

/* JSON */

/* Behind a string that begins here; at the end of the text if it does not end. */
static const char *skip_string(const char *at)
{
    for (at++; *at != '\0' && *at != '"'; at++)
        if (*at == '\\' && at[1] != '\0')
            at++;
    return *at == '"' ? at + 1 : at;
}

/* Behind a value that begins here. */
static const char *skip_value(const char *at)
{
    int depth = 0;
    while (*at != '\0') {
        if (*at == '"') {
            at = skip_string(at);
            continue;
        }
        if (depth == 0 && (*at == ',' || *at == '}' || *at == ']'))
            return at;
        depth += *at == '{' || *at == '[';
        depth -= *at == '}' || *at == ']';
        at++;
    }
    return at;
}

/* The value of a member of the object that begins here; NULL if there is none. */
static const char *member(const char *at, const char *name)
{
    size_t length = strlen(name);
    if (at == NULL || *at != '{')
        return NULL;
    while (*at == '{' || *at == ',') {
        at++;
        if (*at != '"')
            return NULL;
        const char *key = at + 1;
        at = skip_string(at);
        if (*at != ':')
            return NULL;
        if ((size_t)(at - key) == length + 1 && strncmp(key, name, length) == 0)
            return at + 1;
        at = skip_value(at + 1);
    }
    return NULL;
}

static bool begins_with(const char *at, const char *text)
{
    return at != NULL && strncmp(at, text, strlen(text)) == 0;
}

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

#if __STDC_HOSTED__
static bool read_decimal(const char *at, double *number)
{
    char *end;
    *number = strtod(at, &end);
    return end != at;
}
#else
enum { MOST_TENS = 22, MOST_EXPONENT = 99 };
/* Up to here one more digit leaves a whole number that a double holds. */
static const uint64_t MOST_BEFORE_A_DIGIT = 100000000000000;

static int read_exponent(const char *at)
{
    bool is_negative = at[1] == '-';
    int exponent = 0;
    for (at += at[1] == '-' || at[1] == '+' ? 2 : 1; is_digit(*at) && exponent <= MOST_EXPONENT; at++)
        exponent = 10 * exponent + (*at - '0');
    return is_negative ? -exponent : exponent;
}

/* A small board has no strtod, which would need a heap. Fifteen digits and a power of ten that is exact are rounded
 * once, so that the number is the one that Python reads; others are refused. */
static bool read_decimal(const char *at, double *number)
{
    uint64_t digits = 0;
    int exponent = 0;
    bool is_behind_point = false;
    if (!is_digit(*at))
        return false;
    for (; is_digit(*at) || (*at == '.' && !is_behind_point); at++) {
        if (*at == '.') {
            is_behind_point = true;
            continue;
        }
        if (digits >= MOST_BEFORE_A_DIGIT)
            return false;
        digits = 10 * digits + (uint64_t)(*at - '0');
        exponent -= is_behind_point;
    }
    if (*at == 'e')
        exponent += read_exponent(at);
    if (exponent > MOST_TENS || exponent < -MOST_TENS)
        return false;
    double tens = 1;
    for (int i = exponent < 0 ? -exponent : exponent; i > 0; i--)
        tens *= 10;
    *number = exponent < 0 ? (double)digits / tens : (double)digits * tens;
    return true;
}
#endif

static bool read_number(const char *object, const char *name, double *number)
{
    const char *at = member(object, name);
    return at != NULL && read_decimal(at, number);
}

static bool read_integer(const char *object, const char *name, uint64_t most, uint64_t *number)
{
    const char *at = member(object, name);
    if (at == NULL || !is_digit(*at))
        return false;
    for (*number = 0; is_digit(*at); at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (*number > (UINT64_MAX - digit) / 10)
            return false;
        *number = 10 * *number + digit;
    }
    return *number <= most;
}

/* Settings */

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
        if (!read_integer(settings, SIZES[i].name, UINT64_MAX, &wanted) || wanted != SIZES[i].value)
            return SIZES[i].name;
    }
    if (!begins_with(member(settings, "profile"), MESSAGE_B == 29 ? "\"strict\"" : "\"wide\""))
        return "profile";
    return NULL;
}

static const char *read_integers(const char *text, struct diffusion_settings *settings)
{
    uint64_t number;
    if (!read_integer(text, "ttl", UINT8_MAX, &number))
        return "ttl";
    settings->ttl = (uint8_t)number;
    if (!read_integer(text, "max_repeats", UINT8_MAX, &number))
        return "max_repeats";
    settings->max_repeats = (uint8_t)number;
    if (!read_integer(text, "reinforce_after", UINT16_MAX, &number))
        return "reinforce_after";
    settings->reinforce_after = (uint16_t)number;
    if (!read_integer(text, "exploratory_gradients", UINT8_MAX, &number))
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
    if (!read_number(text, "refresh_s", &refresh_s) || !(refresh_s >= 0 && refresh_s <= UINT16_MAX))
        return "refresh_s";
    if (!read_number(text, "gradient_lifetime_s", &lifetime_s) || !(lifetime_s >= 1 && lifetime_s <= UINT16_MAX))
        return "gradient_lifetime_s";
    if (!read_number(text, "tick_s", &tick_s) || !(tick_s >= 0 && tick_s <= UINT16_MAX))
        return "tick_s";
    if (!read_number(text, "sample_lifetime_s", &sample_lifetime_s) ||
        !(sample_lifetime_s >= 0 && sample_lifetime_s <= UINT16_MAX))
        return "sample_lifetime_s";
    settings->lifetime_s = refresh_s > 0 ? (uint16_t)lifetime_s : UINT16_MAX;
    settings->refresh_us = microseconds(refresh_s);
    settings->known_for_us = microseconds(refresh_s > 0 ? 2 * refresh_s : lifetime_s);
    settings->tick_us = microseconds(tick_s);
    settings->sample_lifetime_us = microseconds(sample_lifetime_s);
    return NULL;
}

static const char *read_settings(const char *text, struct diffusion_settings *settings)
{
    const char *wrong = other_size(text);
    if (wrong == NULL)
        wrong = read_integers(text, settings);
    if (wrong == NULL)
        wrong = read_times(text, settings);
    if (wrong != NULL)
        return wrong;
    if (!read_number(text, "blacklist_loss", &settings->blacklist_loss))
        return "blacklist_loss";
    if (!read_number(text, "blacklist_hysteresis", &settings->blacklist_hysteresis))
        return "blacklist_hysteresis";
    return begins_with(member(text, "filters"), "[]") ? NULL : "filters";
}

const char *configuration_read(const char *text, struct configuration *configuration)
{
    uint64_t number;
    *configuration = (struct configuration){0};
    if (!begins_with(member(text, "node"), NODE))
        return "node";
    if (!read_integer(text, "address", UINT16_MAX - 1, &number))
        return "address";
    configuration->address = (uint32_t)number;
    if (!read_integer(text, "key", UINT64_MAX, &configuration->key))
        return "key";
    for (const char *at = member(text, "keys"); at != NULL && *at != '\0'; at++)
        if (begins_with(at, "\"blob\""))
            return "keys";
    if (member(text, "sensor") != NULL && !begins_with(member(text, "sensor"), "null"))
        return "sensor";
    configuration->has_boot = read_integer(text, "boot", UINT32_MAX, &number);
    if (configuration->has_boot)
        configuration->boot = (unsigned)number;
    return read_settings(member(text, "settings"), &configuration->settings);
}

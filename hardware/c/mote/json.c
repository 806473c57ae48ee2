/* Reading JSON where it stands, without memory of its own. */
#include "json.h"

#if __STDC_HOSTED__
#include <stdlib.h>
#endif
#include <string.h>

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

const char *json_member(const char *object, const char *name)
{
    size_t length = strlen(name);
    const char *at = object;
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

const char *json_first(const char *list)
{
    return list != NULL && list[0] == '[' && list[1] != ']' && list[1] != '\0' ? list + 1 : NULL;
}

const char *json_next(const char *value)
{
    const char *behind = skip_value(value);
    return behind[0] == ',' && behind[1] != '\0' ? behind + 1 : NULL;
}

bool json_begins_with(const char *value, const char *text)
{
    return value != NULL && strncmp(value, text, strlen(text)) == 0;
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
    bool is_negative = *at == '-';
    at += is_negative;
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
    if (is_negative)
        *number = -*number;
    return true;
}
#endif

bool json_number(const char *object, const char *name, double *number)
{
    const char *at = json_member(object, name);
    return at != NULL && read_decimal(at, number);
}

bool json_integer(const char *object, const char *name, uint64_t most, uint64_t *number)
{
    const char *at = json_member(object, name);
    if (at == NULL || !is_digit(*at))
        return false;
    for (*number = 0; is_digit(*at); at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (*number > UINT64_MAX / 10 || (*number == UINT64_MAX / 10 && digit > UINT64_MAX % 10))
            return false;
        *number = 10 * *number + digit;
    }
    return *number <= most;
}

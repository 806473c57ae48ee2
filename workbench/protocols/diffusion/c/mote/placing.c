/* Filters that a host places on a mote. `workbench/protocols/diffusion/filters/value.py` writes their description. */
#include "placing.h"

#include <string.h>

#include "json.h"
#include "node_calls.h"

#if MAX_FILTERS > 0

static const struct filter_kind *kind_of(const char *name)
{
    for (size_t i = 0; i < FILTER_KIND_COUNT; i++) {
        const struct filter_kind *kind = &FILTER_KINDS[i];
        if (json_begins_with(name, kind->name) && name[strlen(kind->name)] == '"')
            return kind;
    }
    return NULL;
}

static int digit_of(char character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

/* Read a list of attributes in hexadecimal digits, which begins with their number. */
static bool read_match(const char *text, struct attribute_list *match)
{
    uint8_t bytes[1 + ATTRIBUTES_ROOM];
    size_t size = 0;
    struct attributes attributes;
    if (!json_begins_with(text, "\""))
        return false;
    for (text++; *text != '"'; text += 2) {
        int high = digit_of(text[0]);
        int low = high < 0 ? -1 : digit_of(text[1]);
        if (low < 0 || size >= sizeof bytes)
            return false;
        bytes[size++] = (uint8_t)(high << 4 | low);
    }
    if (size == 0 || !attributes_decode(bytes + 1, size - 1, bytes[0], &attributes))
        return false;
    keep(match, attributes);
    return true;
}

/* Read a filter with a known name; false if this program does not support it. */
static bool read_filter(const char *text, const struct filter_kind *kind, struct filter *filter,
                        struct filter_room *room)
{
    uint64_t key;
    *room = (struct filter_room){0};
    if (!json_integer(text, "key", LAST_KEY, &key) || !read_match(json_member(text, "wire"), &room->match))
        return false;
    bool is_for_interests = json_begins_with(json_member(text, "messages"), "\"interest\"");
    struct emission *emission = kind->emit == NULL ? NULL : &room->state.neighborhood_average.emission;
    *filter = (struct filter){
        (uint8_t)key, is_for_interests, view(&room->match), kind->decide, &room->state, emission, kind->emit};
    return kind->read == NULL || kind->read(json_member(text, "in_c"), &room->state);
}

/* Return the name of a filter, after its quotation mark. */
static const char *name_of(const char *filter)
{
    const char *name = json_member(filter, "name");
    return json_begins_with(name, "\"") ? name + 1 : "";
}

struct refusal filters_place(const char *filters, struct placed_filters *placed, struct diffusion_settings *settings)
{
    settings->filters = placed->table;
    settings->filter_count = 0;
    for (const char *one = json_first(filters); one != NULL; one = json_next(one)) {
        const char *name = name_of(one);
        const struct filter_kind *kind = kind_of(name);
        size_t place = settings->filter_count;
        if (kind == NULL)
            return (struct refusal){"this mote's program has no filter ", name, 0};
        if (place >= MAX_FILTERS)
            return (struct refusal){COMPILED_WITH, "MAX_FILTERS", MAX_FILTERS};
        if (!read_filter(one, kind, &placed->table[place], &placed->rooms[place])) {
            uint64_t window;
            if (json_integer(json_member(one, "in_c"), "window", UINT64_MAX, &window) && window > MAX_FILTER_WINDOW)
                return (struct refusal){COMPILED_WITH, "MAX_FILTER_WINDOW", MAX_FILTER_WINDOW};
            return (struct refusal){"a mote in C cannot have these settings of its filter ", name, 0};
        }
        settings->filter_count++;
    }
    return (struct refusal){NULL, NULL, 0};
}

#else

struct refusal filters_place(const char *filters, struct placed_filters *placed, struct diffusion_settings *settings)
{
    placed->are_none = json_first(filters) == NULL;
    settings->filters = NULL;
    settings->filter_count = 0;
    return (struct refusal){placed->are_none ? NULL : COMPILED_WITH, "MAX_FILTERS=0", 0};
}

#endif

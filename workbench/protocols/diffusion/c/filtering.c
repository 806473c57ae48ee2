/* The filters of one node. `workbench/protocols/diffusion/filters/on_node.py` defines them. */
#include "node.h"

static bool is_about(struct attributes interest, uint8_t key)
{
    const uint8_t *next = interest.bytes;
    for (size_t i = 0; i < interest.count; i++)
        if (next_attribute(&next).key == key)
            return true;
    return false;
}

/* An interest contains constraints instead of values, so it only has to contain all keys of `match`. */
static bool wants(const struct filter *filter, bool is_interest, struct attributes attributes)
{
    if (filter->is_for_interests != is_interest)
        return false;
    if (!is_interest)
        return one_way_match(filter->match, attributes);
    const uint8_t *next = filter->match.bytes;
    for (size_t i = 0; i < filter->match.count; i++)
        if (!is_about(attributes, next_attribute(&next).key))
            return false;
    return true;
}

/* A message's fields in the filters' events. */
struct about {
    bool is_interest;
    uint16_t origin;
    uint32_t sequence;
    int64_t now;
};

static void tell_filtered(const struct diffusion *node, const struct filter *filter, const struct about *about,
                          const char *answer)
{
    const char *message = about->is_interest ? "interest" : "data";
    tell(node, FILTERED, NOBODY, message, about->origin, about->sequence, filter->key, answer);
}

/* Write a filter's result for `attributes` to `answer`; false if it drops them, or if a reading is not valid. */
static bool decide(const struct diffusion *node, const struct filter *filter, const struct about *about,
                   struct attributes attributes, struct attribute_list *answer)
{
    struct attribute_list made = {0};
    struct filtered message = {attributes, &made, about->origin, about->now};
    enum filter_answer said = filter->decide(filter->state, &message);
    if (said == FILTER_PASS)
        return true;
    if (said == FILTER_DROP || (!about->is_interest && (made.count == 0 || !may_be_data(node, view(&made)))))
        return false;
    *answer = made;
    return true;
}

/* Apply the matching filters from index `first` on to an interest, or to one reading; false if one drops it. */
static bool answer_one(const struct diffusion *node, const struct about *about, struct attribute_list *attributes,
                       size_t first)
{
    for (size_t i = first; i < node->settings->filter_count; i++) {
        const struct filter *filter = &node->settings->filters[i];
        if (!wants(filter, about->is_interest, view(attributes)))
            continue;
        struct attribute_list answer = *attributes;
        if (!decide(node, filter, about, view(attributes), &answer)) {
            tell_filtered(node, filter, about, "drop");
            if (filter->emission != NULL)
                filter->emission->has_dropped = true;
            return false;
        }
        if (!are_equal(view(&answer), view(attributes)))
            tell_filtered(node, filter, about, "replace");
        *attributes = answer;
    }
    return true;
}

bool filter_interest(struct diffusion *node, struct interest *interest, struct attribute_list *answer, int64_t now,
                     enum diffusion_reason *reason)
{
    if (node->settings->filter_count == 0)
        return true;
    struct about about = {true, interest->sink, interest->sequence, now};
    keep(answer, interest->attributes);
    *reason = DIFFUSION_FILTER;
    if (!answer_one(node, &about, answer, 0) || answer->count == 0)
        return false;
    interest->attributes = view(answer);
    *reason = DIFFUSION_TOO_LONG;
    return answer->size <= MESSAGE_B - INTEREST_HEADER_B;
}

/* Note the data message as which the filters that have dropped it will send it later. */
static void hold_back(const struct diffusion *node, const struct data *data)
{
    for (size_t i = 0; i < node->settings->filter_count; i++) {
        struct emission *emission = node->settings->filters[i].emission;
        if (emission == NULL || !emission->has_dropped)
            continue;
        emission->previous_hop = data->previous_hop;
        emission->sequence = data->sequence;
        emission->origin = data->source;
        emission->ttl = data->ttl;
        emission->has_held = true;
    }
}

int64_t next_emission(const struct diffusion *node)
{
    int64_t next_us = NEVER;
    for (size_t i = 0; i < node->settings->filter_count; i++) {
        const struct emission *emission = node->settings->filters[i].emission;
        if (emission != NULL && emission->due_us < next_us)
            next_us = emission->due_us;
    }
    return next_us;
}

bool emit(const struct diffusion *node, size_t place, struct attribute_list *answer, int64_t now)
{
    const struct filter *filter = &node->settings->filters[place];
    if (filter->emission == NULL || filter->emission->due_us > now)
        return false;
    answer->size = 0;
    answer->count = 0;
    filter->emit(filter->state, answer);
    if (!filter->emission->has_held || answer->count == 0)
        return false;
    struct about about = {false, filter->emission->origin, filter->emission->sequence, now};
    bool passes = answer_one(node, &about, answer, place + 1);
    tell_filtered(node, filter, &about, "replace");
    return passes;
}

bool filter_data(struct diffusion *node, struct data *data, struct attribute_list *answer, int64_t now,
                 enum diffusion_reason *reason)
{
    if (node->settings->filter_count == 0)
        return true;
    struct about about = {false, data->source, data->sequence, now};
    struct attributes left = data->attributes;
    struct attributes nothing = {left.bytes + left.size, 0, 0};
    bool fits = true;
    for (size_t i = 0; i < node->settings->filter_count; i++)
        if (node->settings->filters[i].emission != NULL)
            node->settings->filters[i].emission->has_dropped = false;
    keep(answer, nothing);
    /* Filters process the readings of an aggregate one at a time. */
    do {
        struct attribute_list reading;
        keep(&reading, data->is_aggregate ? first_sample(left, &left) : left);
        if (!data->is_aggregate)
            left = nothing;
        if (answer_one(node, &about, &reading, 0))
            fits = add_all(answer, view(&reading)) && fits;
    } while (left.count > 0);
    if (answer->count == 0)
        hold_back(node, data);
    *reason = fits ? DIFFUSION_FILTER : DIFFUSION_TOO_LONG;
    if (answer->count == 0 || !fits)
        return false;
    data->attributes = view(answer);
    return true;
}

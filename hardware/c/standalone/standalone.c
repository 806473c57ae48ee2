/* A mote without a host. `standalone.h` describes it. */
#include "standalone.h"

#include <stdio.h>
#include <string.h>

static const struct diffusion_settings settings = TINY_DIFFUSION_SETTINGS;

/* The driver of the node */

static struct flying *find_place(struct standalone *mote)
{
    for (size_t i = 0; i < MAX_FLYING; i++)
        if (!mote->flying[i].is_used)
            return &mote->flying[i];
    return NULL;
}

static void send_frame(void *context, uint32_t destination, const struct frame *frame)
{
    struct standalone *mote = context;
    size_t size = frame->head_size + frame->body_size;
    bool has_outcome = destination != BROADCAST && size <= sizeof mote->flying[0].bytes;
    struct flying *flying = has_outcome ? find_place(mote) : NULL;
    if (flying != NULL) {
        *flying = (struct flying){.is_used = true, .destination = destination, .size = size};
        memcpy(flying->bytes, frame->head, frame->head_size);
        memcpy(flying->bytes + frame->head_size, frame->body, frame->body_size);
    }
    mote->system->send(destination, frame, flying);
}

/* Print a reading that matches a subscription; the node reports its temperature in hundredths of a degree. */
static void take_event(void *context, const struct event *event)
{
    struct standalone *mote = context;
    char line[LONGEST_LINE];
    if (event->kind != DELIVERED)
        return;
    const uint8_t *next = event->attributes.bytes;
    int number = next_attribute(&next).number;
    int size = number < 0 ? -number : number;
    snprintf(line, sizeof line, "delivered %s%d.%02d from %ld", number < 0 ? "-" : "", size / 100, size % 100,
             (long)event->origin);
    mote->system->print(line);
}

/* Called by the operating system */

void standalone_start(struct standalone *mote, const struct system *system, uint16_t address, uint64_t seed,
                      int64_t now, unsigned boot)
{
    memset(mote, 0, sizeof *mote);
    mote->system = system;
    mote->driver = (struct driver){mote, send_frame, take_event, false};
    diffusion_start(&mote->node, &settings, address, (struct random){seed, 0}, &mote->driver, now, boot);
}

void standalone_receive(struct standalone *mote, const uint8_t *frame, size_t size, uint16_t sender, int64_t now,
                        bool broadcast)
{
    diffusion_receive(&mote->node, frame, size, sender, now, broadcast);
}

void standalone_sent(struct flying *flying, bool is_delivered)
{
    flying->is_delivered = is_delivered;
    flying->is_settled = true;
}

int64_t standalone_step(struct standalone *mote, int64_t now)
{
    for (size_t i = 0; i < MAX_FLYING; i++) {
        if (!mote->flying[i].is_settled)
            continue;
        /* The place is free before the call, which may send the frame again. */
        struct flying settled = mote->flying[i];
        mote->flying[i] = (struct flying){0};
        diffusion_sent(&mote->node, settled.destination, settled.bytes, settled.size, settled.is_delivered, now);
    }
    if (diffusion_next_wake(&mote->node) <= now)
        diffusion_wake(&mote->node, now);
    int64_t wake_us = diffusion_next_wake(&mote->node);
    if (wake_us == NEVER)
        return NEVER;
    return wake_us > now ? wake_us - now : 0;
}

/* Commands */

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

/* Read a temperature such as "-3.25" in hundredths of a degree; return false if the text is something else. */
static bool read_temperature(const char *text, int16_t *temperature)
{
    bool is_negative = *text == '-';
    int32_t number = 0;
    int decimals = 0;
    if (is_negative)
        text++;
    if (!is_digit(*text))
        return false;
    for (; is_digit(*text) && number <= INT16_MAX; text++)
        number = 10 * number + (*text - '0');
    if (*text == '.')
        for (text++; is_digit(*text) && decimals < 2; text++, decimals++)
            number = 10 * number + (*text - '0');
    for (; decimals < 2; decimals++)
        number *= 10;
    if (*text != '\0' || number > INT16_MAX)
        return false;
    *temperature = (int16_t)(is_negative ? -number : number);
    return true;
}

/* Return what follows a word and a space, or NULL if the line does not begin with them. */
static const char *after(const char *line, const char *word)
{
    size_t size = strlen(word);
    return strncmp(line, word, size) == 0 && line[size] == ' ' ? line + size + 1 : NULL;
}

static void answer(const struct standalone *mote, const char *what, int64_t number)
{
    char line[LONGEST_LINE];
    if (number < 0)
        snprintf(line, sizeof line, "refused: %s", sentence(number));
    else
        snprintf(line, sizeof line, "%s %ld", what, (long)number);
    mote->system->print(line);
}

void standalone_command(struct standalone *mote, const char *line, int64_t now)
{
    const char *threshold = after(line, "subscribe");
    const char *measured = after(line, "publish");
    const char *text = threshold != NULL ? threshold : measured;
    struct attribute_list list = {0};
    int16_t temperature;
    if (text == NULL || !read_temperature(text, &temperature)) {
        mote->system->print("commands are: subscribe 25, publish 26.5 (temperatures from -327 to 327)");
        return;
    }
    (void)add_number(&list, TEMP_KEY, threshold != NULL ? GE : IS, temperature);
    struct attributes attributes = view(&list);
    if (threshold != NULL)
        answer(mote, "subscription", diffusion_subscribe(&mote->node, &attributes, now, NEVER, false));
    else
        answer(mote, "reading", diffusion_publish(&mote->node, &attributes, now));
}

/* The program of a mote in C. `hardware/mote/mote.py` defines it, and `workbench/motes/messages.py` the messages. */
#include "mote.h"

#include <string.h>

#include "configuration.h"
#include "division.h"

enum {
    HELLO = 1,
    GOODBYE,
    CONFIGURE,
    SUBSCRIBE,
    UNSUBSCRIBE,
    PUBLISH,
    LINK_QUALITY,
    SET_TIME,
    WAKE,
    HEARD,
    PING,
    RESET,
    OUTCOME
};
enum { READY = 33, REFUSED, ANSWER, EVENT, SEND };
enum { OTHER_VERSION = 1, BUSY, NO_SECRET };
enum { SUBSCRIBED = 128, UNSUBSCRIBED, PUBLISHED, CONTESTED = 133, NOISE, TOLD };
enum { IS_TEXT, IS_ATTRIBUTES };
enum { VERSION = 4, LONGEST_TEXT = 240, BUSY_US = 5 * SECOND_US };
/* From here on a node can still add up times without an overflow. */
#define LATEST_US (INT64_MAX / 8)
/* Offsets of the fields in a greeting and in a command. */
enum { VERSION_AT = 3, SESSION_AT = 4, GREETING_B = 8, TOKEN_AT = 1 + SECRET_B, COMMAND_B = TOKEN_AT + 2 };

/* The fewest bytes of a command, by its kind. */
static const uint8_t LEAST_B[] = {
    [HELLO] = GREETING_B,
    [GOODBYE] = COMMAND_B,
    [CONFIGURE] = COMMAND_B,
    [SUBSCRIBE] = COMMAND_B + 9,
    [UNSUBSCRIBE] = COMMAND_B + 4,
    [PUBLISH] = COMMAND_B,
    [LINK_QUALITY] = COMMAND_B + 12,
    [SET_TIME] = COMMAND_B + 9,
    [WAKE] = COMMAND_B,
    [HEARD] = COMMAND_B + 5,
    [PING] = COMMAND_B,
    [RESET] = COMMAND_B,
    [OUTCOME] = COMMAND_B + 5,
};

/* Bytes */

static void put_bytes(struct enframer *message, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        enframe_put(message, bytes[i]);
}

/* A number in so many bytes, little-endian. */
static void put(struct enframer *message, int64_t number, size_t size)
{
    for (size_t i = 0; i < size; i++)
        enframe_put(message, (uint8_t)((uint64_t)number >> 8 * i & 0xFF));
}

/* A text ends with a zero, or with the quotation mark of the JSON that it stands in. */
static void put_text(struct enframer *message, const char *text)
{
    for (size_t i = 0; i < LONGEST_TEXT && text[i] != '\0' && text[i] != '"'; i++)
        enframe_put(message, (uint8_t)text[i]);
}

static uint64_t get(const uint8_t *at, size_t size)
{
    uint64_t number = 0;
    for (size_t i = size; i > 0; i--)
        number = number << 8 | at[i - 1];
    return number;
}

static double get_double(const uint8_t *at)
{
    uint64_t bits = get(at, 8);
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static double get_float(const uint8_t *at)
{
    uint32_t bits = (uint32_t)get(at, 4);
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* Messages to the host */

static int64_t now_of(const struct mote *mote)
{
    return mote->is_held ? mote->held_us : mote->board->now_us(mote->board->context) + mote->offset_us;
}

/* There is one message at a time, so it need not stand on the stack, where its functions would lie on each other. */
static struct enframer *begin(struct mote *mote, uint8_t kind)
{
    enframe_begin(&mote->message, mote->board->context, mote->board->write);
    enframe_put(&mote->message, kind);
    return &mote->message;
}

static void write_event(struct mote *mote, const struct event *event)
{
    struct enframer *message = begin(mote, EVENT);
    put(message, now_of(mote), 8);
    put(message, event->kind, 1);
    put(message, event->peer, 4);
    put(message, event->origin, 4);
    put(message, event->sequence, 8);
    put(message, event->value, 8);
    put(message, 0, 2);
    put(message, (int64_t)strlen(event->message), 1);
    put_text(message, event->message);
    if (event->attributes.bytes != NULL) {
        put(message, IS_ATTRIBUTES, 1);
        put(message, (int64_t)event->attributes.count, 1);
        put_bytes(message, event->attributes.bytes, event->attributes.size);
    } else {
        put(message, IS_TEXT, 1);
        put_text(message, event->detail);
    }
    enframe_end(message);
}

/* Report an event of the mote's own. */
static void tell_own(struct mote *mote, int kind, int64_t sequence, int64_t value, const char *detail,
                     struct attributes attributes)
{
    int64_t address = mote->is_configured ? (int64_t)mote->address : NOBODY;
    struct event event = {kind, NOBODY, "", address, sequence, value, detail, attributes};
    write_event(mote, &event);
}

static void tell_text(struct mote *mote, int kind, int64_t value, const char *text)
{
    tell_own(mote, kind, 0, value, text, (struct attributes){0});
}

/* It comes before what the node does in the same call, and only if the node does not refuse the call. */
static void announce(struct mote *mote)
{
    struct announcement *one = &mote->announcement;
    if (one->is_pending)
        tell_own(mote, one->kind, one->number, one->value, "", one->attributes);
    one->is_pending = false;
}

static void take_event(void *context, const struct event *event)
{
    struct mote *mote = context;
    announce(mote);
    write_event(mote, event);
}

static void take_frame(void *context, uint32_t destination, const struct frame *frame)
{
    struct mote *mote = context;
    announce(mote);
    const struct board *board = mote->board;
    struct enframer *message = &mote->message;
    /* A held clock is a simulator's, which wants frames and answers in their order: on one line. */
    enframe_begin(message, board->context,
                  board->write_radio != NULL && !mote->is_held ? board->write_radio : board->write);
    enframe_put(message, SEND);
    put(message, destination == BROADCAST ? NOBODY : (int64_t)destination, 4);
    put_bytes(message, frame->head, frame->head_size);
    put_bytes(message, frame->body, frame->body_size);
    enframe_end(message);
}

/* Begin the answer to a greeting. */
static struct enframer *begin_reply(struct mote *mote, uint8_t kind, uint32_t session)
{
    struct enframer *message = begin(mote, kind);
    put_text(message, "WB");
    put(message, VERSION, 1);
    put(message, session, 4);
    return message;
}

static void greet(struct mote *mote, uint32_t session)
{
    struct enframer *message = begin_reply(mote, READY, session);
    put(message, mote->board->boot, 4);
    put(message, false, 1); /* it has no radio of its own */
    put_text(message, mote->board->name);
    enframe_end(message);
}

static void refuse(struct mote *mote, uint32_t session, uint8_t reason)
{
    struct enframer *message = begin_reply(mote, REFUSED, session);
    put(message, reason, 1);
    enframe_end(message);
}

/* Commands from the host */

/* What came of a command: a number, or a text of two parts that says why it was refused. A refusal's number is the size
 * that is right, or 0. */
struct outcome {
    int64_t number;
    const char *wrong;
    const char *what;
};

static struct outcome wrong(const char *why)
{
    return (struct outcome){0, why, ""};
}

/* A node's number, or its error. */
static struct outcome checked(int64_t number)
{
    return number < 0 ? wrong(sentence(number)) : (struct outcome){.number = number};
}

/* A list of attributes: their number, and they themselves. */
static bool read_attributes(const uint8_t *at, size_t size, struct attributes *attributes)
{
    return size > 0 && attributes_decode(at + 1, size - 1, at[0], attributes);
}

static struct outcome configure(struct mote *mote, const uint8_t *text)
{
    struct configuration wanted;
    const char *wrong_setting = configuration_read((const char *)text, NODE_CLASS, &wanted);
    if (wrong_setting != NULL)
        return (struct outcome){0, wrong_setting == NODE_CLASS ? COMPILED_WITH : CANNOT_HAVE, wrong_setting};
    mote->address = wanted.address;
    mote->driver = (struct driver){mote, take_frame, take_event, true};
    struct random random = {wanted.key, 0};
    unsigned boot = wanted.has_boot ? wanted.boot : mote->board->boot;
    struct refusal refusal =
        node_start(&mote->node, wanted.settings, wanted.address, random, &mote->driver, now_of(mote), boot);
    mote->is_configured = refusal.why == NULL;
    if (!mote->is_configured)
        return (struct outcome){refusal.size, refusal.why, refusal.what};
    return (struct outcome){.number = mote->board->boot};
}

static struct outcome publish(struct mote *mote, const uint8_t *at, size_t size, int64_t now)
{
    struct attributes reading;
    if (!read_attributes(at, size, &reading))
        return wrong(sentence(WRONG_ATTRIBUTES));
    int64_t number = node_next_reading(&mote->node);
    mote->announcement = (struct announcement){!mote->is_held, PUBLISHED, number, 0, reading};
    return checked(node_publish(&mote->node, &reading, now));
}

static struct outcome subscribe(struct mote *mote, const uint8_t *at, size_t size, int64_t now)
{
    struct attributes attributes;
    double seconds = get_double(at);
    if (!read_attributes(at + 9, size - 9, &attributes))
        return wrong(sentence(WRONG_ATTRIBUTES));
    bool is_for_ever = !(seconds >= 0 && seconds < 1e12);
    int64_t lasts_us = is_for_ever ? NEVER : (int64_t)(seconds * SECOND_US);
    int64_t number = node_next_subscription(&mote->node);
    int64_t ends_us = is_for_ever ? NOBODY : now + lasts_us;
    mote->announcement = (struct announcement){!mote->is_held, SUBSCRIBED, number, ends_us, attributes};
    return checked(node_subscribe(&mote->node, &attributes, now, lasts_us, at[8] == 1));
}

static struct outcome unsubscribe(struct mote *mote, int64_t number, int64_t now)
{
    if (!node_was_made(&mote->node, number))
        return wrong("there is no such subscription at this node");
    if (!node_is_open(&mote->node, number))
        return (struct outcome){0}; /* It has ended or expired, which is not an error. */
    mote->announcement = (struct announcement){.is_pending = !mote->is_held, .kind = UNSUBSCRIBED, .number = number};
    node_unsubscribe(&mote->node, number, now);
    return (struct outcome){0};
}

static struct outcome set_time(struct mote *mote, int64_t time_us, bool is_held)
{
    if (time_us < 0 || time_us > LATEST_US)
        return wrong("a clock is set to a time from 0 to 36,000 years");
    mote->is_held = is_held;
    mote->held_us = time_us;
    mote->offset_us = time_us - mote->board->now_us(mote->board->context);
    return (struct outcome){0};
}

/* What only a node can do; `at`: what stands behind the token. */
static struct outcome act_as_node(struct mote *mote, uint8_t kind, const uint8_t *at, size_t size)
{
    int64_t now = now_of(mote);
    switch (kind) {
    case HEARD:
        node_receive(&mote->node, at + 5, size - 5, (uint32_t)get(at, 4), now, at[4] == 1);
        return (struct outcome){0};
    case OUTCOME:
        node_sent(&mote->node, (uint32_t)get(at, 4), at + 5, size - 5, at[4] == 1, now);
        return (struct outcome){0};
    case WAKE:
        node_wake(&mote->node, now);
        return (struct outcome){0};
    case PUBLISH:
        return publish(mote, at, size, now);
    case SUBSCRIBE:
        return subscribe(mote, at, size, now);
    case UNSUBSCRIBE:
        return unsubscribe(mote, (int64_t)get(at, 4), now);
    default:
        node_link_quality(&mote->node, (uint16_t)get(at, 4), get_float(at + 4), get_float(at + 8), now);
        return (struct outcome){0};
    }
}

static struct outcome act(struct mote *mote, uint8_t kind, const uint8_t *at, size_t size)
{
    switch (kind) {
    case PING:
        return (struct outcome){.number = mote->board->used_B(mote->board->context)};
    case CONFIGURE:
        return configure(mote, at);
    case SET_TIME:
        return set_time(mote, (int64_t)get(at, 8), at[8] == 1);
    case GOODBYE:
        mote->has_secret = false;
        return (struct outcome){0};
    case RESET:
        return (struct outcome){0};
    default:
        if (!mote->is_configured)
            return wrong("the mote is not configured; it needs a protocol and an address first");
        return act_as_node(mote, kind, at, size);
    }
}

static void answer(struct mote *mote, uint16_t token, const struct outcome *outcome)
{
    bool is_planned = mote->is_configured && node_next_wake(&mote->node) != NEVER;
    struct enframer *message = begin(mote, ANSWER);
    put(message, token, 2);
    put(message, outcome->wrong == NULL, 1);
    put(message, outcome->number, 8);
    put(message, is_planned ? node_next_wake(&mote->node) : NOBODY, 8);
    put(message, now_of(mote), 8);
    if (outcome->wrong != NULL) {
        put_text(message, outcome->wrong);
        put_text(message, outcome->what);
    }
    enframe_end(message);
}

static void command(struct mote *mote, const uint8_t *body, size_t size)
{
    if (memcmp(body + 1, mote->secret, SECRET_B) != 0) {
        mote->contested++;
        refuse(mote, 0, NO_SECRET);
        return;
    }
    mote->greeted_us = mote->board->now_us(mote->board->context);
    uint16_t token = (uint16_t)get(body + TOKEN_AT, 2);
    struct outcome outcome = act(mote, body[0], body + COMMAND_B, size - COMMAND_B);
    if (outcome.wrong == NULL)
        announce(mote);
    mote->announcement.is_pending = false;
    if (token != 0)
        answer(mote, token, &outcome);
    else if (outcome.wrong != NULL)
        tell_text(mote, TOLD, 0, outcome.wrong); /* The host does not expect an answer. */
    if (body[0] == RESET)
        mote->board->reset(mote->board->context);
}

/* Take a greeting; return false if it is not valid. */
static bool meet(struct mote *mote, const uint8_t *body, size_t size)
{
    uint32_t session = (uint32_t)get(body + SESSION_AT, 4);
    if (memcmp(body + 1, "WB", 2) != 0 || body[VERSION_AT] != VERSION) {
        refuse(mote, session, OTHER_VERSION);
        return true;
    }
    if (size != GREETING_B + SECRET_B)
        return false;
    int64_t now = mote->board->now_us(mote->board->context);
    bool is_known = mote->has_secret && memcmp(mote->secret, body + GREETING_B, SECRET_B) == 0;
    if (mote->has_secret && !is_known && now - mote->greeted_us < BUSY_US) {
        mote->contested++;
        refuse(mote, session, BUSY);
        return true;
    }
    memcpy(mote->secret, body + GREETING_B, SECRET_B);
    if (!is_known)
        mote->reported = NULL;
    mote->has_secret = true;
    mote->greeted_us = now;
    greet(mote, session);
    return true;
}

/* Take a message; return false if it is not valid. */
static bool take_message(struct mote *mote, const uint8_t *body, size_t size)
{
    if (size > 0 && body[0] >= READY && body[0] <= SEND)
        return true; /* of another mote on the same line */
    if (size == 0 || body[0] < HELLO || body[0] > OUTCOME || size < LEAST_B[body[0]])
        return false;
    if (body[0] == HELLO)
        return meet(mote, body, size);
    if (mote->has_secret)
        command(mote, body, size);
    return true;
}

/* Called by the board */

void mote_start(struct mote *mote, const struct board *board)
{
    memset(mote, 0, sizeof *mote);
    mote->board = board;
    mote->line = (struct deframer){.room = sizeof mote->line_bytes, .bytes = mote->line_bytes};
    mote->radio = (struct deframer){.room = sizeof mote->radio_bytes, .bytes = mote->radio_bytes};
    greet(mote, 0);
}

/* Report noise on the line, if there was any since the last report. */
static void tell_noise(struct mote *mote)
{
    uint32_t spoilt = mote->line.spoilt + mote->radio.spoilt;
    if (mote->spoilt != spoilt)
        tell_text(mote, NOISE, spoilt, "");
    mote->spoilt = spoilt;
}

void mote_feed(struct mote *mote, const uint8_t *bytes, size_t size)
{
    uint32_t contested = mote->contested;
    for (size_t i = 0; i < size; i++) {
        int body_size = deframe(&mote->line, bytes[i]);
        if (body_size != NO_BODY && !take_message(mote, mote->line_bytes, (size_t)body_size))
            mote->line.spoilt++;
    }
    tell_noise(mote);
    if (mote->contested != contested)
        tell_text(mote, CONTESTED, mote->contested, "another host greeted or commanded this mote, and was refused");
}

void mote_hear(struct mote *mote, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        int body_size = deframe(&mote->radio, bytes[i]);
        if (body_size == NO_BODY || mote->is_held || !mote->is_configured)
            continue;
        bool is_radios = body_size > 0 && (mote->radio_bytes[0] == HEARD || mote->radio_bytes[0] == OUTCOME);
        if (!is_radios || !take_message(mote, mote->radio_bytes, (size_t)body_size))
            mote->radio.spoilt++;
    }
    tell_noise(mote);
}

/* Report the board's trouble as a complaint, once to each host that greets. */
static void report_trouble(struct mote *mote)
{
    const struct board *board = mote->board;
    const char *trouble = board->trouble != NULL ? board->trouble(board->context) : NULL;
    if (!mote->has_secret || trouble == mote->reported)
        return;
    mote->reported = trouble;
    if (trouble != NULL)
        tell_text(mote, TOLD, 0, trouble);
}

int64_t mote_step(struct mote *mote)
{
    report_trouble(mote);
    if (!mote->is_configured || mote->is_held)
        return NEVER;
    int64_t now = now_of(mote);
    if (node_next_wake(&mote->node) <= now)
        node_wake(&mote->node, now);
    int64_t wake_us = node_next_wake(&mote->node);
    if (wake_us == NEVER)
        return NEVER;
    now = now_of(mote);
    return wake_us > now ? wake_us - now : 0;
}

int64_t mote_clock_us(int64_t real_us, uint32_t speed_ppm)
{
    if (speed_ppm == REAL_TIME_PPM)
        return real_us;
    uint64_t seconds = divide((uint64_t)real_us, SECOND_US);
    uint64_t rest_us = (uint64_t)real_us - seconds * SECOND_US;
    return (int64_t)(seconds * speed_ppm + divide(rest_us * speed_ppm, REAL_TIME_PPM));
}

int32_t mote_pause_us(int64_t wait_us, uint32_t speed_ppm)
{
    /* In a second of the wall clock the mote's goes on by so many µs. */
    return wait_us >= speed_ppm ? SECOND_US : (int32_t)divide((uint64_t)wait_us * REAL_TIME_PPM, speed_ppm);
}

/* The stub of RIOT: two threads of which one runs at a time, a clock, a radio and a UART that a test drives by lines
 * (console.h). The main thread plays the radio's thread and the interrupts too.
 *
 *     mote NODE START_US SEED */
#include <fcntl.h>
#include <pthread.h>

#include "console.h"
#include "riot.h"

enum { MAIN_PID = 1, MOTE_PID, RADIO_PID, MOST_MESSAGES = 16, MOST_IN_RADIO = 16 };

int mote_main(void);
static uint16_t node;
static uint32_t seed;

/* Threads: `running` is the one that may go on */

static pthread_mutex_t baton = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_changed = PTHREAD_COND_INITIALIZER;
static kernel_pid_t running = MAIN_PID;
static thread_task_func_t task;
static msg_t queue[MOST_MESSAGES];
static int queue_B;
static int waiting;
static bool is_replied;

static void switch_to(kernel_pid_t other, kernel_pid_t self)
{
    running = other;
    pthread_cond_broadcast(&has_changed);
    while (running != self)
        pthread_cond_wait(&has_changed, &baton);
}

static void *run_task(void *arg)
{
    pthread_mutex_lock(&baton);
    while (running != MOTE_PID)
        pthread_cond_wait(&has_changed, &baton);
    task(arg);
    REQUIRE(!"a thread of RIOT has ended");
    return NULL;
}

kernel_pid_t thread_create(char *stack, int stacksize, uint8_t priority, int flags, thread_task_func_t task_func,
                           void *arg, const char *name)
{
    pthread_t thread;
    (void)stack;
    (void)flags;
    (void)name;
    REQUIRE(stacksize > 0 && priority < THREAD_PRIORITY_MAIN);
    task = task_func;
    REQUIRE(pthread_create(&thread, NULL, run_task, arg) == 0);
    switch_to(MOTE_PID, MAIN_PID);
    return MOTE_PID;
}

kernel_pid_t thread_getpid(void)
{
    return running;
}

void msg_init_queue(msg_t *array, int num)
{
    REQUIRE(array != NULL && num > 0 && (num & (num - 1)) == 0 && num <= MOST_MESSAGES);
    queue_B = num;
}

int msg_try_send(msg_t *m, kernel_pid_t target_pid)
{
    REQUIRE(target_pid == MOTE_PID);
    if (waiting == queue_B)
        return 0;
    queue[waiting] = *m;
    queue[waiting++].sender_pid = running;
    return 1;
}

int msg_receive(msg_t *m)
{
    REQUIRE(running == MOTE_PID);
    while (waiting == 0)
        switch_to(MAIN_PID, MOTE_PID);
    *m = queue[0];
    memmove(queue, queue + 1, (size_t)--waiting * sizeof *queue);
    return 1;
}

int msg_send_receive(msg_t *m, msg_t *reply, kernel_pid_t target_pid)
{
    is_replied = false;
    REQUIRE(running == MAIN_PID && msg_try_send(m, target_pid) == 1);
    switch_to(MOTE_PID, MAIN_PID);
    REQUIRE(is_replied);
    *reply = *m;
    return 1;
}

int msg_reply(msg_t *m, msg_t *reply)
{
    REQUIRE(m->sender_pid == MAIN_PID && reply != NULL);
    is_replied = true;
    return 1;
}

/* Time and random numbers */

ztimer_clock_t *const ZTIMER_USEC = NULL;
ztimer64_clock_t *const ZTIMER64_USEC = NULL;
static ztimer_t *timer;

void ztimer_set_msg(ztimer_clock_t *clock, ztimer_t *one, uint32_t offset, msg_t *msg, kernel_pid_t target_pid)
{
    (void)clock;
    REQUIRE(target_pid == MOTE_PID && (timer == NULL || timer == one));
    timer = one;
    timer->due_us = console_now_us + offset;
    timer->message = msg;
}

uint64_t ztimer64_now(ztimer64_clock_t *clock)
{
    (void)clock;
    return (uint64_t)console_now_us;
}

uint32_t random_uint32(void)
{
    seed = seed * 1664525 + 1013904223;
    return seed;
}

/* Packets: each part is an allocation, so that a sanitizer finds what is released twice or not at all */

static void *copy_of(const void *data, size_t size)
{
    void *copy = malloc(size > 0 ? size : 1);
    if (data != NULL && size > 0)
        memcpy(copy, data, size);
    return copy;
}

gnrc_pktsnip_t *gnrc_pktbuf_add(gnrc_pktsnip_t *next, const void *data, size_t size, gnrc_nettype_t type)
{
    gnrc_pktsnip_t *snip = malloc(sizeof *snip);
    *snip = (gnrc_pktsnip_t){next, copy_of(data, size), size, 1, type};
    return snip;
}

void gnrc_pktbuf_release(gnrc_pktsnip_t *pkt)
{
    while (pkt != NULL) {
        gnrc_pktsnip_t *next = pkt->next;
        free(pkt->data);
        free(pkt);
        pkt = next;
    }
}

gnrc_pktsnip_t *gnrc_pktsnip_search_type(gnrc_pktsnip_t *pkt, gnrc_nettype_t type)
{
    while (pkt != NULL && pkt->type != type)
        pkt = pkt->next;
    return pkt;
}

gnrc_pktsnip_t *gnrc_netif_hdr_build(const uint8_t *src, uint8_t src_len, const uint8_t *dst, uint8_t dst_len)
{
    uint8_t bytes[sizeof(gnrc_netif_hdr_t) + 16] = {0};
    gnrc_netif_hdr_t header = {src_len, dst_len, RADIO_PID, 0, 0, 0};
    memcpy(bytes, &header, sizeof header);
    if (src_len > 0)
        memcpy(bytes + sizeof header, src, src_len);
    if (dst_len > 0)
        memcpy(bytes + sizeof header + src_len, dst, dst_len);
    return gnrc_pktbuf_add(NULL, bytes, sizeof header + src_len + dst_len, GNRC_NETTYPE_NETIF);
}

uint8_t *gnrc_netif_hdr_get_src_addr(const gnrc_netif_hdr_t *hdr)
{
    return (uint8_t *)(uintptr_t)(hdr + 1);
}

/* The network interface */

static int gnrc_events;
static int in_radio;
static bool is_refusing;
static bool uses_short_addresses;
static bool is_registered;

static void gnrc_event(netdev_t *dev, netdev_event_t event)
{
    REQUIRE(dev->context != NULL && event != NETDEV_EVENT_ISR);
    gnrc_events++;
}

static netdev_t device = {gnrc_event, &device};
static gnrc_netif_t interface = {&device, RADIO_PID};

gnrc_netif_t *gnrc_netif_iter(const gnrc_netif_t *prev)
{
    return prev == NULL ? &interface : NULL;
}

int gnrc_netapi_set(kernel_pid_t pid, netopt_t opt, uint16_t context, const void *data, size_t data_len)
{
    (void)context;
    REQUIRE(pid == RADIO_PID && opt == NETOPT_SRC_LEN && data_len == sizeof(uint16_t));
    uses_short_addresses = *(const uint16_t *)data == 2;
    return (int)data_len;
}

int gnrc_netapi_get(kernel_pid_t pid, netopt_t opt, uint16_t context, void *data, size_t max_len)
{
    uint8_t address[] = {(uint8_t)(node >> 8), (uint8_t)node};
    (void)context;
    REQUIRE(pid == RADIO_PID && opt == NETOPT_ADDRESS && max_len >= sizeof address);
    memcpy(data, address, sizeof address);
    return (int)sizeof address;
}

void gnrc_netreg_entry_init_pid(gnrc_netreg_entry_t *entry, uint32_t demux_ctx, kernel_pid_t pid)
{
    *entry = (gnrc_netreg_entry_t){NULL, demux_ctx, {pid}};
}

int gnrc_netreg_register(gnrc_nettype_t type, gnrc_netreg_entry_t *entry)
{
    REQUIRE(queue_B > 0); /* A thread needs a message queue to be registered. */
    is_registered = type == GNRC_NETTYPE_UNDEF && entry->target.pid == MOTE_PID &&
                    entry->demux_ctx == GNRC_NETREG_DEMUX_CTX_ALL;
    return 0;
}

/* The radio has the higher priority, so it may report an outcome before the call returns. */
int gnrc_netif_send(gnrc_netif_t *netif, gnrc_pktsnip_t *pkt)
{
    uint8_t bytes[CONSOLE_FRAME_B];
    size_t size = 0;
    REQUIRE(netif == &interface && running == MOTE_PID && pkt->type == GNRC_NETTYPE_NETIF);
    const gnrc_netif_hdr_t *header = pkt->data;
    const uint8_t *address = (const uint8_t *)(header + 1);
    bool is_broadcast = (header->flags & GNRC_NETIF_HDR_FLAGS_BROADCAST) != 0;
    REQUIRE(is_broadcast || header->dst_l2addr_len == 2);
    for (const gnrc_pktsnip_t *part = pkt->next; part != NULL; part = part->next) {
        REQUIRE(size + part->size <= sizeof bytes);
        memcpy(bytes + size, part->data, part->size);
        size += part->size;
    }
    long destination = is_broadcast ? -1L : (address[0] << 8 | address[1]);
    gnrc_pktbuf_release(pkt);
    if (is_refusing) {
        is_refusing = false;
        device.event_callback(&device, NETDEV_EVENT_TX_MEDIUM_BUSY);
        return 1;
    }
    REQUIRE(++in_radio <= MOST_IN_RADIO);
    console_send(destination, bytes, size);
    return 1;
}

static void hear(const char *text)
{
    char hex[CONSOLE_LINE_B];
    uint8_t bytes[CONSOLE_FRAME_B];
    uint8_t destination[] = {(uint8_t)(node >> 8), (uint8_t)node};
    long sender;
    int broadcast;
    REQUIRE(is_registered && uses_short_addresses);
    REQUIRE(sscanf(text, "%ld %d %511s", &sender, &broadcast, hex) == 3);
    uint8_t source[] = {(uint8_t)(sender >> 8), (uint8_t)sender};
    gnrc_pktsnip_t *header = gnrc_netif_hdr_build(source, 2, destination, 2);
    if (broadcast)
        ((gnrc_netif_hdr_t *)header->data)->flags |= GNRC_NETIF_HDR_FLAGS_BROADCAST;
    gnrc_pktsnip_t *packet = gnrc_pktbuf_add(header, bytes, console_bytes(hex, bytes), GNRC_NETTYPE_UNDEF);
    msg_t message = {.type = GNRC_NETAPI_MSG_TYPE_RCV, .content = {.ptr = packet}};
    REQUIRE(msg_try_send(&message, MOTE_PID) == 1);
}

static void settle(bool is_delivered)
{
    int events = gnrc_events;
    REQUIRE(in_radio-- > 0);
    device.event_callback(&device, is_delivered ? NETDEV_EVENT_TX_COMPLETE : NETDEV_EVENT_TX_NOACK);
    REQUIRE(gnrc_events == events + 1); /* GNRC must still have its events. */
}

/* Files: the only file is a word that lasts as long as the program */

static uint8_t file[16];
static size_t file_B;

int vfs_open(const char *name, int flags, mode_t mode)
{
    (void)mode;
    REQUIRE(strncmp(name, VFS_DEFAULT_DATA "/", sizeof VFS_DEFAULT_DATA) == 0);
    if ((flags & O_TRUNC) != 0)
        file_B = 0;
    return file_B > 0 || (flags & O_CREAT) != 0 ? 3 : -2;
}

int vfs_close(int fd)
{
    REQUIRE(fd == 3);
    return 0;
}

ssize_t vfs_read(int fd, void *dest, size_t count)
{
    REQUIRE(fd == 3);
    size_t size = count < file_B ? count : file_B;
    memcpy(dest, file, size);
    return (ssize_t)size;
}

ssize_t vfs_write(int fd, const void *src, size_t count)
{
    REQUIRE(fd == 3 && count <= sizeof file);
    memcpy(file, src, count);
    file_B = count;
    return (ssize_t)count;
}

/* The shell */

static void run_due(void)
{
    for (int events = 0; timer->due_us <= console_now_us; events++) {
        REQUIRE(events < 100); /* not for ever without time going on */
        REQUIRE(msg_try_send(timer->message, MOTE_PID) == 1);
        timer->due_us = INT64_MAX;
        switch_to(MOTE_PID, MAIN_PID);
    }
}

static void execute(const shell_command_t *commands, char *text)
{
    char *argument = strchr(text, ' ');
    char *words[] = {text, argument != NULL ? argument + 1 : NULL, NULL};
    if (argument != NULL)
        *argument = '\0';
    for (; commands->name != NULL; commands++)
        if (strcmp(commands->name, text) == 0) {
            (void)commands->handler(argument != NULL ? 2 : 1, words);
            return;
        }
    printf("shell: command not found: %s\n", text);
}

void shell_run(const shell_command_t *commands, char *line_buf, int len)
{
    char line[CONSOLE_LINE_B];
    REQUIRE(line_buf != NULL && len > 0);
    run_due();
    console_end(timer->due_us);
    while (console_read(line) != NULL) {
        if (!console_play(line, hear, settle, &is_refusing))
            execute(commands, line + 5);
        if (waiting > 0)
            switch_to(MOTE_PID, MAIN_PID);
        run_due();
        console_end(timer->due_us);
    }
    exit(0);
}

int main(int count, char **words)
{
    REQUIRE(count == 4);
    node = (uint16_t)strtoul(words[1], NULL, 10);
    console_now_us = strtoll(words[2], NULL, 10);
    seed = (uint32_t)strtoul(words[3], NULL, 10);
    pthread_mutex_lock(&baton);
    return mote_main();
}

/* The stub of Contiki-NG: its only process, a clock, a radio and a UART that a test drives by lines (console.h).
 *
 *     mote NODE START_US SEED */
#include "contiki.h"
#include "console.h"

enum { MOST_IN_RADIO = 16 };

struct process *process_current;
linkaddr_t linkaddr_node_addr = {{0x02, 0x12, 0x4B, 0, 0, 0, 0, 0}};
const linkaddr_t linkaddr_null = {{0}};
process_event_t serial_line_event_message = 0x8A;

/* Processes */

static void run(process_event_t event, void *data)
{
    struct process *process = autostart_processes[0];
    REQUIRE(process_current == NULL);
    process_current = process;
    REQUIRE(process->thread(&process->pt, event, data) == 1);
    process_current = NULL;
}

void process_poll(struct process *process)
{
    process->needspoll = true;
}

static void run_polled(void)
{
    struct process *process = autostart_processes[0];
    while (process->needspoll) {
        process->needspoll = false;
        run(PROCESS_EVENT_POLL, NULL);
    }
}

/* Time */

static struct etimer *timer;

rtimer_clock_t rtimer_arch_now(void)
{
    return (rtimer_clock_t)(console_now_us * RTIMER_SECOND / 1000000);
}

static clock_time_t clock_ticks(void)
{
    return (clock_time_t)(console_now_us * CLOCK_SECOND / 1000000);
}

void etimer_set(struct etimer *et, clock_time_t interval)
{
    REQUIRE(process_current == autostart_processes[0]); /* It belongs to the process that sets it. */
    et->expires = clock_ticks() + interval;
    et->p = process_current;
    timer = et;
}

static void run_due(void)
{
    for (int events = 0; timer != NULL && timer->p != NULL && timer->expires <= clock_ticks(); events++) {
        REQUIRE(events < 100); /* not for ever without time going on */
        timer->p = NULL;
        run(PROCESS_EVENT_TIMER, timer);
    }
}

static int64_t alarm_us(void)
{
    return (int64_t)timer->expires * 1000000 / CLOCK_SECOND;
}

/* Radio */

struct sent {
    mac_callback_t callback;
    void *ptr;
};
static struct sent in_radio[MOST_IN_RADIO];
static size_t in_radio_count;
static bool is_refusing;
static uint8_t packet[PACKETBUF_SIZE];
static uint16_t packet_B;
static linkaddr_t receiver;
static nullnet_input_callback input;

void linkaddr_copy(linkaddr_t *dest, const linkaddr_t *from)
{
    *dest = *from;
}

bool linkaddr_cmp(const linkaddr_t *addr1, const linkaddr_t *addr2)
{
    return memcmp(addr1, addr2, sizeof *addr1) == 0;
}

void packetbuf_clear(void)
{
    packet_B = 0;
    receiver = linkaddr_null;
}

void *packetbuf_dataptr(void)
{
    return packet;
}

void packetbuf_set_datalen(uint16_t len)
{
    packet_B = len;
}

void packetbuf_set_addr(uint8_t type, const linkaddr_t *addr)
{
    if (type == PACKETBUF_ADDR_RECEIVER)
        receiver = *addr;
}

static linkaddr_t address_of(long node)
{
    linkaddr_t address = linkaddr_node_addr;
    address.u8[LINKADDR_SIZE - 2] = (uint8_t)(node >> 8);
    address.u8[LINKADDR_SIZE - 1] = (uint8_t)node;
    return address;
}

/* As CSMA does if its queue is full, the callback may be called at once. */
static void send_packet(mac_callback_t callback, void *ptr)
{
    bool is_broadcast = linkaddr_cmp(&receiver, &linkaddr_null);
    linkaddr_t vendor = address_of(0);
    REQUIRE(is_broadcast || memcmp(&receiver, &vendor, LINKADDR_SIZE - 2) == 0); /* a whole address of a neighbor */
    if (is_refusing) {
        is_refusing = false;
        callback(ptr, MAC_TX_ERR, 0);
        return;
    }
    REQUIRE(in_radio_count < MOST_IN_RADIO);
    in_radio[in_radio_count++] = (struct sent){callback, ptr};
    console_send(is_broadcast ? -1L : (receiver.u8[LINKADDR_SIZE - 2] << 8 | receiver.u8[LINKADDR_SIZE - 1]), packet,
                 packet_B);
}

const struct mac_driver csma_driver = {"stub", NULL, send_packet, NULL, NULL, NULL};

void nullnet_set_input_callback(nullnet_input_callback callback)
{
    input = callback;
}

static void hear(const char *text)
{
    char hex[CONSOLE_LINE_B];
    long sender;
    int broadcast;
    REQUIRE(sscanf(text, "%ld %d %511s", &sender, &broadcast, hex) == 3);
    linkaddr_t source = address_of(sender);
    uint16_t size = (uint16_t)console_bytes(hex, packet);
    input(packet, size, &source, broadcast ? &linkaddr_null : &linkaddr_node_addr);
}

/* A deferred transmission gets its outcome later. */
static void settle(bool is_delivered)
{
    REQUIRE(in_radio_count > 0);
    struct sent oldest = in_radio[0];
    memmove(in_radio, in_radio + 1, --in_radio_count * sizeof *in_radio);
    if (oldest.callback != NULL) {
        oldest.callback(oldest.ptr, MAC_TX_DEFERRED, 1);
        run_polled();
        oldest.callback(oldest.ptr, is_delivered ? MAC_TX_OK : MAC_TX_NOACK, 1);
    }
}

/* Random numbers and files: the only file is a word that lasts as long as the program */

static unsigned long seed;
static unsigned file_B;
static uint8_t file[16];

unsigned short random_rand(void)
{
    seed = seed * 1103515245 + 12345;
    return (unsigned short)(seed >> 16);
}

int cfs_open(const char *name, int flags)
{
    (void)name;
    if (flags == CFS_WRITE)
        file_B = 0;
    return file_B > 0 || flags == CFS_WRITE ? 3 : -1;
}

void cfs_close(int fd)
{
    REQUIRE(fd == 3);
}

int cfs_read(int fd, void *buf, unsigned int len)
{
    REQUIRE(fd == 3);
    unsigned size = len < file_B ? len : file_B;
    memcpy(buf, file, size);
    return (int)size;
}

int cfs_write(int fd, const void *buf, unsigned int len)
{
    REQUIRE(fd == 3 && len <= sizeof file);
    memcpy(file, buf, len);
    file_B = len;
    return (int)len;
}

int main(int count, char **words)
{
    char line[CONSOLE_LINE_B];
    REQUIRE(count == 4);
    linkaddr_node_addr = address_of(strtol(words[1], NULL, 10));
    console_now_us = strtoll(words[2], NULL, 10);
    seed = strtoul(words[3], NULL, 10);
    run(PROCESS_EVENT_INIT, NULL);
    run_due();
    console_end(alarm_us());
    while (console_read(line) != NULL) {
        if (!console_play(line, hear, settle, &is_refusing))
            run(serial_line_event_message, line + 5);
        run_polled();
        run_due();
        console_end(alarm_us());
    }
    return 0;
}

/* A mote without a host as a process of Contiki-NG: the radio by nullnet's callback and NETSTACK_MAC, commands by the
 * serial line. It was compiled against stubs of these calls only (tests/c/systems/contiki-ng), and never run there. */
#include "contiki.h"

#include "cfs/cfs.h"
#include "dev/serial-line.h"
#include "lib/random.h"
#include "net/netstack.h"
#include "net/nullnet/nullnet.h"
#include "net/packetbuf.h"

#include <stdio.h>
#include <string.h>

#include "standalone.h"

/* Neighbors whose link-layer addresses are known; unicast frames for others are given up. */
#ifndef MAX_NEIGHBORS
#define MAX_NEIGHBORS 16
#endif

enum { LONGEST_SLEEP_S = 60 };
static const char boots_file[] = "boots";

static struct standalone mote;
static linkaddr_t neighbors[MAX_NEIGHBORS];
static size_t neighbor_count;

PROCESS(mote_process, "mote");
AUTOSTART_PROCESSES(&mote_process);

/* Clock: the ticks of rtimer wrap, so this must be called once in half of their range at least. */

static int64_t now_us(void)
{
    static rtimer_clock_t last;
    static uint64_t ticks;
    rtimer_clock_t now = RTIMER_NOW();
    ticks += (rtimer_clock_t)(now - last);
    last = now;
    return (int64_t)(ticks / RTIMER_SECOND * SECOND_US + ticks % RTIMER_SECOND * SECOND_US / RTIMER_SECOND);
}

static clock_time_t sleep_ticks(int64_t wait_us)
{
    uint64_t half_range = RTIMER_CLOCK_MAX / 2;
    bool is_wide = half_range / RTIMER_SECOND >= LONGEST_SLEEP_S;
    uint64_t longest_us = is_wide ? LONGEST_SLEEP_S * SECOND_US : half_range * SECOND_US / RTIMER_SECOND;
    uint64_t sleep_us = (uint64_t)wait_us < longest_us ? (uint64_t)wait_us : longest_us;
    /* Rounded up: a timer that expires too early would only be set again. */
    return (clock_time_t)((sleep_us * CLOCK_SECOND + SECOND_US - 1) / SECOND_US);
}

/* Addresses: a node's is the last two bytes of its link-layer address */

static uint16_t node_of(const linkaddr_t *address)
{
    return (uint16_t)(address->u8[LINKADDR_SIZE - 2] << 8 | address->u8[LINKADDR_SIZE - 1]);
}

static const linkaddr_t *find_neighbor(uint32_t node)
{
    for (size_t i = 0; i < neighbor_count; i++)
        if (node_of(&neighbors[i]) == node)
            return &neighbors[i];
    return NULL;
}

static void meet(const linkaddr_t *address)
{
    if (find_neighbor(node_of(address)) == NULL && neighbor_count < MAX_NEIGHBORS)
        linkaddr_copy(&neighbors[neighbor_count++], address);
}

/* Radio */

/* The MAC layer may call this before its `send` returns. MAC_TX_DEFERRED is not an outcome: another call follows. */
static void sent(void *flying, int status, int transmissions)
{
    (void)transmissions;
    if (flying == NULL || status == MAC_TX_DEFERRED)
        return;
    standalone_sent(flying, status == MAC_TX_OK);
    process_poll(&mote_process);
}

static void send_frame(uint32_t destination, const struct frame *frame, struct flying *flying)
{
    const linkaddr_t *receiver = destination == BROADCAST ? &linkaddr_null : find_neighbor(destination);
    size_t size = frame->head_size + frame->body_size;
    if (receiver == NULL || size > PACKETBUF_SIZE) {
        sent(flying, MAC_TX_ERR_FATAL, 0);
        return;
    }
    packetbuf_clear();
    memcpy(packetbuf_dataptr(), frame->head, frame->head_size);
    memcpy((uint8_t *)packetbuf_dataptr() + frame->head_size, frame->body, frame->body_size);
    packetbuf_set_datalen((uint16_t)size);
    packetbuf_set_addr(PACKETBUF_ADDR_RECEIVER, receiver);
    packetbuf_set_addr(PACKETBUF_ADDR_SENDER, &linkaddr_node_addr);
    NETSTACK_MAC.send(sent, flying);
}

/* Processes do not interrupt each other, and the MAC layer does not call this from `send`. */
static void receive(const void *data, uint16_t size, const linkaddr_t *sender, const linkaddr_t *destination)
{
    meet(sender);
    standalone_receive(&mote, data, size, node_of(sender), now_us(), linkaddr_cmp(destination, &linkaddr_null));
    process_poll(&mote_process); /* The process sets its timer again: a timer belongs to the process that sets it. */
}

/* Start */

static void print(const char *line)
{
    printf("%s\n", line);
}

/* Return the number of earlier starts, which a file counts; without a file system always 0. */
static unsigned count_boots(void)
{
    unsigned boots = 0;
    unsigned next;
    int file = cfs_open(boots_file, CFS_READ);
    if (file >= 0) {
        if (cfs_read(file, &boots, sizeof boots) != (int)sizeof boots)
            boots = 0;
        cfs_close(file);
    }
    file = cfs_open(boots_file, CFS_WRITE);
    if (file >= 0) {
        next = boots + 1;
        (void)cfs_write(file, &next, sizeof next);
        cfs_close(file);
    }
    return boots;
}

static void start(void)
{
    static const struct system calls = {send_frame, print};
    uint64_t seed = 0;
    for (int i = 0; i < 4; i++)
        seed = seed << 16 | random_rand();
    standalone_start(&mote, &calls, node_of(&linkaddr_node_addr), seed, now_us(), count_boots());
    nullnet_set_input_callback(receive);
}

PROCESS_THREAD(mote_process, ev, data)
{
    static struct etimer timer;
    PROCESS_BEGIN();
    start();
    for (;;) {
        etimer_set(&timer, sleep_ticks(standalone_step(&mote, now_us())));
        PROCESS_WAIT_EVENT();
        if (ev == serial_line_event_message)
            standalone_command(&mote, data, now_us());
    }
    PROCESS_END();
}

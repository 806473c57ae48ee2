/* A mote without a host as a thread of RIOT: the radio by GNRC's network interface, commands by the shell. It was compiled
 * against stubs of these calls only (tests/c/systems/riot), and never run there. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "msg.h"
#include "net/gnrc/netapi.h"
#include "net/gnrc/netif.h"
#include "net/gnrc/netif/hdr.h"
#include "net/gnrc/netreg.h"
#include "net/gnrc/pktbuf.h"
#include "net/netdev.h"
#include "net/netopt.h"
#include "random.h"
#include "shell.h"
#include "thread.h"
#include "vfs.h"
#include "vfs_default.h"
#include "ztimer.h"
#include "ztimer64.h"

#include "standalone.h"

enum { ALARM_MESSAGE = 0x5701, OUTCOME_MESSAGE, COMMAND_MESSAGE };
enum { SHORT_ADDRESS_B = 2, MAX_MESSAGES = 16, MAX_IN_RADIO = 16, LONGEST_SLEEP_US = 60 * SECOND_US };
static const char boots_file[] = VFS_DEFAULT_DATA "/boots";

static struct standalone mote;
static kernel_pid_t mote_pid = KERNEL_PID_UNDEF;
static gnrc_netif_t *radio;

static int64_t now_us(void)
{
    return (int64_t)ztimer64_now(ZTIMER64_USEC);
}

/* Outcomes: the radio's thread appends them in the order in which frames were passed to it, and this one takes them.
 * `in_radio` has the frames in the same order, with NULL for those without an outcome. */

static struct flying *in_radio[MAX_IN_RADIO];
static volatile bool outcomes[MAX_IN_RADIO];
static volatile unsigned settled;
static unsigned passed;
static unsigned taken;
static netdev_event_cb_t gnrc_callback;

/* Called in the radio's thread. A driver with `confirm_send` reports TX_COMPLETE in any case, and GNRC alone learns
 * whether the frame was acknowledged: then lost frames count as delivered here. */
static void radio_event(netdev_t *device, netdev_event_t event)
{
    gnrc_callback(device, event);
    if (event != NETDEV_EVENT_TX_COMPLETE && event != NETDEV_EVENT_TX_NOACK && event != NETDEV_EVENT_TX_MEDIUM_BUSY)
        return;
    outcomes[settled % MAX_IN_RADIO] = event == NETDEV_EVENT_TX_COMPLETE;
    settled++;
    msg_t message = {.type = OUTCOME_MESSAGE};
    (void)msg_try_send(&message, mote_pid); /* If the queue is full, the thread is awake anyway. */
}

static void take_outcomes(void)
{
    while (taken != passed && taken != settled) {
        struct flying *flying = in_radio[taken % MAX_IN_RADIO];
        bool is_delivered = outcomes[taken % MAX_IN_RADIO];
        taken++;
        if (flying != NULL)
            standalone_sent(flying, is_delivered);
    }
}

/* Radio */

/* Return a packet of a header for the interface and a frame, or NULL if the packet buffer is full. */
static gnrc_pktsnip_t *make_packet(uint32_t destination, const struct frame *frame)
{
    uint8_t address[SHORT_ADDRESS_B] = {(uint8_t)(destination >> 8), (uint8_t)destination};
    bool is_broadcast = destination == BROADCAST;
    gnrc_pktsnip_t *body = gnrc_pktbuf_add(NULL, frame->body, frame->body_size, GNRC_NETTYPE_UNDEF);
    if (body == NULL)
        return NULL;
    gnrc_pktsnip_t *whole = gnrc_pktbuf_add(body, frame->head, frame->head_size, GNRC_NETTYPE_UNDEF);
    gnrc_pktsnip_t *header = gnrc_netif_hdr_build(NULL, 0, is_broadcast ? NULL : address,
                                                  is_broadcast ? 0 : SHORT_ADDRESS_B);
    if (whole == NULL || header == NULL) {
        gnrc_pktbuf_release(whole != NULL ? whole : body);
        if (header != NULL)
            gnrc_pktbuf_release(header);
        return NULL;
    }
    if (is_broadcast)
        ((gnrc_netif_hdr_t *)header->data)->flags |= GNRC_NETIF_HDR_FLAGS_BROADCAST;
    header->next = whole;
    return header;
}

static void send_frame(uint32_t destination, const struct frame *frame, struct flying *flying)
{
    gnrc_pktsnip_t *packet = passed - taken < MAX_IN_RADIO ? make_packet(destination, frame) : NULL;
    bool is_passed = false;
    if (packet != NULL) {
        /* Before the call: the radio's thread may report the outcome before it returns. */
        in_radio[passed % MAX_IN_RADIO] = flying;
        passed++;
        is_passed = gnrc_netif_send(radio, packet) > 0;
        if (!is_passed) {
            passed--;
            gnrc_pktbuf_release(packet);
        }
    }
    if (!is_passed && flying != NULL)
        standalone_sent(flying, false);
}

static void receive(gnrc_pktsnip_t *packet)
{
    const gnrc_pktsnip_t *snip = gnrc_pktsnip_search_type(packet, GNRC_NETTYPE_NETIF);
    const gnrc_netif_hdr_t *header = snip != NULL ? snip->data : NULL;
    if (header != NULL && header->src_l2addr_len == SHORT_ADDRESS_B) {
        const uint8_t *address = gnrc_netif_hdr_get_src_addr(header);
        uint16_t sender = (uint16_t)(address[0] << 8 | address[1]);
        bool is_broadcast = (header->flags & GNRC_NETIF_HDR_FLAGS_BROADCAST) != 0;
        standalone_receive(&mote, packet->data, packet->size, sender, now_us(), is_broadcast);
    }
    gnrc_pktbuf_release(packet);
}

/* The node's thread */

static void print(const char *line)
{
    printf("%s\n", line);
}

/* Return the number of earlier starts, which a file counts; without a file system always 0. */
static unsigned count_boots(void)
{
    unsigned boots = 0;
    unsigned next;
    int file = vfs_open(boots_file, O_RDONLY, 0);
    if (file >= 0) {
        if (vfs_read(file, &boots, sizeof boots) != (ssize_t)sizeof boots)
            boots = 0;
        (void)vfs_close(file);
    }
    file = vfs_open(boots_file, O_WRONLY | O_CREAT | O_TRUNC, 0);
    if (file >= 0) {
        next = boots + 1;
        (void)vfs_write(file, &next, sizeof next);
        (void)vfs_close(file);
    }
    return boots;
}

/* Use short addresses, listen to the radio's frames and events, and start the node. */
static void start(void)
{
    static const struct system calls = {send_frame, print};
    static gnrc_netreg_entry_t entry;
    uint16_t address_B = SHORT_ADDRESS_B;
    uint8_t address[SHORT_ADDRESS_B] = {0};
    (void)gnrc_netapi_set(radio->pid, NETOPT_SRC_LEN, 0, &address_B, sizeof address_B);
    (void)gnrc_netapi_get(radio->pid, NETOPT_ADDRESS, 0, address, sizeof address);
    gnrc_callback = radio->dev->event_callback;
    radio->dev->event_callback = radio_event;
    gnrc_netreg_entry_init_pid(&entry, GNRC_NETREG_DEMUX_CTX_ALL, mote_pid);
    (void)gnrc_netreg_register(GNRC_NETTYPE_UNDEF, &entry);
    uint64_t seed = (uint64_t)random_uint32() << 32;
    seed |= random_uint32();
    standalone_start(&mote, &calls, (uint16_t)(address[0] << 8 | address[1]), seed, now_us(), count_boots());
}

static void set_alarm(int64_t wait_us)
{
    static ztimer_t timer;
    static msg_t message = {.type = ALARM_MESSAGE};
    uint32_t pause_us = wait_us < LONGEST_SLEEP_US ? (uint32_t)wait_us : LONGEST_SLEEP_US;
    ztimer_set_msg(ZTIMER_USEC, &timer, pause_us, &message, mote_pid); /* Setting a running timer moves it. */
}

static void *run(void *unused)
{
    static msg_t queue[MAX_MESSAGES];
    (void)unused;
    mote_pid = thread_getpid();
    msg_init_queue(queue, MAX_MESSAGES);
    start();
    for (;;) {
        msg_t message;
        take_outcomes();
        set_alarm(standalone_step(&mote, now_us()));
        msg_receive(&message);
        if (message.type == GNRC_NETAPI_MSG_TYPE_RCV)
            receive(message.content.ptr);
        if (message.type == COMMAND_MESSAGE) {
            standalone_command(&mote, message.content.ptr, now_us());
            msg_reply(&message, &message);
        }
    }
    return NULL;
}

/* Commands: the shell runs in the main thread, and the node's thread executes them */

static int pass_on(int count, char **words)
{
    char line[LONGEST_LINE];
    msg_t message = {.type = COMMAND_MESSAGE, .content = {.ptr = line}};
    msg_t reply;
    snprintf(line, sizeof line, "%s %s", words[0], count > 1 ? words[1] : "");
    msg_send_receive(&message, &reply, mote_pid);
    return 0;
}

static const shell_command_t commands[] = {
    {"subscribe", "print readings from this temperature on, in degrees Celsius", pass_on},
    {"publish", "publish a temperature in degrees Celsius", pass_on},
    {NULL, NULL, NULL},
};

int main(void)
{
    static char stack[THREAD_STACKSIZE_LARGE];
    static char line[LONGEST_LINE];
    radio = gnrc_netif_iter(NULL);
    if (radio == NULL) {
        puts("this board has no network interface");
        return 1;
    }
    (void)thread_create(stack, sizeof stack, THREAD_PRIORITY_MAIN - 1, 0, run, NULL, "mote");
    shell_run(commands, line, sizeof line);
    return 0;
}

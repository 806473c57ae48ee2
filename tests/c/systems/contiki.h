/* The calls of Contiki-NG that hardware/c/boards/contiki-ng uses, for tests without it: names, types and meaning follow
 * its headers, the text is our own. Headers, of github.com/contiki-ng/contiki-ng at these commits:
 *
 *     01809bb4  os/sys/process.h, etimer.h, rtimer.h; os/net/linkaddr.h, packetbuf.h, netstack.h; os/storage/cfs/cfs.h
 *     0f92c6eb  os/net/mac/mac.h
 *     1b2b043f  os/net/nullnet/nullnet.h, nullnet.c
 *     4ccd1a3b  os/lib/random.h
 *
 * The rtimer has 16 bits here, as on the smallest of its platforms. */
#ifndef CONTIKI_H_
#define CONTIKI_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Processes: stackless threads, which continue at the line after their last wait */

typedef uint8_t process_event_t;
typedef void *process_data_t;
struct pt {
    unsigned line;
};
struct process {
    struct process *next;
    const char *name;
    char (*thread)(struct pt *, process_event_t, process_data_t);
    struct pt pt;
    uint8_t state;
    bool needspoll;
};
#define PROCESS_EVENT_INIT 0x81
#define PROCESS_EVENT_POLL 0x82
#define PROCESS_EVENT_TIMER 0x88
#define PROCESS_THREAD(name, ev, data) \
    static char process_thread_##name(struct pt *process_pt, process_event_t ev, process_data_t data)
#define PROCESS(name, text) \
    PROCESS_THREAD(name, ev, data); \
    struct process name = {NULL, text, process_thread_##name, {0}, 0, 0}
#define AUTOSTART_PROCESSES(first) struct process *const autostart_processes[] = {first, NULL}
#define PROCESS_BEGIN() \
    (void)ev; \
    switch (process_pt->line) { \
    case 0:
#define PROCESS_WAIT_EVENT() \
    do { \
        process_pt->line = __LINE__; \
        return 1; \
    case __LINE__:; \
    } while (0)
#define PROCESS_END() \
    } \
    return 0
#define PROCESS_CURRENT() process_current
extern struct process *process_current;
extern struct process *const autostart_processes[];
void process_poll(struct process *p);

/* Time */

typedef unsigned long clock_time_t;
#define CLOCK_SECOND 128
struct etimer {
    clock_time_t expires;
    struct process *p;
};
void etimer_set(struct etimer *et, clock_time_t interval);

typedef uint16_t rtimer_clock_t;
#define RTIMER_CLOCK_MAX ((rtimer_clock_t)-1)
#define RTIMER_SECOND 32768
#define RTIMER_NOW() rtimer_arch_now()
rtimer_clock_t rtimer_arch_now(void);

/* Addresses, the packet buffer, the MAC layer, and the network layer that does nothing */

#define LINKADDR_SIZE 8
typedef union {
    unsigned char u8[LINKADDR_SIZE];
    uint16_t u16[LINKADDR_SIZE / 2];
} linkaddr_t;
extern linkaddr_t linkaddr_node_addr;
extern const linkaddr_t linkaddr_null;
void linkaddr_copy(linkaddr_t *dest, const linkaddr_t *from);
bool linkaddr_cmp(const linkaddr_t *addr1, const linkaddr_t *addr2);

#define PACKETBUF_SIZE 128
enum { PACKETBUF_ADDR_SENDER = 20, PACKETBUF_ADDR_RECEIVER };
void packetbuf_clear(void);
void *packetbuf_dataptr(void);
void packetbuf_set_datalen(uint16_t len);
void packetbuf_set_addr(uint8_t type, const linkaddr_t *addr);

typedef void (*mac_callback_t)(void *ptr, int status, int transmissions);
struct mac_driver {
    char *name;
    void (*init)(void);
    void (*send)(mac_callback_t sent_callback, void *ptr);
    void (*input)(void);
    int (*on)(void);
    int (*off)(void);
};
enum { MAC_TX_OK, MAC_TX_COLLISION, MAC_TX_NOACK, MAC_TX_DEFERRED, MAC_TX_ERR, MAC_TX_ERR_FATAL };
#define NETSTACK_MAC csma_driver
extern const struct mac_driver NETSTACK_MAC;

typedef void (*nullnet_input_callback)(const void *data, uint16_t len, const linkaddr_t *src, const linkaddr_t *dest);
void nullnet_set_input_callback(nullnet_input_callback callback);

/* Serial line, random numbers, files */

extern process_event_t serial_line_event_message;
unsigned short random_rand(void);
#define CFS_READ 1
#define CFS_WRITE 2
int cfs_open(const char *name, int flags);
void cfs_close(int fd);
int cfs_read(int fd, void *buf, unsigned int len);
int cfs_write(int fd, const void *buf, unsigned int len);

#endif

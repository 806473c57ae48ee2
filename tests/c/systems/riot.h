/* The calls of RIOT that hardware/c/boards/riot uses, for tests without it: names, types and meaning follow its headers,
 * the text is our own. Headers, of github.com/RIOT-OS/RIOT at these commits:
 *
 *     03b2e2ad  core/include/msg.h                     0b801c4d  sys/include/net/gnrc/netreg.h
 *     e8e8405c  core/include/thread_config.h           005831dc  sys/include/net/gnrc/netif/hdr.h
 *     2ecaaaa3  sys/include/vfs_default.h
 *
 * and, in stored versions without a commit, sys/include/{ztimer,ztimer64,shell,vfs,random}.h, net/gnrc/{netif,netapi,
 * pktbuf}.h, net/netdev.h and net/netopt.h. */
#ifndef RIOT_H
#define RIOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Threads and messages */

typedef int16_t kernel_pid_t;
#define KERNEL_PID_UNDEF 0
#define THREAD_PRIORITY_MAIN 7
#define THREAD_STACKSIZE_LARGE 65536
typedef void *(*thread_task_func_t)(void *arg);
kernel_pid_t thread_create(char *stack, int stacksize, uint8_t priority, int flags, thread_task_func_t task_func,
                           void *arg, const char *name);
kernel_pid_t thread_getpid(void);

typedef struct {
    kernel_pid_t sender_pid;
    uint16_t type;
    union {
        void *ptr;
        uint32_t value;
    } content;
} msg_t;
int msg_try_send(msg_t *m, kernel_pid_t target_pid);
int msg_receive(msg_t *m);
int msg_send_receive(msg_t *m, msg_t *reply, kernel_pid_t target_pid);
int msg_reply(msg_t *m, msg_t *reply);
void msg_init_queue(msg_t *array, int num);

/* Time and random numbers */

typedef struct {
    int unused;
} ztimer_clock_t;
typedef ztimer_clock_t ztimer64_clock_t;
typedef struct {
    int64_t due_us;
    msg_t *message;
} ztimer_t;
extern ztimer_clock_t *const ZTIMER_USEC;
extern ztimer64_clock_t *const ZTIMER64_USEC;
void ztimer_set_msg(ztimer_clock_t *clock, ztimer_t *timer, uint32_t offset, msg_t *msg, kernel_pid_t target_pid);
uint64_t ztimer64_now(ztimer64_clock_t *clock);
uint32_t random_uint32(void);

/* Packets, the network interface and its device */

typedef enum { GNRC_NETTYPE_NETIF = -1, GNRC_NETTYPE_UNDEF = 0 } gnrc_nettype_t;
typedef struct gnrc_pktsnip {
    struct gnrc_pktsnip *next;
    void *data;
    size_t size;
    unsigned int users;
    gnrc_nettype_t type;
} gnrc_pktsnip_t;
gnrc_pktsnip_t *gnrc_pktbuf_add(gnrc_pktsnip_t *next, const void *data, size_t size, gnrc_nettype_t type);
void gnrc_pktbuf_release(gnrc_pktsnip_t *pkt);
gnrc_pktsnip_t *gnrc_pktsnip_search_type(gnrc_pktsnip_t *pkt, gnrc_nettype_t type);

typedef enum {
    NETDEV_EVENT_ISR,
    NETDEV_EVENT_TX_COMPLETE,
    NETDEV_EVENT_TX_NOACK,
    NETDEV_EVENT_TX_MEDIUM_BUSY
} netdev_event_t;
typedef struct netdev netdev_t;
typedef void (*netdev_event_cb_t)(netdev_t *dev, netdev_event_t event);
struct netdev {
    netdev_event_cb_t event_callback;
    void *context;
};

typedef struct {
    netdev_t *dev;
    kernel_pid_t pid;
} gnrc_netif_t;
gnrc_netif_t *gnrc_netif_iter(const gnrc_netif_t *prev);
int gnrc_netif_send(gnrc_netif_t *netif, gnrc_pktsnip_t *pkt);

#define GNRC_NETIF_HDR_FLAGS_BROADCAST (0x80)
typedef struct {
    uint8_t src_l2addr_len;
    uint8_t dst_l2addr_len;
    kernel_pid_t if_pid;
    uint8_t flags;
    uint8_t lqi;
    int16_t rssi;
} gnrc_netif_hdr_t;
gnrc_pktsnip_t *gnrc_netif_hdr_build(const uint8_t *src, uint8_t src_len, const uint8_t *dst, uint8_t dst_len);
uint8_t *gnrc_netif_hdr_get_src_addr(const gnrc_netif_hdr_t *hdr);

#define GNRC_NETAPI_MSG_TYPE_RCV (0x0201)
typedef enum { NETOPT_ADDRESS, NETOPT_SRC_LEN } netopt_t;
int gnrc_netapi_get(kernel_pid_t pid, netopt_t opt, uint16_t context, void *data, size_t max_len);
int gnrc_netapi_set(kernel_pid_t pid, netopt_t opt, uint16_t context, const void *data, size_t data_len);

#define GNRC_NETREG_DEMUX_CTX_ALL (0xffff0000)
typedef struct gnrc_netreg_entry {
    struct gnrc_netreg_entry *next;
    uint32_t demux_ctx;
    union {
        kernel_pid_t pid;
    } target;
} gnrc_netreg_entry_t;
void gnrc_netreg_entry_init_pid(gnrc_netreg_entry_t *entry, uint32_t demux_ctx, kernel_pid_t pid);
int gnrc_netreg_register(gnrc_nettype_t type, gnrc_netreg_entry_t *entry);

/* The shell, and files */

typedef int (*shell_command_handler_t)(int argc, char **argv);
typedef struct {
    const char *name;
    const char *desc;
    shell_command_handler_t handler;
} shell_command_t;
void shell_run(const shell_command_t *commands, char *line_buf, int len);

#define VFS_DEFAULT_DATA "/nvm0"
int vfs_open(const char *name, int flags, mode_t mode);
int vfs_close(int fd);
ssize_t vfs_read(int fd, void *dest, size_t count);
ssize_t vfs_write(int fd, const void *src, size_t count);

#endif

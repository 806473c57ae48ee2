/* A mote in C that is a process of this machine: its line is a TCP port on loopback, which hosts share as they would share
 * a wire. `hardware/mote/boards/process.py` is the same in Python.
 *
 *     process [PORT [BOOT [SPEED]]]      PORT 0: any port; it prints which. SPEED: of its clock, in millionths of time's */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "mote.h"

enum { MOST_HOSTS = 8, LISTENER = 0, READ_B = 4096 };

/* The first is where hosts knock; those behind it are theirs. */
struct line {
    uint32_t speed_ppm;
    nfds_t count;
    struct pollfd sockets[1 + MOST_HOSTS];
};

static int64_t now_us(void *context)
{
    const struct line *line = context;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return mote_clock_us((int64_t)now.tv_sec * SECOND_US + now.tv_nsec / 1000, line->speed_ppm);
}

static int64_t used_B(void *context)
{
    (void)context;
    return sizeof(struct mote);
}

static void hang_up(struct line *line, nfds_t place)
{
    close(line->sockets[place].fd);
    line->count--;
    line->sockets[place] = line->sockets[line->count];
}

static bool write_all(int socket, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = send(socket, bytes, size, MSG_NOSIGNAL);
        if (written <= 0)
            return false;
        bytes += written;
        size -= (size_t)written;
    }
    return true;
}

/* Bytes to the hosts; gone if nobody listens, as on any line. */
static void write_line(void *context, const uint8_t *bytes, size_t size)
{
    struct line *line = context;
    for (nfds_t i = line->count; i > LISTENER + 1; i--)
        if (!write_all(line->sockets[i - 1].fd, bytes, size))
            hang_up(line, i - 1);
}

/* A process that is reset ends; whoever started it starts it again. */
static void reset(void *context)
{
    (void)context;
    exit(0);
}

static int fail(const char *what)
{
    perror(what);
    return 1;
}

static int listen_on(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t size = sizeof address;
    int on = 1;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listener < 0)
        return -1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, size) < 0 || listen(listener, 1) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) < 0)
        return -1;
    printf("%u\n", (unsigned)ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

static void let_in(struct line *line)
{
    int on = 1;
    int host = accept(line->sockets[LISTENER].fd, NULL, NULL);
    if (host < 0)
        return;
    if (line->count > MOST_HOSTS)
        hang_up(line, line->count - 1);
    /* Messages are small and wanted at once: Nagle's algorithm would hold them back for 40 ms. */
    setsockopt(host, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    /* A host that does not read must not hold up the mote: it is hung up. */
    fcntl(host, F_SETFL, O_NONBLOCK);
    line->sockets[line->count++] = (struct pollfd){.fd = host, .events = POLLIN};
}

static void hear(struct mote *mote, struct line *line, nfds_t place)
{
    uint8_t bytes[READ_B];
    ssize_t size = recv(line->sockets[place].fd, bytes, sizeof bytes, 0);
    if (size > 0)
        mote_feed(mote, bytes, (size_t)size);
    else
        hang_up(line, place);
}

/* Wait for the line, or until the mote has something to do. */
static void serve(struct mote *mote, struct line *line)
{
    int wait_ms = (mote_pause_us(mote_step(mote), line->speed_ppm) + 999) / 1000;
    if (poll(line->sockets, line->count, wait_ms) <= 0)
        return;
    if (line->sockets[LISTENER].revents != 0) {
        let_in(line);
        return;
    }
    for (nfds_t i = LISTENER + 1; i < line->count; i++)
        if (line->sockets[i].revents != 0) {
            hear(mote, line, i);
            return; /* It may have hung up, and moved another to its place. */
        }
}

int main(int count, char **arguments)
{
    static struct mote mote;
    static struct line line;
    int listener = listen_on(count > 1 ? (uint16_t)strtoul(arguments[1], NULL, 10) : 0);
    if (listener < 0)
        return fail("process");
    line.sockets[LISTENER] = (struct pollfd){.fd = listener, .events = POLLIN};
    line.count = 1;
    line.speed_ppm = count > 3 ? (uint32_t)strtoul(arguments[3], NULL, 10) : REAL_TIME_PPM;
    if (line.speed_ppm == 0)
        line.speed_ppm = REAL_TIME_PPM;
    uint32_t boot = count > 2 ? (uint32_t)strtoul(arguments[2], NULL, 10) : 0;
    const struct board board = {&line, "C process", boot, now_us, used_B, write_line, NULL, reset, NULL};
    mote_start(&mote, &board);
    for (;;)
        serve(&mote, &line);
}

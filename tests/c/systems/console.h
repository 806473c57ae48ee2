/* The lines by which a test drives a mote on the stub of an operating system, and plays its radio and clock.
 *
 *     time US                           set the clock
 *     frame SENDER BROADCAST HEX        the radio receives a frame
 *     outcome OK                        the radio reports the outcome of the oldest frame: 1 delivered, 0 given up
 *     refuse                            the radio gives up the next frame before the call that sends it returns
 *     line TEXT                         the UART receives a line
 *
 * The mote's own lines, and lines "send DESTINATION HEX" (-1: everybody), follow each of them, and "alarm US" ends them. */
#ifndef CONSOLE_H
#define CONSOLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONSOLE_LINE_B = 512, CONSOLE_FRAME_B = 128 };

static int64_t console_now_us;

/* End the program if the mote breaks a rule of the operating system. */
#define REQUIRE(condition) \
    do { \
        if (!(condition)) { \
            printf("broken: %s\n", #condition); \
            exit(1); \
        } \
    } while (0)

/* Read a line without its end; return NULL at the end of the input. */
static char *console_read(char *line)
{
    if (fgets(line, CONSOLE_LINE_B, stdin) == NULL)
        return NULL;
    line[strcspn(line, "\n")] = '\0';
    return line;
}

static size_t console_bytes(const char *hex, uint8_t *bytes)
{
    size_t size = strlen(hex) / 2;
    REQUIRE(size <= CONSOLE_FRAME_B);
    for (size_t i = 0; i < size; i++) {
        char digits[] = {hex[2 * i], hex[2 * i + 1], '\0'};
        bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return size;
}

static void console_send(long destination, const uint8_t *bytes, size_t size)
{
    printf("send %ld ", destination);
    for (size_t i = 0; i < size; i++)
        printf("%02x", bytes[i]);
    printf("\n");
}

/* Play a line of the radio or the clock; return false for a line of the UART. */
static bool console_play(const char *line, void (*hear)(const char *), void (*settle)(bool), bool *is_refusing)
{
    if (strncmp(line, "time ", 5) == 0)
        console_now_us = strtoll(line + 5, NULL, 10);
    else if (strncmp(line, "frame ", 6) == 0)
        hear(line + 6);
    else if (strncmp(line, "outcome ", 8) == 0)
        settle(line[8] == '1');
    else if (strcmp(line, "refuse") == 0)
        *is_refusing = true;
    else
        return false;
    return true;
}

static void console_end(int64_t alarm_us)
{
    printf("alarm %lld\n", (long long)alarm_us);
    fflush(stdout);
}

#endif

/* A Bloom filter of KIB kibibytes behind HTTP: bloom PORT KIB. Each request inserts 10,000 numbers, each at four places, and is answered when
   that is done. It is no web server, only a loop that is timed from outside. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { INSERTS = 10000, PLACES = 4, CLIENTS = 64 };

static uint64_t state = 88172645463325252u;

/* xorshift64 (Marsaglia 2003): the numbers that are inserted. */
static uint64_t next_number(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* The places of a number are its two halves, combined (Kirsch and Mitzenmacher 2006). */
static void insert_all(uint8_t *filter, uint64_t bits) {
    for (int n = 0; n < INSERTS; n++) {
        uint64_t number = next_number(), step = number >> 32 | 1;
        for (int place = 0; place < PLACES; place++) {
            uint64_t bit = (uint64_t)((unsigned __int128)number * bits >> 64);
            filter[bit >> 3] |= (uint8_t)(1u << (bit & 7));
            number += step * 0x9E3779B97F4A7C15u;
        }
    }
}

int main(int argc, char **argv) {
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n10000\n";
    if (argc != 3) {
        fprintf(stderr, "usage: bloom PORT KIB\n");
        return 2;
    }
    uint64_t bytes = strtoull(argv[2], NULL, 10) * 1024;
    uint8_t *filter = calloc(bytes, 1);
    if (!filter || bytes == 0) {
        fprintf(stderr, "bloom: no memory for %s KiB\n", argv[2]);
        return 1;
    }
    memset(filter, 0, bytes);
    struct pollfd all[CLIENTS + 1] = {{.fd = socket(AF_INET, SOCK_STREAM, 0), .events = POLLIN}};
    int one = 1, open = 1;
    setsockopt(all[0].fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(all[0].fd, (struct sockaddr *)&at, sizeof at) || listen(all[0].fd, 128)) {
        perror("bloom");
        return 1;
    }
    for (;;) {
        poll(all, (nfds_t)open, -1);
        for (int n = open - 1; n > 0; n--) {
            char request[4096];
            if (!(all[n].revents & (POLLIN | POLLHUP | POLLERR)))
                continue;
            if (read(all[n].fd, request, sizeof request) <= 0) {
                close(all[n].fd);
                all[n] = all[--open];
                continue;
            }
            insert_all(filter, bytes * 8);
            if (write(all[n].fd, answer, sizeof answer - 1) < 0)
                perror("bloom");
        }
        if (all[0].revents & POLLIN && open <= CLIENTS) {
            int client = accept(all[0].fd, NULL, NULL);
            if (client >= 0) {
                setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                all[open++] = (struct pollfd){.fd = client, .events = POLLIN};
            }
        }
    }
}

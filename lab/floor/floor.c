// The floor: the least that a single-threaded HTTP server on epoll can do for a response of a given size.
//
// It parses nothing. Each "\r\n\r\n" that arrives is taken for the end of a request and answered with the same bytes; pipelined
// requests that arrive together are answered together. What a real server spends above this is what its work costs.
//
//   floor PORT FILE             answers with the file's bytes, head and all
//   floor PORT HEAD BODY        answers with a head of about HEAD bytes and a body of BODY bytes
//   floor PORT HEAD BODY WORK   and hashes WORK times for each request: a server whose cost is known
//   floor -n COPIES PORT ...    and takes one of so many copies of the response at random for each request, as who serves many
//                               files must: they fill the caches of the core. For clients that wait for each answer.
//
// PORT 0 takes a free one; the port is printed. Level-triggered, TCP_NODELAY, SO_REUSEPORT, loopback only.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_FD = 65536, READ_BYTES = 65536, EVENTS = 512 };

// `owed` is what is left to send, in bytes; `matched` is how much of "\r\n\r\n" the input ended with.
struct connection {
    size_t owed;
    unsigned char matched;
    unsigned char waits_to_write;
};

static struct connection connections[MAX_FD];
// The response many times over, so that pipelined answers are one write.
static char *answers;
static size_t answer_bytes, answers_bytes;
// How many copies one is taken from at random for each request; 0: all requests that came together have the same one.
static size_t copies;
// Rounds of work for each request.
static unsigned long work;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) die(path);
    long size = ftell(file);
    rewind(file);
    char *bytes = malloc(size > 0 ? size : 1);
    if (size <= 0 || !bytes || fread(bytes, 1, size, file) != (size_t)size) die(path);
    fclose(file);
    *length = size;
    return bytes;
}

static char *make_response(size_t head, size_t body, size_t *length) {
    char *bytes = malloc(head + body + 256);
    if (!bytes) die("malloc");
    size_t at = sprintf(bytes, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %zu\r\n", body);
    // "X: " "\r\n" "\r\n" are seven bytes; the rest of the head is padding.
    if (at + 7 < head) {
        memcpy(bytes + at, "X: ", 3);
        memset(bytes + at + 3, 'x', head - at - 7);
        at = head - 4;
        memcpy(bytes + at, "\r\n", 2);
        at += 2;
    }
    memcpy(bytes + at, "\r\n", 2);
    memset(bytes + at + 2, 'b', body);
    *length = at + 2 + body;
    return bytes;
}

static void prepare_answers(const char *response) {
    size_t all = copies ? copies : READ_BYTES / answer_bytes + 2;
    answers_bytes = all * answer_bytes;
    answers = malloc(answers_bytes);
    if (!answers) die("malloc");
    for (size_t i = 0; i < all; i++) memcpy(answers + i * answer_bytes, response, answer_bytes);
}

static int listen_on(int port) {
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof at;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) || bind(fd, (struct sockaddr *)&at, length) ||
        listen(fd, 4096) || getsockname(fd, (struct sockaddr *)&at, &length))
        die("listen");
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    return fd;
}

static void watch(int epoll, int operation, int fd, unsigned events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    if (epoll_ctl(epoll, operation, fd, &event)) die("epoll_ctl");
}

static void accept_all(int epoll, int listener) {
    int on = 1, fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (fd >= MAX_FD) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        connections[fd] = (struct connection){0};
        watch(epoll, EPOLL_CTL_ADD, fd, EPOLLIN);
    }
}

static size_t count_requests(struct connection *connection, const char *bytes, size_t length) {
    size_t requests = 0;
    unsigned matched = connection->matched;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == "\r\n\r\n"[matched]) {
            if (++matched == 4) requests++, matched = 0;
        } else {
            matched = bytes[i] == '\r';
        }
    }
    connection->matched = matched;
    return requests;
}

// Each round needs the one before (MurmurHash3's finaliser), so that time goes with their number.
static void do_work(size_t requests) {
    static volatile unsigned long result;
    unsigned long hash = result + 1;
    for (unsigned long rounds = requests * work; rounds; rounds--) hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdUL;
    result = hash;
}

// Where one of the copies begins (xorshift64; Marsaglia 2003).
static size_t pick_copy(void) {
    static unsigned long state = 88172645463325252UL;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % copies * answer_bytes;
}

// False when the connection is over.
static int flush_owed(int epoll, int fd, struct connection *connection) {
    while (connection->owed) {
        // Within a response the write goes on where the last one stopped; the copies are all the same.
        size_t from = (answer_bytes - connection->owed % answer_bytes) % answer_bytes;
        size_t length = answers_bytes - from < connection->owed ? answers_bytes - from : connection->owed;
        if (copies) {
            length = answer_bytes - from;
            from += pick_copy();
        }
        ssize_t sent = send(fd, answers + from, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) break;
        if (sent < 0) return 0;
        connection->owed -= sent;
    }
    // Who does not read its answers is not read from either.
    if (connection->waits_to_write != (connection->owed > 0)) {
        connection->waits_to_write = connection->owed > 0;
        watch(epoll, EPOLL_CTL_MOD, fd, connection->waits_to_write ? EPOLLOUT : EPOLLIN);
    }
    return 1;
}

static int serve(int epoll, int fd, unsigned events) {
    static char input[READ_BYTES];
    struct connection *connection = &connections[fd];
    if ((events & EPOLLIN) && !connection->waits_to_write) {
        ssize_t length = recv(fd, input, sizeof input, 0);
        if (length < 0 && errno == EAGAIN) return 1;
        if (length <= 0) return 0;
        size_t requests = count_requests(connection, input, length);
        do_work(requests);
        connection->owed += requests * answer_bytes;
    } else if (events & (EPOLLERR | EPOLLHUP)) {
        return 0;
    }
    return flush_owed(epoll, fd, connection);
}

int main(int count, char **arguments) {
    const char *name = arguments[0];
    if (count > 2 && !strcmp(arguments[1], "-n")) {
        copies = strtoul(arguments[2], NULL, 10);
        arguments += 2;
        count -= 2;
        if (!copies) count = 0;
    }
    if (count < 3 || count > 5) {
        fprintf(stderr, "usage: %s [-n COPIES] PORT FILE | PORT HEAD_BYTES BODY_BYTES [WORK]\n", name);
        return 2;
    }
    char *response = count == 3 ? read_file(arguments[2], &answer_bytes)
                                : make_response(strtoul(arguments[2], NULL, 10), strtoul(arguments[3], NULL, 10), &answer_bytes);
    if (count == 5) work = strtoul(arguments[4], NULL, 10);
    prepare_answers(response);
    int listener = listen_on(atoi(arguments[1]));
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) die("epoll_create1");
    watch(epoll, EPOLL_CTL_ADD, listener, EPOLLIN);
    for (;;) {
        static struct epoll_event events[EVENTS];
        int ready = epoll_wait(epoll, events, EVENTS, -1);
        if (ready < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) accept_all(epoll, listener);
            else if (!serve(epoll, fd, events[i].events)) close(fd);
        }
    }
}

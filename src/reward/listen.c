/* listen.c - the socket that the service listens at.
 *
 *   unix:PATH            a file that its owner alone may open; one that a killed service left is
 *                        replaced, one that answers is another service
 *   PORT, ADDRESS:PORT   a number, IPv4 or [IPv6]; loopback unless an address says otherwise
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "reward/reward_impl.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 512

static kl_err in_use(const char *spec, kl_error *e) {
    kl_fail(e, KL_EBUSY, spec, "another program listens there");
    return kl_hint(e, "another --listen, such as 127.0.0.1:0 for any free port");
}

/* ---- a file ----------------------------------------------------------------------------- */

static bool answers(const struct sockaddr_un *at) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool yes = fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof *at) == 0;
    if (fd >= 0) close(fd);
    return yes;
}

static bool is_socket(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

static kl_err listen_file(int *out, const char *path, kl_error *e) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (!*path || strlen(path) >= sizeof at.sun_path)
        return kl_fail(e, KL_EINVAL, path, "a path of 1 to %zu bytes", sizeof at.sun_path - 1);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    if (answers(&at)) return in_use(path, e);
    if (is_socket(path)) unlink(path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const mode_t before = umask(0177);
    const bool ok = fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof at) == 0 &&
                    listen(fd, BACKLOG) == 0;
    const int why = errno;
    umask(before);
    if (!ok && fd >= 0) close(fd);
    *out = fd;
    return ok ? KL_OK : kl_fail(e, KL_EIO, path, "cannot listen there: %s", strerror(why));
}

/* ---- an address ------------------------------------------------------------------------- */

static kl_err split_address(char *host, char *port, size_t room, const char *spec, kl_error *e) {
    const char *colon = strrchr(spec, ':');
    size_t n = colon ? (size_t)(colon - spec) : 0;
    const char *from = spec;
    if (n > 1 && spec[0] == '[' && spec[n - 1] == ']') from++, n -= 2;
    const char *number = colon ? colon + 1 : spec;
    char *end = NULL;
    const unsigned long value = strtoul(number, &end, 10);
    if (!*number || *end || value > 65535 || n >= room || strspn(number, "0123456789") > 5) {
        kl_fail(e, KL_EINVAL, NULL, "--listen %s is no address", spec);
        return kl_hint(e, "unix:PATH, PORT, or ADDRESS:PORT such as " KLI_REWARD_LISTEN);
    }
    snprintf(host, room, "%.*s", n ? (int)n : 9, n ? from : "127.0.0.1");
    if (strcmp(host, "localhost") == 0) snprintf(host, room, "127.0.0.1");
    snprintf(port, 16, "%lu", value);
    return KL_OK;
}

static bool is_this_machine(const struct sockaddr *at) {
    if (at->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)at;
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *v6 = (const void *)at;
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static kl_err bind_to(int *out, const struct addrinfo *at, const char *spec, kl_error *e) {
    const int one = 1;
    const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    *out = fd;
    if (fd >= 0 && bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return KL_OK;
    const int why = errno;
    if (fd >= 0) close(fd);
    return why == EADDRINUSE ? in_use(spec, e)
                             : kl_fail(e, KL_EIO, spec, "cannot listen there: %s", strerror(why));
}

static void show(kl_str *shown, kl_arena *a, int fd) {
    struct sockaddr_storage at;
    socklen_t n = sizeof at;
    char host[80] = "?", port[16] = "?";
    (void)getsockname(fd, (struct sockaddr *)&at, &n);
    (void)getnameinfo((struct sockaddr *)&at, n, host, sizeof host, port, sizeof port,
                      NI_NUMERICHOST | NI_NUMERICSERV);
    *shown = kl_arena_printf(a, at.ss_family == AF_INET6 ? "http://[%s]:%s" : "http://%s:%s", host,
                             port);
}

kl_err kli_reward_listen(int *fd, bool *beyond, bool *local_socket, kl_str *shown, kl_arena *a,
                         const char *spec, kl_error *e) {
    char host[80], port[16];
    struct addrinfo *found = NULL;
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM,
                                    .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    *fd = -1;
    *local_socket = strncmp(spec, "unix:", 5) == 0;
    *beyond = false;
    *shown = kl_str_of(spec);
    if (*local_socket) return listen_file(fd, spec + 5, e);
    kl_err err = split_address(host, port, sizeof host, spec, e);
    if (err) return err;
    if (getaddrinfo(host, port, &wanted, &found)) {
        kl_fail(e, KL_EINVAL, NULL, "--listen %s: %s is no address in numbers", spec, host);
        return kl_hint(e, "names are not looked up: 127.0.0.1:8766, 0.0.0.0:8766, [::1]:8766");
    }
    *beyond = !is_this_machine(found->ai_addr);
    err = bind_to(fd, found, spec, e);
    freeaddrinfo(found);
    if (!err) show(shown, a, *fd);
    return err;
}

/* server.h - a PostgreSQL server for the tests of this process: tests/kit/postgresql.py, which ends
 * when its input does.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_STORE_SERVER_H
#define KL_STORE_SERVER_H
#include "kit/kit.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
    FILE *to, *from;
    int databases;
} server;

/* What it answers to one line. */
static inline const char *server_ask(kl_arena *a, const char *line) {
    char answer[4096] = "";
    fprintf(server.to, "%s\n", line);
    fflush(server.to);
    assert_non_null(fgets(answer, sizeof answer, server.from));
    answer[strcspn(answer, "\n")] = '\0';
    return kl_arena_copy(a, kl_str_of(answer)).ptr;
}

/* False where there is none, which it says itself. */
static inline bool server_start(void) {
    int ends[2];
    char line[256] = "";
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return false;
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execlp("python3", "python3", KL_TEST_ROOT "/tests/kit/postgresql.py", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    server.to = fdopen(ends[0], "w");
    server.from = fdopen(dup(ends[0]), "r");
    if (fgets(line, sizeof line, server.from) && strcmp(line, "ready\n") == 0) return true;
    fprintf(stderr, "%s", line);
    return false;
}

/* The URL of a fresh one. */
static inline const char *server_database(kl_arena *a) {
    const char *url = server_ask(a, kl_arena_printf(a, "database test%d", ++server.databases).ptr);
    assert_contains(url, "postgresql://");
    return url;
}

#endif

/* server.c - see server.h.  SPDX-License-Identifier: Apache-2.0 */
#include "kit/server.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
    FILE *to, *from;
    char ready[256];
} server;

static void be_script(int end, const char *script, const char *const *words) {
    const char *argv[8] = {
        "python3", kl_arena_printf(kl_arena_new(), "%s/tests/kit/%s", KL_TEST_ROOT, script).ptr};
    for (int i = 0; words && words[i] && i < 5; i++) argv[i + 2] = words[i];
    dup2(end, STDIN_FILENO);
    dup2(end, STDOUT_FILENO);
    close(end);
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

bool kit_server_start(const char *script, const char *const *words) {
    int ends[2];
    char line[sizeof server.ready] = "";
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return false;
    if (fork() == 0) be_script(ends[1], script, words);
    close(ends[1]);
    server.to = fdopen(ends[0], "w");
    server.from = fdopen(fcntl(ends[0], F_DUPFD_CLOEXEC, 0), "r");
    const bool there = fgets(line, sizeof line, server.from) && strncmp(line, "ready", 5) == 0;
    line[strcspn(line, "\n")] = '\0';
    if (!there) fprintf(stderr, "%s: %s\n", script, line);
    if (there) snprintf(server.ready, sizeof server.ready, "%s", line[5] ? line + 6 : "");
    return there;
}

const char *kit_server_ready(void) { return server.ready; }

const char *kit_server_ask(const char *line) {
    char answer[4096] = "";
    fprintf(server.to, "%s\n", line);
    fflush(server.to);
    assert_non_null(fgets(answer, sizeof answer, server.from));
    answer[strcspn(answer, "\n")] = '\0';
    return kl_arena_copy(arena, kl_str_of(answer)).ptr;
}

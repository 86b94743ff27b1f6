/* isolation_probe.c - what confines a process here: each means is tried for real in a child.
 * SPDX-License-Identifier: Apache-2.0 */
#include "isolation.h"
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HAS_SECCOMP = 1, HAS_LANDLOCK = 2, HAS_NAMESPACES = 4, HAS_USER = 8, HAS_LIMITS = 16 };

static int try_everything(int ruleset, const kli_filter *filter) {
    int found = 0;
    if (unshare(kli_namespace_flags()) == 0) found |= HAS_NAMESPACES;
    if (kli_set_limit(RLIMIT_CORE, 0) && kli_set_limit(RLIMIT_CPU, KL_COMPILE_SECONDS))
        found |= HAS_LIMITS;
    if (kli_become_nobody()) found |= HAS_USER;
    if (kli_landlock_enter(ruleset)) found |= HAS_LANDLOCK;
    if (kli_filter_enter(filter)) found |= HAS_SECCOMP;
    return found;
}

void kli_isolation_probe(kl_isolation *out) {
    static const char *const readable[] = {"/usr", NULL};
    kli_filter filter;
    int status = 0, ruleset = kli_landlock_ruleset(readable, NULL);
    *out = (kl_isolation){0};
    (void)kli_filter_build(&filter, KLI_FILTER_KERNEL);
    pid_t child = fork();
    /* Not _exit: a sanitizer wraps it in calls that the filter does not know. */
    if (child == 0) (void)syscall(SYS_exit_group, try_everything(ruleset, &filter));
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    int found = child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    *out = (kl_isolation){.seccomp = found & HAS_SECCOMP,
                          .landlock = found & HAS_LANDLOCK,
                          .namespaces = found & HAS_NAMESPACES,
                          .user_switch = found & HAS_USER,
                          .rlimits = found & HAS_LIMITS};
    if (out->landlock) out->landlock_abi = kli_landlock_abi();
    if (ruleset >= 0) close(ruleset);
    kli_filter_fini(&filter);
}

const char *kli_isolation_text(const kl_isolation *i, char *buf, size_t n) {
    char landlock[32] = "";
    if (i->landlock) snprintf(landlock, sizeof landlock, "+landlock%d", i->landlock_abi);
    snprintf(buf, n, "%s%s%s%s%s", i->seccomp ? "+seccomp" : "", landlock,
             i->namespaces ? "+ns" : "", i->user_switch ? "+nobody" : "",
             i->rlimits ? "+rlimits" : "");
    if (buf[0] == '+') memmove(buf, buf + 1, strlen(buf));
    if (!buf[0]) snprintf(buf, n, "none");
    return buf;
}

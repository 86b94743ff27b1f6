/* ssh.c - executor ssh: a host that ssh reaches, whose worker judges.
 *
 *   ssh:HOST[:DIR]   DIR there is a spool; here is one of its own under klineage's cache, and
 *                    klineage-worker --carry keeps the two alike (carrier.c)
 *
 * So this is a spool with somebody who carries: poll starts that process where none runs, and says
 * what it says when it gives up.  Many tracks share one spool and one carrier a host.
 * SPDX-License-Identifier: Apache-2.0 */
#include "executors.h"

#include "base/fs.h"
#include "base/hash.h"
#include "carrier.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_NS INT64_C(1000000000) /* between two starts of a carrier */

typedef struct {
    const char *host, *remote, *spool, *lock, *error;
    int64_t started_ns;
    pid_t carrier; /* 0: another process's, or none */
} ssh_executor;

static bool ssh_is_plain(kl_str text, const char *also) {
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];
        const bool letter =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && !strchr(also, c)) return false;
    }
    return text.len > 0 && text.ptr[0] != '-';
}

static kl_err ssh_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    const kl_str host = {rest, strcspn(rest, ":")};
    const kl_str remote = rest[host.len] ? kl_str_of(rest + host.len + 1) : KL_S("klineage-spool");
    if (!ssh_is_plain(host, "._-@") || !ssh_is_plain(remote, "._-/+"))
        return kl_fail(e, KL_EINVAL, NULL,
                       "executor ssh needs a host, and may name a folder there: ssh:HOST[:DIR]; "
                       "both of letters, digits and ._-");
    const kl_str parts[] = {KL_S("klineage/ssh/1"), host, remote};
    ssh_executor *s = KL_NEW(a, ssh_executor);
    *s = (ssh_executor){.host = kl_arena_copy(a, host).ptr, .remote = kl_arena_copy(a, remote).ptr};
    s->spool = kl_arena_printf(a, "%s/ssh/%.16s", kl_fs_cache_dir(a).ptr,
                               kli_hash_parts(parts, KL_COUNT(parts)).hex)
                   .ptr;
    s->lock = kli_fs_join(a, s->spool, KLI_CARRIER_LOCK).ptr;
    s->error = kli_fs_join(a, s->spool, KLI_CARRIER_ERROR).ptr;
    *self = s;
    const kl_err err = kli_fs_mkdirs(s->spool, e);
    (void)unlink(s->error); /* of another day */
    return err;
}

static void ssh_close(void *self) {
    const ssh_executor *s = self;
    if (!s->carrier) return;
    kill(s->carrier, SIGTERM); /* whoever else waits starts the next one */
    waitpid(s->carrier, NULL, 0);
}

/* ---- the carrier ------------------------------------------------------------------------- */

static bool is_carried(const ssh_executor *s) {
    const int lock = open(s->lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const bool held = lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    if (lock >= 0) close(lock);
    return held;
}

static void be_carrier(const ssh_executor *s, const char *worker, pid_t starter) {
    const int log = open("/dev/null", O_RDWR | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != starter) _exit(1);
    (void)setpgid(0, 0);
    dup2(log, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execl(worker, worker, "--carry", s->spool, s->host, s->remote, (char *)NULL);
    _exit(127);
}

static void start_carrier(ssh_executor *s) {
    if (s->carrier && waitpid(s->carrier, NULL, WNOHANG) == s->carrier) s->carrier = 0;
    if (s->carrier || kli_now_ns() - s->started_ns < START_NS || is_carried(s)) return;
    kl_arena *a = kl_arena_new();
    const char *worker = kli_fs_find_part(a, "klineage-worker").ptr;
    const pid_t me = getpid();
    s->started_ns = kli_now_ns();
    s->carrier = fork();
    if (s->carrier == 0) be_carrier(s, worker, me);
    if (s->carrier < 0) s->carrier = 0;
    kl_arena_free(a);
}

/* What the last one said when it gave up. */
static kl_err gave_up(const ssh_executor *s, kl_error *e) {
    kl_arena *a = kl_arena_new();
    kl_str text;
    kl_err err = KL_OK;
    if (!kli_fs_read(&text, a, s->error, 65536, kl_ignored())) {
        const int line = (int)strcspn(text.ptr, "\n");
        const kl_str hint = kl_str_trim(kl_str_of(text.ptr + line));
        kl_fail(e, KL_EIO, s->host, "%.*s", line, text.ptr);
        err = hint.len ? kl_hint(e, "%.*s", KL_STR_ARG(hint)) : KL_EIO;
    }
    kl_arena_free(a);
    return err;
}

/* ---- the row of the table ---------------------------------------------------------------- */

static void *ssh_spool_of(const void *self) {
    return (void *)(uintptr_t)((const ssh_executor *)self)->spool;
}

static kl_err ssh_key(char key[65], void *self, kl_arena *a, const kl_gate_job *j, kl_error *e) {
    return kli_executor_spool.key(key, ssh_spool_of(self), a, j, e);
}

static kl_err ssh_submit(char id[65], void *self, kl_arena *a, const kl_gate_job *j, kl_error *e) {
    return kli_executor_spool.submit(id, ssh_spool_of(self), a, j, e);
}

static kl_err ssh_poll(kl_verdict *out, void *self, kl_arena *a, const char *id, kl_error *e) {
    ssh_executor *s = self;
    kl_err err = kl_spool_get(out, a, s->spool, id, e);
    if (err != KL_PENDING) return err;
    kl_hint(e, "%s is asked; then ask again", s->host);
    kl_error why = {0};
    if (gave_up(s, &why)) {
        *e = why;
        return why.code;
    }
    start_carrier(s);
    return err;
}

static kl_err ssh_cancel(void *self, kl_arena *a, const char *id, kl_error *e) {
    return kli_executor_spool.cancel(ssh_spool_of(self), a, id, e);
}

static int ssh_capacity(void *self) { return kli_executor_spool.capacity(ssh_spool_of(self)); }

static kl_str ssh_describe(void *self, kl_arena *a) {
    const ssh_executor *s = self;
    return kl_arena_printf(a, "%s by ssh: %.*s", s->host,
                           KL_STR_ARG(kli_executor_spool.describe(ssh_spool_of(self), a)));
}

const kl_executor_ops kli_executor_ssh = {
    .name = "ssh",
    .spec = "ssh:HOST[:DIR]",
    .doc = "the klineage-worker of a host that ssh reaches",
    .keeps = true,
    .open = ssh_open,
    .close = ssh_close,
    .key = ssh_key,
    .submit = ssh_submit,
    .poll = ssh_poll,
    .cancel = ssh_cancel,
    .capacity = ssh_capacity,
    .describe = ssh_describe,
};

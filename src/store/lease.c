/* lease.c - who works on what, until when; nothing else writes the table of leases.
 *
 *   free --take--> held --renew, every quarter of its time--> held --release--> free
 *                   '--take, where the owner is gone,
 *                      or out of sight and the deadline passed--> held by another
 *
 * An owner on this host is looked at: as long as its process lives the lease is its own, even when
 * it was stopped or could not renew in time, and when it is gone nobody waits for a deadline.  An
 * owner that cannot be looked at (another host, another container, before a reboot) has until its
 * deadline; hosts' clocks must agree to some seconds.
 *
 * A lease says who should work.  That nothing is paid twice, should two ever believe that they do,
 * is held by kl_store_reserve, which checks the lease in the transaction that reserves (law 8). Not
 * here: what a lease is for (run/track.c).  SPDX-License-Identifier: Apache-2.0 */
#include "store/leases.h"
#include "store/store_impl.h"
#include "base/fs.h"
#include "base/log.h"
#include <klineage/limits.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct kl_lease {
    kl_store *store;
    const kli_store_ops *ops; /* the keeper has a handle of its own */
    char *where, *name, *owner;
    int64_t milliseconds;
    pthread_t keeper;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    bool ends;
};

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- owners -------------------------------------------------------------------------- */

/* "BOOT NAMESPACE PID START SERIAL HOST": a number of a process means something in its namespace
 * until the next boot, and is used again after its end, so its start tells it apart.  The serial
 * tells leases of one process apart. */
typedef struct {
    char boot[40], host[65];
    uint64_t namespace, start;
    int pid, serial;
} lease_process;

/* When a process started, in ticks since boot, and its state.  False where this cannot be read. */
static bool read_stat(uint64_t *start, char *state, int pid) {
    static const char format[] = /* state is field 3 and start field 22 */
        " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu";
    char path[64];
    kl_str text;
    kl_arena *a = kl_arena_new();
    unsigned long long ticks = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const bool there = kli_fs_read(&text, a, path, 4096, kl_ignored()) == KL_OK;
    /* The program's name, in brackets, may hold anything. */
    const char *behind = there ? strrchr(text.ptr, ')') : NULL;
    const bool read = behind && sscanf(behind + 1, format, state, &ticks) == 2;
    kl_arena_free(a);
    *start = ticks;
    return read;
}

/* Where there is no such file an owner is never in sight; where it cannot be read now, nothing is
 * taken under a wrong name. */
static kl_err read_boot(lease_process *p, kl_error *e) {
    kl_arena *a = kl_arena_new();
    kl_str boot = KL_S("?");
    const kl_err err = kli_fs_read(&boot, a, "/proc/sys/kernel/random/boot_id", 64, e);
    if (!err || err == KL_ENOENT)
        snprintf(p->boot, sizeof p->boot, "%.*s", KL_STR_ARG(kl_str_trim(boot)));
    kl_arena_free(a);
    return err == KL_ENOENT ? KL_OK : err;
}

static kl_err read_myself(lease_process *p, kl_error *e) {
    static atomic_int serials;
    struct stat pids;
    char state;
    *p = (lease_process){.pid = (int)getpid(), .serial = serials++};
    if (stat("/proc/self/ns/pid", &pids) == 0) p->namespace = (uint64_t)pids.st_ino;
    if (!read_stat(&p->start, &state, p->pid)) p->start = 0;
    if (gethostname(p->host, sizeof p->host - 1) != 0 || !p->host[0])
        snprintf(p->host, sizeof p->host, "?");
    return read_boot(p, e);
}

static kl_str owner_text(kl_arena *a, const lease_process *p) {
    return kl_arena_printf(a, "%s %llu %d %llu %d %s", p->boot, (unsigned long long)p->namespace,
                           p->pid, (unsigned long long)p->start, p->serial, p->host);
}

static bool parse_owner(lease_process *p, kl_str text) {
    unsigned long long namespace, start;
    *p = (lease_process){0};
    const bool read = sscanf(text.ptr, "%39s %llu %d %llu %d %64s", p->boot, &namespace, &p->pid,
                             &start, &p->serial, p->host) == 6;
    p->namespace = read ? namespace : 0;
    p->start = read ? start : 0;
    return read;
}

/* Can this process see that one, if it lives? */
static bool in_sight(const lease_process *p, const lease_process *me) {
    return p->namespace && p->namespace == me->namespace && p->boot[0] != '?' &&
           strcmp(p->boot, me->boot) == 0;
}

/* One that was killed and not yet waited for does nothing more.  Where the system hides processes
 * of others, it lives. */
static bool is_alive(const lease_process *p) {
    uint64_t start;
    char state;
    if (kill(p->pid, 0) != 0 && errno == ESRCH) return false;
    if (!read_stat(&start, &state, p->pid)) return true;
    return state != 'Z' && state != 'X' && (!p->start || start == p->start);
}

static bool is_held(const lease_process *owner, const lease_process *me, int64_t deadline_ms) {
    return in_sight(owner, me) ? is_alive(owner) : now_ms() < deadline_ms;
}

static void name_process(char who[KL_LEASE_OWNER_BYTES], const lease_process *p,
                         const lease_process *me) {
    if (strcmp(p->host, me->host) == 0)
        snprintf(who, KL_LEASE_OWNER_BYTES, "process %d", p->pid);
    else
        snprintf(who, KL_LEASE_OWNER_BYTES, "process %d of %s", p->pid, p->host);
}

/* ---- rows ---------------------------------------------------------------------------- */

static kl_err find_lease(kli_lease_row *row, kl_store *s, kl_arena *a, const char *name,
                         kl_error *e) {
    return kli_first(
        row, s, a, &(kli_query){.table = &kli_leases, .match = {{"name", .text = kl_str_of(name)}}},
        e);
}

static kl_err put_lease(kl_store *s, const kl_lease *l, kl_error *e) {
    const kli_lease_row row = {kl_str_of(l->name), kl_str_of(l->owner), now_ms() + l->milliseconds};
    KL_ASSERT(l->milliseconds > 0 && row.owner.len && row.name.len);
    return kli_put(s, &kli_leases, &row, e);
}

static bool is_mine(const kli_lease_row *row, const kl_lease *l) {
    return kl_str_eq(row->owner, kl_str_of(l->owner));
}

static kl_err lease_take(kl_store *s, kl_arena *a, const kl_lease *l,
                         char who[KL_LEASE_OWNER_BYTES], kl_error *e) {
    kli_lease_row row;
    lease_process owner, me;
    const kl_err err = find_lease(&row, s, a, l->name, e);
    if (err && err != KL_ENOENT) return err;
    if (err == KL_ENOENT || !parse_owner(&owner, row.owner)) return put_lease(s, l, e);
    KL_ASSERT(parse_owner(&me, kl_str_of(l->owner)));
    if (!is_held(&owner, &me, row.deadline_ms)) return put_lease(s, l, e);
    name_process(who, &owner, &me);
    return kl_fail(e, KL_EBUSY, l->name, "%s is running this", who);
}

/* `change` with the row as it is now, and nobody else writing meanwhile. */
static kl_err with_own(kl_store *s, const kl_lease *l,
                       kl_err (*change)(kl_store *, const kl_lease *, kl_error *), kl_error *e) {
    kl_err err = kli_begin(s, "write the lease", e);
    if (err) return err;
    err = kli_lease_check(s, l, e);
    if (!err) err = change(s, l, e);
    return kli_end(s, err, "write the lease", e);
}

static kl_err drop_lease(kl_store *s, const kl_lease *l, kl_error *e) {
    return s->ops->drop(
        s->self,
        &(kli_query){.table = &kli_leases, .match = {{"name", .text = kl_str_of(l->name)}}}, e);
}

kl_err kli_lease_check(kl_store *s, const kl_lease *l, kl_error *e) {
    kli_lease_row row;
    lease_process owner = {0}, me;
    char who[KL_LEASE_OWNER_BYTES] = "another process";
    kl_arena *scratch = kl_arena_new();
    kl_err err = find_lease(&row, s, scratch, l->name, e);
    const bool mine = !err && is_mine(&row, l);
    if (!err && !mine && parse_owner(&owner, row.owner) && parse_owner(&me, kl_str_of(l->owner)))
        name_process(who, &owner, &me);
    kl_arena_free(scratch);
    if (mine || (err && err != KL_ENOENT)) return err;
    kl_fail(e, KL_EBUSY, l->name, "%s took this over while this process did not answer", who);
    return kl_hint(e, "let it finish; what was paid for is kept");
}

/* ---- the keeper ---------------------------------------------------------------------- */

static void until_next(struct timespec *until, const kl_lease *l) {
    const int64_t pause_ns = l->milliseconds * 1000000 / 4;
    clock_gettime(CLOCK_MONOTONIC, until);
    until->tv_sec += pause_ns / 1000000000;
    until->tv_nsec += pause_ns % 1000000000;
    if (until->tv_nsec >= 1000000000) {
        until->tv_nsec -= 1000000000;
        until->tv_sec++;
    }
}

/* A whole pause went by, and the lease is still wanted. */
static bool paused(kl_lease *l) {
    struct timespec until;
    int code = 0;
    until_next(&until, l);
    pthread_mutex_lock(&l->mutex);
    while (!l->ends && !code) code = pthread_cond_timedwait(&l->ended, &l->mutex, &until);
    const bool goes_on = !l->ends;
    pthread_mutex_unlock(&l->mutex);
    return goes_on;
}

/* A store that cannot be written now may be the next time.  A lease that somebody took is not taken
 * back: with_own looks. */
static void *lease_keep(void *lease) {
    kl_lease *l = lease;
    kl_store *own = NULL;
    while (paused(l)) {
        kl_error why = {0};
        kl_err err = own ? KL_OK : kli_store_open(&own, l->ops, l->where, &why);
        if (!err) err = with_own(own, l, put_lease, &why);
        if (err) kli_debug("lease %s: %s", l->name, why.message);
        if (own) own->ops->detach(own->self); /* a server has places for few at a time */
    }
    kl_store_close(own);
    return NULL;
}

/* Signals are the main thread's: what it waits for has to see them. */
static bool start_keeper(kl_lease *l) {
    sigset_t all, before;
    pthread_condattr_t monotonic;
    sigfillset(&all);
    pthread_mutex_init(&l->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&l->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(&l->keeper, NULL, lease_keep, l) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static void stop_keeper(kl_lease *l) {
    pthread_mutex_lock(&l->mutex);
    l->ends = true;
    pthread_cond_signal(&l->ended);
    pthread_mutex_unlock(&l->mutex);
    pthread_join(l->keeper, NULL);
    pthread_cond_destroy(&l->ended);
    pthread_mutex_destroy(&l->mutex);
}

/* ---- taking and releasing ------------------------------------------------------------ */

static void free_lease(kl_lease *l) {
    free(l->where);
    free(l->name);
    free(l->owner);
    free(l);
}

static kl_err new_lease(kl_lease **out, kl_store *s, const char *name, int64_t milliseconds,
                        kl_error *e) {
    lease_process me;
    const kl_err err = read_myself(&me, e);
    if (err) return err;
    kl_arena *scratch = kl_arena_new();
    kl_lease *l = calloc(1, sizeof *l);
    if (!l) kl_oom(sizeof *l);
    *l = (kl_lease){.store = s, .ops = s->ops, .milliseconds = milliseconds};
    l->where = strdup(s->place);
    l->name = strdup(name);
    l->owner = strdup(owner_text(scratch, &me).ptr);
    if (!l->where || !l->name || !l->owner) kl_oom(sizeof *l);
    kl_arena_free(scratch);
    *out = l;
    return KL_OK;
}

static kl_err take_alone(kl_store *s, const kl_lease *l, char who[KL_LEASE_OWNER_BYTES],
                         kl_error *e) {
    const kl_err err = kli_begin(s, "take the lease", e);
    if (err) return err;
    kl_arena *scratch = kl_arena_new();
    const kl_err taken = lease_take(s, scratch, l, who, e);
    KL_ASSERT(taken || kli_lease_check(s, l, kl_ignored()) != KL_EBUSY); /* the row is its own */
    kl_arena_free(scratch);
    return kli_end(s, taken, "take the lease", e);
}

kl_err kli_lease_take(kl_lease **out, kl_store *s, const char *name, int64_t milliseconds,
                      char who[KL_LEASE_OWNER_BYTES], kl_error *e) {
    kl_lease *l;
    *out = NULL;
    who[0] = '\0';
    kl_err err = new_lease(&l, s, name, milliseconds, e);
    if (err) return err;
    err = take_alone(s, l, who, e);
    if (!err && !start_keeper(l)) {
        err = kl_fail(e, KL_ESPAWN, name, "no thread to keep the lease");
        (void)with_own(s, l, drop_lease, kl_ignored());
    }
    if (err) {
        free_lease(l);
        return err;
    }
    s->leases++;
    *out = l;
    return KL_OK;
}

kl_err kl_lease_take(kl_lease **out, kl_store *s, const char *name, char who[KL_LEASE_OWNER_BYTES],
                     kl_error *e) {
    return kli_lease_take(out, s, name, KL_LEASE_SECONDS * 1000, who, e);
}

void kl_lease_release(kl_lease *l) {
    if (!l) return;
    kl_error why = {0};
    stop_keeper(l);
    KL_ASSERT(l->store->leases > 0); /* one that was taken is released once */
    l->store->leases--;
    if (with_own(l->store, l, drop_lease, &why))
        kli_debug("lease %s: %s", l->name, why.message); /* it ends by itself */
    free_lease(l);
}

/* ---- looking ------------------------------------------------------------------------- */

kl_err kli_lease_list(kli_known_lease **rows, size_t *n, kl_store *s, kl_arena *a, kl_error *e) {
    kli_lease_row *found;
    lease_process me, owner;
    kl_err err = read_myself(&me, e);
    if (!err)
        err = kli_list(&found, n, s, a, &(kli_query){.table = &kli_leases, .order = KLI_BY_KEY}, e);
    if (err) return err;
    *rows = KL_ARRAY(a, kli_known_lease, *n + 1);
    for (size_t i = 0; i < *n; i++) {
        char who[KL_LEASE_OWNER_BYTES] = "?";
        const bool read = parse_owner(&owner, found[i].owner);
        if (read) name_process(who, &owner, &me);
        (*rows)[i] = (kli_known_lease){.name = found[i].name,
                                       .owner = kl_arena_copy(a, kl_str_of(who)),
                                       .held = read && is_held(&owner, &me, found[i].deadline_ms)};
    }
    return KL_OK;
}

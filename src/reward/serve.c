/* serve.c - the service: one thread around one poll(2), from start to the last answer.
 *
 *   open: who may ask, the journal, the address --> turn, turn, turn --> interrupted
 *     --> no new work; what is under judgement is finished, for a while --> all are answered
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "reward/reward_impl.h"
#include "base/fs.h"
#include "base/log.h"
#include "mhd_api.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define LONGEST_MS 500 /* judges are started again, waits end */
#define FAREWELL_NS INT64_C(2000000000)

typedef struct {
    kli_desk desk;
    kli_httpd *http;
    kl_arena *arena;
    kl_str shown;
    int listener, audit;
    bool local_socket;
} service;

/* ---- turns ------------------------------------------------------------------------------ */

static void wait_a_little(service *s, int longest_ms) {
    struct pollfd fds[1 + 2 * KLI_REWARD_JUDGES];
    nfds_t n = 0;
    const int64_t until_ns = kli_httpd_timeout_ns(s->http);
    const int ms = until_ns < INT64_C(1000000) * longest_ms ? (int)((until_ns + 999999) / 1000000)
                                                            : longest_ms;
    fds[n++] = (struct pollfd){.fd = kli_httpd_fd(s->http), .events = POLLIN};
    for (int i = 0; i < s->desk.judges.n; i++) {
        const kli_judge *j = &s->desk.judges.judges[i];
        if (!j->pid) continue;
        fds[n++] = (struct pollfd){.fd = j->out, .events = POLLIN};
        if (j->to.len) fds[n++] = (struct pollfd){.fd = j->in, .events = POLLOUT};
    }
    (void)poll(fds, n, ms);
}

static void take_turn(service *s, int longest_ms) {
    wait_a_little(s, longest_ms);
    kli_desk_turn(&s->desk);
    kli_httpd_turn(s->http);
    kli_desk_give(&s->desk);
    kli_desk_settle(&s->desk);
}

/* What is judged comes to its end; what waits is in the journal. */
static void drain_judges(service *s) {
    const int64_t end = kli_now_ns() + KLI_REWARD_GRACE_SECONDS * INT64_C(1000000000);
    s->desk.stopping = true;
    while (kli_desk_judged(&s->desk) && kli_now_ns() < end) take_turn(s, 50);
    kli_httpd_release(s->http);
    const int64_t farewell = kli_now_ns() + FAREWELL_NS;
    while (kli_httpd_connections(s->http) && kli_now_ns() < farewell) take_turn(s, 10);
}

/* ---- open and close --------------------------------------------------------------------- */

static kl_err open_audit(service *s, const char *path, kl_error *e) {
    s->audit = -1;
    if (!path) return KL_OK;
    s->audit = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return s->audit >= 0 ? KL_OK
                         : kl_fail(e, KL_EIO, path, "cannot be appended to: %s", strerror(errno));
}

static kl_err open_listener(service *s, const kli_reward_opts *o, kl_error *e) {
    bool beyond;
    const char *spec = o->listen ? o->listen : KLI_REWARD_LISTEN;
    const kl_err err =
        kli_reward_listen(&s->listener, &beyond, &s->local_socket, &s->shown, s->arena, spec, e);
    if (err || !beyond || o->tenants) return err;
    kl_fail(e, KL_EINVAL, NULL, "--listen %s is not of this machine alone, and needs --tokens",
            spec);
    return kl_hint(
        e, "docs/how-to/reward.md says what is in that file; or listen at " KLI_REWARD_LISTEN);
}

static kl_err open_service(service *s, const kli_reward_opts *o, kl_error *e) {
    const kli_mhd *mhd;
    kl_err err = kli_mhd_load(&mhd, e);
    if (!err) err = open_listener(s, o, e);
    if (!err) err = open_audit(s, o->audit, e);
    if (!err) err = kli_desk_open(&s->desk, o, e);
    if (!err) err = kli_httpd_open(&s->http, &s->desk, s->listener, s->local_socket, s->audit, e);
    return err;
}

static void close_service(service *s) {
    kli_httpd_close(s->http);
    if (s->http) s->listener = -1; /* closed with it */
    kli_desk_close(&s->desk);
    if (s->listener >= 0) close(s->listener);
    if (s->local_socket && s->http) unlink(s->shown.ptr + 5);
    if (s->audit >= 0) close(s->audit);
    kl_arena_free(s->arena);
}

kl_err kli_reward_serve(kli_reward_served *out, const kli_reward_opts *o, kl_error *e) {
    service s = {.arena = kl_arena_new(), .listener = -1, .audit = -1};
    KL_ASSERT(o->judges >= 1 && o->judges <= KLI_REWARD_JUDGES);
    const kl_err err = open_service(&s, o, e);
    if (!err) {
        kli_say("rewards at %.*s", KL_STR_ARG(s.shown));
        while (!kli_interrupted()) take_turn(&s, LONGEST_MS);
        drain_judges(&s);
    }
    close_service(&s);
    *out = s.desk.served;
    return err;
}

/* httpd.c - requests and responses: who asks, what, and when the connection is answered.
 *
 *   request --begin--> refused (401, 403, 413 ...)
 *             '-body-> route --> answered at once
 *                        '-----> suspended: batch done, or its time over --> answered
 *
 * libmicrohttpd parses HTTP/1.1 and keeps the connections; it runs inside kli_httpd_turn and
 * nowhere else, so nothing here needs a lock.  A request's words are compared with known ones and
 * used for nothing else.
 *
 * Not here: what a batch is (question.c), what becomes of it (desk.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "reward/reward_impl.h"
#include "mhd_api.h"

#if KL_HAVE_MHD
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* One request and its answer. */
typedef struct exchange {
    kli_httpd *http;
    struct MHD_Connection *connection;
    char method[8], target[192];
    kl_buf body;
    bool foreign, too_large, crowded, suspended, answered;
    kli_tenant *tenant;
    kli_batch *batch; /* waited for */
    char batch_id[65];
    size_t kernels;
    int64_t begin_ns, until_ns;
    struct exchange *next, **from; /* in the list of those that wait */
} exchange;

struct kli_httpd {
    const kli_mhd *mhd;
    struct MHD_Daemon *daemon;
    kli_desk *desk;
    exchange *waiting;
    size_t bytes; /* of bodies that are here */
    int audit;
    bool local_socket;
};

typedef enum MHD_Result result;

static const char *header(const exchange *x, const char *name) {
    return x->http->mhd->lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

/* ---- the audit log ---------------------------------------------------------------------- */

static void peer_of(char *text, socklen_t room, const exchange *x) {
    const union MHD_ConnectionInfo *i =
        x->http->mhd->get_connection_info(x->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    snprintf(text, room, "local");
    if (!i || x->http->local_socket) return;
    const struct sockaddr *at = i->client_addr;
    const socklen_t n =
        at->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    (void)getnameinfo(at, n, text, room, NULL, 0, NI_NUMERICHOST);
}

static void audit(const exchange *x, int status) {
    char peer[64];
    if (x->http->audit < 0) return;
    kl_arena *a = kl_arena_new();
    peer_of(peer, sizeof peer, x);
    json_t *o =
        json_pack("{so so ss so so si ss sI sI sI}", "time", kli_json_str(kli_utc_now(a)), "tenant",
                  x->tenant ? kli_json_str(x->tenant->name) : json_null(), "peer", peer, "method",
                  kli_json_str(kl_str_of(x->method)), "target", kli_json_str(kl_str_of(x->target)),
                  "status", status, "batch", x->batch_id, "kernels", (json_int_t)x->kernels,
                  "bytes", (json_int_t)x->body.len, "ns", (json_int_t)(kli_now_ns() - x->begin_ns));
    const kl_str line = kl_arena_printf(a, "%s\n", kli_json_dump(a, o, false).ptr);
    if (!kli_fs_write_all(x->http->audit, line)) {
        if (!x->http->desk->metrics.counts[KLI_COUNT_UNAUDITED]++)
            kli_warn("the audit log cannot be written to");
    }
    json_decref(o);
    kl_arena_free(a);
}

/* ---- responses -------------------------------------------------------------------------- */

typedef struct {
    const char *type, *name, *value; /* one more header; NULL: none */
} extra;

static result respond(exchange *x, int status, kl_str text, extra more) {
    const kli_mhd *mhd = x->http->mhd;
    struct MHD_Response *r = mhd->create_response_from_buffer(text.len, (void *)(uintptr_t)text.ptr,
                                                              MHD_RESPMEM_MUST_COPY);
    if (!r) kl_oom(text.len);
    (void)mhd->add_response_header(r, "Content-Type", more.type ? more.type : "application/json");
    (void)mhd->add_response_header(r, "Cache-Control", "no-store");
    if (more.name) (void)mhd->add_response_header(r, more.name, more.value);
    x->answered = true;
    x->http->desk->metrics.statuses[status]++;
    audit(x, status);
    const result queued = mhd->queue_response(x->connection, (unsigned)status, r);
    mhd->destroy_response(r);
    return queued;
}

static result respond_json(exchange *x, int status, json_t *o, extra more) {
    kl_arena *a = kl_arena_new();
    const kl_str text = kl_arena_printf(a, "%s\n", kli_json_dump(a, o, false).ptr);
    const result done = respond(x, status, text, more);
    json_decref(o);
    kl_arena_free(a);
    return done;
}

static result refuse_with(exchange *x, int status, const char *message, const char *hint,
                          extra more) {
    return respond_json(x, status,
                        json_pack("{ss si si so so}", "schema", "klineage/reward-error", "version",
                                  1, "status", status, "message", kli_json_str(kl_str_of(message)),
                                  "hint", kli_json_str(kl_str_of(hint))),
                        more);
}

static result refuse_plainly(exchange *x, int status, const char *message) {
    return refuse_with(x, status, message, "", (extra){0});
}

static result refuse_later(exchange *x, int status, const char *message, int seconds) {
    char text[16];
    snprintf(text, sizeof text, "%d", seconds);
    return refuse_with(x, status, message, "", (extra){.name = "Retry-After", .value = text});
}

static result refuse_error(exchange *x, const kl_error *e) {
    const int status = e->code == KL_ELIMIT                           ? 413
                       : e->code == KL_EPARSE || e->code == KL_EINVAL ? 400
                       : e->code == KL_ENOENT                         ? 404
                                                                      : 503;
    return refuse_with(x, status, e->message, e->hint,
                       (extra){.name = status == 503 ? "Retry-After" : NULL, .value = "5"});
}

/* The batch as it is now; the exchange does not wait for it any more. */
static result respond_batch(exchange *x) {
    kl_error e = {0};
    json_t *o;
    char place[96];
    kli_batch *b = x->batch;
    const bool open = b->open > 0;
    const kl_err err = kli_desk_answer(&o, x->http->desk, b, &e);
    x->batch = NULL;
    kli_desk_leave(b);
    if (err) return refuse_error(x, &e);
    snprintf(place, sizeof place, "/v1/rewards/%s", x->batch_id);
    return respond_json(x, open ? 202 : 200, o,
                        (extra){.name = open ? "Location" : NULL, .value = place});
}

/* ---- waiting ---------------------------------------------------------------------------- */

static void stop_waiting(exchange *x) {
    if (!x->suspended) return;
    x->suspended = false;
    x->tenant->waits--;
    *x->from = x->next;
    if (x->next) x->next->from = x->from;
}

static void wake(exchange *x) {
    stop_waiting(x);
    x->http->mhd->resume_connection(x->connection);
}

static void on_batch_done(void *ctx, kli_batch *b) {
    kli_httpd *h = ctx;
    exchange *next;
    for (exchange *x = h->waiting; x; x = next) {
        next = x->next;
        if (x->batch == b) wake(x);
    }
}

/* Now, or when it is done. */
static result wait_for_batch(exchange *x, kli_batch *b, int64_t wait_ns) {
    kli_httpd *h = x->http;
    x->batch = b;
    memcpy(x->batch_id, b->id, sizeof x->batch_id);
    x->kernels = b->n;
    b->waiters++;
    const bool waits = b->open && wait_ns > 0 && !h->desk->stopping;
    if (!waits || x->tenant->waits >= KLI_REWARD_WAITS) return respond_batch(x);
    x->until_ns = kli_now_ns() + wait_ns;
    x->suspended = true;
    x->tenant->waits++;
    x->next = h->waiting;
    x->from = &h->waiting;
    if (x->next) x->next->from = &x->next;
    h->waiting = x;
    h->mhd->suspend_connection(x->connection);
    return MHD_YES;
}

/* ---- routes ----------------------------------------------------------------------------- */

static result post_rewards(exchange *x) {
    kli_desk *d = x->http->desk;
    kli_batch *b;
    kl_error e = {0};
    kli_admission how;
    int seconds = 0;
    const char *why = "";
    if (d->stopping) return refuse_later(x, 503, "the service stops", 5);
    if (kli_batch_parse(&b, x->tenant, kl_buf_str(&x->body), &e)) return refuse_error(x, &e);
    const int64_t wait_ns = b->wait_ns;
    d->served.requests++;
    x->kernels = b->n;
    if (kli_desk_take(&how, &seconds, &why, d, &b, &e)) {
        kli_batch_free(b);
        return refuse_error(x, &e);
    }
    if (how != KLI_DESK_LATER) return wait_for_batch(x, b, wait_ns);
    kli_batch_free(b);
    return refuse_later(x, 429, why, seconds);
}

static bool is_id(const char *text) {
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static int64_t wait_of(const exchange *x) {
    const char *text =
        x->http->mhd->lookup_connection_value(x->connection, MHD_GET_ARGUMENT_KIND, "wait_seconds");
    char *end = NULL;
    const double seconds = text ? strtod(text, &end) : 0;
    const bool fine = text && end != text && seconds > 0;
    return (int64_t)(fine
                         ? (seconds < KLI_REWARD_WAIT_SECONDS ? seconds : KLI_REWARD_WAIT_SECONDS) *
                               1e9
                         : 0);
}

static result get_rewards(exchange *x, const char *id) {
    kli_desk *d = x->http->desk;
    kl_error e = {0};
    if (!is_id(id)) return refuse_plainly(x, 404, "no such batch");
    kli_batch *b = kli_desk_named(d, x->tenant, id);
    if (b) return wait_for_batch(x, b, wait_of(x));
    if (kli_desk_recall(&b, d, x->tenant, id, &e))
        return e.code == KL_ENOENT ? refuse_plainly(x, 404, "no such batch") : refuse_error(x, &e);
    return wait_for_batch(x, b, 0);
}

static result get_tasks(exchange *x) {
    json_t *names = json_array();
    for (size_t i = 0; i < x->tenant->n_tasks; i++)
        json_array_append_new(names, kli_json_str(x->tenant->tasks[i]->name));
    return respond_json(
        x, 200,
        json_pack("{ss si so}", "schema", "klineage/reward-tasks", "version", 1, "tasks", names),
        (extra){0});
}

static result get_formulas(exchange *x) {
    json_t *formulas = json_object();
    for (int i = 0; kli_formula_each(i); i++)
        json_object_set_new(formulas, kli_formula_each(i)->name,
                            json_string(kli_formula_each(i)->doc));
    return respond_json(x, 200,
                        json_pack("{ss si so so}", "schema", "klineage/reward-formulas", "version",
                                  1, "formulas", formulas, "constants", kli_formula_constants()),
                        (extra){0});
}

static result get_metrics(exchange *x) {
    const kli_desk *d = x->http->desk;
    kl_buf text = {0};
    if (!x->tenant->operates) return refuse_plainly(x, 403, "metrics are the operator's");
    kli_metrics_text(&text, &d->metrics, d->queue.n, (size_t)kli_desk_judged(d), d->judges.n);
    const result done =
        respond(x, 200, kl_buf_str(&text), (extra){.type = "text/plain; version=0.0.4"});
    kl_buf_fini(&text);
    return done;
}

static result route(exchange *x) {
    static const char REWARDS[] = "/v1/rewards";
    const size_t n = sizeof REWARDS - 1;
    const bool get = strcmp(x->method, "GET") == 0, post = strcmp(x->method, "POST") == 0;
    const char *t = x->target;
    if (post && strcmp(t, REWARDS) == 0) return post_rewards(x);
    if (get && strncmp(t, REWARDS, n) == 0 && t[n] == '/') return get_rewards(x, t + n + 1);
    if (get && strcmp(t, "/v1/tasks") == 0) return get_tasks(x);
    if (get && strcmp(t, "/v1/formulas") == 0) return get_formulas(x);
    if (get && strcmp(t, "/metrics") == 0) return get_metrics(x);
    return refuse_plainly(x, get || post ? 404 : 405, "no such thing here");
}

/* ---- who asks --------------------------------------------------------------------------- */

/* A page of the web that makes a browser ask here comes with an origin or by a foreign name. */
static bool is_from_a_page(const exchange *x) {
    static const char *const OWN[] = {"127.0.0.1", "localhost", "[::1]"};
    const char *host = header(x, "Host");
    if (x->http->local_socket || !x->http->desk->tenants.open) return false;
    if (header(x, "Origin")) return true;
    for (size_t i = 0; host && i < KL_COUNT(OWN); i++) {
        const size_t n = strlen(OWN[i]);
        if (strncmp(host, OWN[i], n) == 0 && (!host[n] || host[n] == ':')) return false;
    }
    return host && strncmp(host, "127.", 4) != 0;
}

static result health(exchange *x) {
    const bool stops = x->http->desk->stopping;
    return respond(x, stops ? 503 : 200, stops ? KL_S("stopping\n") : KL_S("ok\n"),
                   (extra){.type = "text/plain"});
}

/* The whole request is here. */
static result answer_request(exchange *x) {
    if (strcmp(x->target, "/healthz") == 0) return health(x);
    if (x->foreign) return refuse_plainly(x, 403, "asked from a web page");
    if (!x->tenant)
        return refuse_with(x, 401, "no tenant has this token", "Authorization: Bearer TOKEN",
                           (extra){.name = "WWW-Authenticate", .value = "Bearer"});
    if (x->too_large) return refuse_plainly(x, 413, "the body is larger than 8 MiB");
    if (x->crowded) return refuse_later(x, 429, "too much arrives at a time", 1);
    return route(x);
}

/* ---- libmicrohttpd ---------------------------------------------------------------------- */

static exchange *begin(kli_httpd *h, struct MHD_Connection *c, const char *method,
                       const char *target) {
    exchange *x = calloc(1, sizeof *x);
    if (!x) kl_oom(sizeof *x);
    *x = (exchange){.http = h, .connection = c, .begin_ns = kli_now_ns()};
    snprintf(x->method, sizeof x->method, "%s", method);
    snprintf(x->target, sizeof x->target, "%s", target);
    x->foreign = is_from_a_page(x);
    if (!x->foreign) x->tenant = kli_tenants_of(&h->desk->tenants, header(x, "Authorization"));
    return x;
}

static void drop_body(exchange *x) {
    x->http->bytes -= x->body.len;
    kl_buf_fini(&x->body);
}

/* Of somebody unknown nothing is kept. */
static void add_body(exchange *x, const char *data, size_t n) {
    if (x->body.len + n > KLI_REWARD_BODY) x->too_large = true;
    if (x->http->bytes + n > KLI_REWARD_BODIES) x->crowded = true;
    if (x->too_large || x->crowded) drop_body(x);
    if (!x->tenant || x->too_large || x->crowded) return;
    kl_buf_add(&x->body, (kl_str){data, n});
    x->http->bytes += n;
}

static bool declares_too_much(const exchange *x) {
    const char *length = header(x, "Content-Length");
    return length && strtoull(length, NULL, 10) > KLI_REWARD_BODY;
}

static result on_request(void *ctx, struct MHD_Connection *c, const char *target,
                         const char *method, const char *version, const char *data, size_t *n,
                         void **own) {
    exchange *x = *own;
    (void)version;
    if (!x) {
        *own = x = begin(ctx, c, method, target);
        return declares_too_much(x) ? refuse_plainly(x, 413, "the body is larger than 8 MiB")
                                    : MHD_YES;
    }
    if (*n) {
        add_body(x, data, *n);
        *n = 0;
        return MHD_YES;
    }
    if (x->answered) return MHD_YES;
    return x->batch ? respond_batch(x) : answer_request(x);
}

static void on_end(void *ctx, struct MHD_Connection *c, void **own,
                   enum MHD_RequestTerminationCode why) {
    exchange *x = *own;
    (void)ctx, (void)c, (void)why;
    if (!x) return;
    stop_waiting(x);
    if (x->batch) kli_desk_leave(x->batch); /* the client is gone */
    drop_body(x);
    free(x);
    *own = NULL;
}

kl_err kli_httpd_open(kli_httpd **out, kli_desk *d, int listener, bool local_socket, int audit_fd,
                      kl_error *e) {
    kli_httpd *h = calloc(1, sizeof *h);
    if (!h) kl_oom(sizeof *h);
    *h = (kli_httpd){.desk = d, .audit = audit_fd, .local_socket = local_socket};
    *out = NULL;
    kl_err err = kli_mhd_load(&h->mhd, e);
    if (!err)
        h->daemon = h->mhd->start_daemon(
            MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, h,
            MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_NOTIFY_COMPLETED, on_end, h,
            MHD_OPTION_CONNECTION_LIMIT, (unsigned)KLI_REWARD_CONNECTIONS,
            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)KLI_REWARD_IDLE_SECONDS, MHD_OPTION_END);
    if (!err && !h->daemon)
        err = kl_fail(e, KL_EIO, "libmicrohttpd", "does not start on this socket");
    if (err) return free(h), err;
    d->done = on_batch_done;
    d->done_ctx = h;
    *out = h;
    return KL_OK;
}

void kli_httpd_close(kli_httpd *h) {
    if (!h) return;
    kli_httpd_release(h);
    h->mhd->stop_daemon(h->daemon);
    KL_ASSERT(!h->waiting);
    free(h);
}

int kli_httpd_fd(const kli_httpd *h) {
    return h->mhd->get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

unsigned kli_httpd_connections(const kli_httpd *h) {
    return h->mhd->get_daemon_info(h->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections;
}

int64_t kli_httpd_timeout_ns(kli_httpd *h) {
    unsigned long long ms;
    const int64_t now_ns = kli_now_ns();
    int64_t ns = INT64_MAX;
    if (h->mhd->get_timeout(h->daemon, &ms) == MHD_YES && ms < 3600000) ns = (int64_t)ms * 1000000;
    for (const exchange *x = h->waiting; x; x = x->next)
        if (x->until_ns - now_ns < ns) ns = x->until_ns - now_ns;
    return ns > 0 ? ns : 0;
}

void kli_httpd_turn(kli_httpd *h) {
    const int64_t now_ns = kli_now_ns();
    exchange *next;
    for (exchange *x = h->waiting; x; x = next) {
        next = x->next;
        if (x->until_ns <= now_ns) wake(x);
    }
    (void)h->mhd->run(h->daemon);
}

void kli_httpd_release(kli_httpd *h) {
    while (h->waiting) wake(h->waiting);
    (void)h->mhd->run(h->daemon);
}

#else /* kli_mhd_load has said so */
kl_err kli_httpd_open(kli_httpd **out, kli_desk *d, int listener, bool local_socket, int audit,
                      kl_error *e) {
    (void)d, (void)listener, (void)local_socket, (void)audit;
    *out = NULL;
    return kl_fail(e, KL_ENODEV, "libmicrohttpd", "not there");
}
void kli_httpd_close(kli_httpd *h) { (void)h; }
int kli_httpd_fd(const kli_httpd *h) { return (void)h, -1; }
int64_t kli_httpd_timeout_ns(kli_httpd *h) { return (void)h, 0; }
void kli_httpd_turn(kli_httpd *h) { (void)h; }
unsigned kli_httpd_connections(const kli_httpd *h) { return (void)h, 0; }
void kli_httpd_release(kli_httpd *h) { (void)h; }
#endif

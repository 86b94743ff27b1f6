/* worker_test.c - the runner's end of the wire: every message that no gate sends is answered with a
 * fault, and the runner lives on.  SPDX-License-Identifier: Apache-2.0 */
#include "runner_fixture.h"
#include "backend/layout.h"
#include "backend/wire.h"
#include "base/fs.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

typedef struct {
    pid_t pid;
    int socket;
    kl_msg_reply reply;
    kl_plan plan;
    int object; /* a plugin's place: what it holds is not looked at by these tests */
} worker;

static bool await_reply(worker *w) {
    return recv(w->socket, &w->reply, sizeof w->reply, 0) == (ssize_t)sizeof w->reply;
}

static void worker_open(worker *w) {
    int pair[2];
    kl_arena *a = kl_arena_new();
    const char *program = kli_fs_find_part(a, "klineage-worker").ptr;
    *w = (worker){.object = memfd_create("object", MFD_CLOEXEC)};
    assert_int_equal(write(w->object, "text", 4), 4);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    w->pid = fork();
    if (w->pid == 0) {
        alarm(60);
        int high = fcntl(pair[1], F_DUPFD, 10);
        dup2(high, KL_WIRE_FD);
        close_range(KL_WIRE_FD + 1, ~0u, 0);
        execl(program, program, "run", "cpu", "--trusted", (char *)NULL);
        _exit(127);
    }
    close(pair[1]);
    w->socket = pair[0];
    assert_true(await_reply(w));
    assert_int_equal(w->reply.head.kind, KL_MSG_READY);
    assert_int_equal(w->reply.head.version, KL_WIRE_VERSION);
    w->plan = (kl_plan){.magic = KL_PLAN_MAGIC, .version = KL_PLAN_VERSION, .n_tensors = 2};
    w->plan.tensors[0] = (kl_plan_tensor){.dtype = KL_F32, .role = KL_ROLE_INPUT, .bytes = 400};
    w->plan.tensors[1] = (kl_plan_tensor){.dtype = KL_F32, .role = KL_ROLE_OUTPUT, .bytes = 400};
    kl_arena_free(a);
}

/* It ends when its socket does. */
static void worker_close(worker *w) {
    int status = 0;
    close(w->socket);
    close(w->object);
    assert_int_equal(waitpid(w->pid, &status, 0), w->pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void send_with(worker *w, const void *message, size_t bytes, int n_fds) {
    char control[CMSG_SPACE(4 * sizeof(int))] = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = bytes};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    const int fds[4] = {w->object, w->object, w->object, w->object};
    if (n_fds) {
        m.msg_control = control;
        m.msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                              .cmsg_type = SCM_RIGHTS,
                              .cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int))};
        memcpy(CMSG_DATA(c), fds, (size_t)n_fds * sizeof(int));
    }
    assert_int_equal(sendmsg(w->socket, &m, MSG_NOSIGNAL), (ssize_t)bytes);
    assert_true(await_reply(w));
}

static void expect_bad(worker *w, const void *message, size_t bytes, int n_fds, const char *what) {
    char text[64];
    snprintf(text, sizeof text, "the runner was sent a bad %s", what);
    send_with(w, message, bytes, n_fds);
    assert_int_equal(w->reply.fault, KL_FAULT_PROTOCOL);
    assert_string_equal(w->reply.text, text);
}

static kl_msg_load *load_of(const worker *w) {
    kl_msg_load *m = calloc(1, sizeof *m);
    assert_non_null(m);
    *m = (kl_msg_load){.head = {KL_MSG_LOAD, KL_WIRE_VERSION},
                       .artefact_kind = KL_ARTEFACT_SHARED_OBJECT,
                       .trusted = true,
                       .cpu = -1,
                       .threads = 1,
                       .plan = w->plan};
    return m;
}

/* ---- plans ------------------------------------------------------------------------------- */

static void wrong_magic(kl_plan *p) { p->magic++; }
static void wrong_version(kl_plan *p) { p->version++; }
static void many_tensors(kl_plan *p) { p->n_tensors = KL_MAX_TENSORS + 1; }
static void many_buffers(kl_plan *p) { p->n_buffers = KL_MAX_BUFFERS + 1; }
static void many_tensormaps(kl_plan *p) { p->n_tensormaps = KL_MAX_TENSORMAPS + 1; }
static void many_launches(kl_plan *p) { p->n_launches = KL_MAX_LAUNCHES + 1; }
static void endless_tensor(kl_plan *p) { memset(p->tensors[1].name, 'a', KL_MAX_NAME); }
static void unknown_role(kl_plan *p) { p->tensors[0].role = KL_ROLE_SCALAR + 1; }
static void no_dtype(kl_plan *p) { p->tensors[0].dtype = 0; }
static void unknown_dtype(kl_plan *p) { p->tensors[0].dtype = KL_DTYPE_END; }
static void endless_buffer(kl_plan *p) {
    p->n_buffers = 1;
    memset(p->buffers[0].name, 'a', KL_MAX_NAME);
}
static void endless_entry(kl_plan *p) {
    p->n_launches = 1;
    memset(p->launches[0].entry, 'a', KL_MAX_NAME);
}
static void many_arguments(kl_plan *p) {
    p->n_launches = 1;
    p->n_args = p->launches[0].n_args = KL_MAX_ARGS + 1;
}
static void arguments_past_the_pool(kl_plan *p) { p->n_args = KL_MAX_PLAN_ARGS + 1; }
static void arguments_at(kl_plan *p, uint32_t first, uint32_t n) {
    p->n_launches = 2;
    p->n_args = 8;
    p->launches[1].first_arg = first;
    p->launches[1].n_args = n;
}
static void arguments_of_nobody(kl_plan *p) { arguments_at(p, 7, 2); }
static void arguments_far_away(kl_plan *p) { arguments_at(p, 9, 0); }
static void arguments_around_the_end(kl_plan *p) { arguments_at(p, ~0u, 2); }
static void argument(kl_plan *p, uint16_t kind, uint32_t index) {
    p->n_launches = 1;
    kli_take_args(p, &p->launches[0], 1)[0] = (kl_value){.kind = kind, .index = index};
}
static void joined_to_nothing(kl_plan *p) {
    argument(p, KL_VALUE_I32, 0);
    p->args[0].joined = 1;
}
static void joined_twice(kl_plan *p) {
    p->n_launches = 1;
    kl_value *args = kli_take_args(p, &p->launches[0], 2);
    args[0].kind = args[1].kind = KL_VALUE_I32;
    args[1].joined = 2;
}
static void tensor_past_the_end(kl_plan *p) { argument(p, KL_VALUE_TENSOR, 2); }
static void scalar_past_the_end(kl_plan *p) { argument(p, KL_VALUE_SCALAR, ~0u); }
static void buffer_past_the_end(kl_plan *p) { argument(p, KL_VALUE_BUFFER, 0); }
static void map_past_the_end(kl_plan *p) { argument(p, KL_VALUE_TENSORMAP, 0); }
static void unknown_argument(kl_plan *p) { argument(p, KL_VALUE_SCALAR + 1, 0); }
static void pointer_to_a_scalar(kl_plan *p) {
    p->tensors[0].role = KL_ROLE_SCALAR;
    argument(p, KL_VALUE_TENSOR, 0);
}

static void test_worker__refuses_every_plan_that_leads_outside_itself(void **state) {
    static void (*const LIES[])(kl_plan *) = {wrong_magic,
                                              wrong_version,
                                              many_tensors,
                                              many_buffers,
                                              many_tensormaps,
                                              many_launches,
                                              endless_tensor,
                                              unknown_role,
                                              no_dtype,
                                              unknown_dtype,
                                              endless_buffer,
                                              endless_entry,
                                              many_arguments,
                                              tensor_past_the_end,
                                              scalar_past_the_end,
                                              buffer_past_the_end,
                                              map_past_the_end,
                                              unknown_argument,
                                              pointer_to_a_scalar,
                                              arguments_past_the_pool,
                                              arguments_of_nobody,
                                              arguments_far_away,
                                              arguments_around_the_end,
                                              joined_to_nothing,
                                              joined_twice};
    worker w;
    (void)state;
    worker_open(&w);
    for (size_t i = 0; i < KL_COUNT(LIES); i++) {
        kl_msg_load *m = load_of(&w);
        LIES[i](&m->plan);
        expect_bad(&w, m, sizeof *m, 1, "plan");
        assert_int_equal(w.reply.head.kind, KL_MSG_LOADED);
        free(m);
    }
    worker_close(&w);
}

static void test_worker__a_load_has_one_descriptor_and_its_size(void **state) {
    worker w;
    (void)state;
    worker_open(&w);
    kl_msg_load *m = load_of(&w);
    expect_bad(&w, m, sizeof *m, 0, "plan");
    expect_bad(&w, m, sizeof *m, 2, "plan");
    expect_bad(&w, m, sizeof *m - 1, 1, "plan");
    expect_bad(&w, m, sizeof m->head, 1, "plan");
    m->threads = 0;
    expect_bad(&w, m, sizeof *m, 1, "plan");
    m->threads = 1;
    m->artefact_kind = KL_ARTEFACT_CUBIN;
    send_with(&w, m, sizeof *m, 1);
    assert_int_equal(w.reply.fault, KL_FAULT_REFUSED);
    assert_contains(w.reply.text, "shared objects and plugins only");
    m->artefact_kind = KL_ARTEFACT_SHARED_OBJECT; /* four bytes of text are none */
    send_with(&w, m, sizeof *m, 1);
    assert_int_equal(w.reply.fault, KL_FAULT_REFUSED);
    assert_contains(w.reply.text, "cannot be loaded");
    free(m);
    worker_close(&w);
}

/* ---- order ------------------------------------------------------------------------------- */

static void test_worker__nothing_runs_before_it_is_bound(void **state) {
    worker w;
    (void)state;
    worker_open(&w);
    const kl_msg_bind bind = {.head = {KL_MSG_BIND, KL_WIRE_VERSION}};
    const kl_msg_upload upload = {{KL_MSG_UPLOAD, KL_WIRE_VERSION}, 0, 0};
    const kl_msg_run run = {{KL_MSG_RUN, KL_WIRE_VERSION}, 0, 0, 0, 0, 0};
    const kl_msg_fetch fetch = {.head = {KL_MSG_FETCH, KL_WIRE_VERSION}};
    const kl_msg_audit audit = {.head = {KL_MSG_AUDIT, KL_WIRE_VERSION}};
    const kl_msg_compare compare = {.head = {KL_MSG_COMPARE, KL_WIRE_VERSION}};
    const kl_msg_time time = {.head = {KL_MSG_TIME, KL_WIRE_VERSION}};
    expect_bad(&w, &bind, sizeof bind, 4, "layout");
    assert_int_equal(w.reply.head.kind, KL_MSG_BOUND);
    expect_bad(&w, &upload, sizeof upload, 0, "upload");
    static const kl_msg_draw draw = {.head = {KL_MSG_DRAW, KL_WIRE_VERSION}};
    expect_bad(&w, &draw, sizeof draw, 0, "draw");
    expect_bad(&w, &run, sizeof run, 0, "run");
    expect_bad(&w, &fetch, sizeof fetch, 0, "fetch");
    expect_bad(&w, &audit, sizeof audit, 0, "audit");
    expect_bad(&w, &compare, sizeof compare, 1, "comparison");
    expect_bad(&w, &time, sizeof time, 0, "time");
    assert_int_equal(w.reply.head.kind, KL_MSG_DONE);
    worker_close(&w);
}

static void test_worker__an_unknown_kind_is_answered(void **state) {
    static const uint32_t KINDS[] = {0,           KL_MSG_READY,       KL_MSG_LOADED,
                                     KL_MSG_DONE, KL_MSG_COMPARE + 1, ~0u};
    worker w;
    (void)state;
    worker_open(&w);
    for (size_t i = 0; i < KL_COUNT(KINDS); i++) {
        const kl_msg_head head = {KINDS[i], KL_WIRE_VERSION};
        expect_bad(&w, &head, sizeof head, 0, "message");
    }
    worker_close(&w);
}

/* A gate of another build, or a message without a head, is not answered: the runner ends. */
static void test_worker__ends_at_another_version(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        worker w;
        int status = 0;
        const kl_msg_head head = {KL_MSG_RUN, KL_WIRE_VERSION + 1};
        worker_open(&w);
        assert_true(send(w.socket, &head, i ? sizeof head : 3, MSG_NOSIGNAL) > 0);
        assert_false(await_reply(&w));
        assert_int_equal(waitpid(w.pid, &status, 0), w.pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        close(w.socket);
        close(w.object);
    }
}

/* ---- the numbers of a bound runner ------------------------------------------------------- */

#define KERNEL                                                                                     \
    "//! launch k args(x, s, y, N)\nvoid k(const float *x, float s, float *y, int n) { for (int "  \
    "i = 0; i < n; i++) y[i] = s * x[i]; }\n"

/* The worker with a kernel loaded and pages bound, by its own protocol. */
static void bind_kernel(worker *w, fixture *f, kl_layout *layout) {
    kl_error e = {0};
    kl_str object;
    fixture_open(f, KL_BACKEND_CPU);
    fixture_compile_for(f, KERNEL, true);
    if (!f->artefact.ok) fail_msg("%s", f->artefact.log.ptr);
    assert_ok(kli_fs_read(&object, f->arena, f->artefact.path.ptr, 1 << 24, &e));
    assert_int_equal(pwrite(w->object, object.ptr, object.len, 0), (ssize_t)object.len);
    w->plan = f->plan;
    kl_msg_load *m = load_of(w);
    send_with(w, m, sizeof *m, 1);
    free(m);
    if (w->reply.fault) fail_msg("%s", w->reply.text);
    assert_ok(kli_layout_make(layout, &f->plan, 2, 3, &e));
    assert_int_equal(ftruncate(w->object, 1 << 20), 0); /* one file for all pages will do */
}

static void test_worker__pages_must_be_as_large_as_the_layout(void **state) {
    worker w;
    fixture f;
    kl_msg_bind m = {.head = {KL_MSG_BIND, KL_WIRE_VERSION}};
    (void)state;
    worker_open(&w);
    bind_kernel(&w, &f, &m.layout);
    expect_bad(&w, &m, sizeof m, 3, "layout");
    expect_bad(&w, &m, sizeof m - 8, 4, "layout");
    m.layout.tensor_offset[2] += 256;
    expect_bad(&w, &m, sizeof m, 4, "layout");
    m.layout.tensor_offset[2] -= 256;
    m.layout.n_slots = ~0u;
    expect_bad(&w, &m, sizeof m, 4, "layout");
    m.layout.n_slots = 3;
    assert_int_equal(ftruncate(w.object, 4096), 0);
    send_with(&w, &m, sizeof m, 4);
    assert_int_equal(w.reply.fault, KL_FAULT_DEVICE);
    assert_contains(w.reply.text, "cannot map the shared pages");
    fixture_close(&f);
    worker_close(&w);
}

/* Of x, which is read; s is a scalar, y is written.  Two sets. */
static const kli_draw DRAW = {.kind = KLI_DRAW_NORMAL,
                              .dtype = KL_F32,
                              .elems = N_FLOATS,
                              .row = N_FLOATS,
                              .active = N_FLOATS,
                              .scale = 1};

static void three_sets(kli_draw_request *q) { q->n = 3; }
static void no_such_set(kli_draw_request *q) { q->first = 2, q->n = 0; }
static void endless_sets(kli_draw_request *q) { q->first = 1, q->n = ~0u; }
static void foreign_proof(kli_draw_request *q) { q->proof = 1; }
static void unknown_draw(kli_draw_request *q) { q->draws[0].kind = KLI_DRAW_INTEGER_CONSTANT + 1; }
static void negative_draw(kli_draw_request *q) { q->draws[0].kind = -1; }
static void other_dtype(kli_draw_request *q) { q->draws[0].dtype = KL_F64; }
static void too_many_elements(kli_draw_request *q) { q->draws[0].elems++; }
static void wrapped_elements(kli_draw_request *q) { q->draws[0].elems += 1ll << 62; }
static void no_row(kli_draw_request *q) { q->draws[0].row = 0; }
static void a_scalar(kli_draw_request *q) { q->draws[1] = DRAW, q->draws[1].elems = 1; }
static void an_output(kli_draw_request *q) { q->draws[2] = DRAW; }

static void expect_bad_draws(worker *w) {
    static void (*const CHANGES[])(kli_draw_request * q) = {
        three_sets,       no_such_set,   endless_sets, foreign_proof,
        unknown_draw,     negative_draw, other_dtype,  too_many_elements,
        wrapped_elements, no_row,        a_scalar,     an_output};
    static kl_msg_draw m;
    for (size_t i = 0; i <= KL_COUNT(CHANGES); i++) {
        m = (kl_msg_draw){{KL_MSG_DRAW, KL_WIRE_VERSION}, {.n = 1, .proof = KLI_NO_PROOF}};
        m.request.draws[0] = DRAW;
        if (i < KL_COUNT(CHANGES)) {
            CHANGES[i](&m.request);
            expect_bad(w, &m, sizeof m, 0, "draw");
            continue;
        }
        send_with(w, &m, sizeof m, 0); /* an honest one is not for shared pages */
        assert_int_equal(w->reply.fault, KL_FAULT_REFUSED);
    }
    expect_bad(w, &m, sizeof m - 1, 0, "draw");
}

static void test_worker__numbers_of_a_request_are_bounded(void **state) {
    worker w;
    fixture f;
    kl_msg_bind m = {.head = {KL_MSG_BIND, KL_WIRE_VERSION}};
    (void)state;
    worker_open(&w);
    bind_kernel(&w, &f, &m.layout);
    send_with(&w, &m, sizeof m, 4);
    if (w.reply.fault) fail_msg("%s", w.reply.text);
    static const kl_msg_run RUNS[] = {{{KL_MSG_RUN, KL_WIRE_VERSION}, 2, 0, 0, 0, 0},
                                      {{KL_MSG_RUN, KL_WIRE_VERSION}, 0, 3, 0, 0, 0},
                                      {{KL_MSG_RUN, KL_WIRE_VERSION}, 0, 0, 256, 0, 0},
                                      {{KL_MSG_RUN, KL_WIRE_VERSION}, 0, 0, 0, 257, 0}};
    for (size_t i = 0; i < KL_COUNT(RUNS); i++) expect_bad(&w, &RUNS[i], sizeof RUNS[i], 0, "run");
    static const kl_msg_upload UPLOADS[] = {{{KL_MSG_UPLOAD, KL_WIRE_VERSION}, 2, 0},
                                            {{KL_MSG_UPLOAD, KL_WIRE_VERSION}, 1, 2},
                                            {{KL_MSG_UPLOAD, KL_WIRE_VERSION}, 1, ~0u}};
    for (size_t i = 0; i < KL_COUNT(UPLOADS); i++)
        expect_bad(&w, &UPLOADS[i], sizeof UPLOADS[i], 0, "upload");
    expect_bad_draws(&w);
    static const kl_msg_fetch FETCHES[] = {
        {{KL_MSG_FETCH, KL_WIRE_VERSION}, 0, 2, 0, {0, 3}},
        {{KL_MSG_FETCH, KL_WIRE_VERSION}, 256, 1, 0, {0}},
        {{KL_MSG_FETCH, KL_WIRE_VERSION}, 0, KL_FETCH_SLOTS + 1, 0, {0}}};
    for (size_t i = 0; i < KL_COUNT(FETCHES); i++)
        expect_bad(&w, &FETCHES[i], sizeof FETCHES[i], 0, "fetch");
    static const kl_msg_audit AUDITS[] = {
        {{KL_MSG_AUDIT, KL_WIRE_VERSION}, 0, KL_WIRE_MAX_SAMPLES + 1, 0},
        {{KL_MSG_AUDIT, KL_WIRE_VERSION}, 0, 1, 256}};
    for (size_t i = 0; i < KL_COUNT(AUDITS); i++)
        expect_bad(&w, &AUDITS[i], sizeof AUDITS[i], 0, "audit");
    kl_msg_time time = {.head = {KL_MSG_TIME, KL_WIRE_VERSION}, .calls = KL_WIRE_MAX_SAMPLES + 1};
    expect_bad(&w, &time, sizeof time, 0, "time");
    time.calls = 1;
    time.warm = KL_WIRE_MAX_SAMPLES + 1;
    expect_bad(&w, &time, sizeof time, 0, "time");
    time.warm = 0;
    time.poison = 256;
    expect_bad(&w, &time, sizeof time, 0, "time");
    time.poison = 0;
    time.method = KL_TIME_GRAPH;
    send_with(&w, &time, sizeof time, 0);
    assert_int_equal(w.reply.fault, KL_FAULT_REFUSED);
    const kl_msg_run run = {{KL_MSG_RUN, KL_WIRE_VERSION}, 1, 2, 0xA5, 0, 0};
    send_with(&w, &run, sizeof run, 0); /* and an honest one still runs */
    assert_int_equal(w.reply.fault, KL_FAULT_NONE);
    assert_true(w.reply.wall_ns > 0);
    fixture_close(&f);
    worker_close(&w);
}

static int descriptors_of(const worker *w) {
    kl_str *names;
    size_t n = 0;
    kl_error e = {0};
    kl_arena *a = kl_arena_new();
    assert_ok(kli_fs_list(&names, &n, a, kl_arena_printf(a, "/proc/%d/fd", (int)w->pid).ptr, &e));
    kl_arena_free(a);
    return (int)n;
}

static void test_worker__a_descriptor_that_nobody_takes_is_closed(void **state) {
    worker w;
    const kl_msg_run run = {.head = {KL_MSG_RUN, KL_WIRE_VERSION}};
    const kl_msg_compare compare = {.head = {KL_MSG_COMPARE, KL_WIRE_VERSION}};
    const kl_msg_bind bind = {.head = {KL_MSG_BIND, KL_WIRE_VERSION}};
    (void)state;
    worker_open(&w);
    kl_msg_load *load = load_of(&w);
    const int before = descriptors_of(&w);
    expect_bad(&w, load, sizeof *load, 4, "plan");
    expect_bad(&w, &bind, sizeof bind, 4, "layout");
    expect_bad(&w, &run, sizeof run, 2, "run");
    expect_bad(&w, &compare, sizeof compare, 1, "comparison");
    assert_int_equal(descriptors_of(&w), before);
    free(load);
    worker_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker__refuses_every_plan_that_leads_outside_itself),
        cmocka_unit_test(test_worker__a_load_has_one_descriptor_and_its_size),
        cmocka_unit_test(test_worker__nothing_runs_before_it_is_bound),
        cmocka_unit_test(test_worker__an_unknown_kind_is_answered),
        cmocka_unit_test(test_worker__a_descriptor_that_nobody_takes_is_closed),
        cmocka_unit_test(test_worker__ends_at_another_version),
        cmocka_unit_test(test_worker__pages_must_be_as_large_as_the_layout),
        cmocka_unit_test(test_worker__numbers_of_a_request_are_bounded),
    };
    signal(SIGPIPE, SIG_IGN);
    kli_fs_remove_tree("cache");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

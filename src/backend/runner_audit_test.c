/* runner_audit_test.c - no byte that one child of a runner could write is readable by the next.
 *
 * The kernel is told every mapping of its runner.  In one child it writes a pattern to all that it
 * can write; in the next it counts the words that hold the pattern.  It finds out what can be read
 * and written by two calls that the filter leaves it: they fail with EFAULT where a kernel's own
 * access would end it.  That it sees what it wrote itself is checked first.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runner_fixture.h"
#include "base/fs.h"

#define AUDIT_KERNEL                                                                               \
    "//! launch audit args(x, s, y, N, t)\n//! buffer t: f32[N]\n"                                 \
    "typedef unsigned long word; typedef struct { word from, to, shared; } range;\n"               \
    "static const range RANGES[] = {%s{0, 0, 0}};\n"                                               \
    "static long call(long n, long a, long b, long c, long d) {\n"                                 \
    "    long r; register long r10 __asm__(\"r10\") = d;\n"                                        \
    "    __asm__ volatile(\"syscall\" : \"=a\"(r) : \"a\"(n), \"D\"(a), \"S\"(b), \"d\"(c), "      \
    "\"r\"(r10) : \"rcx\", "                                                                       \
    "\"r11\", \"memory\"); return r; }\n"                                                          \
    "static int readable(word p) { static const long none[2]; return call(202, (long)p, 0, "       \
    "~*(&(int){0}), "                                                                              \
    "(long)none) != -14; }\n"                                                                      \
    "static int writable(word p, word own) { word kept[2] = {0, 0}; volatile word *q = (void "     \
    "*)p;\n"                                                                                       \
    "    if (p + 4096 > own && p < own + 65536) return 0;\n" /* its own stack frames */            \
    "    if (!readable(p)) return 0; kept[0] = q[0]; kept[1] = q[1];\n"                            \
    "    if (call(228, 1, (long)p, 0, 0) != 0) return 0; q[0] = kept[0]; q[1] = kept[1]; return "  \
    "1; }\n"                                                                                       \
    "void audit(const float *x, float s, float *y, int n, float *t) {\n"                           \
    "    word here = (word)__builtin_frame_address(0), secret = 0x5CA1AB1E0000ul * (word)(x[0] "   \
    "+ 3) + 0x77, found = "                                                                        \
    "0, wrote = 0, shared = 0, at = 0;\n"                                                          \
    "    int scribble = x[1] == 1; (void)s; (void)n; (void)t;\n"                                   \
    "    for (const range *r = RANGES; r->to; r++)\n"                                              \
    "        for (word p = r->from; p < r->to; p += 4096) {\n"                                     \
    "            volatile word *q = (void *)p; int is_y = p >= (word)y - 8192 && p < (word)y + "   \
    "8192;\n"                                                                                      \
    "            if (scribble ? !writable(p, here - 32768) : !readable(p)) continue;\n"            \
    "            if (!scribble) { for (int i = 0; i < 512; i++) if (q[i] == secret && !(p + "      \
    "4096 > here - 32768 && p "                                                                    \
    "< here + 32768)) { found++; at = p; } continue; }\n"                                          \
    "            wrote++; shared += r->shared;\n"                                                  \
    "            if (is_y || (x[2] == 1 && !r->shared)) continue;\n"                               \
    "            for (int i = 8; i < 512; i++) if (r->shared ? i %% 16 != 0 : q[i] == 0 && i > "   \
    "384) q[i] = secret;\n"                                                                        \
    "        }\n"                                                                                  \
    "    for (int i = 0; i < 8; i++) y[i] = 0;\n"                                                  \
    "    y[0] = (float)found; y[1] = (float)wrote; y[2] = (float)shared; y[3] = (float)(at >> "    \
    "32); y[4] = (float)(at "                                                                      \
    "& 0xffffffff);\n"                                                                             \
    "    if (scribble) for (int i = 16; i < 512; i++) y[i] = ((float *)&secret)[i & 1];\n"         \
    "}\n"

typedef struct {
    char text[1 << 16];
    size_t len;
    int n;
} ranges;

static void note_range(void *to, uintptr_t from, uintptr_t end, const char *permissions,
                       const char *name) {
    ranges *r = to;
    if (strstr(name, "[vsyscall]") || strstr(name, "[stack]") || end - from > (64u << 20) ||
        r->len + 128 > sizeof r->text)
        return;
    r->len += (size_t)snprintf(r->text + r->len, sizeof r->text - r->len, "{0x%lx, 0x%lx, %d}, ",
                               (unsigned long)from, (unsigned long)end,
                               permissions[3] == 's' && permissions[1] == 'w');
    r->n++;
}

/* In fixture x: [0] the secret, [1] 1: scribble, [2] 1: into shared pages alone. */
static void audit_open(fixture *f) {
    static char source[1 << 17];
    ranges *r = calloc(1, sizeof *r);
    fixture_open(f, KL_BACKEND_CPU);
    fixture_ready(f,
                  "//! launch audit args(x, s, y, N, t)\n//! buffer t: f32[N]\n"
                  "void audit(const float *x, float s, float *y, int n, float *t) { y[0] = t[0] = "
                  "s * x[n - 1]; }\n",
                  false);
    assert_true(fixture_each_mapping(note_range, r));
    (void)snprintf(source, sizeof source, AUDIT_KERNEL, r->text);
    fixture_compile_for(f, source, false);
    if (!f->artefact.ok) fail_msg("%s", f->artefact.log.ptr);
    fixture_load(f);
    if (f->fault.kind) fail_msg("%s", f->fault.text);
    free(r);
    for (uint32_t set = 0; set < N_SETS; set++) { /* sets 0 and 2 scribble */
        float *x = kli_memory_input(&f->memory, &f->plan, 0, set);
        x[0] = 5;
        x[1] = set % 2 == 0;
        x[2] = 0;
    }
}

/* Who scribbles over everything is seen at the canaries of its own scratch. */
static void expect_no_fault_but_of_scratch(const fixture *f) {
    if (f->fault.kind && !strstr(f->fault.text, "outside buffer `t`"))
        fail_msg("%s", f->fault.text);
}

static const float *audit_run(fixture *f, uint32_t set, uint32_t slot) {
    fixture_run(f, set, slot);
    expect_no_fault_but_of_scratch(f);
    return fixture_y(f, slot);
}

static void audit_time(fixture *f, uint32_t first, uint32_t calls, uint32_t warm) {
    kl_error e = {0};
    double ns;
    const kl_time_request q = {
        .method = KL_TIME_BATCH, .first = first, .calls = calls, .warm = warm, .poison = 0xA5};
    for (uint32_t j = 0; j < calls; j++) kli_memory_poison(&f->memory, &f->plan, first + j, 0xA5);
    assert_ok(kli_runner_time(f->runner, &f->fault, &ns, &q, 20 * SECOND, &e));
    expect_no_fault_but_of_scratch(f);
}

static void expect_nothing_found(const float *y) {
    if (y[0] != 0.0f)
        fail_msg("%g words of an earlier child are left, the last near %lx", (double)y[0],
                 ((unsigned long)y[3] << 32) + (unsigned long)y[4]);
}

static void test_runner_audit__a_run_leaves_nothing_for_a_run(void **state) {
    fixture f;
    (void)state;
    audit_open(&f);
    for (int round = 0; round < 2; round++) {
        const float *y = audit_run(&f, 0, 1);
        assert_true(y[1] > 20 && y[2] > 2); /* it did write, to shared pages too */
        expect_nothing_found(audit_run(&f, 1, 1));
        (void)audit_run(&f, 0, 1);
        expect_nothing_found(audit_run(&f, 3, 2));
    }
    fixture_close(&f);
}

static void test_runner_audit__a_batch_leaves_nothing_for_a_batch(void **state) {
    fixture f;
    (void)state;
    audit_open(&f);
    /* Call 0 scribbles, call 1 looks: in the same child it finds what it wrote.  What a child
     * itself needs between two calls stays as it is. */
    float *x = kli_memory_input(&f.memory, &f.plan, 0, 0);
    x[2] = 1;
    audit_time(&f, 0, 2, 0);
    print_message("written: %g pages, %g of them shared; found in the same child: %g words\n",
                  (double)fixture_y(&f, 0)[1], (double)fixture_y(&f, 0)[2],
                  (double)fixture_y(&f, 1)[0]);
    assert_true(fixture_y(&f, 0)[1] > 20 && fixture_y(&f, 1)[0] > 100.0f);
    audit_time(&f, 0, 1, 2);
    audit_time(&f, 1, 1, 0);
    expect_nothing_found(fixture_y(&f, 1));
    x[2] = 0;
    audit_time(&f, 0, 1, 0);
    audit_time(&f, 1, 1, 2);
    expect_nothing_found(fixture_y(&f, 1));
    fixture_close(&f);
}

static void test_runner_audit__batches_and_runs_leave_nothing_for_each_other(void **state) {
    fixture f;
    (void)state;
    audit_open(&f);
    audit_time(&f, 0, 1, 0);
    expect_nothing_found(audit_run(&f, 1, 1));
    (void)audit_run(&f, 2, 3);
    audit_time(&f, 3, 1, 0);
    expect_nothing_found(fixture_y(&f, 3));
    audit_time(&f, 10, 1, 0); /* a copy whose guards can be touched */
    expect_nothing_found(audit_run(&f, 1, 10));
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runner_audit__a_run_leaves_nothing_for_a_run),
        cmocka_unit_test(test_runner_audit__a_batch_leaves_nothing_for_a_batch),
        cmocka_unit_test(test_runner_audit__batches_and_runs_leave_nothing_for_each_other),
    };
    kli_fs_remove_tree("cache");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* runners_test.c - what the rows of runners.c share: names for addresses, scratch and its canaries,
 * the limits of an artefact.  SPDX-License-Identifier: Apache-2.0 */
#include "backend/runner_ops.h"
#include "base/test.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SETS = 2, SLOTS = KLI_FORBIDDEN_COPIES + 3 };

typedef struct {
    kli_runner_ctx c;
    kl_msg_reply reply;
} scene;

static void add_tensor(kl_plan *p, const char *name, uint32_t role, uint64_t bytes) {
    kl_plan_tensor *t = &p->tensors[p->n_tensors++];
    *t = (kl_plan_tensor){.dtype = KL_U8, .role = role, .ndim = 1, .bytes = bytes};
    snprintf(t->name, sizeof t->name, "%s", name);
}

static void add_buffer(kl_plan *p, const char *name, uint64_t bytes, bool zero) {
    kl_plan_buffer *b = &p->buffers[p->n_buffers++];
    *b = (kl_plan_buffer){.bytes = bytes, .zero = zero};
    snprintf(b->name, sizeof b->name, "%s", name);
}

/* x, s (a scalar), y, m (a mutable input), x2; buffers t and z. */
static int setup(void **state) {
    kl_error e = {0};
    scene *s = calloc(1, sizeof *s);
    kl_plan *p = &s->c.plan;
    add_tensor(p, "x", KL_ROLE_INPUT, 1000);
    add_tensor(p, "s", KL_ROLE_SCALAR, 4);
    add_tensor(p, "y", KL_ROLE_OUTPUT, 5000);
    add_tensor(p, "m", KL_ROLE_MUTABLE, 300);
    add_tensor(p, "x2", KL_ROLE_INPUT, 4096);
    add_buffer(p, "t", 700, false);
    add_buffer(p, "z", 9000, true);
    assert_ok(kli_layout_make(&s->c.layout, p, SETS, SLOTS, &e));
    s->c.reply = &s->reply;
    for (kli_region r = 0; r < KLI_REGIONS; r++) {
        s->c.page_bytes[r] = kli_region_bytes(&s->c.layout, r);
        s->c.pages[r] = calloc(1, s->c.page_bytes[r]);
        assert_non_null(s->c.pages[r]);
    }
    return *state = s, 0;
}

static int teardown(void **state) {
    scene *s = *state;
    for (kli_region r = 0; r < KLI_REGIONS; r++) free(s->c.pages[r]);
    return free(s), 0;
}

static void expect_named(scene *s, int sig, const void *at, bool is_write, kl_fault_kind kind,
                         const char *text) {
    s->reply = (kl_msg_reply){0};
    assert_int_equal(kli_ctx_fault_at(&s->c, sig, (uintptr_t)at, is_write), 1);
    if (s->reply.fault != kind || s->reply.signal != sig || strcmp(s->reply.text, text) != 0)
        fail_msg("fault %u \"%s\", not %d \"%s\"", s->reply.fault, s->reply.text, kind, text);
}

/* ---- pieces ------------------------------------------------------------------------------ */

static void test_piece__the_walk_names_all_but_scalars(void **state) {
    static const struct {
        const char *name;
        uint32_t index;
        kli_region region;
    } WANTED[] = {{"x", 0, KLI_INPUTS},  {"y", 2, KLI_OUTPUTS}, {"m", 3, KLI_OUTPUTS},
                  {"x2", 4, KLI_INPUTS}, {"t", 5, KLI_SCRATCH}, {"z", 6, KLI_SCRATCH}};
    const scene *s = *state;
    size_t n = 0;
    for (kli_piece p = {0}; kli_piece_next(&p, &s->c.plan, &s->c.layout); n++) {
        assert_true(n < KL_COUNT(WANTED));
        assert_string_equal(p.name, WANTED[n].name);
        assert_int_equal(p.index, WANTED[n].index);
        assert_int_equal(p.region, WANTED[n].region);
        assert_int_equal(p.kept, strcmp(p.name, "m") == 0);
        assert_int_equal(p.zero, strcmp(p.name, "z") == 0);
        assert_int_equal(p.zone.data_end - p.zone.data, p.bytes);
    }
    assert_int_equal(n, KL_COUNT(WANTED));
}

static void test_piece__a_plan_of_scalars_alone_has_none(void **state) {
    const kl_layout l = {.n_sets = 1, .n_slots = 1};
    kl_plan p = {0};
    kli_piece piece = {0};
    (void)state;
    add_tensor(&p, "s", KL_ROLE_SCALAR, 4);
    assert_false(kli_piece_next(&piece, &p, &l));
    p.n_tensors = 0;
    assert_false(kli_piece_next(&piece, &p, &l));
}

static void test_region__copies_follow_each_other(void **state) {
    const scene *s = *state;
    for (kli_region r = 0; r < KLI_REGIONS; r++) {
        const uint32_t n = kli_region_copies(&s->c.layout, r);
        assert_int_equal(n, r == KLI_INPUTS ? SETS : SLOTS);
        const char *last = kli_ctx_copy(&s->c, r, n - 1);
        assert_ptr_equal(last + kli_region_stride(&s->c.layout, r),
                         s->c.pages[r] + s->c.page_bytes[r]);
    }
    assert_ptr_equal(kli_ctx_tensor(&s->c, 4, 1, 0),
                     kli_ctx_copy(&s->c, KLI_INPUTS, 1) + s->c.layout.tensor_offset[4]);
    assert_ptr_equal(kli_ctx_buffer(&s->c, 1, 7),
                     kli_ctx_copy(&s->c, KLI_SCRATCH, 7) + s->c.layout.buffer_offset[1]);
}

/* ---- faults ------------------------------------------------------------------------------ */

static void test_fault_at__names_what_the_address_belongs_to(void **state) {
    scene *s = *state;
    char *x = kli_ctx_tensor(&s->c, 0, 1, 0), *y = kli_ctx_tensor(&s->c, 2, 0, 3);
    char *z = kli_ctx_buffer(&s->c, 1, SLOTS - 1);
    expect_named(s, SIGSEGV, x, true, KL_FAULT_INPUT, "wrote to input `x`");
    expect_named(s, SIGSEGV, x + 1024, false, KL_FAULT_GUARD, "read past the end of `x`");
    expect_named(s, SIGBUS, x - 4096, false, KL_FAULT_GUARD, "read before the beginning of `x`");
    expect_named(s, SIGSEGV, y + 5200, true, KL_FAULT_GUARD, "wrote past the end of `y`");
    expect_named(s, SIGSEGV, y - 4096, true, KL_FAULT_GUARD, "wrote before the beginning of `y`");
    expect_named(s, SIGSEGV, z + 9300, true, KL_FAULT_GUARD, "wrote past the end of `z`");
}

static void test_fault_at__says_so_where_it_belongs_to_nothing(void **state) {
    scene *s = *state;
    int elsewhere;
    expect_named(s, SIGSEGV, NULL, false, KL_FAULT_CRASH, "SIGSEGV through a null pointer");
    expect_named(s, SIGBUS, (void *)65535, true, KL_FAULT_CRASH, "SIGBUS through a null pointer");
    expect_named(s, SIGSEGV, &elsewhere, true, KL_FAULT_CRASH,
                 "SIGSEGV outside every tensor and buffer");
    expect_named(s, SIGSEGV, s->c.pages[KLI_INPUTS] - 1, true, KL_FAULT_CRASH,
                 "SIGSEGV outside every tensor and buffer");
    expect_named(s, SIGFPE, NULL, false, KL_FAULT_CRASH, "SIGFPE");
    s->c.pages[KLI_SCRATCH] =
        (free(s->c.pages[KLI_SCRATCH]), NULL); /* of a device: no such pages */
    expect_named(s, SIGSEGV, (void *)70000, true, KL_FAULT_CRASH,
                 "SIGSEGV outside every tensor and buffer");
}

static void test_fault__a_long_text_is_cut(void **state) {
    scene *s = *state;
    char text[2 * sizeof s->reply.text];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_int_equal(kli_fault(&s->c, KL_FAULT_REFUSED, "%s", text), 1);
    assert_int_equal(strlen(s->reply.text), sizeof s->reply.text - 1);
}

/* ---- scratch ----------------------------------------------------------------------------- */

static void test_scratch__every_byte_beside_a_buffer_is_a_canary(void **state) {
    scene *s = *state;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        kli_ctx_scratch_fill(&s->c, slot, 1, 0xA5);
        const unsigned char *t = (unsigned char *)kli_ctx_buffer(&s->c, 0, slot);
        const unsigned char *z = (unsigned char *)kli_ctx_buffer(&s->c, 1, slot);
        assert_true(t[0] == 0xA5 && t[699] == 0xA5 && z[0] == 0 && z[8999] == 0);
        for (kli_piece p = {0}; kli_piece_next(&p, &s->c.plan, &s->c.layout);) {
            if (p.region != KLI_SCRATCH) continue;
            /* Copies without guard pages have canaries there too. */
            const bool pages = slot < KLI_FORBIDDEN_COPIES;
            const uint64_t from = pages ? p.zone.page : p.zone.low,
                           end = pages ? p.zone.page_end : p.zone.high;
            const uint64_t places[] = {from, p.zone.data - 1, p.zone.data_end, end - 1};
            for (size_t i = 0; i < KL_COUNT(places); i++) {
                char *byte = kli_ctx_copy(&s->c, KLI_SCRATCH, slot) + places[i];
                assert_int_equal(kli_ctx_scratch_check(&s->c, slot, 1, 0xA5), 0);
                if (places[i] == p.zone.data - 1 && p.zone.data == p.zone.page && pages) continue;
                *byte ^= 1;
                assert_int_equal(kli_ctx_scratch_check(&s->c, slot, 1, 0xA5), 1);
                assert_int_equal(s->reply.fault, KL_FAULT_GUARD);
                *byte ^= 1;
            }
        }
    }
}

static void test_scratch__slots_of_calls_wrap_around(void **state) {
    scene *s = *state;
    memset(s->c.pages[KLI_SCRATCH], 0x11, s->c.page_bytes[KLI_SCRATCH]);
    kli_ctx_scratch_fill(&s->c, SLOTS - 1, 2, 0xFF);
    assert_int_equal(*(unsigned char *)kli_ctx_buffer(&s->c, 0, SLOTS - 1), 0xFF);
    assert_int_equal(*(unsigned char *)kli_ctx_buffer(&s->c, 0, 0), 0xFF);
    assert_int_equal(*(unsigned char *)kli_ctx_buffer(&s->c, 0, 1), 0x11);
    kli_ctx_scratch_fill(&s->c, 5, 0, 0xFF); /* the empty batch of a handshake */
    assert_int_equal(*(unsigned char *)kli_ctx_buffer(&s->c, 0, 5), 0x11);
    kli_ctx_scratch_fill(&s->c, 3, 10 * SLOTS, 0xA5); /* more calls than slots: each once */
    assert_int_equal(kli_ctx_scratch_check(&s->c, 0, 10 * SLOTS, 0xA5), 0);
    assert_int_equal(kli_ctx_scratch_check(&s->c, SLOTS - 1, 1, 0xFF), 1); /* another poison */
}

/* ---- numbers ----------------------------------------------------------------------------- */

static void expect_number(const scene *s, kl_value v, size_t bytes, uint64_t wanted) {
    uint64_t bits = ~0ull;
    assert_int_equal(kli_ctx_number(&s->c, &v, &bits), bytes);
    assert_true(bits == wanted);
}

static void test_number__has_the_bytes_of_its_parameter(void **state) {
    scene *s = *state;
    const int64_t large = (1ll << 53) + 1; /* a double would lose its last bit */
    expect_number(s, (kl_value){.kind = KL_VALUE_I32, .i = -2}, 4, 0xFFFFFFFEu);
    expect_number(s, (kl_value){.kind = KL_VALUE_I64, .i = large}, 8, (uint64_t)large);
    expect_number(s, (kl_value){.kind = KL_VALUE_F32, .f = 1.5}, 4, 0x3FC00000u);
    expect_number(s, (kl_value){.kind = KL_VALUE_F64, .f = -2}, 8, 0xC000000000000000u);
    s->c.plan.tensors[1].dtype = KL_I64;
    expect_number(s, (kl_value){.kind = KL_VALUE_SCALAR, .index = 1, .i = large}, 8,
                  (uint64_t)large);
    s->c.plan.tensors[1].dtype = KL_BF16;
    expect_number(s, (kl_value){.kind = KL_VALUE_SCALAR, .index = 1, .f = 1}, 2, 0x3F80);
    s->c.plan.tensors[1].dtype = KL_I8;
    expect_number(s, (kl_value){.kind = KL_VALUE_SCALAR, .index = 1, .f = -1}, 1, 0xFF);
}

static void test_number__what_is_none_has_no_bytes(void **state) {
    static const kl_value_kind NONE[] = {KL_VALUE_TENSOR, KL_VALUE_BUFFER, KL_VALUE_TENSORMAP,
                                         KL_VALUE_LOCAL};
    for (size_t i = 0; i < KL_COUNT(NONE); i++)
        expect_number(*state, (kl_value){.kind = NONE[i], .i = 7, .f = 7}, 0, 0);
}

/* ---- artefacts --------------------------------------------------------------------------- */

static void test_artefact__is_read_whole_or_not_at_all(void **state) {
    kl_arena *a = kl_arena_new();
    kl_str text;
    int fd = memfd_create("artefact", MFD_CLOEXEC);
    (void)state;
    assert_false(kli_artefact_read(&text, a, fd, 100)); /* empty */
    assert_int_equal(write(fd, "0123456789", 10), 10);
    assert_true(kli_artefact_read(&text, a, fd, 10));
    assert_str(text, "0123456789");
    assert_int_equal(text.ptr[10], '\0');
    assert_false(kli_artefact_read(&text, a, fd, 9));
    close(fd);
    assert_false(kli_artefact_read(&text, a, fd, 100));
    kl_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(test_piece__the_walk_names_all_but_scalars),
        TEST(test_piece__a_plan_of_scalars_alone_has_none),
        TEST(test_region__copies_follow_each_other),
        TEST(test_fault_at__names_what_the_address_belongs_to),
        TEST(test_fault_at__says_so_where_it_belongs_to_nothing),
        TEST(test_fault__a_long_text_is_cut),
        TEST(test_scratch__every_byte_beside_a_buffer_is_a_canary),
        TEST(test_scratch__slots_of_calls_wrap_around),
        TEST(test_number__has_the_bytes_of_its_parameter),
        TEST(test_number__what_is_none_has_no_bytes),
        TEST(test_artefact__is_read_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

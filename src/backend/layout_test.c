/* layout_test.c - where tensors lie: alignment, guards, canaries, shared pages.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/layout.h"
#include "backend/runner_ops.h"
#include "base/test.h"
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static kl_plan plan_of(const uint64_t *bytes, const uint32_t *roles, uint32_t n) {
    kl_plan p = {
        .magic = KL_PLAN_MAGIC, .version = KL_PLAN_VERSION, .n_tensors = n, .n_buffers = 2};
    for (uint32_t i = 0; i < n; i++) {
        p.tensors[i] =
            (kl_plan_tensor){.dtype = KL_U8, .role = roles[i], .ndim = 1, .bytes = bytes[i]};
        (void)snprintf(p.tensors[i].name, sizeof p.tensors[i].name, "t%u", i);
    }
    p.buffers[0] = (kl_plan_buffer){.bytes = 100, .name = "b0"};
    p.buffers[1] = (kl_plan_buffer){.bytes = 5000, .name = "b1"};
    return p;
}

static const uint64_t BYTES[] = {1, 255, 256, 257, 4095, 4096, 4097, 70000, 8};
static const uint32_t ROLES[] = {KL_ROLE_INPUT,   KL_ROLE_OUTPUT, KL_ROLE_INPUT,
                                 KL_ROLE_MUTABLE, KL_ROLE_OUTPUT, KL_ROLE_INPUT,
                                 KL_ROLE_OUTPUT,  KL_ROLE_INPUT,  KL_ROLE_SCALAR};

static void test_layout__every_copy_ends_at_a_guard_page(void **state) {
    kl_error e = {0};
    kl_layout l;
    kl_plan p = plan_of(BYTES, ROLES, 9);
    uint64_t set_end = 0, slot_end = 0;
    (void)state;
    assert_ok(kli_layout_make(&l, &p, 3, 5, &e));
    assert_true(l.set_bytes % KL_GUARD_BYTES == 0 && l.slot_bytes % KL_GUARD_BYTES == 0 &&
                l.scratch_bytes % KL_GUARD_BYTES == 0);
    for (uint32_t i = 0; i < 8; i++) {
        kli_zone z = kli_zone_of(l.tensor_offset[i], BYTES[i], KL_GUARD_BYTES);
        uint64_t *end = ROLES[i] == KL_ROLE_INPUT ? &set_end : &slot_end;
        assert_int_equal(z.data % 256, 0);
        assert_true(z.page_end - z.data_end < 256);
        assert_true(z.page - z.low >= KL_GUARD_BYTES && z.high - z.page_end >= KL_GUARD_BYTES);
        assert_true(z.low >= *end);
        *end = z.page_end; /* a guard page may be shared with the next one */
        assert_true(z.high <= (ROLES[i] == KL_ROLE_INPUT ? l.set_bytes : l.slot_bytes));
    }
}

static void test_layout__refuses_what_is_impossible(void **state) {
    kl_error e = {0};
    kl_layout l;
    kl_plan p = plan_of(BYTES, ROLES, 9);
    (void)state;
    assert_err(KL_EINVAL, kli_layout_make(&l, &p, 0, 1, &e));
    assert_err(KL_EINVAL, kli_layout_make(&l, &p, KL_MAX_SETS + 1, 1, &e));
    assert_err(KL_EINVAL, kli_layout_make(&l, &p, 1, 1u << 20, &e));
    p.tensors[0].bytes = KL_MAX_TENSOR_BYTES + 1;
    assert_err(KL_ELIMIT, kli_layout_make(&l, &p, 1, 1, &e));
    p.tensors[0].bytes = KL_MAX_TENSOR_BYTES;
    assert_err(KL_ELIMIT, kli_layout_make(&l, &p, 4, 1, &e));
    p.n_tensors = KL_MAX_TENSORS + 1;
    assert_err(KL_ELIMIT, kli_layout_make(&l, &p, 1, 1, &e));
}

static void test_memory__finds_a_damaged_guard(void **state) {
    kl_error e = {0};
    kl_layout l;
    kl_memory m;
    kl_plan p = plan_of(BYTES, ROLES, 9);
    (void)state;
    assert_ok(kli_layout_make(&l, &p, 2, 3, &e));
    assert_ok(kli_memory_open(&m, &l, &e));
    unsigned char *mutable = kli_memory_output(&m, &p, 3, 1);
    memset(mutable, 0x11, 257);
    for (uint32_t slot = 0; slot < 3; slot++) kli_memory_poison(&m, &p, slot, 0xA5);
    assert_int_equal(mutable[0], 0x11); /* mutable inputs keep their data: the gate restores them */
    assert_int_equal(((unsigned char *)kli_memory_output(&m, &p, 1, 0))[254], 0xA5);
    for (uint32_t i = 0; i < 8; i++) {
        if (ROLES[i] == KL_ROLE_INPUT) continue;
        unsigned char *data = kli_memory_output(&m, &p, i, 1);
        assert_int_equal(kli_memory_guard_damage(&m, &p, 1, 0xA5), -1);
        data[BYTES[i]] ^= 1;
        assert_int_equal(kli_memory_guard_damage(&m, &p, 1, 0xA5), i);
        assert_int_equal(kli_memory_guard_damage(&m, &p, 2, 0xA5), -1);
        data[BYTES[i]] ^= 1;
        data[-1] ^= 1; /* may lie in the guard page that its neighbour shares */
        assert_int_not_equal(kli_memory_guard_damage(&m, &p, 1, 0xA5), -1);
        data[-1] ^= 1;
    }
    kli_memory_close(&m);
    kli_memory_close(&m);
}

static void test_memory__nobody_else_can_write_inputs(void **state) {
    kl_error e = {0};
    kl_layout l;
    kl_memory m, beside;
    kl_plan p = plan_of(BYTES, ROLES, 9);
    (void)state;
    assert_ok(kli_layout_make(&l, &p, 2, 3, &e));
    assert_ok(kli_memory_open(&m, &l, &e));
    assert_ptr_equal(
        mmap(NULL, m.inputs_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m.inputs_ro_fd, 0),
        MAP_FAILED);
    void *read_only = mmap(NULL, m.inputs_bytes, PROT_READ, MAP_SHARED, m.inputs_ro_fd, 0);
    assert_ptr_not_equal(read_only, MAP_FAILED);
    assert_int_equal(mprotect(read_only, m.inputs_bytes, PROT_READ | PROT_WRITE), -1);
    munmap(read_only, m.inputs_bytes);
    assert_ok(kli_memory_open_beside(&beside, &l, &m, &e));
    assert_ptr_equal(beside.inputs, m.inputs);
    assert_ptr_not_equal(beside.outputs, m.outputs);
    kli_memory_close(&beside);
    ((char *)kli_memory_input(&m, &p, 0, 1))[0] = 1; /* still ours */
    kli_memory_close(&m);
}

static void test_layout__bytes_beside_an_input_leave_its_data_alone(void **state) {
    kl_plan plan = {.n_tensors = 2};
    kl_layout layout;
    kl_memory m;
    kl_error e = {0};
    (void)state;
    for (int i = 0; i < 2; i++)
        plan.tensors[i] = (kl_plan_tensor){.role = KL_ROLE_INPUT, .bytes = 1000};
    assert_ok(kli_layout_make(&layout, &plan, 2, 1, &e));
    assert_ok(kli_memory_open(&m, &layout, &e));
    unsigned char *x[2] = {kli_memory_input(&m, &plan, 0, 1), kli_memory_input(&m, &plan, 1, 1)};
    memset(x[0], 7, 1000);
    memset(x[1], 8, 1000);
    kli_memory_slack(&m, &plan, 1, -1, 0xFF);
    kli_memory_slack(&m, &plan, 1, 1, 0);
    assert_true(x[0][-1] == 0xFF && x[0][0] == 7 && x[0][999] == 7 && x[0][1000] == 0xFF);
    assert_true(x[1][-1] == 0 && x[1][0] == 8 && x[1][999] == 8 && x[1][1000] == 0);
    assert_int_equal(((unsigned char *)kli_memory_input(&m, &plan, 0, 0))[1000],
                     0); /* another set */
    kli_memory_close(&m);
}

/* What the host says of memory files, "[never]" among other words; empty where it says nothing. */
static void host_setting(char text[128]) {
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "re");
    if (!f || !fgets(text, 128, f)) text[0] = '\0';
    if (f) (void)fclose(f);
}

/* Sets behind those with forbidden guards, on a boundary of huge pages, in every process; slots and
 * the first sets never. */
static void test_memory__huge_pages_lie_behind_forbidden_guards(void **state) {
    enum { SETS = 40 };
    kl_plan plan = {.n_tensors = 2};
    kl_layout l;
    kl_memory m;
    kl_error e = {0};
    char setting[128];
    (void)state;
    plan.tensors[0] = (kl_plan_tensor){.role = KL_ROLE_INPUT, .bytes = 300000};
    plan.tensors[1] = (kl_plan_tensor){.role = KL_ROLE_OUTPUT, .bytes = 300000};
    assert_ok(kli_layout_make(&l, &plan, SETS, SETS, &e));
    const size_t from = kli_huge_from(&l, KLI_INPUTS);
    assert_true(from % KLI_HUGE_BYTES == 0 && from >= KLI_FORBIDDEN_COPIES * l.set_bytes);
    assert_true(from < KLI_FORBIDDEN_COPIES * l.set_bytes + KLI_HUGE_BYTES);
    assert_true(kli_huge_from(&l, KLI_OUTPUTS) == kli_region_bytes(&l, KLI_OUTPUTS));
    assert_ok(kli_memory_open(&m, &l, &e));
    assert_int_equal((uintptr_t)m.inputs % KLI_HUGE_BYTES, 0);
    host_setting(setting);
    if (!setting[0] || strstr(setting, "[never]") || strstr(setting, "[deny]"))
        assert_false(m.huge || kli_huge_pages_here());
    char *theirs = kli_pages_map(m.inputs_ro_fd, m.inputs_bytes, PROT_READ, from);
    assert_non_null(theirs);
    for (uint32_t set = 0; set < SETS; set++) {
        char *mine = kli_memory_input(&m, &plan, 0, set);
        memset(mine, (int)set + 1, 300000);
        assert_memory_equal(theirs + (mine - m.inputs), mine, 300000);
    }
    munmap(theirs, m.inputs_bytes);
    kli_memory_close(&m);
    assert_ok(kli_layout_make(&l, &plan, KLI_FORBIDDEN_COPIES, SETS, &e));
    assert_true(kli_huge_from(&l, KLI_INPUTS) == kli_region_bytes(&l, KLI_INPUTS));
}

/* No guard is a part of a huge page, for any input of such a set: each can be forbidden in pages of
 * any kind.  Where the host put some aside (vm.nr_hugepages), they are. */
static void test_memory__a_large_input_lies_between_huge_guards(void **state) {
    kl_plan plan = {.n_tensors = 3};
    kl_layout l;
    kl_memory m;
    kl_error e = {0};
    int nothing[2];
    (void)state;
    plan.tensors[0] = (kl_plan_tensor){.role = KL_ROLE_INPUT, .bytes = (16u << 20) + 300};
    plan.tensors[1] = (kl_plan_tensor){.role = KL_ROLE_INPUT, .bytes = 1000};
    plan.tensors[2] = (kl_plan_tensor){.role = KL_ROLE_OUTPUT, .bytes = 1000};
    assert_ok(kli_layout_make(&l, &plan, 2, 2, &e));
    assert_true(l.set_bytes % KLI_HUGE_BYTES == 0 && l.slot_bytes == 3 * KL_GUARD_BYTES);
    assert_int_equal(kli_huge_from(&l, KLI_INPUTS), 0);
    assert_ok(kli_memory_open(&m, &l, &e));
    char *theirs = kli_pages_map(m.inputs_ro_fd, m.inputs_bytes, PROT_READ, 0);
    assert_non_null(theirs);
    assert_int_equal(mprotect(theirs, m.inputs_bytes, PROT_READ | PROT_WRITE), -1);
    void *writable = mmap(NULL, KLI_HUGE_BYTES, PROT_WRITE, MAP_SHARED, m.inputs_fd, 0);
    assert_ptr_equal(writable, MAP_FAILED); /* not by the gate's own descriptor either */
    assert_int_equal(pipe(nothing), 0);
    for (kli_piece p = {0}; kli_piece_next(&p, &plan, &l);) {
        if (p.region != KLI_INPUTS) continue;
        const kli_zone z = p.zone;
        char *mine = kli_memory_input(&m, &plan, p.index, 1), *at = theirs + l.set_bytes;
        assert_true((z.low | z.page | z.page_end | z.high) % KLI_HUGE_BYTES == 0);
        assert_true(z.page_end - z.data_end < 256 && z.high <= l.set_bytes);
        memset(mine, 7, p.bytes);
        assert_int_equal(mprotect(at + z.low, z.page - z.low, PROT_NONE), 0);
        assert_int_equal(mprotect(at + z.page_end, z.high - z.page_end, PROT_NONE), 0);
        assert_memory_equal(at + z.data, mine, p.bytes);
        assert_int_equal(write(nothing[1], at + z.page - 1, 1), -1);
        assert_int_equal(write(nothing[1], at + z.page_end, 1), -1);
        assert_int_equal(write(nothing[1], at + z.data, 1), 1);
    }
    (void)close(nothing[0]), (void)close(nothing[1]);
    munmap(theirs, m.inputs_bytes);
    kli_memory_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout__every_copy_ends_at_a_guard_page),
        cmocka_unit_test(test_layout__refuses_what_is_impossible),
        cmocka_unit_test(test_memory__finds_a_damaged_guard),
        cmocka_unit_test(test_memory__nobody_else_can_write_inputs),
        cmocka_unit_test(test_layout__bytes_beside_an_input_leave_its_data_alone),
        cmocka_unit_test(test_memory__huge_pages_lie_behind_forbidden_guards),
        cmocka_unit_test(test_memory__a_large_input_lies_between_huge_guards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

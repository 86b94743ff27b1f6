/* digest_test.c - timed calls on made-up pages: what is compared, what is known, what is said of a
 * call that is wrong. SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"

#include "gate_impl.h"

/* ---- a made-up kernel: the right answer of set k is k + 1 in the first byte; the second may be
 * anything --- */

__typeof__(kli_check_slot) __wrap_kli_check_slot;
__typeof__(kli_problem_answer) __wrap_kli_problem_answer;
__typeof__(kli_runner_run) __wrap_kli_runner_run;
__typeof__(kli_runner_fetch) __wrap_kli_runner_fetch;

enum { SETS = 16, SLOTS = 17, BYTES = 64 };

static struct {
    int compared, answered, fetched, fetches, reruns;
    kl_fault_kind fault; /* of a fetch */
    bool rerun_is_right;
} did;

static kli_problem *scene_now;
static kl_memory pages;

static uint8_t *output(uint32_t slot) {
    return kli_memory_output(&pages, &scene_now->plan, 0, slot);
}

kl_err __wrap_kli_check_slot(kli_evaluation *c, kli_problem *s, uint32_t set, uint32_t slot,
                             uint8_t poison, bool record, kli_check_outcome *f, kl_error *e) {
    (void)c, (void)s, (void)record, (void)e;
    did.compared++;
    if (output(slot)[0] == set + 1 && output(slot)[1] != poison) return KL_OK;
    *f = (kli_check_outcome){.outcome = KL_OUTCOME_WRONG, .why = KL_S("y[0] is wrong")};
    return KL_OK;
}

kl_err __wrap_kli_problem_answer(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e) {
    (void)s, (void)c, (void)set, (void)e;
    did.answered++;
    return KL_OK;
}

kl_err __wrap_kli_runner_fetch(kl_runner *r, kl_fault *fault, const uint32_t *slots, uint32_t n,
                               uint8_t poison, kl_error *e) {
    (void)r, (void)poison, (void)e;
    assert_in_range(n, 1, KL_FETCH_SLOTS);
    for (uint32_t i = 0; i < n; i++) {
        assert_in_range(slots[i], 0, SLOTS - 1);
        for (uint32_t k = 0; k < i; k++) assert_true(slots[k] != slots[i]);
    }
    did.fetched += (int)n;
    did.fetches++;
    *fault = (kl_fault){.kind = did.fault};
    return KL_OK;
}

kl_err __wrap_kli_runner_run(kl_runner *r, kl_fault *fault, uint32_t set, uint32_t slot,
                             uint8_t poison, int64_t timeout_ns, int64_t *wall_ns, kl_error *e) {
    (void)r, (void)fault, (void)poison, (void)timeout_ns, (void)wall_ns, (void)e;
    did.reruns++;
    output(slot)[0] = (uint8_t)(did.rerun_is_right ? set + 1 : 0);
    output(slot)[1] = 1;
    return KL_OK;
}

/* ---- a world with shared pages ----------------------------------------------------------- */

static const kl_backend CPU = {.on = KL_ON_CPU, .shared_memory = true}, GPU = {.on = KL_ON_GPU};

typedef struct {
    kli_evaluation c;
    kli_problem problem;
    kl_gate_opts opts;
    kl_verdict verdict;
    kli_executable oracle;
    kli_digests digests;
    kli_check_outcome checked;
} world;

static void world_open(world *w) {
    kl_layout layout;
    kl_error e = {0};
    *w = (world){.checked = {.ok = true}};
    w->c = (kli_evaluation){.arena = kl_arena_new(),
                            .opts = &w->opts,
                            .verdict = &w->verdict,
                            .backend = &CPU,
                            .schedule = {7},
                            .oracle = &w->oracle};
    w->problem = (kli_problem){
        .n_sets = SETS, .n_slots = SLOTS, .pages_seen = true, .plan = {.n_tensors = 1}};
    w->problem.plan.tensors[0] =
        (kl_plan_tensor){.dtype = KL_U8, .role = 1, .ndim = 1, .dims = {BYTES}, .bytes = BYTES};
    assert_ok(kli_layout_make(&layout, &w->problem.plan, SETS, SLOTS, &e));
    assert_ok(kli_memory_open(&w->problem.memory, &layout, &e));
    scene_now = &w->problem;
    pages = w->problem.memory;
    memset(&did, 0, sizeof did);
    kli_digests_begin(&w->digests, &w->c, "base");
}

static void world_close(world *w) {
    kli_memory_close(&w->problem.memory);
    kl_arena_free(w->c.arena);
}

/* A batch in which every call did its work; `noise` differs from batch to batch. */
static void run_batch(world *w, const kli_batch *b, uint8_t noise) {
    for (uint32_t j = 0; j < b->calls; j++) {
        const uint32_t slot = (b->first + j) % SLOTS;
        kli_memory_poison(&w->problem.memory, &w->problem.plan, slot, b->poison);
        memset(output(slot), noise, BYTES);
        output(slot)[0] = (uint8_t)((b->first + j) % SETS + 1);
    }
}

static void judge(world *w, const kli_batch *b) {
    kl_error e = {0};
    assert_ok(kli_digests_judge(&w->digests, &w->c, &w->problem, b, &w->checked, &e));
}

static kli_batch batch_of(uint32_t first, uint32_t calls, uint8_t poison) {
    return (kli_batch){.first = first, .calls = calls, .poison = poison, .here = true};
}

/* ---- tests ------------------------------------------------------------------------------- */

static void test_gate_digest__each_input_set_is_compared_once(void **state) {
    (void)state;
    static world w;
    world_open(&w);
    for (uint32_t batch_index = 0; batch_index < 6; batch_index++) {
        const kli_batch b =
            batch_of(5 * batch_index, SETS, batch_index % 2 ? KL_POISON_NAN : KL_POISON_BITS);
        run_batch(&w, &b, 1);
        judge(&w, &b);
    }
    assert_true(w.checked.ok);
    assert_int_equal(
        did.compared,
        SETS); /* over the other poison the data is the same, and the guards are whole */
    assert_int_equal(did.reruns, 0);
    world_close(&w);
}

/* Whichever call of whichever batch it is. */
static void test_gate_digest__one_skipped_call_of_a_batch_is_a_cheat(void **state) {
    (void)state;
    static world w;
    for (uint32_t skipped = 0; skipped < SETS; skipped++) {
        world_open(&w);
        did.rerun_is_right = true;
        kli_batch b = batch_of(3, SETS, KL_POISON_NAN);
        run_batch(&w, &b, 1);
        judge(&w, &b);
        b.first = 11;
        run_batch(&w, &b, 1);
        output((b.first + skipped) % SLOTS)[0] = 99; /* something that is no poison */
        w.digests.spent_ns = INT64_MAX / 2;          /* however long comparing took */
        judge(&w, &b);
        assert_false(w.checked.ok);
        assert_int_equal(w.checked.outcome, KL_OUTCOME_CHEAT);
        assert_int_equal(did.reruns, 1);
        world_close(&w);
    }
}

static void test_gate_digest__damaged_guards_make_another_digest(void **state) {
    (void)state;
    static world w;
    world_open(&w);
    kli_batch b = batch_of(0, SETS, KL_POISON_NAN);
    run_batch(&w, &b, 1);
    judge(&w, &b);
    const int before = did.compared;
    output(4)[BYTES] ^= 1;
    judge(&w, &b);
    assert_int_equal(did.compared, before + 1);
    world_close(&w);
}

static void test_gate_digest__wrong_outside_the_clock_too_is_wrong(void **state) {
    (void)state;
    static world w;
    world_open(&w);
    kli_batch b = batch_of(0, SETS, KL_POISON_NAN);
    run_batch(&w, &b, 1);
    output(2)[0] = 99;
    judge(&w, &b);
    assert_int_equal(w.checked.outcome, KL_OUTCOME_WRONG);
    world_close(&w);
}

static void test_gate_digest__other_bits_are_no_accusation_and_have_a_bound(void **state) {
    (void)state;
    static world w;
    world_open(&w);
    for (uint32_t batch_index = 0; batch_index < 8; batch_index++) {
        const kli_batch b = batch_of(batch_index, SETS, KL_POISON_NAN);
        run_batch(&w, &b, (uint8_t)(batch_index + 1));
        judge(&w, &b);
    }
    assert_true(w.checked.ok);
    assert_int_equal(did.compared, 8 * SETS);
    w.digests.spent_ns = INT64_MAX / 2;
    const kli_batch b = batch_of(0, SETS, KL_POISON_NAN);
    run_batch(&w, &b, 77);
    judge(&w, &b);
    assert_true(w.checked.ok);
    assert_int_equal(did.compared, 8 * SETS + KLI_LEAST_CALLS);
    world_close(&w);
}

static void test_gate_digest__poison_is_never_left_out(void **state) {
    (void)state;
    static world w;
    for (uint32_t skipped = 0; skipped < SETS; skipped++) {
        world_open(&w);
        w.digests.spent_ns = INT64_MAX / 2;
        const kli_batch b = batch_of(0, SETS, KL_POISON_BITS);
        run_batch(&w, &b, 1);
        memset(output(skipped), KL_POISON_BITS, BYTES);
        judge(&w, &b);
        assert_false(w.checked.ok);
        world_close(&w);
    }
}

static void test_gate_digest__on_a_device_a_blank_slot_is_known_by_its_digest(void **state) {
    (void)state;
    static world w;
    for (uint32_t skipped = 0; skipped < SETS; skipped++) {
        uint64_t digests[SETS];
        world_open(&w);
        w.digests.spent_ns = INT64_MAX / 2;
        const kli_batch b = {
            .calls = SETS, .poison = KL_POISON_NAN, .digests = digests, .blank = 7};
        run_batch(&w, &b, 1);
        for (uint32_t j = 0; j < SETS; j++) digests[j] = j == skipped ? b.blank : 1000 + j;
        memset(output(skipped), KL_POISON_NAN, BYTES);
        judge(&w, &b);
        assert_false(w.checked.ok);
        world_close(&w);
    }
}

/* A few at a time, each slot once; damage found then is what is said. */
static void test_gate_digest__slots_are_asked_for_together(void **state) {
    (void)state;
    static world w;
    uint64_t digests[SETS];
    for (uint32_t j = 0; j < SETS; j++) digests[j] = 1000 + j;
    const kli_batch b = {.calls = SETS, .poison = KL_POISON_NAN, .digests = digests};
    world_open(&w);
    run_batch(&w, &b, 1);
    judge(&w, &b);
    assert_true(w.checked.ok);
    assert_int_equal(did.compared, SETS);
    assert_int_equal(did.fetched, SETS);
    assert_int_equal(did.fetches, 1);
    world_close(&w);
    world_open(&w);
    run_batch(&w, &b, 1);
    did.fault = KL_FAULT_GUARD;
    judge(&w, &b);
    assert_true(!w.checked.ok && w.checked.outcome == KL_OUTCOME_WRONG);
    assert_int_equal(did.compared, 0);
    world_close(&w);
}

static void test_gate_digest__calls_that_share_a_slot_are_known_by_their_digests(void **state) {
    (void)state;
    static world w;
    uint64_t digests[3 * SLOTS];
    world_open(&w);
    w.problem.n_sets = SLOTS; /* so that a slot always has the same inputs */
    const kli_batch b = {
        .first = 0, .calls = 3 * SLOTS, .poison = KL_POISON_NAN, .digests = digests};
    for (uint32_t j = 0; j < b.calls; j++) digests[j] = 1000 + j % SLOTS;
    for (uint32_t j = 0; j < SLOTS; j++) output(j)[0] = (uint8_t)(j + 1), output(j)[1] = 1;
    judge(&w, &b);
    assert_true(w.checked.ok && !w.digests.differs);
    assert_int_equal(did.fetched, SLOTS);
    digests[5] = 1; /* overwritten long since */
    judge(&w, &b);
    assert_true(w.checked.ok && w.digests.differs);
    assert_int_equal(did.fetched, SLOTS);
    world_close(&w);
}

/* A device's runner poisons its own memory; where the device can read pages of the host as well, no
 * answer stays there. */
static void test_gate_digest__pages_are_poisoned_where_a_kernel_can_reach_them(void **state) {
    (void)state;
    static world w;
    uint64_t digests[SETS];
    for (uint32_t j = 0; j < SETS; j++) digests[j] = 1000 + j;
    const kli_batch b = {.calls = SETS, .poison = KL_POISON_BITS, .digests = digests};
    for (int seen = 0; seen < 2; seen++) {
        world_open(&w);
        w.c.backend = &GPU;
        w.problem.pages_seen = seen;
        run_batch(&w, &b, 1);
        judge(&w, &b);
        assert_true(w.checked.ok);
        for (uint32_t j = 0; j < SETS; j++)
            assert_int_equal(output(j)[0], seen ? KL_POISON_NAN : j + 1);
        output(3)[0] = 9;
        kli_problem_ready_slot(&w.problem, 3, 3, KL_POISON_NAN);
        assert_int_equal(output(3)[0], seen ? KL_POISON_NAN : 9);
        world_close(&w);
    }
}

/* Also of outputs that were brought together with others, and not looked at; and where a device
 * gives no digests, so that all are. */
static void test_gate_digest__what_was_brought_and_not_compared_is_poisoned_too(void **state) {
    (void)state;
    static world w;
    uint64_t digests[SETS];
    for (uint32_t j = 0; j < SETS; j++) digests[j] = j < 6 ? 1000 : 1000 + j; /* six look blank */
    const kli_batch rows[] = {
        {.calls = SETS, .poison = KL_POISON_BITS, .digests = digests, .blank = 1000},
        {.calls = SETS, .poison = KL_POISON_BITS, .here = true}};
    const int compared[] = {6, KLI_LEAST_CALLS}, brought[] = {SETS, SETS};
    for (size_t i = 0; i < KL_COUNT(rows); i++) {
        int poisoned = 0;
        world_open(&w);
        w.c.backend = &GPU;
        w.digests.spent_ns = INT64_MAX / 4; /* no more calls than must be */
        run_batch(&w, &rows[i], 1);
        judge(&w, &rows[i]);
        for (uint32_t j = 0; j < SETS; j++) poisoned += output(j)[0] == KL_POISON_NAN;
        assert_int_equal(did.compared, compared[i]);
        assert_int_equal(poisoned, brought[i]);
        world_close(&w);
    }
}

static void test_gate_digest__a_slot_is_ready_until_a_byte_changes(void **state) {
    (void)state;
    static world w;
    const uint32_t touched[] = {0, 1, BYTES - 1, BYTES}; /* the last is a guard's */
    world_open(&w);
    for (size_t i = 0; i < KL_COUNT(touched); i++)
        for (int kind = 0; kind < 2; kind++) {
            const uint8_t poison = kind ? KL_POISON_NAN : KL_POISON_BITS;
            kli_problem_ready_slot(&w.problem, 2, 5, poison);
            assert_true(kli_slot_is_ready(&w.problem, 2, 5, poison));
            output(5)[touched[i]] ^= 1;
            assert_false(kli_slot_is_ready(&w.problem, 2, 5, poison));
        }
    world_close(&w);
}

/* A batch that ends while a group of calls is not done yet. */
static void test_gate_digest__calls_that_would_be_done_later_are_a_cheat(void **state) {
    (void)state;
    static world w;
    world_open(&w);
    did.rerun_is_right = true;
    const kli_batch whole = batch_of(0, SETS, KL_POISON_NAN), cut = batch_of(3, 5, KL_POISON_NAN);
    run_batch(&w, &whole, 1);
    judge(&w, &whole);
    assert_true(w.checked.ok);
    run_batch(&w, &cut, 1);
    for (uint32_t j = 3; j < cut.calls; j++)
        kli_memory_poison(&w.problem.memory, &w.problem.plan, cut.first + j, cut.poison);
    judge(&w, &cut);
    assert_false(w.checked.ok);
    assert_int_equal(w.checked.outcome, KL_OUTCOME_CHEAT);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_digest__pages_are_poisoned_where_a_kernel_can_reach_them),
        cmocka_unit_test(test_gate_digest__what_was_brought_and_not_compared_is_poisoned_too),
        cmocka_unit_test(test_gate_digest__a_slot_is_ready_until_a_byte_changes),
        cmocka_unit_test(test_gate_digest__calls_that_would_be_done_later_are_a_cheat),
        cmocka_unit_test(test_gate_digest__each_input_set_is_compared_once),
        cmocka_unit_test(test_gate_digest__one_skipped_call_of_a_batch_is_a_cheat),
        cmocka_unit_test(test_gate_digest__damaged_guards_make_another_digest),
        cmocka_unit_test(test_gate_digest__wrong_outside_the_clock_too_is_wrong),
        cmocka_unit_test(test_gate_digest__other_bits_are_no_accusation_and_have_a_bound),
        cmocka_unit_test(test_gate_digest__poison_is_never_left_out),
        cmocka_unit_test(test_gate_digest__on_a_device_a_blank_slot_is_known_by_its_digest),
        cmocka_unit_test(test_gate_digest__slots_are_asked_for_together),
        cmocka_unit_test(test_gate_digest__calls_that_share_a_slot_are_known_by_their_digests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

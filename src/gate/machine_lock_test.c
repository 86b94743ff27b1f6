/* machine_lock_test.c - who waits for whom, how long, and what is said meanwhile.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"
#include "base/test.h"
#include "base/fs.h"
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t SECOND = 1000000000;

static void stay_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) _exit(2);
}

/* Another process that has a turn until it is killed; `cpu` < 0: all cores. */
static pid_t other_gate(bool alone, int cpu, bool on_gpu) {
    int ready[2];
    char c;
    assert_int_equal(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        kli_machine_lock t;
        if (cpu >= 0) stay_on(cpu);
        alarm(60);
        kli_machine_lock_open(&t, "gate gemm", on_gpu);
        if ((alone ? kli_machine_lock_exclusive(&t) : kli_machine_lock_shared(&t)) !=
            KL_MACHINE_LOCK_TAKEN)
            _exit(1);
        (void)!write(ready[1], "", 1);
        for (;;) pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    return pid;
}

static void end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static kli_machine_lock impatient(bool on_gpu) {
    kli_machine_lock t;
    kli_machine_lock_open(&t, "gate softmax", on_gpu);
    t.limit_ns = SECOND / 4;
    return t;
}

static void test_gate_turn__checking_is_shared(void **state) {
    (void)state;
    const pid_t other = other_gate(false, -1, false);
    kli_machine_lock t = impatient(false);
    assert_int_equal(kli_machine_lock_shared(&t), KL_MACHINE_LOCK_TAKEN);
    kli_machine_lock_close(&t);
    end(other);
}

static void test_gate_turn__timing_is_alone_and_waiting_has_a_bound(void **state) {
    (void)state;
    char wanted[64];
    const pid_t other = other_gate(true, -1, false);
    kli_machine_lock t = impatient(false);
    const int64_t begin = kli_now_ns();
    assert_int_equal(kli_machine_lock_shared(&t), KL_MACHINE_LOCK_TOO_LONG);
    assert_true(kli_now_ns() - begin < 10 * SECOND);
    snprintf(wanted, sizeof wanted, "PID %ld (gate gemm), since ", (long)other);
    assert_contains(t.holder, wanted);
    assert_int_equal(kli_machine_lock_exclusive(&t), KL_MACHINE_LOCK_TOO_LONG);
    end(other); /* its locks end with it */
    assert_int_equal(kli_machine_lock_exclusive(&t), KL_MACHINE_LOCK_TAKEN);
    kli_machine_lock_close(&t);
}

static char said[200];
static void hear(void *ctx, kl_stage stage, const char *text) {
    (void)ctx, (void)stage;
    snprintf(said, sizeof said, "%s", text);
}

static void test_gate_turn__waiting_is_shown(void **state) {
    (void)state;
    char wanted[64];
    const pid_t other = other_gate(true, -1, false);
    kli_machine_lock t = impatient(false);
    t.limit_ns = 2 * SECOND;
    t.progress = hear;
    assert_int_equal(kli_machine_lock_exclusive(&t), KL_MACHINE_LOCK_TOO_LONG);
    snprintf(wanted, sizeof wanted, "waiting for PID %ld (gate gemm), since ", (long)other);
    assert_contains(said, wanted);
    kli_machine_lock_close(&t);
    end(other);
}

static void test_gate_turn__other_cores_are_another_room(void **state) {
    (void)state;
    cpu_set_t before;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    if (!CPU_ISSET(0, &before) || !CPU_ISSET(1, &before)) skip();
    const pid_t other = other_gate(true, 0, false);
    stay_on(1);
    kli_machine_lock t = impatient(false);
    assert_int_equal(kli_machine_lock_exclusive(&t), KL_MACHINE_LOCK_TAKEN);
    kli_machine_lock_close(&t);
    stay_on(0);
    t = impatient(false);
    assert_int_equal(kli_machine_lock_exclusive(&t), KL_MACHINE_LOCK_TOO_LONG);
    kli_machine_lock_close(&t);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    end(other);
}

static void test_gate_turn__who_times_on_a_gpu_leaves_the_cores_to_others(void **state) {
    (void)state;
    const pid_t other = other_gate(true, -1, true);
    kli_machine_lock t = impatient(false);
    assert_int_equal(kli_machine_lock_exclusive(&t), KL_MACHINE_LOCK_TAKEN);
    kli_machine_lock_close(&t);
    t = impatient(true);
    assert_int_equal(kli_machine_lock_exclusive(&t), KL_MACHINE_LOCK_TOO_LONG); /* the same GPU */
    kli_machine_lock_close(&t);
    setenv("CUDA_VISIBLE_DEVICES", "3,1", 1);
    t = impatient(true);
    assert_int_equal(kli_machine_lock_exclusive(&t), KL_MACHINE_LOCK_TAKEN);
    kli_machine_lock_close(&t);
    unsetenv("CUDA_VISIBLE_DEVICES");
    end(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_turn__checking_is_shared),
        cmocka_unit_test(test_gate_turn__timing_is_alone_and_waiting_has_a_bound),
        cmocka_unit_test(test_gate_turn__waiting_is_shown),
        cmocka_unit_test(test_gate_turn__other_cores_are_another_room),
        cmocka_unit_test(test_gate_turn__who_times_on_a_gpu_leaves_the_cores_to_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

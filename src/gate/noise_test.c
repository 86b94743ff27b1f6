/* noise_test.c - a machine is noisy when somebody else wants the core that is timed.  SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "gate_impl.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HOGS = 4 };

static int timed_core(void) {
    const kl_plan one = {.threads = 1};
    return kl_gate_pin_cpu(&one);
}

static pid_t hog(int core) {
    const pid_t pid = fork();
    if (pid) return pid;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
    alarm(60);
    for (volatile int k = 0;; k = k + 1) {
    }
}

static void test_gate_noise__a_wanted_core_is_noisy(void **state) {
    (void)state;
    kl_error e = {0};
    kl_noise n;
    pid_t hogs[HOGS];
    char text[160];
    if (timed_core() < 0) skip();
    for (int i = 0; i < HOGS; i++) hogs[i] = hog(timed_core());
    const kl_err err = kl_gate_noise(&n, &e);
    for (int i = 0; i < HOGS; i++) {
        kill(hogs[i], SIGKILL);
        waitpid(hogs[i], NULL, 0);
    }
    assert_ok(err);
    assert_true(n.noisy);
    assert_true(n.pairs >= 4 && n.left_out > 0 && n.left_out <= n.pairs);
    assert_contains(kl_noise_text(&n, text, sizeof text), "pairs disturbed, load ");
}

static void test_gate_noise__says_a_floor(void **state) {
    (void)state;
    kl_error e = {0};
    kl_noise n;
    char text[160];
    assert_ok(kl_gate_noise(&n, &e));
    assert_true(n.pairs >= 4 && n.floor >= 0 && n.left_out <= n.pairs);
    assert_true(n.noisy || n.floor <= KL_NOISY);
    n.floor = 56;
    assert_contains(kl_noise_text(&n, text, sizeof text), "A/A floor above 100 %");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_noise__a_wanted_core_is_noisy),
        cmocka_unit_test(test_gate_noise__says_a_floor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

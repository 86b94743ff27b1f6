/* lease_test.c - leases over every member of the store: one owner at a time, taken over from the
 * dead, kept from the living, and no money without one.  SPDX-License-Identifier: Apache-2.0 */
#include "store/members.h"
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char owner[KL_LEASE_OWNER_BYTES];

static void wait_ms(int ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* As if another process had taken it. */
static void put_owner(const char *name, const char *text, int64_t deadline_ms) {
    const kli_lease_row row = {kl_str_of(name), kl_str_of(text), deadline_ms};
    assert_ok(kli_put(s, &kli_leases, &row, &e));
}

static kli_lease_row row_of(const char *name) {
    kli_lease_row row = {0};
    const kli_query q = {.table = &kli_leases, .match = {{"name", .text = kl_str_of(name)}}};
    const kl_err err = kli_first(&row, s, arena, &q, &e);
    assert_true(err == KL_OK || err == KL_ENOENT);
    return row;
}

/* The owner of a lease that this process takes for a moment, with another number of a process and
 * another start. */
static const char *owner_like_mine(int pid, unsigned long long start) {
    kl_lease *l;
    char boot[64], host[128];
    unsigned long long namespace, mine;
    int number, serial;
    assert_ok(kl_lease_take(&l, s, "probe", owner, &e));
    const kl_str text = row_of("probe").owner;
    kl_lease_release(l);
    assert_int_equal(sscanf(text.ptr, "%63s %llu %d %llu %d %127s", boot, &namespace, &number,
                            &mine, &serial, host),
                     6);
    return kl_arena_printf(arena, "%s %llu %d %llu %d %s", boot, namespace, pid,
                           start ? start : mine, serial, host)
        .ptr;
}

static const char elsewhere[] = "00000000-0000-0000-0000-000000000000 4026531836 17 99 0 far";

static void test_lease__is_held_until_it_is_released(void **state) {
    (void)state;
    kl_lease *mine, *other;
    kl_store *also = opened();
    assert_ok(kl_lease_take(&mine, s, "run/a", owner, &e));
    assert_err(KL_EBUSY, kl_lease_take(&other, also, "run/a", owner, &e));
    assert_null(other);
    assert_string_equal(owner, kl_arena_printf(arena, "process %d", (int)getpid()).ptr);
    assert_contains(e.message, owner);
    assert_ok(kl_lease_take(&other, also, "run/b", owner, &e)); /* another track */
    assert_string_equal(owner, "");
    kl_lease_release(other);
    kl_lease_release(mine);
    assert_int_equal(row_of("run/a").owner.len, 0);
    assert_ok(kl_lease_take(&other, also, "run/a", owner, &e));
    kl_lease_release(other);
    kl_lease_release(NULL);
    kl_store_close(also);
}

static void test_lease__of_a_process_that_is_gone_is_taken_at_once(void **state) {
    (void)state;
    kl_lease *mine;
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    assert_true(pid > 0);
    wait_ms(50);
    put_owner("a", owner_like_mine((int)pid, 1),
              now_ms() + 3600000); /* ended, and not waited for */
    assert_ok(kl_lease_take(&mine, s, "a", owner, &e));
    kl_lease_release(mine);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    put_owner("a", owner_like_mine((int)pid, 1), now_ms() + 3600000); /* no process at all */
    assert_ok(kl_lease_take(&mine, s, "a", owner, &e));
    kl_lease_release(mine);
    put_owner("a", owner_like_mine((int)getpid(), 1),
              now_ms() + 3600000); /* its number was given to another */
    assert_ok(kl_lease_take(&mine, s, "a", owner, &e));
    kl_lease_release(mine);
}

static void test_lease__of_a_process_that_lives_is_its_own_past_its_deadline(void **state) {
    (void)state;
    kl_lease *mine;
    put_owner("a", owner_like_mine((int)getpid(), 0), now_ms() - 1);
    assert_err(KL_EBUSY, kl_lease_take(&mine, s, "a", owner, &e));
}

static void test_lease__of_a_process_out_of_sight_ends_at_its_deadline(void **state) {
    (void)state;
    kl_lease *mine;
    put_owner("a", elsewhere, now_ms() + 300);
    assert_err(KL_EBUSY, kl_lease_take(&mine, s, "a", owner, &e));
    assert_string_equal(owner, "process 17 of far");
    wait_ms(350);
    assert_ok(kl_lease_take(&mine, s, "a", owner, &e));
    kl_lease_release(mine);
}

static void test_lease__is_renewed_while_it_is_held(void **state) {
    (void)state;
    kl_lease *mine;
    assert_ok(kli_lease_take(&mine, s, "a", 200, owner, &e));
    const int64_t first = row_of("a").deadline_ms;
    for (int i = 0; i < 100 && row_of("a").deadline_ms == first; i++) wait_ms(20);
    assert_true(row_of("a").deadline_ms > first);
    kl_lease_release(mine);
}

static kl_err reserve(const kl_lease *lease) {
    kl_store_charge c = {.effect = key_of("a call"),
                         .run = KL_S("r"),
                         .track = KL_S("t"),
                         .reserved_microusd = 5,
                         .lease = lease};
    return kl_store_reserve(s, &c, true, 100, 0, &e);
}

/* A process that did not answer for longer than its lease, and then goes on. */
static void test_lease__that_was_lost_reserves_no_money_and_is_not_taken_back(void **state) {
    (void)state;
    kl_lease *mine;
    kl_store_charge *rows;
    size_t n;
    assert_ok(kli_lease_take(&mine, s, "a", 200, owner, &e));
    assert_ok(reserve(mine));
    assert_ok(kl_store_release(s, key_of("a call").ptr, &e));
    put_owner("a", elsewhere, now_ms() + 3600000);
    assert_err(KL_EBUSY, reserve(mine));
    assert_contains(e.message, "process 17 of far took this over");
    assert_ok(kl_store_charge_list(&rows, &n, s, arena, NULL, &e));
    assert_int_equal(n, 1);
    assert_str(rows[0].state, "released");
    wait_ms(150); /* two renewals */
    kl_lease_release(mine);
    assert_str(row_of("a").owner, elsewhere);
}

/* Any number of processes that want one thing: at most one has it at a time. */
static void test_lease__processes_have_it_one_after_the_other(void **state) {
    (void)state;
    enum { PROCESSES = 5 };
    pid_t pids[PROCESSES];
    const char *mark = kli_fs_join(arena, dir, "mark").ptr;
    for (int p = 0; p < PROCESSES; p++) {
        if ((pids[p] = kl_store_fork(s)) != 0) continue;
        kl_lease *mine;
        kl_err err = KL_EBUSY;
        for (int i = 0; err == KL_EBUSY && i < 500; i++) {
            err = kl_lease_take(&mine, s, "a", owner, &e);
            if (err) wait_ms(10);
        }
        if (err || mkdir(mark, 0700) != 0) _exit(1); /* fails where another one has it, too */
        wait_ms(30);
        if (rmdir(mark) != 0) _exit(2);
        if (p % 2) _exit(0); /* ends without a word */
        kl_lease_release(mine);
        kl_store_close(s);
        _exit(0);
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status;
        assert_int_equal(waitpid(pids[p], &status, 0), pids[p]);
        assert_int_equal(status, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OVER_MEMBERS(test_lease__is_held_until_it_is_released),
        OVER_MEMBERS(test_lease__of_a_process_that_is_gone_is_taken_at_once),
        OVER_MEMBERS(test_lease__of_a_process_that_lives_is_its_own_past_its_deadline),
        OVER_MEMBERS(test_lease__of_a_process_out_of_sight_ends_at_its_deadline),
        OVER_MEMBERS(test_lease__is_renewed_while_it_is_held),
        OVER_MEMBERS(test_lease__that_was_lost_reserves_no_money_and_is_not_taken_back),
        OVER_PROCESSES(test_lease__processes_have_it_one_after_the_other),
    };
    return RUN_MEMBERS(tests);
}

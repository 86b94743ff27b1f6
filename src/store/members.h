/* members.h - every member of the store, for tests that must hold over each of them.
 *
 *     const struct CMUnitTest tests[] = {OVER_MEMBERS(test_ledger__a_cap_is_reached), ...};
 *     return RUN_MEMBERS(tests);
 *
 * With KL_TEST_MEMBER=postgresql the same program runs its tests over that member, on a server of
 * its own, or ends with 77 where there is no PostgreSQL; otherwise over the others.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_STORE_MEMBERS_H
#define KL_STORE_MEMBERS_H
#include "base/fs.h"
#include "base/hash.h"
#include "kit/kit.h"
#include "kit/server.h"
#include "store/store_impl.h"
#include <stdlib.h>

extern const kli_store_ops kli_memory; /* memory_member.c */

/* The URL of a database that is fresh. */
static inline const char *fresh_database(void) {
    static int n;
    const char *url = kit_server_ask(kl_arena_printf(arena, "database test%d", ++n).ptr);
    assert_contains(url, "postgresql://");
    return url;
}

/* What each test begins with: a fresh journal at `path` in the test's folder, open as `s`. */
static const char *dir, *path;
static kl_store *s;
static const kli_store_ops *member;

static inline kl_store *opened(void) {
    kl_store *another;
    assert_ok(kli_store_open(&another, member, path, &e));
    return another;
}

static inline int set_up_member(void **state, const kli_store_ops *ops) {
    kit_set_up(state);
    member = ops;
    dir = kit_folder();
    path = ops == &kli_postgresql ? fresh_database() : kit_path("klineage.db");
    s = opened();
    return 0;
}

static inline int set_up_sqlite(void **state) { return set_up_member(state, &kli_sqlite); }

static inline int set_up_memory(void **state) { return set_up_member(state, &kli_memory); }

static inline int set_up_postgresql(void **state) { return set_up_member(state, &kli_postgresql); }

static inline int tear_down(void **state) {
    kl_store_close(s);
    return kit_tear_down(state);
}

static inline kl_str key_of(const char *name) {
    return kl_arena_copy(arena, kl_str_of(kli_hash_of(kl_str_of(name)).hex));
}

#define OVER(name, test)                                                                           \
    { #test " over " #name, test, set_up_##name, tear_down, NULL }
#define ON_SQLITE(test) OVER(sqlite, test)
#define ON_POSTGRESQL(test) OVER(postgresql, test)
#define OVER_PROCESSES(test) OVER(sqlite, test), OVER(postgresql, test) /* memory is not shared */
#define OVER_MEMBERS(test) OVER_PROCESSES(test), OVER(memory, test)

/* 0: go on. */
static inline int choose_members(void) {
    const char *named = getenv("KL_TEST_MEMBER");
    if (!named || strcmp(named, "postgresql") != 0) {
        cmocka_set_skip_filter("* over postgresql");
        return 0;
    }
    cmocka_set_test_filter("* over postgresql");
    return kit_server_start("postgresql.py", NULL) ? 0 : 77;
}

#define RUN_MEMBERS(tests) (choose_members() ? 77 : cmocka_run_group_tests(tests, NULL, NULL))

#endif

/* members.h - every member of the store, for tests that must hold over each of them.
 *
 *     static const struct CMUnitTest tests[] = {OVER_MEMBERS(test_ledger__a_cap_is_reached), ...};
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_STORE_MEMBERS_H
#define KL_STORE_MEMBERS_H
#include "base/fs.h"
#include "base/hash.h"
#include "kit/kit.h"
#include "store/store_impl.h"

extern const kli_store_ops kli_memory; /* memory_member.c */

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
    path = kit_path("klineage.db");
    s = opened();
    return 0;
}

static inline int set_up_sqlite(void **state) { return set_up_member(state, &kli_sqlite); }

static inline int set_up_memory(void **state) { return set_up_member(state, &kli_memory); }

static inline int tear_down(void **state) {
    kl_store_close(s);
    return kit_tear_down(state);
}

static inline kl_str key_of(const char *name) {
    return kl_arena_copy(arena, kl_str_of(kli_hash_of(kl_str_of(name)).hex));
}

#define ON_SQLITE(test) cmocka_unit_test_setup_teardown(test, set_up_sqlite, tear_down)
#define OVER_MEMBERS(test)                                                                         \
    {#test " over sqlite", test, set_up_sqlite, tear_down, NULL}, {                                \
#test " over memory", test, set_up_memory, tear_down, NULL                                 \
    }

#endif

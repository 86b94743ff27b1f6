/* kit.h - what unit tests share: the arena, the error and the folder of the test that runs.
 *
 * A test that is entered with KIT_TEST finds `arena` fresh and `e` empty, and gives both back at
 * its end; what it needs beyond that is set up by a function of its own that calls kit_set_up
 * first.  Only tests include it. SPDX-License-Identifier: Apache-2.0 */
#ifndef KIT_KIT_H
#define KIT_KIT_H
#include "base/test.h"

extern kl_arena *arena;
extern kl_error e; /* the one that assert_ok and assert_err show */

int kit_set_up(void **state);
int kit_tear_down(void **state);
#define KIT_TEST(function) cmocka_unit_test_setup_teardown(function, kit_set_up, kit_tear_down)

/* A folder of the running test, made when it is first asked for and removed with everything in it
 * at the end. */
const char *kit_folder(void);
const char *kit_path(const char *name);                    /* NAME in it */
const char *kit_write(const char *name, const char *text); /* the path */
const char *kit_read(const char *path);

#endif

/* test.h - what every *_test.c includes: cmocka with the headers it forgets, and a check for kl_err
 * that shows why. Only tests include it.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BASE_TEST_H
#define KL_BASE_TEST_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <klineage/base.h>

/* `call` uses the kl_error named `e`; on a surprise its message is printed. */
#define assert_ok(call) kl_test_code((call), KL_OK, &e, #call, __FILE__, __LINE__)
#define assert_err(code, call) kl_test_code((call), (code), &e, #call, __FILE__, __LINE__)
#define assert_str(s, literal) kl_test_text((s), kl_str_of(literal), __FILE__, __LINE__)
#define assert_contains(haystack, needle)                                                          \
    do                                                                                             \
        if (!strstr((haystack), (needle)))                                                         \
            fail_msg("\"%s\" is not in:\n%s", (needle), (haystack));                               \
    while (0)

static inline void kl_test_code(kl_err got, kl_err wanted, const kl_error *e, const char *call,
                                const char *file, int line) {
    if (got == wanted) return;
    print_error("%s gave %s, not %s: %s: %s\n", call, kl_err_name(got), kl_err_name(wanted),
                e->where, e->message);
    _fail(file, line);
}

static inline void kl_test_text(kl_str got, kl_str wanted, const char *file, int line) {
    if (kl_str_eq(got, wanted)) return;
    print_error("\"%.*s\" is not \"%.*s\"\n", KL_STR_ARG(got), KL_STR_ARG(wanted));
    _fail(file, line);
}

#endif

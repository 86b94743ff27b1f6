/* Tests of sse.c.  SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "model_impl.h"

static kl_buf got;

static kl_err keep(void *ctx, kl_str name, kl_str data) {
    (void)ctx;
    kl_buf_printf(&got, "[%.*s|%.*s]", KL_STR_ARG(name), KL_STR_ARG(data));
    return kl_str_eq(data, KL_S("stop")) ? KL_EMODEL : KL_OK;
}

/* Everything in pieces of `size` bytes. */
static kl_err feed(kl_str text, size_t size) {
    kli_sse s = {.event = keep};
    kl_err err = KL_OK;
    kl_buf_fini(&got);
    kl_buf_add(&got, KL_S(""));
    for (size_t i = 0; i < text.len && !err; i += size)
        err = kli_sse_feed(&s, (kl_str){text.ptr + i, i + size <= text.len ? size : text.len - i});
    kli_sse_fini(&s);
    return err;
}

static void test_model_sse__events_are_the_same_in_pieces_of_any_size(void **state) {
    (void)state;
    static const struct {
        const char *text, *events;
    } CASES[] = {
        {"data: a\n\n", "[|a]"},
        {"event: x\ndata: a\n\ndata: b\n\n", "[x|a][|b]"},
        {"event: x\r\ndata: a\r\n\r\n", "[x|a]"},
        {"event: x\rdata: a\r\rdata: b\r\r", "[x|a][|b]"},
        {"data: a\r\n\ndata: b\n\n", "[|a][|b]"},
        {"data: a\ndata: b\ndata:\n\n", "[|a\nb\n]"},
        {"data:a\n\ndata:  a\n\n", "[|a][| a]"},
        {": comment\n\n:\n\ndata\n\n", "[|]"},
        {"event: x\n\ndata: a\n\n", "[|a]"},
        {"id: 7\nretry: 5\nfoo: bar\nfoo\ndata: a:b\n\n", "[|a:b]"},
        {"\xef\xbb\xbf"
         "data: a\n\n\xef\xbb\xbf"
         "data: b\n\n",
         "[|a]"},
        {"data: never ended", ""},
        {"data: never ended\n", ""},
        {"\n\n\n", ""},
    };
    for (size_t i = 0; i < KL_COUNT(CASES); i++)
        for (size_t size = 1; size < 20; size++) {
            assert_int_equal(feed(kl_str_of(CASES[i].text), size), KL_OK);
            assert_string_equal(got.ptr, CASES[i].events);
        }
    kl_buf_fini(&got);
}

static void test_model_sse__a_callback_that_fails_ends_it(void **state) {
    (void)state;
    assert_int_equal(feed(KL_S("data: a\n\ndata: stop\n\ndata: b\n\n"), 5), KL_EMODEL);
    assert_string_equal(got.ptr, "[|a][|stop]");
    kl_buf_fini(&got);
}

static void test_model_sse__lines_and_events_are_bounded(void **state) {
    (void)state;
    kl_buf long_line = {0}, many = {0};
    for (int i = 0; i < 50000; i++)
        kl_buf_add(&long_line, KL_S("data: 0123456789012345678901234567890123456789"));
    assert_int_equal(feed(kl_buf_str(&long_line), 4096), KL_ELIMIT);
    for (int i = 0; i < 60000; i++)
        kl_buf_add(&many, KL_S("data: 0123456789012345678901234567890123456789\n"));
    assert_int_equal(feed(kl_buf_str(&many), 4096), KL_ELIMIT);
    kl_buf_fini(&long_line);
    kl_buf_fini(&many);
    kl_buf_fini(&got);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_sse__events_are_the_same_in_pieces_of_any_size),
        cmocka_unit_test(test_model_sse__a_callback_that_fails_ends_it),
        cmocka_unit_test(test_model_sse__lines_and_events_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Tests of json.c.  SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "kit/kit.h"

static json_t *parsed(const char *text) {
    json_t *o = NULL;
    assert_ok(kli_json_parse(&o, kl_str_of(text), KL_S("x.json"), &e));
    return o;
}

static void test_base_json__a_syntax_error_has_line_and_caret(void **state) {
    (void)state;
    json_t *o;
    assert_err(KL_EPARSE,
               kli_json_parse(&o, KL_S("{\n  \"a\": 1,\n  \"b\": oops\n}\n"), KL_S("x.json"), &e));
    assert_null(o);
    assert_contains(e.where, "x.json:3:");
    assert_contains(e.detail, "\"b\": oops");
    assert_contains(e.detail, "^");
}

static void test_base_json__refuses_duplicates_garbage_and_nothing(void **state) {
    (void)state;
    const char *const bad[] = {
        "{\"a\":1,\"a\":2}",        "{} x", "", "[1,]", "{\"a\":\"\xff\"}", "[1e999]",
        "[99999999999999999999999]"};
    for (size_t i = 0; i < KL_COUNT(bad); i++) {
        json_t *o;
        assert_err(KL_EPARSE, kli_json_parse(&o, kl_str_of(bad[i]), KL_S("x.json"), &e));
    }
    json_t *o;
    assert_err(KL_EPARSE, kli_json_parse(&o, (kl_str){0}, KL_S("x.json"), &e));
}

static void test_base_json__depth_is_bounded(void **state) {
    (void)state;
    char *deep = KL_ARRAY(arena, char, 100001);
    memset(deep, '[', 100000);
    json_t *o;
    assert_err(KL_EPARSE, kli_json_parse(&o, kl_str_of(deep), KL_S("x.json"), &e));
}

static void test_base_json__getters_name_the_field_and_what_it_is(void **state) {
    (void)state;
    json_t *o = parsed("{\"name\":\"gemm\",\"r\":1.5}");
    kl_str text, file = KL_S("definition.json");
    assert_ok(kli_json_text(&text, o, "name", file, &e));
    assert_str(text, "gemm");
    assert_err(KL_EPARSE, kli_json_text(&text, o, "absent", file, &e));
    assert_string_equal(e.where, "definition.json");
    assert_string_equal(e.message, "the key \"absent\" is missing; it must be a string");
    assert_err(KL_EPARSE, kli_json_text(&text, o, "r", file, &e));
    assert_string_equal(e.message, "the key \"r\" is a real number; it must be a string");
    assert_err(KL_EPARSE, kli_json_text(&text, NULL, "name", file, &e));
    json_decref(o);
}

static void test_base_json__defaults_stand_in_for_missing_and_mistyped(void **state) {
    (void)state;
    json_t *o = parsed("{\"t\":\"x\",\"i\":3,\"r\":1.5,\"b\":true}");
    assert_str(kli_json_text_or(o, "t", KL_S("d")), "x");
    assert_str(kli_json_text_or(o, "i", KL_S("d")), "d");
    assert_int_equal(kli_json_int_or(o, "i", 9), 3);
    assert_int_equal(kli_json_int_or(o, "r", 9), 9);
    assert_true(kli_json_real_or(o, "i", 9) == 3);
    assert_true(kli_json_real_or(o, "r", 9) == 1.5);
    assert_true(kli_json_bool_or(o, "b", false));
    assert_true(kli_json_bool_or(o, "absent", true));
    assert_true(kli_json_real_or(NULL, "r", 9) == 9);
    json_decref(o);
}

static void test_base_json__reals_survive_even_when_json_has_no_word_for_them(void **state) {
    (void)state;
    const double values[] = {1.055, -0.1, 1e-300, 3, __builtin_inf(), -__builtin_inf()};
    for (size_t i = 0; i < KL_COUNT(values); i++) {
        json_t *o = json_pack("{s:o}", "v", kli_json_real(values[i]));
        json_t *back = parsed(kli_json_dump(arena, o, false).ptr);
        assert_true(kli_json_real_or(back, "v", 77) == values[i]);
        json_decref(o);
        json_decref(back);
    }
    json_t *o = json_pack("{s:o}", "v", kli_json_real(__builtin_nan("")));
    double v = kli_json_real_or(o, "v", 77);
    assert_true(v != v);
    assert_str(kli_json_dump(arena, o, false), "{\"v\":\"NaN\"}");
    json_decref(o);
}

static void test_base_json__invalid_utf8_is_replaced(void **state) {
    (void)state;
    const struct {
        kl_str in;
        const char *out;
    } cases[] = {
        {KL_S("plain"), "plain"},
        {KL_S(""), ""},
        {KL_S("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"),
         "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
        {KL_S("a\xff"
              "b"),
         "a\xef\xbf\xbd"
         "b"},
        {KL_S("cut \xe2\x82"), "cut \xef\xbf\xbd\xef\xbf\xbd"},
        {KL_S("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd"},                 /* overlong */
        {KL_S("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* surrogate */
        {KL_S("\xf4\x90\x80\x80"),
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* above U+10FFFF */
        {KL_S("nul\0here"), "nul\xef\xbf\xbdhere"},
    };
    for (size_t i = 0; i < KL_COUNT(cases); i++) {
        json_t *s = kli_json_str(cases[i].in);
        assert_string_equal(json_string_value(s), cases[i].out);
        json_decref(s);
    }
}

static void test_base_json__dump_keeps_order_and_short_reals(void **state) {
    (void)state;
    json_t *o = parsed("{\"z\": 1.055, \"a\": [0.1, 2]}");
    assert_str(kli_json_dump(arena, o, false), "{\"z\":1.055,\"a\":[0.1,2]}");
    kl_str pretty = kli_json_dump(arena, o, true);
    assert_true(kl_str_ends(pretty, KL_S("\n}\n")));
    json_decref(o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_base_json__a_syntax_error_has_line_and_caret),
        KIT_TEST(test_base_json__refuses_duplicates_garbage_and_nothing),
        KIT_TEST(test_base_json__depth_is_bounded),
        KIT_TEST(test_base_json__getters_name_the_field_and_what_it_is),
        KIT_TEST(test_base_json__defaults_stand_in_for_missing_and_mistyped),
        KIT_TEST(test_base_json__reals_survive_even_when_json_has_no_word_for_them),
        KIT_TEST(test_base_json__invalid_utf8_is_replaced),
        KIT_TEST(test_base_json__dump_keeps_order_and_short_reals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* style_test.c - the style sheet can be read: its own colours, light and dark, have the contrast
 * that WCAG 2 asks for (AA: 4.5 for text, 3 for what is to be seen), and figures find their names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"
#include "base/test.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LIGHT, DARK };

static kl_buf sheet;

static int set_up(void **state) {
    (void)state;
    kli_style(&sheet);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    kl_buf_fini(&sheet);
    return 0;
}

/* What the sheet says of `--name`: its first block is the light one, the second the dark one. */
static unsigned value_of(const char *name, int scheme) {
    char text[64];
    unsigned colour = 0;
    snprintf(text, sizeof text, ";--%s:#", name);
    const char *at = strstr(sheet.ptr, text);
    if (at && scheme == DARK) at = strstr(at + 1, text);
    if (!at || sscanf(at + strlen(text), "%6x", &colour) != 1) fail_msg("no colour --%s", name);
    return colour;
}

static double luminance(unsigned colour) {
    static const double weights[] = {0.0722, 0.7152, 0.2126}; /* blue, green, red */
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        const double v = (double)(colour >> 8 * i & 255) / 255;
        sum += weights[i] * (v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4));
    }
    return sum;
}

static double contrast(unsigned x, unsigned y) {
    const double a = luminance(x) + 0.05, b = luminance(y) + 0.05;
    return a > b ? a / b : b / a;
}

static void check(const char *of, const char *on, double least) {
    for (int scheme = LIGHT; scheme <= DARK; scheme++) {
        const double is = contrast(value_of(of, scheme), value_of(on, scheme));
        if (is < least)
            fail_msg("--%s on --%s, %s: %.2f of %.1f", of, on, scheme ? "dark" : "light", is,
                     least);
    }
}

/* ---- tests ------------------------------------------------------------------------------- */

static void test_style__contrast_is_what_it_should_be(void **state) {
    (void)state;
    assert_true(fabs(contrast(0xffffff, 0x000000) - 21) < 1e-9);
    assert_true(fabs(contrast(0xffffff, 0x767676) - 4.54) < 0.01);
}

static void test_style__text_can_be_read(void **state) {
    (void)state;
    static const char *const texts[] = {
#define KL_COLOUR(name, light, dark) #name,
#include "report/colours.def"
    };
    static const char *const grounds[] = {
#define KL_GROUND(name, light, dark) #name,
#include "report/colours.def"
    };
    for (size_t i = 0; i < KL_COUNT(texts); i++)
        for (size_t j = 0; j < KL_COUNT(grounds); j++) check(texts[i], grounds[j], 4.5);
}

static void test_style__shapes_can_be_seen(void **state) {
    (void)state;
    static const char *const shapes[] = {
#define KL_SHAPE(name, light, dark) #name,
#include "report/colours.def"
    };
    for (size_t i = 0; i < KL_COUNT(shapes); i++) check(shapes[i], "page", 3);
}

static bool is_in(const char *name, size_t n, const char *const *list, size_t n_list) {
    for (size_t i = 0; i < n_list; i++)
        if (strlen(list[i]) == n && strncmp(list[i], name, n) == 0) return true;
    return false;
}

/* Every `color:` is one of the texts, and no rule has a colour without a name. */
static void test_style__text_has_no_other_colours(void **state) {
    (void)state;
    static const char *const texts[] = {
#define KL_COLOUR(name, light, dark) #name,
#include "report/colours.def"
    };
    int n = 0;
    const char *begin = strstr(sheet.ptr, "\n*{"); /* behind the colours */
    for (const char *at = begin; (at = strstr(at, "color:")); at++) {
        if (strncmp(at, "color:inherit", 13) == 0 || at[-1] == '-') continue; /* of an underline */
        assert_int_equal(strncmp(at, "color:var(--", 12), 0);
        const char *name = at + 12;
        assert_true(is_in(name, strcspn(name, ")"), texts, KL_COUNT(texts)));
        n++;
    }
    assert_true(n > 5);
    assert_null(strchr(begin, '#'));
    assert_null(strstr(begin, "rgb("));
    assert_null(strstr(begin, "url("));
}

static void test_style__colours_differ_so_that_a_figure_finds_their_names(void **state) {
    (void)state;
    static const char *const names[] = {
#define KL_COLOUR(name, light, dark) #name,
#define KL_GROUND KL_COLOUR
#define KL_SHAPE KL_COLOUR
#define KL_FAINT KL_COLOUR
#include "report/colours.def"
    };
    for (size_t i = 0; i < KL_COUNT(names); i++) {
        const unsigned c = value_of(names[i], LIGHT);
        const char *found = kli_colour_name((int)(c >> 16), (int)(c >> 8 & 255), (int)(c & 255));
        assert_non_null(found);
        assert_string_equal(found, names[i]);
    }
    assert_null(kli_colour_name(1, 2, 3));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_style__contrast_is_what_it_should_be),
        CASE(test_style__text_can_be_read),
        CASE(test_style__shapes_can_be_seen),
        CASE(test_style__text_has_no_other_colours),
        CASE(test_style__colours_differ_so_that_a_figure_finds_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

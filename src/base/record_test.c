/* Tests of record.c and record_schema.c.  SPDX-License-Identifier: Apache-2.0 */
#include "base/record.h"
#include "base/test.h"
#include <math.h>

typedef struct {
    kl_str name;
    double value;
} mark;

typedef struct {
    kl_str text, hash, maybe_hash, note;
    char digest[65];
    double real, low, high;
    int small, kind;
    int64_t large;
    uint32_t word;
    uint64_t seed;
    bool yes, cold, there;
    mark one;
    mark *marks;
    int n_marks;
    kl_str texts[2];
    int n_texts;
    mark *named;
    int n_named;
    char letter;
} sample;

static const char *const KIND_NAMES[] = {"plain", "fancy"}, *const COLD_NAMES[] = {"warm", "cold"};
static const kli_names KINDS = KL_NAMES(KIND_NAMES), COLD = KL_NAMES(COLD_NAMES);

static bool is_there(const void *s) { return ((const sample *)s)->there; }
static bool has_note(const void *s) { return ((const sample *)s)->note.len != 0; }
static json_t *letter_json(const void *s) { return json_stringn(&((const sample *)s)->letter, 1); }
static bool read_letter(void *s, kl_arena *a, const json_t *value) {
    const char *text = json_string_value(value);
    (void)a;
    ((sample *)s)->letter = text ? *text : '?';
    return text && strlen(text) == 1;
}
static const kli_codec LETTER = {letter_json, read_letter, "{\"maxLength\": 1}"};

static const mark MARK_DEFAULTS = {.value = 7};
#define KL_RECORD mark
static const kl_record MARK = {
    KL_RECORD_HEAD("mark", "A mark."), .defaults = &MARK_DEFAULTS,
    KL_ROWS{KL_ROW(TEXT, name, "name", "") KL_ROW(REAL, value, "value", "") KL_ROWS_END}};
#undef KL_RECORD

typedef struct {
    kl_str why;
    double rate;
    uint64_t seed;
    int count;
} thin;
#define KL_RECORD thin
static const kl_record THIN = {
    KL_RECORD_HEAD("thin", "All of it may be absent."),
    KL_ROWS{KL_ROW(TEXT, why, "why", "", .sparse = true) KL_ROW(
        REAL, rate, "rate", "", .sparse = true) KL_ROW(SEED, seed, "seed", "", .sparse = true)
                KL_ROW(INT, count, "count", "", .sparse = true) KL_ROWS_END}};
#undef KL_RECORD

#define KL_RECORD sample
/* clang-format off */
static const kli_field FIELDS[] = {
    KL_ROW(TEXT, text, "text", "words")
    KL_ROW(OPEN, "group", "an object", .when = is_there)
    KL_ROW( HASH, hash, "hash", "")
    KL_ROW(OPEN, "inner", "")
    KL_ROW(KEY, maybe_hash, "maybe_hash", "")
    KL_ROW(CLOSE, "inner")
    KL_ROW(INTERVAL, real, low, high)
    KL_ROW(CLOSE, "group")
    KL_ROW(TEXT, note, "note", "", .when = has_note)
    KL_ROW(INT, small, "small", "")
    KL_ROW(NAME, int, kind, KINDS, "kind", "")
    KL_ROW(EITHER, cold, COLD, "cold", "")
    KL_ROW(I64, large, "large", "", .minus = true)
    KL_ROW( U32, word, "word", "", .younger = true)
    KL_ROW(SEED, seed, "seed", "")
    KL_ROW(BOOL, yes, "yes", "")
    KL_ROW(RECORD, mark, one, MARK, "one", "")
    KL_ROW(LIST, mark, marks, 3, &MARK, "marks", "")
    KL_ROW(ARRAY, kl_str, texts, 2, NULL, "texts", "")
    KL_ROW(LIST, mark, named, 3, &MARK, "named", "", .keyed = true)
    KL_ROW(OWN, char, letter, LETTER, "letter", "")
    KL_ROW(DIGEST, digest, "digest", "")
    KL_ROWS_END};
/* clang-format on */
#undef KL_RECORD
static const kl_record LENIENT = {.name = "sample",
                                  .fields = FIELDS,
                                  .size = sizeof(sample),
                                  .document = true,
                                  .doc = "A sample."};
static const kl_record STRICT = {.name = "sample",
                                 .fields = FIELDS,
                                 .size = sizeof(sample),
                                 .document = true,
                                 .strict = true,
                                 .doc = "A sample."};

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define FULL                                                                                       \
    "{\"schema\":\"klineage/sample\",\"version\":1,\"text\":\"t\",\"group\":{\"hash\":\"" A64      \
    "\",\"inner\":{\"maybe_hash\":\"\"},\"ratio\":1.5,\"low\":1.0,\"high\":2.0},\"note\":\"n\","   \
    "\"small\":3,"                                                                                 \
    "\"kind\":\"fancy\",\"cold\":\"cold\",\"large\":9007199254740993,\"word\":4294967295,"         \
    "\"seed\":\"18446744073709551615\",\"yes\":true,\"one\":{\"name\":\"o\",\"value\":0.5},"       \
    "\"marks\":[{\"name\":\"a\",\"value\":1.0},{\"name\":\"b\",\"value\":2.0}],\"texts\":[\"x\","  \
    "\"y\"],"                                                                                      \
    "\"named\":{\"z\":0.25},\"letter\":\"Q\",\"digest\":\"" A64 "\"}"

static kl_arena *arena;
static kl_error e;

static int set_up(void **state) {
    (void)state;
    arena = kl_arena_new();
    e = (kl_error){0};
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    kl_arena_free(arena);
    return 0;
}

static kl_err read_as(sample *out, const kl_record *r, const char *text) {
    json_t *o = NULL;
    assert_ok(kli_json_parse(&o, kl_str_of(text), KL_S("x.json"), &e));
    const kl_err err = kli_record_read(out, r, arena, o, KL_S("x.json"), &e);
    json_decref(o);
    return err;
}

static kl_str written_as(const kl_record *r, const void *in) {
    json_t *o = kli_record_json(r, in);
    const kl_str text = kli_json_dump(arena, o, false);
    json_decref(o);
    return text;
}

static kl_str written(const sample *s) { return written_as(&LENIENT, s); }

static void test_record__is_written_as_it_was_read(void **state) {
    (void)state;
    const kl_record *const both[] = {&LENIENT, &STRICT};
    for (size_t i = 0; i < KL_COUNT(both); i++) {
        sample s;
        assert_ok(read_as(&s, both[i], FULL));
        s.there = true;
        assert_str(written(&s), FULL);
    }
}

static void test_record__what_is_not_there_is_null_or_left_out(void **state) {
    (void)state;
    const sample s = {.letter = 'x'};
    assert_contains(written(&s).ptr, "\"group\":null,\"small\"");
}

static void test_record__a_sparse_field_is_left_out_only_when_it_is_empty(void **state) {
    (void)state;
    assert_str(written_as(&THIN, &(thin){0}), "{}");
    assert_str(written_as(&THIN, &(thin){.why = KL_S("x")}), "{\"why\":\"x\"}");
    assert_str(written_as(&THIN, &(thin){.rate = .5}), "{\"rate\":0.5}");
    assert_str(written_as(&THIN, &(thin){.seed = 7}), "{\"seed\":\"7\"}");
    assert_str(written_as(&THIN, &(thin){.count = 6}), "{\"count\":6}");
}

static void test_record__a_lenient_reader_takes_defaults(void **state) {
    (void)state;
    sample s;
    assert_ok(read_as(
        &s, &LENIENT,
        "{\"version\":1,\"text\":4,\"marks\":[3],\"group\":[],\"kind\":\"odd\",\"real\":\"NaN\"}"));
    assert_str(s.text, "");
    assert_non_null(s.text.ptr);
    assert_int_equal(s.n_marks, 1);
    assert_true(s.marks[0].value == 7 && s.kind == 0);
}

/* `text` with what stands between `from` and the next `to` exchanged. */
static const char *with(const char *key, const char *value) {
    const char *const at = strstr(FULL, key), *from = at + strlen(key), *rest = from;
    assert_non_null(at);
    for (int depth = 0; depth || !strchr(",}", *rest); rest++)
        depth += (*rest == '[' || *rest == '{') - (*rest == ']' || *rest == '}');
    return kl_arena_printf(arena, "%.*s%s%s", (int)(from - FULL), FULL, value, rest).ptr;
}

static void test_record__a_strict_reader_says_what_is_wrong_and_where(void **state) {
    (void)state;
    static const struct {
        const char *key, *value, *said;
    } ROWS[] = {
        {"\"schema\":", "\"klineage/other\"", "this is no sample"},
        {"\"version\":", "2", "version 2"},
        {"\"text\":", "5", "\"text\" is an integer; it must be a string"},
        {"\"hash\":", "\"abc\"", "group: \"hash\" is a string; it must be 64 hexadecimal digits"},
        {"\"maybe_hash\":", "\"a\"", "group.inner: \"maybe_hash\""},
        {"\"low\":", "-1", "\"low\" is an integer; it must be a number from 0 up"},
        {"\"low\":", "\"NaN\"", "group: \"low\""},
        {"\"small\":", "1.5", "a whole number"},
        {"\"kind\":", "\"maybe\"", "\"kind\": 'maybe' is unknown"},
        {"\"one\":", "null", "\"one\" is null; it must be an object"},
        {"\"marks\":", "[{\"name\":\"a\",\"value\":1},{\"value\":2}]",
         "marks[1]: \"name\" is missing"},
        {"\"marks\":", "{}", "\"marks\" is an object; it must be an array"},
        {"\"marks\":", "[1,2,3,4]", "\"marks\" has 4 items; the limit is 3"},
        {"\"texts\":", "[\"a\",\"b\",\"c\"]", "\"texts\" has 3 items; the limit is 2"},
        {"\"named\":", "[]", "\"named\" is an array; it must be an object"},
        {"\"letter\":", "\"long\"", "\"letter\""},
    };
    for (size_t i = 0; i < KL_COUNT(ROWS); i++) {
        sample s;
        e = (kl_error){0};
        assert_err(KL_EPARSE, read_as(&s, &STRICT, with(ROWS[i].key, ROWS[i].value)));
        assert_contains(e.message, ROWS[i].said);
        assert_contains(e.where, "x.json");
    }
}

static void test_record__a_lenient_reader_keeps_what_fits(void **state) {
    (void)state;
    sample s;
    assert_ok(read_as(&s, &LENIENT, with("\"texts\":", "[\"a\",\"b\",\"c\"]")));
    assert_int_equal(s.n_texts, 2);
    assert_err(KL_EPARSE, read_as(&s, &LENIENT, with("\"marks\":", "[1,2,3,4]")));
}

static void test_record__its_schema_says_the_same(void **state) {
    (void)state;
    json_t *schema = kli_record_schema(&STRICT);
    const char *const text = kli_json_dump(arena, schema, false).ptr;
    assert_contains(text, "\"kind\":{\"enum\":[\"plain\",\"fancy\"]");
    assert_contains(text, "\"group\":{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"object\","
                          "\"required\":[\"hash\",\"inner\"");
    assert_contains(text, "\"seed\",\"yes\",\"one\"");
    assert_null(strstr(text, "\"large\",\"word\",\"seed\"")); /* older documents lack it */
    assert_contains(text, "\"large\":{\"type\":\"integer\",\"description\"");
    assert_contains(text, "\"schema\":{\"const\":\"klineage/sample\"}");
    json_decref(schema);
}

static void test_record__its_page_has_a_row_a_field(void **state) {
    (void)state;
    kl_buf page = {0};
    kli_record_page(&page, &LENIENT);
    assert_contains(page.ptr, "| `text` | text | words |");
    assert_contains(page.ptr, "| `group` | object, or null | an object |");
    assert_contains(page.ptr, "| `group.inner.maybe_hash` | hash or empty |");
    assert_contains(page.ptr, "| `marks` | list of [mark](#mark) |");
    assert_contains(page.ptr, "## mark\n\nA mark.");
    assert_null(strstr(strstr(page.ptr, "## mark") + 1, "## mark"));
    kl_buf_fini(&page);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_record__is_written_as_it_was_read),
        TEST(test_record__what_is_not_there_is_null_or_left_out),
        TEST(test_record__a_sparse_field_is_left_out_only_when_it_is_empty),
        TEST(test_record__a_lenient_reader_takes_defaults),
        TEST(test_record__a_strict_reader_says_what_is_wrong_and_where),
        TEST(test_record__a_lenient_reader_keeps_what_fits),
        TEST(test_record__its_schema_says_the_same),
        TEST(test_record__its_page_has_a_row_a_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

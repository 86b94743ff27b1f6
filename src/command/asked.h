/* asked.h - a command asked as a face asks it, and its answer looked at: what tests of commands
 * share.
 *
 * `answer`, its `text` and its `json` live until the next question.  Options hold for one question,
 * those set with `always` for every one of the test that has them.  What a command may never do is
 * checked on the way: an option that is not its own, control characters in the text, a document
 * without schema and version, an error without a message.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_COMMAND_ASKED_H
#define KL_COMMAND_ASKED_H
#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "command/command.h"
#include "kit/kit.h"
#include <stdlib.h>

static kli_command_result answer;
static const char *text;
static const json_t *json;
static kli_args asked_args, asked_always;

static inline int asked_set_up(void **state) {
    asked_args = asked_always = (kli_args){0};
    return kit_set_up(state);
}

static inline int asked_tear_down(void **state) {
    kli_result_fini(&answer);
    answer = (kli_command_result){0};
    return kit_tear_down(state);
}

#define ASKED_TEST(function)                                                                       \
    cmocka_unit_test_setup_teardown(function, asked_set_up, asked_tear_down)

static inline void with(kli_option_id id, const char *value) { asked_args.values[id] = value; }
static inline void always(kli_option_id id, const char *value) { asked_always.values[id] = value; }

static inline void asked_options(int command) {
    for (int i = 0; i < KL_OPTION_COUNT; i++) {
        const bool fits = kli_option_fits(&kli_options[i], command);
        if (asked_args.values[i] && !fits)
            fail_msg("%s has no --%s", kli_commands[command].words, kli_options[i].name);
        if (fits && !asked_args.values[i]) asked_args.values[i] = asked_always.values[i];
    }
}

static inline void asked_check(kl_err err) {
    for (size_t i = 0; i < answer.text.len; i++)
        assert_true((unsigned char)text[i] >= 0x20 || text[i] == '\n');
    if (err) assert_true(e.message[0]);
    if (err || asked_args.command == KL_COMMAND_HELP) return;
    assert_non_null(json);
    assert_true(kl_str_starts(kli_json_text_or(json, "schema", (kl_str){0}), KL_S("klineage/")));
    assert_true(kli_json_int_or(json, "version", 0) > 0);
}

static inline kl_err asked(kli_command_id id, const char *const *words) {
    kli_context c = {.arena = arena};
    asked_options(asked_args.command = (int)id);
    while (*words) asked_args.words[asked_args.n_words++] = *words++;
    assert_in_range(asked_args.n_words, kli_commands[id].min_words, kli_commands[id].max_words);
    kli_result_fini(&answer);
    answer = (kli_command_result){0};
    e = (kl_error){0};
    const kl_err err = kli_commands[id].run(&c, &asked_args, &answer, &e);
    text = kl_arena_copy(arena, kl_buf_str(&answer.text)).ptr;
    json = answer.json;
    asked_check(err);
    asked_args = (kli_args){0};
    return err;
}

/* ASK(COST, run, NULL) */
#define ASK(id, ...) asked(KL_COMMAND_##id, (const char *const[]){__VA_ARGS__})

/* ---- a library to write to ---------------------------------------------------------------- */

#define SHIPPED KL_TEST_ROOT "/library"

static inline void copy(const char *from, const char *to) {
    const char *const argv[] = {"cp", "-r", from, to, NULL};
    kli_proc_result r;
    assert_ok(kli_fs_mkdirs(kli_fs_dirname(arena, to).ptr, &e));
    assert_ok(kli_proc_run(&r, arena, &(kli_proc_spec){.argv = argv}, &e));
    assert_int_equal(r.exit_code, 0);
}

/* From now on the library of the test, with one more of the shipped parts: "admitted/pack-b-c". */
static inline void mine_has(const char *part) {
    copy(kli_fs_join(arena, SHIPPED, part).ptr, kli_fs_join(arena, kit_path("mine"), part).ptr);
    always(KL_OPTION_LIBRARY, kit_path("mine"));
}

static inline const char *mine(const char *part) {
    return kli_fs_join(arena, kit_path("mine"), part).ptr;
}

/* ---- looking at the document -------------------------------------------------------------- */

static inline const json_t *list_of(const char *key) {
    const json_t *list = json_object_get(json, key);
    assert_true(json_is_array(list));
    return list;
}

static inline size_t count_of(const char *key) { return json_array_size(list_of(key)); }

static inline const json_t *row_of(const char *key, size_t i) {
    assert_true(i < count_of(key));
    return json_array_get(list_of(key), i);
}

/* The row of a list whose `name` is `value`. */
static inline const json_t *row_named(const char *key, const char *name, const char *value) {
    for (size_t i = 0; i < count_of(key); i++)
        if (kl_str_eq(kli_json_text_or(row_of(key, i), name, (kl_str){0}), kl_str_of(value)))
            return row_of(key, i);
    fail_msg("no %s %s in %s", name, value, key);
    return NULL;
}

static inline kl_str said(const json_t *o, const char *key) {
    return kli_json_text_or(o, key, KL_S("(nothing)"));
}
static inline int64_t number(const json_t *o, const char *key) {
    return kli_json_int_or(o, key, INT64_MIN);
}

#endif

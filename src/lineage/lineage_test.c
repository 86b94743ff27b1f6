/* lineage_test.c - the document: back and forth, every lie in it, the store, the table, and the git
 * history. SPDX-License-Identifier: Apache-2.0 */
#include "sample.h"
#include "lineage_impl.h"
#include "base/proc.h"
#include <stdlib.h>

#define s (*(sample **)state)

static int setup(void **state) {
    kl_error e = {0};
    sample_setup(state);
    fake_says(
        &s->track,
        KL_S("ACTION: other:\x1b[31mred\nLOCUS: <script>|`\x1b]0;title\a`\nWHY: a line\nno edit"));
    sample_whole_walk(s);
    assert_ok(sample_walk(s, &e));
    assert_int_equal(s->lineage.n_edges, 2);
    return 0;
}

static kl_str dump(sample *x) {
    json_t *o = kl_lineage_json(&x->lineage);
    const kl_str text = kli_json_dump(x->arena, o, true);
    json_decref(o);
    return text;
}

/* ---- back and forth ---------------------------------------------------------------------- */

static void test_lineage__comes_back_as_it_was(void **state) {
    kl_error e = {0};
    kl_lineage back;
    const kl_str text = dump(s);
    assert_ok(kl_lineage_parse(&back, s->arena, text, KL_S("test"), &e));
    assert_true(kl_str_eq(back.id, s->lineage.id));
    json_t *o = kl_lineage_json(&back);
    assert_true(kl_str_eq(kli_json_dump(s->arena, o, true), text));
    json_decref(o);
    assert_int_equal(back.edges[1].n_rejections, 1);
    assert_int_equal(back.edges[1].before.n, back.states[1].traits.n);
    assert_true(back.edges[1].pays);
    assert_int_equal(back.edges[0].forward.len, 0);
}

/* What was learned before is read and written again byte for byte, whatever this program would make
 * of it today. */
static void test_lineage__shipped_ones_are_written_as_they_lie_there(void **state) {
    static const char *const FILES[] = {"conv2d-c",  "fmha-c", "gdn-c",    "gemm-c",
                                        "gemm-cuda", "topk-c", "topk-cuda"};
    for (size_t i = 0; i < KL_COUNT(FILES); i++) {
        kl_error e = {0};
        kl_lineage l;
        kl_str text;
        const kl_str path =
            kl_arena_printf(s->arena, KL_TEST_ROOT "/library/lineages/%s.json", FILES[i]);
        assert_ok(kli_fs_read(&text, s->arena, path.ptr, KL_MAX_JSON_BYTES, &e));
        assert_ok(kl_lineage_parse(&l, s->arena, text, path, &e));
        json_t *o = kl_lineage_json(&l);
        assert_true(kl_str_eq(kli_json_dump(s->arena, o, true), text));
        json_decref(o);
    }
}

/* Law 10: a number without a verdict to look it up in does not exist. */
static void test_lineage__every_number_has_its_verdict(void **state) {
    const kl_lineage *l = &s->lineage;
    for (int i = 0; i < l->n_states; i++)
        assert_true(l->states[i].verdict_key.len == 64 && l->states[i].receipt.len == 64);
    for (int i = 0; i < l->n_edges; i++) {
        const kl_edge *d = &l->edges[i];
        assert_true(d->gain_verdict_key.len == 64 && d->gain_receipt.len == 64);
        assert_true((d->forward.len > 0) == (d->forward_verdict_key.len == 64));
        assert_true((d->recovered > 0) == (d->recovered_verdict_key.len == 64));
    }
}

/* ---- lies -------------------------------------------------------------------------------- */

/* The value at "edges/1/gain/low", and its owner. */
static json_t *owner_of(json_t *o, const char *path, const char **last) {
    char part[64];
    const char *slash;
    while ((slash = strchr(path, '/'))) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        o = json_is_array(o) ? json_array_get(o, (size_t)atoi(part)) : json_object_get(o, part);
        assert_non_null(o);
        path = slash + 1;
    }
    *last = path;
    return o;
}

/* `value` NULL: the field goes.  The id is made right again, so that what is looked for is the lie
 * itself. */
static kl_str lie(sample *x, const char *path, const char *value, bool honest_id) {
    kl_error e = {0};
    json_t *o;
    const char *key;
    assert_ok(kli_json_parse(&o, dump(x), KL_S("test"), &e));
    json_t *owner = owner_of(o, path, &key);
    json_t *put = value ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;
    if (json_is_array(owner))
        put ? json_array_set_new(owner, (size_t)atoi(key), put)
            : json_array_remove(owner, (size_t)atoi(key));
    else
        put ? json_object_set_new(owner, key, put) : json_object_del(owner, key);
    if (honest_id) json_object_set_new(o, "id", kli_json_str(kli_lineage_id(x->arena, o)));
    const kl_str text = kli_json_dump(x->arena, o, false);
    json_decref(o);
    return text;
}

#define HASH "\"0000000000000000000000000000000000000000000000000000000000000000\""

static void test_lineage__lies_are_seen(void **state) {
    static const struct {
        const char *path, *value, *said;
    } LIES[] = {
        {"schema", "\"klineage/verdict\"", "this is no lineage"},
        {"version", "2", "version 2"},
        {"name", "7", "name"},
        {"name", "\"\"", "has a name"},
        {"task", "null", "\"task\" is null"},
        {"task/hash", "\"abc\"", "64 hexadecimal digits"},
        {"surface", "\"fortran\"", "surface 'fortran' is unknown"},
        {"platform", "\"\"", "platform"},
        {"termination/how", "\"bored\"", "'bored' is unknown"},
        {"spent_microusd", "-1", "spent_microusd"},
        {"states", "[]", "0 states cannot be joined by 2 edges"},
        {"states/0", NULL, "2 states cannot be joined by 2 edges"},
        {"states/1", "[]", "states[1]"},
        {"states/0/hash", HASH, "states[0]: its hash is not that of its source"},
        {"states/0/source", "\"int main;\"", "states[0]: its source is no kernel"},
        {"states/0/verdict", "\"\"", "states[0]"},
        {"states/0/receipt", NULL, "states[0]"},
        {"states/2/ratio", "\"NaN\"", "states[2]"},
        {"states/2/low", "99", "not within its interval"},
        {"states/2/traits", "[]", "traits"},
        {"edges/0/from", "1", "does not join state 0 to state 1"},
        {"edges/0/action", "\"rm -rf\"", "edges[0]: its action"},
        {"edges/0/gain", "null", "compared with nothing"},
        {"edges/0/pays", "true", "edges[0]"},
        {"edges/1/gain/verdict", "\"\"", "edges[1]"},
        {"edges/1/gain/low", "0.5", "its gain is called faster"},
        {"edges/1/gain/call", "\"slower\"", "its gain is called slower"},
        {"edges/1/gain/call", "\"maybe\"", "'maybe' is unknown"},
        {"edges/1/gain/call", "\"undecided\"", "says that it pays, and its gain is undecided"},
        {"edges/1/gain/floor", "0.6", "its gain is called faster"},
        {"edges/1/gain/floor", NULL, "floor"},
        {"edges/1/pays", "false", "says that it does not pay, and its gain is faster"},
        {"edges/1/forward", "null", "it pays and has no forward edit"},
        {"edges/1/forward/edits", "\"nothing\"", "forward edits do not lead"},
        {"edges/1/forward/recovered/receipt", "\"x\"", "64 hexadecimal digits"},
        {"edges/1/backward", "\"\"", "backward edits do not lead"},
        {"edges/1/rejections/0/verdict", "\"no\"", "rejections[0]"},
        {"edges/1/rejections", "{}", "rejections"},
        {"naive/hash", HASH, "naive: its hash"},
        {"naive", "3", "naive"},
    };
    for (size_t i = 0; i < KL_COUNT(LIES); i++) {
        kl_error e = {0};
        kl_lineage back;
        const kl_err err = kl_lineage_parse(
            &back, s->arena, lie(s, LIES[i].path, LIES[i].value, true), KL_S("test"), &e);
        if (!err)
            fail_msg("%s = %s was believed", LIES[i].path,
                     LIES[i].value ? LIES[i].value : "(gone)");
        if (!strstr(e.message, LIES[i].said))
            fail_msg("%s: \"%s\" is not in: %s", LIES[i].path, LIES[i].said, e.message);
    }
}

static void test_lineage__any_change_changes_the_id(void **state) {
    kl_error e = {0};
    kl_lineage back;
    assert_err(KL_EINVAL,
               kl_lineage_parse(&back, s->arena, lie(s, "edges/1/why", "\"because\"", false),
                                KL_S("test"), &e));
    assert_contains(e.message, "its id is not the hash");
    assert_err(KL_EPARSE,
               kl_lineage_parse(&back, s->arena, KL_S("{\"schema\": "), KL_S("test"), &e));
    assert_err(KL_EPARSE, kl_lineage_parse(&back, s->arena, KL_S("[]"), KL_S("test"), &e));
}

/* A document of before: the interval alone decides, and it is written again as it was. */
static void test_lineage__a_gain_without_floor_is_decided_by_its_interval(void **state) {
    kl_error e = {0};
    kl_lineage back;
    json_t *o = kl_lineage_json(&s->lineage), *edge;
    size_t i;
    json_array_foreach(json_object_get(o, "edges"), i, edge) {
        json_object_del(json_object_get(edge, "gain"), "floor");
        json_object_del(json_object_get(edge, "gain"), "call");
    }
    json_object_set_new(o, "id", kli_json_str(kli_lineage_id(s->arena, o)));
    const kl_str text = kli_json_dump(s->arena, o, true);
    json_decref(o);
    assert_ok(kl_lineage_parse(&back, s->arena, text, KL_S("test"), &e));
    assert_int_equal(back.edges[0].call, KL_DECISION_SAME);
    assert_int_equal(back.edges[1].call, KL_DECISION_FASTER);
    assert_true(back.edges[1].pays && !back.edges[0].pays && back.edges[1].noise <= 0);
    o = kl_lineage_json(&back);
    assert_true(kl_str_eq(kli_json_dump(s->arena, o, true), text));
    json_decref(o);
}

/* ---- store ------------------------------------------------------------------------------- */

static void test_lineage__is_kept_and_found(void **state) {
    kl_error e = {0};
    kl_store *store;
    kl_lineage back;
    kl_str dir;
    assert_ok(kli_fs_temp_dir(&dir, s->arena, &e));
    assert_ok(kl_store_open(&store, kli_fs_join(s->arena, dir.ptr, "store.db").ptr, &e));
    assert_ok(kl_lineage_keep(&s->lineage, store, &e));
    assert_ok(kl_lineage_keep(&s->lineage, store, &e));
    assert_ok(kl_lineage_load(&back, s->arena, store, "gemm-c-expert-9", &e));
    assert_true(kl_str_eq(back.id, s->lineage.id));
    assert_ok(kl_lineage_load(&back, s->arena, store,
                              kl_arena_printf(s->arena, "%.8s", back.id.ptr).ptr, &e));
    assert_err(KL_ENOENT, kl_lineage_load(&back, s->arena, store, "no-such-lineage", &e));
    assert_contains(e.hint, "klineage lineage list");
    const kl_str file = kli_fs_join(s->arena, dir.ptr, "l.json");
    assert_ok(kli_fs_write(file.ptr, dump(s), &e));
    assert_ok(kl_lineage_load(&back, s->arena, store, file.ptr, &e));
    s->lineage.spent_microusd++;
    assert_err(KL_EINVAL, kl_lineage_keep(&s->lineage, store, &e));
    kl_store_close(store);
    kli_fs_remove_tree(dir.ptr);
}

/* ---- shown ------------------------------------------------------------------------------- */

static void test_lineage__a_model_paints_no_terminal(void **state) {
    kl_buf out = {0};
    kl_lineage_render(&s->lineage, &out, false);
    assert_contains(out.ptr, "pack_b");
    assert_contains(out.ptr, "complete: three plain loops");
    assert_null(strchr(out.ptr, '\x1b'));
    assert_null(strchr(out.ptr, '\a'));
    kl_buf_fini(&out);
}

static void test_lineage__lines_are_cut_between_characters(void **state) {
    assert_str(kli_shown_line(s->arena, KL_S("a\xc3\xa9"), 2), "a");
    assert_str(kli_shown_line(s->arena,
                              KL_S("a\xc2\x9b"
                                   "b\n\x7f"),
                              10),
               "a  b");
}

/* ---- git --------------------------------------------------------------------------------- */

static kl_str git(sample *x, const char *dir, const char *a, const char *b, const char *c) {
    const char *const words[] = {"git", "-c", "safe.directory=*", a, b, c, NULL};
    const kli_proc_spec spec = {.argv = words, .cwd = dir};
    kli_proc_result r = {0};
    kl_error e = {0};
    assert_ok(kli_proc_run(&r, x->arena, &spec, &e));
    assert_int_equal(r.exit_code, 0);
    return r.out;
}

static void test_lineage__git_history_is_the_curriculum(void **state) {
    kl_error e = {0};
    kl_str base;
    assert_ok(kli_fs_temp_dir(&base, s->arena, &e));
    const char *one = kli_fs_join(s->arena, base.ptr, "one").ptr,
               *two = kli_fs_join(s->arena, base.ptr, "deep/er/two").ptr;
    assert_ok(kl_lineage_export_git(&s->lineage, one, &e));
    setenv("GIT_AUTHOR_NAME", "Somebody", 1);
    setenv("GIT_DIR", "/nonexistent", 1);
    const kl_err err = kl_lineage_export_git(&s->lineage, two, &e);
    unsetenv("GIT_AUTHOR_NAME");
    unsetenv("GIT_DIR");
    assert_ok(err);
    const kl_str log = git(s, one, "log", "-p", "--format=%an <%ae> %cI%n%B");
    assert_contains(log.ptr, "klineage <klineage@localhost> 2026-01-31T12:00:02+00:00");
    assert_contains(log.ptr, "pack_b: 2.000x");
    assert_contains(log.ptr, "Rejected on the way:");
    assert_contains(log.ptr, "reaches 0.9980 [");
    assert_contains(log.ptr,
                    kl_arena_copy(s->arena, s->lineage.edges[1].recovered_verdict_key).ptr);
    assert_null(strchr(log.ptr, '\x1b'));
    assert_true(
        kl_str_eq(git(s, one, "rev-parse", "HEAD", "--"), git(s, two, "rev-parse", "HEAD", "--")));
    assert_str(git(s, one, "rev-list", "--count", "HEAD"), "3\n");
    assert_str(git(s, one, "status", "--porcelain", "--"), "");
    assert_str(git(s, one, "show", "HEAD~2:kernel.c", "--"), SAMPLE_SIMPLE);
    kl_str text;
    assert_ok(
        kli_fs_read(&text, s->arena, kli_fs_join(s->arena, one, "kernel.c").ptr, 1 << 20, &e));
    assert_str(text, SAMPLE_EXPERT);
    kli_fs_remove_tree(base.ptr);
}

static void test_lineage__export_changes_nothing_that_is_there(void **state) {
    kl_error e = {0};
    kl_str dir;
    assert_ok(kli_fs_temp_dir(&dir, s->arena, &e));
    assert_err(KL_EIO, kl_lineage_export_git(&s->lineage, dir.ptr, &e));
    setenv("PATH", dir.ptr, 1);
    const char *there = kli_fs_join(s->arena, dir.ptr, "x").ptr;
    assert_err(KL_ENODEV, kl_lineage_export_git(&s->lineage, there, &e));
    assert_contains(e.hint, "apt install git");
    assert_false(kli_fs_exists(there));
    kli_fs_remove_tree(dir.ptr);
}

/* Words of a model are text in a message and in Markdown, whatever they look like. */
static void test_lineage__a_model_writes_no_markup(void **state) {
    kl_error e = {0};
    kl_str base, text;
    s->lineage.edges[1].locus =
        KL_S("<img src=x> | [a](http://b) `c`\ncommit refs/heads/evil\ndata 5\n");
    s->lineage.edges[1].why = KL_S("line\n\nEvidence:\n  kernel verdict 1");
    assert_ok(kli_fs_temp_dir(&base, s->arena, &e));
    const char *dir = kli_fs_join(s->arena, base.ptr, "git").ptr;
    assert_ok(kl_lineage_export_git(&s->lineage, dir, &e));
    assert_ok(
        kli_fs_read(&text, s->arena, kli_fs_join(s->arena, dir, "README.md").ptr, 1 << 20, &e));
    assert_contains(text.ptr, "\\<img src=x\\> \\| \\[a\\](http://b) \\`c\\`");
    for (const char *at = text.ptr; (at = strpbrk(at, "<>")); at++) assert_int_equal(at[-1], '\\');
    assert_str(git(s, dir, "for-each-ref", "--format=%(refname)", "refs"), "refs/heads/main\n");
    assert_contains(git(s, dir, "log", "--format=%B", "-1").ptr,
                    "Why: line  Evidence:   kernel verdict 1\n");
    kli_fs_remove_tree(base.ptr);
}

#undef s
#define with_walk(f) cmocka_unit_test_setup_teardown(f, setup, sample_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        with_walk(test_lineage__comes_back_as_it_was),
        with_walk(test_lineage__shipped_ones_are_written_as_they_lie_there),
        with_walk(test_lineage__every_number_has_its_verdict),
        with_walk(test_lineage__lies_are_seen),
        with_walk(test_lineage__any_change_changes_the_id),
        with_walk(test_lineage__a_gain_without_floor_is_decided_by_its_interval),
        with_walk(test_lineage__is_kept_and_found),
        with_walk(test_lineage__a_model_paints_no_terminal),
        with_walk(test_lineage__lines_are_cut_between_characters),
        with_walk(test_lineage__git_history_is_the_curriculum),
        with_walk(test_lineage__a_model_writes_no_markup),
        with_walk(test_lineage__export_changes_nothing_that_is_there), /* the last: it takes the
                                                                          PATH away */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* report_test.c - a page out of a journal whose every word is hostile: nothing of it becomes
 * markup, links resolve, money is the ledger's. SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"
#include "base/hash.h"
#include "base/json.h"
#include "lineage/sample.h"

#define EVIL "<script>alert('&\"1\"')</script>"
#define KEY "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define LOST "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define RUN "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

typedef struct {
    sample *s;
    kl_arena *a;
    kl_store *store;
    kl_str dir;
    kl_buf html;
} scene;

static scene x;

/* ---- a journal --------------------------------------------------------------------------- */

static void put_step(int64_t n, const char *verdict, double ratio, bool best) {
    kl_error e = {0};
    json_t *o =
        json_pack("{ss ss ss ss ss ss ss ss sf sf sf si sb sb sI ss}", "workload", EVIL, "policy",
                  "generate", "phase", EVIL, "action", n ? EVIL : "start", "locus", EVIL, "kernel",
                  "k", "verdict", verdict, "outcome", n ? EVIL : "pass", "ratio", ratio, "low",
                  ratio, "high", ratio, "median_ns", 7, "accepted", best, "best", best,
                  "spent_microusd", (json_int_t)0, "why", EVIL);
    kl_store_step row = {
        .run = KL_S(RUN), .track = KL_S(EVIL), .n = n, .json = kli_json_dump(x.a, o, false)};
    assert_ok(kl_store_step_put(x.store, &row, &e));
    json_decref(o);
}

static void put_verdict(void) {
    kl_error e = {0};
    kl_verdict v = {.task = KL_S("t"),
                    .platform = KL_S("p"),
                    .why = KL_S(EVIL),
                    .detail = KL_S(EVIL),
                    .surface = KL_S("c"),
                    .workload = KL_S("w"),
                    .task_hash = KL_S(KEY),
                    .kernel_hash = KL_S(KEY),
                    .created = KL_S("2026-01-31T12:00:00Z"),
                    .n_comparisons = 1};
    v.comparisons[0] =
        (kl_comparison){.baseline = KL_S(EVIL), .ratio = 1.5, .low = 1.4, .high = 1.6};
    json_t *o = kl_verdict_json(&v);
    kl_store_verdict row = {.key = KL_S(KEY),
                            .task = v.task,
                            .kernel = v.kernel_hash,
                            .platform = v.platform,
                            .outcome = KL_S("pass"),
                            .json = kli_json_dump(x.a, o, false)};
    assert_ok(kl_store_verdict_put(x.store, &row, &e));
    json_decref(o);
}

/* One call that was settled, one that was lost, one that never happened. */
static void put_charges(void) {
    kl_error e = {0};
    kl_store_charge c = {.run = KL_S(RUN),
                         .track = KL_S(EVIL),
                         .workload = KL_S(EVIL),
                         .policy = KL_S("generate"),
                         .phase = KL_S(EVIL),
                         .model = KL_S(EVIL),
                         .priced_as = KL_S(EVIL),
                         .price_date = KL_S("2026-01-31"),
                         .reserved_microusd = 500000};
    kl_store_effect f = {.key = KL_S(KEY),
                         .run = KL_S(RUN),
                         .track = KL_S(EVIL),
                         .kind = KL_S("ask"),
                         .purpose = KL_S("generate"),
                         .request = KL_S("{}"),
                         .answer = KL_S("{}")};
    c.effect = KL_S(KEY);
    assert_ok(kl_store_reserve(x.store, &c, false, INT64_C(10000000), 0, &e));
    c.settled_microusd = 10000;
    assert_ok(kl_store_settle(x.store, &f, &c, &e));
    c.effect = KL_S(LOST);
    assert_ok(kl_store_reserve(x.store, &c, false, INT64_C(10000000), 0, &e));
    assert_ok(kl_store_lose(x.store, LOST, &e));
    c.effect = KL_S(RUN);
    assert_ok(kl_store_reserve(x.store, &c, false, INT64_C(10000000), 0, &e));
    assert_ok(kl_store_release(x.store, RUN, &e));
}

/* A lineage whose names are markup, with an id that is right: anybody can write one. */
static void put_lineage(const char *run) {
    kl_error e = {0};
    sample_whole_walk(x.s);
    assert_ok(sample_walk(x.s, &e));
    kl_lineage *l = &x.s->lineage;
    l->run = kl_str_of(run);
    l->name = l->termination_why = KL_S(EVIL);
    l->states[0].name = l->edges[0].locus = KL_S(EVIL);
    json_t *o = kl_lineage_json(l);
    json_object_del(o, "id");
    l->id = kl_arena_copy(x.a, kl_str_of(kli_hash_of(kli_json_dump(x.a, o, false)).hex));
    json_decref(o);
    assert_ok(kl_lineage_keep(l, x.store, &e));
}

static int set_up(void **state) {
    kl_error e = {0};
    assert_int_equal(sample_setup(state), 0);
    x = (scene){.s = *state, .a = ((sample *)*state)->arena};
    assert_ok(kli_fs_temp_dir(&x.dir, x.a, &e));
    assert_ok(kl_store_open(&x.store, kli_fs_join(x.a, x.dir.ptr, "klineage.db").ptr, &e));
    kl_store_run run = {
        .id = KL_S(RUN), .command = KL_S(EVIL), .json = KL_S("{\"model\": \"<script>\"}")};
    assert_ok(kl_store_run_put(x.store, &run, &e));
    return 0;
}

static int tear_down(void **state) {
    kl_buf_fini(&x.html);
    kl_store_close(x.store);
    kli_fs_remove_tree(x.dir.ptr);
    return sample_teardown(state);
}

static void write_page(const char *const *runs, int n, const char *library) {
    kl_error e = {0};
    kl_report_opts o = {.runs = runs, .n_runs = n, .library = library};
    assert_ok(kl_report_write(&x.html, x.store, &o, &e));
}

static int times(const char *text) {
    int n = 0;
    for (const char *at = x.html.ptr; (at = strstr(at, text)); at++) n++;
    return n;
}

/* Every href on the page leads to an id on the page. */
static void check_links(void) {
    for (const char *at = x.html.ptr; (at = strstr(at, "href=\"#")); at++) {
        const char *name = at + 7, *end = strchr(name, '"');
        const char *id = kl_arena_printf(x.a, "id=\"%.*s\"", (int)(end - name), name).ptr;
        if (!strstr(x.html.ptr, id)) fail_msg("%s is not on the page", id);
    }
}

/* ---- tests ------------------------------------------------------------------------------- */

static void test_report__hostile_words_are_words(void **state) {
    (void)state;
    const char *runs[] = {"cccc"};
    put_verdict();
    put_step(0, KEY, 1, true);
    put_step(1, KEY, 1.5, true);
    put_charges();
    put_lineage(RUN);
    write_page(runs, 1, NULL);
    assert_int_equal(times("<script"), 0);
    assert_int_equal(times("alert('"), 0);
    assert_true(times("&lt;script&gt;alert(&#39;&amp;&quot;1&quot;&#39;)") > 10);
    assert_int_equal(times("<body>"), 1);
    assert_true(times("href=\"#v-aaaa") > 0);
    check_links();
}

static void test_report__a_number_without_its_verdict_says_so(void **state) {
    (void)state;
    const char *runs[] = {RUN};
    put_step(0, LOST, 1.25, true);
    write_page(runs, 1, NULL);
    assert_int_equal(times("href=\"#v-bbbb"), 0);
    assert_contains(x.html.ptr, "title=\"not in this journal: verdict " LOST "\">1.25");
}

static void test_report__money_is_what_the_ledger_says(void **state) {
    (void)state;
    const char *runs[] = {RUN};
    put_step(0, KEY, 1, true);
    put_charges();
    write_page(runs, 1, NULL);
    assert_contains(x.html.ptr,
                    "<p>1 model calls, $0.0100. 1 more without an answer, up to $0.5000");
    assert_contains(x.html.ptr,
                    "spent</th><td class=n>$0.5100</td>"); /* although no step was
                                                                           written after the call */
    assert_contains(x.html.ptr, "<td class=n>$0.000000</td><td>released</td>");
}

static void test_report__a_run_that_is_named_twice_is_one_run(void **state) {
    (void)state;
    const char *runs[] = {RUN, "cccccc", RUN};
    for (int i = 0; i < 40; i++) put_step(i, KEY, 1, i == 0);
    write_page(runs, 3, NULL);
    assert_contains(x.html.ptr, ": 40 attempts");
    assert_int_equal(times("run <code>cccc"), 1);
}

/* It may have been kept by another version, or be damaged: it is not what was asked about. */
static void test_report__a_broken_lineage_of_another_run_is_no_matter(void **state) {
    (void)state;
    kl_error e = {0};
    const char *runs[] = {RUN};
    kl_store_record broken = {.kind = KL_S("lineage"),
                              .id = KL_S(KEY),
                              .name = KL_S("n"),
                              .task = KL_S("t"),
                              .json = KL_S("{\"run\": \"other\"}")};
    assert_ok(kl_store_record_put(x.store, &broken, &e));
    put_lineage("another");
    write_page(runs, 1, NULL);
    assert_int_equal(times("Lineages</h2>"), 0);
}

static void test_report__shows_a_card_as_it_lies_there(void **state) {
    (void)state;
    kl_error e = {0};
    const char *runs[] = {RUN};
    kl_card c = {.name = KL_S("pack"),
                 .action = KL_S("pack_b"),
                 .status = KL_CARD_LIFTED,
                 .intent = KL_S(EVIL),
                 .description = KL_S(EVIL)};
    assert_ok(kl_library_put(x.dir.ptr, &c, &e));
    kl_str text, path = kli_fs_join(x.a, x.dir.ptr, "lifted/pack/SKILL.md");
    assert_ok(kli_fs_read(&text, x.a, path.ptr, KL_MAX_CARD_BYTES, &e));
    assert_ok(kli_fs_write(path.ptr,
                           kl_arena_printf(x.a, "%.*s\nby hand " EVIL "\n", KL_STR_ARG(text)), &e));
    write_page(runs, 1, x.dir.ptr);
    assert_contains(x.html.ptr, "by hand &lt;script&gt;");
    assert_contains(x.html.ptr, "edited by hand: not used");
    assert_int_equal(times("<script"), 0);
}

static void test_report__no_such_run(void **state) {
    (void)state;
    kl_error e = {0};
    const char *runs[] = {"dddd"};
    assert_err(KL_ENOENT,
               kl_report_write(&x.html, x.store, &(kl_report_opts){.runs = runs, .n_runs = 1}, &e));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_report__hostile_words_are_words),
        CASE(test_report__a_number_without_its_verdict_says_so),
        CASE(test_report__money_is_what_the_ledger_says),
        CASE(test_report__a_run_that_is_named_twice_is_one_run),
        CASE(test_report__a_broken_lineage_of_another_run_is_no_matter),
        CASE(test_report__shows_a_card_as_it_lies_there),
        CASE(test_report__no_such_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

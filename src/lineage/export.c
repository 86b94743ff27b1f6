/* export.c - a lineage as a git history: `git log -p` is the curriculum.
 *
 *   lineage -> text for `git fast-import` -> repository -> working tree
 *
 * One commit for the simplest kernel, one for each edge; two files, kernel.SUFFIX and README.md.
 * Everything that ends up in a commit id comes from the lineage: authors are fixed, dates are its
 * created time plus the number of the commit, and git sees none of the user's settings or
 * variables.  So the same lineage makes the same ids everywhere. fast-import takes every text with
 * its length in front, so no word of a model can be a command of the stream; file names are ours
 * alone; Markdown of a model is escaped (law 7). SPDX-License-Identifier: Apache-2.0 */
#include "lineage_impl.h"
#include "base/fs.h"
#include "base/proc.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GIT_SECONDS 60
#define WHO "klineage <klineage@localhost>"

/* ---- words ------------------------------------------------------------------------------- */

/* One line of Markdown that says what `text` says and marks up nothing. */
static const char *export_plain(kl_arena *a, kl_str text) {
    const kl_str line = kli_shown_line(a, text, 400);
    char *out = KL_ARRAY(a, char, 2 * line.len + 1);
    size_t n = 0;
    for (size_t i = 0; i < line.len; i++) {
        if (strchr("\\`*_[]<>#|&", line.ptr[i])) out[n++] = '\\';
        out[n++] = line.ptr[i];
    }
    KL_ASSERT(n <= 2 * line.len);
    return out;
}

static void add_receipt(kl_buf *b, const char *of, kl_str key, kl_str receipt) {
    if (key.len)
        kl_buf_printf(b, "  %-12s verdict %.*s\n  %-12s receipt %.*s\n", of, KL_STR_ARG(key), "",
                      KL_STR_ARG(receipt));
}

static void add_rejections(kl_buf *b, kl_arena *a, const kl_rejection *r, int n) {
    if (n) kl_buf_add(b, KL_S("\nRejected on the way:\n"));
    for (int i = 0; i < n; i++) {
        const char *locus = kli_shown_line(a, r[i].locus, 100).ptr;
        kl_buf_printf(b, "- %.*s %s%s%s: %s\n", KL_STR_ARG(r[i].stage),
                      kli_shown_line(a, r[i].action, 64).ptr, *locus ? " at " : "", locus,
                      kli_shown_line(a, r[i].symptom, 300).ptr);
        if (r[i].verdict_key.len)
            kl_buf_printf(b, "  verdict %.*s\n", KL_STR_ARG(r[i].verdict_key));
    }
}

static void add_forward(kl_buf *b, const kl_lineage *l, const kl_edge *d) {
    const char *how = d->mechanical ? "mechanical reverse" : "derived anew";
    if (!d->forward.len && kl_str_eq(d->witness, KL_S("none")))
        kl_buf_add(b, KL_S("Forward: not derived yet.\n"));
    else if (!d->forward.len)
        kl_buf_add(
            b,
            KL_S(
                "Forward: none was found; this is a sound simplification and nothing to apply.\n"));
    else if (kl_str_eq(d->forward_hash, l->states[d->to].hash))
        kl_buf_printf(b, "Forward: %s, makes this very kernel.\n", how);
    else if (!d->recovered_verdict_key.len)
        kl_buf_printf(b, "Forward: %s, correct, not compared because the step does not pay.\n",
                      how);
    else
        kl_buf_printf(b, "Forward: %s, reaches %.4f [%.4f, %.4f] of this kernel's speed.\n", how,
                      d->recovered, d->recovered_low, d->recovered_high);
}

static const char *pays_words(const kl_edge *d) {
    return d->pays                            ? ""
           : d->call == KL_DECISION_UNDECIDED ? ", could not be measured"
                                              : ", does not pay";
}

static void add_line(kl_buf *b, kl_arena *a, const char *name, kl_str text, size_t most) {
    const kl_str line = kli_shown_line(a, text, most);
    if (line.len) kl_buf_printf(b, "%s: %s\n", name, line.ptr);
}

static kl_str edge_message(kl_arena *a, const kl_lineage *l, const kl_edge *d) {
    kl_buf b = {0};
    const kl_state *to = &l->states[d->to];
    kl_buf_printf(&b, "%s: %.3fx\n\n", kli_shown_line(a, d->action, 64).ptr, d->gain);
    add_line(&b, a, "With", d->bundle, 200);
    add_line(&b, a, "Locus", d->locus, 200);
    add_line(&b, a, "Why", d->why, 1000);
    kl_buf_printf(&b, "Gain: %.4f [%.4f, %.4f] over K%d, interleaved%s\n", d->gain, d->gain_low,
                  d->gain_high, d->from, pays_words(d));
    if (d->decided.len)
        kl_buf_printf(&b, "Decided: by the recording; here: %s\n",
                      kli_shown_line(a, d->here, 600).ptr);
    kl_buf_printf(&b, "Speed: %.4f [%.4f, %.4f] of the baseline, %lld ns\n", to->ratio, to->low,
                  to->high, (long long)to->median_ns);
    add_line(&b, a, "Raised", d->raised, 1000);
    add_forward(&b, l, d);
    kl_buf_add(&b, KL_S("\nEvidence:\n"));
    add_receipt(&b, "kernel", to->verdict_key, to->receipt);
    add_receipt(&b, "gain", d->gain_verdict_key, d->gain_receipt);
    add_receipt(&b, "forward", d->forward_verdict_key, d->forward_receipt);
    add_receipt(&b, "recovered", d->recovered_verdict_key, d->recovered_receipt);
    add_rejections(&b, a, d->rejections, d->n_rejections);
    return kli_buf_keep(&b, a);
}

static kl_str first_message(kl_arena *a, const kl_lineage *l) {
    kl_buf b = {0};
    const kl_state *s = &l->states[0];
    kl_buf_printf(&b, "%s: the simplest kernel that was reached\n\n",
                  l->termination == KL_WALK_COMPLETE ? "naive" : "start");
    kl_buf_printf(&b, "Speed: %.4f [%.4f, %.4f] of the baseline, %lld ns\n\nEvidence:\n", s->ratio,
                  s->low, s->high, (long long)s->median_ns);
    add_receipt(&b, "kernel", s->verdict_key, s->receipt);
    add_rejections(&b, a, l->rejections, l->n_rejections);
    return kli_buf_keep(&b, a);
}

static void readme_rows(kl_buf *b, kl_arena *a, const kl_lineage *l) {
    kl_buf_add(
        b,
        KL_S(
            "| kernel | of the baseline | by | gain | where |\n| --- | --- | --- | --- | --- |\n"));
    for (int i = 0; i < l->n_states; i++) {
        const kl_edge *d = i ? &l->edges[i - 1] : NULL;
        kl_buf_printf(b, "| K%d | %.3f |", i, l->states[i].ratio);
        if (d)
            kl_buf_printf(b, " %s | %.3f [%.3f, %.3f]%s | %s |\n", export_plain(a, d->action),
                          d->gain, d->gain_low, d->gain_high, pays_words(d),
                          export_plain(a, d->locus));
        else
            kl_buf_add(b, KL_S(" | | |\n"));
    }
}

static kl_str readme(kl_arena *a, const kl_lineage *l) {
    kl_buf b = {0};
    kl_buf_printf(&b,
                  "# %s\n\nA lineage of klineage: from a simple kernel to an expert's, one "
                  "proven optimization a commit.\n",
                  export_plain(a, l->name));
    kl_buf_add(&b, KL_S("`git log -p --reverse` reads it from the beginning; each message holds "
                        "the evidence of its step.\n\n"));
    readme_rows(&b, a, l);
    const struct {
        const char *name;
        kl_str value;
    } rows[] = {{"task", l->task},         {"task version", l->task_hash},
                {"workload", l->workload}, {"surface", l->surface},
                {"platform", l->platform}, {"toolchain", l->toolchain},
                {"expert", l->expert},     {"model", l->model},
                {"run", l->run},           {"lineage", l->id},
                {"created", l->created}};
    kl_buf_add(&b, KL_S("\n"));
    for (size_t i = 0; i < KL_COUNT(rows); i++)
        kl_buf_printf(&b, "- %s: %s\n", rows[i].name, export_plain(a, rows[i].value));
    kl_buf_printf(&b, "- the walk ended: %s, %s\n", kl_termination_name(l->termination),
                  export_plain(a, l->termination_why));
    return kli_buf_keep(&b, a);
}

/* ---- the stream of git fast-import ------------------------------------------------------- */

static void add_data(kl_buf *b, kl_str text) {
    kl_buf_printf(b, "data %zu\n", text.len);
    kl_buf_add(b, text);
    kl_buf_add(b, KL_S("\n"));
}

static void add_commit(kl_buf *b, long long seconds, kl_str message) {
    kl_buf_printf(
        b, "commit refs/heads/main\nauthor " WHO " %lld +0000\ncommitter " WHO " %lld +0000\n",
        seconds, seconds);
    add_data(b, message);
}

static void add_kernel(kl_buf *b, const kl_surface *surface, kl_str source) {
    kl_buf_printf(b, "M 100644 inline kernel%s\n", surface->suffix);
    add_data(b, source);
}

/* "2026-01-31T12:00:00Z"; anything else is the epoch: a date is not worth refusing an export for.
 */
static long long export_seconds_of(kl_arena *a, kl_str utc) {
    struct tm tm = {0};
    const kl_str text = kl_arena_copy(a, utc);
    const char *end = strptime(text.ptr, "%Y-%m-%dT%H:%M:%SZ", &tm);
    const long long s = end && !*end ? (long long)timegm(&tm) : 0;
    return s > 0 ? s : 0;
}

static void stream(kl_buf *b, kl_arena *a, const kl_lineage *l) {
    const kl_surface *surface = kl_surface_by_name(l->surface);
    const long long begin = export_seconds_of(a, l->created);
    add_commit(b, begin, first_message(a, l));
    kl_buf_add(b, KL_S("M 100644 inline README.md\n"));
    add_data(b, readme(a, l));
    add_kernel(b, surface, l->states[0].source);
    for (int i = 0; i < l->n_edges; i++) {
        add_commit(b, begin + i + 1, edge_message(a, l, &l->edges[i]));
        add_kernel(b, surface, l->states[i + 1].source);
    }
    kl_buf_add(b, KL_S("done\n"));
}

/* ---- git --------------------------------------------------------------------------------- */

static kl_err git(kl_arena *a, const char *dir, const char *const *words, kl_str input,
                  kl_error *e) {
    const char *path = getenv("PATH");
    const char *const env[] = {kl_arena_printf(a, "PATH=%s", path ? path : "/usr/bin:/bin").ptr,
                               "HOME=/nonexistent",
                               "LC_ALL=C",
                               "TZ=UTC",
                               "GIT_CONFIG_NOSYSTEM=1",
                               "GIT_CONFIG_GLOBAL=/dev/null",
                               NULL};
    const kli_proc_spec spec = {.argv = words,
                                .envp = env,
                                .cwd = dir,
                                .input = input,
                                .timeout_ns = GIT_SECONDS * 1000000000ll};
    kli_proc_result result;
    kl_err err = kli_proc_run(&result, a, &spec, e);
    if (err == KL_ENOENT) {
        kl_fail(e, KL_ENODEV, dir, "the export needs the git program, which is not installed");
        return kl_hint(
            e, "on Debian: apt install git; klineage lineage export NAME --out FILE does without");
    }
    if (err || (result.exit_code == 0 && !result.timed_out)) return err;
    return kl_fail(e, KL_EIO, dir, "git %s failed: %.600s", words[1],
                   result.timed_out ? "it did not finish in time"
                                    : kli_shown_line(a, result.err, 600).ptr);
}

static kl_err make(const kl_lineage *l, kl_arena *a, const char *dir, kl_error *e) {
    static const struct {
        const char *words[6];
        bool takes_stream;
    } STEPS[] = {{{"git", "init", "-q", "--template=", "."}, false},
                 {{"git", "symbolic-ref", "HEAD", "refs/heads/main"}, false},
                 {{"git", "fast-import", "--quiet", "--done"}, true},
                 {{"git", "reset", "-q", "--hard"}, false}};
    kl_buf text = {0};
    kl_err err = KL_OK;
    stream(&text, a, l);
    for (size_t i = 0; !err && i < KL_COUNT(STEPS); i++)
        err =
            git(a, dir, STEPS[i].words, STEPS[i].takes_stream ? kl_buf_str(&text) : (kl_str){0}, e);
    kl_buf_fini(&text);
    return err;
}

kl_err kl_lineage_export_git(const kl_lineage *l, const char *dir, kl_error *e) {
    KL_ASSERT(l->n_states > 0 && kl_surface_by_name(l->surface));
    if (kli_fs_exists(dir)) {
        kl_fail(e, KL_EIO, dir, "the folder exists, and an export does not overwrite");
        return kl_hint(e, "name a new folder");
    }
    kl_err err = kli_fs_mkdirs(dir, e);
    if (err) return err;
    kl_arena *a = kl_arena_new();
    err = make(l, a, dir, e);
    kl_arena_free(a);
    if (err) kli_fs_remove_tree(dir); /* ours alone: it was not there before */
    return err;
}

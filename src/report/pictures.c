/* pictures.c - the figures of a comparison as files of their own, with Markdown that shows them.
 *
 * What they draw is figure_compare.c's business; a file holds the same SVG that stands in the page.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report_impl.h"
#include "base/fs.h"
#include <ctype.h>
#include <string.h>

typedef struct {
    kl_arena *arena;
    kl_buf *markdown;
    const char *dir, *link;
    const kli_results *results;
    kl_str *names;
    int n_names;
} album;

static bool known(const album *x, kl_str name) {
    for (int i = 0; i < x->n_names; i++)
        if (kl_str_eq(x->names[i], name)) return true;
    return false;
}

/* Nothing in a name of a file but letters, digits and dashes; labels that differ in other signs
 * alone get a number. */
static kl_str file_name(album *x, const char *what, kl_str target, kl_str policy) {
    kl_str name = kl_arena_printf(x->arena, "%s%s%.*s%s%.*s", what, target.len ? "-" : "",
                                  KL_STR_ARG(target), policy.len ? "-" : "", KL_STR_ARG(policy));
    for (char *p = (char *)name.ptr; *p; p++)
        if (!isalnum((unsigned char)*p)) *p = '-';
    if (known(x, name)) name = kl_arena_printf(x->arena, "%.*s-%d", KL_STR_ARG(name), x->n_names);
    KL_ASSERT(x->n_names < 1 + x->results->n_targets + x->results->n_groups);
    x->names[x->n_names++] = name;
    return kl_arena_printf(x->arena, "%.*s.svg", KL_STR_ARG(name));
}

static kl_str between(kl_str text, const char *from, const char *to, bool with_them) {
    const char *a = text.len ? memmem(text.ptr, text.len, from, strlen(from)) : NULL;
    const char *b = a ? memmem(a, text.len - (size_t)(a - text.ptr), to, strlen(to)) : NULL;
    if (!b) return KL_S("");
    return with_them ? (kl_str){a, (size_t)(b - a) + strlen(to)}
                     : (kl_str){a + strlen(from), (size_t)(b - a) - strlen(from)};
}

/* "var(--bar,#2f6da8)" is what a page has style for; a file has the colour itself. */
static kl_str plain_colours(kl_arena *a, kl_str svg) {
    kl_buf out = {0};
    const char *at = svg.ptr, *end = svg.ptr + svg.len, *name;
    while (at < end && (name = memmem(at, (size_t)(end - at), "var(--", 6))) {
        const char *comma = memchr(name, ',', (size_t)(end - name));
        const char *close = comma ? memchr(comma, ')', (size_t)(end - comma)) : NULL;
        if (!close) break;
        kl_buf_add(&out, (kl_str){at, (size_t)(name - at)});
        kl_buf_add(&out, (kl_str){comma + 1, (size_t)(close - comma - 1)});
        at = close + 1;
    }
    kl_buf_add(&out, (kl_str){at, (size_t)(end - at)});
    return kl_buf_take(&out, a);
}

/* `drawn`: a figure as the page has it, of which the wide picture is kept; empty when there was
 * nothing to draw. */
static kl_err pictures_keep(album *x, kl_buf *drawn, kl_str name, const char *title, kl_error *e) {
    const kl_str all = kl_buf_str(drawn), svg = between(all, "<svg", "</svg>", true);
    kl_err err = KL_OK;
    if (all.len && !svg.len) {
        kl_fail(e, KL_ENOENT, "gnuplot", "no figure was drawn");
        err = kl_hint(e, "apt-get install gnuplot-nox");
    } else if (all.len) {
        kl_str text =
            kl_arena_printf(x->arena, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n%.*s\n",
                            KL_STR_ARG(plain_colours(x->arena, svg)));
        kl_str caption = between(all, "<figcaption>", "</figcaption>", false);
        err = kli_fs_write(kli_fs_join(x->arena, x->dir, name.ptr).ptr, text, e);
        kl_buf_printf(x->markdown, "![%s](%s/%.*s)\n\n%.*s\n\n", title, x->link, KL_STR_ARG(name),
                      KL_STR_ARG(caption));
    }
    kl_buf_fini(drawn);
    return err;
}

static kl_err keep_all(album *x, kl_error *e) {
    const kli_results *r = x->results;
    kl_buf drawn = {0};
    kli_figure_contenders(&drawn, x->arena, r);
    kl_err err = pictures_keep(x, &drawn, file_name(x, "policies", KL_S(""), KL_S("")),
                               "Best kernel by policy", e);
    for (int i = 0; !err && i < r->n_targets; i++) {
        kl_buf_printf(x->markdown, "#### %s\n\n", kli_figure_label(x->arena, r->targets[i].label));
        kli_figure_bands(&drawn, x->arena, r, i);
        err = pictures_keep(x, &drawn, file_name(x, "dollars", r->targets[i].label, KL_S("")),
                            "Best so far against dollars", e);
        for (int j = 0; !err && j < r->n_groups; j++) {
            const kli_group *g = &r->groups[j];
            if (g->target != i) continue;
            kli_figure_steps(&drawn, x->arena, r, g);
            err = pictures_keep(
                x, &drawn,
                file_name(x, "steps", r->targets[i].label, r->contenders[g->contender].label),
                "Every step", e);
        }
    }
    return err;
}

kl_err kl_report_pictures(kl_buf *markdown, const char *dir, const char *link, kl_store *s,
                          const kl_report_opts *o, kl_error *e) {
    kl_arena *a = kl_arena_new();
    kli_facts *f = KL_NEW(a, kli_facts);
    kli_results r;
    kl_err err = kli_fs_mkdirs(dir, e);
    if (!err) err = kli_facts_load(f, a, s, o, e);
    if (!err) {
        kli_results_of(&r, a, f);
        album x = {.arena = a, .markdown = markdown, .dir = dir, .link = link, .results = &r};
        x.names = KL_ARRAY(a, kl_str, 1 + r.n_targets + r.n_groups);
        err = keep_all(&x, e);
    }
    kl_arena_free(a);
    return err;
}

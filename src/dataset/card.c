/* card.c - the data card: README.md of the folder, with what loaders read on top.
 *
 * Names out of the journal are data: each is shown as code, without what would end it (law 7).
 * SPDX-License-Identifier: Apache-2.0 */
#include "dataset_impl.h"

static void card_code(kl_buf *b, kl_str s) {
    kl_buf_add(b, KL_S("`"));
    for (size_t i = 0; i < s.len && i < 200; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];
        kl_buf_printf(b, "%c", c < 0x20 || c == 0x7f || c == '`' || c == '|' ? ' ' : c);
    }
    kl_buf_add(b, KL_S("`"));
}

static void card_tally(kl_buf *b, const char *title, const char *what, const kl_dataset_tally *at,
                       int n) {
    if (!n) return;
    kl_buf_printf(b, "\n## %s\n\n| %s | rows |\n| --- | ---: |\n", title, what);
    for (int i = 0; i < n; i++) {
        kl_buf_add(b, KL_S("| "));
        card_code(b, at[i].name);
        kl_buf_printf(b, " | %lld |\n", (long long)at[i].rows);
    }
}

static bool card_has(const kl_dataset *d, kli_split split) {
    for (int i = 0; i < d->n_splits; i++)
        if (kl_str_eq(d->splits[i].name, kl_str_of(kli_split_name(split)))) return true;
    return false;
}

/* What `datasets` reads: which file is which split. */
static void card_head(kl_buf *b, const kl_dataset *d) {
    kl_buf_printf(b, "---\nconfigs:\n- config_name: %.*s\n  data_files:\n", KL_STR_ARG(d->format));
    for (int i = 0; i < KLI_HELD_OUT; i++)
        if (card_has(d, i))
            kl_buf_printf(b, "  - split: %s\n    path: %s.jsonl\n", kli_split_name(i),
                          kli_split_name(i));
    kl_buf_add(b, KL_S("---\n"));
}

static void card_what(kl_buf *b, const kl_dataset *d, kl_dataset_format f) {
    static const char *const WHAT[] = {
        "Steps that passed the gate and that it calls `faster` than their parent: the prompt as it "
        "was sent, and the reply that made the step. What is not in it: proposals whose "
        "measurement stayed undecided.",
        "Prompts for reinforcement learning, as Kernel-Smith chooses them: steps that became the "
        "best of their search and that the gate calls `faster`; of two whose prompts give each "
        "other away, the one of higher gain. The reward is speed over `parent_source`, measured by "
        "the gate on the platform where the training runs; `reference_gain` is what the recorded "
        "reply reached on its own.",
        "Pairs of replies about one parent kernel. Chosen: passed and `faster`, by the gate. "
        "Rejected: not compiled, wrong, a cheat, or passed and `slower`. None rests on a "
        "measurement that stayed undecided.",
        "Every step of these runs, good or bad, with prompt, reply, texts, verdict and cost."};
    kl_buf_printf(b, "# Kernel optimization steps: %.*s\n\n%s\n\n", KL_STR_ARG(d->format), WHAT[f]);
    kl_buf_printf(b,
                  "%lld rows out of %lld steps of %d run%s. Of %lld proposals, the reply is known "
                  "for %lld by its effect: applied to the parent it gives the text that was "
                  "judged. Parquet: %.*s.\n",
                  (long long)d->rows, (long long)d->steps, d->n_runs, d->n_runs == 1 ? "" : "s",
                  (long long)d->proposals, (long long)d->linked, KL_STR_ARG(d->parquet));
}

static void card_families(kl_buf *b, const kl_dataset *d) {
    kl_buf_add(b, KL_S("\n## Families\n\nA family of operators is in one split, by the hash of its "
                       "name alone.\n\n| family | split | tasks | rows |\n| --- | --- | --- | ---: "
                       "|\n"));
    for (int i = 0; i < d->n_families; i++) {
        const kl_dataset_family *f = &d->families[i];
        kl_buf_add(b, KL_S("| "));
        card_code(b, f->name);
        kl_buf_printf(b, " | %.*s | ", KL_STR_ARG(f->split));
        card_code(b, f->tasks);
        kl_buf_printf(b, " | %lld |\n", (long long)f->rows);
    }
}

static void card_limits(kl_buf *b, const kl_dataset *d) {
    bool replayed = false;
    for (int i = 0; i < d->n_models; i++)
        replayed |= kl_str_starts(d->models[i].name, KL_S("replay of "));
    kl_buf_add(b, KL_S("\n## Limits\n\n"
                       "- Gains hold on the platform and at the shape that the row names.\n"
                       "- A row says what its own measurement said; `call` is the gate's rule, and "
                       "a busy machine leaves much undecided.\n"
                       "- Near duplicates are found by runs of five tokens (Jaccard index of 0.8, "
                       "estimated); renamed variables hide one.\n"
                       "- A prompt may show SkillCards, whose lessons can come from kernels of "
                       "another split.\n"));
    if (replayed)
        kl_buf_add(b, KL_S("- Rows with `replayed` have recorded replies; their prompts and "
                           "measurements are those of the replay, not of the recorded run.\n"));
    kl_buf_add(b, KL_S("\n## How it was made\n\n`klineage dataset export` of "));
    for (int i = 0; i < d->n_runs; i++)
        kl_buf_printf(b, "%s`%.12s`", i ? ", " : "", d->runs[i].ptr);
    kl_buf_printf(b, " with `--format %.*s`.\n", KL_STR_ARG(d->format));
}

kl_str kli_card(kl_arena *a, const kl_dataset *d, const kl_dataset_opts *o) {
    kl_buf b = {0};
    if (d->rows) card_head(&b, d);
    card_what(&b, d, o->format);
    card_tally(&b, "Splits", "split", d->splits, d->n_splits);
    card_families(&b, d);
    card_tally(&b, "Outcomes", "outcome", d->outcomes, d->n_outcomes);
    card_tally(&b, "The gate's rule", "call", d->calls, d->n_calls);
    card_tally(&b, "Platforms", "platform", d->platforms, d->n_platforms);
    card_tally(&b, "Languages", "surface", d->surfaces, d->n_surfaces);
    card_tally(&b, "Who answered", "model", d->models, d->n_models);
    card_tally(&b, "Licences", "as the parent's text says", d->licences, d->n_licences);
    card_tally(&b, "Left out", "why", d->left_out, d->n_left_out);
    card_tally(&b, "Refused", "must not appear", d->refused, d->n_refused);
    card_limits(&b, d);
    return kl_buf_take(&b, a);
}

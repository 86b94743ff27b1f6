/* brief.c - a card in few words: a line of the index that stands before every conversation, and
 * what a turn shows of one that fits.
 *
 * The whole of a card is a thousand tokens and more, of which most is code of another kernel; it is
 * shown to who asks for it (kl_card_prompt).  Numbers come with how many trials they rest on, and
 * below MIN_TRIALS there is no number but the outcomes themselves.
 * SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include <math.h>
#include <string.h>

enum {
    MIN_TRIALS = 5,      /* that a number is given for */
    MAX_OUTCOMES = 4,    /* that are named where there is no number */
    BRIEF_INTENT = 420,  /* bytes */
    BRIEF_SKETCH = 1000, /* bytes */
    BRIEF_RISKS = 3,
    BRIEF_RISK = 170 /* bytes of each */
};

/* ---- pieces ------------------------------------------------------------------------------ */

/* The first words, with one blank between them. */
static void add_first_words(kl_buf *b, kl_str text, int most) {
    kl_str word;
    for (int n = 0; kli_next_word(&word, &text); n++) {
        if (n == most) return kl_buf_add(b, KL_S(" ..."));
        kl_buf_printf(b, "%s%.*s", n ? " " : "", KL_STR_ARG(word));
    }
}

/* Whole sentences up to `most` bytes; a first one that is longer is cut. */
static kl_str first_sentences(kl_str text, size_t most) {
    size_t end = 0;
    for (size_t i = 0; i + 1 < text.len && i < most; i++)
        if (text.ptr[i] == '.' && text.ptr[i + 1] == ' ') end = i + 1;
    return text.len <= most ? text : kli_text_cut(text, end ? end : most);
}

/* What stands in the first fence. */
static kl_str sketch_of(kl_str carrier) {
    const char *begin = NULL;
    for (kl_str line, rest = carrier; kli_next_line(&line, &rest);) {
        if (!kl_str_starts(kl_str_trim(line), KL_S("```"))) continue;
        if (begin) return kli_between(begin, line.ptr);
        begin = rest.ptr;
    }
    return (kl_str){0};
}

static void add_sketch(kl_buf *b, kl_str sketch) {
    kl_str kept = {sketch.ptr, 0};
    for (kl_str line, rest = sketch; kli_next_line(&line, &rest);) {
        if ((size_t)(rest.ptr - sketch.ptr) > BRIEF_SKETCH) break;
        kept.len = (size_t)(rest.ptr - sketch.ptr);
    }
    if (kept.len)
        kl_buf_printf(b, "```\n%.*s```\n%s", KL_STR_ARG(kept),
                      kept.len < sketch.len ? "(the beginning of the sketch)\n" : "");
}

static void add_brief_risks(kl_buf *b, kl_str risks) {
    int n = 0;
    for (kl_str line; n < BRIEF_RISKS && kli_next_line(&line, &risks);) {
        if (!kl_str_starts(line, KL_S("- "))) continue;
        kl_buf_printf(b, "%s%.*s\n", n++ ? "" : "Risks:\n",
                      KL_STR_ARG(first_sentences(line, BRIEF_RISK)));
    }
}

/* ---- evidence ---------------------------------------------------------------------------- */

static void add_outcome(kl_buf *b, const kl_trial_record *r) {
    if (r->accepted && r->gain > 0)
        kl_buf_printf(b, "%.3gx", r->gain);
    else if (r->gain > 0)
        kl_buf_printf(b, "%.3gx, not accepted,", r->gain);
    else
        kl_buf_add(b, r->outcome.len ? r->outcome : KL_S("failed"));
    kl_buf_printf(b, " on %.*s%s", KL_STR_ARG(r->task), r->held_out ? "" : " (where it is from)");
}

static void add_evidence(kl_buf *b, const kl_match *m) {
    const kl_card *c = m->card;
    int decided = 0, gained = 0, named = 0;
    for (int i = 0; i < c->n_trials; i++) {
        decided += kl_trial_decided(&c->trials[i]);
        gained += c->trials[i].accepted;
    }
    KL_ASSERT(gained <= decided);
    if (decided >= MIN_TRIALS) {
        kl_buf_printf(b, "n = %d, %d gained, expected %.3gx", decided, gained,
                      exp(m->expected_log_gain));
        return;
    }
    kl_buf_printf(b, "n = %d", decided);
    for (int i = 0; i < c->n_trials && named < MAX_OUTCOMES; i++) {
        if (!kl_trial_decided(&c->trials[i])) continue;
        kl_buf_printf(b, "%s ", named++ ? ";" : ":");
        add_outcome(b, &c->trials[i]);
    }
}

/* ---- the two forms ----------------------------------------------------------------------- */

kl_str kl_card_line(kl_arena *a, const kl_card *c, int words) {
    kl_buf b = {0};
    kl_buf_printf(&b, "%.*s | %.*s | ", KL_STR_ARG(c->name), KL_STR_ARG(c->action));
    add_first_words(&b, c->intent, words);
    kl_buf_add(&b, KL_S(" | "));
    add_first_words(&b, c->anchor, words);
    kl_buf_add(&b, KL_S("\n"));
    return kli_buf_keep(&b, a);
}

/* Nothing where the action was seen too rarely for a number. */
static void add_prediction(kl_buf *b, const kl_match *m) {
    const kl_expectation *x = &m->expected;
    const double spread = 1.2815515655446004 * x->deviation; /* 80 of 100 */
    if (!m->predicted || x->n < KL_GAIN_LEAST) return;
    kl_buf_printf(b, "; here it gains in %.0f of 100 tries, then %.2gx [%.2g, %.2g]", x->p * 100,
                  exp(fmin(x->log_gain, m->bound)), exp(x->log_gain - spread),
                  exp(fmin(x->log_gain + spread, m->bound)));
}

kl_str kl_card_standing(kl_arena *a, const kl_match *m) {
    kl_buf b = {0};
    kl_buf_printf(&b, "%.*s: %s%s%.*s; ", KL_STR_ARG(m->card->name),
                  m->intent              ? "an idea"
                  : m->fit == KL_FIT_MET ? "fits"
                                         : "may fit",
                  m->why.len ? ", " : "", KL_STR_ARG(m->why));
    if (m->intent) kl_buf_add(&b, KL_S("there "));
    add_evidence(&b, m);
    add_prediction(&b, m);
    kl_buf_add(&b, KL_S("\n"));
    return kli_buf_keep(&b, a);
}

kl_str kl_card_brief(kl_arena *a, const kl_match *m, const kl_target *t) {
    const kl_card *c = m->card;
    kl_buf b = {0};
    kl_buf_printf(&b, "## %.*s (%.*s%s)\n\n%.*s\n", KL_STR_ARG(c->name), KL_STR_ARG(c->action),
                  m->intent ? ", an idea of another surface" : "",
                  KL_STR_ARG(first_sentences(c->intent, BRIEF_INTENT)));
    kli_card_conditions(&b, a, c, t);
    if (!m->intent) add_sketch(&b, sketch_of(c->carrier));
    add_brief_risks(&b, c->risks);
    return kli_buf_keep(&b, a);
}

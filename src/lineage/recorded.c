/* recorded.c - what a recording shows of the decisions that were made when it was made.
 *
 *   deoptimize 3/0 -> rederive 3/0      the step passed the gate
 *                  -> deoptimize 3/1    it was rejected
 *   rederive 3/0   -> rederive 3/1      the try was rejected
 *                  -> deoptimize 3/1    so was the try, and the step was given up with it
 *                  -> deoptimize 4/0    the step was kept
 *
 * A replay takes the recorded way: which side of a threshold a noisy measurement falls on is no
 * reason to leave it.  What is measured here is said and written down all the same, and a kernel
 * that is not correct here is never taken.  Where nothing is replayed all of this answers
 * "unknown", and the gate alone decides.  SPDX-License-Identifier: Apache-2.0 */
#include "walk_impl.h"
#include <stdio.h>
#include <string.h>

typedef struct {
    bool there, rederive;
    int place;
} recorded_call;

static recorded_call read_slot(const char *slot) {
    recorded_call c = {0};
    char purpose[16];
    c.there = slot && sscanf(slot, "%15s %d/", purpose, &c.place) == 2;
    c.rederive = c.there && strcmp(purpose, "rederive") == 0;
    return c;
}

static const char *next_slot(const kli_walk *w, const char *slot) {
    return kl_track_recorded_next(w->track, slot);
}

bool kli_recorded_ends(const kli_walk *w) {
    const char *next = next_slot(w, NULL);
    return next && !*next;
}

/* The next proposal of a step: of the same one, it was rejected; of a later one, it was kept. */
kli_recorded kli_recorded_step(const kli_walk *w) {
    const char *slot = next_slot(w, NULL);
    recorded_call c = read_slot(slot);
    while (c.there && c.rederive) c = read_slot(slot = next_slot(w, slot));
    return !c.there ? KLI_UNKNOWN : c.place > kli_place(w) ? KLI_ACCEPTED : KLI_REJECTED;
}

kli_recorded kli_recorded_gate(const kli_walk *w) {
    const recorded_call c = read_slot(next_slot(w, NULL));
    return !c.there                               ? KLI_UNKNOWN
           : c.rederive || c.place > kli_place(w) ? KLI_ACCEPTED
                                                  : KLI_REJECTED;
}

kli_recorded kli_recorded_try(const kli_walk *w) {
    const recorded_call c = read_slot(next_slot(w, NULL));
    return c.there && c.rederive ? KLI_REJECTED : kli_recorded_step(w);
}

bool kli_another_try(const kli_walk *w, int done, int most) {
    const char *next = kli_is_mechanical(w) ? NULL : next_slot(w, NULL);
    if (!next || (!*next && !done))
        return done < most; /* a recording that ends before the first try: asking says so */
    return done < KLI_MAX_REDERIVE && read_slot(next).rederive;
}

void kli_mark_recorded(kl_edge *edge, kli_walk *w, kl_str here) {
    kl_track_log(w->track, "  recorded: accepted; here: %.*s", KL_STR_ARG(here));
    edge->decided = KL_S("recorded");
    edge->here = here;
}

void kli_follow(kl_edge *edge, kli_attempt *x, kli_walk *w, kli_recorded then) {
    if (then == KLI_ACCEPTED && !kli_alive(x) && x->judged && !x->failed) {
        kli_mark_recorded(edge, w, x->symptom);
        x->symptom = x->advice = (kl_str){0};
    } else if (then == KLI_REJECTED && kli_alive(x)) {
        kl_track_log(w->track, "  recorded: rejected; here: it passes");
        kli_reject(x, w, "recorded", "it was rejected when this was recorded; here it passes");
    }
}

void kli_skip(kli_walk *w) {
    const char *slot = next_slot(w, NULL);
    recorded_call c = read_slot(slot);
    while (c.there && c.rederive) c = read_slot(slot = next_slot(w, slot));
    kl_track_log(w->track, "  the recorded step is not valid here; continuing with the next one");
    if (c.there) w->skipped += c.place - kli_place(w);
}

/* cards.c - the library as a search sees it: which cards may come into play, which fit a kernel as
 * it is. Not here: how they are ranked (skill/retrieve.c).  SPDX-License-Identifier: Apache-2.0 */
#include "search_impl.h"
#include <string.h>

#define MAX_INDEX 40    /* lines of the system turn */
#define INDEX_WORDS 160 /* of intents, and of anchors, in all of them: below 1000 tokens */
#define LINE_WORDS 20   /* at most in one */
#define SHOWN 3         /* more of them help less (SkillsBench, arXiv 2602.12670) */
#define TOP 8           /* per dimension of the scope */

static kl_target cards_target_of(const kl_search *s, const kli_point *p, kl_str prior) {
    const kl_search_opts *o = &s->o;
    return (kl_target){.case_name = o->task->case_name,
                       .surface = kl_str_of(o->start->surface->name),
                       .platform = s->start.verdict.platform,
                       .dtype = kl_str_of(kl_dtype_name(o->workload->dtypes[0])),
                       .prior = prior,
                       .traits = &p->traits,
                       .facts =
                           kl_facts_of(s->arena, p->kernel, o->task, o->workload, &p->verdict)};
}

static bool is_withheld(const kl_search *s, kl_str name) {
    for (int i = 0; s->o.arm && i < s->o.arm->withheld.n; i++)
        if (kl_str_eq(s->o.arm->withheld.at[i], name)) return true;
    return false;
}

static int retrieve(kl_search *s, kl_match **out, const kli_point *p, kl_str prior, bool all) {
    int n = 0;
    if (!s->o.library) return 0;
    kl_target target = cards_target_of(s, p, prior);
    kl_library_retrieve(out, &n, s->arena, s->o.library, &target,
                        &(kl_retrieve_opts){.top = TOP, .all = all});
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (!is_withheld(s, (*out)[i].card->name)) (*out)[kept++] = (*out)[i];
    kli_rank(s, *out, kept, target.facts);
    return kept;
}

int kli_cards_match(kl_search *s, kl_match **out, const kli_point *p, kl_str prior) {
    return retrieve(s, out, p, prior, false);
}

kli_cards_shown kli_shown(const kl_search *s) {
    return s->o.arm ? s->o.arm->shown : KLI_SHOW_FITTING;
}

/* Nothing of the task or of the kernel is in it, so that a provider's cache serves all tracks. */
kl_str kli_cards_text(kl_search *s) {
    const kl_card **cards;
    kl_buf b = {0};
    if (!s->o.library) return KL_S("");
    const int n = kl_library_of_surface(&cards, s->arena, s->o.library,
                                        kl_str_of(s->o.start->surface->name), MAX_INDEX);
    const bool whole = kli_shown(s) == KLI_SHOW_ALL;
    if (!n) return KL_S("");
    const int words = INDEX_WORDS / n < LINE_WORDS ? INDEX_WORDS / n : LINE_WORDS;
    for (int i = 0; i < n; i++)
        kl_buf_add(&b, whole ? kl_card_prompt(s->arena, cards[i])
                             : kl_card_line(s->arena, cards[i], words));
    kl_prompt_value values[] = {
        {"library", kl_buf_take(&b, s->arena)},
        {"form", whole ? KL_S("") : KL_S(" `name | action | what it does | where it applies`.")}};
    return kl_prompt(s->arena, kli_shown(s) == KLI_SHOW_FITTING ? "search_library" : "search_given",
                     values, (int)KL_COUNT(values));
}

static bool cards_was_said(const kli_search_dialog *talk, kl_str text) {
    for (int i = 0; i < talk->n; i++)
        if (memmem(talk->at[i].text.ptr, talk->at[i].text.len, text.ptr, text.len)) return true;
    return false;
}

/* What was said of a card before is not said again, only how it stands now. */
kl_str kli_cards_fitting(kl_search *s, const kli_point *p, kl_str prior,
                         const kli_search_dialog *talk) {
    kl_match *m;
    kl_buf b = {0};
    const kl_target target = cards_target_of(s, p, prior);
    const int n = retrieve(s, &m, p, prior, false);
    for (int i = 0; i < n && i < SHOWN; i++)
        kl_buf_printf(&b, "- %s", kl_card_standing(s->arena, &m[i]).ptr);
    for (int i = 0; i < n && i < SHOWN; i++) {
        const kl_str head = kl_arena_printf(s->arena, "\n## %.*s (", KL_STR_ARG(m[i].card->name));
        if (!cards_was_said(talk, head))
            kl_buf_printf(&b, "\n%s", kl_card_brief(s->arena, &m[i], &target).ptr);
    }
    if (!n) kl_buf_add(&b, KL_S("- none: rely on your own judgement\n"));
    return kl_buf_take(&b, s->arena);
}

kl_str kli_cards_fetched(kl_search *s, kl_str name) {
    const kl_card *c = is_withheld(s, name) ? NULL : kli_cards_named(s, name);
    kl_prompt_value values[] = {
        {"card", c ? kl_card_prompt(s->arena, c)
                   : KL_S("There is no card of this name; the first message lists them.\n")}};
    return kl_prompt(s->arena, "search_fetched", values, 1);
}

const kl_card *kli_cards_named(const kl_search *s, kl_str name) {
    const kl_card *c = s->o.library ? kl_library_card(s->o.library, name) : NULL;
    return c && c->status == KL_CARD_ADMITTED ? c : NULL;
}

bool kli_cards_patch(kl_search *s, kli_outcome *o, kl_str *source, const kli_point *base,
                     const kl_card *card) {
    if (!card->patch.len ||
        kl_proposal_parse(&o->proposal, s->arena, card->patch, s->o.start->surface, kl_ignored()) ||
        kl_proposal_apply(source, s->arena, base->kernel->source, &o->proposal, kl_ignored()))
        return false;
    o->proposal.card = card->name;
    o->proposal.action = card->action;
    return true;
}

kl_str kli_with_word(kl_arena *a, kl_str words, kl_str word) {
    if (!word.len) return words;
    return words.len ? kl_arena_printf(a, "%.*s %.*s", KL_STR_ARG(words), KL_STR_ARG(word))
                     : kl_arena_copy(a, word);
}

/* search.h - rows of the table of policies: klineage/search.h with the bodies of its handles.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_SEARCH_SEARCH_H
#define KL_SEARCH_SEARCH_H

#include <klineage/search.h>

#include "skill/skill.h"

/* For experiments on what of the cards it is that helps. */
typedef enum {
    KLI_SHOW_FITTING, /* the index, the few that fit, any one whole when it is asked for */
    KLI_SHOW_INDEX,   /* the index alone */
    KLI_SHOW_ALL      /* every card of the surface, whole */
} kli_cards_shown;
struct kl_cards_arm {
    kli_cards_shown shown;
    kl_names withheld; /* in the index, and neither offered nor shown whole */
    kl_str note;       /* what the row of the start says of it, as its locus */
};

/* A number that a policy can be given. */
typedef struct {
    const char *name;
    double otherwise, least, most;
    const char *doc;
} kl_policy_param;

/* One search while it runs; opaque here. */
typedef struct kl_search kl_search;
/* From the start, which was judged, until the search is over.  Straight-line over kl_ask and
 * kl_judge. */
typedef kl_err kl_policy_line(kl_search *s, kl_error *e);

/* One row of the table. */
struct kl_policy {
    const char *name; /* "klineage" */
    const char *doc;
    const char *source; /* the paper or program that it follows */
    bool uses_library;
    const kl_policy_param *params; /* ends with a name of NULL; NULL: none */
    int max_steps;                 /* proposals, unless set */
    int patience;                  /* unless set; 0: attempts say nothing of each other, so bad luck
                                      ends nothing, whatever is set */
    kl_policy_line *line;
};

const kl_policy_param *kli_policy_param_find(const kl_policy *p,
                                             kl_str name); /* NULL: it has none of that name */

#endif

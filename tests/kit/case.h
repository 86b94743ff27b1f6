/* case.h - text files that say an input and what must come of it, one folder of tests/cases/ for
 * each kind.
 *
 *   # what the case shows
 *   KEY: VALUE                 as often as needed, in any order
 *   --- input                  the section's name is the reader's business; it may be left out
 *   ...
 *   --- expect
 *   ...
 *
 * With KL_UPDATE_CASES=1 in the environment the expected part is rewritten; read the difference
 * before you keep it. SPDX-License-Identifier: Apache-2.0 */
#ifndef KIT_CASE_H
#define KIT_CASE_H
#include "kit.h"

typedef struct {
    kl_str path, input, expect;
    kl_str keys[64], values[64];
    int n_keys;
    kl_str head; /* everything before the expected part */
} kit_case;

/* Print what comes of the case; `arena` and `e` are fresh. */
typedef void kit_run_case(kl_buf *out, const kit_case *c);

/* Every NAME.case of `dir`, sorted by name; fails when one gives something else, or when there are
 * fewer than `least`. */
void kit_run_cases(const char *dir, int least, kit_run_case *run);
/* Value of `key`; `absent` when the case does not say. */
kl_str kit_value(const kit_case *c, const char *key, const char *absent);
/* The next word of `*rest`, up to a blank; empty at the end. */
kl_str kit_word(kl_str *rest);
/* VALUE of a word "KEY=VALUE" among `words`; empty when there is none. */
kl_str kit_field(kl_str words, const char *key);
double kit_number(kl_str text, double absent);

#endif

/* journal.h - the verdicts kept in the store, as commands see them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_COMMAND_JOURNAL_H
#define KL_COMMAND_JOURNAL_H
#include "command/command.h"
#include <klineage/store.h>

/* The file named by --store, or the default place; made when it is missing. */
KL_MUST_USE kl_err kl_journal_open(kl_store **out, kl_arena *a, const kl_args *args, kl_error *e);
/* The verdict that is kept under exactly this key.  Errors: KL_ENOENT. */
KL_MUST_USE kl_err kl_journal_get(kl_verdict *out, kl_store *s, kl_arena *a, const char *key, kl_error *e);
/* The newest answer to the question that `key` stands for; `key` becomes the one it is kept under.  `*found` false when
 * there is none. */
KL_MUST_USE kl_err kl_journal_find(kl_verdict *out, bool *found, kl_store *s, kl_arena *a, char key[65], kl_error *e);
/* Keep a verdict.  A key that is taken (a measurement was repeated) leads to the next one, derived from it: no evidence
 * is dropped, and none is replaced.  `key` becomes the one it is kept under. */
KL_MUST_USE kl_err kl_journal_keep(char key[65], kl_store *s, kl_arena *a, const kl_verdict *v, kl_error *e);

#endif

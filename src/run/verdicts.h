/* verdicts.h - the verdicts kept in the store: the same question finds its answer, a new answer
 * never replaces an old one. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_RUN_VERDICTS_H
#define KL_RUN_VERDICTS_H
#include <klineage/gate.h>
#include <klineage/store.h>

#include "kernel/kernel.h"

/* The verdict that is kept under exactly this key.  Errors: KL_ENOENT. */
KL_MUST_USE kl_err kli_verdicts_get(kl_verdict *out, kl_store *s, kl_arena *a, const char *key,
                                    kl_error *e);
/* The newest answer to the question that `key` stands for; `key` becomes the one it is kept under.
 * `*found` false when there is none. */
KL_MUST_USE kl_err kli_verdicts_find(kl_verdict *out, bool *found, kl_store *s, kl_arena *a,
                                     char key[65], kl_error *e);
/* Keep a verdict.  A key that is taken (a measurement was repeated) leads to the next one, derived
 * from it: no evidence is dropped, and none is replaced.  `key` becomes the one it is kept under.
 */
KL_MUST_USE kl_err kli_verdicts_keep(char key[65], kl_store *s, kl_arena *a, const kl_verdict *v,
                                     kl_error *e);
/* Does a kept verdict answer the question that is asked now?  A measurement that did not settle
 * does not, nor one that found no baseline (it may have been installed since), nor one made under
 * less assurance than is asked for. */
bool kli_verdicts_answer(const kl_verdict *v, const kl_task *t, const kl_gate_opts *o);

#endif

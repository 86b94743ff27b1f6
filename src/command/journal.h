/* journal.h - the store, as commands name it.  What is in it: klineage/store.h, and run/verdicts.h
 * for verdicts. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_COMMAND_JOURNAL_H
#define KL_COMMAND_JOURNAL_H
#include "command/command.h"
#include "run/verdicts.h"
#include <klineage/lineage.h>

/* The file named by --store, or the default place; made when it is missing. */
KL_MUST_USE kl_err kli_journal_open(kl_store **out, kl_arena *a, const kli_args *args, kl_error *e);

/* A lineage by file, name or id.  Errors: KL_ENOENT with the nearest name. */
KL_MUST_USE kl_err kli_journal_lineage(kl_lineage *out, kl_arena *a, kl_store *s, const char *what,
                                       kl_error *e);

/* The document of a lineage into the file `path`; NULL: nowhere. */
KL_MUST_USE kl_err kli_journal_write_lineage(const kl_lineage *l, kl_arena *a, const char *path,
                                             kl_error *e);

#endif

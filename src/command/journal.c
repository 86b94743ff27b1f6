/* journal.c - see journal.h.  SPDX-License-Identifier: Apache-2.0 */
#include "command/journal.h"

kl_err kl_journal_open(kl_store **out, kl_arena *a, const kl_args *args, kl_error *e) {
    const char *named = args->values[KL_OPTION_STORE];
    return kl_store_open(out, named ? named : kl_store_default_path(a).ptr, e);
}

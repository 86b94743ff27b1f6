/* migrations.h - a schema as sections: what a member runs to bring an older medium up to date.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_STORE_MIGRATIONS_H
#define KL_STORE_MIGRATIONS_H
#include <klineage/base.h>

#define KLI_STORE_SCHEMA 3 /* the last section of every member's schema; asserted on opening */

/* The text from the first section whose number is above `version` to the end; NULL when there is
 * none.  `*number` is its number. */
const char *kli_next_section(const char *schema, int64_t version, int64_t *number);
int64_t kli_newest_section(const char *schema);
/* Errors: KL_EINVAL, a medium of a newer klineage. */
KL_MUST_USE kl_err kli_check_version(const char *where, int64_t version, int64_t newest,
                                     kl_error *e);

#endif

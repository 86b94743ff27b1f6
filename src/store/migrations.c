/* migrations.c - see migrations.h.  SPDX-License-Identifier: Apache-2.0 */
#include "store/migrations.h"
#include <stdlib.h>
#include <string.h>

const char *kli_next_section(const char *schema, int64_t version, int64_t *number) {
    static const char mark[] = "\n-- version ";
    for (const char *at = schema; (at = strstr(at, mark)); at += sizeof mark - 1) {
        *number = strtoll(at + sizeof mark - 1, NULL, 10);
        if (*number > version) return at + 1;
    }
    return NULL;
}

int64_t kli_newest_section(const char *schema) {
    int64_t version = 0, number;
    while (kli_next_section(schema, version, &number)) version = number;
    return version;
}

kl_err kli_check_version(const char *where, int64_t version, int64_t newest, kl_error *e) {
    if (version <= newest) return KL_OK;
    kl_fail(e, KL_EINVAL, where,
            "written by a newer klineage: schema %lld, this program knows %lld", (long long)version,
            (long long)newest);
    return kl_hint(e, "upgrade klineage, or name another journal: --store PATH");
}

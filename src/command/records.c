/* records.c - the documents that klineage keeps and prints, for docs/formats/records.md and
 * docs/schema/. SPDX-License-Identifier: Apache-2.0 */
#include "base/record.h"
#include "command/command.h"
#include <klineage/skill.h>
#include <string.h>

static const kl_record *const DOCUMENTS[] = {&KL_VERDICT, &KL_LINEAGE, &KL_CARD_EVIDENCE,
                                             &KL_STEP,    &KL_CHARGE,  &KL_JOB};

void kli_page_records(kl_buf *out) {
    kl_buf_printf(out, "# Records\n\n<!-- Generated: klineage --generate records > "
                       "docs/formats/records.md -->\n\nEvery field of every document, in the "
                       "order in which it is written. Numbers that JSON cannot\nhold are the "
                       "texts `NaN`, `Infinity` and `-Infinity`. Schemas: "
                       "[docs/schema](../schema).\n");
    for (size_t i = 0; i < KL_COUNT(DOCUMENTS); i++) kli_record_page(out, DOCUMENTS[i]);
}

bool kli_page_schema(kl_buf *out, const char *name) {
    for (size_t i = 0; i < KL_COUNT(DOCUMENTS); i++) {
        if (strcmp(DOCUMENTS[i]->name, name) != 0) continue;
        kl_arena *a = kl_arena_new();
        json_t *schema = kli_record_schema(DOCUMENTS[i]);
        kl_buf_add(out, kli_json_dump(a, schema, true));
        json_decref(schema);
        kl_arena_free(a);
        return true;
    }
    return false;
}

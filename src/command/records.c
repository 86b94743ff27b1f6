/* records.c - the documents that klineage keeps and prints, for docs/formats/records.md and
 * docs/schema/. SPDX-License-Identifier: Apache-2.0 */
#include "base/record.h"
#include "command/command.h"
#include <klineage/dataset.h>
#include <klineage/skill.h>
#include <string.h>

static const kl_record *const DOCUMENTS[] = {
    &KL_VERDICT, &KL_LINEAGE,         &KL_CARD_EVIDENCE,  &KL_STEP,         &KL_CHARGE,
    &KL_JOB,     &KL_PROBE,           &KL_PROBE_STATE,    &KL_NOISE,        &KL_NOISE_RECORD,
    &KL_DATASET, &KL_DATASET_SFT_ROW, &KL_DATASET_RL_ROW, &KL_DATASET_PAIR, &KL_DATASET_STEP};

void kli_page_records(kl_buf *out) {
    kl_buf_printf(out, "# Records\n\n<!-- Generated: klineage --generate records > "
                       "docs/formats/records.md -->\n\nEvery field of every document, in the "
                       "order in which it is written. Numbers that JSON cannot\nhold are the "
                       "texts `NaN`, `Infinity` and `-Infinity`. Schemas: "
                       "`docs/schema/`.\n");
    for (size_t i = 0; i < KL_COUNT(DOCUMENTS); i++) kli_record_page(out, DOCUMENTS[i]);
}

void kli_page_facts(kl_buf *out) {
    kl_buf_printf(
        out,
        "# Facts\n\n<!-- Generated: klineage --generate facts > docs/formats/facts.md "
        "-->\n\nWhat a kernel's state is, as `klineage kernel facts` shows it and as the "
        "contracts of cards\n([card.md](card.md)) ask for it. Computed from the task, from "
        "the kernel's text and, where there is\none, from its verdict; declared in "
        "`include/klineage/rewrite.def`. A fact that cannot be told is\nunknown, `null` in "
        "JSON. Traits ([traits.md](traits.md)) are facts too, under their own names. A\n"
        "kernel in Python has no loops and memories: only what its words say.\n\nThe command "
        "compiles the kernel too and shows, under `compiled`, what prompts show: the machine's\n"
        "bounds, how innermost loops touch their operands, what the compiler says of them, "
        "registers,\nspills and how many blocks fit a multiprocessor, and the instructions of the "
        "hottest loop. It is\ntext for readers: no contract asks for "
        "it.\n");
    kl_facts_page(out);
}

static bool facts_schema(kl_buf *out, const char *name) {
    if (strcmp(name, "facts") != 0) return false;
    kl_arena *a = kl_arena_new();
    json_t *schema = kl_facts_schema();
    kl_buf_add(out, kli_json_dump(a, schema, true));
    json_decref(schema);
    kl_arena_free(a);
    return true;
}

bool kli_page_schema(kl_buf *out, const char *name) {
    if (facts_schema(out, name)) return true;
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

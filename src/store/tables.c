/* tables.c - every table: its columns in order, key first, and where each lies in its struct.
 *
 * A member makes its statements from these, so a column is written in store.def or here, in
 * schema.sql and nowhere else.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/store_impl.h"
#include "base/record.h"
#include <string.h>

#define COLUMN(type, field, cell)                                                                  \
    { #field, cell, offsetof(type, field) }
#define TABLE(text, type, key, again)                                                              \
    {                                                                                              \
        .name = text, .columns = type##_columns, .n_columns = (int)KL_COUNT(type##_columns),       \
        .n_key = key, .replaces = again, .row_bytes = sizeof(type)                                 \
    }

/* A row of a .def file as a column; members that are in no document are none. */
#define KL_COLUMN(kind, ...) KL_COLUMN_##kind(__VA_ARGS__)
#define KL_COLUMN_HASH(member, ...) COLUMN(KL_RECORD, member, KLI_HASH),
#define KL_COLUMN_TEXT(member, ...) COLUMN(KL_RECORD, member, KLI_TEXT),
#define KL_COLUMN_JSON(member, ...) COLUMN(KL_RECORD, member, KLI_JSON),
#define KL_COLUMN_DATE(member, ...) COLUMN(KL_RECORD, member, KLI_DATE),
#define KL_COLUMN_I64(member, ...) COLUMN(KL_RECORD, member, KLI_NUMBER),
#define KL_COLUMN_BOOL(member, ...) COLUMN(KL_RECORD, member, KLI_FLAG),
#define KL_COLUMN_ONLY(...)

/* A verdict's JSON is text in rows of schema 2; else verdict.c packs it, and checks it before. */
#define KL_RECORD kl_store_verdict
static const kli_column kli_verdict_row_columns[] = {
#define KL_DEF_VERDICT_ROW KL_COLUMN
#include <klineage/store.def>
    COLUMN(kli_verdict_row, packed, KLI_BYTES),
};
#undef KL_RECORD
const kli_store_table kli_verdicts = TABLE("verdict", kli_verdict_row, 1, false);

static const kli_column kli_blob_row_columns[] = {
    COLUMN(kli_blob_row, hash, KLI_HASH),
    COLUMN(kli_blob_row, text, KLI_BYTES),
};
const kli_store_table kli_blobs = TABLE("blob", kli_blob_row, 1, false);

#define KL_RECORD kl_store_run
static const kli_column kl_store_run_columns[] = {
#define KL_DEF_RUN_ROW KL_COLUMN
#include <klineage/store.def>
};
#undef KL_RECORD
const kli_store_table kli_runs = TABLE("run", kl_store_run, 1, false);

#define KL_RECORD kl_store_effect
static const kli_column kl_store_effect_columns[] = {
#define KL_DEF_EFFECT_ROW KL_COLUMN
#include <klineage/store.def>
};
#undef KL_RECORD
const kli_store_table kli_effects = TABLE("effect", kl_store_effect, 1, false);

#define KL_RECORD kl_store_charge
static const kli_column kl_store_charge_columns[] = {
#define KL_DEF_CHARGE KL_COLUMN
#include <klineage/store.def>
};
const kl_record KL_CHARGE = {
    KL_RECORD_HEAD("charge", "One call to a model in the ledger: table `charge`."),
    KL_ROWS{
#define KL_DEF_CHARGE KL_ROW
#include <klineage/store.def>
        KL_ROWS_END}};
#undef KL_RECORD
const kli_store_table kli_charges = TABLE("charge", kl_store_charge, 2, true);

#define KL_RECORD kl_store_step
static const kli_column kl_store_step_columns[] = {
#define KL_DEF_STEP_ROW KL_COLUMN
#include <klineage/store.def>
};
#undef KL_RECORD
const kli_store_table kli_steps = TABLE("step", kl_store_step, 3, true);

#define KL_RECORD kl_store_record
static const kli_column kl_store_record_columns[] = {
#define KL_DEF_RECORD_ROW KL_COLUMN
#include <klineage/store.def>
};
#undef KL_RECORD
const kli_store_table kli_records = TABLE("record", kl_store_record, 2, true);

static const kli_column kli_lease_row_columns[] = {
    COLUMN(kli_lease_row, name, KLI_TEXT),
    COLUMN(kli_lease_row, owner, KLI_TEXT),
    COLUMN(kli_lease_row, deadline_ms, KLI_NUMBER),
};
const kli_store_table kli_leases = TABLE("lease", kli_lease_row, 1, true);

_Static_assert(sizeof(kl_store_charge) <= KLI_ROW_BYTES, "the widest row fits");
_Static_assert(sizeof(kli_verdict_row) <= KLI_ROW_BYTES, "and the one that is packed");
_Static_assert(sizeof(kl_store_effect) <= KLI_ROW_BYTES, "and what was asked");

/* ---- cells --------------------------------------------------------------------------- */

int64_t kli_number_of(const void *row, const kli_column *c) {
    const char *at = (const char *)row + c->offset;
    return c->cell == KLI_FLAG ? *(const bool *)at : *(const int64_t *)(const void *)at;
}

void kli_set_number(void *row, const kli_column *c, int64_t value) {
    char *at = (char *)row + c->offset;
    if (c->cell == KLI_FLAG)
        *(bool *)at = value != 0;
    else
        *(int64_t *)(void *)at = value;
}

const kli_column *kli_column_named(const kli_store_table *t, const char *name) {
    for (int i = 0; i < t->n_columns; i++)
        if (strcmp(t->columns[i].name, name) == 0) return &t->columns[i];
    kl_bug(name, __FILE__, __LINE__);
}

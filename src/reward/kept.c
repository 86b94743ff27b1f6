/* kept.c - what the journal knows of rewards.
 *
 *   record  kind `reward`: an accepted batch.  Name `open` with its kernels until the last is
 *           answered, then `done`.  It names its tenant; nobody else finds it
 *   effect  key of a question -> key of the verdict that answers it; put once, by the judge, and
 *           never changed (law 8).  Its track is the tenant
 *
 * So nothing is lost by a crash at any place: before the record nothing was promised, after it the
 * next start asks again what has no effect, and a verdict that was kept without its effect is found
 * by the judge.
 * SPDX-License-Identifier: Apache-2.0 */
#include "reward/reward_impl.h"
#include "base/json.h"
#include <string.h>

#define KIND "reward"
#define MOST_OPEN 8192 /* batches that a crash leaves: one waiting kernel each, and some judged */

/* ---- answers ---------------------------------------------------------------------------- */

kl_err kli_answer_find(char verdict[65], bool *found, kl_store *s, const char *question,
                       kl_error *e) {
    kl_store_effect f;
    kl_error local = {0};
    kl_arena *a = kl_arena_new();
    const kl_err err = kl_store_effect_get(&f, s, a, question, &local);
    *found = !err;
    if (*found) {
        KL_ASSERT(f.answer.len == 64);
        memcpy(verdict, f.answer.ptr, 64);
        verdict[64] = '\0';
    }
    kl_arena_free(a);
    if (err && err != KL_ENOENT) *e = local;
    return err == KL_ENOENT ? KL_OK : err;
}

kl_err kli_answer_keep(kl_store *s, const kli_question *q, kl_str tenant, const char *verdict,
                       kl_error *e) {
    const kl_store_effect f = {.key = kl_str_of(q->key),
                               .run = KL_S(KIND),
                               .track = tenant,
                               .kind = KL_S("judge"),
                               .purpose = q->workload,
                               .request = kl_str_of(q->key),
                               .answer = kl_str_of(verdict)};
    return kl_store_effect_put(s, &f, e);
}

/* ---- batches ---------------------------------------------------------------------------- */

kl_err kli_batch_keep(kl_store *s, const kli_batch *b, bool open, kl_error *e) {
    kl_arena *a = kl_arena_new();
    json_t *o = json_pack("{ss si so so}", "schema", "klineage/reward", "version", 1, "tenant",
                          kli_json_str(b->tenant->name), "batch", kli_batch_json(b));
    const kl_store_record row = {.kind = KL_S(KIND),
                                 .id = kl_str_of(b->id),
                                 .name = open ? KL_S("open") : KL_S("done"),
                                 .json = kli_json_dump(a, o, false)};
    const kl_err err = kl_store_record_put(s, &row, e);
    json_decref(o);
    kl_arena_free(a);
    return err;
}

static kli_tenant *tenant_named(kli_tenants *t, kl_str name) {
    for (size_t i = 0; i < t->n; i++)
        if (kl_str_eq(t->tenants[i].name, name)) return &t->tenants[i];
    return NULL;
}

/* Errors: KL_ENOENT: not that of `whose` (NULL: any), or of a tenant that is no more. */
static kl_err read_kept_batch(kli_batch **out, kli_tenants *t, const kli_tenant *whose, kl_arena *a,
                              const kl_store_record *row, kl_error *e) {
    json_t *o = NULL;
    kl_err err = kli_json_parse(&o, row->json, KL_S("journal"), e);
    if (err) return err;
    kli_tenant *tenant = tenant_named(t, kli_json_text_or(o, "tenant", (kl_str){0}));
    const bool theirs = tenant && (!whose || tenant == whose);
    err = theirs ? kli_batch_parse(out, tenant,
                                   kli_json_dump(a, json_object_get(o, "batch"), false), e)
                 : kl_fail(e, KL_ENOENT, "journal", "no such batch");
    json_decref(o);
    if (err) return err;
    memcpy((*out)->id, row->id.ptr, 64); /* the client knows it by this, whatever tasks are now */
    return KL_OK;
}

kl_err kli_batch_find(kli_batch **out, kl_store *s, kli_tenants *t, kli_tenant *tenant,
                      const char *id, kl_error *e) {
    kl_store_record row;
    kl_arena *a = kl_arena_new();
    *out = NULL;
    kl_err err = kl_store_record_find(&row, s, a, KIND, id, e);
    if (!err) err = read_kept_batch(out, t, tenant, a, &row, e);
    kl_arena_free(a);
    return err;
}

kl_err kli_batch_each_open(kl_store *s, kli_tenants *t, void (*visit)(void *ctx, kli_batch *b),
                           void *ctx, kl_error *e) {
    kl_store_record *rows;
    size_t n = 0;
    kl_arena *a = kl_arena_new();
    kl_err err = kl_store_record_latest(&rows, &n, s, a, KIND, "open", MOST_OPEN, e);
    for (size_t i = n; !err && i-- > 0;) {
        kli_batch *b = NULL;
        kl_error own = {0};
        if (read_kept_batch(&b, t, NULL, a, &rows[i], &own))
            continue; /* of a tenant that is no more */
        visit(ctx, b);
    }
    kl_arena_free(a);
    return err;
}

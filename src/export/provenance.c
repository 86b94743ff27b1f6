/* provenance.c - where an export comes from: provenance.json, docs/schema/provenance.schema.json.
 *
 * Every number is a verdict's or a step's; what the journal does not know is null.
 * SPDX-License-Identifier: Apache-2.0 */
#include "export_impl.h"

#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"

static json_t *compared(const kl_comparison *c) {
    return json_pack("{so so so so so ss}", "baseline", kli_json_str(c->baseline), "ratio",
                     kli_json_real(c->ratio), "low", kli_json_real(c->low), "high",
                     kli_json_real(c->high), "floor", kli_json_real(c->noise), "call",
                     kl_decision_name(c->call));
}

static json_t *verdict_json(const kli_export *x) {
    const kl_verdict *v = &x->verdict;
    json_t *against = json_array(), *weaker = json_array();
    const char assurance[] = {v->assurance, '\0'};
    for (int i = 0; i < v->n_comparisons; i++)
        json_array_append_new(against, compared(&v->comparisons[i]));
    for (int i = 0; i < v->n_degradations; i++)
        json_array_append_new(weaker, kli_json_str(v->degradations[i]));
    return json_pack("{ss ss ss ss so so so so so so so so so}", "key", x->verdict_key, "receipt",
                     v->receipt, "outcome", kl_outcome_name(v->outcome), "assurance", assurance,
                     "platform", kli_json_str(v->platform), "device", kli_json_str(v->device),
                     "toolchain", kli_json_str(v->toolchain), "workload", kli_json_str(v->workload),
                     "created", kli_json_str(v->created), "median_ns",
                     v->n_comparisons ? json_integer(v->median_ns) : json_null(), "against",
                     against, "degradations", weaker, "code",
                     v->artefact_hash.len ? kli_json_str(v->artefact_hash) : json_null());
}

static json_t *kernel_json(const kli_export *x) {
    const kl_kernel *k = x->kernel;
    json_t *params = json_object(), *flags = json_array();
    for (int i = 0; i < k->n_params; i++)
        json_object_set_new(params, kl_arena_copy(x->arena, k->params[i].name).ptr,
                            json_integer(k->params[i].value));
    for (int i = 0; i < k->n_flags; i++) json_array_append_new(flags, kli_json_str(k->flags[i]));
    const kl_str licence = kli_export_licence(k->source);
    return json_pack("{so ss ss so so so so}", "file", kli_json_str(kli_fs_basename(k->path.ptr)),
                     "hash", k->hash, "surface", k->surface->name, "params", params, "flags", flags,
                     "licence",
                     kl_str_eq(licence, KL_S("NOASSERTION")) ? json_null() : kli_json_str(licence),
                     "code", x->artefact.ok ? json_string(x->artefact.hash) : json_null());
}

static json_t *domain_json(const kli_export *x) {
    json_t *sizes = json_object(), *required = json_array();
    for (int i = 0; i < x->task->n_axes; i++)
        json_object_set_new(
            sizes, kl_arena_copy(x->arena, x->task->axes[i].name).ptr,
            json_pack("[II]", (json_int_t)x->domain.least[i], (json_int_t)x->domain.most[i]));
    for (int i = 0; i < x->kernel->n_required; i++)
        json_array_append_new(required, kli_json_str(x->kernel->required[i].text));
    return json_pack("{si so so}", "shapes", x->domain.shapes, "sizes", sizes, "required",
                     required);
}

static json_t *files_json(const kli_export_files *files) {
    json_t *list = json_object();
    for (int i = 0; i < files->n; i++) {
        const kl_hash hash = kli_hash_of(files->at[i].text);
        json_object_set_new(list, files->at[i].path.ptr, json_string(hash.hex));
    }
    return list;
}

json_t *kli_export_provenance(const kli_export *x, const char *form,
                              const kli_export_files *files) {
    return json_pack("{ss si ss ss so s{so ss} so so so so so so}", "schema", "klineage/provenance",
                     "version", 1, "form", form, "name", x->name, "created",
                     kli_json_str(kli_utc_now(x->arena)), "task", "name",
                     kli_json_str(x->task->name), "hash", x->task->hash, "kernel", kernel_json(x),
                     "domain", domain_json(x), "verdict", verdict_json(x), "origin",
                     x->origin ? json_incref(x->origin) : json_null(), "check",
                     x->check ? json_incref(x->check) : json_null(), "files", files_json(files));
}

/* plan.c - an experiment file read and checked: YAML -> names -> tasks, kernels and policies that
 * are there.
 *
 *   text -> libfyaml -> keys of the table -> scalars first -> surfaces, policies, workloads
 *
 * Every mistake is told with its line.  A key that is not in a table is a mistake, and so are
 * anchors, tags and a second document: a plan says what it says.  Not here: money and tracks
 * (experiment.c).  Format: docs/formats/experiment.md.  SPDX-License-Identifier: Apache-2.0 */
#include "experiment_impl.h"
#include "base/fs.h"
#include <libfyaml.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_MAX_ROWS 256 /* of one list; with trials the tracks are bounded again */
#define MAX_SURFACES 8
#define PLAN_MAX_DOLLARS 1e6
#define MAX_TITLE 200
#define HELP "docs/formats/experiment.md describes every key; klineage help experiment"

typedef struct {
    kl_arena *a;
    kl_str text, file;
    const char *dir;
    kl_experiment *x;
    const kl_surface *surfaces[MAX_SURFACES];
    int n_surfaces;
    int trials, max_steps, patience; /* of policies that do not say */
    int64_t version;
    bool has_schema;
    struct fy_node *surfaces_key, *policies_key,
        *workloads_key; /* read when everything else of the file is */
    struct fy_node *surface_list, *policy_list, *workload_list;
    struct fy_node *key; /* that is being read: where a value that is not there would be */
    kl_error *e;
} plan_reader;

/* ---- where ------------------------------------------------------------------------------- */

static size_t plan_offset_of(const plan_reader *r, struct fy_node *n) {
    for (int depth = 0; n && depth < FYPCF_GUARANTEED_MINIMUM_DEPTH_LIMIT; depth++) {
        if (fy_node_is_scalar(n)) {
            const struct fy_mark *mark = fy_token_start_mark(fy_node_get_scalar_token(n));
            return mark ? mark->input_pos : r->text.len;
        }
        void *at = NULL;
        if (fy_node_is_mapping(n)) {
            struct fy_node_pair *first = fy_node_mapping_iterate(n, &at);
            n = first ? fy_node_pair_key(first) : NULL;
        } else {
            n = fy_node_sequence_iterate(n, &at);
        }
    }
    return r->text.len;
}

static KL_PRINTF(3, 4) kl_err
    plan_fail(const plan_reader *r, struct fy_node *n, const char *fmt, ...) {
    char message[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    size_t at = plan_offset_of(r, n);
    if (at >= r->text.len && r->key) at = plan_offset_of(r, r->key);
    kl_fail_at(r->e, KL_EINVAL, r->file, r->text, at, "%s", message);
    return kl_hint(r->e, HELP);
}

/* A failure of something that the file names: its own words, and where it was named. */
static kl_err named_here(const plan_reader *r, struct fy_node *n, const kl_error *why) {
    char hint[sizeof why->hint];
    snprintf(hint, sizeof hint, "%s", why->hint);
    kl_fail_at(r->e, why->code, r->file, r->text, plan_offset_of(r, n), "%s%s%.600s", why->where,
               why->where[0] ? ": " : "", why->message);
    return kl_hint(r->e, "%s", hint[0] ? hint : HELP);
}

/* ---- scalars ----------------------------------------------------------------------------- */

static kl_err plan_text_of(kl_str *out, const plan_reader *r, struct fy_node *n) {
    size_t len = 0;
    if (n && fy_node_is_alias(n)) return plan_fail(r, n, "anchors and aliases are not supported");
    const char *text = n && fy_node_is_scalar(n) ? fy_node_get_scalar(n, &len) : NULL;
    if (!text) return plan_fail(r, n, "expected a single value");
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20)
            return plan_fail(r, n, "a value is one line without control characters");
    if (!len) return plan_fail(r, n, "the value is empty");
    *out = kl_arena_copy(r->a, (kl_str){text, len});
    return KL_OK;
}

static kl_err real_of(double *out, const plan_reader *r, struct fy_node *n) {
    kl_str text;
    char *end;
    kl_err err = plan_text_of(&text, r, n);
    if (err) return err;
    *out = strtod(text.ptr, &end);
    if (end == text.ptr || *end || !isfinite(*out))
        return plan_fail(r, n, "'%.60s' is not a number", text.ptr);
    return KL_OK;
}

static kl_err count_of(int *out, const plan_reader *r, struct fy_node *n, int most) {
    double value = 0;
    kl_err err = real_of(&value, r, n);
    if (!err && (value < 1 || value > most || value != floor(value)))
        err = plan_fail(r, n, "expected a whole number from 1 to %d", most);
    if (!err) *out = (int)value;
    return err;
}

static kl_err dollars_of(int64_t *out, const plan_reader *r, struct fy_node *n) {
    double value = 0;
    kl_err err = real_of(&value, r, n);
    if (!err && (value < 0 || value > PLAN_MAX_DOLLARS))
        err = plan_fail(r, n, "expected dollars from 0 to 1000000");
    if (!err) *out = (int64_t)llround(value * 1e6);
    return err;
}

/* Part of a track's name, which is part of every key, every slot and the name of a file. */
static bool plan_is_name(kl_str s) {
    if (!s.len || s.len > KL_MAX_NAME || s.ptr[0] == '.' || s.ptr[0] == '-' || s.ptr[0] == '_')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && c != '-' && c != '_' && c != '.') return false;
    }
    return true;
}

static kl_err name_of(kl_str *out, const plan_reader *r, struct fy_node *n) {
    kl_err err = plan_text_of(out, r, n);
    if (!err && !plan_is_name(*out))
        err = plan_fail(r, n,
                        "a name is at most %d letters, digits, '-', '_' and '.', and begins with a "
                        "letter or a digit",
                        KL_MAX_NAME);
    return err;
}

static kl_err path_of(kl_str *out, const plan_reader *r, struct fy_node *n) {
    kl_str text;
    kl_err err = plan_text_of(&text, r, n);
    if (!err) *out = text.ptr[0] == '/' ? text : kli_fs_join(r->a, r->dir, text.ptr);
    return err;
}

/* ---- mappings by table ------------------------------------------------------------------- */

typedef struct {
    const char *key;
    kl_err (*read)(plan_reader *r, void *into, struct fy_node *value);
} plan_field;

static kl_err unknown_key(const plan_reader *r, struct fy_node *key, kl_str text,
                          const plan_field *fields) {
    kl_buf known = {0};
    for (const plan_field *f = fields; f->key; f++)
        kl_buf_printf(&known, "%s%s", known.len ? ", " : "", f->key);
    kl_err err = plan_fail(r, key, "no key '%.*s' here: there are %s",
                           (int)(text.len < 60 ? text.len : 60), text.ptr, known.ptr);
    kl_buf_fini(&known);
    return err;
}

/* `other` takes the keys that the table does not have; NULL: there are none. */
static kl_err read_mapping(plan_reader *r, void *into, struct fy_node *n, const plan_field *fields,
                           kl_err (*other)(plan_reader *r, void *into, struct fy_node *key,
                                           struct fy_node *value)) {
    void *at = NULL;
    struct fy_node_pair *pair;
    kl_err err = KL_OK;
    while (!err && (pair = fy_node_mapping_iterate(n, &at))) {
        kl_str text;
        struct fy_node *key = fy_node_pair_key(pair), *value = fy_node_pair_value(pair);
        r->key = key;
        err = plan_text_of(&text, r, key);
        if (err) break;
        const plan_field *f = fields;
        while (f->key && !kl_str_eq(text, kl_str_of(f->key))) f++;
        if (f->key)
            err = f->read(r, into, value);
        else
            err = other ? other(r, into, key, value) : unknown_key(r, key, text, fields);
    }
    return err;
}

static kl_err list_of(const plan_reader *r, struct fy_node *n, int most) {
    if (!n || !fy_node_is_sequence(n))
        return plan_fail(r, n, "expected a list: [ONE, TWO], or a line '- ONE' for each");
    int count = fy_node_sequence_item_count(n);
    if (!count) return plan_fail(r, r->key, "the list is empty");
    return count > most ? plan_fail(r, n, "%d rows; at most %d", count, most) : KL_OK;
}

/* ---- policies ---------------------------------------------------------------------------- */

static kl_err find_policy(const kl_policy **out, const plan_reader *r, struct fy_node *n,
                          kl_str name) {
    *out = kl_policy_find(name);
    if (*out) return KL_OK;
    kl_buf known = {0};
    for (int i = 0; kl_policy_each(i); i++)
        kl_buf_printf(&known, "%s%s", i ? ", " : "", kl_policy_each(i)->name);
    kl_err err = plan_fail(r, n, "no policy named '%.60s': there are %s", name.ptr, known.ptr);
    kl_buf_fini(&known);
    return err;
}

static kl_err read_policy_name(plan_reader *r, void *into, struct fy_node *n) {
    kl_experiment_policy *p = into;
    kl_str name;
    kl_err err = plan_text_of(&name, r, n);
    if (!err) err = find_policy(&p->policy, r, n, name);
    return err;
}

static kl_err read_row_name(plan_reader *r, void *into, struct fy_node *n) {
    return name_of(&((kl_experiment_policy *)into)->name, r, n);
}
static kl_err read_row_trials(plan_reader *r, void *into, struct fy_node *n) {
    return count_of(&((kl_experiment_policy *)into)->trials, r, n, KL_MAX_TRACKS);
}
static kl_err read_row_steps(plan_reader *r, void *into, struct fy_node *n) {
    return count_of(&((kl_experiment_policy *)into)->max_steps, r, n, KL_MAX_PROPOSALS);
}
static kl_err read_row_patience(plan_reader *r, void *into, struct fy_node *n) {
    return count_of(&((kl_experiment_policy *)into)->patience, r, n, KL_MAX_PROPOSALS);
}

static kl_err read_row_arm(plan_reader *r, void *into, struct fy_node *n) {
    kl_str name;
    kl_err err = plan_text_of(&name, r, n);
    if (err || kli_arm_parse(&((kl_experiment_policy *)into)->arm, name)) return err;
    kl_buf known = {0};
    for (int i = KLI_ARM_OURS; i <= KLI_ARM_ELSEWHERE; i++)
        kl_buf_printf(&known, "%s%s", known.len ? ", " : "", kli_arm_name((kli_arm)i));
    err = plan_fail(r, n, "no cards '%.60s': there are %s", name.ptr, known.ptr);
    kl_buf_fini(&known);
    return err;
}
static kl_err read_row_mask(plan_reader *r, void *into, struct fy_node *n) {
    double *mask = &((kl_experiment_policy *)into)->mask;
    kl_err err = real_of(mask, r, n);
    return !err && (*mask < 0 || *mask >= 1)
               ? plan_fail(r, n, "expected a probability from 0 to below 1")
               : err;
}

static const plan_field policy_fields[] = {
    {"policy", read_policy_name},    {"name", read_row_name},
    {"trials", read_row_trials},     {"max-steps", read_row_steps},
    {"patience", read_row_patience}, {"cards", read_row_arm},
    {"mask", read_row_mask},         {0}};

/* What the table does not have is a parameter; which ones there are is known when the policy is. */
static kl_err skip_param(plan_reader *r, void *into, struct fy_node *key, struct fy_node *value) {
    (void)r, (void)into, (void)key, (void)value;
    return KL_OK;
}

static kl_err take_param(plan_reader *r, void *into, struct fy_node *key, struct fy_node *value) {
    kl_str name, text;
    kl_error why = {0};
    kl_err err = plan_text_of(&name, r, key);
    if (!err) err = plan_text_of(&text, r, value);
    if (err) return err;
    bool known = kli_policy_param_find(((kl_experiment_policy *)into)->policy, name) != NULL;
    err = kli_experiment_set(into, r->a, name, text, &why);
    return err ? named_here(r, known ? value : key, &why) : KL_OK;
}

static kl_err skip_field(plan_reader *r, void *into, struct fy_node *n) {
    return (void)r, (void)into, (void)n, KL_OK;
}
static const plan_field policy_names[] = {{"policy", skip_field},   {"name", skip_field},
                                          {"trials", skip_field},   {"max-steps", skip_field},
                                          {"patience", skip_field}, {"cards", skip_field},
                                          {"mask", skip_field},     {0}};

static kl_err read_policy(plan_reader *r, kl_experiment_policy *p, struct fy_node *n) {
    kl_err err;
    *p = (kl_experiment_policy){
        .trials = r->trials, .max_steps = r->max_steps, .patience = r->patience};
    if (fy_node_is_mapping(n)) {
        err = read_mapping(r, p, n, policy_fields, skip_param);
        if (!err && !p->policy) err = plan_fail(r, n, "missing key policy: NAME");
        if (!err) err = read_mapping(r, p, n, policy_names, take_param);
        if (!err && p->arm != KLI_ARM_NONE && strcmp(p->policy->name, "klineage") != 0)
            err = plan_fail(r, n, "cards: is a key of the policy klineage");
        if (!err && p->mask > 0 && p->arm == KLI_ARM_NONE)
            err = plan_fail(r, n, "mask: needs cards: as well");
    } else {
        err = read_policy_name(r, p, n);
    }
    KL_ASSERT(err || p->policy);
    if (!err && !p->name.len) p->name = kl_str_of(p->policy->name);
    return err;
}

static kl_err plan_read_policies(plan_reader *r, struct fy_node *list) {
    kl_experiment *x = r->x;
    r->key = r->policies_key;
    kl_err err = list_of(r, list, PLAN_MAX_ROWS);
    if (err) return err;
    x->policies = KL_ARRAY(r->a, kl_experiment_policy, fy_node_sequence_item_count(list));
    for (int i = 0; !err && i < fy_node_sequence_item_count(list); i++) {
        struct fy_node *n = fy_node_sequence_get_by_index(list, i);
        err = read_policy(r, &x->policies[i], n);
        for (int j = 0; !err && j < i; j++)
            if (kl_str_eq(x->policies[j].name, x->policies[i].name))
                err = plan_fail(r, n, "two policies named '%s': give one of them a name of its own",
                                x->policies[i].name.ptr);
        x->n_policies = i + 1;
    }
    return err;
}

/* ---- surfaces ---------------------------------------------------------------------------- */

static kl_err plan_read_surface(plan_reader *r, struct fy_node *n) {
    kl_str name;
    kl_err err = plan_text_of(&name, r, n);
    if (err) return err;
    const kl_surface *s = kl_surface_by_name(name);
    for (int i = 0; s && i < r->n_surfaces; i++)
        if (r->surfaces[i] == s) return plan_fail(r, n, "duplicate surface %s", s->name);
    KL_ASSERT(!s || r->n_surfaces < MAX_SURFACES);
    if (s) return r->surfaces[r->n_surfaces++] = s, KL_OK;
    return plan_fail(r, n, "no surface named '%.60s': there are %s", name.ptr,
                     kl_surface_names(r->a, false).ptr);
}

static kl_err read_surfaces(plan_reader *r, struct fy_node *list) {
    r->key = r->surfaces_key;
    kl_err err = r->key ? list_of(r, list, MAX_SURFACES) : KL_OK;
    if (!r->key) r->surfaces[r->n_surfaces++] = kl_surface_of_host(KL_ON_CPU);
    for (int i = 0; list && !err && i < fy_node_sequence_item_count(list); i++)
        err = plan_read_surface(r, fy_node_sequence_get_by_index(list, i));
    return err;
}

/* ---- workloads --------------------------------------------------------------------------- */

/* As the file has it; the nodes say where each thing was named. */
typedef struct {
    struct fy_node *row, *task, *workload, *kernel, *target_kernel, *recover;
    kl_str name;
    double recover_share, goal;
} workload_row;

static kl_err keep_task(plan_reader *r, void *into, struct fy_node *n) {
    return (void)r, ((workload_row *)into)->task = n, KL_OK;
}
static kl_err keep_shape(plan_reader *r, void *into, struct fy_node *n) {
    return (void)r, ((workload_row *)into)->workload = n, KL_OK;
}
static kl_err keep_kernel(plan_reader *r, void *into, struct fy_node *n) {
    return (void)r, ((workload_row *)into)->kernel = n, KL_OK;
}
static kl_err keep_reference(plan_reader *r, void *into, struct fy_node *n) {
    return (void)r, ((workload_row *)into)->target_kernel = n, KL_OK;
}
static kl_err read_workload_name(plan_reader *r, void *into, struct fy_node *n) {
    return name_of(&((workload_row *)into)->name, r, n);
}

static kl_err above_zero(double *out, const plan_reader *r, struct fy_node *n) {
    kl_err err = real_of(out, r, n);
    return !err && *out <= 0 ? plan_fail(r, n, "expected a number above 0") : err;
}
static kl_err read_recover(plan_reader *r, void *into, struct fy_node *n) {
    workload_row *row = into;
    row->recover = n;
    return above_zero(&row->recover_share, r, n);
}
static kl_err read_goal(plan_reader *r, void *into, struct fy_node *n) {
    return above_zero(&((workload_row *)into)->goal, r, n);
}

static const plan_field workload_fields[] = {
    {"task", keep_task},          {"workload", keep_shape},
    {"kernel", keep_kernel},      {"reference", keep_reference},
    {"recover", read_recover},    {"goal", read_goal},
    {"name", read_workload_name}, {0}};

/* A folder beside the file, else what kl_task_find finds. */
static kl_err plan_load_task(kl_task **out, const plan_reader *r, struct fy_node *n) {
    kl_str name, path;
    kl_error why = {0};
    kl_err err = plan_text_of(&name, r, n);
    if (err) return err;
    kl_str beside = name.ptr[0] == '/' ? name : kli_fs_join(r->a, r->dir, name.ptr);
    bool folder = kli_fs_exists(kli_fs_join(r->a, beside.ptr, "definition.json").ptr);
    err = folder ? KL_OK : kl_task_find(&path, r->a, name.ptr, &why);
    if (err == KL_ENOENT) {
        plan_fail(r, n, "no task named '%.100s', and no task folder there", name.ptr);
        return kl_hint(r->e, "klineage task list shows the available tasks");
    }
    if (!err) err = kl_task_load(out, r->a, folder ? beside.ptr : path.ptr, &why);
    return err ? named_here(r, n, &why) : KL_OK;
}

static kl_err plan_load_kernel(kl_kernel **out, const plan_reader *r, struct fy_node *n,
                               const char *path, const kl_surface *s) {
    kl_str source, name = kl_str_of(path);
    kl_error why = {0};
    if (!s && !kl_surface_of_path(name, 0))
        return plan_fail(r, n, "the extension of a kernel file must be one of %s",
                         kl_surface_endings(r->a).ptr);
    kl_err err = kl_kernel_read(&source, &name, r->a, &why);
    if (err == KL_ENOENT) return plan_fail(r, n, "no kernel there: %.300s", path);
    if (err) return named_here(r, n, &why);
    return kl_kernel_parse(out, r->a, source, kl_str_of(path), s, NULL,
                           r->e); /* with its own line and caret */
}

static kl_err named_kernel(kl_kernel **out, const plan_reader *r, struct fy_node *n) {
    kl_str path;
    kl_err err = path_of(&path, r, n);
    return err ? err : plan_load_kernel(out, r, n, path.ptr, NULL);
}

static kl_err unknown_shape(const plan_reader *r, struct fy_node *n, const kl_task *t,
                            kl_host_kind on, kl_str requested) {
    kl_buf known = {0};
    for (int i = 0; i < t->n_workloads && known.len < 300; i++)
        if (kl_workload_fits(&t->workloads[i], on))
            kl_buf_printf(&known, "%s%.*s", known.len ? " " : "",
                          KL_STR_ARG(t->workloads[i].label));
    kl_err err = plan_fail(
        r, n,
        "task %.60s has no workload '%.100s' for a %s: there are %s; or sizes, as in M=64,N=64",
        t->name.ptr, requested.ptr, on == KL_ON_GPU ? "gpu" : "cpu",
        known.len ? known.ptr : "none");
    kl_buf_fini(&known);
    return err;
}

/* By label, or by sizes on top of the first real shape. */
static kl_err find_shape(const kl_workload **out, const plan_reader *r, const workload_row *row,
                         kl_task *t, kl_host_kind on) {
    kl_str requested = {0};
    kl_error why = {0};
    kl_err err = row->workload ? plan_text_of(&requested, r, row->workload) : KL_OK;
    if (err) return err;
    bool sizes = requested.len && strchr(requested.ptr, '=');
    *out = kl_task_workload(t, sizes ? KL_S("") : requested, on);
    if (!*out) return unknown_shape(r, row->workload ? row->workload : row->task, t, on, requested);
    if (!sizes) return KL_OK;
    kl_workload *made;
    err = kl_workload_with_axes(&made, r->a, t, *out, requested, &why);
    for (int i = 0; !err && i < t->n_tensors; i++) {
        kl_shape shape;
        err = kl_task_shape(&shape, t, made, i, &why);
    }
    *out = made;
    return err ? named_here(r, row->workload, &why) : KL_OK;
}

static kl_err plan_check_new(const plan_reader *r, const workload_row *row, kl_str name) {
    for (int i = 0; i < r->x->n_workloads; i++)
        if (kl_str_eq(r->x->workloads[i].name, name))
            return plan_fail(r, row->row,
                             "two workloads named '%.100s': give one of them a name of its own",
                             name.ptr);
    return KL_OK;
}

/* `s` NULL: the surface of the kernel that the row names. */
static kl_err add_workload(plan_reader *r, const workload_row *row, kl_task *task,
                           const kl_surface *s) {
    kl_experiment_workload w = {
        .task = task, .name = row->name, .recover = row->recover_share, .goal = row->goal};
    kl_err err;
    if (s) {
        if (!s->naive)
            return plan_fail(r, row->task, "a task has no naive kernel of surface %s", s->name);
        err = plan_load_kernel(&w.start, r, row->task,
                               kli_fs_join(r->a, task->dir.ptr, s->naive).ptr, s);
    } else {
        err = named_kernel(&w.start, r, row->kernel);
    }
    if (!err && row->target_kernel) err = named_kernel(&w.target_kernel, r, row->target_kernel);
    if (!err && w.target_kernel && w.target_kernel->surface->on != w.start->surface->on)
        err = plan_fail(r, row->target_kernel,
                        "the reference runs on another kind of device than the start");
    if (!err) err = find_shape(&w.workload, r, row, task, w.start->surface->on);
    if (!err && !w.name.len && !plan_is_name(task->name))
        err =
            plan_fail(r, row->task,
                      "give this row a name: the name of the task cannot be part of a track name");
    if (!err && !w.name.len) w.name = task->name;
    if (!err && s && r->n_surfaces > 1)
        w.name = kl_arena_printf(r->a, "%s-%s", w.name.ptr, s->name);
    if (!err) err = plan_check_new(r, row, w.name);
    KL_ASSERT(err || (w.task && w.start && w.workload && w.name.len));
    if (!err) r->x->workloads[r->x->n_workloads++] = w;
    return err;
}

static kl_err read_workload(plan_reader *r, struct fy_node *n) {
    workload_row row = {.row = n, .task = n};
    kl_task *task = NULL;
    kl_err err = KL_OK;
    if (fy_node_is_mapping(n)) {
        row.task = NULL;
        err = read_mapping(r, &row, n, workload_fields, NULL);
    }
    if (!err && !row.task) err = plan_fail(r, n, "missing key task: NAME");
    if (!err && row.recover && !row.target_kernel)
        err = plan_fail(r, row.recover, "recover needs reference: KERNEL");
    if (!err) err = plan_load_task(&task, r, row.task);
    if (!err && row.kernel) return add_workload(r, &row, task, NULL);
    for (int i = 0; !err && i < r->n_surfaces; i++)
        err = add_workload(r, &row, task, r->surfaces[i]);
    return err;
}

static kl_err plan_read_workloads(plan_reader *r, struct fy_node *list) {
    r->key = r->workloads_key;
    kl_err err = list_of(r, list, PLAN_MAX_ROWS);
    if (err) return err;
    r->x->workloads =
        KL_ARRAY(r->a, kl_experiment_workload, fy_node_sequence_item_count(list) * r->n_surfaces);
    for (int i = 0; !err && i < fy_node_sequence_item_count(list); i++)
        err = read_workload(r, fy_node_sequence_get_by_index(list, i));
    return err;
}

/* ---- the whole file ---------------------------------------------------------------------- */

static kl_err read_schema(plan_reader *r, void *into, struct fy_node *n) {
    kl_str text;
    (void)into;
    kl_err err = plan_text_of(&text, r, n);
    if (!err && !kl_str_eq(text, KL_S("klineage/experiment")))
        err = plan_fail(r, n, "not a klineage/experiment");
    r->has_schema = true;
    return err;
}
static kl_err read_version(plan_reader *r, void *into, struct fy_node *n) {
    double version = 0;
    (void)into;
    kl_err err = real_of(&version, r, n);
    if (!err && version != 1)
        err = plan_fail(r, n, "unsupported version; this klineage reads version 1");
    if (!err) r->version = 1;
    return err;
}
static kl_err read_title(plan_reader *r, void *into, struct fy_node *n) {
    kl_str *title = &((kl_experiment *)into)->title;
    kl_err err = plan_text_of(title, r, n);
    return !err && title->len > MAX_TITLE
               ? plan_fail(r, n, "a title has at most %d bytes", MAX_TITLE)
               : err;
}
static kl_err read_model(plan_reader *r, void *into, struct fy_node *n) {
    return plan_text_of(&((kl_experiment *)into)->model, r, n);
}
static kl_err read_priced(plan_reader *r, void *into, struct fy_node *n) {
    return plan_text_of(&((kl_experiment *)into)->priced_as, r, n);
}
static kl_err read_library(plan_reader *r, void *into, struct fy_node *n) {
    kl_str *dir = &((kl_experiment *)into)->library;
    kl_err err = path_of(dir, r, n);
    return !err && !kli_fs_is_dir(dir->ptr) ? plan_fail(r, n, "no such folder: %.300s", dir->ptr)
                                            : err;
}
static kl_err read_budget(plan_reader *r, void *into, struct fy_node *n) {
    kl_experiment *x = into;
    kl_error where = {0};
    kl_fail_at(&where, KL_EINVAL, r->file, r->text, plan_offset_of(r, n), "budget");
    x->budget_where = kl_arena_copy(r->a, kl_str_of(where.where));
    return dollars_of(&x->budget_microusd, r, n);
}
static kl_err read_total(plan_reader *r, void *into, struct fy_node *n) {
    int64_t *total = &((kl_experiment *)into)->total_microusd;
    kl_err err = dollars_of(total, r, n);
    return !err && *total <= 0
               ? plan_fail(r, n,
                           "budget-total must be above 0; without it each track has its own budget")
               : err;
}
static kl_err read_trials(plan_reader *r, void *into, struct fy_node *n) {
    return (void)into, count_of(&r->trials, r, n, KL_MAX_TRACKS);
}
static kl_err read_steps(plan_reader *r, void *into, struct fy_node *n) {
    return (void)into, count_of(&r->max_steps, r, n, KL_MAX_PROPOSALS);
}
static kl_err read_patience(plan_reader *r, void *into, struct fy_node *n) {
    return (void)into, count_of(&r->patience, r, n, KL_MAX_PROPOSALS);
}
static kl_err read_quick(plan_reader *r, void *into, struct fy_node *n) {
    kl_str text;
    kl_err err = plan_text_of(&text, r, n);
    if (err) return err;
    ((kl_experiment *)into)->quick = kl_str_eq(text, KL_S("true"));
    return kl_str_eq(text, KL_S("true")) || kl_str_eq(text, KL_S("false"))
               ? KL_OK
               : plan_fail(r, n, "expected true or false");
}
static kl_err keep_surfaces(plan_reader *r, void *into, struct fy_node *n) {
    return (void)into, r->surface_list = n, r->surfaces_key = r->key, KL_OK;
}
static kl_err keep_policies(plan_reader *r, void *into, struct fy_node *n) {
    return (void)into, r->policy_list = n, r->policies_key = r->key, KL_OK;
}
static kl_err keep_workloads(plan_reader *r, void *into, struct fy_node *n) {
    return (void)into, r->workload_list = n, r->workloads_key = r->key, KL_OK;
}

static const plan_field file_fields[] = {{"schema", read_schema},       {"version", read_version},
                                         {"title", read_title},         {"model", read_model},
                                         {"priced-as", read_priced},    {"budget", read_budget},
                                         {"budget-total", read_total},  {"trials", read_trials},
                                         {"max-steps", read_steps},     {"patience", read_patience},
                                         {"quick", read_quick},         {"library", read_library},
                                         {"surfaces", keep_surfaces},   {"policies", keep_policies},
                                         {"workloads", keep_workloads}, {0}};

static kl_err plan_read_file(plan_reader *r, struct fy_node *root) {
    kl_err err = read_mapping(r, r->x, root, file_fields, NULL);
    r->key = NULL;
    if (!err && (!r->has_schema || r->version != 1))
        err = plan_fail(
            r, root,
            "missing header: the file must begin with schema: klineage/experiment and version: 1");
    if (!err && !r->policies_key)
        err = plan_fail(r, root, "no policies: [klineage, generate, bestofn]");
    if (!err && !r->workloads_key)
        err = plan_fail(
            r, root, "no workloads: [softmax, gemm]; klineage task list shows the available tasks");
    if (!err) err = read_surfaces(r, r->surface_list);
    if (!err) err = plan_read_policies(r, r->policy_list);
    return err ? err : plan_read_workloads(r, r->workload_list);
}

/* What libfyaml found wrong first. */
static kl_err broken(const plan_reader *r, struct fy_diag *diag) {
    void *at = NULL;
    const struct fy_diag_error *first = fy_diag_errors_iterate(diag, &at);
    if (!first) {
        kl_fail(r->e, KL_EPARSE, r->file.ptr, "expected a YAML mapping");
        return kl_hint(r->e, HELP);
    }
    char where[256];
    snprintf(where, sizeof where, "%.200s:%d:%d", r->file.ptr, first->line > 0 ? first->line : 1,
             first->column > 0 ? first->column : 1);
    kl_fail(r->e, KL_EPARSE, where, "%s", first->msg);
    return kl_hint(r->e, HELP);
}

static void say_nothing(struct fy_diag *diag, void *user, const char *text, size_t len) {
    (void)diag, (void)user, (void)text, (void)len;
}

static kl_err read_document(plan_reader *r) {
    /* FYPCF_QUIET does not keep what it finds wrong from stderr, and that quotes the file. */
    struct fy_diag_cfg nowhere;
    fy_diag_cfg_default(&nowhere);
    nowhere.fp = NULL;
    nowhere.output_fn = say_nothing;
    struct fy_diag *silent = fy_diag_create(&nowhere);
    if (!silent) kl_oom(sizeof(struct fy_diag *));
    fy_diag_set_collect_errors(silent, true);
    const struct fy_parse_cfg quiet = {.flags = FYPCF_QUIET, .diag = silent};
    struct fy_document *d = fy_document_build_from_string(&quiet, r->text.ptr, r->text.len);
    kl_err err = d ? KL_OK : broken(r, silent);
    if (!err && !fy_node_is_mapping(fy_document_root(d)))
        err =
            plan_fail(r, fy_document_root(d), "an experiment is a YAML mapping: KEY: VALUE lines");
    if (!err) err = plan_read_file(r, fy_document_root(d));
    fy_document_destroy(d);
    fy_diag_destroy(silent);
    return err;
}

kl_err kl_experiment_load(kl_experiment **out, kl_arena *a, const char *path, kl_error *e) {
    kl_experiment *x = *out = KL_NEW(a, kl_experiment);
    plan_reader r = {.a = a, .file = kl_str_of(path), .x = x, .trials = 1, .e = e};
    kl_err err = kli_fs_read(&r.text, a, path, KL_MAX_EXPERIMENT_BYTES, r.e);
    if (err == KL_ENOENT) kl_hint(r.e, "examples/experiment.yaml is an example");
    if (err) return err;
    if (memchr(r.text.ptr, '\0', r.text.len))
        return kl_fail(r.e, KL_EPARSE, path, "this is not YAML: it holds NUL bytes");
    r.dir = kli_fs_dirname(a, path).ptr;
    return read_document(&r);
}

/* tenants.c - who asks, which tasks exist for them, and how much they may ask.
 *
 * The file holds hashes of tokens, so reading it gives nobody a token, and what is compared is the
 * hash of what was sent, whole and always: the time says nothing about a token.
 * Not here: the separation of what is kept, which is in the keys (question.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "reward/reward_impl.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#define PER_MINUTE 6000 /* kernels, of a tenant of whom nothing is said */
#define IN_FLIGHT 256
#define A_MINUTE 60e9

/* ---- tasks ------------------------------------------------------------------------------ */

static kli_reward_task *task_at(kl_arena *a, kl_str path) {
    kli_reward_task *t = KL_NEW(a, kli_reward_task);
    t->path = kl_arena_copy(a, path);
    t->name = kl_arena_copy(a, kli_fs_basename(path.ptr));
    return t;
}

static kli_reward_task *tenant_task_named(const kli_tenant *t, kl_str name) {
    for (size_t i = 0; i < t->n_tasks; i++)
        if (kl_str_eq(t->tasks[i]->name, name)) return t->tasks[i];
    return NULL;
}

kl_err kli_tenant_task(const kl_task **out, kl_str *path, kli_tenant *t, kl_str name, kl_error *e) {
    kli_reward_task *known = tenant_task_named(t, name);
    if (!known)
        return kl_fail(e, KL_ENOENT, NULL, "no task '%.*s'", (int)(name.len < 80 ? name.len : 80),
                       name.ptr);
    if (!known->task) {
        kl_arena *a = kl_arena_new();
        const kl_err err = kl_task_load(&known->task, a, known->path.ptr, e);
        if (err) return known->task = NULL, kl_arena_free(a), err;
        known->arena = a;
    }
    *out = known->task;
    *path = known->path;
    return KL_OK;
}

/* ---- the file --------------------------------------------------------------------------- */

static bool is_name(kl_str s) {
    for (size_t i = 0; i < s.len; i++)
        if (!islower((unsigned char)s.ptr[i]) && !isdigit((unsigned char)s.ptr[i]) &&
            !(i && strchr("-_.", s.ptr[i])))
            return false;
    return s.len > 0 && s.len <= KL_MAX_NAME;
}

static bool is_digest(kl_str s) { return s.len == 64 && strspn(s.ptr, "0123456789abcdef") == 64; }

/* Tasks of a tenant's own folders. */
static kl_err own_tasks(kli_tenant *t, kl_arena *a, const json_t *folders, kl_error *e) {
    size_t i;
    json_t *folder;
    kl_err err = KL_OK;
    json_array_foreach(folders, i, folder) {
        const char *dir = json_string_value(folder);
        kl_str *names;
        size_t n = 0;
        if (!dir || !kli_fs_is_dir(dir))
            return kl_fail(e, KL_ENOENT, dir ? dir : "folders", "no such folder, of tenant %.*s",
                           KL_STR_ARG(t->name));
        if ((err = kli_fs_list(&names, &n, a, dir, e))) return err;
        for (size_t k = 0; k < n; k++) {
            const kl_str path = kli_fs_join(a, dir, names[k].ptr);
            if (kli_fs_exists(kli_fs_join(a, path.ptr, "definition.json").ptr) &&
                !tenant_task_named(t, names[k]))
                *KL_PUSH(a, t->tasks, t->n_tasks) = task_at(a, path);
        }
    }
    return err;
}

static bool is_listed(const json_t *list, kl_str name) {
    size_t i;
    json_t *one;
    if (!list) return true;
    json_array_foreach(list, i, one) {
        if (kl_str_eq(kl_str_of(json_string_value(one)), name)) return true;
    }
    return false;
}

/* Those of the server that a tenant may ask about. */
static void common_tasks(kli_tenant *t, kl_arena *a, kli_reward_task *const *common, size_t n,
                         const json_t *list) {
    for (size_t i = 0; i < n; i++)
        if (!tenant_task_named(t, common[i]->name) && is_listed(list, common[i]->name))
            *KL_PUSH(a, t->tasks, t->n_tasks) = common[i];
}

static kl_err known_keys(const json_t *o, const char *file, kl_error *e) {
    static const char *const KEYS[] = {"name",       "sha256",    "tasks",   "folders",
                                       "per_minute", "in_flight", "operator"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)o, key, value) {
        size_t i = 0;
        while (i < KL_COUNT(KEYS) && strcmp(KEYS[i], key) != 0) i++;
        if (i == KL_COUNT(KEYS)) return kl_fail(e, KL_EPARSE, file, "a tenant has no '%.80s'", key);
    }
    return KL_OK;
}

static kl_err read_tenant(kli_tenant *t, kl_arena *a, const json_t *o, const char *file,
                          kl_error *e) {
    const kl_str sha256 = kli_json_text_or(o, "sha256", (kl_str){0});
    kl_err err = known_keys(o, file, e);
    if (err) return err;
    t->name = kl_arena_copy(a, kli_json_text_or(o, "name", (kl_str){0}));
    if (!is_name(t->name))
        return kl_fail(e, KL_EINVAL, file, "a tenant's name is of a-z 0-9 - _ . and not '%.*s'",
                       KL_STR_ARG(t->name));
    if (!is_digest(sha256)) {
        kl_fail(e, KL_EINVAL, file, "tenant %.*s: sha256 is the hash of a token, 64 digits",
                KL_STR_ARG(t->name));
        return kl_hint(e, "printf %%s TOKEN | sha256sum");
    }
    memcpy(t->sha256, sha256.ptr, 64);
    t->operates = kli_json_bool_or(o, "operator", false);
    t->per_minute = kli_json_int_or(o, "per_minute", PER_MINUTE);
    t->in_flight = kli_json_int_or(o, "in_flight", IN_FLIGHT);
    if (t->per_minute < 1 || t->in_flight < 1)
        return kl_fail(e, KL_EINVAL, file, "tenant %.*s: a limit is at least 1",
                       KL_STR_ARG(t->name));
    return KL_OK;
}

static const kli_tenant *same_as(const kli_tenants *t, const kli_tenant *one) {
    for (size_t i = 0; i < t->n; i++)
        if (&t->tenants[i] != one && strcmp(t->tenants[i].sha256, one->sha256) == 0)
            return &t->tenants[i];
    return NULL;
}

static kl_err read_tenants(kli_tenants *t, const json_t *o, const char *file,
                           kli_reward_task *const *common, size_t n, kl_error *e) {
    const json_t *list = json_object_get(o, "tenants");
    kl_err err = KL_OK;
    if (!json_array_size(list) || json_array_size(list) > KLI_REWARD_TENANTS)
        return kl_fail(e, KL_EPARSE, file, "\"tenants\" is a list of 1 to %d", KLI_REWARD_TENANTS);
    t->tenants = KL_ARRAY(t->arena, kli_tenant, json_array_size(list));
    for (size_t i = 0; !err && i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        kli_tenant *tenant = &t->tenants[t->n++];
        err = read_tenant(tenant, t->arena, one, file, e);
        if (!err && same_as(t, tenant))
            err = kl_fail(e, KL_EINVAL, file, "two tenants have the same token");
        if (!err) err = own_tasks(tenant, t->arena, json_object_get(one, "folders"), e);
        if (!err) common_tasks(tenant, t->arena, common, n, json_object_get(one, "tasks"));
    }
    return err;
}

static kl_err check_mode(const char *file, kl_error *e) {
    struct stat st;
    if (stat(file, &st) == 0 && (st.st_mode & S_IWOTH)) {
        kl_fail(e, KL_EINVAL, file, "anybody may write to it");
        return kl_hint(e, "chmod o-w %s", file);
    }
    return KL_OK;
}

static kl_err read_file(kli_tenants *t, const kli_reward_opts *o, kli_reward_task *const *common,
                        kl_error *e) {
    kl_str text;
    json_t *document = NULL;
    kl_err err = check_mode(o->tenants, e);
    if (!err) err = kli_fs_read(&text, t->arena, o->tenants, KLI_REWARD_TENANTS_BYTES, e);
    if (!err) err = kli_json_parse(&document, text, kl_str_of(o->tenants), e);
    if (!err) err = read_tenants(t, document, o->tenants, common, o->n_tasks, e);
    json_decref(document);
    return err;
}

static void only_tenant(kli_tenants *t, const kli_reward_opts *o, kli_reward_task **common) {
    t->tenants = KL_NEW(t->arena, kli_tenant);
    t->tenants[t->n++] = (kli_tenant){.operates = true,
                                      .tasks = common,
                                      .n_tasks = o->n_tasks,
                                      .per_minute = INT64_MAX / 2,
                                      .in_flight = KLI_REWARD_QUEUE};
}

kl_err kli_tenants_open(kli_tenants *out, const kli_reward_opts *o, kl_error *e) {
    kl_err err = KL_OK;
    kl_arena *a = kl_arena_new();
    *out = (kli_tenants){.arena = a, .open = !o->tenants};
    kli_reward_task **common = KL_ARRAY(a, kli_reward_task *, o->n_tasks + 1);
    for (size_t i = 0; i < o->n_tasks; i++) common[i] = task_at(a, o->tasks[i]);
    if (out->open)
        only_tenant(out, o, common);
    else
        err = read_file(out, o, common, e);
    for (size_t i = 0; i < out->n; i++) out->tenants[i].require_assurance = o->require_assurance;
    return err;
}

void kli_tenants_close(kli_tenants *t) {
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < t->tenants[i].n_tasks; k++) {
            kli_reward_task *task = t->tenants[i].tasks[k];
            kl_arena_free(task->arena);
            task->arena = NULL;
        }
    kl_arena_free(t->arena);
    *t = (kli_tenants){0};
}

/* ---- tokens ----------------------------------------------------------------------------- */

static bool same_digits(const char a[64], const char b[64]) {
    unsigned differs = 0;
    for (size_t i = 0; i < 64; i++) differs |= (unsigned)(a[i] ^ b[i]);
    return differs == 0;
}

kli_tenant *kli_tenants_of(kli_tenants *t, const char *header) {
    static const char SCHEME[] = "Bearer ";
    const bool bears = header && strncmp(header, SCHEME, sizeof SCHEME - 1) == 0;
    const kl_str token = kl_str_of(bears ? header + sizeof SCHEME - 1 : "");
    kli_tenant *found = NULL;
    if (t->open) return &t->tenants[0];
    if (!token.len || token.len > KLI_REWARD_TOKEN) return NULL;
    const kl_hash sent = kli_hash_of(token);
    for (size_t i = 0; i < t->n; i++)
        if (same_digits(sent.hex, t->tenants[i].sha256)) found = &t->tenants[i];
    return found;
}

/* ---- quotas ----------------------------------------------------------------------------- */

/* A bucket that holds a minute's kernels and fills evenly. */
static void fill_allowance(kli_tenant *t, int64_t now_ns) {
    const double more = (double)(now_ns - t->counted_ns) / A_MINUTE * (double)t->per_minute;
    t->allowance =
        t->counted_ns ? fmin((double)t->per_minute, t->allowance + more) : (double)t->per_minute;
    t->counted_ns = now_ns;
}

int kli_tenant_refuses(kli_tenant *t, int64_t n, int64_t open, int64_t now_ns) {
    fill_allowance(t, now_ns);
    if ((double)n > t->allowance && n <= t->per_minute)
        return 1 + (int)(((double)n - t->allowance) / (double)t->per_minute * 60);
    if (n > t->per_minute) return 60;
    return t->live + open > t->in_flight ? 1 : 0;
}

/* compile.c - from source to an artefact in the cache, through a confined compiler.
 *
 *   key = sha256(format, backend, compiler, what confines it here, device, source, flags, defines)
 *   CACHE/key.json    everything but the bytes: outcome, log, features, what inspection found
 *   CACHE/key.bin     the artefact; its own sha256 is in the JSON and is checked whenever it is
 * loaded
 *
 * A refusal is cached as well: the same source is refused by the same compiler again.  An artefact
 * is renamed into place before its JSON, so that a JSON without its artefact cannot be seen.
 * Compiler and disassembler see candidates' bytes and run confined alike; this process reads only
 * their bounded output.  How they were confined is part of the key: a log made where a source could
 * read this host is not an answer where it cannot.
 *
 * A carried cache (a spool's) was written by another host and is not signed.  Who can write it is
 * believed about the log, the features and the code of the task's own kernels, as he is about the
 * task itself; a candidate's native code is inspected again here. Not here: the command lines
 * (compile.c of a surface).  SPDX-License-Identifier: Apache-2.0 */
#include "compile.h"
#include "isolation.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CACHE_FORMAT "klineage compile 5" /* goes up with every change of what inspection says */
#define COMPILE_MAX_ARTEFACT_BYTES ((size_t)1 << 30)

/* ---- running one program ----------------------------------------------------------------- */

kl_str kli_worker_path(kl_arena *a) { return kli_fs_find_part(a, "klineage-worker"); }

void kli_compile_environment(const char **env, kl_arena *a, const char *dir) {
    static const char *const KEPT[] = {"OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "LD_LIBRARY_PATH"};
    const char *path = getenv("PATH");
    int n = 0;
    env[n++] = kl_arena_printf(a, "PATH=%s", path ? path : "/usr/bin:/bin").ptr;
    env[n++] = kl_arena_printf(a, "TMPDIR=%s", dir).ptr;
    env[n++] = kl_arena_printf(a, "HOME=%s", dir).ptr;
    env[n++] = "LC_ALL=C";
    for (size_t i = 0; i < KL_COUNT(KEPT); i++)
        if (getenv(KEPT[i])) env[n++] = kl_arena_printf(a, "%s=%s", KEPT[i], getenv(KEPT[i])).ptr;
    KL_ASSERT(n < KLI_COMPILE_ENVIRONMENT);
    env[n] = NULL;
}

/* A compiler that used up its processor time got SIGXCPU and says so.  One that was stopped by the
 * clock on the wall hardly ran, and one that somebody killed was in the way of others: both are
 * this machine's doing, and never a word about the source. */
kl_err kli_compile_blame(const kli_proc_result *r, const char *program, kl_error *e) {
    const bool killed = r->signal == SIGKILL ||
                        memmem(r->err.ptr, r->err.len, "Killed signal terminated", 24) != NULL;
    if (r->timed_out)
        kl_fail(e, KL_EBUSY, program,
                "not finished after %d s, with less than %d s of processor time: the machine is "
                "overloaded",
                KL_COMPILE_WALL_SECONDS, KL_COMPILE_SECONDS);
    else if (killed)
        kl_fail(e, KL_EBUSY, program, "killed by the operating system: out of memory");
    else
        return KL_OK;
    return kl_hint(e, "re-run the same command when the machine is less loaded; uptime shows the "
                      "load, free -h the memory");
}

static kl_err run_with(kli_proc_result *out, kl_arena *a, const char *const *argv, kl_str input,
                       const char *dir, kli_jail *jail, size_t max_output, kl_error *e) {
    const char *env[KLI_COMPILE_ENVIRONMENT];
    const kli_proc_spec spec = {.argv = argv,
                                .input = input,
                                .envp = env,
                                .cwd = dir,
                                .timeout_ns = KL_COMPILE_WALL_SECONDS * 1000000000ll,
                                .max_output = max_output,
                                .confine = jail ? kli_jail_enter : NULL,
                                .confine_ctx = jail};
    kli_compile_environment(env, a, dir);
    kl_err code = kli_proc_run(out, a, &spec, e);
    if (!code) code = kli_compile_blame(out, argv[0], e);
    return code == KL_ENOENT ? kl_fail(e, KL_ENODEV, argv[0], "the compiler is not installed")
                             : code;
}

kl_err kli_compile_run(kli_proc_result *out, kl_arena *a, const char *const *argv, const char *dir,
                       const char *const *readable, size_t max_output, kl_error *e) {
    kli_jail jail;
    kli_jail_open(&jail, dir, readable);
    kl_err code = run_with(out, a, argv, (kl_str){0}, dir, &jail, max_output, e);
    kli_jail_close(&jail);
    return code;
}

kl_err kli_compile_run_on(kli_proc_result *out, kl_arena *a, const char *const *argv, kl_str input,
                          const char *dir, const char *const *readable, size_t max_output,
                          kl_error *e) {
    kli_jail jail;
    kli_jail_open(&jail, NULL, readable);
    kl_err code = run_with(out, a, argv, input, dir, &jail, max_output, e);
    kli_jail_close(&jail);
    return code;
}

kl_err kli_compile_run_worker(kli_proc_result *out, kl_arena *a, const char *const *argv,
                              const char *dir, kl_error *e) {
    return run_with(out, a, argv, (kl_str){0}, dir, NULL, 0, e);
}

void kli_command_add(kli_command *c, const char *word) {
    KL_ASSERT(c->n >= 0 && c->n < (int)KL_COUNT(c->words) && !c->words[c->n]);
    if (c->n < (int)KL_COUNT(c->words) - 1) c->words[c->n++] = word;
}

void kli_command_add_all(kli_command *c, const char *const *words) {
    for (; words && *words; words++) kli_command_add(c, *words);
}

/* ---- logs and features ------------------------------------------------------------------- */

static void add_without(kl_buf *to, kl_str text, kl_str needle) {
    while (text.len && to->len < KLI_LOG_BYTES) {
        const char *hit = needle.len ? memmem(text.ptr, text.len, needle.ptr, needle.len) : NULL;
        size_t n = hit ? (size_t)(hit - text.ptr) : text.len;
        kl_buf_add(to, (kl_str){text.ptr, n});
        if (!hit) return;
        text.ptr += n + needle.len;
        text.len -= n + needle.len;
    }
}

kl_str kli_compile_log(kl_arena *a, const kli_proc_result *r, const char *dir) {
    kl_buf log = {0};
    kl_str folder = kl_arena_printf(a, "%s/", dir);
    if (r->signal)
        kl_buf_printf(&log, "the compiler was ended by SIG%s (memory or time limit?)\n",
                      sigabbrev_np(r->signal));
    add_without(&log, r->err, folder);
    add_without(&log, r->out, folder);
    kl_str text = kl_buf_str(&log);
    if (text.len > KLI_LOG_BYTES) text.len = KLI_LOG_BYTES;
    text = kl_arena_copy(a, text);
    kl_buf_fini(&log);
    return text;
}

void kli_compile_took(kl_artefact *out, kl_arena *a, const kli_proc_result *r, const char *dir,
                      const char *makes) {
    out->path = kli_fs_join(a, dir, makes);
    out->ok = r->exit_code == 0 && !r->timed_out && kli_fs_exists(out->path.ptr);
    out->log = kli_compile_log(a, r, dir);
    if (!out->ok && !out->log.len)
        out->log =
            kl_arena_printf(a, "the compiler failed with status %d and no message\n", r->exit_code);
}

static int feature_index(const kl_artefact *out, const char *name) {
    int i = 0;
    while (i < out->n_features && !kl_str_eq(out->features[i].name, kl_str_of(name))) i++;
    return i;
}

void kli_feature_set(kl_artefact *out, kl_arena *a, const char *name, double value) {
    const int i = feature_index(out, name);
    KL_ASSERT(i <= out->n_features && out->n_features <= (int)KL_COUNT(out->features));
    if (i == (int)KL_COUNT(out->features)) return;
    if (i == out->n_features)
        out->features[out->n_features++].name = kl_arena_copy(a, kl_str_of(name));
    out->features[i].value = value;
}

double kli_feature_get(const kl_artefact *out, const char *name) {
    const int i = feature_index(out, name);
    return i < out->n_features ? out->features[i].value : 0;
}

bool kli_code_line(kl_str *line, kl_str *rest) {
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    const size_t n = end ? (size_t)(end - rest->ptr) : rest->len, taken = n + (end != NULL);
    KL_ASSERT(taken <= rest->len);
    *line = (kl_str){rest->ptr, n};
    *rest = (kl_str){rest->ptr + taken, rest->len - taken};
    return taken > 0;
}

/* ---- cache ------------------------------------------------------------------------------- */

typedef struct {
    kl_str dir, json, bin;
} cache_entry;

static kl_err open_cache(cache_entry *c, kl_arena *a, const kl_compile_opts *o, const char *key,
                         kl_error *e) {
    c->dir = o && o->cache_dir ? kl_arena_copy(a, kl_str_of(o->cache_dir))
                               : kli_fs_join(a, kl_fs_cache_dir(a).ptr, "compile");
    c->json = kl_arena_printf(a, "%s/%s.json", c->dir.ptr, key);
    c->bin = kl_arena_printf(a, "%s/%s.bin", c->dir.ptr, key);
    kl_err code = kli_fs_mkdirs(c->dir.ptr, e);
    if (code) kl_hint(e, "set a writable folder: KLINEAGE_CACHE=/path/to/folder");
    return code;
}

static void read_features(kl_artefact *out, kl_arena *a, const json_t *features) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)features, name, value)
        kli_feature_set(out, a, name, json_number_value(value));
}

static kl_str copied(kl_arena *a, const json_t *o, const char *key) {
    return kl_arena_copy(a, kli_json_text_or(o, key, KL_S("")));
}

/* Anything wrong with an entry is a miss: it is compiled again and replaced. */
static bool cache_read(kl_artefact *out, kl_arena *a, const cache_entry *c) {
    kl_str text, bytes;
    json_t *o = NULL;
    if (kli_fs_read(&text, a, c->json.ptr, 1 << 20, kl_ignored()) ||
        kli_json_parse(&o, text, c->json, kl_ignored()))
        return false;
    *out = (kl_artefact){.cached = true, .path = c->bin};
    out->ok = kli_json_bool_or(o, "ok", false);
    out->kind = (kl_artefact_kind)kli_json_int_or(o, "kind", KL_ARTEFACT_NONE);
    out->log = copied(a, o, "log");
    out->toolchain = copied(a, o, "toolchain");
    out->suspicious = copied(a, o, "suspicious");
    out->refused = copied(a, o, "refused");
    out->completion = copied(a, o, "completion");
    out->remarks = copied(a, o, "remarks");
    out->hot_loop = copied(a, o, "hot_loop");
    out->wall_ns = kli_json_int_or(o, "wall_ns", 0);
    snprintf(out->hash, sizeof out->hash, "%s", copied(a, o, "hash").ptr);
    read_features(out, a, json_object_get(o, "features"));
    json_decref(o);
    if (!out->ok) return out->log.len > 0;
    return kli_fs_read(&bytes, a, c->bin.ptr, COMPILE_MAX_ARTEFACT_BYTES, kl_ignored()) == KL_OK &&
           strcmp(kli_hash_of(bytes).hex, out->hash) == 0;
}

static json_t *to_json(const kl_artefact *r) {
    json_t *o = json_pack("{s:b, s:i, s:o, s:s, s:I, s:o, s:o}", "ok", r->ok, "kind", (int)r->kind,
                          "toolchain", kli_json_str(r->toolchain), "hash", r->hash, "wall_ns",
                          (json_int_t)r->wall_ns, "suspicious", kli_json_str(r->suspicious),
                          "refused", kli_json_str(r->refused));
    json_t *features = json_object();
    KL_ASSERT(o && r->n_features <= (int)KL_COUNT(r->features));
    for (int i = 0; i < r->n_features; i++)
        json_object_set_new(features, r->features[i].name.ptr, kli_json_real(r->features[i].value));
    if (r->completion.len) json_object_set_new(o, "completion", kli_json_str(r->completion));
    json_object_set_new(o, "remarks", kli_json_str(r->remarks));
    json_object_set_new(o, "hot_loop", kli_json_str(r->hot_loop));
    json_object_set_new(o, "features", features);
    json_object_set_new(o, "log", kli_json_str(r->log));
    return o;
}

static kl_err write_facts(const kl_artefact *out, kl_arena *a, kl_str path, kl_error *e) {
    json_t *o = to_json(out);
    const kl_err err = kli_fs_write(path.ptr, kli_json_dump(a, o, true), e);
    json_decref(o);
    return err;
}

/* Takes the artefact out of the compiler's folder: read once, hashed, written by us. */
static kl_err cache_write(kl_artefact *out, kl_arena *a, const cache_entry *c, kl_error *e) {
    kl_str bytes;
    kl_err code = KL_OK;
    if (out->ok) {
        code = kli_fs_read(&bytes, a, out->path.ptr, COMPILE_MAX_ARTEFACT_BYTES, e);
        if (code) return code;
        snprintf(out->hash, sizeof out->hash, "%s", kli_hash_of(bytes).hex);
        code = kli_fs_write(c->bin.ptr, bytes, e);
        out->path = c->bin;
    }
    return code ? code : write_facts(out, a, c->json, e);
}

/* ---- compile ----------------------------------------------------------------------------- */

static kl_isolation confinement;
static pthread_once_t confinement_once = PTHREAD_ONCE_INIT;

static void probe_isolation(void) { kli_isolation_probe(&confinement); }

/* What can be had does not change while a process lives. */
static const kl_isolation *isolation_here(void) {
    (void)pthread_once(&confinement_once, probe_isolation);
    return &confinement;
}

static kl_err require_isolation(const kl_compile_opts *o, kl_error *e) {
    if (!o || (o->require_assurance != 'A' && o->require_assurance != 'B')) return KL_OK;
    const kl_isolation *i = isolation_here();
    if (i->seccomp && (i->landlock || i->namespaces)) return KL_OK;
    char text[64];
    kl_fail(e, KL_EISOLATION, "compile", "a compiler cannot be confined here (%s)",
            kli_isolation_text(i, text, sizeof text));
    return kl_hint(e, "assurance B needs a Linux kernel with seccomp and Landlock; without them "
                      "only assurance C is possible");
}

static void hash_words(kl_hasher *h, const char *const *words) {
    for (; words && *words; words++) kli_hasher_add(h, kl_str_of(*words));
    kli_hasher_add(h, KL_S("end"));
}

/* A carried artefact was compiled on another host for this device: only the architecture has to
 * agree. */
kl_hash kli_compile_key(const kl_compile_job *job, const kl_isolation *confined, bool carried) {
    const kl_device *d = job->device;
    const kl_kernel *k = job->kernel;
    kl_hasher h;
    char isolation[64];
    const char *cc = getenv("KLINEAGE_CC");
    kli_hasher_init(&h);
    kli_hasher_add(&h, KL_S(CACHE_FORMAT));
    kli_hasher_add(&h, kl_str_of(k->surface->name));
    kli_hasher_add(&h, d->arch);
    kli_hasher_add(&h, carried ? KL_S("carried") : d->toolchain);
    if (!carried && k->surface->toolchain) kli_hasher_add(&h, k->surface->toolchain(job->arena));
    kli_hasher_add(&h, carried ? KL_S("") : d->name);
    kli_hasher_add(&h, kl_str_of(carried ? "" : cc));
    kli_hasher_add(
        &h, kl_str_of(carried ? "" : kli_isolation_text(confined, isolation, sizeof isolation)));
    kli_hasher_add(&h, k->source);
    kli_hasher_add(&h, k->threads.text);
    kli_hasher_add(&h, k->trusted ? KL_S("trusted") : KL_S("candidate"));
    for (int i = 0; i < k->n_flags; i++) kli_hasher_add(&h, k->flags[i]);
    hash_words(&h, job->defines);
    if (job->classes.len) kli_hasher_add(&h, job->classes);
    return kli_hasher_end(&h);
}

static kl_err compile_afresh(kl_artefact *out, kl_compile_job *job, const cache_entry *c,
                             kl_error *e) {
    const kl_surface *s = job->kernel->surface;
    kl_str dir;
    const int64_t start = kli_now_ns();
    if (!s->compile) return kl_fail(e, KL_ENODEV, s->name, "this build has no compiler for it");
    kl_err code = kli_fs_temp_dir(&dir, job->arena, e);
    if (code) return code;
    job->dir = dir.ptr;
    *out = (kl_artefact){.toolchain = job->device->toolchain};
    code = s->compile(out, job, e);
    if (!code && out->ok) code = s->inspect(out, job->arena, job->kernel, e);
    out->wall_ns = kli_now_ns() - start;
    if (!code) code = cache_write(out, job->arena, c, e);
    kli_fs_remove_tree(dir.ptr);
    return code;
}

/* The disassembler's folder is given away to its user, so it gets a copy. */
static kl_err look_at_copy(kl_artefact *out, kl_arena *a, const kl_kernel *k,
                           kl_err (*look)(kl_artefact *, kl_arena *, const kl_kernel *, kl_error *),
                           kl_error *e) {
    const kl_str path = out->path;
    const char *name = out->kind == KL_ARTEFACT_CUBIN ? "kernel.cubin" : "kernel.so";
    kl_str dir, bytes;
    kl_err code = kli_fs_temp_dir(&dir, a, e);
    if (code) return code;
    out->path = kli_fs_join(a, dir.ptr, name);
    code = kli_fs_read(&bytes, a, path.ptr, COMPILE_MAX_ARTEFACT_BYTES, e);
    if (!code) code = kli_fs_write(out->path.ptr, bytes, e);
    if (!code) code = look(out, a, k, e);
    kli_fs_remove_tree(dir.ptr);
    out->path = path;
    return code;
}

/* Native code that another host brought: what that host's inspection said is not believed.  Code of
 * a device's own is confined by the device. False when it cannot be read. */
static bool inspect_again(kl_artefact *out, kl_arena *a, const kl_backend *b, const kl_kernel *k) {
    kl_artefact again = *out;
    if (!out->ok || k->trusted || !b || !b->shared_memory) return true;
    again.n_features = 0;
    again.suspicious = again.refused = (kl_str){0};
    const kl_err code = look_at_copy(&again, a, k, k->surface->inspect, kl_ignored());
    out->suspicious = again.suspicious;
    out->refused = again.refused;
    return code == KL_OK;
}

bool kli_compile_depends_on_shape(const kl_kernel *k) { return k->surface->specialize != NULL; }

static kl_err compile_specialize(kl_compile_job *job, const kl_task *t, const kl_workload *w,
                                 kl_error *e) {
    if (!kli_compile_depends_on_shape(job->kernel)) return KL_OK;
    kl_plan *plan = KL_NEW(job->arena, kl_plan);
    const kl_err err = kli_kernel_plan(plan, job->kernel, t, w, &job->device->limits, e);
    if (!err) job->classes = job->kernel->surface->specialize(job->arena, job->kernel, plan);
    return err;
}

static kl_err job_for(kl_compile_job *job, kl_arena *a, const kl_device *d, const kl_kernel *k,
                      const kl_task *t, const kl_workload *w, kl_error *e) {
    *job = (kl_compile_job){
        .arena = a, .device = d, .kernel = k, .defines = kli_kernel_defines(a, k, t, w)};
    return compile_specialize(job, t, w, e);
}

bool kli_compile_is_same(kl_arena *a, const kl_device *d, const kl_kernel *k, const kl_task *t,
                         const kl_workload *x, const kl_workload *y) {
    kl_compile_job one, other;
    return !job_for(&one, a, d, k, t, x, kl_ignored()) &&
           !job_for(&other, a, d, k, t, y, kl_ignored()) &&
           strcmp(kli_compile_key(&one, isolation_here(), false).hex,
                  kli_compile_key(&other, isolation_here(), false).hex) == 0;
}

kl_err kli_compile_code(kl_artefact *out, kl_arena *a, const kl_device *d, const kl_kernel *k,
                        const kl_task *t, const kl_workload *w, const kl_compile_opts *o,
                        kl_error *e) {
    cache_entry c;
    kl_compile_job job;
    const bool carried = o && o->carried;
    kl_err code = require_isolation(o, e);
    if (!code) code = job_for(&job, a, d, k, t, w, e);
    if (!code) code = open_cache(&c, a, o, kli_compile_key(&job, isolation_here(), carried).hex, e);
    if (code) return code;
    const bool cached = !(o && o->no_cache) && cache_read(out, a, &c);
    if (cached && (!carried || inspect_again(out, a, kli_backend_get(d->backend), k))) return KL_OK;
    return compile_afresh(out, &job, &c, e);
}

bool kli_compile_is_described(const kl_artefact *made, const kl_kernel *k) {
    return !made->ok || !k->surface->describe ||
           feature_index(made, "disassembled") < made->n_features;
}

void kli_compile_describe(kl_artefact *out, kl_arena *a, const kl_kernel *k) {
    const int64_t start = kli_now_ns();
    kl_error e = {0};
    if (kli_compile_is_described(out, k)) return;
    KL_ASSERT(kl_str_ends(out->path, KL_S(".bin"))); /* of the cache */
    const kl_str facts = kl_arena_printf(a, "%.*sjson", (int)out->path.len - 3, out->path.ptr);
    kl_err code = look_at_copy(out, a, k, k->surface->describe, &e);
    out->wall_ns += kli_now_ns() - start;
    if (!code) code = write_facts(out, a, facts, &e);
    if (!code) return;
    kli_feature_set(out, a, "disassembled", 0); /* not so in the cache */
    kli_debug("%s was not described: %s", out->path.ptr, e.message);
}

kl_err kli_compile(kl_artefact *out, kl_arena *a, const kl_device *d, const kl_kernel *k,
                   const kl_task *t, const kl_workload *w, const kl_compile_opts *o, kl_error *e) {
    const kl_err err = kli_compile_code(out, a, d, k, t, w, o, e);
    if (!err) kli_compile_describe(out, a, k);
    return err;
}

/* ---- plugins ----------------------------------------------------------------------------- */

static kl_hash plugin_key(const kl_device *d, kl_str source, const char *path, bool carried) {
    kl_hasher h;
    kli_hasher_init(&h);
    kli_hasher_add(&h, KL_S(CACHE_FORMAT));
    kli_hasher_add(&h, KL_S("plugin"));
    kli_hasher_add(&h, carried ? KL_S("carried") : d->toolchain);
    kli_hasher_add(
        &h, kl_str_of(carried ? "" : getenv("KLINEAGE_CC"))); /* a task's own file, trusted: not
                                                                 confined by more or less */
    kli_hasher_add(&h, kli_fs_basename(path));
    kli_hasher_add(&h, source);
    return kli_hasher_end(&h);
}

kl_err kli_compile_plugin(kl_artefact *out, kl_arena *a, const kl_device *d, const char *path,
                          const kl_compile_opts *o, kl_error *e) {
    cache_entry c;
    kl_str source, dir;
    kl_err code = kli_fs_read(&source, a, path, KL_MAX_SOURCE_BYTES, e);
    if (!code) code = open_cache(&c, a, o, plugin_key(d, source, path, o && o->carried).hex, e);
    if (code) return code;
    if (!(o && o->no_cache) && cache_read(out, a, &c)) return KL_OK;
    *out = (kl_artefact){.toolchain = d->toolchain};
    int64_t start = kli_now_ns();
    if (kl_str_ends(kl_str_of(path), KL_S(".py"))) { /* a script is its own artefact */
        out->ok = true;
        out->kind = KL_ARTEFACT_SCRIPT;
        out->path = kl_arena_copy(a, kl_str_of(path));
        return cache_write(out, a, &c, e);
    }
    code = kli_fs_temp_dir(&dir, a, e);
    if (code) return code;
    code = kli_plugin_compile(out, a, source, dir.ptr, e);
    out->wall_ns = kli_now_ns() - start;
    if (!code) code = cache_write(out, a, &c, e);
    kli_fs_remove_tree(dir.ptr);
    return code;
}

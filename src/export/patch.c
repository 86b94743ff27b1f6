/* patch.c - the form `patch`: a change to somebody else's tree, as `git am` takes it.
 *
 *   --into TREE --replace FILE:FUNCTION[(x=A, M=rows)]
 *
 * It adds the kernel and its launcher as a folder, and a call at the top of FUNCTION, whose own
 * body serves the shapes that the kernel refuses.  Arguments are its parameters of the same names,
 * or as given.  The tree is read and never written: the commit is made in an index and an object
 * store beside it.  Its message has the numbers of the verdict, and where the kernel comes from.
 * SPDX-License-Identifier: Apache-2.0 */
#include "patch_impl.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

#define GIT_SECONDS 60
#define MAX_FILE_BYTES ((size_t)8 << 20)

typedef struct {
    const kli_export *x;
    kl_arena *arena;
    const char *tree, *file; /* the tree, and the file in it that has the function */
    kl_str function, bindings;
    bool python;
    kli_site site;
    kl_str text;            /* of the file */
    const char *scratch;    /* index and objects of the commit */
    const char *objects;    /* of the tree */
    kli_export_files files; /* what the commit adds */
    const char *folder;     /* of them, in the tree */
} patch;

/* ---- git --------------------------------------------------------------------------------- */

/* No hook, no monitor and no signature of the tree's owner runs here. */
static kl_err run_git(kl_str *said, const patch *c, const char *const *words, kl_str input,
                      kl_error *e) {
    kl_arena *a = c->arena;
    const char *argv[40];
    int n = 0;
    argv[n++] = "env";
    argv[n++] = "LC_ALL=C";
    if (c->scratch) {
        argv[n++] = kl_arena_printf(a, "GIT_INDEX_FILE=%s/index", c->scratch).ptr;
        argv[n++] = kl_arena_printf(a, "GIT_OBJECT_DIRECTORY=%s/objects", c->scratch).ptr;
        argv[n++] = kl_arena_printf(a, "GIT_ALTERNATE_OBJECT_DIRECTORIES=%s", c->objects).ptr;
    }
    static const char *const options[] = {"git",
                                          "-c",
                                          "core.fsmonitor=false",
                                          "-c",
                                          "core.hooksPath=/dev/null",
                                          "-c",
                                          "commit.gpgSign=false"};
    for (size_t i = 0; i < KL_COUNT(options); i++) argv[n++] = options[i];
    for (; *words; words++) argv[n++] = *words;
    argv[n] = NULL;
    KL_ASSERT(n < (int)KL_COUNT(argv));
    const kli_proc_spec spec = {.argv = argv,
                                .cwd = c->tree,
                                .input = input,
                                .max_output = (size_t)128 << 20,
                                .timeout_ns = GIT_SECONDS * 1000000000ll};
    kli_proc_result r;
    const kl_err err = kli_proc_run(&r, a, &spec, e);
    if (said) *said = r.out;
    if (err) return err;
    if (r.exit_code == 127)
        return kl_hint((kl_fail(e, KL_ENODEV, c->tree, "a patch needs the git program"), e),
                       "on Debian: apt install git");
    if (r.exit_code == 0 && !r.timed_out) return KL_OK;
    return kl_fail(e, KL_EIO, c->tree, "git %s: %.400s", argv[n - 1],
                   r.timed_out ? "did not finish in time" : kl_str_trim(r.err).ptr);
}

#define GIT(said, c, input, e, ...)                                                                \
    run_git(said, c, (const char *const[]){__VA_ARGS__, NULL}, input, e)

static kl_err refuse_dirty(const patch *c, kl_str status, kl_error *e) {
    int changes = 0;
    for (size_t i = 0; i < status.len; i++) changes += status.ptr[i] == '\n';
    kl_fail(e, KL_EINVAL, c->tree, "the tree is not clean: %d change%s, the first is '%.*s'",
            changes, changes == 1 ? "" : "s", (int)strcspn(status.ptr, "\n"), status.ptr);
    return kl_hint(e, "commit or stash them; a patch is made against a commit");
}

static kl_err check_tree(patch *c, kl_error *e) {
    kl_str said = {0};
    kl_err err = KL_OK;
    if (!kli_fs_is_dir(c->tree)) return kl_fail(e, KL_EINVAL, c->tree, "no such folder");
    if (GIT(&said, c, (kl_str){0}, kl_ignored(), "rev-parse", "--show-toplevel"))
        return kl_fail(e, KL_EINVAL, c->tree, "this is no working tree of git");
    c->tree = kl_arena_copy(c->arena, kl_str_trim(said)).ptr;
    if (GIT(NULL, c, (kl_str){0}, kl_ignored(), "rev-parse", "--verify", "--quiet", "HEAD"))
        return kl_fail(e, KL_EINVAL, c->tree,
                       "it has no commit that a patch could be made against");
    err = GIT(&said, c, (kl_str){0}, e, "status", "--porcelain");
    return err || !said.len ? err : refuse_dirty(c, said, e);
}

static kl_err open_scratch(patch *c, kl_error *e) {
    kl_str dir, objects;
    kl_err err = GIT(&objects, c, (kl_str){0}, e, "rev-parse", "--path-format=absolute",
                     "--git-path", "objects");
    if (!err) err = kli_fs_temp_dir(&dir, c->arena, e);
    if (!err) err = kli_fs_mkdirs(kli_fs_join(c->arena, dir.ptr, "objects").ptr, e);
    if (err) return err;
    c->objects = kl_arena_copy(c->arena, kl_str_trim(objects)).ptr;
    c->scratch = dir.ptr;
    return KL_OK;
}

static kl_err add_blob(patch *c, const char *mode, const char *path, kl_str text, kl_error *e) {
    kl_str id;
    kl_err err = GIT(&id, c, text, e, "hash-object", "-w", "--no-filters", "--stdin");
    if (err) return err;
    const char *info =
        kl_arena_printf(c->arena, "%s,%.*s,%s", mode, KL_STR_ARG(kl_str_trim(id)), path).ptr;
    return GIT(NULL, c, (kl_str){0}, e, "update-index", "--add", "--cacheinfo", info);
}

/* ---- what is asked ----------------------------------------------------------------------- */

static kl_err read_replace(patch *c, kl_error *e) {
    const char *given = c->x->replace, *colon = strrchr(given, ':');
    const char *open = colon ? strchr(colon, '(') : NULL;
    const size_t n = strlen(given);
    if (!colon || colon == given || !colon[1] || (open && given[n - 1] != ')')) {
        kl_fail(e, KL_EINVAL, given, "--replace wants FILE:FUNCTION");
        return kl_hint(e,
                       "as src/matmul.c:matmul, or with names: src/matmul.c:matmul(x=A, M=rows)");
    }
    c->file = kl_arena_printf(c->arena, "%.*s", (int)(colon - given), given).ptr;
    c->function = kl_arena_copy(
        c->arena, (kl_str){colon + 1, (size_t)((open ? open : given + n) - colon - 1)});
    if (open) c->bindings = (kl_str){open + 1, (size_t)(given + n - 1 - (open + 1))};
    if (c->file[0] == '/' || strstr(c->file, "..") || !kli_export_is_name(c->function.ptr))
        return kl_fail(e, KL_EINVAL, given, "FILE is a path inside the tree, FUNCTION a name");
    const kl_str file = kl_str_of(c->file);
    c->python = kl_str_ends(file, KL_S(".py"));
    return KL_OK;
}

static bool is_c_file(kl_str file) {
    static const char *const ENDINGS[] = {".c", ".cc", ".cpp", ".cxx", ".cu", ".h", ".hpp", NULL};
    for (const char *const *ending = ENDINGS; *ending; ending++)
        if (kl_str_ends(file, kl_str_of(*ending))) return true;
    return false;
}

static kl_err find_site(patch *c, kl_error *e) {
    kl_str mode;
    if (GIT(&mode, c, (kl_str){0}, kl_ignored(), "ls-files", "--error-unmatch", "--", c->file))
        return kl_fail(e, KL_EINVAL, c->file, "the tree has no such file");
    if (!c->python && !is_c_file(kl_str_of(c->file)))
        return kl_fail(e, KL_EINVAL, c->file, "a call can be put into C, C++, CUDA or Python");
    kl_err err = kli_fs_read(&c->text, c->arena, kli_fs_join(c->arena, c->tree, c->file).ptr,
                             MAX_FILE_BYTES, e);
    c->site.file = c->file;
    if (err) return err;
    err = c->python ? kli_site_in_python(&c->site, c->text, c->function, e)
                    : kli_site_in_c(&c->site, c->arena, c->text, c->function, e);
    if (err || c->site.returns_nothing) return err;
    return kl_fail(e, KL_EINVAL, c->file, "%.*s returns something, and a kernel writes its outputs",
                   KL_STR_ARG(c->function));
}

/* ---- arguments --------------------------------------------------------------------------- */

/* "x=A, M=rows": what `name` is called in the function. */
static kl_str binding_of(const patch *c, kl_str name) {
    kl_str rest = c->bindings;
    while (rest.len) {
        size_t n = 0;
        while (n < rest.len && rest.ptr[n] != ',') n++;
        const kl_str one = kl_str_trim((kl_str){rest.ptr, n});
        const char *equals = memchr(one.ptr, '=', one.len);
        rest = (kl_str){rest.ptr + n, rest.len - n};
        if (rest.len) rest.ptr++, rest.len--;
        if (!equals) continue;
        const kl_str left = kl_str_trim((kl_str){one.ptr, (size_t)(equals - one.ptr)});
        if (kl_str_eq(left, name))
            return kl_str_trim((kl_str){equals + 1, (size_t)(one.ptr + one.len - equals - 1)});
    }
    return name;
}

static bool site_parameter(const patch *c, kl_str wanted, kl_str *out) {
    for (int exact = 1; exact >= 0; exact--)
        for (int i = 0; i < c->site.n_parameters; i++) {
            const kl_str p = c->site.parameters[i];
            if (p.len == wanted.len && (exact ? memcmp(p.ptr, wanted.ptr, p.len)
                                              : strncasecmp(p.ptr, wanted.ptr, p.len)) == 0)
                return *out = p, true;
        }
    return false;
}

static kl_err refuse_parameter(const patch *c, kl_str name, kl_error *e) {
    kl_buf has = {0};
    for (int i = 0; i < c->site.n_parameters; i++)
        kl_buf_printf(&has, "%s%.*s", i ? ", " : "", KL_STR_ARG(c->site.parameters[i]));
    kl_fail(e, KL_EINVAL, c->file, "%.*s has no parameter for %.*s; it has: %.200s",
            KL_STR_ARG(c->function), KL_STR_ARG(name), has.len ? has.ptr : "none");
    kl_buf_fini(&has);
    return kl_hint(e, "say which it is: --replace '%s:%.*s(%.*s=...)'", c->file,
                   KL_STR_ARG(c->function), KL_STR_ARG(name));
}

static kl_err add_site_argument(kl_buf *b, const patch *c, kl_str name, kl_error *e) {
    kl_str parameter;
    if (!site_parameter(c, binding_of(c, name), &parameter)) return refuse_parameter(c, name, e);
    kl_buf_printf(b, "%s%.*s", b->len ? ", " : "", KL_STR_ARG(parameter));
    return KL_OK;
}

/* The names that the call takes: axes and tensors in C, what the operator takes in Python. */
static kl_err site_arguments(kl_str *out, const patch *c, kl_error *e) {
    const kl_task *t = c->x->task;
    kl_buf b = {0};
    kl_err err = KL_OK;
    for (int i = 0; !err && i < t->n_axes && !c->python; i++)
        if (t->axes[i].kind == KL_AXIS_VAR) err = add_site_argument(&b, c, t->axes[i].name, e);
    const int n = c->python ? t->n_inputs : t->n_tensors;
    for (int i = 0; !err && i < n; i++) err = add_site_argument(&b, c, t->tensors[i].name, e);
    const kl_axis *untold = c->python ? kli_untold_axis(c->x) : NULL;
    if (!err && untold) err = add_site_argument(&b, c, untold->name, e);
    *out = kl_buf_take(&b, c->arena);
    return err;
}

/* ---- the changed file -------------------------------------------------------------------- */

static kl_str with_insertions(const patch *c, kl_str top, kl_str body) {
    kl_buf b = {0};
    const kl_str t = c->text;
    kl_buf_add(&b, (kl_str){t.ptr, c->site.top});
    kl_buf_add(&b, top);
    kl_buf_add(&b, (kl_str){t.ptr + c->site.top, c->site.body - c->site.top});
    kl_buf_add(&b, body);
    kl_buf_add(&b, (kl_str){t.ptr + c->site.body, t.len - c->site.body});
    return kl_buf_take(&b, c->arena);
}

/* "../../" from the file's folder to the tree. */
static const char *way_up(const patch *c) {
    kl_buf b = {0};
    for (const char *at = c->file; (at = strchr(at, '/')); at++) kl_buf_printf(&b, "../");
    return kl_buf_take(&b, c->arena).ptr;
}

static kl_str changed_c(const patch *c, kl_str arguments) {
    const char *name = c->x->name;
    kl_str ignored;
    const bool stream = kli_is_device_code(c->x);
    const bool has = stream && site_parameter(c, binding_of(c, KL_S("stream")), &ignored);
    const kl_str given = has      ? kl_arena_printf(c->arena, "%.*s, ", KL_STR_ARG(ignored))
                         : stream ? KL_S("NULL, ")
                                  : KL_S("");
    return with_insertions(
        c, kl_arena_printf(c->arena, "#include \"%s%s/%s_site.h\"\n", way_up(c), c->folder, name),
        kl_arena_printf(c->arena, "\n    if (%s_site(%.*s%.*s) == 0) return; /* else as before */",
                        name, KL_STR_ARG(given), KL_STR_ARG(arguments)));
}

static bool is_package(const patch *c) {
    const kl_str dir = kli_fs_dirname(c->arena, kli_fs_join(c->arena, c->tree, c->file).ptr);
    return kli_fs_exists(kli_fs_join(c->arena, dir.ptr, "__init__.py").ptr);
}

static kl_str changed_python(const patch *c, kl_str arguments) {
    const char *name = c->x->name;
    const int indent = (int)c->site.indent;
    return with_insertions(c,
                           kl_arena_printf(c->arena, "from %s_klineage_%s import %s_site\n",
                                           is_package(c) ? "." : "", name, name),
                           kl_arena_printf(c->arena,
                                           "%*s_made = %s_site(%.*s)\n"
                                           "%*sif _made is not None:\n"
                                           "%*s    return _made\n",
                                           indent, "", name, KL_STR_ARG(arguments), indent, "",
                                           indent, ""));
}

/* ---- the added folder -------------------------------------------------------------------- */

static kl_err added_in_c(patch *c, kl_error *e) {
    kli_values v = {0};
    const kli_export *x = c->x;
    const bool device = kli_is_device_code(x);
    kl_arena *a = c->arena;
    kli_header_values(&v, x);
    kli_files_add(&c->files, kl_arena_printf(a, "%s_site.h", x->name),
                  kli_template(&v, device ? "site_cuda_header" : "site_header"));
    kli_files_add(&c->files, kl_arena_printf(a, "%s_site.c", x->name),
                  kli_template(&v, device ? "site_cuda" : "site"));
    kli_files_add(&c->files, KL_S(".gitignore"), KL_S("*.o\n*.a\n*.so\n"));
    return kli_export_c(&c->files, x, e);
}

static kl_err added_in_python(patch *c, kl_error *e) {
    kli_values v = {0};
    const kl_err err = kli_package(&v, &c->files, c->x, "", e);
    if (err) return err;
    for (int i = 0; i < c->files.n; i++)
        if (kl_str_eq(c->files.at[i].path, KL_S("__init__.py")))
            c->files.at[i].text =
                kl_arena_printf(c->arena, "%.*s%.*s", KL_STR_ARG(c->files.at[i].text),
                                KL_STR_ARG(kli_template(&v, "site_python")));
    return KL_OK;
}

static kl_err add_files(patch *c, kl_error *e) {
    kl_arena *a = c->arena;
    const kl_str beside = kli_fs_dirname(a, c->file);
    c->folder = c->python && strchr(c->file, '/')
                    ? kl_arena_printf(a, "%.*s/_klineage_%s", KL_STR_ARG(beside), c->x->name).ptr
                : c->python ? kl_arena_printf(a, "_klineage_%s", c->x->name).ptr
                            : kl_arena_printf(a, "klineage/%s", c->x->name).ptr;
    if (kli_fs_exists(kli_fs_join(a, c->tree, c->folder).ptr))
        return kl_fail(e, KL_EINVAL, c->folder, "the tree has this already; --name another");
    const kl_err err = c->python ? added_in_python(c, e) : added_in_c(c, e);
    if (err) return err;
    json_t *provenance = kli_export_provenance(c->x, "patch", &c->files);
    kli_files_add(&c->files, KL_S("provenance.json"), kli_json_dump(a, provenance, true));
    json_decref(provenance);
    return KL_OK;
}

/* ---- the commit -------------------------------------------------------------------------- */

static void tell_numbers(kl_buf *b, const kli_export *x) {
    const kl_verdict *v = &x->verdict;
    const kl_comparison *m = &v->comparisons[0];
    kl_buf_printf(b, "At %.*s of task %.*s, on %.*s (%.*s), both interleaved by the gate:\n\n",
                  KL_STR_ARG(v->workload), KL_STR_ARG(v->task), KL_STR_ARG(v->device),
                  KL_STR_ARG(v->platform));
    kl_buf_printf(b, "  before  %12.0f ns  %.*s\n", m->baseline_ns, KL_STR_ARG(m->baseline));
    kl_buf_printf(b,
                  "  after   %12.0f ns  this kernel, %.3fx [%.3f, %.3f], identical code agrees "
                  "within %.2g %%: %s\n\n",
                  m->candidate_ns, m->ratio, m->low, m->high, 100 * m->noise,
                  kl_decision_name(m->call));
}

static kl_str patch_message(const patch *c) {
    const kli_export *x = c->x;
    const kl_comparison *m = &x->verdict.comparisons[0];
    kl_buf b = {0};
    kl_buf_printf(&b, "%.*s: a kernel that was measured at %.2fx of %.*s\n\n",
                  KL_STR_ARG(c->function), m->ratio, KL_STR_ARG(m->baseline));
    tell_numbers(&b, x);
    kl_buf_printf(
        &b,
        "Its outputs were compared with an oracle's at %d shapes. Shapes outside of them, "
        "and all\nthat it refuses, go on as before.\n\n",
        x->domain.shapes);
    if (!c->python)
        kl_buf_printf(&b, "To build: make -C %s, and link %s/lib%s.a and %s_site.c with %s.\n\n",
                      c->folder, c->folder, x->name, x->name,
                      kli_is_device_code(x) ? "-lcuda -lpthread" : kli_libraries(x).ptr);
    kl_buf_printf(
        &b,
        "Kernel: %s, %.*s\nVerdict: %s\nReceipt: %s\nLicence: %s\nProvenance: %s/provenance.json\n",
        x->kernel->hash, KL_STR_ARG(kl_str_of(x->kernel->surface->name)), x->verdict_key,
        x->verdict.receipt, kl_arena_copy(c->arena, kli_export_licence(x->kernel->source)).ptr,
        c->folder);
    return kl_buf_take(&b, c->arena);
}

static kl_err commit_it(kl_str *out, patch *c, kl_str changed, kl_error *e) {
    kl_arena *a = c->arena;
    kl_str said;
    kl_err err = GIT(&said, c, (kl_str){0}, e, "ls-files", "-s", "--", c->file);
    if (err) return err;
    const char *mode = kl_arena_printf(a, "%.6s", said.ptr).ptr;
    err = open_scratch(c, e);
    if (!err) err = GIT(NULL, c, (kl_str){0}, e, "read-tree", "HEAD");
    if (!err) err = add_blob(c, mode, c->file, changed, e);
    for (int i = 0; !err && i < c->files.n; i++)
        err = add_blob(c, "100644", kli_fs_join(a, c->folder, c->files.at[i].path.ptr).ptr,
                       c->files.at[i].text, e);
    if (!err) err = GIT(&said, c, (kl_str){0}, e, "write-tree");
    if (err) return err;
    const bool known = !GIT(NULL, c, (kl_str){0}, kl_ignored(), "var", "GIT_COMMITTER_IDENT");
    const char *tree = kl_arena_copy(a, kl_str_trim(said)).ptr;
    err = GIT(&said, c, patch_message(c), e, "-c", known ? "core.pager=cat" : "user.name=klineage",
              "-c", known ? "core.pager=cat" : "user.email=klineage@localhost", "commit-tree", tree,
              "-p", "HEAD");
    if (err) return err;
    const char *commit = kl_arena_copy(a, kl_str_trim(said)).ptr;
    return GIT(out, c, (kl_str){0}, e, "format-patch", "--stdout", "--no-signature",
               "--no-ext-diff", "--no-textconv", "-1", commit);
}

static kl_err check_asked(const kli_export *x, kl_error *e) {
    if (!x->into || !x->replace) {
        kl_fail(e, KL_EINVAL, "--as patch",
                "a patch is made against a tree, and calls the kernel in it");
        return kl_hint(e, "--into TREE --replace FILE:FUNCTION");
    }
    if (x->verdict.n_comparisons) return KL_OK;
    kl_fail(e, KL_EINVAL, x->kernel->path.ptr,
            "a patch says how fast it is, and its verdict was not timed");
    return kl_hint(e, "klineage gate %.*s %.100s", KL_STR_ARG(x->task->name), x->kernel->path.ptr);
}

kl_err kli_export_patch(kli_export_files *out, const kli_export *x, kl_error *e) {
    patch *c = KL_NEW(x->arena, patch);
    kl_str arguments, text;
    c->x = x;
    c->arena = x->arena;
    c->tree = x->into;
    kl_err err = check_asked(x, e);
    if (!err) err = read_replace(c, e);
    if (!err) err = check_tree(c, e);
    if (!err) err = find_site(c, e);
    if (!err) err = site_arguments(&arguments, c, e);
    if (!err) err = add_files(c, e);
    if (!err)
        err = commit_it(&text, c,
                        c->python ? changed_python(c, arguments) : changed_c(c, arguments), e);
    if (c->scratch) kli_fs_remove_tree(c->scratch);
    if (!err) kli_files_add(out, kl_arena_printf(c->arena, "0001-%s.patch", x->name), text);
    return err;
}

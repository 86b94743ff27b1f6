/* loops_test.c - functions, loops and their depth in the texts of tests/cases/loops, which mislead
 * whoever reads words.
 *
 * The first line of each says what there is to find.  Where libclang was installed it reads the
 * same text, alone: no header is included, and where a name in an #if is not known every branch is
 * parsed, as here.  It reads the real kernels in C as well, with all that their compiler knows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "rewrite_impl.h"

typedef struct {
    int functions, loops, depth; /* of what `f` reaches, itself included */
} shape;

static void check(const char *path, const char *who, shape found, shape expected) {
    if (memcmp(&found, &expected, sizeof found) != 0)
        fail_msg("%s: %s functions %d, loops %d, depth %d, not %d, %d, %d", path, who,
                 found.functions, found.loops, found.depth, expected.functions, expected.loops,
                 expected.depth);
}

static shape read_here(const kl_kernel *k) {
    kli_source s;
    kli_source_read(&s, k);
    return (shape){(int)s.count[KLI_TRAIT_FUNCTIONS], (int)s.count[KLI_TRAIT_LOOPS],
                   (int)s.count[KLI_TRAIT_LOOP_DEPTH]};
}

#ifdef KL_LIBCLANG
#include <clang-c/Index.h>

enum { MAX_FUNCTIONS = 256, MAX_CALLS = 512, NAME_BYTES = 64 };

typedef struct {
    char name[NAME_BYTES];
    int loops, depth; /* of its own */
    struct {
        char name[NAME_BYTES];
        int depth;
    } calls[MAX_CALLS];
    int n_calls;
    bool reached, measuring;
} function;

typedef struct {
    function all[MAX_FUNCTIONS];
    int n;
} program;

typedef struct {
    function *f;
    int depth;
} place;

static void spell(char *out, CXCursor c) {
    const CXString s = clang_getCursorSpelling(c);
    snprintf(out, NAME_BYTES, "%s", clang_getCString(s) ? clang_getCString(s) : "");
    clang_disposeString(s);
}

static bool is_loop(enum CXCursorKind k) {
    return k == CXCursor_ForStmt || k == CXCursor_WhileStmt || k == CXCursor_DoStmt ||
           k == CXCursor_CXXForRangeStmt;
}

static bool is_name(enum CXCursorKind k) {
    return k == CXCursor_DeclRefExpr || k == CXCursor_MemberRefExpr ||
           k == CXCursor_OverloadedDeclRef;
}

static enum CXChildVisitResult visit_body(CXCursor c, CXCursor parent, CXClientData data) {
    (void)parent;
    place inside = *(place *)data;
    function *f = inside.f;
    const enum CXCursorKind k = clang_getCursorKind(c);
    if (is_name(k) && f->n_calls < MAX_CALLS) {
        spell(f->calls[f->n_calls].name, c);
        f->calls[f->n_calls++].depth = inside.depth;
    }
    f->loops += is_loop(k);
    inside.depth += is_loop(k);
    if (inside.depth > f->depth) f->depth = inside.depth;
    clang_visitChildren(c, visit_body, &inside);
    return CXChildVisit_Continue;
}

static enum CXChildVisitResult visit_top(CXCursor c, CXCursor parent, CXClientData data) {
    (void)parent;
    program *p = data;
    const enum CXCursorKind k = clang_getCursorKind(c);
    if (clang_Location_isInSystemHeader(clang_getCursorLocation(c))) return CXChildVisit_Continue;
    if (k != CXCursor_FunctionDecl && k != CXCursor_FunctionTemplate && k != CXCursor_CXXMethod)
        return k == CXCursor_VarDecl ? CXChildVisit_Continue : CXChildVisit_Recurse;
    if (!clang_isCursorDefinition(c) || p->n == MAX_FUNCTIONS) return CXChildVisit_Continue;
    function *f = &p->all[p->n++];
    spell(f->name, c);
    clang_visitChildren(c, visit_body, &(place){f, 0});
    return CXChildVisit_Continue;
}

static void reach(program *p, const char *name, shape *sum) {
    for (int i = 0; i < p->n; i++) {
        function *f = &p->all[i];
        if (f->reached || strcmp(f->name, name) != 0) continue;
        f->reached = true;
        sum->functions++;
        sum->loops += f->loops;
        for (int c = 0; c < f->n_calls; c++) reach(p, f->calls[c].name, sum);
    }
}

static int depth_of(program *p, const char *name) {
    int deepest = 0;
    for (int i = 0; i < p->n; i++) {
        function *f = &p->all[i];
        if (f->measuring || strcmp(f->name, name) != 0) continue;
        f->measuring = true;
        if (f->depth > deepest) deepest = f->depth;
        for (int c = 0; c < f->n_calls; c++) {
            const int d = f->calls[c].depth + depth_of(p, f->calls[c].name);
            if (d > deepest) deepest = d;
        }
        f->measuring = false;
    }
    return deepest;
}

static bool has_errors(CXTranslationUnit tu) {
    bool any = false;
    for (unsigned i = 0; i < clang_getNumDiagnostics(tu); i++) {
        CXDiagnostic d = clang_getDiagnostic(tu, i);
        any = any || clang_getDiagnosticSeverity(d) >= CXDiagnostic_Error;
        clang_disposeDiagnostic(d);
    }
    return any;
}

/* What the kernel's first launch reaches; false where libclang finds an error. */
static bool parse(shape *out, kl_arena *a, const kl_kernel *k, const char *const *argv, int argc,
                  unsigned options) {
    const struct CXUnsavedFile text = {k->path.ptr, k->source.ptr, k->source.len};
    const char *entry = kl_arena_copy(a, k->launches[0].entry).ptr;
    program *p = KL_NEW(a, program);
    CXIndex index = clang_createIndex(0, 0);
    CXTranslationUnit tu = NULL;
    const enum CXErrorCode failed = clang_parseTranslationUnit2(
        index, k->path.ptr, argv, argc, (struct CXUnsavedFile *)&text, 1, options, &tu);
    assert_int_equal(failed, CXError_Success);
    const bool whole = !has_errors(tu);
    clang_visitChildren(clang_getTranslationUnitCursor(tu), visit_top, p);
    *out = (shape){0};
    reach(p, entry, out);
    out->depth = depth_of(p, entry);
    clang_disposeTranslationUnit(tu);
    clang_disposeIndex(index);
    return whole;
}

static shape parsed(kl_arena *a, const kl_kernel *k) {
    shape found;
    static const char *const C[] = {"-xc", "-std=gnu17", "-w"},
                             *const CL[] = {"-xcl", "-cl-std=CL1.2", "-w"},
                             *const CU[] = {"-xc++", "-std=c++17",
                                            "-D__global__=", "-D__device__="};
    const bool cuda = kl_str_ends(k->path, KL_S("u")), cl = kl_str_ends(k->path, KL_S("l"));
    const char *const *argv = cuda ? CU : cl ? CL : C;
    if (!parse(&found, a, k, argv, cuda ? 4 : 3, CXTranslationUnit_SingleFileParse))
        fail_msg("%s: libclang finds an error", k->path.ptr);
    return found;
}

/* A kernel in C as it is compiled for its task: with headers, axes and types.  Without OpenMP,
 * whose regions libclang does not show; what only gcc knows (__builtin_shuffle) it cannot read. */
static void check_compiled(kl_arena *a, const kl_kernel *k, const kl_kernel *before, void *ctx) {
    (void)before;
    const char *argv[128] = {"-xc", "-std=gnu17", "-w", "-march=native"};
    int n = 4;
    shape seen;
    if (strcmp(k->surface->name, "c") != 0 || k->n_launches != 1) return;
    const kl_task *t = task_of(a, k);
    const kl_workload *w = kl_task_workload(t, (kl_str){0}, KL_ON_CPU);
    for (const char **d = kli_kernel_defines(a, k, t, w); *d && n < 128; d++) argv[n++] = *d;
    if (!parse(&seen, a, k, argv, n, CXTranslationUnit_None)) return;
    if (kli_contains(k->source, "#el")) return; /* one branch for a compiler, all of them here */
    check(k->path.ptr, "libclang sees", seen, read_here(k));
    ++*(int *)ctx;
}

static void test_real_kernels_are_read_as_a_compiler_reads_them(void **state) {
    (void)state;
    int compared = 0;
    all_kernels(check_compiled, &compared);
    print_message("%d real kernels\n", compared);
    assert_true(compared > 0);
}
#endif

static void check_case(kl_arena *a, const kl_kernel *k, const kl_kernel *before, void *ctx) {
    (void)before;
    (void)ctx;
    shape expected;
    assert_int_equal(sscanf(k->source.ptr, "// functions %d, loops %d, depth %d",
                            &expected.functions, &expected.loops, &expected.depth),
                     3);
    check(k->path.ptr, "here are read", read_here(k), expected);
#ifdef KL_LIBCLANG
    check(k->path.ptr, "libclang sees", parsed(a, k), expected);
#else
    (void)a;
#endif
}

static void test_loops_are_those_of_a_compiler(void **state) {
    (void)state;
    assert_true(kernels_of(KL_TEST_ROOT "/tests/cases/loops", check_case, NULL) >= 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops_are_those_of_a_compiler),
#ifdef KL_LIBCLANG
        cmocka_unit_test(test_real_kernels_are_read_as_a_compiler_reads_them),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

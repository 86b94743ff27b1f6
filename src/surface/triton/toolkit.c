/* toolkit.c - which Triton there is: a Python with the package, and the ptxas inside it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "triton.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/proc.h"
#include <pthread.h>
#include <stdlib.h>

/* Prints version, interpreter, its folder and the folder of the package, a line each.  The
 * interpreter is the real one: the folder of an environment need not be readable for a jail. */
static const char LOOK[] = "import importlib.metadata as m, importlib.util as u, os, sys\n"
                           "spec = u.find_spec('triton')\n"
                           "print(m.version('triton'))\n"
                           "print(os.path.realpath(sys.executable))\n"
                           "print(sys.base_prefix)\n"
                           "print(os.path.dirname(list(spec.submodule_search_locations)[0]))\n";

static kli_triton_toolkit toolkit;
static kl_arena *toolkit_arena; /* lives as long as the process */
static pthread_once_t toolkit_once = PTHREAD_ONCE_INIT;

static kl_str next_line(kl_str *rest) {
    size_t n = 0;
    while (n < rest->len && rest->ptr[n] != '\n') n++;
    const kl_str line = {rest->ptr, n};
    *rest = (kl_str){rest->ptr + n, rest->len - n};
    if (rest->len) rest->ptr++, rest->len--;
    return line;
}

static void read_answer(kli_triton_toolkit *t, kl_arena *a, kl_str text) {
    const kl_str version = next_line(&text);
    t->python = kl_arena_copy(a, next_line(&text));
    t->prefix = kl_arena_copy(a, next_line(&text));
    t->site = kl_arena_copy(a, next_line(&text));
    t->binaries = kli_fs_join(a, t->site.ptr, "triton/backends/nvidia/bin");
    if (!kli_fs_exists(kli_fs_join(a, t->binaries.ptr, "ptxas").ptr))
        t->missing = KL_S("the triton package has no ptxas of its own");
    else
        t->version = kl_arena_copy(a, version);
}

static void toolkit_look(void) {
    kl_arena *a = toolkit_arena = kl_arena_new();
    const char *chosen = getenv("KLINEAGE_PYTHON");
    toolkit.python = kli_fs_find_program(a, chosen && *chosen ? chosen : "python3");
    const char *argv[] = {toolkit.python.ptr, "-c", LOOK, NULL};
    const kli_proc_spec spec = {.argv = argv, .timeout_ns = 20000000000ll};
    kli_proc_result r = {0};
    if (!toolkit.python.len)
        toolkit.missing = KL_S("no Python: install python3");
    else if (kli_proc_run(&r, a, &spec, kl_ignored()) || r.exit_code != 0)
        toolkit.missing = KL_S("no triton package: python3 -m pip install triton, or name a Python "
                               "that has it in KLINEAGE_PYTHON");
    else
        read_answer(&toolkit, a, r.out);
}

const kli_triton_toolkit *kli_triton_toolkit_find(void) {
    (void)pthread_once(&toolkit_once, toolkit_look);
    KL_ASSERT(!toolkit.version.len != !toolkit.missing.len);
    return &toolkit;
}

/* Another front end may say no where this one says yes. */
kl_str kli_triton_toolchain(kl_arena *a) {
    const kli_triton_toolkit *t = kli_triton_toolkit_find();
    kl_str script;
    if (!t->version.len || kli_fs_read(&script, a, kli_fs_find_part(a, KLI_TRITON_FRONTEND).ptr,
                                       1 << 20, kl_ignored()))
        return (kl_str){0};
    return kl_arena_printf(a, "triton %s, front end %.12s", t->version.ptr,
                           kli_hash_of(script).hex);
}

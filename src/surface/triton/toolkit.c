/* toolkit.c - which Triton there is: a Python with the package, and the ptxas inside it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "triton.h"
#include "base/fs.h"
#include <pthread.h>

static kli_python_package package;
static kli_triton_toolkit toolkit = {.front = {.package = &package,
                                               .name = "triton",
                                               .title = "Triton",
                                               .makes = {"kernel.ptx", "assembler"}}};
static kl_arena *toolkit_arena; /* lives as long as the process */
static pthread_once_t toolkit_once = PTHREAD_ONCE_INIT;

/* All that a compilation imports, so that a warm process has it. */
static const char *const MODULES[] = {"triton", "triton.language", "triton.compiler",
                                      "triton.backends.nvidia.compiler", NULL};

static void toolkit_look(void) {
    kli_python_look(&package, "triton", "triton_frontend.py", MODULES);
    if (!package.version.len) return;
    kl_arena *a = toolkit_arena = kl_arena_new();
    toolkit.binaries = kli_fs_join(a, package.site.ptr, "triton/backends/nvidia/bin");
    if (kli_fs_exists(kli_fs_join(a, toolkit.binaries.ptr, "ptxas").ptr)) return;
    package.version = (kl_str){0};
    package.missing = KL_S("the triton package has no ptxas of its own");
}

const kli_triton_toolkit *kli_triton_toolkit_find(void) {
    (void)pthread_once(&toolkit_once, toolkit_look);
    KL_ASSERT(!package.version.len != !package.missing.len);
    return &toolkit;
}

/* Another front end may say no where this one says yes. */
kl_str kli_triton_toolchain(kl_arena *a) {
    return kli_python_toolchain(a, &kli_triton_toolkit_find()->front);
}

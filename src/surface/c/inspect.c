/* inspect.c - what a compiled C kernel must not hold, and what it reads like.
 *
 * The object is read, never loaded.  Forbidden: anything that runs while it is loaded, libraries
 * and functions beyond arithmetic and memory.  What it was made of is in made.c, its instructions
 * are read by backend/native_code.c.  Not here: judging features (the gate and the walk do).
 * SPDX-License-Identifier: Apache-2.0 */
#include "made.h"
#include "backend/elf.h"
#include "backend/image.h"
#include "base/fs.h"
#include <string.h>

/* ---- symbols ----------------------------------------------------------------------------- */

static const char *const INSPECT_LIBRARIES[] = {"libc.so.6",
                                                "libm.so.6",
                                                "libmvec.so.1",
                                                "libgomp.so.1",
                                                "ld-linux-x86-64.so.2",
                                                "ld-linux-aarch64.so.1"};

/* Beginnings of what reaches outside a kernel: time, files, processes, threads, libraries, other
 * memory.  Nobody needs them to compute; whatever is in neither list is merely not offered. */
// clang-format off
static const char *const FORBIDDEN[] = {
    "clock", "time", "gettimeofday", "ftime", "timer_", "timerfd", "nanosleep", "usleep", "sleep",
    "alarm", "ualarm", "setitimer", "getitimer", "times", "getrusage", "open", "creat", "close",
    "read", "write", "pread", "pwrite", "lseek", "fopen", "fdopen", "freopen", "fread", "fwrite",
    "fflush", "fput", "fget", "fprintf", "vfprintf", "printf", "vprintf", "dprintf", "put", "get",
    "perror", "stdin", "stdout", "stderr", "__printf_chk", "__fprintf_chk", "scanf", "fscanf",
    "tmpfile", "mkstemp", "unlink", "rename", "remove", "stat", "fstat", "lstat", "access", "dup",
    "pipe", "poll", "select", "epoll", "eventfd", "inotify", "socket", "connect", "bind", "listen",
    "accept", "send", "recv", "fcntl", "ioctl", "mmap", "mremap", "munmap", "mprotect", "madvise",
    "mlock", "msync", "memfd", "shm", "sem", "msg", "brk", "sbrk", "syscall", "fork", "vfork",
    "clone", "exec", "system", "popen", "posix_spawn", "wait", "exit", "_exit", "_Exit",
    "quick_exit", "atexit", "on_exit", "at_quick_exit", "__cxa_", "kill", "tgkill", "raise",
    "signal", "sigaction", "sigproc", "sigalt", "sigqueue", "sigwait", "sigsuspend", "ptrace",
    "process_vm", "prctl", "arch_prctl", "personality", "sched_", "nice", "setpriority",
    "setrlimit", "prlimit", "set", "unshare", "pthread_", "thrd_", "mtx_", "cnd_", "tss_",
    "call_once", "dl", "__libc_", "environ", "__environ", "secure_getenv", "sysconf", "uname",
    "getcpu", "futex", "longjmp", "_longjmp", "__longjmp", "setjmp", "_setjmp", "__sigsetjmp",
    "makecontext", "swapcontext", "_dl_", "__tunable", "__malloc", "mall", "mtrace", "backtrace",
    "_Unwind"};
// clang-format on

static bool inspect_is_one_of(const char *name, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, list[i]) == 0) return true;
    return false;
}

static bool is_forbidden(const char *name) {
    for (size_t i = 0; i < KL_COUNT(FORBIDDEN); i++)
        if (strncmp(name, FORBIDDEN[i], strlen(FORBIDDEN[i])) == 0) return true;
    return false;
}

static bool uses_openmp(const kl_kernel *k) {
    for (int i = 0; i < k->n_flags; i++)
        if (kl_str_eq(k->flags[i], KL_S("-fopenmp"))) return true;
    return k->threads.text.len > 0;
}

static void check_symbols(kl_artefact *out, kl_arena *a, const kl_kernel *k, const kli_elf *f) {
    for (size_t i = 0; i < f->n_symbols && !out->suspicious.len; i++) {
        const char *name = f->symbols[i].name;
        if (f->symbols[i].defined) {
            if (kli_symbol_is_openmp(name))
                out->suspicious =
                    kl_arena_printf(a, "it defines %.60s, which belongs to OpenMP", name);
            continue;
        }
        if (kli_symbol_is_harmless(name)) continue;
        if (kli_symbol_is_openmp(name) && uses_openmp(k)) continue;
        if (kli_symbol_is_openmp(name) || is_forbidden(name))
            out->suspicious =
                kl_arena_printf(a, "it calls %.60s, which a kernel has no business with", name);
        else if (!out->refused.len)
            out->refused = kl_arena_printf(
                a,
                "it calls %.60s, which kernels are not offered; they have C's mathematics, malloc, "
                "and the "
                "functions of string.h and stdlib.h that copy, compare, search and sort",
                name);
    }
}

static void check_structure(kl_artefact *out, kl_arena *a, const kl_kernel *k, const kli_elf *f) {
    if (f->initialisers)
        out->suspicious = KL_S("it has code that runs when it is loaded or unloaded");
    if (f->ifuncs)
        out->suspicious = KL_S("it has a resolver (ifunc), which runs when it is loaded");
    if (f->text_relocations || f->writable_code || f->executable_stack)
        out->suspicious = KL_S("it has code that can be written");
    if (f->soname) out->suspicious = KL_S("it names itself or a search path for libraries");
    for (int i = 0; f->needed[i]; i++) {
        if (inspect_is_one_of(f->needed[i], INSPECT_LIBRARIES, KL_COUNT(INSPECT_LIBRARIES)))
            continue;
        if (strncmp(f->needed[i], "libomp", 6) == 0)
            out->refused = KL_S("it is compiled for LLVM's OpenMP, which kernels are not offered: "
                                "compile with gcc (unset KLINEAGE_CC)");
        else
            out->suspicious = kl_arena_printf(a, "it needs the library %.60s", f->needed[i]);
    }
    if (!out->suspicious.len) check_symbols(out, a, k, f);
}

/* The loader's own reader, so that nothing is loaded that was not looked at. */
static void check_image(kl_artefact *out, kl_arena *a, kl_str bytes) {
    kl_error e = {0};
    kli_image image;
    if (kli_image_read(&image, a, bytes, &e))
        out->suspicious = kl_arena_printf(a, "it has %.120s", e.message);
}

kl_err kli_c_inspect(kl_artefact *out, kl_arena *a, const kl_kernel *k, kl_error *e) {
    kl_str bytes;
    kli_elf f;
    kl_err code = kli_fs_read(&bytes, a, out->path.ptr, (size_t)1 << 30, e);
    if (!code) code = kli_elf_read(&f, a, bytes, e);
    if (code) return code;
    kli_feature_set(out, a, "text_bytes", (double)f.text_bytes);
    kli_feature_set(out, a, "static_bytes", (double)(f.data_bytes + f.bss_bytes));
    if (k->trusted) return KL_OK;
    if (!out->cached) code = kli_inspect_making(out, a, e);
    if (code || out->suspicious.len || out->refused.len) return code;
    check_structure(out, a, k, &f);
    if (!out->suspicious.len && !out->refused.len) check_image(out, a, bytes);
    return out->suspicious.len || out->refused.len
               ? KL_OK
               : kli_inspect_code(
                     out, a, (const char *const[]){kli_fs_basename(out->path.ptr).ptr, NULL}, e);
}

/* capture_program.c - a program that uses a GPU through the driver, to be watched by klineage
 * capture: y = 2.5 x, in the ways in which programs reach a driver.
 *
 * usage: capture_program CUBIN HOW...
 *   symbol   libcuda is opened, its functions are asked for by dlsym
 *   address  by cuGetProcAddress, as the runtime does
 *   linked   by their names alone: what is preloaded has them
 * and further words: library (cuLibraryLoadData), struct (one parameter), long (a name of C++),
 * longest (of 2880 bytes), graph (a node), map (a tensor map), twice, none (launches nothing), fail
 * (ends with status 3), die (ends by a signal), wait (until it is interrupted), fork (from a
 * child), text (code as PTX). SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda_api.h"
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ELEMENTS = 1000, FLOAT32 = 7 };

static int n_words;
static char **all_words;
static void *driver;
static kl_cu_result (*by_address)(const char *, void **, int, uint64_t, int *);

kl_cu_result cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, void *, void **, void **) __attribute__((weak));
kl_cu_result cuModuleLoadData(void **, const void *) __attribute__((weak));
kl_cu_result cuModuleGetFunction(void **, void *, const char *) __attribute__((weak));
kl_cu_result cuMemAlloc_v2(kl_cu_ptr *, size_t) __attribute__((weak));

static bool has_word(const char *word) {
    for (int i = 0; i < n_words; i++)
        if (strcmp(all_words[i], word) == 0) return true;
    return false;
}

static void check(bool good, const char *what) {
    if (good) return;
    (void)fprintf(stderr, "capture_program: %s failed\n", what);
    exit(2);
}

static void *linked(const char *name) {
    if (strcmp(name, "cuLaunchKernel") == 0) return (void *)(uintptr_t)cuLaunchKernel;
    if (strcmp(name, "cuModuleLoadData") == 0) return (void *)(uintptr_t)cuModuleLoadData;
    if (strcmp(name, "cuModuleGetFunction") == 0) return (void *)(uintptr_t)cuModuleGetFunction;
    if (strcmp(name, "cuMemAlloc") == 0) return (void *)(uintptr_t)cuMemAlloc_v2;
    return NULL;
}

/* The function of this name, without its version. */
static void *of(const char *name) {
    char newer[64];
    void *found = has_word("linked") ? linked(name) : NULL;
    if (!found && has_word("address")) (void)by_address(name, &found, 13000, 0, NULL);
    (void)snprintf(newer, sizeof newer, "%s_v2", name);
    if (!found) found = dlsym(driver, newer);
    if (!found) found = dlsym(driver, name);
    check(found != NULL, name);
    return found;
}

static kl_cu_ptr memory(size_t bytes) {
    kl_cu_ptr data = 0;
    kl_cu_result (*allocate)(kl_cu_ptr *, size_t) =
        (kl_cu_result(*)(kl_cu_ptr *, size_t))(uintptr_t)of("cuMemAlloc");
    check(!allocate(&data, bytes), "cuMemAlloc");
    return data;
}

static char *code_of(const char *path) {
    char *bytes = calloc(1, 1 << 20);
    FILE *f = fopen(path, "rb");
    check(f && bytes && fread(bytes, 1, 1 << 20, f) > 0 && fclose(f) == 0, path);
    return bytes;
}

static void *function_of(const char *path, const char *name) {
    void *home = NULL, *f = NULL;
    const bool library = has_word("library");
    char *code = has_word("text") ? strdup(".version 8.0") : code_of(path);
    if (library)
        check(!((kl_cu_result(*)(void **, const void *, void *, void *, unsigned, void *, void *,
                                 unsigned))(uintptr_t)of("cuLibraryLoadData"))(
                  &home, code, NULL, NULL, 0, NULL, NULL, 0),
              "cuLibraryLoadData");
    else
        check(!((kl_cu_result(*)(void **, const void *))(uintptr_t)of("cuModuleLoadData"))(&home,
                                                                                           code),
              "cuModuleLoadData");
    free(code); /* nobody may need it any more */
    check(!((kl_cu_result(*)(void **, void *, const char *))(uintptr_t)of(
              library ? "cuLibraryGetKernel" : "cuModuleGetFunction"))(&f, home, name),
          "cuModuleGetFunction");
    return f;
}

/* CUDA_KERNEL_NODE_PARAMS */
typedef struct {
    void *function;
    unsigned grid[3], block[3], shared;
    void **arguments, **extra;
    void *kernel, *context;
} node;

static void launch(void *f, unsigned threads, void **arguments) {
    if (has_word("graph")) {
        void *graph = NULL, *made = NULL;
        const node n = {f, {4, 1, 1}, {threads, 1, 1}, 0, arguments, NULL, NULL, NULL};
        check(!((kl_cu_result(*)(void **, unsigned))(uintptr_t)of("cuGraphCreate"))(&graph, 0) &&
                  !((kl_cu_result(*)(void **, void *, void *, size_t, const node *))(uintptr_t)of(
                      "cuGraphAddKernelNode"))(&made, graph, NULL, 0, &n),
              "cuGraphAddKernelNode");
        return;
    }
    check(!((kl_cu_result(*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, void *, void **, void **))(uintptr_t)of("cuLaunchKernel"))(
              f, 4, 1, 1, threads, 1, 1, 0, NULL, arguments, NULL),
          "cuLaunchKernel");
}

static void launch_map(const char *path, kl_cu_ptr x, kl_cu_ptr y, float s, int n) {
    kli_cu_tensormap map;
    const uint64_t dims[] = {ELEMENTS}, strides[] = {0};
    const uint32_t box[] = {64}, steps[] = {1};
    void *arguments[] = {&map, &s, &y, &n};
    check(!((kl_cu_result(*)(kli_cu_tensormap *, int, uint32_t, kl_cu_ptr, const uint64_t *,
                             const uint64_t *, const uint32_t *, const uint32_t *, int, int, int,
                             int))(uintptr_t)of("cuTensorMapEncodeTiled"))(
              &map, FLOAT32, 1, x, dims, strides, box, steps, 0, 0, 2, 0),
          "cuTensorMapEncodeTiled");
    launch(function_of(path, "through_map"), 256, arguments);
}

static const char *struct_kernel(void) {
    return has_word("long")      ? "_Z12scale_structILi128EEv6struct"
           : has_word("longest") ? "scale_longest"
                                 : "scale_struct";
}

static void run(const char *path) {
    const kl_cu_ptr x = memory(ELEMENTS * 4), y = memory(ELEMENTS * 4 + 512) + 256;
    float s = 2.5f;
    int n = ELEMENTS;
    struct {
        kl_cu_ptr x, y;
        int n;
        float s;
        unsigned char more[2856]; /* "long" takes 1720 bytes, as vendors' products do, "longest"
                                   * all, as their convolutions do */
    } whole = {x, y, n, s, {0}};
    for (size_t i = 0; i < sizeof whole.more; i++) whole.more[i] = (unsigned char)(i % 251);
    void *apart[] = {(void *)(uintptr_t)&x, &s, (void *)(uintptr_t)&y, &n}, *joined[] = {&whole};
    if (has_word("map"))
        launch_map(path, x, y, s, n);
    else if (has_word("struct") || has_word("long") || has_word("longest"))
        launch(function_of(path, struct_kernel()), 128, joined);
    else
        launch(function_of(path, "scale"), 256, apart);
    if (has_word("twice")) launch(function_of(path, "scale"), 256, apart);
}

static void end(void) {
    if (has_word("fail")) exit(3);
    if (has_word("die")) (void)raise(SIGSEGV);
    if (has_word("wait")) {
        (void)printf("waiting\n");
        (void)fflush(stdout);
        for (;;) (void)pause();
    }
}

int main(int argc, char **argv) {
    n_words = argc, all_words = argv;
    check(argc > 2, "usage: capture_program CUBIN HOW");
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    check(driver != NULL, "opening libcuda.so.1");
    *(void **)&by_address = dlsym(driver, "cuGetProcAddress_v2");
    (void)printf("2.5 x\n");
    (void)fflush(stdout);
    if (has_word("fork")) {
        const pid_t child = fork();
        if (child > 0) (void)waitpid(child, NULL, 0);
        if (child > 0) return 0;
    }
    if (!has_word("none")) run(argv[1]);
    end();
    return 0;
}

/* cuda_build.c - CUDA C++ to a cubin through NVRTC, in a process of its own.
 *
 * NVRTC compiles in a third of nvcc's time, because it starts no programs and parses no host
 * headers.  It has no C library headers either; the few that device code includes for their types
 * are given to it from here, so that the same source compiles in both. A source that wants more
 * falls to nvcc (surface/cuda/compile.c).  SPDX-License-Identifier: Apache-2.0 */
#include "cuda_build.h"
#include "cuda_api.h"
#include <klineage/limits.h>
#include "base/fs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 64-bit integers are long long, as in the libcu++ headers that may follow. */
#define INTEGERS                                                                                   \
    "#pragma once\ntypedef signed char int8_t; typedef short int16_t; typedef int int32_t; "       \
    "typedef long long "                                                                           \
    "int64_t;\n"                                                                                   \
    "typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int "        \
    "uint32_t;\n"                                                                                  \
    "typedef unsigned long long uint64_t; typedef int64_t intptr_t; typedef uint64_t uintptr_t;\n" \
    "#define INT8_MAX 127\n#define INT16_MAX 32767\n#define INT32_MAX 2147483647\n#define "        \
    "INT32_MIN (-2147483647 - "                                                                    \
    "1)\n"                                                                                         \
    "#define INT64_MAX 9223372036854775807LL\n#define INT64_MIN (-9223372036854775807LL - "        \
    "1)\n#define UINT8_MAX 255\n"                                                                  \
    "#define UINT16_MAX 65535\n#define UINT32_MAX 4294967295u\n#define UINT64_MAX "                \
    "18446744073709551615ull\n"
#define IN_STD                                                                                     \
    "namespace std { using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using "    \
    "::uint8_t;"                                                                                   \
    " using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::intptr_t; using ::uintptr_t; " \
    "}\n"
#define CUDA_BUILD_SIZES                                                                           \
    "#pragma once\ntypedef unsigned long size_t; typedef long ptrdiff_t;\n#ifndef NULL\n#define "  \
    "NULL 0\n#endif\n"
#define REALS                                                                                      \
    "#pragma once\n#define FLT_MAX 3.402823466e+38F\n#define FLT_MIN 1.175494351e-38F\n#define "   \
    "FLT_EPSILON "                                                                                 \
    "1.192092896e-07F\n"                                                                           \
    "#define DBL_MAX 1.7976931348623158e+308\n#define DBL_MIN 2.2250738585072014e-308\n#define "   \
    "DBL_EPSILON "                                                                                 \
    "2.2204460492503131e-16\n"
#define WHOLES                                                                                     \
    "#pragma once\n#define CHAR_BIT 8\n#define INT_MAX 2147483647\n#define INT_MIN (-2147483647 "  \
    "- 1)\n#define "                                                                               \
    "UINT_MAX 4294967295u\n"                                                                       \
    "#define LONG_MAX 9223372036854775807L\n#define LLONG_MAX 9223372036854775807LL\n#define "     \
    "ULLONG_MAX "                                                                                  \
    "18446744073709551615ull\n"
#define MATHS                                                                                      \
    "#pragma once\n#ifndef INFINITY\n#define INFINITY "                                            \
    "__int_as_float(0x7f800000)\n#endif\n#ifndef NAN\n"                                            \
    "#define NAN __int_as_float(0x7fffffff)\n#endif\n#ifndef M_PI\n#define M_PI "                  \
    "3.14159265358979323846\n#endif\n"                                                             \
    "#ifndef M_LOG2E\n#define M_LOG2E 1.4426950408889634074\n#endif\n"
/* The driver's header declares host functions, which NVRTC refuses; device code wants one type of
 * it. */
#define DRIVER                                                                                     \
    "#pragma once\ntypedef struct __attribute__((aligned(64))) CUtensorMap_st { unsigned long "    \
    "long opaque[16]; } "                                                                          \
    "CUtensorMap;\n"
/* nvcc brings these in without being asked, so sources rely on them. */
#define PRELUDE "#pragma once\n#include <math.h>\n#include <stdint.h>\n"
#define CUDA_BUILD_NOTHING                                                                         \
    "#pragma once\n" /* what the header would declare is built in, or no business of device code   \
                      */

/* Two lists of one length, as NVRTC wants them. */
static const char *const HEADER_NAMES[] = {
    "stdint.h", "cstdint", "stddef.h",  "cstddef",  "float.h",           "cfloat",  "limits.h",
    "climits",  "math.h",  "cmath",     "stdlib.h", "cstdlib",           "stdio.h", "cstdio",
    "string.h", "cstring", "stdbool.h", "cuda.h",   "klineage_prelude.h"};
static const char *const HEADER_TEXTS[] = {INTEGERS,
                                           INTEGERS IN_STD,
                                           CUDA_BUILD_SIZES,
                                           CUDA_BUILD_SIZES,
                                           REALS,
                                           REALS,
                                           WHOLES,
                                           WHOLES,
                                           MATHS,
                                           MATHS,
                                           CUDA_BUILD_NOTHING,
                                           CUDA_BUILD_NOTHING,
                                           CUDA_BUILD_NOTHING,
                                           CUDA_BUILD_NOTHING,
                                           CUDA_BUILD_NOTHING,
                                           CUDA_BUILD_NOTHING,
                                           CUDA_BUILD_NOTHING,
                                           DRIVER,
                                           PRELUDE};
_Static_assert(KL_COUNT(HEADER_NAMES) == KL_COUNT(HEADER_TEXTS), "each header has a name");

typedef int size_of_result(kl_nvrtc_program program, size_t *bytes);
typedef int get_result(kl_nvrtc_program program, char *data);

/* A result of the compiler, written to a file, or to stdout where `path` is NULL. */
static bool save(kl_nvrtc_program program, size_of_result *size, get_result *get, const char *path,
                 bool is_text) {
    size_t bytes = 0;
    if (size(program, &bytes) || bytes == 0) return path == NULL;
    char *data = calloc(bytes + 1, 1);
    if (!data) kl_oom(bytes);
    bool ok = get(program, data) == 0;
    if (is_text) bytes = strlen(data); /* text counts its NUL */
    if (ok && path)
        ok = kli_fs_write(path, (kl_str){data, bytes}, kl_ignored()) == KL_OK;
    else if (ok)
        ok = fwrite(data, 1, bytes, stdout) == bytes;
    free(data);
    return ok;
}

static int cuda_build_build(const kli_nvrtc_api *nvrtc, const char *source, char **argv, int argc) {
    kl_nvrtc_program program;
    if (nvrtc->program_new(&program, source, "kernel.cu", (int)KL_COUNT(HEADER_TEXTS), HEADER_TEXTS,
                           HEADER_NAMES)) {
        puts("NVRTC does not take this source");
        return 1;
    }
    bool ok = nvrtc->compile(program, argc - 4, (const char *const *)(argv + 4)) == 0;
    (void)save(program, nvrtc->log_bytes, nvrtc->log, NULL, true);
    ok = ok && save(program, nvrtc->cubin_bytes, nvrtc->cubin, argv[2], false);
    if (ok)
        (void)save(program, nvrtc->ptx_bytes, nvrtc->ptx, argv[3],
                   true); /* features only: its absence is no failure */
    (void)nvrtc->program_free(&program);
    return fflush(stdout) == 0 && ok ? 0 : 1;
}

int kli_cuda_build_main(int argc, char **argv) {
    char why[256] = "";
    if (argc < 4) return 2;
    const kli_nvrtc_api *nvrtc =
        kli_nvrtc_api_load(strcmp(argv[0], "-") == 0 ? NULL : argv[0], why, sizeof why);
    if (!nvrtc) return fprintf(stderr, "%s\n", why), 2;
    kl_arena *a = kl_arena_new();
    kl_str source;
    int status = 1;
    if (kli_fs_read(&source, a, argv[1], KL_MAX_SOURCE_BYTES, kl_ignored()) == KL_OK)
        status = cuda_build_build(nvrtc, source.ptr, argv, argc);
    else
        printf("cannot read %s\n", argv[1]);
    kl_arena_free(a);
    return status;
}

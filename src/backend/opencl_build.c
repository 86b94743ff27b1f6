/* opencl_build.c - one OpenCL build in a process of its own, confined by the gate that started it.
 *
 * The driver compiles inside its own library, so a hostile source attacks this process and nothing
 * else.  What it makes is the driver's own program binary.  Kernels are created once, so that a
 * source without any is refused here, with the log. Not here: code for a local size, which the
 * driver makes when the plan is known (runner_opencl.c). SPDX-License-Identifier: Apache-2.0 */
#include "opencl_build.h"
#include "isolation.h"
#include "opencl_api.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nothing of a candidate has been read yet. */
static bool opencl_build_confine(void) {
    kli_jail jail;
    const char *dir = getenv("TMPDIR");
    if (!dir) return false;
    setenv("KLINEAGE_SCRATCH", dir, 1);
    kli_jail_open(&jail, dir, NULL);
    int failed = kli_jail_enter(&jail);
    kli_jail_close(&jail);
    return failed == 0;
}

static char *opencl_build_read_file(const char *path) {
    FILE *f = fopen(path, "re");
    char *text = f ? malloc((1u << 20) + 1) : NULL;
    if (text) text[fread(text, 1, 1u << 20, f)] = '\0';
    if (f) fclose(f);
    return text;
}

static void print_log(const kli_opencl_device *d, cl_program program) {
    size_t n = 0;
    if (d->api->clGetProgramBuildInfo(program, d->device, CL_PROGRAM_BUILD_LOG_ID, 0, NULL, &n) !=
            CL_SUCCESS ||
        !n)
        return;
    char *log = calloc(1, n + 1);
    if (!log) kl_oom(n);
    if (d->api->clGetProgramBuildInfo(program, d->device, CL_PROGRAM_BUILD_LOG_ID, n, log, NULL) ==
        CL_SUCCESS)
        fputs(log, stdout);
    free(log);
}

/* Some drivers keep program-scope variables in a buffer of their own, where inspection of the
 * binary cannot see them; a driver that does not know the question has none, or has them in the
 * binary. */
static bool keeps_state(const kli_opencl_device *d, cl_program program) {
    size_t bytes = 0;
    return d->api->clGetProgramBuildInfo(program, d->device,
                                         CL_PROGRAM_BUILD_GLOBAL_VARIABLE_SIZE_ID, sizeof bytes,
                                         &bytes, NULL) == CL_SUCCESS &&
           bytes > 0;
}

static int write_binary(const kli_opencl_device *d, cl_program program, const char *path) {
    size_t n = 0;
    if (d->api->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES_ID, sizeof n, &n, NULL) !=
            CL_SUCCESS ||
        !n)
        return 2;
    unsigned char *bytes = malloc(n);
    if (!bytes) kl_oom(n);
    FILE *f = fopen(path, "we");
    int failed = d->api->clGetProgramInfo(program, CL_PROGRAM_BINARIES_ID, sizeof bytes, &bytes,
                                          NULL) != CL_SUCCESS ||
                 !f || fwrite(bytes, 1, n, f) != n;
    if (f) failed |= fclose(f) != 0;
    free(bytes);
    return failed ? 2 : 0;
}

int kli_opencl_build_main(int argc, char **argv) {
    char why[256] = "";
    kli_opencl_device d;
    cl_int code;
    cl_uint n_kernels = 0;
    bool confined = opencl_build_confine();
    const char *source = confined && argc == 3 ? opencl_build_read_file(argv[0]) : NULL;
    if (!source) return fprintf(stderr, "klineage-worker: build-opencl SOURCE OUT OPTIONS\n"), 2;
    if (!kli_opencl_open(&d, 0, false, why, sizeof why)) return fprintf(stderr, "%s\n", why), 2;
    cl_program program = d.api->clCreateProgramWithSource(d.context, 1, &source, NULL, &code);
    if (code == CL_SUCCESS)
        code = d.api->clBuildProgram(program, 1, &d.device, argv[2], NULL, NULL);
    if (program) print_log(&d, program);
    if (code == CL_SUCCESS) code = d.api->clCreateKernelsInProgram(program, 0, NULL, &n_kernels);
    if (code == CL_SUCCESS && n_kernels == 0) return puts("the source holds no kernel"), 1;
    if (code != CL_SUCCESS) return printf("%s\n", kli_opencl_error(code)), 1;
    if (keeps_state(&d, program))
        return puts("program-scope variables would outlive a launch; a kernel has none"), 1;
    return write_binary(&d, program, argv[1]);
}

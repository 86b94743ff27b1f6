/* cpu_probe.c - what this processor is, and what no kernel on it can exceed.
 *
 * The bounds are generous on purpose (6 GHz, twice the arithmetic units that are known to exist):
 * they only reject what is impossible, never what is merely very good.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "cpu_probe.h"
#include "device_json.h"
#include "base/fs.h"
#include "base/proc.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define GENEROUS_HZ 6e9
#define COMPILER_NS                                                                                \
    40000000000ll /* to say its version: a few milliseconds, and seconds on a machine without      \
                     memory */

/* Value of the first "key : value" line of /proc/cpuinfo; empty when absent. */
static kl_str cpuinfo(kl_arena *a, const char *key) {
    char line[8192];
    FILE *f = fopen("/proc/cpuinfo", "re");
    kl_str found = {0};
    while (f && !found.ptr && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (colon && strncmp(line, key, strlen(key)) == 0)
            found = kl_arena_copy(a, kl_str_trim(kl_str_of(colon + 1)));
    }
    if (f) fclose(f);
    return found;
}

static bool cpu_probe_has(kl_str flags, const char *flag) {
    size_t n = strlen(flag);
    for (const char *p = flags.ptr; p && (p = strstr(p, flag)); p += n)
        if ((p == flags.ptr || p[-1] == ' ') && (p[n] == ' ' || !p[n])) return true;
    return false;
}

static const char *cpu_probe_arch_of(kl_str flags) {
#if defined(__x86_64__)
    if (cpu_probe_has(flags, "avx512f") && cpu_probe_has(flags, "avx512bw") &&
        cpu_probe_has(flags, "avx512vl") && cpu_probe_has(flags, "avx512dq"))
        return "x86-64-v4";
    if (cpu_probe_has(flags, "avx2") && cpu_probe_has(flags, "fma") && cpu_probe_has(flags, "bmi2"))
        return "x86-64-v3";
    return cpu_probe_has(flags, "sse4_2") ? "x86-64-v2" : "x86-64";
#else
    return cpu_probe_has(flags, "sve") ? "aarch64-sve" : "aarch64";
#endif
}

/* Operations per cycle of one core, by data type: lanes x 2 (multiply, add) x 4 units. */
static void bound_arithmetic(kl_device *d, kl_str flags) {
    double bytes = cpu_probe_has(flags, "avx512f")                              ? 64
                   : cpu_probe_has(flags, "avx") || cpu_probe_has(flags, "sve") ? 32
                                                                                : 16;
    double matrix = cpu_probe_has(flags, "amx_tile") ? 8192 : 0;
    double scale = GENEROUS_HZ * (double)d->limits.cores;
    for (int t = KL_F64; t < KL_DTYPE_END; t++) {
        double per_cycle = bytes / (double)kl_dtype_bytes((kl_dtype)t) * 8;
        bool narrow = t == KL_F16 || t == KL_BF16 || kl_dtype_bytes((kl_dtype)t) == 1;
        d->peak_flops[t] = scale * (narrow && matrix > per_cycle ? matrix : per_cycle);
    }
    d->peak_bytes = scale * 4 * bytes;
}

/* One line of /sys/devices/system/cpu/cpu0/cache/indexI/NAME; false where there is none. */
static bool read_cache(char *text, size_t room, int i, const char *name) {
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, name);
    FILE *f = fopen(path, "re");
    const bool read = f && fgets(text, (int)room, f);
    if (f) fclose(f);
    return read;
}

/* Of data, of one level; 0: the largest of all. */
static int64_t cache_bytes(int level) {
    int64_t largest = 0;
    char text[32];
    for (int i = 0; i < 8; i++) {
        char *end = text;
        if (read_cache(text, sizeof text, i, "type") && *text == 'I') continue; /* instructions */
        if (level && (!read_cache(text, sizeof text, i, "level") || atoi(text) != level)) continue;
        if (!read_cache(text, sizeof text, i, "size")) continue;
        int64_t size = strtoll(text, &end, 10);
        size *= *end == 'K' ? 1024 : *end == 'M' ? 1048576 : 1;
        if (size > largest) largest = size;
    }
    return largest;
}

static kl_str extensions_of(kl_arena *a, kl_str flags) {
    static const char *const NAMES[] = {
        "avx_vnni",     "avx512_vnni",      "avx512_bf16", "avx512_fp16", "avx512vbmi",
        "avx512_vbmi2", "avx512_vpopcntdq", "amx_tile",    "amx_int8",    "amx_bf16",
        "gfni",         "asimddp",          "i8mm",        "bf16",        "sve2"};
    kl_buf b = {0};
    for (size_t i = 0; i < KL_COUNT(NAMES); i++)
        if (cpu_probe_has(flags, NAMES[i])) kl_buf_printf(&b, "%s%s", b.len ? " " : "", NAMES[i]);
    return kl_buf_take(&b, a);
}

void kli_cpu_describe(kl_device *d, kl_arena *a) {
    cpu_set_t set;
    kl_str flags = cpuinfo(a, "flags");
    if (!flags.len) flags = cpuinfo(a, "Features");
    d->arch = kl_str_of(cpu_probe_arch_of(flags));
    d->limits.cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                                  : sysconf(_SC_NPROCESSORS_ONLN);
    d->limits.sms = d->limits.cores;
    d->limits.memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    d->l2_bytes = cache_bytes(0);
    d->core_l1_bytes = cache_bytes(1);
    d->core_l2_bytes = cache_bytes(2);
    d->extensions = extensions_of(a, flags);
    d->name = cpuinfo(a, "model name");
    if (!d->name.len) d->name = kl_str_of(d->arch.ptr);
    bound_arithmetic(d, flags);
}

/* "gcc 12.2.0" of `cc --version`'s first line; empty when it does not run.  `*busy`: whether there
 * is one could not be found out. */
static kl_str compiler(kl_arena *a, bool *busy) {
    const char *cc = getenv("KLINEAGE_CC");
    const char *argv[] = {cc && *cc ? cc : "gcc", "-dumpfullversion", "-dumpversion", NULL};
    kli_proc_spec spec = {.argv = argv, .timeout_ns = COMPILER_NS};
    kli_proc_result r;
    const kl_err code = kli_proc_run(&r, a, &spec, kl_ignored());
    *busy = code ? code == KL_ESPAWN && errno == EAGAIN : r.timed_out || r.signal == SIGKILL;
    if (code || r.exit_code != 0) return (kl_str){0};
    bool clang = strstr(argv[0], "clang") != NULL;
    return kl_arena_printf(a, "%s %.*s", clang ? "clang" : "gcc", KL_STR_ARG(kl_str_trim(r.out)));
}

int kli_cpu_probe(void) {
    kl_arena *a = kl_arena_new();
    struct utsname system;
    kl_device d = {.backend = KL_BACKEND_CPU};
    kli_cpu_describe(&d, a);
    bool busy;
    d.toolchain = compiler(a, &busy);
    if (!d.toolchain.len) {
        const char *named = getenv("KLINEAGE_CC");
        if (busy)
            fprintf(stderr, "the C compiler was stopped before it answered\n");
        else if (named && *named)
            fprintf(stderr, "KLINEAGE_CC is '%.200s', which does not run as a C compiler\n", named);
        else
            fprintf(stderr, "no C compiler: neither gcc, clang nor cc is on PATH\n");
        kl_arena_free(a);
        return busy ? KLI_PROBE_BUSY : 1;
    }
    kl_str major = d.toolchain; /* "gcc 12.2.0" -> "gcc-12" */
    char text[64];
    snprintf(text, sizeof text, "%.*s", KL_STR_ARG(major));
    for (char *p = text; *p; p++)
        if (*p == ' ') *p = '-';
    if (strchr(text, '.')) *strchr(text, '.') = '\0';
    d.platform = kl_arena_printf(a, "%s/%s", d.arch.ptr, text);
    if (uname(&system) == 0) d.driver = kl_arena_printf(a, "%s %s", system.sysname, system.release);
    int status = kli_device_print(&d);
    kl_arena_free(a);
    return status;
}

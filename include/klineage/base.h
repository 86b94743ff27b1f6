/* base.h - words that every other header uses: text, arenas, errors, data types.
 *
 * Owns no state.  Memory exhaustion aborts through kl_oom(), so no allocation here returns NULL;
 * everything else that can fail in the world (files, processes, parsing) returns a kl_err and fills
 * a kl_error that the caller owns. SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_BASE_H
#define KLINEAGE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Around the declarations of every public header: C linkage, and visible outside the shared
 * libraries, which hide whatever else they hold. */
#ifdef __cplusplus
#define KL_API_BEGIN                                                                               \
    extern "C" {                                                                                   \
    _Pragma("GCC visibility push(default)")
#define KL_API_END                                                                                 \
    _Pragma("GCC visibility pop")                                                                  \
    }
#else
#define KL_API_BEGIN _Pragma("GCC visibility push(default)")
#define KL_API_END _Pragma("GCC visibility pop")
#endif

KL_API_BEGIN

#define KL_MUST_USE __attribute__((warn_unused_result))
#define KL_NORETURN __attribute__((noreturn)) /* _Noreturn is not C++ */
#define KL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define KL_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A broken invariant is a bug: says which and where, then aborts.  On in every build. */
#define KL_ASSERT(cond) ((cond) ? (void)0 : kl_bug(#cond, __FILE__, __LINE__))
KL_NORETURN void kl_bug(const char *what, const char *file, int line);
KL_NORETURN void kl_oom(size_t bytes);

/* ---- text -------------------------------------------------------------------------------- */

/* A borrowed run of bytes; not NUL-terminated unless it says so.  The all-zero value is the empty
 * text. */
typedef struct {
    const char *ptr;
    size_t len;
} kl_str;

#ifdef __cplusplus
#define KL_S(literal) (kl_str{"" literal, sizeof(literal) - 1})
#else
#define KL_S(literal) ((kl_str){"" literal, sizeof(literal) - 1})
#endif
#define KL_STR_ARG(s) (int)(s).len, (s).ptr /* for "%.*s" */

kl_str kl_str_of(const char *c_string); /* NULL gives the empty text */
bool kl_str_eq(kl_str a, kl_str b);
bool kl_str_starts(kl_str s, kl_str prefix);
bool kl_str_ends(kl_str s, kl_str suffix);
kl_str kl_str_trim(kl_str s); /* without white space at both ends */
/* Takes what stands before the next `end`, and that, off the beginning of `rest`; false when
 * nothing is left. */
bool kl_str_cut(kl_str *part, kl_str *rest, char end);

/* ---- arena ------------------------------------------------------------------------------- */

/* A growing arena.  Everything allocated from it is zeroed, aligned to 16 and lives until
 * kl_arena_free. */
typedef struct kl_arena kl_arena;

kl_arena *kl_arena_new(void);
void kl_arena_free(kl_arena *a); /* accepts NULL */
void *kl_arena_alloc(kl_arena *a, size_t count, size_t size);
kl_str kl_arena_copy(kl_arena *a, kl_str s);                               /* NUL-terminated copy */
kl_str kl_arena_printf(kl_arena *a, const char *fmt, ...) KL_PRINTF(2, 3); /* NUL-terminated */
#define KL_NEW(arena, type) ((type *)kl_arena_alloc((arena), 1, sizeof(type)))
#define KL_ARRAY(arena, type, count)                                                               \
    ((type *)kl_arena_alloc((arena), (size_t)(count), sizeof(type)))
/* The address of a new last element of `array`, all zero; `n` counts one more.  Starts with NULL
 * and 0, and grows by this alone: how much room there is follows from `n`. */
#define KL_PUSH(arena, array, n)                                                                   \
    ((array) = (__typeof__(array))kl_arena_grow((arena), (array), (size_t)(n), sizeof *(array)),   \
     &(array)[(n)++])
void *kl_arena_grow(kl_arena *a, void *array, size_t n,
                    size_t size); /* room for one more; for KL_PUSH */

/* ---- buffer ------------------------------------------------------------------------------ */

/* Text under construction.  {0} is empty; kl_buf_fini frees.  `ptr` is NUL-terminated once
 * something was added. */
typedef struct {
    char *ptr;
    size_t len, cap;
} kl_buf;

void kl_buf_add(kl_buf *b, kl_str s);
void kl_buf_printf(kl_buf *b, const char *fmt, ...) KL_PRINTF(2, 3);
kl_str kl_buf_str(const kl_buf *b); /* borrowed; dies with the next change */
void kl_buf_fini(kl_buf *b);
kl_str kl_buf_take(kl_buf *b, kl_arena *a); /* in the arena, NUL-terminated; `b` is finished */

/* ---- errors ------------------------------------------------------------------------------ */

/* The world failed.  0 is success; a kernel that is wrong or does not compile is a verdict, never
 * one of these. */
typedef enum {
    KL_OK = 0,
    KL_EIO = -1,        /* a file, pipe or disk failed */
    KL_ENOENT = -2,     /* a named thing does not exist */
    KL_EPARSE = -3,     /* text that does not follow its format; the message has line and caret */
    KL_EINVAL = -4,     /* well-formed but impossible: unknown axis, size out of range */
    KL_ENODEV = -5,     /* device, library or compiler is not on this machine */
    KL_ESPAWN = -6,     /* a worker did not start or died before it was asked anything */
    KL_EISOLATION = -7, /* the required assurance is not available here */
    KL_EINTR = -8,      /* the user asked to stop */
    KL_ELIMIT = -9,     /* a named bound of limits.h was passed */
    KL_EBUSY = -10,     /* another process holds it */
    KL_PENDING = -11,   /* the answer is not there yet (spool, mailbox); call again later */
    KL_EBUDGET = -12,   /* the next call could pass the cap; nothing was asked */
    KL_EMODEL = -13,    /* a model's provider said no for good: wrong key, unknown model, refusal */
    KL_EBASELINE = -14, /* what a kernel was to be timed against failed itself; of the kernel
                           nothing is said */
} kl_err;

const char *kl_err_name(kl_err code); /* "no device", ... */

/* What went wrong, where, and what to type next.  The caller owns it; {0} is fine to pass.  Never
 * NULL, in no function of these headers: who does not want to know passes kl_ignored(). */
typedef struct {
    kl_err code;
    char where[256];    /* file:line:column, device, process */
    char message[1024]; /* one line */
    char detail[3072];  /* source line and caret, last lines of a log; may be empty */
    char hint[512];     /* the next command to type; may be empty */
} kl_error;

kl_error *kl_ignored(void); /* of this thread: overwritten, never read */

/* Fill `e` and return `code`, so that a failing function ends with `return kl_fail(e, KL_EIO, path,
 * "...")`. */
kl_err kl_fail(kl_error *e, kl_err code, const char *where, const char *fmt, ...) KL_PRINTF(4, 5);
kl_err kl_hint(kl_error *e, const char *fmt, ...)
    KL_PRINTF(2, 3); /* adds a hint; returns e->code */
/* Like kl_fail for text with a position: `where` becomes file:line:column and `detail` the line
 * with a caret. */
kl_err kl_fail_at(kl_error *e, kl_err code, kl_str file, kl_str text, size_t offset,
                  const char *fmt, ...) KL_PRINTF(6, 7);
void kl_error_render(const kl_error *e,
                     kl_buf *out); /* the whole message as a person reads it, newline at the end */

/* ---- who watches a call ------------------------------------------------------------------ */

typedef enum { KL_LOG_DEBUG, KL_LOG_INFO, KL_LOG_WARNING } kl_log_level;

/* What a call says while it runs, and how it is stopped.  A slot that is NULL says nothing, shows
 * nothing, stops nothing; this library writes to no stream of its own.  Slots run on the thread
 * that made the call, `cancelled` every few milliseconds; they must not call the library. */
typedef struct {
    void (*log)(void *ctx, kl_log_level level,
                const char *line); /* one message, without a newline at its end */
    void (*progress)(void *ctx,
                     const char *line); /* replaces the one before; "": nothing to show */
    bool (*cancelled)(void *ctx);       /* true: the call ends with KL_EINTR, soon */
    void *ctx;
} kl_monitor;

/* `m` (borrowed) watches what this thread calls from now on; NULL changes nothing.  Returns the one
 * before, to be put back.  Options with a `monitor` do both for their call.  A new thread has one
 * whose slots are NULL. */
const kl_monitor *kl_monitor_use(const kl_monitor *m);

/* ---- data types -------------------------------------------------------------------------- */

typedef enum {
    KL_F64 = 1,
    KL_F32,
    KL_F16,
    KL_BF16,
    KL_F8E4M3,
    KL_F8E5M2,
    KL_I64,
    KL_I32,
    KL_I16,
    KL_I8,
    KL_U8,
    KL_BOOL,
    KL_DTYPE_END
} kl_dtype;

#define KL_MAX_DIMS 8

const char *kl_dtype_name(kl_dtype t); /* FlashInfer-Trace's name: "bfloat16" */
bool kl_dtype_parse(kl_dtype *out,
                    kl_str name); /* also the short names f32 bf16 i64 ... of directives */
size_t kl_dtype_bytes(kl_dtype t);
bool kl_dtype_is_float(kl_dtype t);
double kl_dtype_epsilon(kl_dtype t); /* unit roundoff: half the gap above 1.0; 0 for integers */
double kl_dtype_load(kl_dtype t, const void *base,
                     size_t index); /* any type, widened; i64 above 2^53 rounds */
/* Rounds once, from double, to nearest even.  Floats overflow to infinity, f8e4m3 (which has none)
 * to NaN; integers saturate and take NaN as 0. */
void kl_dtype_store(kl_dtype t, void *base, size_t index, double value);

KL_API_END
#endif

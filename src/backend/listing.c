/* listing.c - what a compiler made of a kernel, for a reader: what it said of loops, and the
 * instructions of the loop that most of the time should be spent in.
 *
 * Three notations: objdump's, cuobjdump's and PTX.  A loop is a jump backwards; the hottest one is
 * a guess from its depth and its arithmetic, nothing is measured.  Text for people and models
 * alone: no verdict rests on it.  SPDX-License-Identifier: Apache-2.0 */
#include "listing.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    MAX_INSTRUCTIONS = 1 << 18, /* that are looked at; a kernel has thousands */
    MAX_LABELS = 1 << 10,
    MAX_LOOPS = 1 << 9,
    MAX_BODY = 1 << 12,      /* instructions that a jump goes back over */
    SHOWN_INSTRUCTIONS = 25, /* some 350 tokens; a longer loop repeats itself */
    SHOWN_BYTES = 72,        /* of one instruction */
    MAX_REMARKS = 64,
    TURNS_GUESSED = 8 /* of a loop, to weigh depth against arithmetic */
};

typedef struct {
    kl_str text; /* without address and comment */
    uint64_t at;
    int back; /* where it jumps back to; -1: it does not */
} instruction;

typedef struct {
    int first, last, depth;
    double work;
} loop;

typedef struct {
    kl_arena *a;
    instruction *at;
    int n;
    kl_str label_names[MAX_LABELS];
    int label_at[MAX_LABELS], n_labels;
    loop loops[MAX_LOOPS];
    int n_loops;
} listing;

static kl_str word_of(kl_str s) {
    size_t n = 0;
    while (n < s.len && !isspace((unsigned char)s.ptr[n]) && s.ptr[n] != ';') n++;
    return (kl_str){s.ptr, n};
}

static kl_str after(kl_str s, size_t n) { return kl_str_trim((kl_str){s.ptr + n, s.len - n}); }

/* In capitals or not: machine code of GPUs is in capitals. */
static bool listing_mentions(kl_str s, const char *what) {
    const size_t n = strlen(what);
    for (size_t i = 0; i + n <= s.len; i++)
        if (strncasecmp(s.ptr + i, what, n) == 0) return true;
    return false;
}

static bool mentions_any(kl_str s, const char *const *list) {
    for (; *list; list++)
        if (listing_mentions(s, *list)) return true;
    return false;
}

#define MENTIONS(s, ...) mentions_any(s, (const char *const[]){__VA_ARGS__, NULL})

/* The operation, behind a guard ("@%p1 bra", "@!P0 BRA"). */
static kl_str operation(kl_str text) {
    const kl_str first = word_of(text);
    return first.len && *first.ptr == '@' ? word_of(after(text, first.len)) : first;
}

/* ---- reading ----------------------------------------------------------------------------- */

static bool is_jump(kl_str op) {
    return kl_str_starts(op, KL_S("j")) || kl_str_starts(op, KL_S("b.")) ||
           kl_str_starts(op, KL_S("cb")) || kl_str_starts(op, KL_S("tb")) ||
           kl_str_starts(op, KL_S("bra")) || kl_str_starts(op, KL_S("BRA")) ||
           kl_str_eq(op, KL_S("b"));
}

static int index_at(const listing *l, uint64_t address) {
    for (int i = l->n - 1; i >= 0 && i >= l->n - MAX_BODY && l->at[i].at >= address; i--)
        if (l->at[i].at == address) return i;
    return -1;
}

static int index_of_label(const listing *l, kl_str name) {
    for (int i = l->n_labels - 1; i >= 0; i--)
        if (kl_str_eq(name, l->label_names[i])) return l->label_at[i];
    return -1;
}

/* "jne 1139 <f+0x59>", "BRA 0x250", "bra $L__BB0_3"; the beginning of a function is no loop's. */
static int jumps_back(const listing *l, kl_str text) {
    const kl_str op = operation(text);
    if (!is_jump(op)) return -1;
    const kl_str args = after(text, (size_t)(op.ptr + op.len - text.ptr));
    const char *place = args.len ? memchr(args.ptr, '<', args.len) : NULL, *number = NULL;
    if (args.len && *args.ptr == '$') return index_of_label(l, word_of(args));
    if (place && !listing_mentions(args, "+0x")) return -1;
    const kl_str before = {args.ptr, place ? (size_t)(place - args.ptr) : args.len};
    for (kl_str rest = before, w = word_of(rest); w.len; w = word_of(rest)) {
        number = w.ptr;
        rest = after(rest, w.len);
    }
    return number && (place || strncmp(number, "0x", 2) == 0)
               ? index_at(l, strtoull(number, NULL, 16))
               : -1;
}

static void add_instruction(listing *l, kl_str text, uint64_t at) {
    const char *comment = memmem(text.ptr, text.len, "# ", 2);
    if (comment) text = kl_str_trim((kl_str){text.ptr, (size_t)(comment - text.ptr)});
    const int back = jumps_back(l, text);
    *KL_PUSH(l->a, l->at, l->n) = (instruction){text, at, back};
}

static void add_label(listing *l, kl_str line) {
    if (l->n_labels == MAX_LABELS) return;
    l->label_names[l->n_labels] = (kl_str){line.ptr, line.len - 1};
    l->label_at[l->n_labels++] = l->n;
}

/* "    1139:\tvfmadd231ps (%rdi),%zmm1,%zmm0" */
static bool read_native(listing *l, kl_str line) {
    const char *tab = memchr(line.ptr, '\t', line.len);
    if (!tab || tab == line.ptr || tab[-1] != ':') return false;
    add_instruction(l, after(line, (size_t)(tab - line.ptr)), strtoull(line.ptr, NULL, 16));
    return true;
}

/* "/0070/   LDG.E.128 R4, [R2] ;   / 0x... /", with asterisks; the encoding alone is no
 * instruction. */
static bool read_sass(listing *l, kl_str line) {
    const char *end = memmem(line.ptr, line.len, "*/", 2);
    if (!kl_str_starts(line, KL_S("/*")) || !end) return false;
    const kl_str text = after(line, (size_t)(end + 2 - line.ptr));
    const char *stop = memchr(text.ptr, ';', text.len);
    if (stop)
        add_instruction(l, kl_str_trim((kl_str){text.ptr, (size_t)(stop - text.ptr)}),
                        strtoull(line.ptr + 2, NULL, 16));
    return true;
}

/* "$L__BB0_3:", "@%p1 bra $L__BB0_3;"; directives begin with a dot. */
static void listing_read_ptx(listing *l, kl_str line) {
    if (kl_str_starts(line, KL_S("$")) && kl_str_ends(line, KL_S(":")))
        add_label(l, line);
    else if (kl_str_ends(line, KL_S(";")) &&
             (islower((unsigned char)*line.ptr) || *line.ptr == '@'))
        add_instruction(l, (kl_str){line.ptr, line.len - 1}, (uint64_t)l->n);
}

static void read_code(listing *l, kl_str code) {
    for (kl_str line; l->n < MAX_INSTRUCTIONS && kli_code_line(&line, &code);) {
        const kl_str plain = kl_str_trim(line);
        if (!read_native(l, line) && !read_sass(l, plain)) listing_read_ptx(l, plain);
    }
}

/* ---- loops ------------------------------------------------------------------------------- */

/* Operations of one instruction: lanes of a vector, twice for a product with a sum. */
static double listing_work_of(kl_str text) {
    static const char *const SUMS[] = {"add",  "sub", "mul", "max",  "min", "div",
                                       "sqrt", "dp",  "ex2", "mufu", NULL};
    const kl_str op = operation(text);
    const bool vector = MENTIONS(text, "%zmm", "%ymm", "%xmm"),
               one = kl_str_ends(op, KL_S("ss")) || kl_str_ends(op, KL_S("sd"));
    const bool native = listing_mentions(text, "%r") || listing_mentions(text, "%e");
    const double lanes = !vector || one                   ? 1
                         : listing_mentions(text, "%zmm") ? 16
                         : listing_mentions(text, "%ymm") ? 8
                                                          : 4;
    if (listing_mentions(op, "mma")) return 64;
    if (MENTIONS(op, "fma", "fm", "mad")) return 2 * lanes;
    return mentions_any(op, SUMS) && (vector || !native) ? lanes : 0;
}

/* Ways back to one beginning are one loop. */
static void listing_find_loops(listing *l) {
    for (int i = 0; i < l->n; i++) {
        int k = 0;
        if (l->at[i].back < 0) continue;
        KL_ASSERT(l->at[i].back <= i);
        while (k < l->n_loops && l->loops[k].first != l->at[i].back) k++;
        if (k == MAX_LOOPS) return;
        if (k == l->n_loops) l->loops[l->n_loops++] = (loop){.first = l->at[i].back};
        l->loops[k].last = i;
    }
}

static bool listing_is_within(const loop *x, const loop *y) {
    return x != y && x->first >= y->first && x->last <= y->last;
}

static bool holds_loop(const listing *l, const loop *x) {
    for (int i = 0; i < l->n_loops; i++)
        if (listing_is_within(&l->loops[i], x)) return true;
    return false;
}

/* NULL where nothing loops. */
static const loop *hottest(listing *l) {
    const loop *best = NULL;
    double most = -1;
    for (int i = 0; i < l->n_loops; i++) {
        loop *x = &l->loops[i];
        if (holds_loop(l, x)) continue;
        double score = 1;
        for (int k = x->first; k <= x->last; k++) x->work += listing_work_of(l->at[k].text);
        for (int k = 0; k < l->n_loops; k++) x->depth += listing_is_within(x, &l->loops[k]);
        for (int k = 0; k < x->depth; k++) score *= TURNS_GUESSED;
        score *= 1 + x->work;
        if (score > most) most = score, best = x;
    }
    return best;
}

/* ---- text -------------------------------------------------------------------------------- */

/* What is kept on the stack, or in a thread's local memory, for want of registers. */
static bool is_spill(kl_str text) {
    return MENTIONS(text, "(%rsp", "[sp") ||
           (listing_mentions(text, "(%rbp") && listing_mentions(text, "-0x")) ||
           MENTIONS(operation(text), "LDL", "STL", "ld.local", "st.local");
}

static bool touches_memory(kl_str text) {
    return MENTIONS(text, "(", "[") && !MENTIONS(operation(text), "lea", "nop");
}

static double weight_of(kl_str text) {
    return listing_work_of(text) + touches_memory(text) + is_spill(text);
}

/* Where the densest SHOWN_INSTRUCTIONS of a loop begin. */
static int window_of(const listing *l, const loop *x) {
    double sum = 0, most = 0;
    int best = x->first;
    for (int i = x->first; i <= x->last; i++) {
        sum += weight_of(l->at[i].text);
        const int first = i - SHOWN_INSTRUCTIONS + 1;
        if (first < x->first) continue;
        if (sum > most) most = sum, best = first;
        sum -= weight_of(l->at[first].text);
    }
    KL_ASSERT(best >= x->first && best <= x->last);
    return best;
}

static void add_summary(kl_buf *b, const listing *l, const loop *x) {
    int memory = 0, spills = 0;
    for (int i = x->first; i <= x->last; i++) {
        spills += is_spill(l->at[i].text);
        memory += touches_memory(l->at[i].text);
    }
    const int n = x->last - x->first + 1;
    KL_ASSERT(memory <= n && spills <= n);
    kl_buf_printf(
        b,
        "hottest loop by depth and arithmetic: %d instructions, %d of them touch memory, %d "
        "the stack (spills)",
        n, memory, spills);
    if (n > SHOWN_INSTRUCTIONS) kl_buf_printf(b, "; the densest %d:", SHOWN_INSTRUCTIONS);
    kl_buf_add(b, KL_S("\n"));
}

static void add_loop(kl_buf *b, const listing *l, const loop *x) {
    const int from = window_of(l, x);
    add_summary(b, l, x);
    for (int i = from; i < from + SHOWN_INSTRUCTIONS && i <= x->last; i++) {
        const kl_str text = l->at[i].text;
        kl_buf_printf(b, "    %.*s\n", (int)(text.len < SHOWN_BYTES ? text.len : SHOWN_BYTES),
                      text.ptr);
    }
}

kl_str kli_listing_hottest(kl_arena *a, kl_str code) {
    kl_arena *scratch = kl_arena_new();
    listing *l = KL_NEW(scratch, listing);
    kl_buf b = {0};
    l->a = scratch;
    read_code(l, code);
    listing_find_loops(l);
    const loop *x = hottest(l);
    if (x) add_loop(&b, l, x);
    kl_arena_free(scratch);
    return kl_buf_take(&b, a);
}

/* ---- remarks ----------------------------------------------------------------------------- */

static kl_str listing_behind(kl_str s, const char *what) {
    const char *at = s.len ? memmem(s.ptr, s.len, what, strlen(what)) : NULL;
    return at ? after(s, (size_t)(at - s.ptr) + strlen(what)) : (kl_str){0};
}

static kl_str listing_before(kl_str s, const char *what) {
    const char *at = s.len ? memmem(s.ptr, s.len, what, strlen(what)) : NULL;
    return at ? (kl_str){s.ptr, (size_t)(at - s.ptr)} : s;
}

/* "statement clobbers memory: _21 = expf (_20);": whose call it is; empty for other remarks. */
static kl_str called(kl_str said) {
    kl_str call = listing_before(listing_behind(said, "clobbers memory: "), " (");
    const kl_str result = listing_behind(call, "= ");
    return result.len ? result : call;
}

/* "kernel.c:4:15: optimized: loop vectorized using 64 byte vectors": of what one can act on, the
 * line and what was said of it. */
static bool remark_of(kl_str *said, int *line, kl_arena *a, kl_str text) {
    const kl_str at = listing_behind(text, "kernel.c:"),
                 words = listing_behind(listing_behind(at, ": "), ": "), call = called(words);
    if (!words.len) return false;
    *line = atoi(at.ptr);
    *said = call.len ? kl_arena_printf(a, "not vectorized: it calls %.*s", KL_STR_ARG(call))
                     : listing_before(listing_before(words, "; "), " [-R");
    return listing_mentions(*said, "vectorized") && !MENTIONS(words, "couldn't", "no vectype");
}

/* "ptxas info    : (C7510) Potential Performance Loss: ..." */
kl_str kli_listing_warnings(kl_arena *a, kl_str log) {
    kl_buf b = {0};
    for (kl_str text; kli_code_line(&text, &log);)
        if (MENTIONS(text, "performance loss", "ptxas warning") &&
            !(b.len && memmem(b.ptr, b.len, text.ptr, text.len)))
            kl_buf_printf(&b, "%.*s\n", KL_STR_ARG(kl_str_trim(text)));
    return kl_buf_take(&b, a);
}

kl_str kli_listing_remarks(kl_arena *a, kl_str log) {
    kl_buf b = {0};
    int line, n = 0;
    for (kl_str text, said; n < MAX_REMARKS && kli_code_line(&text, &log);) {
        if (!remark_of(&said, &line, a, text)) continue;
        const kl_str row = kl_arena_printf(a, "line %d: %.*s\n", line, KL_STR_ARG(said));
        if (b.len && memmem(b.ptr, b.len, row.ptr, row.len)) continue;
        kl_buf_add(&b, row);
        n++;
    }
    return kl_buf_take(&b, a);
}

/* runner_cuda_helpers.c - the runner's own device code: a digest of input sets, a broom for shared
 * memory, and a wait.
 *
 * Written in PTX, which every driver compiles for its own device, so that the worker needs no
 * compiler to be built or to run. The digest is tested on the device before it is trusted: where
 * the digest of a known pattern is not the number that the host computes, or the driver cannot
 * compile PTX, the runner does without them and says so.
 *
 *   key      one word from here to there
 *   digest   sum over 64-bit words w at index i of mix(w + key, i): the same in any order of
 * blocks.  Row y of the grid takes the bytes `pitch` further on into the next word of sums scrub
 * one block a multiprocessor, all of its shared memory, zeros broom    every thread that the device
 * can hold at once, all of a frame of local memory as large as the candidate's, ones.  Its text is
 *            made for the size: which bytes of the device a frame lies in depends on it.  Blocks
 * linger until all are there, so that each has a place of its own wait     one thread, for so many
 * nanoseconds: the host gets ahead of the stream while the cache stays as it is
 *   guards   column x of the grid takes span x of a table, row y the y-th copy of it: how many
 * bytes are not what they should be
 *
 * Source of the mixing steps: the finaliser of MurmurHash3 (Appleby, public domain).  The key is
 * random, so a kernel cannot prepare a change that keeps the digest.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "runner_cuda.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define WORD_STEP 0x9E3779B97F4A7C15ull
#define MIX_1 0xFF51AFD7ED558CCDull
#define MIX_2 0xC4CEB9FE1A85EC53ull
#define KEY_BYTES 16u  /* before the sums */
#define SUM_BYTES 256u /* key, sums of input sets and of the self test */
#define DIGEST_THREADS 512u
#define FEW_BLOCKS 16u      /* for which a key crosses the bus, warp by warp */
#define SAME_ROWS 40        /* of the self test; more blocks than a few */
#define PATTERN_WORDS 4096u /* of the self test; more than one stride of a small grid */

/* %d0 word in, mixed into %d6; %d1 is its index.  Written once, used for both halves of a 16-byte
 * load. */
#define PTX_MIX(word, index)                                                                       \
    "  add.u64 %d10, " word ", %d5;\n  mul.lo.u64 %d11, " index ", 0x9E3779B97F4A7C15;\n  "        \
    "xor.b64 %d10, %d10, %d11;\n"                                                                  \
    "  mul.lo.u64 %d10, %d10, 0xFF51AFD7ED558CCD;\n  shr.u64 %d11, %d10, 32;\n  xor.b64 %d10, "    \
    "%d10, %d11;\n"                                                                                \
    "  mul.lo.u64 %d10, %d10, 0xC4CEB9FE1A85EC53;\n  shr.u64 %d11, %d10, 29;\n  xor.b64 %d10, "    \
    "%d10, %d11;\n"                                                                                \
    "  add.u64 %d6, %d6, %d10;\n"

#define PTX_FOLD(lanes)                                                                            \
    "  mov.b64 {%r4, %r5}, %d6;\n  shfl.sync.down.b32 %r6, %r4, " lanes ", 31, -1;\n"              \
    "  shfl.sync.down.b32 %r7, %r5, " lanes                                                        \
    ", 31, -1;\n  mov.b64 %d7, {%r6, %r7};\n  add.u64 %d6, %d6, %d7;\n"

static const char HELPERS[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry kl_key(.param .u64 from, .param .u64 to)\n{\n  .reg .b64 %d<3>;\n"
    "  ld.param.u64 %d0, [from];\n  ld.param.u64 %d1, [to];\n  ld.volatile.global.u64 %d2, "
    "[%d0];\n  st.global.u64 [%d1], %d2;\n  ret;\n}\n"
    ".visible .entry kl_digest(.param .u64 base, .param .u64 words, .param .u64 key, .param .u64 "
    "sum, .param .u64 "
    "pitch)\n{\n"
    "  .reg .pred %p<2>;\n  .reg .b32 %r<8>;\n  .reg .b64 %d<12>;\n"
    "  ld.param.u64 %d0, [base];\n  ld.param.u64 %d4, [words];\n  ld.param.u64 %d5, [key];\n  "
    "ld.global.u64 %d5, [%d5];\n  ld.param.u64 %d9, "
    "[sum];\n"
    "  ld.param.u64 %d7, [pitch];\n  mov.u32 %r4, %ctaid.y;\n  cvt.u64.u32 %d8, %r4;\n  mad.lo.u64 "
    "%d0, %d7, %d8, "
    "%d0;\n"
    "  shl.b64 %d8, %d8, 3;\n  add.u64 %d9, %d9, %d8;\n"
    "  mov.u32 %r0, %ctaid.x;\n  mov.u32 %r1, %ntid.x;\n  mov.u32 %r2, %tid.x;\n  mov.u32 %r3, "
    "%nctaid.x;\n"
    "  cvt.u64.u32 %d2, %r2;\n  mad.wide.u32 %d2, %r0, %r1, %d2;\n  mul.wide.u32 %d3, %r1, %r3;\n  "
    "mov.u64 %d6, 0;\n"
    "AGAIN:\n  setp.ge.u64 %p0, %d2, %d4;\n  @%p0 bra DONE;\n"
    "  shl.b64 %d1, %d2, 4;\n  add.u64 %d1, %d0, %d1;\n  ld.global.v2.u64 {%d7, %d8}, [%d1];\n  "
    "shl.b64 %d1, %d2, "
    "1;\n" PTX_MIX("%d7", "%d1") "  add.u64 %d1, %d1, 1;\n" PTX_MIX(
        "%d8", "%d1") "  add.u64 %d2, %d2, %d3;\n  bra AGAIN;\nDONE:\n" PTX_FOLD("16") PTX_FOLD("8")
        PTX_FOLD("4") PTX_FOLD("2") PTX_FOLD(
            "1") "  and.b32 %r2, %r2, 31;\n  setp.ne.u32 %p1, %r2, 0;\n  @%p1 ret;\n  "
                 "red.global.add.u64 [%d9], %d6;\n  ret;\n}\n"
                 ".extern .shared .align 16 .b8 everything[];\n"
                 ".visible .entry kl_scrub(.param .u32 bytes)\n{\n"
                 "  .reg .pred %p<2>;\n  .reg .b32 %r<6>;\n"
                 "  ld.param.u32 %r0, [bytes];\n  mov.u32 %r1, %tid.x;\n  mov.u32 %r2, %ntid.x;\n  "
                 "shl.b32 %r1, %r1, 4;\n  shl.b32 %r2, %r2, 4;\n"
                 "  mov.u32 %r3, everything;\n  mov.u32 %r5, 0;\n"
                 "AGAIN:\n  setp.ge.u32 %p0, %r1, %r0;\n  @%p0 ret;\n  add.u32 %r4, %r3, %r1;\n"
                 "  st.volatile.shared.v4.u32 [%r4], {%r5, %r5, %r5, %r5};\n  add.u32 %r1, %r1, "
                 "%r2;\n  bra AGAIN;\n}\n"
                 ".visible .entry kl_wait(.param .u64 ns)\n{\n"
                 "  .reg .pred %p<1>;\n  .reg .b64 %d<4>;\n"
                 "  ld.param.u64 %d0, [ns];\n  mov.u64 %d1, %globaltimer;\n"
                 "AGAIN:\n  mov.u64 %d2, %globaltimer;\n  sub.u64 %d3, %d2, %d1;\n  setp.lt.u64 "
                 "%p0, %d3, %d0;\n  @%p0 bra AGAIN;\n  ret;\n}\n"
                 ".visible .entry kl_guards(.param .u64 spans, .param .u64 first, .param .u64 "
                 "copies, .param .u64 value, .param .u64 sum)\n{\n"
                 "  .reg .pred %p<3>;\n  .reg .b32 %r<6>;\n  .reg .b64 %d<14>;\n"
                 "  ld.param.u64 %d0, [spans];\n  ld.param.u64 %d1, [first];\n  ld.param.u64 %d2, "
                 "[copies];\n  ld.param.u64 %d3, [value];\n  ld.param.u64 %d4, [sum];\n"
                 "  mov.u32 %r0, %ctaid.x;\n  mul.wide.u32 %d5, %r0, 24;\n  add.u64 %d5, %d0, "
                 "%d5;\n  ld.global.u64 %d6, [%d5];\n  ld.global.u64 %d7, [%d5+8];\n  "
                 "ld.global.u64 %d8, [%d5+16];\n"
                 "  mov.u32 %r1, %ctaid.y;\n  cvt.u64.u32 %d9, %r1;\n  add.u64 %d9, %d9, %d1;\n  "
                 "rem.u64 %d9, %d9, %d2;\n  mad.lo.u64 %d6, %d8, %d9, %d6;\n"
                 "  mov.u32 %r2, %tid.x;\n  cvt.u64.u32 %d10, %r2;\n  mov.u32 %r3, %ntid.x;\n  "
                 "cvt.u64.u32 %d11, %r3;\n  cvt.u32.u64 %r4, %d3;\n  mov.u64 %d12, 0;\n"
                 "AGAIN:\n  setp.ge.u64 %p0, %d10, %d7;\n  @%p0 bra DONE;\n  add.u64 %d13, %d6, "
                 "%d10;\n  ld.global.u8 %r5, [%d13];\n  setp.ne.u32 %p1, %r5, %r4;\n  @%p1 "
                 "add.u64 %d12, %d12, 1;\n  add.u64 %d10, %d10, %d11;\n  bra AGAIN;\n"
                 "DONE:\n  setp.eq.u64 %p2, %d12, 0;\n  @%p2 ret;\n  red.global.add.u64 [%d4], "
                 "%d12;\n  ret;\n}\n";

#define BROOM_THREADS 256u
#define BROOM_LINGER_NS 20000u
#define BROOM_TEXT_BYTES 1536

/* Volatile through a generic address: so the assembler cannot leave the frame out, however small.
 */
static int broom_text(char *out, size_t room, uint32_t index, uint32_t frame) {
    return snprintf(out, room,
                    ".visible .entry kl_broom_%u(.param .u64 ns)\n{\n"
                    "  .local .align 8 .b8 frame[%u];\n  .reg .pred %%p<1>;\n  .reg .b32 %%r<2>;\n "
                    " .reg .b64 %%d<6>;\n"
                    "  ld.param.u64 %%d0, [ns];\n  mov.u64 %%d1, frame;\n  cvta.local.u64 %%d2, "
                    "%%d1;\n  mov.u64 %%d4, "
                    "%%globaltimer;\n"
                    "  mov.u32 %%r0, 0;\n  mov.u32 %%r1, -1;\n"
                    "AGAIN:\n  cvt.u64.u32 %%d3, %%r0;\n  add.u64 %%d3, %%d2, %%d3;\n  "
                    "st.volatile.u32 [%%d3], %%r1;\n"
                    "  add.u32 %%r0, %%r0, 4;\n  setp.lt.u32 %%p0, %%r0, %u;\n  @%%p0 bra AGAIN;\n"
                    "LINGER:\n  mov.u64 %%d5, %%globaltimer;\n  sub.u64 %%d5, %%d5, %%d4;\n  "
                    "setp.lt.u64 %%p0, %%d5, %%d0;\n"
                    "  @%%p0 bra LINGER;\n  ret;\n}\n",
                    index, frame, frame);
}

static kl_cu_result load_brooms(kli_cuda *r, const uint32_t *frames, uint32_t n) {
    const size_t room = (n + 1) * BROOM_TEXT_BYTES;
    KL_ASSERT(n <= KL_COUNT(r->broom));
    char *text = malloc(room), name[32];
    if (!text) kl_oom(room);
    int at = snprintf(text, room, ".version 7.0\n.target sm_70\n.address_size 64\n");
    for (uint32_t i = 0; i < n; i++) at += broom_text(text + at, room - (size_t)at, i, frames[i]);
    KL_ASSERT((size_t)at < room);
    kl_cu_result error = r->api->module_load(&r->brooms, text);
    free(text);
    for (uint32_t i = 0; i < n && !error; i++) {
        snprintf(name, sizeof name, "kl_broom_%u", i);
        error = r->api->module_function(&r->broom[i], r->brooms, name);
    }
    r->n_brooms = error ? 0 : n;
    return error;
}

void kli_cuda_drop_brooms(kli_cuda *r) {
    if (r->brooms) (void)r->api->module_unload(r->brooms);
    r->brooms = NULL;
    r->n_brooms = 0;
}

int kli_cuda_make_brooms(kli_runner_ctx *c, const uint32_t *frames, uint32_t n) {
    kli_cuda *r = kli_cuda_of(c);
    uint32_t sizes[KL_MAX_LAUNCHES] = {0}, n_sizes = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t frame = (frames[i] + 3) & ~3u;
        bool known = frame == 0;
        for (uint32_t k = 0; k < n_sizes; k++) known |= sizes[k] == frame;
        if (!known) sizes[n_sizes++] = frame;
    }
    if (n_sizes == r->n_brooms && memcmp(sizes, r->broom_frames, sizeof sizes) == 0) return 0;
    kli_cuda_drop_brooms(r);
    if (!n_sizes || !r->clears_local) return 0;
    memcpy(r->broom_frames, sizes, sizeof sizes);
    return kli_cuda_check(c, load_brooms(r, sizes, n_sizes), "a kernel that clears local memory");
}

kl_cu_result kli_cuda_sweep_local(kli_cuda *r) {
    uint64_t ns = BROOM_LINGER_NS;
    void *arguments[] = {&ns};
    const unsigned blocks = (unsigned)r->sms * ((unsigned)r->sm_threads / BROOM_THREADS);
    kli_cu_launch_config config = {
        .grid = {blocks ? blocks : 1, 1, 1}, .block = {BROOM_THREADS, 1, 1}, .stream = r->stream};
    kl_cu_result error = KL_CU_OK;
    for (uint32_t i = 0; i < r->n_brooms && !error; i++)
        error = r->api->launch(&config, r->broom[i], arguments, NULL);
    return error;
}

/* One that is small, on trial. */
static bool brooms_work(kli_cuda *r) {
    const uint32_t frame = 64;
    bool ok = load_brooms(r, &frame, 1) == KL_CU_OK && kli_cuda_sweep_local(r) == KL_CU_OK &&
              kli_cuda_wait(r) == KL_CU_OK;
    kli_cuda_drop_brooms(r);
    return ok;
}

uint64_t kli_cuda_digest_here(const kli_cuda *r, const void *bytes, uint64_t at, uint64_t n) {
    const uint64_t *words = bytes, first = at / sizeof *words;
    uint64_t sum = 0;
    KL_ASSERT(at % sizeof *words == 0 && n % sizeof *words == 0);
    for (uint64_t i = 0; i < n / sizeof *words; i++) {
        uint64_t x = (words[i] + r->digest_key) ^ ((first + i) * WORD_STEP);
        x *= MIX_1;
        x ^= x >> 32;
        x *= MIX_2;
        x ^= x >> 29;
        sum += x;
    }
    return sum;
}

/* ---- digests under a key ----------------------------------------------------------------- */

kl_cu_result kli_cuda_wait(kli_cuda *r) {
    const kl_cu_result cleared =
        r->is_taken ? r->api->fill(r->device_key, 0, sizeof r->digest_key, r->stream) : KL_CU_OK;
    const kl_cu_result error = r->api->stream_sync(r->stream);
    if (r->is_lent) explicit_bzero(r->lent_key, sizeof *r->lent_key);
    r->is_lent = r->is_taken = r->has_candidate = false;
    return error ? error : cleared;
}

/* A driver keeps parameters of launches where device code could find them, so the key is none.  It
 * lies in a pinned page, from which a few blocks read it; for more, one thread takes it into a word
 * of device memory.  Both are written when no candidate runs, and are zeros before one can. */
static kl_cu_result lend_key(kli_cuda *r, bool takes, kl_cu_ptr *key) {
    kl_cu_ptr from = (kl_cu_ptr)(uintptr_t)r->lent_key; /* one address space */
    void *arguments[] = {&from, &r->device_key};
    const kli_cu_launch_config config = {
        .grid = {1, 1, 1}, .block = {1, 1, 1}, .stream = r->stream};
    const kl_cu_result error = r->has_candidate ? kli_cuda_wait(r) : KL_CU_OK;
    if (error) return error;
    *r->lent_key = r->digest_key;
    *key = takes ? r->device_key : from;
    r->is_lent = true;
    if (!takes || r->is_taken) return KL_CU_OK;
    r->is_taken = true;
    return r->api->launch(&config, r->take_key, arguments, NULL);
}

kl_cu_result kli_cuda_digest(kli_cuda *r, const kli_cuda_rows *rows) {
    const uint64_t useful = (rows->words + DIGEST_THREADS - 1) / DIGEST_THREADS,
                   most = 4u * (unsigned)r->sms,
                   blocks = useful < 1      ? 1
                            : useful < most ? useful
                                            : most;
    kli_cuda_rows passed = *rows;
    kl_cu_ptr key;
    void *arguments[] = {&passed.base, &passed.words, &key, &passed.sum, &passed.pitch};
    const kli_cu_launch_config config = {.grid = {(unsigned)blocks, rows->n, 1},
                                         .block = {DIGEST_THREADS, 1, 1},
                                         .stream = r->stream};
    const kl_cu_result error = lend_key(r, blocks * rows->n > FEW_BLOCKS, &key);
    return error ? error : r->api->launch(&config, r->digest, arguments, NULL);
}

/* Of two rows, one behind the other, and of the first so often that the key is taken. */
static kl_cu_result digest_on_device(kli_cuda *r, const uint64_t *pattern, uint64_t *two,
                                     uint64_t *same) {
    const uint64_t bytes = PATTERN_WORDS * sizeof *pattern, row = bytes / 2;
    const kl_cu_ptr sums = r->slot_digests;
    kl_cu_ptr data;
    kl_cu_result error = r->api->memory_alloc(&data, bytes);
    if (error) return error;
    error = r->api->copy_in(data, pattern, bytes, r->stream);
    if (!error) error = r->api->fill(sums, 0, (2 + SAME_ROWS) * sizeof *two, r->stream);
    if (!error) error = kli_cuda_digest(r, &(kli_cuda_rows){data, sums, row / 16, row, 2});
    if (!error)
        error = kli_cuda_digest(
            r, &(kli_cuda_rows){data, sums + 2 * sizeof *two, row / 16, 0, SAME_ROWS});
    if (!error) error = kli_cuda_read(r, two, sums, 2 * sizeof *two);
    if (!error) error = kli_cuda_read(r, same, sums + 2 * sizeof *two, SAME_ROWS * sizeof *same);
    (void)r->api->memory_free(data);
    return error;
}

static bool digest_works(kli_cuda *r) {
    uint64_t pattern[PATTERN_WORDS], two[2] = {0}, same[SAME_ROWS] = {0};
    const uint64_t *second = pattern + PATTERN_WORDS / 2;
    for (uint64_t i = 0; i < PATTERN_WORDS; i++) pattern[i] = i * MIX_2;
    bool works = digest_on_device(r, pattern, two, same) == KL_CU_OK &&
                 two[0] == kli_cuda_digest_here(r, pattern, 0, sizeof pattern / 2) &&
                 two[1] == kli_cuda_digest_here(r, second, 0, sizeof pattern / 2);
    for (int i = 0; i < SAME_ROWS; i++) works = works && same[i] == two[0];
    return works;
}

/* Two spans in each of four copies, of which the last and the first are looked at.  Damage lies in
 * the first and the second, on both sides of the 3 bytes between the spans, which are nobody's. */
static kl_cu_result damage_on_device(kli_cuda *r, uint64_t *out) {
    const uint64_t bytes = 1200;
    const uint32_t copies = 4;
    kl_cu_ptr data;
    kl_cu_result error = r->api->memory_alloc(&data, copies * bytes);
    if (error) return error;
    const kli_cuda_span spans[] = {{data, 597, bytes}, {data + 600, 600, bytes}};
    error = r->api->fill(data, 0x5A, copies * bytes, r->stream);
    if (!error) error = r->api->fill_rows(data + 596, bytes, 0xA5, 5, 2, r->stream);
    if (!error) error = r->api->copy_in(r->guard_spans, spans, sizeof spans, r->stream);
    if (!error) error = r->api->fill(r->digest_sum, 0, sizeof *out, r->stream);
    if (!error) error = kli_cuda_count_damage(r, KL_COUNT(spans), copies - 1, 2, copies, 0x5A);
    if (!error) error = kli_cuda_read(r, out, r->digest_sum, sizeof *out);
    (void)r->api->memory_free(data);
    return error;
}

static bool guards_work(kli_cuda *r) {
    uint64_t damaged = 0;
    return damage_on_device(r, &damaged) == KL_CU_OK && damaged == 2;
}

/* Nonzero: there are none; the runner works without. */
int kli_cuda_open_helpers(kli_runner_ctx *c) {
    kli_cuda *r = kli_cuda_of(c);
    kl_cu_module module;
    void *page = NULL;
    if (getrandom(&r->digest_key, sizeof r->digest_key, 0) != (ssize_t)sizeof r->digest_key ||
        r->api->host_alloc(&page, sizeof *r->lent_key, KL_CU_HOST_MAPPED))
        return 1;
    r->lent_key = page;
    *r->lent_key = 0;
    if (kli_cuda_take_pages(r, &r->pages[KLI_CUDA_SUMS],
                            SUM_BYTES + (KL_WIRE_MAX_SAMPLES + 1) * sizeof(uint64_t) +
                                KLI_CUDA_SPANS * sizeof(kli_cuda_span)))
        return 1;
    r->device_key = r->pages[KLI_CUDA_SUMS].base;
    r->digest_sum = r->device_key + KEY_BYTES;
    r->slot_digests = r->device_key + SUM_BYTES;
    r->guard_spans = r->slot_digests + (KL_WIRE_MAX_SAMPLES + 1) * sizeof(uint64_t);
    if (r->api->module_load(&module, HELPERS) ||
        r->api->module_function(&r->take_key, module, "kl_key") ||
        r->api->module_function(&r->digest, module, "kl_digest") ||
        r->api->module_function(&r->scrub, module, "kl_scrub") ||
        r->api->module_function(&r->wait, module, "kl_wait") ||
        r->api->function_set(r->scrub, KL_CU_FUNC_MAX_DYNAMIC_SMEM, r->smem_max & ~15) ||
        !digest_works(r)) {
        r->digest = r->scrub = r->wait = NULL;
        return 1;
    }
    if (r->api->module_function(&r->guards, module, "kl_guards") || !guards_work(r))
        r->guards = NULL;
    r->clears_local = brooms_work(r);
    kli_cuda_open_draw(r);
    if (c->trusted) kli_cuda_open_compare(r); /* answers lie with the oracle alone */
    return 0;
}

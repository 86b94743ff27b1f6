/* layout.c - where every copy of every tensor lies in the shared pages, and the canaries around it.
 *
 *      page        page ...                               page
 *   | guard  | front slack | data ................ | <256 | guard  | front slack | data ...
 *
 * Data ends as close to its upper guard page as 256-byte alignment allows, so that a kernel that
 * runs past its end meets PROT_NONE at once; a kernel that runs before its beginning meets the
 * slack's canaries, or the lower guard page. Input pages are sealed against new writable mappings
 * once the gate has its own, so no runner can ever write them. Not here: who poisons when (runner.c
 * and the rows of runners.c).  SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"
#include "wire.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LAYOUT_ALIGNMENT 256u
#define LARGE_INPUT (16u << 20)
#define MAX_SLOTS 4096u /* KL_WIRE_MAX_SAMPLES: one per call of the longest batch */
_Static_assert(MAX_SLOTS == KL_WIRE_MAX_SAMPLES, "each call of the longest batch has a slot");
_Static_assert(KL_GUARD_BYTES % LAYOUT_ALIGNMENT == 0, "what ends at a guard page is aligned");
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

/* A huge page more on either side of a large input is little, and lies in no memory unless it is
 * touched; then no guard is a part of a huge page. */
static uint64_t page_of_sets(const kl_plan *plan) {
    for (uint32_t i = 0; i < plan->n_tensors; i++)
        if (plan->tensors[i].role == KL_ROLE_INPUT && plan->tensors[i].bytes >= LARGE_INPUT)
            return KLI_HUGE_BYTES;
    return KL_GUARD_BYTES;
}

/* Put one copy of `bytes` behind `cursor`, which stands at a guard page, and move the cursor to the
 * next guard page. */
static kl_err layout_place(uint64_t *offset, uint64_t *cursor, uint64_t bytes, uint64_t page,
                           kl_error *e) {
    if (bytes > KL_MAX_TENSOR_BYTES)
        return kl_fail(e, KL_ELIMIT, NULL, "one tensor of %llu bytes is above the limit",
                       (unsigned long long)bytes);
    uint64_t aligned = round_up(bytes ? bytes : 1, LAYOUT_ALIGNMENT),
             pages = round_up(aligned, page);
    *offset = *cursor + page + pages - aligned;
    *cursor += page + pages;
    KL_ASSERT(*offset % LAYOUT_ALIGNMENT == 0);
    return KL_OK;
}

static uint64_t closed(uint64_t cursor, uint64_t page) { return cursor ? cursor + page : 0; }

kl_err kli_layout_make(kl_layout *out, const kl_plan *plan, uint32_t n_sets, uint32_t n_slots,
                       kl_error *e) {
    *out = (kl_layout){.n_sets = n_sets, .n_slots = n_slots, .set_page_bytes = KL_GUARD_BYTES};
    if (n_sets < 1 || n_sets > KL_MAX_SETS || n_slots < 1 || n_slots > MAX_SLOTS)
        return kl_fail(e, KL_EINVAL, "layout", "%u input sets and %u output slots are not possible",
                       n_sets, n_slots);
    if (plan->n_tensors > KL_MAX_TENSORS || plan->n_buffers > KL_MAX_BUFFERS)
        return kl_fail(e, KL_ELIMIT, "layout", "the plan has too many tensors or buffers");
    uint64_t set = 0, slot = 0, scratch = 0;
    out->set_page_bytes = page_of_sets(plan);
    for (uint32_t i = 0; i < plan->n_tensors; i++) {
        const kl_plan_tensor *t = &plan->tensors[i];
        if (t->role == KL_ROLE_SCALAR) continue;
        const bool input = t->role == KL_ROLE_INPUT;
        kl_err code = layout_place(&out->tensor_offset[i], input ? &set : &slot, t->bytes,
                                   input ? out->set_page_bytes : KL_GUARD_BYTES, e);
        if (code) return code;
    }
    for (uint32_t i = 0; i < plan->n_buffers; i++) {
        kl_err code = layout_place(&out->buffer_offset[i], &scratch, plan->buffers[i].bytes,
                                   KL_GUARD_BYTES, e);
        if (code) return code;
    }
    out->set_bytes = closed(set, out->set_page_bytes);
    out->slot_bytes = closed(slot, KL_GUARD_BYTES);
    out->scratch_bytes = closed(scratch, KL_GUARD_BYTES);
    KL_ASSERT((out->slot_bytes | out->scratch_bytes) % KL_GUARD_BYTES == 0);
    KL_ASSERT(out->set_bytes % out->set_page_bytes == 0);
    double total =
        (double)out->set_bytes * n_sets + (double)(out->slot_bytes + out->scratch_bytes) * n_slots;
    if (total > (double)KL_MAX_TOTAL_BYTES)
        return kl_fail(e, KL_ELIMIT, "layout", "%u sets and %u slots of this shape take %.1f GiB",
                       n_sets, n_slots, total / 1073741824.0);
    return KL_OK;
}

/* ---- canaries ---------------------------------------------------------------------------- */

kli_zone kli_zone_of(uint64_t offset, uint64_t bytes, uint64_t page) {
    kli_zone z = {.data = offset, .data_end = offset + bytes};
    z.page = offset / page * page;
    z.page_end = round_up(offset + (bytes ? bytes : 1), page);
    z.low = z.page - page;
    z.high = z.page_end + page;
    KL_ASSERT(z.page <= z.data && z.data <= z.data_end && z.data_end <= z.page_end);
    return z;
}

uint64_t kli_region_stride(const kl_layout *l, kli_region r) {
    const uint64_t strides[KLI_REGIONS] = {l->set_bytes, l->slot_bytes, l->scratch_bytes};
    KL_ASSERT(r < KLI_REGIONS);
    return strides[r];
}

uint32_t kli_region_copies(const kl_layout *l, kli_region r) {
    KL_ASSERT(r < KLI_REGIONS);
    return r == KLI_INPUTS ? l->n_sets : l->n_slots;
}

bool kli_piece_next(kli_piece *p, const kl_plan *plan, const kl_layout *l) {
    uint32_t i = p->next;
    KL_ASSERT(plan->n_tensors <= KL_MAX_TENSORS && plan->n_buffers <= KL_MAX_BUFFERS);
    while (i < plan->n_tensors && plan->tensors[i].role == KL_ROLE_SCALAR) i++;
    if (i >= plan->n_tensors + plan->n_buffers) return false;
    *p = (kli_piece){.index = i, .next = i + 1, .region = KLI_SCRATCH};
    if (i < plan->n_tensors) {
        const kl_plan_tensor *t = &plan->tensors[i];
        p->region = t->role == KL_ROLE_INPUT ? KLI_INPUTS : KLI_OUTPUTS;
        p->name = t->name;
        p->bytes = t->bytes;
        p->kept = t->role == KL_ROLE_MUTABLE;
        p->zone = kli_zone_of(l->tensor_offset[i], t->bytes,
                              p->region == KLI_INPUTS ? l->set_page_bytes : KL_GUARD_BYTES);
        KL_ASSERT(p->zone.high <= kli_region_stride(l, p->region));
    } else {
        const kl_plan_buffer *b = &plan->buffers[i - plan->n_tensors];
        p->name = b->name;
        p->bytes = b->bytes;
        p->zero = b->zero;
        p->zone = kli_zone_of(l->buffer_offset[i - plan->n_tensors], b->bytes, KL_GUARD_BYTES);
    }
    return true;
}

static bool all_bytes(const char *p, uint64_t n, uint8_t value) {
    if (n == 0) return true;
    return (uint8_t)p[0] == value && memcmp(p, p + 1, n - 1) == 0;
}

void kli_slack_fill(char *base, kli_zone z, uint8_t value) {
    memset(base + z.page, value, z.data - z.page);
    memset(base + z.data_end, value, z.page_end - z.data_end);
}

bool kli_slack_whole(const char *base, kli_zone z, uint8_t value) {
    return all_bytes(base + z.page, z.data - z.page, value) &&
           all_bytes(base + z.data_end, z.page_end - z.data_end, value);
}

/* ---- shared pages ------------------------------------------------------------------------ */

static int make_pages(const char *name, size_t bytes, unsigned flags) {
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
    if (fd >= 0 && ftruncate(fd, (off_t)(bytes ? bytes : KL_GUARD_BYTES)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void layout_close_fd(int *fd) {
    if (*fd > 0) close(*fd);
    *fd = -1;
}

/* The gate's own. */
static char *layout_map_pages(int fd, const kl_layout *l, kli_region r) {
    const size_t bytes = kli_region_bytes(l, r);
    return kli_pages_map(fd, bytes ? bytes : KL_GUARD_BYTES, PROT_READ | PROT_WRITE,
                         kli_huge_from(l, r));
}

static bool has_huge_inputs(const kl_memory *m) {
    const size_t from = kli_huge_from(&m->layout, KLI_INPUTS);
    return m->inputs && m->inputs_bytes - from >= KLI_HUGE_BYTES &&
           kli_pages_begin_huge(m->inputs + from);
}

int kli_memory_make(const char *name, size_t bytes) { return make_pages(name, bytes, 0); }

static bool map_inputs(kl_memory *m, unsigned flags) {
    m->inputs_fd = make_pages("klineage-inputs", m->inputs_bytes, flags);
    if (m->inputs_fd >= 0) m->inputs = layout_map_pages(m->inputs_fd, &m->layout, KLI_INPUTS);
    return m->inputs != NULL;
}

/* Nobody maps them to write from here on, by trial: kernels differ in which files they seal. */
static bool seal_inputs(const kl_memory *m) {
    if (fcntl(m->inputs_fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW))
        return false;
    void *p = mmap(NULL, m->layout.set_page_bytes, PROT_WRITE, MAP_SHARED, m->inputs_fd, 0);
    if (p != MAP_FAILED) munmap(p, m->layout.set_page_bytes);
    return p == MAP_FAILED;
}

/* In huge pages that the host has put aside, where there are enough, since mapping them reserves
 * all, and where they can be sealed. */
static bool open_inputs(kl_memory *m) {
    if (m->layout.set_page_bytes == KLI_HUGE_BYTES) {
        if (map_inputs(m, MFD_HUGETLB | MFD_HUGE_2MB) && seal_inputs(m)) return true;
        if (m->inputs) munmap(m->inputs, m->inputs_bytes);
        m->inputs = NULL;
        layout_close_fd(&m->inputs_fd);
    }
    if (!map_inputs(m, 0)) return false;
    /* An old kernel without this seal still hands out a read-only descriptor. */
    (void)seal_inputs(m);
    return true;
}

static bool open_pages(kl_memory *m) {
    char path[64];
    m->outputs_fd = make_pages("klineage-outputs", m->outputs_bytes, 0);
    if (m->outputs_fd < 0 || !open_inputs(m)) return false;
    m->outputs = layout_map_pages(m->outputs_fd, &m->layout, KLI_OUTPUTS);
    m->huge = has_huge_inputs(m);
    snprintf(path, sizeof path, "/proc/self/fd/%d", m->inputs_fd);
    m->inputs_ro_fd = open(path, O_RDONLY | O_CLOEXEC);
    (void)fcntl(m->outputs_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    return m->inputs && m->outputs && m->inputs_ro_fd >= 0;
}

static kl_err no_room(kl_memory *m, kl_error *e) {
    int cause = errno;
    double mib = (double)(m->inputs_bytes + m->outputs_bytes) / 1048576.0;
    kli_memory_close(m);
    return kl_fail(e, KL_EIO, "shared memory", "no room for %.1f MiB of tensors: %s", mib,
                   strerror(cause));
}

kl_err kli_memory_open(kl_memory *out, const kl_layout *l, kl_error *e) {
    *out = (kl_memory){.inputs_fd = -1, .inputs_ro_fd = -1, .outputs_fd = -1, .layout = *l};
    out->inputs_bytes = l->set_bytes * l->n_sets;
    out->outputs_bytes = l->slot_bytes * l->n_slots;
    return open_pages(out) ? KL_OK : no_room(out, e);
}

kl_err kli_memory_open_beside(kl_memory *out, const kl_layout *l, const kl_memory *inputs_of,
                              kl_error *e) {
    *out = (kl_memory){.inputs_fd = -1,
                       .inputs_ro_fd = -1,
                       .outputs_fd = -1,
                       .layout = *l,
                       .borrows_inputs = true};
    if (l->set_bytes * l->n_sets != inputs_of->inputs_bytes)
        return kl_fail(e, KL_EINVAL, "shared memory",
                       "two plans that share inputs must have the same inputs");
    out->inputs_fd = inputs_of->inputs_fd;
    out->inputs_ro_fd = inputs_of->inputs_ro_fd;
    out->inputs = inputs_of->inputs;
    out->inputs_bytes = inputs_of->inputs_bytes;
    out->outputs_bytes = l->slot_bytes * l->n_slots;
    out->outputs_fd = make_pages("klineage-outputs", out->outputs_bytes, 0);
    if (out->outputs_fd >= 0) out->outputs = layout_map_pages(out->outputs_fd, l, KLI_OUTPUTS);
    return out->outputs ? KL_OK : no_room(out, e);
}

void kli_memory_close(kl_memory *m) {
    if (m->borrows_inputs) m->inputs = NULL, m->inputs_fd = m->inputs_ro_fd = -1;
    if (m->inputs) munmap(m->inputs, m->inputs_bytes ? m->inputs_bytes : KL_GUARD_BYTES);
    if (m->outputs) munmap(m->outputs, m->outputs_bytes ? m->outputs_bytes : KL_GUARD_BYTES);
    m->inputs = m->outputs = NULL;
    layout_close_fd(&m->inputs_fd);
    layout_close_fd(&m->inputs_ro_fd);
    layout_close_fd(&m->outputs_fd);
}

void *kli_memory_input(const kl_memory *m, const kl_plan *p, uint32_t tensor, uint32_t set) {
    KL_ASSERT(tensor < p->n_tensors && p->tensors[tensor].role == KL_ROLE_INPUT &&
              set < m->layout.n_sets);
    return m->inputs + m->layout.set_bytes * set + m->layout.tensor_offset[tensor];
}

void *kli_memory_output(const kl_memory *m, const kl_plan *p, uint32_t tensor, uint32_t slot) {
    KL_ASSERT(tensor < p->n_tensors && slot < m->layout.n_slots);
    KL_ASSERT(p->tensors[tensor].role == KL_ROLE_OUTPUT ||
              p->tensors[tensor].role == KL_ROLE_MUTABLE);
    return m->outputs + m->layout.slot_bytes * slot + m->layout.tensor_offset[tensor];
}

void kli_memory_poison(kl_memory *m, const kl_plan *p, uint32_t slot, uint8_t byte) {
    KL_ASSERT(slot < m->layout.n_slots);
    uint8_t guard = byte ^ 0xFF;
    char *base = m->outputs + m->layout.slot_bytes * slot;
    for (kli_piece t = {0}; kli_piece_next(&t, p, &m->layout);) {
        if (t.region != KLI_OUTPUTS) continue;
        memset(base + t.zone.low, guard, t.zone.data - t.zone.low);
        memset(base + t.zone.data_end, guard, t.zone.high - t.zone.data_end);
        if (!t.kept) memset(base + t.zone.data, byte, t.bytes);
    }
}

void kli_memory_slack(kl_memory *m, const kl_plan *p, uint32_t set, int only, uint8_t byte) {
    KL_ASSERT(set < m->layout.n_sets);
    char *base = m->inputs + m->layout.set_bytes * set;
    for (kli_piece t = {0}; kli_piece_next(&t, p, &m->layout);)
        if (t.region == KLI_INPUTS && (only < 0 || (uint32_t)only == t.index))
            kli_slack_fill(base, t.zone, byte);
}

int kli_memory_guard_damage(const kl_memory *m, const kl_plan *p, uint32_t slot, uint8_t byte) {
    KL_ASSERT(slot < m->layout.n_slots);
    uint8_t guard = byte ^ 0xFF;
    const char *base = m->outputs + m->layout.slot_bytes * slot;
    for (kli_piece t = {0}; kli_piece_next(&t, p, &m->layout);)
        if (t.region == KLI_OUTPUTS &&
            (!all_bytes(base + t.zone.low, t.zone.data - t.zone.low, guard) ||
             !all_bytes(base + t.zone.data_end, t.zone.high - t.zone.data_end, guard)))
            return (int)t.index;
    return -1;
}

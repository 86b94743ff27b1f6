/* layout.h - the parts of layout.c that runners share with the gate.  SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef KL_BACKEND_LAYOUT_H
#define KL_BACKEND_LAYOUT_H
#include "backend/backend.h"

/* One copy of a tensor or buffer: [low, page) and [page_end, high) are guard pages, [page, data)
 * and [data_end, page_end) slack. */
typedef struct {
    uint64_t low, page, data, data_end, page_end, high;
} kli_zone;

kli_zone kli_zone_of(uint64_t offset, uint64_t bytes, uint64_t page);

/* The three kinds of pages: sets of inputs, slots of outputs and mutable inputs, slots of scratch.
 */
typedef enum { KLI_INPUTS, KLI_OUTPUTS, KLI_SCRATCH, KLI_REGIONS } kli_region;
uint64_t kli_region_stride(const kl_layout *l, kli_region r); /* from one copy to the next */
uint32_t kli_region_copies(const kl_layout *l, kli_region r);
static inline uint64_t kli_region_bytes(const kl_layout *l, kli_region r) {
    return kli_region_stride(l, r) * kli_region_copies(l, r);
}

/* What lies in a copy of a region: a tensor that is no scalar, or a buffer. */
typedef struct {
    uint32_t index; /* of the tensor; behind the last tensor: of the buffer */
    uint32_t next;  /* where the walk goes on */
    kli_region region;
    const char *name; /* the plan's */
    uint64_t bytes;
    kli_zone zone;
    bool kept, zero; /* a mutable input, which is not poisoned; a buffer that begins as zeros */
} kli_piece;

/* The next piece of the plan; begins with {0}, tensors first.  False past the last. */
bool kli_piece_next(kli_piece *p, const kl_plan *plan, const kl_layout *l);
void kli_slack_fill(char *base, kli_zone z, uint8_t value);
bool kli_slack_whole(const char *base, kli_zone z, uint8_t value);
int kli_memory_make(const char *name, size_t bytes); /* sealable pages; -1 and errno */

/* pages.c */
#define KLI_HUGE_BYTES ((size_t)2 << 20)
/* Where in the pages of a region huge ones may begin; at their end: nowhere. */
size_t kli_huge_from(const kl_layout *l, kli_region r);
/* Beginning on a boundary of huge pages where there is room for one.  NULL and errno. */
char *kli_pages_map(int fd, size_t bytes, int protection, size_t huge_from);
bool kli_pages_begin_huge(char *pages); /* fresh ones: the first byte becomes 0 */

#endif

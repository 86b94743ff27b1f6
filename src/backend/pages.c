/* pages.c - how shared pages are mapped: in huge pages, where the host gives them and both sides of
 * a pair see the same.
 *
 *   small inputs       | copies with forbidden guards: small | all further copies: huge ... |
 *   large inputs       | guard | data ... | guard | data ... | in units of huge pages            |
 *   outputs, scratch   | small: of these a candidate's process hides all slots but its own        |
 *
 * What forbids or hides a part of a huge page finds the rest of it through small ones, and only a
 * candidate's process does that: it would be slower than its baseline by tables alone.  So what can
 * be forbidden or hidden is small for everybody from the beginning, or a whole huge page.  Pages
 * are taken from those that the host has put aside (large inputs alone: no part of such a page can
 * be protected), else asked for by advice.  A host that gives none gives small ones, and guards and
 * protections are the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"
#include "runner_ops.h"
#include <sys/mman.h>
#include <unistd.h>

#define UP_TO_HUGE(x) (((x) + KLI_HUGE_BYTES - 1) / KLI_HUGE_BYTES * KLI_HUGE_BYTES)
_Static_assert(KLI_HUGE_BYTES % KL_GUARD_BYTES == 0, "a huge page begins where a guard may end");

size_t kli_huge_from(const kl_layout *l, kli_region r) {
    const size_t all = kli_region_bytes(l, r),
                 small = UP_TO_HUGE(kli_region_stride(l, r) * KLI_FORBIDDEN_COPIES);
    if (r == KLI_INPUTS && l->set_page_bytes == KLI_HUGE_BYTES) return 0;
    return r == KLI_INPUTS && small < all ? small : all;
}

static void advise(char *pages, size_t bytes, size_t huge_from) {
    if (bytes < KLI_HUGE_BYTES) return; /* there is no room for one */
    (void)madvise(pages, huge_from, MADV_NOHUGEPAGE);
    if (huge_from < bytes) (void)madvise(pages + huge_from, bytes - huge_from, MADV_HUGEPAGE);
}

/* A table's entry for a huge page needs its place in the file and in memory to agree.  Of a memory
 * file, nothing is reserved; of pages put aside all are, or a touch could find none left. */
char *kli_pages_map(int fd, size_t bytes, int protection, size_t huge_from) {
    const size_t room = bytes < KLI_HUGE_BYTES ? bytes : bytes + KLI_HUGE_BYTES;
    KL_ASSERT(bytes > 0 && huge_from <= bytes);
    char *all = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return NULL;
    char *pages = room > bytes ? all + (UP_TO_HUGE((uintptr_t)all) - (uintptr_t)all) : all;
    KL_ASSERT(pages + bytes <= all + room);
    if (mmap(pages, bytes, protection, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
        return (void)munmap(all, room), NULL;
    if (pages > all) (void)munmap(all, (size_t)(pages - all));
    if (pages + bytes < all + room)
        (void)munmap(pages + bytes, (size_t)(all + room - pages) - bytes);
    advise(pages, bytes, huge_from);
    return pages;
}

/* One byte is written, and the other end is there too. */
bool kli_pages_begin_huge(char *pages) {
    unsigned char there = 0;
    *(volatile char *)pages = 0;
    return mincore(pages + KLI_HUGE_BYTES - KL_GUARD_BYTES, KL_GUARD_BYTES, &there) == 0 &&
           (there & 1);
}

bool kli_huge_pages_here(void) {
    const size_t bytes = 2 * KLI_HUGE_BYTES;
    const int fd = kli_memory_make("klineage-huge", bytes);
    char *pages = fd < 0 ? NULL : kli_pages_map(fd, bytes, PROT_READ | PROT_WRITE, 0);
    const bool here = pages && kli_pages_begin_huge(pages);
    if (pages) (void)munmap(pages, bytes);
    if (fd >= 0) (void)close(fd);
    return here;
}

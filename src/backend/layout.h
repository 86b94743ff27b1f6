/* layout.h - the parts of layout.c that runners share with the gate.  SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef KL_BACKEND_LAYOUT_H
#define KL_BACKEND_LAYOUT_H
#include <klineage/backend.h>

/* kl_plan_tensor.role */
enum { KLI_ROLE_INPUT, KLI_ROLE_OUTPUT, KLI_ROLE_MUTABLE, KLI_ROLE_SCALAR };

/* One copy of a tensor or buffer: [low, page) and [page_end, high) are guard pages, [page, data)
 * and [data_end, page_end) slack. */
typedef struct {
    uint64_t low, page, data, data_end, page_end, high;
} kli_zone;

kli_zone kli_zone_of(uint64_t offset, uint64_t bytes);
void kli_slack_fill(char *base, kli_zone z, uint8_t value);
bool kli_slack_whole(const char *base, kli_zone z, uint8_t value);
int kli_memory_make(const char *name, size_t bytes); /* sealable pages; -1 and errno */

#endif

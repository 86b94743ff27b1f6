/* clock.c - time.  SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include <time.h>

int64_t kli_now_ns(void) {
    struct timespec t;
    KL_ASSERT(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

kl_str kli_utc_now(kl_arena *a) {
    time_t now = time(NULL);
    struct tm utc;
    char text[32];
    KL_ASSERT(gmtime_r(&now, &utc));
    KL_ASSERT(strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc) > 0);
    return kl_arena_copy(a, kl_str_of(text));
}

/* naps.c - for tests that wait for nothing outside of their own process: a nap passes at once, and
 * the clock goes on by it.
 *
 * Linked into a test program, it stands before the C library's own.  SPDX-License-Identifier:
 * Apache-2.0 */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000 };

static _Atomic long passed_ns;

int nanosleep(const struct timespec *nap, struct timespec *left) {
    (void)left;
    passed_ns += nap->tv_sec * NS_PER_S + nap->tv_nsec;
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (syscall(SYS_clock_gettime, clock, now)) return -1;
    const long ns = now->tv_nsec + passed_ns;
    now->tv_sec += ns / NS_PER_S;
    now->tv_nsec = ns % NS_PER_S;
    return 0;
}

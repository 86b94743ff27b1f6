/* turn.c - gates on one machine take turns: whoever times is alone, whoever compiles and checks shares.
 *
 *   turnstile   everybody passes it one at a time; who waits for the room stands in it, so that nobody is starved
 *   room        shared while a gate compiles and checks, exclusive while it times
 *
 * Two gates that time at once measure each other, and a gate that checks (compiler, oracle on every core) is felt by one that times.
 * Both locks end with their process, so a killed gate leaves nothing behind.  They lie where every gate of the user finds them, whatever
 * its cache is.  Not here: other programs; the A/A floor of each verdict shows those.  SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Not in $TMPDIR, which differs from shell to shell.  A file of somebody else, or a link, is not ours to lock. */
static int open_own(const char *what) {
    char path[64];
    struct stat s;
    snprintf(path, sizeof path, "/tmp/klineage-%u.%s", (unsigned)getuid(), what);
    const int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && (fstat(fd, &s) || s.st_uid != getuid() || !S_ISREG(s.st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Pass the turnstile, take the room the given way.  What is held is given up first, so nobody waits for himself. */
static bool take(kl_turn *t, int how) {
    if (!t->open) *t = (kl_turn){true, open_own("turnstile"), open_own("room")};
    if (t->turnstile < 0 || t->room < 0 || flock(t->room, LOCK_UN) || flock(t->turnstile, LOCK_EX)) return false;
    const bool taken = flock(t->room, how) == 0;
    return flock(t->turnstile, LOCK_UN) == 0 && taken;
}

bool kl_turn_share(kl_turn *t) { return take(t, LOCK_SH); }
bool kl_turn_alone(kl_turn *t) { return take(t, LOCK_EX); }

void kl_turn_close(kl_turn *t) {
    if (t->open && t->room >= 0) close(t->room);
    if (t->open && t->turnstile >= 0) close(t->turnstile);
    *t = (kl_turn){0};
}

/* memory.c - how much memory there is to be had: the least of what the machine and the control
 * groups say.
 *
 *   machine        MemTotal, MemAvailable of /proc/meminfo
 *   cgroup v2      memory.max, memory.current     of the group and of every group above it
 *   cgroup v1      memory.limit_in_bytes, memory.usage_in_bytes
 *
 * A group's use counts file pages that would be given back at once; they are not in the way.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include <klineage/base.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_PATH 768

static bool memory_read_text(const char *path, char *text, size_t room) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, room - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static const char *memory_line_of(const char *text, const char *key) {
    const size_t n = strlen(key);
    for (const char *p = text; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        if (strncmp(p, key, n) == 0) return p + n;
    return NULL;
}

int64_t kli_meminfo(const char *text, const char *key) {
    const char *value = memory_line_of(text, key);
    return value ? strtoll(value, NULL, 10) * 1024 : -1;
}

int64_t kli_memory_stat(const char *text, const char *key) {
    char word[64];
    snprintf(word, sizeof word, "%s ", key); /* the whole word: keys begin with one another */
    const char *value = memory_line_of(text, word);
    return value ? strtoll(value, NULL, 10) : 0;
}

/* A number in a file; INT64_MAX for "max", for what is absent and for version 1's way to say that
 * there is none. */
static int64_t number_in(const char *dir, const char *name) {
    char path[MAX_PATH + 64], text[64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (!memory_read_text(path, text, sizeof text) || text[0] < '0' || text[0] > '9')
        return INT64_MAX;
    const unsigned long long v = strtoull(text, NULL, 10);
    return v > (1ull << 60) ? INT64_MAX : (int64_t)v;
}

static void one_group(kli_memory_room *m, const char *dir, const char *limit_name,
                      const char *use_name) {
    char path[MAX_PATH + 64], text[8192];
    const int64_t limit = number_in(dir, limit_name), use = number_in(dir, use_name);
    if (limit == INT64_MAX) return;
    snprintf(path, sizeof path, "%s/memory.stat", dir);
    int64_t files = 0;
    if (memory_read_text(path, text, sizeof text))
        files = kli_memory_stat(text, "inactive_file") + kli_memory_stat(text, "active_file");
    const int64_t rest = use == INT64_MAX ? limit : limit - use + files;
    if (limit < m->total) m->total = limit;
    if (rest < m->available) m->available = rest < 0 ? 0 : rest;
}

/* The group itself and all above it, up to where the hierarchy is mounted. */
static void groups(kli_memory_room *m, const char *root, const char *group, const char *limit,
                   const char *use) {
    char dir[MAX_PATH];
    snprintf(dir, sizeof dir, "%s%.*s", root, (int)strcspn(group, "\n"), group);
    for (char *slash = dir; slash && strlen(dir) >= strlen(root);) {
        one_group(m, dir, limit, use);
        slash = strrchr(dir, '/');
        if (slash) *slash = '\0';
    }
}

kli_memory_room kli_memory_room_now(void) {
    char text[8192];
    kli_memory_room m = {INT64_MAX, INT64_MAX};
    if (memory_read_text("/proc/meminfo", text, sizeof text)) {
        const int64_t total = kli_meminfo(text, "MemTotal:"),
                      available = kli_meminfo(text, "MemAvailable:");
        if (total > 0) m.total = total;
        if (available >= 0) m.available = available;
    }
    if (!memory_read_text("/proc/self/cgroup", text, sizeof text)) return m;
    const char *second = memory_line_of(text, "0::"), *first = strstr(text, ":memory:");
    if (second) groups(&m, "/sys/fs/cgroup", second, "memory.max", "memory.current");
    if (first)
        groups(&m, "/sys/fs/cgroup/memory", first + strlen(":memory:"), "memory.limit_in_bytes",
               "memory.usage_in_bytes");
    return m;
}

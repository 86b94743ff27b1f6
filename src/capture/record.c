/* record.c - what a program launches, as lines of a file that it may die beside.
 *
 *   $KLINEAGE_CAPTURE/PID.jsonl        one line an event, written whole: process, image, launch
 *   $KLINEAGE_CAPTURE/PID.counts       how often each launch was seen, and in which order; mapped,
 *                                      so that it is there whatever becomes of the process
 *   $KLINEAGE_CAPTURE/PID-N.image      code as the driver got it
 *
 * A launch is written down the first time that its function, grid, block, cluster and shared memory
 * come together; from then on it is counted.  One lock guards everything; a launch that is known
 * costs a look into a table.  What does not fit a bound is counted as left out.  docs/how-to/
 * capture.md says what a reader may rely on.  SPDX-License-Identifier: Apache-2.0 */
#include "shim.h"
#include "capture/counts.h"
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_PARAMETERS = 1024, /* of a kernel: the driver takes 32764 bytes of them */
    MOST_PARAMETER_BYTES = 32764,
    MOST_MAPS = 4096, /* that are remembered; the oldest are forgotten */
    MAP_BYTES = sizeof(kli_cu_tensormap)
};
#define MOST_IMAGE_BYTES ((uint64_t)1 << 30)

typedef struct {
    const void *handle;
    int image; /* -1: not known */
    bool is_kernel;
    char *name;
} known;

typedef struct {
    kl_cu_ptr data;
    uint64_t bytes, id;
} allocation;

typedef struct {
    kli_cu_tensormap made;
    capture_map how;
    uint64_t dims[5], strides[5];
    uint32_t box[5], element_strides[5];
} encoded;

static struct {
    pthread_mutex_t lock;
    pid_t pid; /* whose files these are; 0: none yet */
    bool off;  /* nothing can be written */
    int fd;
    capture_counts *counts;
    capture_driver driver;
    known *handles; /* open addressing, a power of two */
    size_t n_handles, room;
    allocation *allocations;
    size_t n_allocations, allocation_room;
    uint64_t next_allocation;
    encoded *maps;
    size_t n_maps;
    uint64_t keys[CAPTURE_MOST_LAUNCHES];
    uint32_t n_launches;
    int n_images;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- a line under construction ----------------------------------------------------------- */

typedef struct {
    char *ptr;
    size_t len, cap;
    bool failed;
} line;

static void put_bytes(line *l, const char *text, size_t n) {
    if (l->len + n > l->cap) {
        const size_t cap = 2 * (l->len + n) + 256;
        char *more = l->failed ? NULL : realloc(l->ptr, cap);
        if (!more) {
            l->failed = true;
            return;
        }
        l->ptr = more, l->cap = cap;
    }
    memcpy(l->ptr + l->len, text, n);
    l->len += n;
}

__attribute__((format(printf, 2, 3))) static void put(line *l, const char *form, ...) {
    char text[256];
    va_list args;
    va_start(args, form);
    const int n = vsnprintf(text, sizeof text, form, args);
    va_end(args);
    put_bytes(l, text, n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

/* Names are the program's: what would end the text, or is no ASCII, is left out. */
static void put_quoted(line *l, const char *text) {
    put_bytes(l, "\"", 1);
    for (; *text; text++)
        if (*text >= ' ' && *text <= '~' && *text != '"' && *text != '\\') put_bytes(l, text, 1);
    put_bytes(l, "\"", 1);
}

static void put_list(line *l, const char *name, const uint32_t *values, uint32_t n) {
    put(l, ",\"%s\":[", name);
    for (uint32_t i = 0; i < n; i++) put(l, "%s%u", i ? "," : "", values[i]);
    put(l, "]");
}

static void put_wide(line *l, const char *name, const uint64_t *values, uint32_t n) {
    put(l, ",\"%s\":[", name);
    for (uint32_t i = 0; i < n; i++) put(l, "%s%llu", i ? "," : "", (unsigned long long)values[i]);
    put(l, "]");
}

static bool write_whole(int fd, const void *data, size_t n) {
    const char *at = data;
    while (n) {
        const ssize_t done = write(fd, at, n);
        if (done <= 0) return false;
        at += done, n -= (size_t)done;
    }
    return true;
}

static void finish_line(line *l) {
    put(l, "}\n");
    if (!l->failed && !write_whole(all.fd, l->ptr, l->len)) all.off = true;
    free(l->ptr);
}

/* ---- files of this process --------------------------------------------------------------- */

static int open_beside(const char *form, int number) {
    char path[4096];
    const char *folder = getenv("KLINEAGE_CAPTURE");
    char name[64];
    (void)snprintf(name, sizeof name, form, (int)all.pid, number);
    const int n = snprintf(path, sizeof path, "%s/%s", folder ? folder : "", name);
    if (!folder || n < 0 || (size_t)n >= sizeof path) return -1;
    return open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
}

static bool map_counts(void) {
    const int fd = open_beside("%d.counts", 0);
    if (fd < 0 || ftruncate(fd, sizeof *all.counts) != 0) return false;
    void *at = mmap(NULL, sizeof *all.counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    all.counts = at == MAP_FAILED ? NULL : at;
    return all.counts != NULL;
}

static void say_process(void) {
    line l = {0};
    char name[256] = "";
    const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? 0 : read(fd, name, sizeof name - 1);
    if (fd >= 0) (void)close(fd);
    if (n <= 0) name[0] = 0;
    put(&l, "{\"record\":\"process\",\"version\":1,\"pid\":%d,\"program\":", (int)all.pid);
    put_quoted(&l, name);
    finish_line(&l);
}

static void leave_files(void) {
    all.pid = 0; /* a child of fork has files of its own, if it launches anything */
    all.off = false, all.counts = NULL, all.n_launches = 0, all.n_images = 0;
    all.n_handles = 0, all.n_maps = 0, all.n_allocations = 0;
    if (all.handles) memset(all.handles, 0, all.room * sizeof *all.handles);
    all.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void begin_files(void) {
    static bool told;
    all.pid = getpid();
    if (!told) (void)pthread_atfork(NULL, NULL, leave_files);
    told = true;
    all.fd = open_beside("%d.jsonl", 0);
    all.off = all.fd < 0 || !map_counts();
    capture_find_driver(&all.driver);
    if (!all.off) say_process();
}

/* False: there is nothing to do, and the lock is not held. */
static bool begin_note(void) {
    (void)pthread_mutex_lock(&all.lock);
    if (!all.pid) begin_files();
    if (!all.off) return true;
    (void)pthread_mutex_unlock(&all.lock);
    return false;
}

static void end_note(void) { (void)pthread_mutex_unlock(&all.lock); }

/* ---- handles ----------------------------------------------------------------------------- */

static size_t slot_of(const known *table, size_t room, const void *handle) {
    size_t at = ((uintptr_t)handle >> 4) * 0x9E3779B97F4A7C15ull >> 20;
    for (at &= room - 1; table[at].handle && table[at].handle != handle;)
        at = (at + 1) & (room - 1);
    return at;
}

static bool make_room(void) {
    if (2 * (all.n_handles + 1) <= all.room) return true;
    const size_t room = all.room ? 2 * all.room : 1024;
    known *table = calloc(room, sizeof *table);
    if (!table) return false;
    for (size_t i = 0; i < all.room; i++)
        if (all.handles[i].handle)
            table[slot_of(table, room, all.handles[i].handle)] = all.handles[i];
    free(all.handles);
    all.handles = table, all.room = room;
    return true;
}

static known *handle_of(const void *handle) {
    known *k = all.room && handle ? &all.handles[slot_of(all.handles, all.room, handle)] : NULL;
    return k && k->handle ? k : NULL;
}

/* A handle that is given out again means the new thing.  Names are never freed: they are few. */
static void remember_handle(const void *handle, int image, const char *name, bool is_kernel) {
    if (!handle || !make_room()) return;
    known *k = &all.handles[slot_of(all.handles, all.room, handle)];
    if (!k->handle) all.n_handles++;
    *k = (known){handle, image, is_kernel, name ? strdup(name) : NULL};
}

/* A function that was not asked for by its name: the driver knows it. */
static known *stranger(const void *f) {
    const capture_driver *d = &all.driver;
    const char *name = NULL;
    const void *home = NULL;
    bool is_kernel = false;
    if (d->function_name && d->function_module && !d->function_name(&name, f))
        (void)d->function_module(&home, f);
    else if (d->kernel_name && d->kernel_library && !d->kernel_name(&name, f))
        is_kernel = true, (void)d->kernel_library(&home, f);
    const known *k = handle_of(home);
    remember_handle(f, k ? k->image : -1, name ? name : "", is_kernel);
    return handle_of(f);
}

/* ---- images ------------------------------------------------------------------------------ */

enum { WRAPPER = 0x466243b1, FATBIN = (int)0xBA55ED50 };

typedef struct {
    int magic, version;
    const void *data, *more;
} wrapper;

static uint64_t image_elf_bytes(const void *image) {
    Elf64_Ehdr h;
    memcpy(&h, image, sizeof h);
    const uint64_t sections = h.e_shoff + (uint64_t)h.e_shnum * h.e_shentsize,
                   programs = h.e_phoff + (uint64_t)h.e_phnum * h.e_phentsize;
    return sections > programs ? sections : programs;
}

/* Where the code begins, and its kind and length; the driver has just read it, so it is there. */
static const void *measure(const void *code, const char **kind, uint64_t *bytes) {
    int magic;
    memcpy(&magic, code, sizeof magic);
    if (magic == WRAPPER) {
        wrapper w;
        memcpy(&w, code, sizeof w);
        code = w.data;
        memcpy(&magic, code, sizeof magic);
    }
    *kind = "unknown", *bytes = 0;
    if (magic == FATBIN) {
        uint16_t head;
        memcpy(&head, (const char *)code + 6, sizeof head);
        memcpy(bytes, (const char *)code + 8, sizeof *bytes);
        *bytes += head, *kind = "fatbin";
    } else if (memcmp(code, ELFMAG, SELFMAG) == 0) {
        *bytes = image_elf_bytes(code), *kind = "cubin";
    } else if (magic && ((const char *)code)[0] >= '\t' && ((const char *)code)[0] <= '~') {
        *bytes = strlen(code), *kind = "ptx";
    }
    return code;
}

static void keep_image(const void *handle, const void *code, uint64_t bytes, const char *kind) {
    line l = {0};
    const int number = all.n_images++, fd = open_beside("%d-%d.image", number);
    const bool kept = fd >= 0 && bytes <= MOST_IMAGE_BYTES && write_whole(fd, code, bytes);
    if (fd >= 0) (void)close(fd);
    remember_handle(handle, number, NULL, false);
    put(&l, "{\"record\":\"image\",\"image\":%d,\"kind\":\"%s\",\"bytes\":%llu,\"kept\":%s", number,
        kind, (unsigned long long)bytes, kept ? "true" : "false");
    finish_line(&l);
}

void capture_saw_image(const void *handle, const void *code) {
    const char *kind;
    uint64_t bytes;
    if (!code || !begin_note()) return;
    code = measure(code, &kind, &bytes);
    keep_image(handle, code, bytes, kind);
    end_note();
}

void capture_saw_image_file(const void *handle, const char *path) {
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *at = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 8)
        at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0) (void)close(fd);
    if (at == MAP_FAILED || !begin_note()) return;
    const char *kind = memcmp(at, ELFMAG, SELFMAG) == 0               ? "cubin"
                       : memcmp(at, &(int){FATBIN}, sizeof(int)) == 0 ? "fatbin"
                                                                      : "ptx";
    keep_image(handle, at, (uint64_t)info.st_size, kind);
    end_note();
    (void)munmap(at, (size_t)info.st_size);
}

void capture_saw_alias(const void *handle, const void *of) {
    if (!begin_note()) return;
    const known *k = handle_of(of);
    if (k && handle != of) remember_handle(handle, k->image, k->name, false);
    end_note();
}

void capture_saw_function(const void *handle, const void *image, const char *name, bool is_kernel) {
    if (!begin_note()) return;
    const known *k = handle_of(image);
    remember_handle(handle, k ? k->image : -1, name, is_kernel);
    end_note();
}

/* ---- memory ------------------------------------------------------------------------------ */

void capture_saw_memory(kl_cu_ptr data, size_t bytes) {
    if (!begin_note()) return;
    if (all.n_allocations == all.allocation_room) {
        const size_t room = all.allocation_room ? 2 * all.allocation_room : 256;
        allocation *more = realloc(all.allocations, room * sizeof *more);
        if (more) all.allocations = more, all.allocation_room = room;
    }
    if (all.n_allocations < all.allocation_room)
        all.allocations[all.n_allocations++] = (allocation){data, bytes, all.next_allocation++};
    end_note();
}

void capture_saw_free(kl_cu_ptr data) {
    if (!begin_note()) return;
    size_t i = all.n_allocations;
    while (i > 0 && all.allocations[i - 1].data != data) i--;
    if (i > 0) all.allocations[i - 1] = all.allocations[--all.n_allocations];
    end_note();
}

/* The live allocation that holds the address: ours to know, or the driver's (memory that was mapped
 * by hand). */
static bool allocation_with(allocation *out, kl_cu_ptr at) {
    size_t bytes = 0;
    kl_cu_ptr base = 0;
    for (size_t i = all.n_allocations; i > 0; i--) {
        *out = all.allocations[i - 1];
        if (at >= out->data && at - out->data < out->bytes) return true;
    }
    if (at < 4096 || !all.driver.range || all.driver.range(&base, &bytes, at) || at < base ||
        at - base >= bytes)
        return false;
    *out = (allocation){base, bytes, base};
    return true;
}

/* ---- tensor maps ------------------------------------------------------------------------- */

void capture_saw_map(const kli_cu_tensormap *made, const capture_map *m) {
    if (m->rank < 1 || m->rank > 5 || !begin_note()) return;
    if (!all.maps) all.maps = calloc(MOST_MAPS, sizeof *all.maps);
    if (all.maps) {
        encoded *e = &all.maps[all.n_maps++ % MOST_MAPS];
        *e = (encoded){.made = *made, .how = *m};
        memcpy(e->dims, m->dims, m->rank * sizeof *m->dims);
        memcpy(e->strides, m->strides, (m->rank - 1) * sizeof *m->strides);
        memcpy(e->box, m->box, m->rank * sizeof *m->box);
        memcpy(e->element_strides, m->element_strides, m->rank * sizeof *m->box);
    }
    end_note();
}

static const encoded *map_of(const unsigned char *bytes) {
    for (size_t i = 0; i < all.n_maps && i < MOST_MAPS; i++)
        if (memcmp(&all.maps[i].made, bytes, MAP_BYTES) == 0) return &all.maps[i];
    return NULL;
}

/* ---- launches ---------------------------------------------------------------------------- */

static void put_pointer(line *l, const char *name, uint32_t at, const allocation *m,
                        kl_cu_ptr pointer) {
    put(l, "%s\"at\":%u,\"address\":%llu,\"allocation\":%llu,\"offset\":%llu,\"bytes\":%llu", name,
        at, (unsigned long long)pointer, (unsigned long long)m->id,
        (unsigned long long)(pointer - m->data), (unsigned long long)m->bytes);
}

static void put_map(line *l, uint32_t at, const encoded *e) {
    const capture_map *m = &e->how;
    allocation home;
    const bool known_home = allocation_with(&home, m->base);
    put_pointer(l, "{", at, known_home ? &home : &(allocation){m->base, 0, 0}, m->base);
    put(l, ",\"dtype\":%d,\"interleave\":%d,\"swizzle\":%d,\"l2\":%d,\"fill\":%d", m->dtype,
        m->interleave, m->swizzle, m->l2, m->fill);
    put_wide(l, "dims", e->dims, m->rank);
    put_wide(l, "strides", e->strides, m->rank - 1);
    put_list(l, "box", e->box, m->rank);
    put_list(l, "steps", e->element_strides, m->rank);
    put(l, "}");
}

/* Descriptors lie at multiples of 64 bytes, pointers of 8; what is within a descriptor is none. */
static void put_found(line *l, const unsigned char *value, size_t bytes) {
    line pointers = {0}, maps = {0};
    for (size_t at = 0; at + 8 <= bytes;) {
        const encoded *e = at % 64 == 0 && at + MAP_BYTES <= bytes ? map_of(value + at) : NULL;
        uint64_t word;
        allocation home;
        memcpy(&word, value + at, sizeof word);
        if (e) {
            put(&maps, "%s", maps.len ? "," : "");
            put_map(&maps, (uint32_t)at, e);
        } else if (allocation_with(&home, word)) {
            put_pointer(&pointers, pointers.len ? ",{" : "{", (uint32_t)at, &home, word);
            put(&pointers, "}");
        }
        at += e ? MAP_BYTES : 8;
    }
    put(l, ",\"pointers\":[");
    if (pointers.len) put_bytes(l, pointers.ptr, pointers.len);
    put(l, "],\"maps\":[");
    if (maps.len) put_bytes(l, maps.ptr, maps.len);
    put(l, "]}");
    l->failed = l->failed || pointers.failed || maps.failed;
    free(pointers.ptr), free(maps.ptr);
}

static void put_parameter(line *l, size_t offset, const unsigned char *value, size_t bytes) {
    put(l, "{\"offset\":%zu,\"bytes\":%zu,\"value\":\"", offset, bytes);
    for (size_t i = 0; value && i < bytes; i++) put(l, "%02x", value[i]);
    put(l, "\"");
    put_found(l, value, value ? bytes : 0);
}

/* cuLaunchKernel's other way: one block of bytes, { 1, block, 2, &its size, 0 }. */
static const unsigned char *block_of(void **extra, size_t *bytes) {
    const unsigned char *block = NULL;
    *bytes = 0;
    for (; extra && *extra; extra += 2) {
        if (*extra == (void *)1) block = extra[1];
        if (*extra == (void *)2) memcpy(bytes, extra[1], sizeof *bytes);
    }
    return block;
}

static void put_parameters(line *l, const capture_launch *launch, bool is_kernel) {
    const capture_driver *d = &all.driver;
    size_t offset, bytes, whole, block_bytes;
    const unsigned char *block = block_of(launch->extra, &block_bytes);
    kl_cu_result (*of)(const void *, size_t, size_t *, size_t *) =
        is_kernel && d->kernel_parameter ? d->kernel_parameter : d->parameter;
    put(l, ",\"told\":%s,\"parameters\":[", of ? "true" : "false");
    whole = 0;
    for (size_t i = 0; of && i < MOST_PARAMETERS && !of(launch->function, i, &offset, &bytes);
         i++) {
        if ((whole += bytes) > MOST_PARAMETER_BYTES) break;
        const unsigned char *value = NULL;
        if (launch->arguments)
            value = launch->arguments[i];
        else if (block && offset + bytes <= block_bytes)
            value = block + offset;
        put(l, "%s", i ? "," : "");
        put_parameter(l, offset, value, bytes);
    }
    put(l, "]");
}

static void put_device(line *l) {
    const capture_driver *d = &all.driver;
    kl_cu_device device = 0;
    int major = 0, minor = 0;
    char name[128] = "";
    if (d->context_device) (void)d->context_device(&device);
    if (d->device_attribute) {
        (void)d->device_attribute(&major, KL_CU_ATTR_MAJOR, device);
        (void)d->device_attribute(&minor, KL_CU_ATTR_MINOR, device);
    }
    if (d->device_name) (void)d->device_name(name, sizeof name, device);
    put(l, ",\"arch\":%d,\"device\":", 10 * major + minor);
    put_quoted(l, name);
}

static void put_launch(const capture_launch *launch, uint32_t index) {
    line l = {0};
    const known *k = handle_of(launch->function);
    if (!k) k = stranger(launch->function);
    put(&l, "{\"record\":\"launch\",\"launch\":%u,\"image\":%d,\"name\":", index,
        k ? k->image : -1);
    put_quoted(&l, k && k->name ? k->name : "");
    put_list(&l, "grid", launch->grid, 3);
    put_list(&l, "block", launch->block, 3);
    put_list(&l, "cluster", launch->cluster, 3);
    put(&l, ",\"shared\":%u,\"cooperative\":%s,\"graph\":%s,\"overlaps\":%s", launch->shared_bytes,
        launch->cooperative ? "true" : "false", launch->in_graph ? "true" : "false",
        launch->overlaps ? "true" : "false");
    put_device(&l);
    put_parameters(&l, launch, k && k->is_kernel);
    finish_line(&l);
}

static uint64_t launch_key(const capture_launch *l) {
    const uint64_t words[] = {(uintptr_t)l->function,
                              (uint64_t)l->grid[0] << 32 | l->grid[1],
                              (uint64_t)l->grid[2] << 32 | l->block[0],
                              (uint64_t)l->block[1] << 32 | l->block[2],
                              (uint64_t)l->cluster[0] << 32 | l->cluster[1],
                              (uint64_t)l->cluster[2] << 32 | l->shared_bytes};
    uint64_t key = 0xCBF29CE484222325ull;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        key = (key ^ words[i]) * 0xFF51AFD7ED558CCDull;
        key ^= key >> 32;
    }
    return key ? key : 1;
}

/* Which launch this is; CAPTURE_MOST_LAUNCHES: there are too many. */
static uint32_t launch_number(uint64_t key, bool *fresh) {
    for (uint32_t i = 0; i < all.n_launches; i++)
        if (all.keys[i] == key) return i;
    *fresh = all.n_launches < CAPTURE_MOST_LAUNCHES;
    if (*fresh) all.keys[all.n_launches++] = key;
    return *fresh ? all.n_launches - 1 : CAPTURE_MOST_LAUNCHES;
}

void capture_saw_launch(const capture_launch *l) {
    bool fresh = false;
    if (!begin_note()) return;
    const uint32_t number = launch_number(launch_key(l), &fresh);
    if (fresh) put_launch(l, number);
    if (all.counts) {
        const uint64_t n = all.counts->all++;
        if (number < CAPTURE_MOST_LAUNCHES) all.counts->seen[number]++;
        if (n < CAPTURE_MOST_ORDER) all.counts->order[n] = number;
    }
    end_note();
}

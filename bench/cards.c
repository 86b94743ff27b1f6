/* cards.c - how long a card takes to be found in a large library.
 *
 *   bench_cards LIBRARY FOLDER KERNEL TASK [COUNT [distinct]]
 *
 * COUNT cards are made from the admitted cards of LIBRARY in turn, under names of their own, and
 * written to FOLDER, unless it holds as many already; the index lies in FOLDER/cache.  With
 * `distinct` each has a contract of its own, out of the conditions of all of them: the bits of its
 * number say which it needs besides its own; else copies share theirs.  Then processes of their
 * own, TURNS times, open FOLDER (its index dropped from the system's memory) and retrieve for
 * KERNEL once, which is `cold`, and LOOKS times more, which is `warm`.  `index` is the time that
 * reading every card takes, once.  Prints one JSON object, in milliseconds.
 * SPDX-License-Identifier: Apache-2.0 */
#include "skill/skill_impl.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/stats.h"
#include <dirent.h>
#include <fcntl.h>
#include <klineage/skill.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TURNS = 15,
    LOOKS = 40,
    DEFAULT_COUNT = 100000,
    SETTLE_S = 4 /* an index reads files that were written just now again */
};

typedef struct {
    double first, warm; /* ms */
    int matches;
} looked;

static KL_NORETURN void die(const kl_error *e) {
    kl_buf b = {0};
    kl_error_render(e, &b);
    fputs(b.ptr, stderr);
    exit(2);
}

static double ms_since(int64_t start) { return (double)(kli_now_ns() - start) * 1e-6; }

/* ---- the library ------------------------------------------------------------------------- */

/* Without the flush to the disk that a library's own writer waits for. */
static void write_text(kl_arena *a, const char *folder, const char *name, kl_buf *text) {
    FILE *f = fopen(kli_fs_join(a, folder, name).ptr, "w");
    if (!f || fwrite(text->ptr, 1, text->len, f) != text->len || fclose(f) != 0) {
        perror(folder);
        exit(2);
    }
    kl_buf_fini(text);
}

/* What is needed by cards that are of the same surface as `c`, each once. */
static kl_names needs_beside(const kl_card *c, kl_arena *a, const kl_library *l) {
    kl_names needs = {0};
    for (int i = 0; i < l->n_cards; i++) {
        const kl_card *x = &l->cards[i];
        if (!x->declared.surfaces.n ||
            !kli_names_have(&c->declared.surfaces, x->declared.surfaces.at[0]))
            continue;
        for (int k = 0; k < x->n_needs; k++) kli_names_add(&needs, a, x->needs[k]);
    }
    return needs;
}

static void add_needs(kl_card *c, kl_arena *a, const kl_library *l, int number) {
    const kl_names pool = needs_beside(c, a, l);
    kl_names needs = {0};
    for (int i = 0; i < c->n_needs; i++) kli_names_add(&needs, a, c->needs[i]);
    for (int i = 0; i < pool.n && i < 31; i++)
        if (number >> i & 1) kli_names_add(&needs, a, pool.at[i]);
    c->needs = needs.at;
    c->n_needs = needs.n;
}

static void write_copy(const char *folder, const kl_card *of, int number, const kl_library *mix) {
    kl_arena *a = kl_arena_new();
    kl_buf skill = {0}, evidence = {0};
    kl_error e;
    kl_card c = *of;
    c.name = kl_arena_printf(a, "%.50s-%d", of->name.ptr, number);
    if (mix) add_needs(&c, a, mix, number);
    kl_card_render(&c, &skill, &evidence);
    const kl_str at = kl_arena_printf(a, "%s/admitted/%s", folder, c.name.ptr);
    if (kli_fs_mkdirs(at.ptr, &e)) die(&e);
    write_text(a, at.ptr, "SKILL.md", &skill);
    write_text(a, at.ptr, "evidence.json", &evidence);
    kl_arena_free(a);
}

static int folders_in(const char *path) {
    DIR *d = opendir(path);
    int n = 0;
    for (struct dirent *x; d && (x = readdir(d));) n += *x->d_name != '.';
    if (d) closedir(d);
    return n;
}

static int make_library(kl_arena *a, const char *from, const char *folder, int count,
                        bool distinct) {
    kl_library *l;
    kl_error e = {0};
    int made = 0;
    if (folders_in(kli_fs_join(a, folder, "admitted").ptr) == count) return count;
    if (kl_library_load(&l, a, from, &e)) die(&e);
    for (int i = 0; l->n_cards && made < count; i = (i + 1) % l->n_cards)
        if (l->cards[i].status == KL_CARD_ADMITTED && !l->cards[i].edited)
            write_copy(folder, &l->cards[i], made++, distinct ? l : NULL);
    return made;
}

/* ---- looking ----------------------------------------------------------------------------- */

static int retrieve(const kl_library *l, const kl_target *t, kl_arena *a) {
    kl_match *m;
    int n;
    kl_library_retrieve(&m, &n, a, l, t, &(kl_retrieve_opts){.top = 8});
    return n;
}

static looked look(const char *folder, const kl_target *target) {
    kl_arena *a = kl_arena_new();
    kl_library *l;
    kl_error e = {0};
    looked x = {0};
    double ms[LOOKS];
    const int64_t start = kli_now_ns();
    if (kl_library_open(&l, a, folder, &e)) die(&e);
    x.matches = retrieve(l, target, a);
    x.first = ms_since(start);
    for (int i = 0; i < LOOKS; i++) {
        const int64_t again = kli_now_ns();
        (void)retrieve(l, target, a);
        ms[i] = ms_since(again);
    }
    x.warm = kli_median(ms, LOOKS);
    kl_arena_free(a);
    return x;
}

/* The system is to read it from the disk again. */
static void forget_index(kl_arena *a) {
    kl_str *names, dir = kl_fs_cache_dir(a);
    size_t n = 0;
    if (kli_fs_list(&names, &n, a, dir.ptr, kl_ignored())) return;
    for (size_t i = 0; i < n; i++) {
        const int fd = open(kli_fs_join(a, dir.ptr, names[i].ptr).ptr, O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;
        (void)fdatasync(fd);
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        (void)close(fd);
    }
}

static looked look_in_a_process(const char *folder, const kl_target *target) {
    looked *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                          -1, 0),
           x;
    KL_ASSERT(shared != MAP_FAILED);
    const pid_t child = fork();
    if (child == 0) {
        *shared = look(folder, target);
        _exit(0);
    }
    int status = 0;
    KL_ASSERT(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    x = *shared;
    (void)munmap(shared, sizeof *shared);
    return x;
}

/* Median and maximum under NAME and NAME_max. */
static void add_times(json_t *o, kl_arena *a, const char *name, double *ms) {
    json_object_set_new(o, kl_arena_printf(a, "%s_max", name).ptr,
                        json_real(kli_quantile(ms, TURNS, 1)));
    json_object_set_new(o, name, json_real(kli_median(ms, TURNS)));
}

static json_t *measure(kl_arena *a, const char *folder, const kl_target *target) {
    double cold[TURNS], fresh[TURNS], warm[TURNS];
    looked x = {0};
    (void)sleep(SETTLE_S);
    const int64_t start = kli_now_ns();
    (void)look_in_a_process(folder, target);
    json_t *o = json_pack("{sf}", "index", ms_since(start));
    for (int i = 0; i < TURNS; i++) {
        forget_index(a);
        cold[i] = look_in_a_process(folder, target).first;
        x = look_in_a_process(folder, target);
        fresh[i] = x.first;
        warm[i] = x.warm;
    }
    add_times(o, a, "cold", cold);
    add_times(o, a, "fresh", fresh);
    add_times(o, a, "warm", warm);
    json_object_set_new(o, "matches", json_integer(x.matches));
    return o;
}

int main(int argc, char **argv) {
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_kernel *kernel;
    kl_task *task;
    kl_traits traits;
    const int count = argc > 5 ? atoi(argv[5]) : DEFAULT_COUNT;
    if (argc < 5 || count < 1) {
        fputs("usage: bench_cards LIBRARY FOLDER KERNEL TASK [COUNT [distinct]]\n", stderr);
        return 2;
    }
    const kl_str cache = kli_fs_join(a, argv[2], "cache");
    kli_fs_remove_tree(cache.ptr);
    if (setenv("KLINEAGE_CACHE", cache.ptr, 1) != 0) kl_oom(0);
    const int made = make_library(a, argv[1], argv[2], count, argc > 6);
    if (kl_kernel_load(&kernel, a, argv[3], &(kl_kernel_opts){0}, &e)) die(&e);
    if (kl_task_load(&task, a, argv[4], &e)) die(&e);
    kl_traits_of(&traits, a, kernel, NULL);
    const kl_workload *w = kl_task_workload(task, KL_S(""), kernel->surface->on);
    const kl_target target = {.case_name = task->case_name,
                              .surface = kl_str_of(kernel->surface->name),
                              .platform = KL_S("x86-64-v4/gcc-12"),
                              .dtype = KL_S("float32"),
                              .traits = &traits,
                              .facts = kl_facts_of(a, kernel, task, w, NULL)};
    json_t *o = measure(a, argv[2], &target);
    json_object_set_new(o, "cards", json_integer(made));
    json_object_set_new(o, "distinct", json_boolean(argc > 6));
    puts(kli_json_dump(a, o, true).ptr);
    json_decref(o);
    kl_arena_free(a);
    return 0;
}

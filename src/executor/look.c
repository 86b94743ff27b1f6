/* look.c - what happens in a spool, as names and times of its folders say: for people who watch.
 *
 * Nothing is taken or changed.  Everything read is data that anybody may have written.
 * SPDX-License-Identifier: Apache-2.0 */
#include "look.h"
#include "spool_impl.h"

#include "base/fs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { NEWEST = 64 /* verdicts that are opened for the name of their device */ };

static int64_t look_age_of(const char *path) {
    struct stat st;
    return stat(path, &st) ? -1 : (int64_t)(time(NULL) - st.st_mtime);
}

/* "ID@HOST@PID" with "@slurm-N" behind it where Slurm started the worker. */
static void look_read_worker(kli_spool_state *s, kl_arena *a, const char *taken, kl_str name) {
    char id[80], host[80], pid[24], slurm[32] = "";
    const kl_str text = kl_arena_copy(a, name);
    const int got =
        sscanf(text.ptr, "%79[^@]@%79[^@]@%23[0-9]@slurm-%31[0-9]", id, host, pid, slurm);
    if (got < 3 || !kli_spool_is_id(kl_str_of(id))) return;
    *KL_PUSH(a, s->workers, s->n_workers) =
        (kli_spool_taken){.id = kl_arena_copy(a, kl_str_of(id)),
                          .host = kl_arena_copy(a, kl_str_of(host)),
                          .pid = strtoll(pid, NULL, 10),
                          .slurm = kl_arena_copy(a, kl_str_of(slurm)),
                          .silent_s = look_age_of(kli_fs_join(a, taken, text.ptr).ptr)};
}

typedef struct {
    int64_t age;
    const char *path;
} look_answer;

static int look_newest_first(const void *one, const void *other) {
    const look_answer *a = one, *b = other;
    return (a->age > b->age) - (a->age < b->age);
}

static void look_count_device(kli_spool_state *s, kl_arena *a, kl_str name) {
    for (size_t i = 0; i < s->n_devices; i++)
        if (kl_str_eq(s->devices[i].name, name)) {
            s->devices[i].verdicts++;
            return;
        }
    *KL_PUSH(a, s->devices, s->n_devices) = (kli_spool_device){kl_arena_copy(a, name), 1};
}

static void look_read_answers(kli_spool_state *s, kl_arena *a, const char *done,
                              const kl_str *names) {
    look_answer *answers = KL_ARRAY(a, look_answer, s->done + 1);
    size_t n = 0;
    for (size_t i = 0; i < s->done; i++) {
        const char *path = kl_arena_printf(a, "%s/%s/verdict.json", done, names[i].ptr).ptr;
        const int64_t age = look_age_of(path);
        if (age < 0) s->failed++;
        if (age < 0) continue;
        s->of_last_minute += age < 60;
        answers[n++] = (look_answer){age, path};
    }
    qsort(answers, n, sizeof *answers, look_newest_first);
    for (size_t i = 0; i < n && i < NEWEST; i++) {
        kl_str text;
        kl_verdict v;
        if (!kli_fs_read(&text, a, answers[i].path, KL_MAX_JSON_BYTES, kl_ignored()) &&
            !kl_verdict_parse(&v, a, text, KL_S("verdict.json"), kl_ignored()))
            look_count_device(s, a, v.device);
    }
}

kl_err kli_spool_look(kli_spool_state *out, kl_arena *a, const char *dir, kl_error *e) {
    kl_str *waiting, *taken, *done;
    size_t n_taken;
    *out = (kli_spool_state){.dir = kl_arena_copy(a, kl_str_of(dir))};
    if (!kli_fs_is_dir(dir)) return kl_fail(e, KL_ENOENT, dir, "no such spool folder");
    const char *taken_dir = kli_fs_join(a, dir, "taken").ptr,
               *done_dir = kli_fs_join(a, dir, "done").ptr;
    kl_err err = kli_fs_list(&waiting, &out->waiting, a, kli_fs_join(a, dir, "todo").ptr, e);
    if (!err) err = kli_fs_list(&taken, &n_taken, a, taken_dir, e);
    if (!err) err = kli_fs_list(&done, &out->done, a, done_dir, e);
    if (err) return err;
    for (size_t i = 0; i < n_taken; i++) look_read_worker(out, a, taken_dir, taken[i]);
    look_read_answers(out, a, done_dir, done);
    return KL_OK;
}

/* starts.c - states of kernels that lie in files: of the lineages of a library, of ladders, and the
 * plain kernels of tasks.  Cards are tried on them, and contracts are held against them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/starts.h"
#include "command/request.h"
#include "base/fs.h"

static void add_start(kli_starts *g, kl_task *task, kl_str name, kl_str source,
                      const kl_surface *surface, kl_str lineage) {
    const kl_workload *w = kl_task_workload(task, kl_str_of(g->workload), surface->on);
    if (!w) w = kl_task_workload(task, KL_S(""), surface->on);
    if (!g->starts) g->starts = KL_ARRAY(g->arena, kl_start, KLI_MAX_STARTS);
    if (w && g->n < KLI_MAX_STARTS)
        g->starts[g->n++] = (kl_start){.task = task,
                                       .workload = w,
                                       .name = name,
                                       .source = source,
                                       .surface = surface,
                                       .lineage = lineage};
}

static kl_err from_lineage(kli_starts *g, const kl_lineage *l, kl_error *e) {
    kl_task *task;
    const kl_err err = kli_request_task(&task, g->arena, kl_arena_copy(g->arena, l->task).ptr, e);
    const kl_surface *surface = err ? NULL : kl_surface_by_name(l->surface);
    for (int i = 0; surface && i < l->n_states; i++)
        add_start(g, task,
                  kl_arena_printf(g->arena, "%.*s/%.*s", KL_STR_ARG(l->name),
                                  KL_STR_ARG(l->states[i].name)),
                  l->states[i].source, surface, l->id);
    return err;
}

kl_err kli_lineages_of_library(kl_lineage **out, int *n, kl_arena *a, const char *dir,
                               kl_error *e) {
    kl_str *names, folder = kli_fs_join(a, dir, "lineages");
    size_t found;
    *n = 0;
    kl_err err = kli_fs_list(&names, &found, a, folder.ptr, e);
    if (err) return err;
    *out = KL_ARRAY(a, kl_lineage, found + 1);
    for (size_t i = 0; !err && i < found; i++)
        if (kl_str_ends(names[i], KL_S(".json")))
            err = kl_lineage_load(&(*out)[(*n)++], a, NULL,
                                  kli_fs_join(a, folder.ptr, names[i].ptr).ptr, e);
    return err;
}

kl_err kli_starts_of_library(kli_starts *g, const char *dir, kl_error *e) {
    kl_lineage *lineages;
    int n;
    kl_err err = kli_lineages_of_library(&lineages, &n, g->arena, dir, e);
    for (int i = 0; !err && i < n; i++) err = from_lineage(g, &lineages[i], e);
    return err;
}

/* `name`: of the folder within --starts. */
static kl_err from_ladder(kli_starts *g, kl_task *task, const kl_surface *surface,
                          const char *folder, const char *name, kl_error *e) {
    kl_str *names;
    size_t n;
    kl_err err = kl_kernel_list(&names, &n, g->arena, folder, e);
    for (size_t i = 0; !err && i < n; i++) {
        kl_str source, path = kli_fs_join(g->arena, folder, names[i].ptr);
        if (!kl_str_ends(names[i], kl_str_of(surface->suffix))) continue;
        err = kl_kernel_read(&source, &path, g->arena, e);
        if (!err)
            add_start(g, task, kli_fs_join(g->arena, name, names[i].ptr), source, surface,
                      KL_S(""));
    }
    return err;
}

/* DIR/TASK/SURFACE/kernels. */
kl_err kli_starts_of_ladders(kli_starts *g, const char *dir, kl_error *e) {
    kl_str *tasks, *surfaces;
    size_t n, m;
    kl_err err = kli_fs_list(&tasks, &n, g->arena, dir, e);
    for (size_t i = 0; !err && i < n; i++) {
        kl_task *task;
        kl_str folder = kli_fs_join(g->arena, dir, tasks[i].ptr);
        if (!kli_fs_is_dir(folder.ptr)) continue;
        err = kli_request_task(&task, g->arena, tasks[i].ptr, e);
        if (!err) err = kli_fs_list(&surfaces, &m, g->arena, folder.ptr, e);
        for (size_t j = 0; !err && j < m; j++)
            if (kl_surface_by_name(surfaces[j]))
                err = from_ladder(g, task, kl_surface_by_name(surfaces[j]),
                                  kli_fs_join(g->arena, folder.ptr, surfaces[j].ptr).ptr,
                                  kli_fs_join(g->arena, tasks[i].ptr, surfaces[j].ptr).ptr, e);
    }
    return err;
}

/* The naive kernel of each task on each surface that it has one for. */
kl_err kli_starts_of_tasks(kli_starts *g, kl_error *e) {
    kl_str *paths;
    size_t n;
    kl_err err = kli_request_tasks(&paths, &n, g->arena, e);
    for (size_t i = 0; !err && i < n; i++) {
        kl_task *task;
        const kl_surface *s;
        err = kli_request_task(&task, g->arena, paths[i].ptr, e);
        for (int k = 0; !err && (s = kl_surface_each(k)) != NULL; k++) {
            kl_str source, path;
            if (!s->naive) continue;
            path = kli_fs_join(g->arena, task->dir.ptr, s->naive);
            if (!kli_fs_exists(path.ptr)) continue;
            err = kl_kernel_read(&source, &path, g->arena, e);
            const kl_str name =
                kl_arena_printf(g->arena, "%.*s/%s", KL_STR_ARG(task->name), s->naive);
            if (!err) add_start(g, task, name, source, s, KL_S(""));
        }
    }
    return err;
}

kl_err kli_starts_of_experts(kli_starts *g, const char *library, const char *ladders, kl_error *e) {
    const kl_str parent = kli_fs_dirname(g->arena, library);
    const kl_str beside = kli_fs_join(g->arena, parent.len ? parent.ptr : ".", "experts");
    if (!ladders && !kli_fs_is_dir(beside.ptr)) return KL_OK;
    return kli_starts_of_ladders(g, ladders ? ladders : beside.ptr, e);
}

kl_err kli_starts_of_pool(kli_starts *g, const char *library, const char *ladders, kl_error *e) {
    kl_err err = kli_starts_of_experts(g, library, ladders, e);
    if (!err && kli_fs_is_dir(kli_fs_join(g->arena, library, "lineages").ptr))
        err = kli_starts_of_library(g, library, e);
    return err ? err : kli_starts_of_tasks(g, e);
}

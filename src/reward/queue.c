/* queue.c - questions that wait for a judge.
 *
 * One list, oldest first.  The next one is the oldest of the tenant whose last turn is longest ago,
 * so a tenant with a thousand kernels delays another's one by one kernel for each judge.
 * SPDX-License-Identifier: Apache-2.0 */
#include "reward/reward_impl.h"
#include <stdlib.h>
#include <string.h>

kli_job *kli_job_new(const kli_question *q, kli_tenant *t, int64_t now_ns) {
    kli_job *j = calloc(1, sizeof *j);
    if (!j) kl_oom(sizeof *j);
    j->arena = kl_arena_new();
    j->line = kli_question_line(j->arena, q, t->name);
    j->tenant = t;
    j->came_ns = now_ns;
    memcpy(j->key, q->key, sizeof j->key);
    return j;
}

void kli_job_free(kli_job *j) {
    if (!j) return;
    kl_arena_free(j->arena);
    free(j);
}

void kli_queue_add(kli_queue *q, kli_job *j) {
    kli_job **end = &q->first;
    while (*end) end = &(*end)->next;
    j->next = NULL;
    *end = j;
    q->n++;
}

kli_job *kli_queue_find(const kli_queue *q, const char *key) {
    kli_job *j = q->first;
    while (j && strcmp(j->key, key) != 0) j = j->next;
    return j;
}

kli_job *kli_queue_take(kli_queue *q) {
    kli_job **best = NULL;
    for (kli_job **at = &q->first; *at; at = &(*at)->next)
        if (!best || (*at)->tenant->turn < (*best)->tenant->turn) best = at;
    if (!best) return NULL;
    kli_job *taken = *best;
    *best = taken->next;
    taken->next = NULL;
    taken->tenant->turn = ++q->turns;
    KL_ASSERT(q->n > 0);
    q->n--;
    return taken;
}

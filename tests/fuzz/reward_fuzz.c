/* reward_fuzz.c - any bytes as the body of POST /v1/rewards: what is accepted is bounded, has
 * identities, and is the same batch when the journal gives it back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "reward/reward_impl.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_hash(const char *s) {
    return strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

static void check_batch(const kli_batch *b) {
    size_t open = 0;
    KL_ASSERT(b->n >= 1 && b->n <= KLI_REWARD_BATCH && b->formula && is_hash(b->id));
    KL_ASSERT(b->wait_ns >= 0 && b->wait_ns <= KLI_REWARD_WAIT_SECONDS * INT64_C(1000000000));
    for (size_t i = 0; i < b->n; i++) {
        const kli_question *q = &b->questions[i];
        KL_ASSERT(q->id.len && q->id.len <= KLI_REWARD_NAME && q->task.len);
        KL_ASSERT(q->kernel.len <= KL_MAX_SOURCE_BYTES && q->against.len <= KL_MAX_SOURCE_BYTES);
        KL_ASSERT(q->fail.code ? q->fail.message[0] != 0 : is_hash(q->key));
        KL_ASSERT(q->fail.code || kl_str_eq(q->path, KL_S("/tasks/known")));
        open += !q->fail.code;
    }
    KL_ASSERT(open == b->open);
}

/* As kept.c writes and reads it. */
static void check_kept(kli_tenant *t, const kli_batch *b, kl_arena *a) {
    kl_error e = {0};
    kli_batch *again = NULL;
    json_t *o = kli_batch_json(b);
    KL_ASSERT(kli_batch_parse(&again, t, kli_json_dump(a, o, false), &e) == KL_OK);
    KL_ASSERT(strcmp(b->id, again->id) == 0);
    json_decref(o);
    kli_batch_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_task *task = KL_NEW(a, kl_task);
    kli_reward_task known = {.name = KL_S("known"), .path = KL_S("/tasks/known"), .task = task};
    kli_reward_task *tasks[] = {&known};
    kli_tenant tenant = {.name = KL_S("alice"), .tasks = tasks, .n_tasks = 1};
    kli_batch *b = NULL;
    memset(task->hash, 'a', 64);
    const kl_err err = kli_batch_parse(&b, &tenant, (kl_str){(const char *)data, size}, &e);
    KL_ASSERT(err == KL_OK || (!b && e.message[0]));
    if (!err) {
        check_batch(b);
        check_kept(&tenant, b, a);
    }
    kli_batch_free(b);
    kl_arena_free(a);
    return 0;
}

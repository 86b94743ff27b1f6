/* fake_provider.h - a model for tests: what it does is written in the question, and every call
 * leaves a line in a file.
 *
 * "fake:FILE" as the run's model names that file.  The first word of the last message: !eio (the
 * line broke), !free (turned away for nothing), !model, !truncated, !refused, !silent (no usage),
 * !wild (impossible usage), !bill (its own bill), !bytes (a hostile reply), !wait FILE (pending
 * until FILE is there), !slow (takes 300 ms), !full (from now on the disk is full), !cut N (the
 * first N replies break off), !long (says how long it may be), !sent (says whether the system turn
 * was sent before).  Only tests include it. SPDX-License-Identifier: Apache-2.0 */
#ifndef KIT_FAKE_PROVIDER_H
#define KIT_FAKE_PROVIDER_H
#include "kernel/kernel.h"
#include "base/fs.h"
#include "base/test.h"
#include <klineage/run.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static kl_err fake_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    (void)e;
    *self = (void *)kl_arena_copy(a, kl_str_of(rest)).ptr;
    return KL_OK;
}

static void fake_log(const char *path, const char *slot) {
    char line[256];
    int n = snprintf(line, sizeof line, "%s\n", slot);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return;
    (void)!write(fd, line, (size_t)n);
    close(fd);
}

static bool fake_says(const kl_request *q, const char *word) {
    return kl_str_starts(q->messages[q->n - 1].text, kl_str_of(word));
}

/* One line a call. */
static inline int fake_calls(kl_arena *a, const char *path) {
    kl_str text;
    kl_error unused = {0};
    int n = 0;
    if (kli_fs_read(&text, a, path, 1 << 24, &unused)) return 0;
    for (size_t i = 0; i < text.len; i++) n += text.ptr[i] == '\n';
    return n;
}

static void fake_reply(kl_reply *out, kl_arena *a, const kl_request *q) {
    int64_t bytes = 0;
    for (int i = 0; i < q->n; i++) bytes += (int64_t)q->messages[i].text.len;
    out->text = kl_arena_printf(a, "answer to %.*s", KL_STR_ARG(q->messages[q->n - 1].text));
    out->usage = (kl_usage){.input = bytes / 4 + 1, .cache_read = 1, .output = 20};
    out->model = KL_S("fake-1");
    if (fake_says(q, "!long")) out->text = kl_arena_printf(a, "max %lld", (long long)q->max_tokens);
    if (fake_says(q, "!sent")) out->text = q->system_sent ? KL_S("sent") : KL_S("new");
    if (fake_says(q, "!truncated")) out->stop = KL_STOP_TRUNCATED;
    if (fake_says(q, "!refused")) out->stop = KL_STOP_REFUSED;
    if (fake_says(q, "!silent")) out->usage = (kl_usage){0};
    if (fake_says(q, "!wild")) out->usage = (kl_usage){.input = -5, .output = INT64_MAX};
    if (fake_says(q, "!bill")) out->billed_microusd = 777;
    if (fake_says(q, "!bytes")) {
        out->text = KL_S("\xff\xfe'; DROP TABLE effect; -- \x1b[2J ../../etc/passwd \0 end");
        out->model = KL_S("\xff\x1b[31m\"}");
    }
}

static kl_err fake_ask(kl_reply *out, void *self, kl_arena *a, const kl_request *q, kl_error *e) {
    kl_str last = q->messages[q->n - 1].text;
    KL_ASSERT(q->key && q->slot && q->max_tokens > 0);
    if (fake_says(q, "!wait ") &&
        !kli_fs_exists(kl_arena_copy(a, (kl_str){last.ptr + 6, last.len - 6}).ptr))
        return kl_fail(e, KL_PENDING, "fake", "no answer in the mailbox yet");
    fake_log(self, q->slot);
    usleep(fake_says(q, "!slow") ? 300000 : 500);
    if (fake_says(q, "!full")) setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, RLIM_INFINITY});
    if (fake_says(q, "!cut ") && fake_calls(a, self) <= last.ptr[5] - '0') {
        out->usage = (kl_usage){.input = 30, .output = 7, .estimated = true};
        out->again = true;
        return kl_fail(e, KL_EIO, "fake", "the reply broke off");
    }
    if (fake_says(q, "!eio")) return kl_fail(e, KL_EIO, "fake", "the stream was cut");
    if (fake_says(q, "!model")) return kl_fail(e, KL_EMODEL, "fake", "no such model");
    if (fake_says(q, "!free")) {
        out->billed_microusd = 0;
        return kl_fail(e, KL_EMODEL, "fake", "wrong key");
    }
    fake_reply(out, a, q);
    return KL_OK;
}

static const kl_provider fake_paid = {
    .name = "fake", .spec = "fake:FILE", .open = fake_open, .ask = fake_ask};
static const kl_provider fake_repeatable = {
    .name = "fake", .spec = "fake:FILE", .repeatable = true, .open = fake_open, .ask = fake_ask};

/* Ask one thing; the whole conversation is a rule and this text. */
static inline kl_err fake_question(kl_reply *out, kl_track *t, const char *text, kl_error *e) {
    const kl_message messages[] = {{KL_ROLE_SYSTEM, KL_S("the rules"), true},
                                   {KL_ROLE_USER, kl_str_of(text), false}};
    const kl_request q = {.messages = messages, .n = 2, .max_tokens = 100, .purpose = "deoptimize"};
    return kl_ask(out, t, kl_track_arena(t), &q, e);
}

#endif

/* mailbox.c - a folder as a model: one file per question, one per answer, so that a person or any
 * agent can answer.
 *
 *   DIR/requests/KEY.md     the whole conversation, readable; never changed once it is there
 *   DIR/replies/KEY.md      the answer, byte for byte; whoever answers writes it
 *
 * KEY is 64 hexadecimal digits, the request's own hash, so a name is never made of anything that a
 * model said.  Links are not followed and pipes not waited for.  An answer that is still being
 * written is waited for: it counts once it has been left alone for a moment. Not here: who answers,
 * and when; asking again is free.  Format: docs/formats/mailbox.md. SPDX-License-Identifier:
 * Apache-2.0 */
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "model_impl.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define QUIET_NS                                                                                   \
    300000000 /* an answer counts when nobody has written to it for this long: editors write in    \
                 pieces */
#define MOST_LOOKS 20 /* at an answer that keeps changing, before it is "not there yet" */

typedef struct {
    const char *dir;
} mailbox;

static kl_err mailbox_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    mailbox *m = KL_NEW(a, mailbox);
    m->dir = rest;
    *self = m;
    const kl_err err = kli_fs_mkdirs(kli_fs_join(a, rest, "requests").ptr, e);
    return err ? err : kli_fs_mkdirs(kli_fs_join(a, rest, "replies").ptr, e);
}

static bool is_key(const char *key) {
    return strlen(key) == 64 && strspn(key, "0123456789abcdef") == 64;
}

/* Asked outside of a run: the conversation's own hash. */
static kl_err mailbox_key_of(char key[65], const kl_request *q, kl_error *e) {
    if (q->key && !is_key(q->key))
        return kl_fail(e, KL_EINVAL, "mailbox", "a request's key must be 64 hexadecimal digits");
    if (q->key) return memcpy(key, q->key, 65), KL_OK;
    kl_buf text = {0};
    kl_buf_printf(&text, "%s %lld\n", q->purpose, (long long)q->max_tokens);
    kli_conversation_text(&text, q);
    const kl_hash h = kli_hash_of(kl_buf_str(&text));
    memcpy(key, h.hex, 65);
    kl_buf_fini(&text);
    return KL_OK;
}

/* ---- the question ------------------------------------------------------------------------ */

static kl_err put_request(const char *path, const char *key, const kl_request *q, kl_error *e) {
    kl_buf text = {0};
    kl_buf_printf(
        &text,
        "---\nschema: klineage/request\nversion: 1\nkey: %s\npurpose: %s\nslot: %s\nmax_tokens: "
        "%lld\nanswer: ../replies/%s.md\n---\n\n",
        key, q->purpose, q->slot ? q->slot : "", (long long)q->max_tokens, key);
    kl_buf_printf(
        &text,
        "Answer the last turn: write the answer, and nothing else, into `../replies/%s.md`.\n\n",
        key);
    kli_conversation_text(&text, q);
    const kl_err err = kli_fs_write(path, kl_buf_str(&text), e);
    kl_buf_fini(&text);
    return err;
}

/* ---- the answer -------------------------------------------------------------------------- */

static int64_t age_ns(const struct stat *st) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)(now.tv_sec - st->st_mtim.tv_sec) * 1000000000 +
           (now.tv_nsec - st->st_mtim.tv_nsec);
}

/* A clock that is ahead (another host's disk) must not keep an answer from counting: then only a
 * change between two looks matters. */
static bool wait_stable(int fd, struct stat *st) {
    struct stat before = {.st_size = -1};
    for (int i = 0; i < MOST_LOOKS && !kli_interrupted(); i++) {
        if (fstat(fd, st) != 0) return false;
        const bool same = before.st_size == st->st_size &&
                          before.st_mtim.tv_sec == st->st_mtim.tv_sec &&
                          before.st_mtim.tv_nsec == st->st_mtim.tv_nsec;
        if (same || age_ns(st) > QUIET_NS) return true;
        before = *st;
        nanosleep(&(struct timespec){.tv_nsec = QUIET_NS}, NULL);
    }
    return false;
}

static kl_err mailbox_read_answer(kl_str *out, kl_arena *a, int fd, const char *path, kl_error *e) {
    struct stat st;
    char self[64];
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return kl_fail(e, KL_EINVAL, path, "an answer must be a plain file");
    if (!wait_stable(fd, &st))
        return kl_fail(e, KL_PENDING, path, "the answer is still being written");
    if (!st.st_size) return kl_fail(e, KL_EINVAL, path, "the answer is empty");
    if (st.st_size > (off_t)KL_MAX_REPLY_BYTES)
        return kl_fail(e, KL_ELIMIT, path, "the answer has %lld bytes; at most %u are taken",
                       (long long)st.st_size, KL_MAX_REPLY_BYTES);
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    kl_err err = kli_fs_read(out, a, self, KL_MAX_REPLY_BYTES, e);
    if (!err && memchr(out->ptr, '\0', out->len))
        err = kl_fail(e, KL_EINVAL, path, "the answer is no text: it has NUL bytes");
    return err;
}

static kl_err get_answer(kl_str *out, kl_arena *a, const char *path, kl_error *e) {
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return KL_PENDING;
    if (fd < 0 && errno == ELOOP)
        return kl_fail(e, KL_EINVAL, path, "an answer must be a plain file, not a link");
    if (fd < 0) return kl_fail(e, KL_EIO, path, "cannot open: %s", strerror(errno));
    const kl_err err = mailbox_read_answer(out, a, fd, path, e);
    close(fd);
    if (err == KL_EINVAL || err == KL_ELIMIT)
        kl_hint(e, "rewrite the answer in that file, then run the same command again");
    return err;
}

static kl_err mailbox_ask(kl_reply *out, void *self, kl_arena *a, const kl_request *q,
                          kl_error *e) {
    const mailbox *m = self;
    char key[65];
    out->billed_microusd = 0;
    kl_err err = mailbox_key_of(key, q, e);
    if (err) return err;
    KL_ASSERT(is_key(key)); /* law 7: no name is made of what a model said */
    const char *request = kl_arena_printf(a, "%s/requests/%s.md", m->dir, key).ptr;
    const char *reply = kl_arena_printf(a, "%s/replies/%s.md", m->dir, key).ptr;
    if (!kli_fs_exists(request)) err = put_request(request, key, q, e);
    if (!err) err = get_answer(&out->text, a, reply, e);
    if (err == KL_PENDING) {
        kl_fail(e, KL_PENDING, m->dir, "the question %.16s (%.40s) is not answered yet", key,
                q->purpose);
        kl_hint(e, "answer requests/%s.md in replies/%s.md, then run the same command again", key,
                key);
    }
    if (err) return err;
    out->usage = kl_usage_estimate_cached(q, out->text);
    out->billed_microusd = -1;
    return KL_OK;
}

static bool mailbox_counted(kl_usage *out, const void *self, const kl_request *q) {
    (void)self;
    *out = kl_usage_estimate_cached(q, KL_S(""));
    return true;
}

const kl_provider kli_mailbox = {
    .name = "mailbox",
    .spec = "mailbox:DIR",
    .doc = "a folder: a person or any agent answers DIR/requests/KEY.md in DIR/replies/KEY.md",
    .example = "mailbox:questions",
    .repeatable = true,
    .slow = true,
    .open = mailbox_open,
    .ask = mailbox_ask,
    .counted = mailbox_counted,
};

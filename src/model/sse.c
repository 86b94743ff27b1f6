/* sse.c - server-sent events, incrementally.
 *
 *   event: NAME        the event's name; absent in OpenAI's shape
 *   data: TEXT         several join with a newline
 *   : anything         comment; other fields are ignored
 *                      an empty line ends the event; one without data is none
 *
 * Lines end with \n, \r\n or \r, and a piece may end anywhere, also between \r and \n.  What is
 * open when the bytes end is no event.  Grammar: HTML Living Standard, "Server-sent events". Not
 * here: reconnecting; a reply that was cut is asked for again or not at all.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model_impl.h"
#include <string.h>

#define MAX_EVENT                                                                                  \
    (2u *                                                                                          \
     KL_MAX_REPLY_BYTES) /* one delta with its escapes; a whole reply in one event still fits */

static void sse_cut(kl_buf *b) { b->len = 0; }

static kl_err end_event(kli_sse *s) {
    kl_err err = KL_OK;
    if (s->has_data) err = s->event(s->ctx, kl_buf_str(&s->name), kl_buf_str(&s->data));
    sse_cut(&s->name);
    sse_cut(&s->data);
    s->has_data = false;
    return err;
}

static kl_err end_line(kli_sse *s) {
    kl_str line = kl_buf_str(&s->line), value = {0};
    KL_ASSERT(line.len <= MAX_EVENT);
    if (!s->started && kl_str_starts(line, KL_S("\xef\xbb\xbf")))
        line = (kl_str){line.ptr + 3, line.len - 3};
    s->started = true;
    sse_cut(&s->line);
    if (!line.len) return end_event(s);
    const char *colon = memchr(line.ptr, ':', line.len);
    const kl_str field = {line.ptr, colon ? (size_t)(colon - line.ptr) : line.len};
    if (colon) value = (kl_str){colon + 1, line.len - field.len - 1};
    if (kl_str_starts(value, KL_S(" "))) value = (kl_str){value.ptr + 1, value.len - 1};
    if (kl_str_eq(field, KL_S("event"))) {
        sse_cut(&s->name);
        kl_buf_add(&s->name, value);
    } else if (kl_str_eq(field, KL_S("data"))) {
        if (s->has_data) kl_buf_add(&s->data, KL_S("\n"));
        kl_buf_add(&s->data, value);
        s->has_data = true;
    }
    return s->data.len > MAX_EVENT ? KL_ELIMIT : KL_OK;
}

kl_err kli_sse_feed(kli_sse *s, kl_str piece) {
    while (piece.len) {
        if (s->skip_newline && piece.ptr[0] == '\n') piece = (kl_str){piece.ptr + 1, piece.len - 1};
        s->skip_newline = false;
        size_t n = 0;
        while (n < piece.len && piece.ptr[n] != '\n' && piece.ptr[n] != '\r') n++;
        kl_buf_add(&s->line, (kl_str){piece.ptr, n});
        if (s->line.len > MAX_EVENT) return KL_ELIMIT;
        if (n == piece.len) return KL_OK;
        s->skip_newline = piece.ptr[n] == '\r';
        piece = (kl_str){piece.ptr + n + 1, piece.len - n - 1};
        const kl_err err = end_line(s);
        if (err) return err;
    }
    return KL_OK;
}

void kli_sse_fini(kli_sse *s) {
    kl_buf_fini(&s->line);
    kl_buf_fini(&s->name);
    kl_buf_fini(&s->data);
}

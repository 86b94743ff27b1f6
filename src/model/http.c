/* http.c - one question over HTTP: a streaming POST, read event by event, asked again only where
 * that is free.
 *
 *   ask -> attempt -> libcurl -> on_header  status, retry-after
 *    ^        |                  on_body    2xx: sse.c -> the shape's event(); else: the start of
 * an error's JSON
 *    +- wait -+                  on_tick    ^C
 *
 * Asked again: a server that was not reached, a status that says "later" (x-should-retry wins, else
 * 408 409 429 and from 500), an error event before the answer began.  Never from here once an
 * answer has begun: its tokens are charged, and a second one would pass what was reserved.  Such a
 * reply is given back as broken off, with the most that it can have cost, and who pays may ask
 * again (run/ask.c).  A stream that ends without its end mark is no reply, however complete it
 * looks. The key is in one header and nowhere else; should a server send it back, it is taken out.
 * A key's file is read for each call, because the clouds' tokens last an hour.  Redirects are not
 * followed: the key is for one host. Not here: the wire shapes (anthropic.c, openai.c, gemini.c,
 * clouds.c), prices, batching; one connection per call, because a track may be a forked process.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/log.h"
#include "base/rng.h"
#include "curl_api.h"
#include "model_impl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define MAX_KEY_BYTES 4096
#define MAX_URL_BYTES 2048

typedef struct {
    const kli_shape *shape;
    const kli_curl *curl;
    const char *name;          /* for prices and the journal */
    const char *model, *place; /* what the server calls it; where, "" without one */
    const char *url;
    const char *key;      /* empty: none is sent */
    const char *key_from; /* the variable or file that holds it, for messages */
} provider;

/* ---- settings ---------------------------------------------------------------------------- */

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* A key goes into a header: white space around it is a slip, a control character inside would be a
 * second header. */
static kl_err take_key(provider *p, kl_arena *a, kl_str raw, const char *from, kl_error *e) {
    const kl_str key = kl_str_trim(raw);
    for (size_t i = 0; i < key.len; i++)
        if ((unsigned char)key.ptr[i] <= 0x20 || (unsigned char)key.ptr[i] >= 0x7f)
            return kl_fail(e, KL_EINVAL, from,
                           "does not hold a key: white space or control characters in it");
    if (!key.len || key.len > MAX_KEY_BYTES)
        return kl_fail(e, KL_EINVAL, from, "holds no key, or far too much for one");
    p->key = kl_arena_copy(a, key).ptr;
    p->key_from = kl_arena_copy(a, kl_str_of(from)).ptr;
    return KL_OK;
}

/* A server of one's own may want none. */
static bool keyless(const kli_shape *s) { return s->local || variable(s->base_variable); }

static kl_err find_key(provider *p, kl_arena *a, kl_error *e) {
    const kli_shape *s = p->shape;
    const char *key = variable(s->key_variable), *file = variable(s->key_file_variable);
    kl_str text;
    p->key = p->key_from = "";
    if (key) return take_key(p, a, kl_str_of(key), s->key_variable, e);
    if (file) {
        const kl_err err = kli_fs_read(&text, a, file, MAX_KEY_BYTES, e);
        if (err)
            return kl_hint(e, "%s names this file; it holds the key and nothing else",
                           s->key_file_variable),
                   err;
        return take_key(p, a, text, file, e);
    }
    if (keyless(s)) return KL_OK;
    kl_fail(e, KL_ENOENT, s->name, "no key: neither %s nor %s is set", s->key_variable,
            s->key_file_variable);
    return kl_hint(
        e, "export %s=FILE (a file with the key alone), or --model builtin, which needs none",
        s->key_file_variable);
}

bool kli_http_ready(kl_str *found, kl_arena *a, const kli_shape *s) {
    const char *project = s->project_variable;
    const kli_curl *curl;
    if (kli_curl_load(&curl, kl_ignored())) return *found = KL_S("libcurl is missing"), false;
    if (project && !variable(project) && !variable(s->base_variable))
        return *found = kl_arena_printf(a, "%s is not set", project), false;
    if (variable(s->key_variable))
        *found = kl_arena_printf(a, "key in %s", s->key_variable);
    else if (variable(s->key_file_variable))
        *found = kl_arena_printf(a, "key in the file that %s names", s->key_file_variable);
    else if (variable(s->base_variable))
        *found = kl_arena_printf(a, "no key, for the server that %s names", s->base_variable);
    else if (s->local)
        *found = kl_arena_printf(a, "no key, for a server at %s; another: %s", s->base,
                                 s->base_variable);
    else
        return *found = kl_arena_printf(a, "neither %s nor %s is set", s->key_variable,
                                        s->key_file_variable),
               false;
    return true;
}

static bool is_loopback(const char *host) {
    const kl_str name = {host, host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/")};
    const bool numbers = strspn(host, "0123456789.") == name.len;
    return kl_str_eq(name, KL_S("localhost")) || kl_str_eq(name, KL_S("[::1]")) ||
           (numbers && kl_str_starts(name, KL_S("127.")));
}

/* What becomes a part of a URL's path; all but letters, digits and a few signs is escaped. */
static void add_escaped(kl_buf *out, const char *text) {
    for (; *text; text++) {
        const bool plain = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
                           (*text >= '0' && *text <= '9') || strchr("-._~@", *text);
        kl_buf_printf(out, plain ? "%c" : "%%%02X", (unsigned char)*text);
    }
}

/* A template of the shape with this model, place and project in it. */
static void add_filled(kl_buf *out, const provider *p, const char *template) {
    const bool global = !strcmp(p->place, "global");
    const char *project = p->shape->project_variable ? variable(p->shape->project_variable) : NULL;
    const struct {
        const char *name, *value, *behind;
    } PARTS[] = {{"{model}", p->model, ""},
                 {"{place}", p->place, ""},
                 {"{place-}", global ? "" : p->place, global ? "" : "-"},
                 {"{project}", project ? project : "", ""}};
    while (*template) {
        size_t i = 0;
        while (i < KL_COUNT(PARTS) && strncmp(template, PARTS[i].name, strlen(PARTS[i].name)) != 0)
            i++;
        if (i < KL_COUNT(PARTS)) {
            add_escaped(out, PARTS[i].value);
            kl_buf_printf(out, "%s", PARTS[i].behind);
            template += strlen(PARTS[i].name);
        } else {
            kl_buf_printf(out, "%c", *template ++);
        }
    }
}

static kl_err check_base(const provider *p, const char *base, kl_error *e) {
    const kli_shape *s = p->shape;
    const size_t len = strlen(base);
    const bool plain = !strncasecmp(base, "http://", 7), secure = !strncasecmp(base, "https://", 8);
    if ((!plain && !secure) || len > MAX_URL_BYTES)
        return kl_fail(e, KL_EINVAL, s->base_variable,
                       "must be a URL that begins with https:// or http://");
    const char *host = base + (plain ? 7 : 8);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)base[i] <= 0x20 || base[i] == '?' || base[i] == '#' || base[i] == '@')
            return kl_fail(
                e, KL_EINVAL, s->base_variable,
                "must be a plain URL: no white space, query or user in it; the key goes into %s",
                s->key_variable);
    if (s->local && !is_loopback(host)) {
        kl_fail(e, KL_EINVAL, s->base_variable,
                "%s: is free, so its server must be on this machine: localhost, 127.x or [::1]",
                s->name);
        return kl_hint(e, "for a server elsewhere: OPENAI_BASE_URL, --model openai:NAME and a "
                          "price, or --priced-as local:NAME if it costs nothing");
    }
    if (plain && *p->key && !is_loopback(host))
        kli_warn("%s: the key travels to %s unencrypted", s->base_variable, host);
    return KL_OK;
}

static kl_err make_url(provider *p, kl_arena *a, kl_error *e) {
    const kli_shape *s = p->shape;
    const char *own = variable(s->base_variable);
    kl_buf url = {0};
    if (own)
        kl_buf_printf(&url, "%s", own);
    else
        add_filled(&url, p, s->base);
    const kl_err err = check_base(p, url.ptr, e);
    while (url.len && url.ptr[url.len - 1] == '/') url.len--;
    add_filled(&url, p, s->path);
    if (!err) p->url = kl_arena_copy(a, kl_buf_str(&url)).ptr;
    kl_buf_fini(&url);
    return err;
}

/* PLACE/MODEL: the place becomes a part of a host's name. */
static kl_err split_place(provider *p, kl_arena *a, kl_error *e) {
    const kli_shape *s = p->shape;
    const size_t len = strcspn(p->name, "/");
    p->place = "";
    p->model = p->name;
    if (s->placed) {
        if (!len || !p->name[len] || !p->name[len + 1] ||
            strspn(p->name, "abcdefghijklmnopqrstuvwxyz0123456789-") != len) {
            kl_fail(e, KL_EINVAL, "--model", "'%s:%.200s' names no region and model", s->name,
                    p->name);
            return kl_hint(e, "--model %s:REGION/MODEL, with the region's own name first", s->name);
        }
        p->place = kl_arena_copy(a, (kl_str){p->name, len}).ptr;
        p->model = p->name + len + 1;
    }
    if (s->project_variable && !variable(s->project_variable) && !variable(s->base_variable)) {
        kl_fail(e, KL_ENOENT, s->name, "%s is not set", s->project_variable);
        return kl_hint(e, "export %s=PROJECT, whose account is charged", s->project_variable);
    }
    return KL_OK;
}

kl_err kli_http_open(void **self, kl_arena *a, const kli_shape *shape, const char *rest,
                     kl_error *e) {
    provider *p = KL_NEW(a, provider);
    *p = (provider){.shape = shape, .name = rest};
    kl_err err = kli_curl_load(&p->curl, e);
    if (!err) err = split_place(p, a, e);
    if (!err) err = find_key(p, a, e);
    if (!err) err = make_url(p, a, e);
    if (!err && shape->local) p->name = kl_arena_printf(a, "%s:%s", shape->name, rest).ptr;
    *self = p;
    return err;
}

const char *kli_http_model_name(const void *self) { return ((const provider *)self)->name; }

/* ---- what the shapes write into ---------------------------------------------------------- */

void kli_stream_fail(kli_stream *s, bool passing, kl_str type, kl_str message) {
    s->failed = true;
    s->passing = passing;
    snprintf(s->error, sizeof s->error, "%.*s: %.*s", (int)(type.len < 80 ? type.len : 80),
             type.ptr ? type.ptr : "", (int)(message.len < 400 ? message.len : 400),
             message.ptr ? message.ptr : "");
}

void kli_stream_error(kli_stream *s, const json_t *error, kl_str type, const char *const *passing,
                      size_t n) {
    bool passes = false;
    for (size_t i = 0; i < n; i++) passes |= kl_str_eq(type, kl_str_of(passing[i]));
    kli_stream_fail(s, passes, type, kli_json_text_or(error, "message", KL_S("no reason given")));
}

void kli_stream_model(kli_stream *s, const json_t *name) {
    if (json_is_string(name)) snprintf(s->model, sizeof s->model, "%s", json_string_value(name));
}

void kli_stream_count(kli_stream *s, const json_t *part) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)part, key,
                        value) if (strcmp(key, "type") != 0 && strcmp(key, "role") != 0)
        s->arrived += json_string_length(value);
}

#if KL_HAVE_CURL

#define MAX_STREAM_BYTES                                                                           \
    (64u *                                                                                         \
     KL_MAX_REPLY_BYTES) /* a delta of a few letters travels in an envelope of some 150 bytes */
#define MAX_ERROR_BYTES (64u << 10)
#define CONNECT_SECONDS 10L
#define UNREACHED_RETRIES                                                                          \
    2 /* a wrong address stays wrong; a network that comes up needs a second */
#define MOST_WAIT_SECONDS 60.0 /* a server that wants longer is down for us */
#define MOST_WORDS 400         /* bytes of what a server says of an error */
#define HTTP_SLICE_NS 50000000 /* ^C is seen this soon while waiting */

/* One attempt. */
typedef struct {
    const provider *p;
    kli_stream stream;
    kli_sse sse;
    kl_buf other;  /* a body that is no stream of events, its beginning */
    kl_buf object; /* a body that is one object */
    size_t taken;
    int status;
    bool too_large;
    int should_retry;   /* x-should-retry: 1 yes, -1 no, 0 not said */
    double retry_after; /* seconds; 0: not said */
    char network[CURL_ERROR_SIZE];
    CURLcode code;
} http_attempt;

static kl_err on_event(void *ctx, kl_str name, kl_str data) {
    http_attempt *t = ctx;
    (void)name; /* both shapes repeat it inside, or have none */
    if (kl_str_eq(data, KL_S("[DONE]"))) return t->p->shape->event(&t->stream, NULL), KL_OK;
    json_t *o = NULL;
    if (kli_json_parse(&o, data, KL_S("event"), kl_ignored())) {
        t->stream.begun = true; /* nobody knows what this server counted */
        kli_stream_fail(&t->stream, true, KL_S("garbage in the stream"), data);
        return KL_EMODEL;
    }
    if (!t->stream.ended) t->p->shape->event(&t->stream, o);
    json_decref(o);
    if (t->stream.text.len > KL_MAX_REPLY_BYTES) return KL_ELIMIT;
    return t->stream.failed ? KL_EMODEL : KL_OK;
}

/* An answer in one piece waits until it is all there. */
static kl_err take_body(http_attempt *t, kl_str piece) {
    if (!t->p->shape->whole) return kli_sse_feed(&t->sse, piece);
    kl_buf_add(&t->object, piece);
    return t->object.len > 2u * KL_MAX_REPLY_BYTES ? KL_ELIMIT : KL_OK;
}

static void end_transfer(http_attempt *t) {
    json_t *o = NULL;
    if (t->code != CURLE_OK || t->status / 100 != 2) return;
    if (t->p->shape->whole) {
        const kl_str object = kl_buf_str(&t->object);
        t->stream.begun = kl_str_starts(object, KL_S("{")); /* whatever it is, it was paid for */
        if (!kli_json_parse(&o, object, KL_S("reply"), kl_ignored()))
            t->p->shape->event(&t->stream, o);
    }
    json_decref(o);
    if (t->p->shape->closes) t->p->shape->event(&t->stream, NULL);
}

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx) {
    http_attempt *t = ctx;
    const kl_str piece = {bytes, size * n};
    t->taken += piece.len;
    if (t->taken > MAX_STREAM_BYTES) t->too_large = true;
    KL_ASSERT(t->other.len <= MAX_ERROR_BYTES);
    const size_t room = MAX_ERROR_BYTES - t->other.len;
    kl_buf_add(&t->other, (kl_str){piece.ptr, piece.len < room ? piece.len : room});
    if (t->status / 100 != 2) return t->too_large ? 0 : piece.len;
    const kl_err err = take_body(t, piece);
    t->too_large = t->too_large || err == KL_ELIMIT;
    return err || t->too_large || t->stream.ended
               ? 0
               : piece.len; /* 0 ends the transfer; some servers never close */
}

static bool header_is(kl_str line, const char *name, kl_str *value) {
    const size_t len = strlen(name);
    if (line.len <= len || strncasecmp(line.ptr, name, len) != 0 || line.ptr[len] != ':')
        return false;
    *value = kl_str_trim((kl_str){line.ptr + len + 1, line.len - len - 1});
    return true;
}

static double http_seconds_of(kl_str s) {
    char number[32];
    snprintf(number, sizeof number, "%.*s", (int)(s.len < 31 ? s.len : 31), s.ptr);
    const double v = strtod(number, NULL);
    return v > 0 && v < 1e9 ? v : 0;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *ctx) {
    http_attempt *t = ctx;
    const kl_str line = {bytes, size * n};
    kl_str value;
    if (kl_str_starts(line, KL_S("HTTP/"))) {
        char text[64];
        snprintf(text, sizeof text, "%.*s", (int)(line.len < 63 ? line.len : 63), line.ptr);
        if (sscanf(text, "HTTP/%*s %d", &t->status) != 1) t->status = 0;
        t->should_retry = 0;
        t->retry_after = 0;
    } else if (header_is(line, "x-should-retry", &value)) {
        t->should_retry = kl_str_eq(value, KL_S("true"))    ? 1
                          : kl_str_eq(value, KL_S("false")) ? -1
                                                            : 0;
    } else if (header_is(line, "retry-after-ms", &value)) {
        t->retry_after = http_seconds_of(value) / 1000;
    } else if (header_is(line, "retry-after", &value) && t->retry_after <= 0) {
        t->retry_after = http_seconds_of(value);
    }
    return line.len;
}

static int on_tick(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
    (void)ctx, (void)a, (void)b, (void)c, (void)d;
    return kli_interrupted();
}

static struct curl_slist *headers_of(const provider *p) {
    const kli_curl *c = p->curl;
    struct curl_slist *list = c->slist_append(NULL, "content-type: application/json");
    char line[MAX_KEY_BYTES + 64];
    list = c->slist_append(list, p->shape->whole ? "accept: application/json"
                                                 : "accept: text/event-stream");
    list = c->slist_append(list, "expect:"); /* no round trip before the body */
    if (p->shape->header) list = c->slist_append(list, p->shape->header);
    if (*p->key) {
        snprintf(line, sizeof line, "%s%s", p->shape->key_header, p->key);
        list = c->slist_append(list, line);
        explicit_bzero(line, sizeof line);
    }
    return list;
}

static void perform(http_attempt *t, kl_str body, long seconds) {
    const kli_curl *c = t->p->curl;
    struct curl_slist *headers = headers_of(t->p);
    CURL *h = c->easy_init();
    if (!h) kl_oom(sizeof(void *));
    c->easy_setopt(h, CURLOPT_URL, t->p->url);
    c->easy_setopt(h, CURLOPT_HTTPHEADER, headers);
    c->easy_setopt(h, CURLOPT_USERAGENT, "klineage/" KL_VERSION);
    c->easy_setopt(h, CURLOPT_POST, 1L);
    c->easy_setopt(h, CURLOPT_POSTFIELDS, body.ptr);
    c->easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
    c->easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
    c->easy_setopt(h, CURLOPT_WRITEDATA, t);
    c->easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
    c->easy_setopt(h, CURLOPT_HEADERDATA, t);
    c->easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_tick);
    c->easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
    c->easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    c->easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    c->easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
    c->easy_setopt(h, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    c->easy_setopt(h, CURLOPT_TIMEOUT, seconds);
    c->easy_setopt(h, CURLOPT_ERRORBUFFER, t->network);
    t->code = c->easy_perform(h);
    if (t->code != CURLE_OK && !t->network[0])
        snprintf(t->network, sizeof t->network, "%s", c->easy_strerror(t->code));
    c->easy_cleanup(h);
    c->slist_free_all(headers);
    end_transfer(t);
}

static void attempt_fini(http_attempt *t) {
    kl_buf_fini(&t->stream.text);
    kl_buf_fini(&t->other);
    kl_buf_fini(&t->object);
    kli_sse_fini(&t->sse);
}

/* ---- what became of it ------------------------------------------------------------------- */

static bool not_reached(const http_attempt *t) {
    return t->code == CURLE_COULDNT_RESOLVE_HOST || t->code == CURLE_COULDNT_RESOLVE_PROXY ||
           t->code == CURLE_COULDNT_CONNECT || t->code == CURLE_SSL_CONNECT_ERROR ||
           t->code == CURLE_PEER_FAILED_VERIFICATION;
}

static bool turned_away(const http_attempt *t) { return t->status >= 300; }

/* Certain that nothing was charged. */
static bool http_is_free(const http_attempt *t) {
    return not_reached(t) || turned_away(t) || (t->stream.failed && !t->stream.begun);
}

static bool may_pass(const http_attempt *t) {
    if (turned_away(t)) {
        if (t->should_retry) return t->should_retry > 0;
        return t->status == 408 || t->status == 409 || t->status == 429 || t->status >= 500;
    }
    if (not_reached(t)) return t->code != CURLE_PEER_FAILED_VERIFICATION;
    return t->stream.failed && t->stream.passing && !t->stream.begun;
}

/* Sent, and no whole answer came: the same request may fare better.  What is too large or no stream
 * at all will be so again. */
static bool broke_off(const http_attempt *t) {
    const bool no_stream = t->code == CURLE_OK && t->taken && !t->stream.begun;
    if (t->too_large || turned_away(t) || not_reached(t) || kli_interrupted()) return false;
    return t->stream.failed ? t->stream.passing && t->stream.begun : !t->stream.ended && !no_stream;
}

#define LEAST_OF_KEY 6 /* characters: less of it, where a text was cut, tells nobody anything */
#define LEAST_SECRET                                                                               \
    16 /* a shorter key ("EMPTY", "ollama") guards nothing, and is a word of code */

static void star_key(const provider *p, char *text, size_t n) {
    const size_t len = strlen(p->key);
    char *at = text, *end = text + n;
    while (len && at && (at = memmem(at, (size_t)(end - at), p->key, len)) != NULL)
        memset(at, '*', len);
}

/* An error's own words, without the key should the server have put it there, also where the end of
 * the text cut it. */
static kl_str without_key(kl_arena *a, const provider *p, kl_str text, size_t most) {
    const kl_str said = kli_tame(a, text, most);
    const size_t len = strlen(p->key);
    char *words = (char *)(uintptr_t)said.ptr; /* our own copy */
    if (!said.len) return said;
    star_key(p, words, said.len);
    for (size_t part = len < said.len ? len : said.len; part >= LEAST_OF_KEY; part--)
        if (!memcmp(words + said.len - part, p->key, part))
            memset(words + said.len - part, '*', part);
    return said;
}

/* {"error": {"type" or "status", "message"}}, {"error": TEXT}, one of them in an array (Google), or
 * {"message"} alone (Amazon). */
static kl_str words_in(kl_arena *a, const json_t *o) {
    const json_t *top = json_is_array(o) ? json_array_get(o, 0) : o;
    const json_t *error = json_object_get(top, "error");
    const kl_str message =
        json_is_object(error)
            ? kli_json_text_or(error, "message", (kl_str){0})
            : kli_json_text_or(top, "error", kli_json_text_or(top, "message", (kl_str){0}));
    const kl_str type =
        kli_json_text_or(error, "type", kli_json_text_or(error, "status", KL_S("error")));
    if (!message.len) return message;
    return kl_arena_printf(a, "%.*s: %.*s", KL_STR_ARG(type), KL_STR_ARG(message));
}

static kl_str error_text(kl_arena *a, const http_attempt *t) {
    json_t *o = NULL;
    kl_str text = kl_str_trim(kl_buf_str(&t->other));
    if (kli_json_parse(&o, text, KL_S("error"), kl_ignored()) == KL_OK) {
        const kl_str words = words_in(a, o);
        if (words.len) text = words;
    }
    text = without_key(a, t->p, text, MOST_WORDS);
    json_decref(o);
    return text.len ? text : KL_S("no reason given");
}

static kl_err http_hint_for(const http_attempt *t, kl_error *e) {
    const kli_shape *s = t->p->shape;
    switch (t->status) {
    case 401:
    case 403:
        if (!*t->p->key)
            return kl_hint(e, "no key was sent: set %s, or %s to a file that holds it",
                           s->key_variable, s->key_file_variable);
        return kl_hint(e, "the key came from %s; set %s, or %s to a file that holds the right one",
                       t->p->key_from, s->key_variable, s->key_file_variable);
    case 404:
        return kl_hint(e, "is '%.60s' a model of this server? %s says which server is asked",
                       t->p->model, s->base_variable);
    case 400:
    case 413:
    case 422:
        return kl_hint(
            e, "the request itself was refused; another model may take it: --model %s:MODEL",
            s->name);
    default:
        break;
    }
    return kl_hint(e, "run the same command again later; completed calls are not repeated");
}

static kl_err refused(const http_attempt *t, kl_arena *a, int tries, kl_error *e) {
    const kl_str text = error_text(a, t);
    char again[32] = "";
    if (tries > 1) snprintf(again, sizeof again, " (%d times)", tries);
    kl_fail(e, KL_EMODEL, t->p->shape->name, "the server answered HTTP %d%s: %.*s", t->status,
            again, KL_STR_ARG(text));
    http_hint_for(t, e);
    return KL_EMODEL;
}

static kl_err too_large(const http_attempt *t, kl_error *e) {
    return kl_fail(e, KL_ELIMIT, t->p->shape->name,
                   "the reply is larger than %u bytes and was dropped", KL_MAX_REPLY_BYTES);
}

static kl_err unreachable(const http_attempt *t, kl_error *e) {
    kl_fail(e, KL_EIO, t->p->shape->name, "the server was not reached: %.300s", t->network);
    kl_hint(e, "%s says which server is asked; klineage tried %.200s", t->p->shape->base_variable,
            t->p->url);
    return KL_EIO;
}

static kl_err broken_off(const http_attempt *t, kl_error *e) {
    const char *why = t->code == CURLE_OPERATION_TIMEDOUT ? "the call exceeded its time limit"
                      : t->code                           ? t->network
                                                          : "it just ended";
    kl_fail(e, KL_EIO, t->p->shape->name,
            "the reply broke off after %zu bytes of text and was dropped: %.300s",
            t->stream.text.len, why);
    kl_hint(e, "run the same command again; what arrived counts against the budget");
    return KL_EIO;
}

static kl_err no_stream(const http_attempt *t, kl_arena *a, kl_error *e) {
    const kl_str text = without_key(
        a, t->p, kl_str_trim((kl_str){t->other.ptr, t->other.len < 160 ? t->other.len : 160}),
        MOST_WORDS);
    kl_fail(e, KL_EMODEL, t->p->shape->name,
            "the server does not speak this wire shape; it answered: %.*s", KL_STR_ARG(text));
    kl_hint(e, "%s must name a server with the API of %s", t->p->shape->base_variable,
            t->p->shape->name);
    return KL_EMODEL;
}

static kl_err outcome(const http_attempt *t, kl_arena *a, int tries, kl_error *e) {
    if (kli_interrupted() && !t->stream.ended)
        return kl_fail(e, KL_EINTR, t->p->shape->name, "interrupted while waiting for the model");
    if (t->too_large || t->stream.text.len > KL_MAX_REPLY_BYTES) return too_large(t, e);
    if (turned_away(t)) return refused(t, a, tries, e);
    if (t->stream.failed) {
        const kl_str said = without_key(a, t->p, kl_str_of(t->stream.error), MOST_WORDS);
        kl_fail(e, KL_EMODEL, t->p->shape->name, "the stream brought an error: %.*s",
                KL_STR_ARG(said));
        return kl_hint(e, "run the same command again later; completed calls are not repeated"),
               KL_EMODEL;
    }
    if (t->stream.ended) return KL_OK;
    if (not_reached(t)) return unreachable(t, e);
    if (t->code == CURLE_OK && t->taken && !t->stream.begun) return no_stream(t, a, e);
    return broken_off(t, e);
}

/* ---- asking ------------------------------------------------------------------------------ */

static double wait_before(const http_attempt *t, int tries) {
    if (t->retry_after > 0 && t->retry_after <= MOST_WAIT_SECONDS) return t->retry_after;
    double seconds = 0.5;
    for (int i = 1; i < tries; i++) seconds *= 2;
    if (seconds > 8) seconds = 8;
    return seconds * (1 - 0.25 * kli_stream_uniform(kli_stream_of(kli_seed_fresh(), "retry"), 0));
}

/* False when the call's time would be over first, or somebody pressed ^C. */
static bool wait_for(double seconds, int64_t deadline_ns) {
    const int64_t until = kli_now_ns() + (int64_t)(seconds * 1e9);
    if (until >= deadline_ns) return false;
    while (kli_now_ns() < until && !kli_interrupted())
        nanosleep(&(struct timespec){.tv_nsec = HTTP_SLICE_NS}, NULL);
    return !kli_interrupted();
}

/* What the server said, and where it did not, the most that it can have been: of an answer that
 * never came in its one piece, all that was asked for. */
static kl_usage usage_of(const http_attempt *t, const kl_request *q) {
    const kli_stream *s = &t->stream;
    const bool unseen = t->p->shape->whole && !s->ended;
    kl_usage u = kl_usage_bound(q, unseen ? 2 * (size_t)q->max_tokens : s->arrived);
    int64_t output = s->usage.output;
    if (!s->has_output && output < u.output) output = u.output;
    if (s->has_input) u = s->usage;
    u.output = output;
    u.estimated = !s->has_input || !s->has_output;
    return u;
}

static void take_reply(kl_reply *out, kl_arena *a, const http_attempt *t) {
    const kli_stream *s = &t->stream;
    out->text = kl_arena_copy(a, kl_buf_str(&s->text));
    if (strlen(t->p->key) >= LEAST_SECRET)
        star_key(t->p, (char *)(uintptr_t)out->text.ptr, out->text.len);
    out->stop = s->stop;
    out->model =
        without_key(a, t->p, kl_str_of(*s->model ? s->model : t->p->model), sizeof s->model);
}

static int64_t bill_of(const http_attempt *t, bool free_of_charge) {
    if (free_of_charge) return 0;
    return t->stream.ended && t->stream.billed ? t->stream.billed_microusd : -1;
}

kl_err kli_http_ask(kl_reply *out, void *self, kl_arena *a, const kl_request *q, kl_error *e) {
    provider current = *(const provider *)self, *p = &current;
    const kl_err keyed = find_key(p, a, e);
    if (keyed) return out->billed_microusd = 0, keyed;
    const int64_t deadline = kli_now_ns() + (int64_t)KL_MODEL_SECONDS * 1000000000;
    json_t *request = p->shape->body(p->model, q);
    const kl_str body = kli_json_dump(a, request, false);
    json_decref(request);
    for (int tries = 1;; tries++) {
        http_attempt t = {.p = p, .sse = {.event = on_event}};
        t.sse.ctx = &t;
        perform(&t, body, (long)((deadline - kli_now_ns()) / 1000000000) + 1);
        const kl_err err = outcome(&t, a, tries, e);
        const int most = not_reached(&t) ? UNREACHED_RETRIES : KL_MODEL_RETRIES;
        const bool again =
            err && err != KL_EINTR && err != KL_ELIMIT && may_pass(&t) && tries <= most;
        const double seconds = again ? wait_before(&t, tries) : 0;
        const bool free_of_charge = err && http_is_free(&t);
        if (!err) take_reply(out, a, &t);
        if (!free_of_charge) out->usage = usage_of(&t, q);
        out->billed_microusd = bill_of(&t, free_of_charge);
        out->again = err && broke_off(&t);
        attempt_fini(&t);
        if (again) kli_base_progress("%s: %s; asking again", p->shape->name, e->message);
        if (again && wait_for(seconds, deadline)) continue;
        return again && kli_interrupted()
                   ? kl_fail(e, KL_EINTR, p->shape->name, "interrupted between two attempts")
                   : err;
    }
}

#else

kl_err kli_http_ask(kl_reply *out, void *self, kl_arena *a, const kl_request *q, kl_error *e) {
    (void)out, (void)self, (void)a, (void)q, (void)e;
    kl_bug("a network provider was opened without libcurl", __FILE__, __LINE__);
    return KL_ENODEV;
}

#endif

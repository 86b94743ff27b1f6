/* command.c - an agent program as a model: the conversation on its stdin, the answer on its stdout.
 *
 *   command:claude -p --output-format json --model claude-opus-4-6
 *   command:codex exec --json -
 *   command:gemini --output-format json -m gemini-2.5-pro
 *   command:opencode run --format json -m anthropic/claude-opus-4-6
 *
 * The words are split at spaces and go to execve; there is no shell, so nothing in them is
 * expanded.  The program runs in a fresh empty folder: an agent that can read files must not find
 * the kernel that it is asked to derive anew, and must not change the user's.  What it costs is
 * what it says (claude, opencode), or its tokens times --priced-as; klineage cannot cap what
 * happens inside it, so give it its own cap (--max-budget-usd). Not here: reading what it printed
 * (command_reply.c). SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/proc.h"
#include "model_impl.h"
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 64
#define MAX_OUTPUT                                                                                 \
    (8u * KL_MAX_REPLY_BYTES) /* a reply inside JSON, and what an agent tells of its work */

typedef struct {
    const char *argv[MAX_WORDS + 1];
    const char *model; /* what --model among the words says, else "command" */
} agent;

static kl_err split(agent *g, kl_arena *a, const char *words, kl_error *e) {
    char *at = (char *)(uintptr_t)kl_arena_copy(a, kl_str_of(words)).ptr, *save = NULL;
    size_t n = 0;
    for (char *w = strtok_r(at, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        if (n == MAX_WORDS)
            return kl_fail(e, KL_ELIMIT, "command", "more than %d words", MAX_WORDS);
        g->argv[n++] = w;
    }
    return n ? KL_OK : kl_fail(e, KL_EINVAL, "command", "names no program");
}

static const char *model_among(const agent *g) {
    for (size_t i = 1; g->argv[i]; i++) {
        if (!strncmp(g->argv[i], "--model=", 8) && g->argv[i][8]) return g->argv[i] + 8;
        if ((!strcmp(g->argv[i], "--model") || !strcmp(g->argv[i], "-m")) && g->argv[i + 1])
            return g->argv[i + 1];
    }
    return "command";
}

static kl_err command_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    agent *g = KL_NEW(a, agent);
    kl_err err = split(g, a, rest, e);
    if (err) return err;
    const kl_str program = kli_fs_find_program(a, g->argv[0]);
    if (!program.len) {
        kl_fail(e, KL_ENODEV, "command", "program '%.200s' not found", g->argv[0]);
        return kl_hint(e,
                       "install it, or give its full path: --model 'command:/path/to/program -p'");
    }
    char *full = realpath(program.ptr, NULL); /* it is started from another folder */
    if (full && strchr(g->argv[0], '/')) g->argv[0] = kl_arena_copy(a, kl_str_of(full)).ptr;
    free(full);
    g->model = model_among(g);
    *self = g;
    return KL_OK;
}

static const char *command_name(const void *self) { return ((const agent *)self)->model; }

static void write_prompt(kl_buf *out, const kl_request *q) {
    kl_buf_add(out, KL_S("Answer the last turn of the conversation below with text alone. Use no "
                         "tools, read and "
                         "change no files, run nothing.\n\n"));
    kli_conversation_text(out, q);
}

#define LEAST_KEY_BYTES 16 /* a variable with less holds no secret */

/* An agent has the keys of this environment, and some print what was refused. */
static void hide_keys(kl_str said) {
    static const char *const KEYS[] = {"ANTHROPIC_API_KEY",  "ANTHROPIC_AUTH_TOKEN",
                                       "OPENAI_API_KEY",     "CODEX_API_KEY",
                                       "GEMINI_API_KEY",     "GOOGLE_API_KEY",
                                       "OPENROUTER_API_KEY", "CLOUDSDK_AUTH_ACCESS_TOKEN",
                                       "LOCAL_API_KEY",      "AWS_BEARER_TOKEN_BEDROCK"};
    for (size_t i = 0; i < KL_COUNT(KEYS); i++) {
        const char *key = getenv(KEYS[i]);
        const size_t len = key ? strlen(key) : 0;
        char *at = (char *)(uintptr_t)said.ptr, *end = at + said.len; /* read for us alone */
        while (len >= LEAST_KEY_BYTES && at && (at = memmem(at, (size_t)(end - at), key, len)))
            memset(at, '*', len);
    }
}

/* The last lines of what it complained about. */
static kl_str last_words(const kli_proc_result *r) {
    const kl_str s = kl_str_trim(r->err.len ? r->err : r->out);
    const size_t keep = s.len < 600 ? s.len : 600;
    return (kl_str){s.len ? s.ptr + s.len - keep : "", keep};
}

static kl_err agent_ended(kl_reply *out, kl_arena *a, const agent *g, const kli_proc_result *r,
                          const kl_request *q, kl_error *e) {
    if (r->timed_out)
        return kl_fail(e, KL_EMODEL, g->argv[0], "did not answer within %d s and was ended",
                       KL_MODEL_SECONDS);
    if (r->out.len + r->err.len >= MAX_OUTPUT)
        return kl_fail(e, KL_ELIMIT, g->argv[0], "printed more than %u bytes", MAX_OUTPUT);
    if (r->out.len && r->exit_code == 0) return kli_command_reply(out, a, r->out, q, e);
    if (r->out.len && kli_command_reply(out, a, r->out, q, e) && e && e->code == KL_EMODEL)
        return KL_EMODEL; /* it says itself why */
    const kl_str said = kli_tame(a, last_words(r), 600);
    if (r->signal)
        kl_fail(e, KL_EMODEL, g->argv[0], "was ended by signal %d: %.*s", r->signal,
                KL_STR_ARG(said));
    else if (r->exit_code)
        kl_fail(e, KL_EMODEL, g->argv[0], "ended with status %d: %.*s", r->exit_code,
                KL_STR_ARG(said));
    else
        kl_fail(e, KL_EMODEL, g->argv[0], "printed nothing: %.*s", KL_STR_ARG(said));
    kl_hint(e, "it gets the conversation on stdin and runs in an empty folder, so files among its "
               "words need whole paths");
    return KL_EMODEL;
}

static kl_err command_ask(kl_reply *out, void *self, kl_arena *a, const kl_request *q,
                          kl_error *e) {
    const agent *g = self;
    kl_arena *scratch = kl_arena_new();
    kl_buf prompt = {0};
    kl_str folder;
    kli_proc_result r = {0};
    kl_err err = kli_fs_temp_dir(&folder, scratch, e);
    if (err) goto done;
    write_prompt(&prompt, q);
    const kli_proc_spec spec = {.argv = g->argv,
                                .cwd = folder.ptr,
                                .input = kl_buf_str(&prompt),
                                .timeout_ns = (int64_t)KL_MODEL_SECONDS * 1000000000,
                                .max_output = MAX_OUTPUT};
    err = kli_proc_run(&r, scratch, &spec, e);
    kli_fs_remove_tree(folder.ptr);
    if (err == KL_ENOENT || err == KL_ESPAWN) out->billed_microusd = 0;
    hide_keys(r.out);
    hide_keys(r.err);
    if (!err) err = agent_ended(out, a, g, &r, q, e);
done:
    kl_buf_fini(&prompt);
    kl_arena_free(scratch);
    return err;
}

/* Which of the agents whose output is understood are here. */
static bool command_ready(kl_str *found, kl_arena *a) {
    static const char *const AGENTS[] = {"claude", "codex", "gemini", "opencode"};
    kl_buf list = {0};
    for (size_t i = 0; i < KL_COUNT(AGENTS); i++)
        if (kli_fs_find_program(a, AGENTS[i]).len)
            kl_buf_printf(&list, "%s%s", list.len ? ", " : "", AGENTS[i]);
    const bool any = list.len > 0;
    if (!any) kl_buf_printf(&list, "no claude, codex, gemini or opencode; any program will do");
    *found = kl_arena_copy(a, kl_buf_str(&list));
    kl_buf_fini(&list);
    return any;
}

const kl_provider kli_command = {
    .name = "command",
    .spec = "command:PROGRAM ARGUMENTS",
    .doc = "a program that reads the conversation on stdin and prints the answer; claude, codex, "
           "gemini and opencode are understood for tokens and cost; no shell, an empty folder",
    .example = "command:claude -p --output-format json --model claude-opus-4-6",
    .open = command_open,
    .ask = command_ask,
    .model_name = command_name,
    .ready = command_ready,
};

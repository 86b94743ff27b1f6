/* reward_impl.h - the inside of src/reward: tenants, questions, the queue, judges, what is kept.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_REWARD_REWARD_IMPL_H
#define KL_REWARD_REWARD_IMPL_H
#include "reward/reward.h"
#include "run/verdicts.h"
#include <sys/types.h>

/* Bounds on what comes from outside, each with its reason. */
enum {
    KLI_REWARD_BATCH = 64,   /* kernels: a GRPO group is 8 or 16, a device batch a few groups */
    KLI_REWARD_QUEUE = 4096, /* kernels asked and not answered: an hour's work of one judge */
    KLI_REWARD_CONNECTIONS = 1024, /* one descriptor and 32 KiB each */
    KLI_REWARD_WAITS = 256,        /* of them kept for one tenant; beyond, an answer is "pending" */
    KLI_REWARD_WAIT_SECONDS = 300, /* proxies and clients give up about then */
    KLI_REWARD_DEFAULT_WAIT = 60,
    KLI_REWARD_IDLE_SECONDS = 60, /* of a connection that sends nothing */
    KLI_REWARD_TENANTS = 256,
    KLI_REWARD_TENANTS_BYTES = 1 << 20,
    KLI_REWARD_TOKEN = 512,        /* bytes of one */
    KLI_REWARD_NAME = 128,         /* of a task, a shape, a client's id */
    KLI_REWARD_GRACE_SECONDS = 20, /* at the end: a kernel that is being timed */
    KLI_REWARD_TRIES = 2,          /* of a question whose judge ended */
    KLI_REWARD_JUDGES = 64,
    KLI_REWARD_WINDOW = 256, /* questions that one judge holds where others do the work */
};
#define KLI_REWARD_BODY (8u << 20)     /* a full batch of the largest experts */
#define KLI_REWARD_BODIES (256u << 20) /* that arrive at a time, and of sources that are asked */
#define KLI_REWARD_LINE (16u << 20)    /* a question or an answer: two sources, escaped */

/* ---- tasks and tenants ------------------------------------------------------------------ */

typedef struct {
    kl_str name, path;
    kl_arena *arena; /* of `task` */
    kl_task *task;   /* read when it is first asked for */
} kli_reward_task;

typedef struct {
    kl_str name; /* empty: of a service without tokens */
    char sha256[65];
    bool operates;
    char require_assurance; /* of the service */
    kli_reward_task **tasks;
    size_t n_tasks;
    int64_t per_minute, in_flight; /* kernels */
    double allowance;              /* left of this minute's */
    int64_t counted_ns;
    int64_t live; /* kernels asked and not answered */
    int waits;    /* connections that are kept for it */
    int64_t turn; /* when one was last given to a judge, in turns */
} kli_tenant;

typedef struct {
    kl_arena *arena;
    kli_tenant *tenants;
    size_t n;
    bool open; /* no tokens: everybody who gets here is tenants[0] */
} kli_tenants;

/* Of a file, or one for all.  Errors: KL_ENOENT, KL_EPARSE, KL_EINVAL (one that others may write).
 */
KL_MUST_USE kl_err kli_tenants_open(kli_tenants *out, const kli_reward_opts *o, kl_error *e);
void kli_tenants_close(kli_tenants *t);
/* The one whose token it is; `header`: "Bearer ..." or NULL.  Takes as long for every token. */
kli_tenant *kli_tenants_of(kli_tenants *t, const char *header);
/* 0, or the seconds after which `n` more kernels may be asked of which `open` have no answer. */
int kli_tenant_refuses(kli_tenant *t, int64_t n, int64_t open, int64_t now_ns);
/* Errors: KL_ENOENT (not this tenant's, or nobody's), those of kl_task_load. */
KL_MUST_USE kl_err kli_tenant_task(const kl_task **out, kl_str *path, kli_tenant *t, kl_str name,
                                   kl_error *e);

/* ---- questions -------------------------------------------------------------------------- */

/* One kernel of a batch; texts in the batch's arena. */
typedef struct {
    kl_str id, task, surface, workload, baseline, kernel, against;
    bool check_only, quick;
    char key[65];     /* what is asked, by whom */
    char version[65]; /* of the task */
    kl_str path;      /* of the task's folder */
    kl_error fail;    /* code 0: none.  It cannot be asked, or could not be answered */
    bool answered;
    int64_t wait_ns, judge_ns;
} kli_question;

typedef struct kli_batch {
    char id[65];
    kl_arena *arena;
    kli_tenant *tenant;
    const kli_formula *formula;
    kli_question *questions;
    size_t n, open; /* open: neither answered nor failed */
    size_t bytes;   /* of sources */
    bool verdicts;
    int64_t wait_ns; /* how long a client waits */
    int waiters;     /* connections */
    struct kli_batch *next;
} kli_batch;

/* Errors: KL_EPARSE, KL_EINVAL, KL_ELIMIT: the batch as a whole is no question.  What is wrong with
 * one kernel is in its `fail`. */
KL_MUST_USE kl_err kli_batch_parse(kli_batch **out, kli_tenant *t, kl_str body, kl_error *e);
void kli_batch_free(kli_batch *b); /* accepts NULL */
/* As kept in the journal, and sent to a judge. */
json_t *kli_batch_json(const kli_batch *b);
json_t *kli_question_json(const kli_question *q);
/* The line for a judge: the question with its key, its tenant, and its task's folder and version.
 */
kl_str kli_question_line(kl_arena *a, const kli_question *q, kl_str tenant);
/* The same without keys: they are computed anew.  Borrowed texts live as long as `o`. */
KL_MUST_USE kl_err kli_question_read(kli_question *out, const json_t *o, kl_error *e);

/* ---- what is kept ----------------------------------------------------------------------- */

/* Key of the verdict that answers a question.  `*found` false: not answered yet. */
KL_MUST_USE kl_err kli_answer_find(char verdict[65], bool *found, kl_store *s, const char *question,
                                   kl_error *e);
KL_MUST_USE kl_err kli_answer_keep(kl_store *s, const kli_question *q, kl_str tenant,
                                   const char *verdict, kl_error *e);
KL_MUST_USE kl_err kli_batch_keep(kl_store *s, const kli_batch *b, bool open, kl_error *e);
/* Errors: KL_ENOENT: no such batch, or another tenant's. */
KL_MUST_USE kl_err kli_batch_find(kli_batch **out, kl_store *s, kli_tenants *t, kli_tenant *tenant,
                                  const char *id, kl_error *e);
/* Open ones, oldest first. */
KL_MUST_USE kl_err kli_batch_each_open(kl_store *s, kli_tenants *t,
                                       void (*visit)(void *ctx, kli_batch *b), void *ctx,
                                       kl_error *e);

/* ---- the queue -------------------------------------------------------------------------- */

typedef struct {
    kli_batch *batch;
    size_t i;
} kli_asker;

/* A question that nobody has answered yet, whoever asks it how often. */
typedef struct kli_job {
    char key[65];
    kl_arena *arena;
    kl_str line; /* for a judge */
    kli_tenant *tenant;
    kli_asker *askers;
    size_t n_askers;
    int tries;
    int64_t came_ns, given_ns;
    struct kli_job *next;
} kli_job;

typedef struct {
    kli_job *first; /* waiting, oldest first */
    size_t n;       /* of them */
    int64_t turns;
} kli_queue;

kli_job *kli_job_new(const kli_question *q, kli_tenant *t, int64_t now_ns);
void kli_job_free(kli_job *j);
void kli_queue_add(kli_queue *q, kli_job *j);
kli_job *kli_queue_find(const kli_queue *q, const char *key);
/* The oldest one of the tenant that waited longest for a turn; NULL: none. */
kli_job *kli_queue_take(kli_queue *q);

/* ---- judges ----------------------------------------------------------------------------- */

typedef struct {
    pid_t pid;   /* 0: not started */
    int in, out; /* its stdin, its stdout */
    kl_buf to, from;
    size_t sent;
    kli_job *jobs; /* given */
    int n_jobs;
    int64_t not_before_ns; /* when it may be started again */
} kli_judge;

typedef struct {
    const char *store, *executor;
    char require_assurance;
    int window;
    kli_judge *judges;
    int n;
} kli_judges;

KL_MUST_USE kl_err kli_judge_start(kli_judge *j, const kli_judges *all, kl_error *e);
void kli_judge_give(kli_judge *j, kli_job *job);
/* The job that was given to it under this key, taken from it; NULL: none. */
kli_job *kli_judge_take(kli_judge *j, const char *key);
/* Writes what it takes now. */
void kli_judge_flush(kli_judge *j);
/* Reads what there is; false: it has ended. */
bool kli_judge_read(kli_judge *j);
/* The next whole line, in the arena; false: none yet. */
bool kli_judge_line(kl_str *line, kl_arena *a, kli_judge *j);
/* Ends the process, gently or not; what it was given is handed back. */
kli_job *kli_judge_end(kli_judge *j, bool gently);

/* ---- counting --------------------------------------------------------------------------- */

enum { KLI_BUCKETS = 20 };
typedef struct {
    int64_t buckets[KLI_BUCKETS + 1], count;
    double sum;
} kli_histogram;

typedef enum {
    KLI_COUNT_BATCHES,
    KLI_COUNT_KERNELS,
    KLI_COUNT_HITS,      /* answered from the journal */
    KLI_COUNT_COALESCED, /* somebody had asked the same already */
    KLI_COUNT_JUDGED,
    KLI_COUNT_FAILED,
    KLI_COUNT_RESTARTS, /* of judges */
    KLI_COUNT_UNAUDITED,
    KLI_COUNTS
} kli_count;

typedef struct {
    int64_t counts[KLI_COUNTS];
    int64_t outcomes[8];
    int64_t statuses[600];
    kli_histogram wait, kernel, beyond; /* seconds */
} kli_metrics;

void kli_histogram_add(kli_histogram *h, int64_t ns);
void kli_metrics_text(kl_buf *out, const kli_metrics *m, size_t waiting, size_t judged, int judges);

/* ---- the desk: everything behind the connections ---------------------------------------- */

typedef struct {
    const kli_reward_opts *opts;
    kl_store *store;
    kl_lease *lease;
    kli_tenants tenants;
    kli_queue queue;
    kli_judges judges;
    kli_batch *finished; /* answered, and still open in the journal */
    kli_batch *batches;  /* open */
    size_t asked, bytes; /* kernels of these without an answer; their sources */
    kli_metrics metrics;
    kli_reward_served served;
    double mean_seconds; /* of one judgement, lately */
    bool stopping;
    void (*done)(void *ctx, kli_batch *b); /* a batch has its last answer */
    void *done_ctx;
} kli_desk;

typedef enum { KLI_DESK_DONE, KLI_DESK_OPEN, KLI_DESK_LATER } kli_admission;

KL_MUST_USE kl_err kli_desk_open(kli_desk *d, const kli_reward_opts *o, kl_error *e);
void kli_desk_close(kli_desk *d);
/* Takes the batch: everything is answered (it stays the caller's), or it is open (the desk's, until
 * its last answer and its last waiter), or it does not fit now (the caller's; `seconds` and `why`).
 * `*b` may become the same batch that is open already.  Errors: the journal's. */
KL_MUST_USE kl_err kli_desk_take(kli_admission *how, int *seconds, const char **why, kli_desk *d,
                                 kli_batch **b, kl_error *e);
kli_batch *kli_desk_named(kli_desk *d, const kli_tenant *t, const char *id); /* NULL: not open */
/* One that is not open, from the journal; the caller's.  Errors: KL_ENOENT, also where it is
 * another tenant's. */
KL_MUST_USE kl_err kli_desk_recall(kli_batch **out, kli_desk *d, kli_tenant *t, const char *id,
                                   kl_error *e);
void kli_desk_leave(kli_batch *b); /* one waiter less */
/* The answer as it is now. */
KL_MUST_USE kl_err kli_desk_answer(json_t **out, kli_desk *d, const kli_batch *b, kl_error *e);
/* Reads what judges say, starts those that ended. */
void kli_desk_turn(kli_desk *d);
/* Judges that have room get what waits. */
void kli_desk_give(kli_desk *d);
/* Batches that have their last answer are done in the journal, too. */
void kli_desk_settle(kli_desk *d);
int kli_desk_judged(const kli_desk *d); /* kernels under judgement */

/* ---- HTTP ------------------------------------------------------------------------------- */

/* A listening socket.  Errors: KL_EINVAL, KL_EBUSY.  `*beyond`: not of this machine alone; `shown`:
 * where a client finds it. */
KL_MUST_USE kl_err kli_reward_listen(int *fd, bool *beyond, bool *local_socket, kl_str *shown,
                                     kl_arena *a, const char *spec, kl_error *e);

typedef struct kli_httpd kli_httpd;
KL_MUST_USE kl_err kli_httpd_open(kli_httpd **out, kli_desk *d, int listener, bool local_socket,
                                  int audit, kl_error *e);
void kli_httpd_close(kli_httpd *h);
int kli_httpd_fd(const kli_httpd *h);       /* readable: kli_httpd_turn */
int64_t kli_httpd_timeout_ns(kli_httpd *h); /* until it wants a turn */
void kli_httpd_turn(kli_httpd *h);
unsigned kli_httpd_connections(const kli_httpd *h);
/* Answers all that wait, as far as their batches are. */
void kli_httpd_release(kli_httpd *h);

#endif

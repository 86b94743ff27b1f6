/* reward.h - verdicts as rewards, over HTTP: `klineage serve --reward`.
 *
 *   client --HTTP--> server: who asks, how much? --journal: the open batch--> queue
 *                      ^                                                        | a line of JSON
 *                      '--journal: the answer <-- journal: the verdict <------ judge
 *
 * The server is one thread around one poll(2).  It parses, counts and waits; it loads no candidate,
 * opens no gate, and opens no file whose name came in a request.  A judge is a process with a gate.
 * Not here: what a verdict says (gate/), who judges (executor/).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_REWARD_REWARD_H
#define KL_REWARD_REWARD_H
#include <jansson.h>
#include <klineage/executor.h>
#include <klineage/store.h>

/* ---- what a verdict is worth ------------------------------------------------------------ */

/* What a formula may look at. */
typedef struct {
    bool compiled, correct, cheated;
    kl_decision call; /* of kl_decide (law 11); KL_DECISION_UNDECIDED where nothing was timed */
    double ratio, low, high; /* 0 where nothing was timed */
} kli_reward_facts;

typedef struct {
    const char *name, *doc;
    double (*of)(const kli_reward_facts *f);
} kli_formula;

kli_reward_facts kli_reward_facts_of(const kl_verdict *v);
const kli_formula *kli_formula_each(int i);        /* NULL past the end */
const kli_formula *kli_formula_named(kl_str name); /* NULL when there is none */
json_t *kli_formula_constants(void);               /* by name */

/* ---- the service ------------------------------------------------------------------------ */

typedef struct {
    const char *listen;   /* "unix:PATH", "ADDRESS:PORT", "PORT"; NULL: KLI_REWARD_LISTEN */
    const char *tenants;  /* file of tokens; NULL: one tenant without a name */
    const char *audit;    /* file that gets a line for every request; NULL: none */
    const char *store;    /* journal */
    const char *executor; /* of each judge */
    int judges;
    char require_assurance; /* 'A', 'B' or 0: with less there is no reward */
    const kl_str *tasks;    /* folders of tasks, one for each name */
    size_t n_tasks;
} kli_reward_opts;

#define KLI_REWARD_LISTEN "127.0.0.1:8766"

typedef struct {
    int64_t requests, answered, judged, left; /* left: kernels that the next start answers */
} kli_reward_served;

/* Serves until it is interrupted.  Errors: KL_ENODEV (no libmicrohttpd), KL_EINVAL (an address
 * beyond this machine without tokens), KL_EBUSY (another service has the journal or the address),
 * KL_EIO. */
KL_MUST_USE kl_err kli_reward_serve(kli_reward_served *out, const kli_reward_opts *o, kl_error *e);

/* A judge: questions on stdin, answers on stdout, a line of JSON each, until stdin ends. */
KL_MUST_USE kl_err kli_reward_judge(const kli_reward_opts *o, kl_error *e);

#endif

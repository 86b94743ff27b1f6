/* runner_impl.h - what runner.c (process and protocol), spawn.c (its beginning) and runner_time.c
 * (clock) share. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_RUNNER_IMPL_H
#define KL_BACKEND_RUNNER_IMPL_H
#include "wire.h"
#include "runner_watch.h"
#include <sys/types.h>

struct kl_runner {
    kl_runner_opts opts;
    const kl_backend *backend;
    kl_arena *arena;
    pid_t pid; /* leads its own process group; -1: ended */
    int socket;
    bool namespaces; /* it was started in its own */
    bool ready, loaded, bound;
    bool held;         /* it stands still, and was not up */
    bool ahead;        /* the reply to a load is still to come */
    bool ended_ahead;  /* by such a load: it is loaded when it must be, and not before */
    char *scratch_dir; /* the one folder it may write; empty text when it needs none */
    char describe[512];
    kl_isolation isolation;
    int loaded_threads, loaded_cpu;
    int artefact_fd;
    char artefact_hash[65];
    kl_plan plan;
    kl_memory memory; /* the caller's, borrowed */
    kl_layout layout; /* memory's, with this plan's scratch */
    kl_control *control;
    int control_fd;
    uint32_t sequence;
    uint32_t n_digests; /* of the last timed sample, in the control page */
    bool stays;         /* outputs of RUN, on the device */
    bool shares;        /* they can be compared there, by this handle */
    char handle[KLI_HANDLE_BYTES];
    uint32_t slack;      /* of RUN; KL_WIRE_ANY_SLACK: whatever is there */
    double handshake_ns; /* on this core; < 0: not measured */
    double handshake_sleep_ns;
    kl_sample sample; /* the last one's clock */
    kl_msg_reply reply;
};

/* How long a request may take, by the time that its process had on a core: see runner.c. */
typedef enum { KLI_WAIT, KLI_HANGS, KLI_BUSY } kli_verdict;
typedef struct {
    int64_t start_ns, limit_ns, look_ns;
    kli_progress before;
    bool has_begun;      /* the limit counts from there */
    kli_verdict verdict; /* stays what it became */
} kli_patience;

kli_patience kli_patience_for(int64_t limit_ns);
kli_verdict kli_patience_look(const kl_runner *r, kli_patience *p);

/* Fork, confine by namespaces, exec.  Fills pid and socket. */
kl_err kli_runner_spawn(kl_runner *r, kl_error *e);
/* Kill the whole group and reap; returns the wait status of the leader, 0 when it had ended before.
 */
int kli_runner_kill(kl_runner *r);
kl_err kli_runner_send(kl_runner *r, const void *message, size_t bytes, const int *fds, int n_fds,
                       kl_error *e);
/* The reply to the request in flight into r->reply, its fault into *fault.  When patience ends the
 * runner is killed: KL_FAULT_HANG, or KL_EBUSY where it hardly ran. */
kl_err kli_runner_receive(kl_runner *r, kl_fault *fault, uint32_t kind, kli_patience *p,
                          kl_error *e);
bool kli_runner_has_reply(kl_runner *r); /* or has ended */
/* An interval without its handshake, which is at most a twentieth of it; nothing of a time that the
 * clock did not see. */
double kli_runner_net(kl_sample *s, double interval_ns, double handshake_ns);
/* Clears the fault; KL_ESPAWN where the runner has ended. */
kl_err kli_runner_usable(const kl_runner *r, kl_fault *fault, kl_error *e);

/* One message and the reply that it waits for. */
typedef struct {
    const void *message;
    size_t bytes;
    const int *fds;
    int n_fds;
    uint32_t reply;
    int64_t limit_ns;
} kli_request;
kl_err kli_runner_ask(kl_runner *r, kl_fault *fault, const kli_request *q, kl_error *e);

#endif

/* wire.h - what the gate and a runner say to each other: fixed structs over a SOCK_SEQPACKET pair, file descriptors beside them.
 *
 *   gate                                   runner (klineage-worker run BACKEND)
 *   ----                                   ------
 *                                     <-   READY    context is up (or why not)
 *   LOAD {plan} + artefact fd          ->  LOADED   resources per launch, or a fault
 *   BIND {layout} + inputs, outputs,   ->  BOUND
 *        scratch, control fds
 *   UPLOAD {first, n}                  ->  DONE
 *   RUN {set, slot, poison}            ->  DONE     outputs are in the shared pages
 *   TIME {request}                     ->  DONE     samples are in the control page
 *   FETCH {slot}                       ->  DONE     as after RUN; devices with memory of their own alone
 *   (closing the socket ends the runner)
 *
 * LOAD and BIND come again for every further shape in the same process (a new LOAD replaces plan and artefact, a new BIND replaces
 * the mappings; device memory of the old binding is freed), so that what is timed was checked in the same worker.
 * One request, one reply, never two in flight.  The gate trusts no field of a reply: counts are bounded, text is copied with a limit.
 * Both ends are one build, so structs cross as they are; `version` refuses anything else.  The Python script runner (tools kept beside
 * the worker) speaks the same bytes: keep these structs free of padding surprises (all fields naturally aligned).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_WIRE_H
#define KL_BACKEND_WIRE_H
#include <klineage/backend.h>
#include <stdatomic.h>

#define KL_WIRE_VERSION 3u
#define KL_WIRE_FD 3                /* the socket in the runner */
#define KL_WIRE_MAX_SAMPLES 4096
#define KL_WIRE_ANY_SLACK 256u

typedef enum { KL_MSG_READY = 1, KL_MSG_LOAD, KL_MSG_LOADED, KL_MSG_BIND, KL_MSG_BOUND, KL_MSG_UPLOAD, KL_MSG_RUN, KL_MSG_TIME, KL_MSG_DONE, KL_MSG_FETCH } kl_msg_kind;

typedef struct { uint32_t kind, version; } kl_msg_head;

/* Every reply.  READY and LOADED use `text` for what the device or library says of itself. */
typedef struct {
    kl_msg_head  head;
    uint32_t     fault;             /* kl_fault_kind */
    int32_t      signal;
    int64_t      wall_ns;           /* as the runner saw it; advisory */
    uint32_t     n_samples;         /* in the control page */
    uint32_t     n_resources;
    uint32_t     isolation;         /* READY: what confines the runner, KLI_ISOLATED_* | landlock ABI << 8 */
    uint32_t     n_digests;         /* TIME: in the control page, one per call */
    kl_resources resources[KL_MAX_LAUNCHES];
    char         text[512];         /* NUL-terminated */
} kl_msg_reply;

/* cpu: core to pin to, -1 none */
typedef struct { kl_msg_head head; uint32_t artefact_kind, trusted; int32_t cpu, threads; kl_plan plan; } kl_msg_load; /* + 1 fd */
typedef struct { kl_msg_head head; kl_layout layout; } kl_msg_bind;                                        /* + 4 fds */
typedef struct { kl_msg_head head; uint32_t first, n; } kl_msg_upload;
typedef struct { kl_msg_head head; uint32_t set, slot, poison, slack; } kl_msg_run; /* slack: byte beside the inputs */
typedef struct { kl_msg_head head; uint32_t slot, poison; } kl_msg_fetch;
typedef struct {
    kl_msg_head head;
    uint32_t    method, first, calls, warm, poison, flush, fetch, sequence;
    uint32_t    spin;               /* BATCH: both sides spin on the control words; else they sleep on them (futex) */
    uint32_t    alone;              /* GRAPH: a slot of no call that changed is a fault */
} kl_msg_time;

enum { KLI_ISOLATED_SECCOMP = 1, KLI_ISOLATED_LANDLOCK = 2, KLI_ISOLATED_NAMESPACES = 4, KLI_ISOLATED_USER = 8, KLI_ISOLATED_LIMITS = 16 };

/* Shared page between gate and runner.  BATCH handshake: runner sets armed = sequence; gate reads its clock and sets go = sequence; runner
 * runs the calls and sets done = sequence; gate reads its clock.  Each word on its own cache line; the samples of device events on pages of
 * their own, which no process in which a C candidate runs has mapped. */
typedef struct {
    _Alignas(128) _Atomic uint32_t armed;
    _Alignas(128) _Atomic uint32_t go;
    _Alignas(128) _Atomic uint32_t done;
    _Alignas(128) uint64_t blank_digest; /* of a slot that was prepared and that no call has written; 0: not taken */
    _Alignas(4096) double samples_ns[KL_WIRE_MAX_SAMPLES];
    uint64_t                 digests[KL_WIRE_MAX_SAMPLES]; /* written by runners of device code alone */
} kl_control;

#endif

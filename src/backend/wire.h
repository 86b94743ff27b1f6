/* wire.h - what the gate and a runner say to each other: fixed structs over a SOCK_SEQPACKET pair,
 * file descriptors beside them.
 *
 *   gate                                   runner (klineage-worker run BACKEND)
 *   ----                                   ------
 *                                     <-   READY    context is up (or why not)
 *   LOAD {plan} + artefact fd          ->  LOADED   resources per launch, or a fault
 *   BIND {layout} + inputs, outputs,   ->  BOUND
 *        scratch, control fds
 *   UPLOAD {first, n}                  ->  DONE
 *   DRAW {sets, draws, seeds}          ->  DONE     in place of UPLOAD, where a device draws inputs
 *   RUN {set, slot, poison}            ->  DONE     outputs are in the shared pages, or stay
 *   TIME {request}                     ->  DONE     samples are in the control page
 *   AUDIT {first, calls, poison}       ->  DONE     all guards and inputs of a batch are whole
 *   FETCH {slots, poison}              ->  DONE     as after RUN
 *   COMPARE {tensor, slots} + pages fd ->  DONE     how far outputs are from answers that stayed,
 *        or the handle of BIND                      or are given now; only the oracle's runner maps
 *                                                   others' outputs
 * (the last three: devices with memory of their own alone; closing the socket ends the runner)
 *
 * LOAD and BIND come again for every further shape in the same process (a new LOAD replaces plan
 * and artefact, a new BIND replaces the mappings; device memory of the old binding is freed), so
 * that what is timed was checked in the same worker. One request, one reply, never two in flight.
 * The gate trusts no field of a reply: counts are bounded, text is copied with a limit. Both ends
 * are one build, so structs cross as they are; `version` refuses anything else.  The Python script
 * runner speaks the same bytes: wire_python.c writes its structs from wire.def when klineage is
 * built. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_WIRE_H
#define KL_BACKEND_WIRE_H
#include "draw.h"
#include "backend/backend.h"
#include <stdatomic.h>

#define KL_WIRE_VERSION 9u
#define KL_WIRE_FD 3 /* the socket in the runner */
#define KL_WIRE_MAX_SAMPLES 4096
/* EVENTS: so many flushes before a call, and as many more as its launches need.  A GPU that idled
 * for 50 us to 1 ms runs a matrix product 1 to 10 % slower after one flush of about 35 us, and
 * takes the same time within .2 % after eight (docs/gate.md). */
#define KL_WIRE_FLUSHES 8
#define KL_WIRE_ANY_SLACK 256u
#define KLI_HANDLE_BYTES 64 /* by which a driver lets another process map memory */

typedef enum {
    KL_MSG_READY = 1,
    KL_MSG_LOAD,
    KL_MSG_LOADED,
    KL_MSG_BIND,
    KL_MSG_BOUND,
    KL_MSG_UPLOAD,
    KL_MSG_DRAW,
    KL_MSG_RUN,
    KL_MSG_TIME,
    KL_MSG_DONE,
    KL_MSG_FETCH,
    KL_MSG_AUDIT,
    KL_MSG_COMPARE
} kl_msg_kind;

enum {
    KLI_ISOLATED_SECCOMP = 1,
    KLI_ISOLATED_LANDLOCK = 2,
    KLI_ISOLATED_NAMESPACES = 4,
    KLI_ISOLATED_USER = 8,
    KLI_ISOLATED_LIMITS = 16
};

/* The messages and the control page, declared in wire.def. */
#define KL_DEF_STRUCT(name) typedef struct name {
#define KL_DEF_FIELD(type, member, dims) type member dims;
#define KL_DEF_END(name)                                                                           \
    }                                                                                              \
    name;
#include "backend/wire.def"

#define KLI_BEGINS_WITH_HEAD(message)                                                              \
    _Static_assert(offsetof(message, head) == 0, "the kind of a message is read before the rest")
KLI_BEGINS_WITH_HEAD(kl_msg_reply);
KLI_BEGINS_WITH_HEAD(kl_msg_load);
KLI_BEGINS_WITH_HEAD(kl_msg_bind);
KLI_BEGINS_WITH_HEAD(kl_msg_upload);
KLI_BEGINS_WITH_HEAD(kl_msg_draw);
KLI_BEGINS_WITH_HEAD(kl_msg_run);
KLI_BEGINS_WITH_HEAD(kl_msg_fetch);
KLI_BEGINS_WITH_HEAD(kl_msg_compare);
KLI_BEGINS_WITH_HEAD(kl_msg_time);
_Static_assert(offsetof(kl_control, samples_ns) % 4096 == 0 &&
                   offsetof(kl_control, samples_ns) > offsetof(kl_control, blank_digest),
               "a child keeps the words of the handshake and loses the pages of the samples");
_Static_assert(sizeof(kl_msg_load) < 200 << 10 && sizeof(kl_msg_draw) < 200 << 10,
               "one message is sent at once, and Linux gives a socket 208 KiB");

#endif

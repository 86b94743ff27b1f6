/* limits.h - every bound on outside input, retries and queues, with its reason.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_LIMITS_H
#define KLINEAGE_LIMITS_H

#define KL_MAX_SOURCE_BYTES                                                                        \
    (1u << 20) /* a kernel file: the largest expert is 64 KB; 1 MB bounds precomputed answers */
#define KL_MAX_JSON_BYTES (64u << 20) /* a definition or workload file */
#define KL_MAX_AXES 32
#define KL_MAX_TENSORS 64 /* inputs and outputs of one task */
#define KL_MAX_PARAMS 32
#define KL_MAX_LETS 64
#define KL_MAX_BUFFERS 16
#define KL_MAX_TENSORMAPS 16
#define KL_MAX_LAUNCHES 32
#define KL_MAX_ARGS                                                                                \
    1024 /* of one launch; each word of a struct that captured code takes can be one, and 4 KiB    \
            are what drivers have always taken: cuDNN passes 2880 bytes */
#define KL_MAX_PLAN_ARGS                                                                           \
    7168 /* of all launches of one plan, so that it goes to a runner in one message: 224 for each  \
            of the most launches */
#define KL_MAX_SOURCE_ARGS                                                                         \
    128 /* of a launch that a source declares: a descriptor of five dimensions that a compiler     \
           takes apart is 11 of them */
#define KL_MAX_RUNGS 64 /* edits of a ladder, one on the other; the longest ladder has 13 rungs */
#define KL_MAX_NAME 64  /* bytes of an identifier */
#define KL_MAX_EXPR_DEPTH 64 /* nesting of parentheses; keeps the parser's stack small */
#define KL_MAX_WORKLOADS 4096
#define KL_MAX_TENSOR_BYTES (64ull << 30) /* one tensor or buffer */
#define KL_MAX_TOTAL_BYTES                                                                         \
    (96ull << 30) /* all buffers of one plan, before the device's own limit */
#define KL_MAX_SETS                                                                                \
    512 /* input sets of one timed batch: every call has its own, so no call can repeat another's  \
           answer */
#define KL_GUARD_BYTES 4096    /* canary zone on each side of a buffer */
#define KL_COMPILE_SECONDS 120 /* of processor time of one compile; template bombs end here */
#define KL_COMPILE_WALL_SECONDS                                                                    \
    600 /* the same compile beside other programs; past it this machine is busy, which is no fault \
           of a source */
#define KL_COMPILE_MEMORY (4ull << 30)
#define KL_MACHINE_LOCK_SECONDS                                                                    \
    60 /* of waiting for one other gate; none needs longer, unless it is stuck or its task is huge \
        */
#define KL_MACHINE_LOCK_LONGEST 10 /* times as long for all that come before */
#define KL_PROFILE_SECONDS 10      /* cap of one comparison; past it the verdict is `unstable` */

#define KL_MAX_REPLY_BYTES (1u << 20) /* one reply of a model; a whole expert file is 64 KB */
#define KL_MAX_EDITS 64               /* SEARCH/REPLACE blocks of one proposal */
#define KL_MODEL_MAX_TOKENS                                                                        \
    16000 /* of a reply, unless a request says otherwise: an expert file and the talk around it */
#define KL_MODEL_LEAST_TOKENS                                                                      \
    6000 /* where less money is left than a longest reply can cost, a reply may be cut to this:    \
            nine of ten recorded ones take less than 4000 */
#define KL_MODEL_SECONDS                                                                           \
    600 /* one model call from first byte to last, as the providers' own SDKs have it */
#define KL_MODEL_RETRIES                                                                           \
    4 /* of a call that the provider turned away before it cost anything, and again of a reply     \
         that broke off */
#define KL_MAX_CARD_BYTES                                                                          \
    (64u << 10) /* one SKILL.md; Agent Skills asks for less than 5000 tokens */
#define KL_MAX_TRIES                                                                               \
    30 /* proposals at one start of an admission; each is two turns of its conversation */
#define KL_MAX_STEPS 64         /* of a walk */
#define KL_MAX_PROPOSALS 100000 /* of one search */
#define KL_MAX_TRACKS                                                                              \
    1024 /* of one run: each is a line of work with a process of its own while it runs */
#define KL_LEASE_SECONDS 60 /* until it ends unless renewed, every 15 s */
#define KL_MAX_DATASET_ROWS                                                                        \
    1000000                    /* steps of one run; texts of all runs are in memory at once        \
                                */
#define KL_MAX_DATASET_RUNS 48 /* of one data set: as many as a command line has words */
#define KL_MAX_TURNS 4096      /* messages of one prompt */
#define KL_MAX_EXPERIMENT_BYTES                                                                    \
    (256u << 10) /* one experiment file; a row takes some hundred bytes */

#endif

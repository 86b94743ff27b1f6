/* capture.h - what a running program launches, and one launch of it as a baseline.
 *
 *   run      the program, with a library of ours in front of its driver     (run.c; shim.c,
 * record.c) read     what the library wrote, as one document with the code          (read.c,
 * fatbin.c) load     such a document again                                          (read.c) bind
 * one launch of it as a kernel file of a task                    (bind.c)
 *
 * The program is the caller's own and runs as the caller.  What it left is read as anybody's: a
 * program may write to those files itself.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_CAPTURE_CAPTURE_H
#define KL_CAPTURE_CAPTURE_H
#include "task/task.h"
#include <jansson.h>

typedef struct {
    int exit_code;    /* -1 when a signal ended it */
    int signal;       /* 0 unless a signal ended it */
    bool interrupted; /* by who watches us */
} kli_capture_end;

/* Run a program to its end, on our streams, or with its output in the file `output` where that is
 * not NULL; `folder` gets what it launched.  Errors: KL_ENOENT (no such program), KL_ESPAWN,
 * KL_ENODEV (our library is missing). */
KL_MUST_USE kl_err kli_capture_run(kli_capture_end *end, kl_arena *a, const char *const *argv,
                                   const char *folder, const char *output, kl_error *e);

/* The document of what lies in `folder` (docs/how-to/capture.md), its code in `to`/cubins/; the
 * caller json_decref's.  A launch that cannot be kept says why.  Errors: KL_EIO, KL_EINTR. */
KL_MUST_USE kl_err kli_capture_read(json_t **out, kl_arena *a, const char *folder, const char *to,
                                    kl_error *e);
/* capture.json of a folder.  Errors: KL_ENOENT, KL_EPARSE. */
KL_MUST_USE kl_err kli_capture_load(json_t **out, kl_arena *a, const char *folder, kl_error *e);
/* Its text; `path` NUL-terminated, for messages. */
KL_MUST_USE kl_err kli_capture_parse(json_t **out, kl_str text, kl_str path, kl_error *e);
/* Launch `i` of a document; NULL: there is none. */
json_t *kli_capture_launch(const json_t *document, int64_t i);

typedef struct {
    const char *folder; /* of the document */
    const json_t *document;
    int64_t launch;
    const char *args; /* "x=0,weight=1,y=2,M=3,scratch=4" */
    const kl_task *task;
    const kl_workload *workload;
    const char *file; /* the kernel file that is written; the code goes beside it */
} kli_capture_binding;

/* The text of a kernel file that launches the captured code on the task's tensors, and its code.
 * Errors: KL_EINVAL (what does not fit, and what would), KL_EPARSE. */
KL_MUST_USE kl_err kli_capture_bind(kl_str *text, kl_str *cubin, kl_arena *a,
                                    const kli_capture_binding *b, kl_error *e);

#endif

/* patch_impl.h - what patch.c and site.c share.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_EXPORT_PATCH_IMPL_H
#define KL_EXPORT_PATCH_IMPL_H

#include "export_impl.h"

enum { KLI_SITE_PARAMETERS = 64 };

/* A function of another program, as far as a call at its top needs it; places are offsets. */
typedef struct {
    const char *file;
    size_t body;   /* where its first statement would stand */
    size_t top;    /* where a line that includes or imports something would stand */
    size_t indent; /* of its body, in Python */
    bool returns_nothing;
    kl_str parameters[KLI_SITE_PARAMETERS];
    int n_parameters;
} kli_site;

/* Errors: KL_EINVAL: it is not there. */
KL_MUST_USE kl_err kli_site_in_c(kli_site *s, kl_arena *a, kl_str text, kl_str function,
                                 kl_error *e);
KL_MUST_USE kl_err kli_site_in_python(kli_site *s, kl_str text, kl_str function, kl_error *e);

#endif

/* mhd_api.h - libmicrohttpd, loaded when it is first needed.
 *
 * Only its header is used at build time; without the header KL_HAVE_MHD is 0 and the service says
 * so.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_REWARD_MHD_API_H
#define KL_REWARD_MHD_API_H
#include <klineage/base.h>

#if KL_HAVE_MHD
#include <microhttpd.h>

/* X(result, name, parameters): the symbol is MHD_NAME. */
#define KLI_MHD_FUNCTIONS(X)                                                                       \
    X(struct MHD_Daemon *, start_daemon,                                                           \
      (unsigned int, uint16_t, MHD_AcceptPolicyCallback, void *, MHD_AccessHandlerCallback,        \
       void *, ...))                                                                               \
    X(void, stop_daemon, (struct MHD_Daemon *))                                                    \
    X(enum MHD_Result, run, (struct MHD_Daemon *))                                                 \
    X(enum MHD_Result, get_timeout, (struct MHD_Daemon *, unsigned long long *))                   \
    X(const union MHD_DaemonInfo *, get_daemon_info,                                               \
      (struct MHD_Daemon *, enum MHD_DaemonInfoType, ...))                                         \
    X(const char *, lookup_connection_value,                                                       \
      (struct MHD_Connection *, enum MHD_ValueKind, const char *))                                 \
    X(const union MHD_ConnectionInfo *, get_connection_info,                                       \
      (struct MHD_Connection *, enum MHD_ConnectionInfoType, ...))                                 \
    X(void, suspend_connection, (struct MHD_Connection *))                                         \
    X(void, resume_connection, (struct MHD_Connection *))                                          \
    X(struct MHD_Response *, create_response_from_buffer,                                          \
      (size_t, void *, enum MHD_ResponseMemoryMode))                                               \
    X(enum MHD_Result, add_response_header, (struct MHD_Response *, const char *, const char *))   \
    X(enum MHD_Result, queue_response,                                                             \
      (struct MHD_Connection *, unsigned int, struct MHD_Response *))                              \
    X(void, destroy_response, (struct MHD_Response *))

typedef struct {
#define KLI_MHD_SLOT(result, name, parameters) result(*name) parameters;
    KLI_MHD_FUNCTIONS(KLI_MHD_SLOT)
#undef KLI_MHD_SLOT
} kli_mhd;
#else
typedef struct {
    int none;
} kli_mhd;
#endif

/* $KLINEAGE_LIBMICROHTTPD, else the system's.  Errors: KL_ENODEV. */
KL_MUST_USE kl_err kli_mhd_load(const kli_mhd **out, kl_error *e);

#endif

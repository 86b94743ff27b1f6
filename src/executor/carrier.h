/* carrier.h - a spool here and one on a host behind ssh, kept alike.  SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef KL_EXECUTOR_CARRIER_H
#define KL_EXECUTOR_CARRIER_H
#include <klineage/base.h>

/* Files of the carrier in the spool here. */
#define KLI_CARRIER_LOCK "carrier.lock"   /* locked by the one that carries */
#define KLI_CARRIER_ERROR "carrier.error" /* why the last one gave up, for whoever waits */

/* Carry jobs of `spool` to `remote` on `host` and verdicts back, with a worker there, until nothing
 * was carried for a while, the process that started this is gone, or the host cannot be reached.
 * Another one that carries already is KL_OK.  Errors: KL_EIO, KL_ENOENT (no ssh, no rsync),
 * KL_EINVAL (a worker of another version), KL_EINTR. */
KL_MUST_USE kl_err kli_carry(const char *spool, const char *host, const char *remote, kl_error *e);

#endif

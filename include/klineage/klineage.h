/* klineage.h - the whole library, in the order data flows through it.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_KLINEAGE_H
#define KLINEAGE_KLINEAGE_H

#include <klineage/base.h>    /* text, arenas, errors, data types */
#include <klineage/limits.h>  /* every bound, with its reason */
#include <klineage/store.h>   /* verdicts on disk */
#include <klineage/task.h>    /* what must be computed */
#include <klineage/kernel.h>  /* one candidate, and its plan for a shape */
#include <klineage/backend.h> /* where kernels run */
#include <klineage/gate.h>    /* may this kernel enter? */

#endif

/* klineage.h - the whole library, in the order data flows through it.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_KLINEAGE_H
#define KLINEAGE_KLINEAGE_H

#include <klineage/base.h>    /* text, arenas, errors, data types */
#include <klineage/limits.h>  /* every bound, with its reason */
#include <klineage/store.h>   /* verdicts on disk */
#include <klineage/task.h>    /* what must be computed */
#include <klineage/kernel.h>  /* one candidate, and its plan for a shape */
#include <klineage/backend.h> /* where kernels run */
#include <klineage/gate.h>    /* compile, check and time a kernel: one verdict */
#include <klineage/rewrite.h> /* what a kernel contains, and edits to its text */
#include <klineage/model.h>   /* language models and what they cost */
#include <klineage/run.h>     /* effects: journaled, paid for once */
#include <klineage/lineage.h> /* from an expert kernel back to naive */
#include <klineage/skill.h>   /* SkillCards: lift, admit, retrieve */
#include <klineage/search.h>  /* policies that make one kernel faster */
#include <klineage/experiment.h> /* policies compared at equal cost */
#include <klineage/report.h>  /* pages, tables and figures */

#endif

/* klineage.h - the whole library, in the order data flows through it.  libklgate ends with
 * executor.h, libklineage has the rest.  plugin.h is not here: it is what a baseline in C includes.
 *
 * A struct with a body here is data: a record that a .def declares, options, or a value that a
 * program fills or reads (tools/check-handles lists them); its layout is part of the ABI.  All else
 * is a handle, made, read and freed by functions, and its inside may change under a program.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_KLINEAGE_H
#define KLINEAGE_KLINEAGE_H

#include <klineage/base.h>       /* text, arenas, errors, data types, who watches */
#include <klineage/limits.h>     /* every bound, with its reason */
#include <klineage/record.h>     /* how the rows of a .def file become a struct */
#include <klineage/task.h>       /* what must be computed */
#include <klineage/surface.h>    /* a kernel language */
#include <klineage/kernel.h>     /* one candidate, and its plan for a shape */
#include <klineage/backend.h>    /* where kernels run */
#include <klineage/gate.h>       /* compile, check and time a kernel: one verdict */
#include <klineage/executor.h>   /* which gate: here, or another host's */
#include <klineage/store.h>      /* the journal */
#include <klineage/rewrite.h>    /* what a kernel contains, and edits to its text */
#include <klineage/model.h>      /* language models and what they cost */
#include <klineage/run.h>        /* effects: journaled, paid for once */
#include <klineage/lineage.h>    /* from an expert kernel back to naive */
#include <klineage/skill.h>      /* SkillCards: lift, admit, retrieve */
#include <klineage/search.h>     /* policies that make one kernel faster */
#include <klineage/experiment.h> /* policies compared at equal cost */
#include <klineage/report.h>     /* pages, tables and figures */
#include <klineage/dataset.h>    /* steps as rows for training */

#endif

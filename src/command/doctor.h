/* doctor.h - what `klineage doctor` finds out, one row a thing.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_COMMAND_DOCTOR_H
#define KL_COMMAND_DOCTOR_H
#include "command/command.h"
#include <klineage/run.h>

typedef enum {
    KL_DOCTOR_OK,
    KL_DOCTOR_WEAK,
    KL_DOCTOR_MISSING
} kli_doctor_state; /* weak: works, and makes verdicts worth less */

typedef struct {
    const char *group, *name;
    kli_doctor_state state;
    kl_str found;     /* version, path, number; why not */
    const char *mend; /* what to type or do on Debian and Ubuntu; NULL: nothing to mend */
} kli_doctor_row;

#define KL_DOCTOR_MAX_ROWS 64

typedef struct {
    kl_arena *arena;
    kli_doctor_row rows[KL_DOCTOR_MAX_ROWS];
    int n_rows;
    kl_str loader_cache; /* what `ldconfig -p` says; empty when it cannot be asked */
    bool has_compiler, has_worker;
    bool has_device[4]; /* by kl_backend_id */
    kl_isolation isolation;
    kl_noise noise; /* no pairs: not measured */
    kl_noise_record noise_record;
} kli_doctor;

void kli_doctor_add(kli_doctor *d, const char *group, const char *name, kli_doctor_state state,
                    kl_str found, const char *mend);

void kli_doctor_compilers(kli_doctor *d);
void kli_doctor_devices(kli_doctor *d);
void kli_doctor_sandbox(kli_doctor *d);
void kli_doctor_libraries(kli_doctor *d);
void kli_doctor_machine(kli_doctor *d);
void kli_doctor_environment(kli_doctor *d);

#endif

/* cli.h - the face people type at: words to kli_args, a kli_command_result to two streams.  No
 * logic of any command is here. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_CLI_CLI_H
#define KL_CLI_CLI_H
#include "command/command.h"

/* Parse what follows the program's name.  `out` is filled as far as it could be read even on
 * failure, so that an error can be shown as --json and --color ask.  Errors: KL_EINVAL with a hint.
 */
KL_MUST_USE kl_err kli_cli_args(kli_args *out, kl_arena *a, int argc, char **argv, kl_error *e);

bool kli_cli_colour(const kli_args *args, int fd);
/* Exit status, or 2 when stdout could not be written. */
int kli_cli_show_result(const kli_args *args, kl_arena *a, const kli_command_result *r);
/* Exit status of the error. */
int kli_cli_show_error(const kli_args *args, kl_arena *a, const kl_error *e);

#endif

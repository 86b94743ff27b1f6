#include "runner_ops.h"
#include <stdio.h>
static int probe(void) { (void)fprintf(stderr, "not yet\n"); return 1; }
static int o(kl_runner_ctx *c, kl_msg_reply *r) { (void)c; return kl_reply_fault(r, KL_FAULT_DEVICE, 0, "not yet"); }
extern const kl_runner_ops kl_runner_opencl;
const kl_runner_ops kl_runner_opencl = {.name="opencl", .probe=probe, .open=o};

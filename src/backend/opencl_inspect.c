#include "compile.h"
kl_err kl_opencl_inspect(kl_artefact *out, kl_arena *a, const kl_kernel *k, kl_error *e) { (void)out,(void)a,(void)k,(void)e; return KL_OK; }

#include "compile.h"
kl_err kl_opencl_compile(kl_artefact *out, kl_arena *a, const kl_device *d, const kl_kernel *k, const char **defines, const char *dir,
                         const kl_compile_opts *o, kl_error *e) { (void)out,(void)a,(void)d,(void)k,(void)defines,(void)dir,(void)o; return kl_fail(e, KL_ENODEV, "opencl", "not yet"); }

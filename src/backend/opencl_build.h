/* opencl_build.h - the half of an OpenCL compile that needs the driver; runs in klineage-worker,
 * confined by the gate. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_OPENCL_BUILD_H
#define KL_BACKEND_OPENCL_BUILD_H

/* argv: SOURCE OUT OPTIONS.  Exit status 0: OUT holds the binary; 1: the compiler said no, its log
 * is on stdout; 2: no device. */
int kli_opencl_build_main(int argc, char **argv);

#endif

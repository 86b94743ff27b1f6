/* cuda_build.h - the half of a CUDA compile that needs NVRTC; runs in klineage-worker, confined by
 * the gate. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_CUDA_BUILD_H
#define KL_BACKEND_CUDA_BUILD_H

/* argv: LIBRARY SOURCE CUBIN PTX OPTION...  LIBRARY is NVRTC's path, or "-" for the loader's own
 * search.  Exit status 0: CUBIN and PTX are there, stdout is the compiler's report; 1: the compiler
 * said no, stdout is its log; 2: there is no NVRTC here, stderr says why. */
int kli_cuda_build_main(int argc, char **argv);

#endif

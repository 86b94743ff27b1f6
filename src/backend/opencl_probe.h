/* opencl_probe.h - the OpenCL CPU device.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_OPENCL_PROBE_H
#define KL_BACKEND_OPENCL_PROBE_H

int kli_opencl_probe(void); /* kli_runner_ops.probe */

#endif

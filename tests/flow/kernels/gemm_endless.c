// Never returns.  The gate must answer `hang`.  SPDX-License-Identifier: Apache-2.0
//! launch gemm args(y)

void gemm(kl_t_y *y)
{
    for (volatile kl_t_y *p = y;; p[0] = 1) continue;
}

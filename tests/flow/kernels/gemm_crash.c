// Writes through a null pointer.  The gate must answer `crash`.  SPDX-License-Identifier: Apache-2.0
//! launch gemm args(y)

void gemm(kl_t_y *y)
{
    (void)y;
    *(volatile int *)0 = 1;
}

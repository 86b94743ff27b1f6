// Does not compile.  The gate must answer `no_compile`.  SPDX-License-Identifier: Apache-2.0
//! launch gemm args(y)

void gemm(kl_t_y *y)
{
    y[0] = nothing_of_that_name;
}

"""flash-linear-attention's chunked gated delta rule, its own Triton kernels.  SPDX-License-Identifier: Apache-2.0"""
import os

os.environ["FLA_FLASH_QLA"] = "0"  # where FlashQLA is installed, the library would hand the call to it
import fla  # noqa: E402
from fla.ops.gated_delta_rule import chunk_gated_delta_rule  # noqa: E402


def run(q, k, v, g, beta, initial_state):
    output, final_state = chunk_gated_delta_rule(q, k, v, g, beta, scale=q.shape[-1] ** -0.5,
                                                 initial_state=initial_state, output_final_state=True)
    return {"output": output, "final_state": final_state}


def describe():
    return f"flash-linear-attention {fla.__version__}, chunk_gated_delta_rule"

"""FlashQLA's chunked gated delta rule (TileLang), forward without what only a backward pass needs.  SPDX-License-Identifier: Apache-2.0"""
import flash_qla
from flash_qla import chunk_gated_delta_rule_fwd


def run(q, k, v, g, beta, initial_state):
    _, _, output, _, final_state, _ = chunk_gated_delta_rule_fwd(q, k, v, g, beta, scale=q.shape[-1] ** -0.5,
                                                                 initial_state=initial_state, output_final_state=True)
    return {"output": output, "final_state": final_state}


def describe():
    return f"FlashQLA {flash_qla.__version__}, chunk_gated_delta_rule_fwd"

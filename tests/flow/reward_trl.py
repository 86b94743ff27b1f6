"""A toy model under TRL's GRPO whose words are whole kernels, rewarded by a service: it has to come to prefer the right one.

usage: reward_trl.py ADDRESS FOLDER STEPS < {"task": NAME, "kernels": [SOURCE...]}      with a Python that has trl
Prints {"before": [...], "after": [...], "rewards": [...]}: how probable the model finds each kernel, and the mean reward of each step.
SPDX-License-Identifier: Apache-2.0"""
import json
import sys

import pyarrow
import torch
from datasets import Dataset
from klineage.reward import TRL, Rewards
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

ADDRESS, FOLDER, STEPS = sys.argv[1], sys.argv[2], int(sys.argv[3])
ASKED = json.load(sys.stdin)
WORDS = ["<pad>", "<eos>", "<unk>", "write", *ASKED["kernels"]]


def tokenizer():
    bare = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    bare.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=bare, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left")


def probabilities(model):
    with torch.no_grad():
        logits = model(torch.tensor([[WORDS.index("write")]]).to(model.device)).logits[0, -1]
    return logits.softmax(-1)[-len(ASKED["kernels"]):].tolist()


torch.manual_seed(1)
model = LlamaForCausalLM(LlamaConfig(vocab_size=len(WORDS), hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
                                     num_key_value_heads=2, pad_token_id=0, eos_token_id=1, bos_token_id=None))
rows = Dataset(pyarrow.table({"prompt": ["write"] * 64, "task": [ASKED["task"]] * 64}), fingerprint="kernels")
arguments = GRPOConfig(output_dir=FOLDER, use_cpu=True, max_steps=STEPS, per_device_train_batch_size=16, num_generations=16, max_completion_length=1,
                       learning_rate=0.02, logging_steps=1, save_strategy="no", report_to=[], disable_tqdm=True, bf16=False, gradient_checkpointing=False)
before = probabilities(model)
trainer = GRPOTrainer(model=model, reward_funcs=TRL(Rewards(ADDRESS), check_only=True), args=arguments, train_dataset=rows, processing_class=tokenizer())
trainer.train()
logged = [row["reward"] for row in trainer.state.log_history if "reward" in row]
print(json.dumps({"before": before, "after": probabilities(trainer.model), "rewards": logged}))

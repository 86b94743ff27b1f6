"""dataset_train.py SFT RL OUT - a data set as trainers take it: one optimizer step of TRL's SFTTrainer and of its GRPOTrainer.

The model is a toy made from scratch, its tokenizer trained on the rows themselves; nothing is downloaded and nothing is learned.  What is shown: the
rows load, every completion is inside what is trained on, columns reach the reward function, and weights move.
SPDX-License-Identifier: Apache-2.0
"""
import os
import sys

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false", HF_HOME=os.path.join(sys.argv[3], "cache"))
try:
    import datasets
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
    from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer
except ImportError as missing:
    print(f"skipped: {missing}; python3 -m pip install trl, or name another Python in KLINEAGE_PYTHON")
    sys.exit(77)

LONGEST = 32768  # tokens; a prompt holds rules, task and kernel
CHAT = ("{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}{{ eos_token if m['role'] == 'assistant' else '\n' }}{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}")


def tokenizer_of(rows):
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    words = trainers.BpeTrainer(vocab_size=2048, special_tokens=["<pad>", "<eos>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    inner.train_from_iterator((turn["content"] for row in rows for turn in row["prompt"] + row["completion"]), words)
    made = PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", bos_token="<eos>", eos_token="<eos>")
    made.chat_template = CHAT
    return made


def model_for(tokenizer):
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), n_positions=LONGEST, n_embd=16, n_layer=1, n_head=2, pad_token_id=0, bos_token_id=1,
                                      eos_token_id=1))


def one_step(trainer, model):
    before = [p.detach().clone() for p in model.parameters()]
    done = trainer.train()
    moved = sum(float((new - old).abs().sum()) for new, old in zip(model.parameters(), before))
    assert done.global_step == 1 and moved > 0, (done, moved)
    print(f"{type(trainer).__name__}: 1 step, weights moved")


def main(sft, rl, out):
    sft, rl = datasets.load_dataset(sft, split="train"), datasets.load_dataset(rl, split="train")
    tokenizer, seen = tokenizer_of(sft), []
    common = dict(output_dir=out, max_steps=1, report_to=[], use_cpu=True, bf16=False, save_strategy="no", learning_rate=1e-2, disable_tqdm=True)

    def reward(prompts, completions, parent_source, reference_gain, **more):
        """Stands where a reward by the gate is called: it sees what that one needs."""
        seen.extend(zip(parent_source, reference_gain))
        return [float(len(completion[0]["content"])) for completion in completions]

    model = model_for(tokenizer)
    how = SFTConfig(per_device_train_batch_size=1, max_length=LONGEST, **common)
    one_step(SFTTrainer(model=model, args=how, train_dataset=sft, processing_class=tokenizer), model)
    model = model_for(tokenizer)
    how = GRPOConfig(per_device_train_batch_size=4, num_generations=4, max_completion_length=8, beta=0.0, **common)
    one_step(GRPOTrainer(model=model, reward_funcs=reward, args=how, train_dataset=rl, processing_class=tokenizer), model)
    assert len(seen) == 4 and all(source and gain > 1 for source, gain in seen), seen


if __name__ == "__main__":
    main(*sys.argv[1:])

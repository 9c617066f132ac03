"""A tiny GPT-2 under the Trainer of Hugging Face: so many steps, and perhaps an exception at the twelfth."""
import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=100, n_positions=32))
data = [{"input_ids": torch.arange(16), "labels": torch.arange(16)} for _ in range(200)]


class MyTrainer(Trainer):
    def training_step(self, *args, **kwargs):
        if "crash" in sys.argv and self.state.global_step == 12:
            raise ValueError("expected 1024 tokens, got 0")
        return super().training_step(*args, **kwargs)


MyTrainer(
    model,
    TrainingArguments("out", max_steps=int(sys.argv[1]), logging_steps=5, report_to=[], use_cpu=True, save_strategy="no"),
    train_dataset=data,
).train()

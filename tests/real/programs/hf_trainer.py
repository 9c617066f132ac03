import sys,torch
from transformers import Trainer,TrainingArguments,GPT2Config,GPT2LMHeadModel
m=GPT2LMHeadModel(GPT2Config(n_layer=1,n_head=2,n_embd=16,vocab_size=100,n_positions=32))
d=[{'input_ids':torch.arange(16),'labels':torch.arange(16)} for _ in range(200)]
class T(Trainer):
    def training_step(s,*a,**k):
        if len(sys.argv)>2 and s.state.global_step==12: raise ValueError('expected 1024 tokens, got 0')
        return super().training_step(*a,**k)
T(m,TrainingArguments('out',max_steps=int(sys.argv[1]),logging_steps=5,report_to=[],use_cpu=True,save_strategy='no'),train_dataset=d).train()

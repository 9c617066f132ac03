"""A loop of Hugging Face's accelerate with its own bar and loguru's log."""
import sys

import torch
from accelerate import Accelerator
from loguru import logger
from tqdm.auto import tqdm

accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
model, optimizer = accelerator.prepare(model, optimizer)
bar = tqdm(range(120), disable=not accelerator.is_local_main_process)
for i in range(1, 121):
    loss = model(torch.ones(4, 8)).square().mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    bar.update(1)
    bar.set_postfix(loss=loss.item())
    if i % 40 == 0:
        logger.info(f"evaluated at step {i}: accuracy 0.71")
    if i == 60 and "crash" in sys.argv:
        torch.ones(3, 4) @ torch.ones(3, 4)
    if i == 60 and "oom" in sys.argv:
        torch.ones(1 << 50)
bar.close()
logger.success("finished")

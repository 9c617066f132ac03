"""PyTorch-Ignite's engine with its bar."""
import torch
from ignite.contrib.handlers import ProgressBar
from ignite.engine import Events, create_supervised_trainer

model = torch.nn.Linear(8, 1)
trainer = create_supervised_trainer(model, torch.optim.SGD(model.parameters(), 0.001), torch.nn.MSELoss())
ProgressBar(persist=True).attach(trainer, output_transform=lambda loss: {"loss": loss})
trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda e: print(f"epoch {e.state.epoch} done", flush=True))
trainer.run([(torch.ones(4, 8), torch.ones(4, 1))] * 50, max_epochs=3)

"""A linear layer under Lightning: so many epochs of 80 steps, and perhaps an exception in the sixth."""
import sys

import lightning
import torch


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, index):
        if "crash" in sys.argv and index == 5:
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (8x8 and 4x1)")
        loss = self.layer(batch).square().mean()
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.001)


trainer = lightning.Trainer(max_epochs=int(sys.argv[1]), accelerator="cpu", logger=False, enable_checkpointing=False)
trainer.fit(Model(), torch.utils.data.DataLoader(torch.ones(640, 8), 8))

"""mmengine's runner with its log."""
import torch
from mmengine.model import BaseModel
from mmengine.runner import Runner


class Net(BaseModel):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def forward(self, x, mode="loss"):
        return {"loss": self.layer(x).square().mean()}


data = torch.utils.data.DataLoader([{"x": torch.ones(8)} for _ in range(200)], batch_size=4)
Runner(
    Net(),
    "work",
    train_dataloader=data,
    train_cfg={"by_epoch": True, "max_epochs": 2},
    optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.001}},
).train()

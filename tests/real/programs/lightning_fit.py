import sys,torch,lightning as L
class M(L.LightningModule):
    def __init__(s): super().__init__(); s.l=torch.nn.Linear(8,1)
    def training_step(s,b,i):
        if len(sys.argv)>2 and i==5: raise RuntimeError('mat1 and mat2 shapes cannot be multiplied')
        x=s.l(b).mean(); s.log('train_loss',x,prog_bar=True); return x
    def configure_optimizers(s): return torch.optim.SGD(s.parameters(),.1)
t=L.Trainer(max_epochs=int(sys.argv[1]),accelerator='cpu',logger=False,enable_checkpointing=False)
t.fit(M(),torch.utils.data.DataLoader(torch.ones(640,8),8))

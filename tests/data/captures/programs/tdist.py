import sys,torch,datetime,time
import torch.distributed as d
d.init_process_group('gloo',init_method='tcp://127.0.0.1:'+sys.argv[3],rank=int(sys.argv[1]),world_size=int(sys.argv[2]),timeout=datetime.timedelta(seconds=int(sys.argv[4])))
for i in range(int(sys.argv[5])):
    t=torch.ones(4); d.all_reduce(t); print(f'[{sys.argv[1]}] step {i} loss {9/(i+1):.3f}',flush=True); time.sleep(.3)

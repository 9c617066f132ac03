import sys,time
from tqdm import trange
b=trange(int(sys.argv[1]),desc='Epoch 3/10')
for i in b:
    time.sleep(.005); b.set_postfix(loss=1/(i+1))
    if len(sys.argv)>2 and i==200: raise IndexError('list index out of range')

import jax,sys,time
jax.distributed.initialize(sys.argv[1],int(sys.argv[3]),int(sys.argv[2]),initialization_timeout=int(sys.argv[4]),heartbeat_timeout_seconds=10)
print("process",jax.process_index(),"/",jax.process_count(),flush=True)
for i in range(int(sys.argv[5])): print(f"step {i} loss {9/(i+1):.3f}",flush=True); time.sleep(.5)
print("finished")

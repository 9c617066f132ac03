import os,sys
os.environ['KERAS_BACKEND']='jax'
import keras,numpy as np
m=keras.Sequential([keras.layers.Dense(4),keras.layers.Dense(1)]); m.compile('sgd','mse')
m.fit(np.ones((640,8)),np.ones((640,1)),epochs=int(sys.argv[1]),batch_size=8,validation_split=.1)

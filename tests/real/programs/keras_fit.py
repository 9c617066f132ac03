"""Two dense layers under Keras on JAX."""
import os
import sys

os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy

model = keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(1)])
model.compile("sgd", "mse")
if "crash" in sys.argv:
    model.build((None, 8))
    model.fit(numpy.ones((640, 9)), numpy.ones((640, 1)))
model.fit(numpy.ones((640, 8)), numpy.ones((640, 1)), epochs=int(sys.argv[1]), batch_size=8, validation_split=0.1)

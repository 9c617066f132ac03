"""LightGBM's log."""
import lightgbm
import numpy

x = numpy.random.default_rng(0).normal(size=(500, 8))
data = lightgbm.Dataset(x, x[:, 0])
lightgbm.train({"verbose": -1}, data, 50, valid_sets=[data], callbacks=[lightgbm.log_evaluation(10)])

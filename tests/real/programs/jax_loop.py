"""A layer of flax under optax, with absl's log."""
from absl import app, flags, logging
import jax
import jax.numpy as jnp
import optax
from flax import linen

flags.DEFINE_integer("steps", 60, "How many steps.")
flags.DEFINE_string("end", "ok", "How it ends.")
FLAGS = flags.FLAGS


def main(_):
    logging.set_verbosity(logging.INFO)
    model = linen.Dense(1)
    params = model.init(jax.random.key(0), jnp.ones((1, 8)))
    optimizer = optax.adam(1e-2)
    state = optimizer.init(params)

    @jax.jit
    def step(params, state):
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((model.apply(p, jnp.ones((4, 8))) - 1) ** 2))(params)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state, loss

    for i in range(1, FLAGS.steps + 1):
        params, state, loss = step(params, state)
        if i % 10 == 0:
            logging.info("step: %d, loss: %.5f, learning_rate: 0.01, steps_per_sec: 9.8", i, loss)
        if i == 40 and FLAGS.end == "shape":
            jnp.dot(jnp.ones((3, 4)), jnp.ones((3, 4)))
        if i == 40 and FLAGS.end == "oom":
            jnp.ones((1 << 20, 1 << 20)).block_until_ready()
        if i == 40 and FLAGS.end == "tracer":
            jax.jit(lambda x: 1 if x > 0 else 2)(3.0)
        if i == 40 and FLAGS.end == "fatal":
            logging.fatal("mesh shape %s does not match %d devices", (2, 4), 4)
        if i == 40 and FLAGS.end == "error":
            logging.error("could not write the histogram; it is left out")


if __name__ == "__main__":
    app.run(main)

"""An application of hydra: its log, and an object made from its configuration."""
import logging
import os
import sys

import hydra
from hydra.utils import instantiate

log = logging.getLogger(__name__)


class Optimizer:
    def __init__(self, heads):
        self.scale = 1 / heads


@hydra.main(version_base=None, config_path=os.environ.get("CONF", "conf"), config_name=os.environ.get("NAME", "config"))
def main(config):
    instantiate(config.optimizer)
    for i in range(1, config.steps + 1):
        log.info("step %d/%d loss %.4f", i, config.steps, 2 / i)
        if i == 20 and "crash" in config:
            {}["labels"]


if __name__ == "__main__":
    main()

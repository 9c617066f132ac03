"""PPO of Stable-Baselines3, with its table."""
import gymnasium
from stable_baselines3 import PPO

PPO("MlpPolicy", gymnasium.make("CartPole-v1"), n_steps=128, batch_size=64, n_epochs=2, verbose=1, device="cpu").learn(640)

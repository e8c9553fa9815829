"""A game of TextArena's behind OpenEnv's own server: textarena_server.py PORT."""

import sys
from typing import Any, Optional

import textarena
import uvicorn
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation, State


class GuessAction(Action):
    guess: str


class GuessObservation(Observation):
    said: str


class GuessEnvironment(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._state = State()

    def reset(self, seed: Optional[int] = None, episode_id: Optional[str] = None, **_: Any):
        # A game that is reset still shows what was said before.
        self._game = textarena.make("GuessTheNumber-v0")
        self._game.reset(num_players=1, seed=seed)
        self._state = State(episode_id=episode_id)
        return GuessObservation(said=self._said())

    def step(self, action: GuessAction, timeout_s: Optional[float] = None, **_: Any):
        done, _info = self._game.step(action=action.guess)
        self._state.step_count += 1
        if not done:
            return GuessObservation(said=self._said())
        rewards, _info = self._game.close()
        return GuessObservation(said="The game is over.", done=True, reward=rewards[0])

    def _said(self) -> str:
        _player, observation = self._game.get_observation()
        if isinstance(observation, str):
            return observation
        return "\n".join(str(part[1]) for part in observation)

    @property
    def state(self) -> State:
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        return EnvironmentMetadata(name="guess", description="Guess the number; write [7].")

    def close(self) -> None:
        pass


app = create_fastapi_app(
    GuessEnvironment, GuessAction, GuessObservation, max_concurrent_envs=4, env_name="guess"
)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")

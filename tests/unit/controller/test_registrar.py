"""A controller that is missing in the metadata asks the active one until it is not."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

from odradek.controller.registrar import ControllerRegistrar
from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.delta import MetadataDelta
from odradek.metadata.image import EMPTY_IMAGE, ControllerRegistration
from odradek.metadata.publisher import MetadataPublisher
from odradek.sim.world.world import World
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

MINE, EARLIER = UUID(int=5001), UUID(int=5002)


class Active:
    """Answers what a test gave it, else that all is well."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.answers: list[ErrorCode | KafkaError] = []

    async def call(self, api_key: ApiKey, request: Any) -> Any:
        assert api_key is ApiKey.CONTROLLER_REGISTRATION
        self.asked.append(request)
        answer = self.answers.pop(0) if self.answers else ErrorCode.NONE
        if isinstance(answer, KafkaError):
            raise answer
        return responses.controller_registration.ControllerRegistrationResponse(error_code=answer)


class Stage:
    def __init__(self) -> None:
        settings = {"listeners": "PLAINTEXT://h:9092,CONTROLLER://h:9093", "node.id": "7"}
        config, _ = NodeConfig.from_sources({}, settings)
        self.active = Active()
        self.publisher = MetadataPublisher()
        self.registrar = ControllerRegistrar(config, MINE, self.active, self.publisher)
        self.publisher.subscribe(self.registrar.on_delta)

    def show(self, level: int, incarnation_id: UUID | None = None) -> None:
        controllers = {}
        if incarnation_id is not None:
            controllers[7] = ControllerRegistration(7, incarnation_id, {}, {})
        previous = self.publisher.image
        image = EMPTY_IMAGE._replace(
            offset=previous.offset + 1, features={"metadata.version": level}, controllers=controllers
        )
        self.publisher.publish(MetadataDelta(previous, image))


def run(scenario: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        stage = Stage()
        await scenario(stage)
        await stage.registrar.close()

    World(5).run(main())


def test_it_names_its_listeners_and_what_it_supports() -> None:
    async def scenario(stage: Stage) -> None:
        stage.show(30)
        await asyncio.sleep(0.1)
        (request,) = stage.active.asked
        assert (request.controller_id, request.incarnation_id) == (7, MINE)
        assert [(e.name, e.host, e.port) for e in request.listeners] == [("CONTROLLER", "h", 9093)]
        assert "metadata.version" in [f.name for f in request.features]

    run(scenario)


def test_an_earlier_incarnation_is_replaced_and_the_own_is_left_alone() -> None:
    async def scenario(stage: Stage) -> None:
        stage.show(30, EARLIER)
        await asyncio.sleep(0.1)
        assert len(stage.active.asked) == 1
        stage.show(30, MINE)
        await asyncio.sleep(10)
        assert len(stage.active.asked) == 1

    run(scenario)


def test_it_waits_for_a_metadata_version_that_has_controllers() -> None:
    async def scenario(stage: Stage) -> None:
        stage.show(14)
        await asyncio.sleep(10)
        assert not stage.active.asked
        stage.show(15)
        await asyncio.sleep(0.1)
        assert len(stage.active.asked) == 1

    run(scenario)


def test_a_refusal_is_followed_by_another_question() -> None:
    async def scenario(stage: Stage) -> None:
        refusals = [KafkaError(ErrorCode.REQUEST_TIMED_OUT), ErrorCode.UNSUPPORTED_VERSION]
        stage.active.answers = [*refusals, ErrorCode.NONE]
        stage.show(30)
        await asyncio.sleep(10)
        assert len(stage.active.asked) == 3

    run(scenario)

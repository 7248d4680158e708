"""Whole nodes of a cluster under virtual time: no rule is broken, and planted faults are found."""

import pytest

from odradek.sim.cluster.deployment import Layout
from odradek.sim.cluster.story import ClusterStory


@pytest.mark.parametrize("layout", Layout, ids=lambda layout: layout.name.lower())
def test_without_faults_every_node_shows_what_clients_were_answered(layout: Layout) -> None:
    story = ClusterStory(4, seconds=10, layout=layout, has_trouble=False)
    outcome = story.play()
    assert outcome.violations == []
    assert outcome.lives == len(layout.value)
    assert outcome.happened["topics_created"] > 10
    assert outcome.happened["topics_deleted"] > 10
    assert outcome.happened["broker_epochs"] == len(story.deployment.brokers)
    assert outcome.happened["images_compared"] > 50

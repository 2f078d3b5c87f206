"""What Schemathesis cannot know of the service: the organization there is, and that names of Apps are taken for ever."""

import itertools

import schemathesis
from schemathesis.specs.openapi import stateful

FIXED = {
    "POST /v1/apps": {"org_slug": "personal"},
    "POST /v1/postgres": {"org_slug": "personal", "region": "ams", "plan": "starter"},
}
numbers = itertools.count()

# It would treat org_slug as the id of an object that no operation creates, and never begin with the creating operations.
stateful.is_likely_root_transition = lambda operation, node, produced: operation.label in FIXED


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or not case.meta.generation.mode.is_positive or not isinstance(case.body, dict):
        return
    case.body.update(FIXED.get(case.operation.label, {}))
    if case.operation.label == "POST /v1/apps":
        case.body["name"] = f"app-{next(numbers)}"

"""The stack as CloudFormation gets it: SAM's own transform applied to every part, and all that names things resolved."""

import copy
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

ROOT = Path(__file__).resolve().parents[3]
REGION = "us-east-1"
PREFIX = "players-engine"
TOPIC = f"arn:aws:sns:{REGION}:000000000000:alarms"
# What the parts are told; everything else has its default.
PARAMETERS = {"Prefix": PREFIX, "AlarmTopicArn": TOPIC}
PSEUDO_PARAMETERS = {
    "AWS::Region": REGION,
    "AWS::AccountId": "000000000000",
    "AWS::Partition": "aws",
    "AWS::URLSuffix": "amazonaws.com",
    "AWS::NoValue": None,
}
NAMES = {
    "AWS::SQS::Queue": "QueueName",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::CloudWatch::Alarm": "AlarmName",
    "AWS::CloudWatch::CompositeAlarm": "AlarmName",
    "AWS::Logs::LogGroup": "LogGroupName",
}


@dataclass(frozen=True)
class Resource:
    """A resource of a part, with resolved properties."""

    part: str
    logical_id: str
    type: str
    properties: dict


@cache
def stack() -> tuple[Resource, ...]:
    """Returns all resources of all parts that the project's template nests."""
    nested = yaml_parse((ROOT / "template.yaml").read_text())["Resources"]
    paths = [ROOT / part["Properties"]["Location"] for part in nested.values()]
    return tuple(resource for path in paths for resource in part(path.stem, yaml_parse(path.read_text())))


def part(name: str, template: dict, parameters: dict[str, str] = PARAMETERS) -> list[Resource]:
    """Transforms a template and resolves its resources, with values for those of its parameters that have no default of use."""
    transformed = transform(template)
    declared = transformed.get("Parameters", {})
    values = {name: parameters.get(name, declared[name].get("Default")) for name in declared}
    scope = Scope(transformed, values)
    return [
        Resource(name, logical_id, resource["Type"], scope.resolved(resource.get("Properties", {})))
        for logical_id, resource in transformed["Resources"].items()
    ]


def transform(template: dict) -> dict:
    template = copy.deepcopy(template)
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            # The transform takes code that is uploaded already.
            resource["Properties"]["CodeUri"] = "s3://bucket/key"
    os.environ.setdefault("AWS_DEFAULT_REGION", REGION)
    translator = Translator({}, Parser())
    transformed = translator.translate(template, {})
    # Otherwise it complains when it is dropped; it sends nothing.
    translator.metrics.publish()
    return transformed


class Scope:
    """What names mean in a part."""

    def __init__(self, template: dict, parameters: dict):
        self.template = template
        self.parameters = parameters

    def resolved(self, value):
        if isinstance(value, list):
            return [found for found in map(self.resolved, value) if found is not None]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((name, argument),) = value.items()
            if name == "Ref":
                return self.reference(argument)
            if name.startswith("Fn::"):
                return self.function(name, argument)
        resolved = {name: self.resolved(inner) for name, inner in value.items()}
        return {name: inner for name, inner in resolved.items() if inner is not None}

    def reference(self, name: str):
        if name in PSEUDO_PARAMETERS:
            return PSEUDO_PARAMETERS[name]
        if name in self.parameters:
            return self.parameters[name]
        resource = self.template["Resources"][name]
        physical = resource.get("Properties", {}).get(NAMES.get(resource["Type"], ""))
        # What has no name of our choosing is called by its logical id.
        return self.resolved(physical) if physical is not None else name

    def function(self, name: str, argument):
        if name == "Fn::Sub":
            return self.substituted(argument)
        if name == "Fn::GetAtt":
            logical_id, _, attribute = argument.partition(".") if isinstance(argument, str) else (argument[0], ".", argument[1])
            return self.reference(logical_id) if attribute.endswith("Name") else f"{logical_id}.{attribute}"
        if name == "Fn::If":
            condition, then, otherwise = argument
            return self.resolved(then if self.holds(self.template["Conditions"][condition]) else otherwise)
        if name == "Fn::Join":
            separator, parts = argument
            return separator.join(map(str, self.resolved(parts)))
        # Nothing that alarms depend on; CloudFormation knows what it is.
        return {name: argument}

    def substituted(self, argument: str | list) -> str:
        text, own = (argument, {}) if isinstance(argument, str) else argument
        pieces = text.split("${")
        substituted = pieces[0]
        for piece in pieces[1:]:
            name, _, rest = piece.partition("}")
            if name in own:
                found = self.resolved(own[name])
            else:
                found = self.function("Fn::GetAtt", name) if "." in name else self.reference(name)
            substituted += f"{found}{rest}"
        return substituted

    def holds(self, condition: dict) -> bool:
        ((name, argument),) = condition.items()
        if name == "Fn::Not":
            return not self.holds(argument[0])
        if name == "Fn::Equals":
            one, other = self.resolved(argument[0]), self.resolved(argument[1])
            return one == other
        raise ValueError(f"{name}: a condition that is not known here")

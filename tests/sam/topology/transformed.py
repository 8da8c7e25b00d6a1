"""The templates as CloudFormation gets them: SAM's transform applied by SAM's own translator, parameters and references
resolved, the parts of the stack side by side. Judges nothing."""

import copy
from dataclasses import dataclass
from pathlib import Path

import boto3
from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

REGION = "us-east-1"
ACCOUNT = "000000000000"
PSEUDO = {
    "AWS::Region": REGION,
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::URLSuffix": "amazonaws.com",
    "AWS::StackName": "stack",
    "AWS::StackId": "stack",
    "AWS::NoValue": None,
}
# The translator does not look at what they lead to; it only wants them uploaded.
UPLOADED = "s3://bucket/key"


@dataclass(frozen=True)
class Resource:
    """A resource of a part of the stack, with its properties resolved."""

    part: str
    logical_id: str
    type: str
    properties: dict

    def __str__(self) -> str:
        return f"{self.part}/{self.logical_id}"


class Stack:
    """All resources of the stack."""

    def __init__(self, resources: list[Resource], prefix: str):
        self.resources = resources
        self.prefix = prefix

    def of_type(self, resource_type: str) -> list[Resource]:
        return [resource for resource in self.resources if resource.type == resource_type]

    def named(self, resource_type: str, name_property: str) -> dict[str, Resource]:
        """Returns resources by the name that the template gives them, without the stack's prefix."""
        return {
            self.unprefixed(str(resource.properties.get(name_property, resource))): resource
            for resource in self.of_type(resource_type)
        }

    def functions(self) -> dict[str, Resource]:
        return self.named("AWS::Lambda::Function", "FunctionName")

    def queues(self) -> dict[str, Resource]:
        return self.named("AWS::SQS::Queue", "QueueName")

    def tables(self) -> dict[str, Resource]:
        return self.named("AWS::DynamoDB::Table", "TableName")

    def mappings(self) -> list[Resource]:
        return self.of_type("AWS::Lambda::EventSourceMapping")

    def unprefixed(self, name: str) -> str:
        return name.removeprefix(f"{self.prefix}-")

    def queue_arn(self, name: str) -> str:
        return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{self.prefix}-{name}"

    def copy(self) -> "Stack":
        return Stack([copy.deepcopy(resource) for resource in self.resources], self.prefix)


def read(template: Path) -> Stack:
    """Reads a template and the parts that it puts together."""
    root = yaml_parse(template.read_text())
    given = {name: parameter.get("Default") for name, parameter in root.get("Parameters", {}).items()}
    outer = Scope("", given, root.get("Conditions", {}), {}, {})
    resources: list[Resource] = []
    waiting = {name: part for name, part in root["Resources"].items() if part["Type"] == "AWS::Serverless::Application"}
    # A part that takes another one's output comes behind it.
    for name in sorted(waiting, key=lambda name: "Outputs" in str(waiting[name]["Properties"].get("Parameters"))):
        properties = waiting[name]["Properties"]
        parameters = {key: outer.value(value) for key, value in properties.get("Parameters", {}).items()}
        part, outputs = read_part(name, template.parent / properties["Location"], parameters)
        outer.outputs[name] = outputs
        resources += part
    rest = {"Resources": {name: one for name, one in root["Resources"].items() if name not in waiting}}
    own, _ = transformed("", {**root, **rest, "Outputs": {}}, given)
    return Stack(resources + own, given["Prefix"])


def read_part(name: str, template: Path, given: dict) -> tuple[list[Resource], dict]:
    content = yaml_parse(template.read_text())
    defaults = {key: parameter.get("Default") for key, parameter in content.get("Parameters", {}).items()}
    return transformed(name, content, {**defaults, **given})


def transformed(part: str, content: dict, parameters: dict) -> tuple[list[Resource], dict]:
    """Applies the transform to a part and resolves what is left. Returns its resources and its outputs."""
    content = copy.deepcopy(content)
    for resource in content["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = UPLOADED
    if content["Resources"] and "Transform" in content:
        translator = Translator({}, Parser(), boto_session=boto3.Session(region_name=REGION))
        content = translator.translate(content, parameters)
        # To nobody: it warns of figures that it could not deliver.
        translator.metrics.publish()
    declared = content["Resources"]
    scope = Scope(part, parameters, content.get("Conditions", {}), declared, {})
    resources = [
        Resource(part, logical_id, resource["Type"], scope.value(resource.get("Properties", {})))
        for logical_id, resource in declared.items()
        if scope.holds(resource.get("Condition"))
    ]
    outputs = {name: scope.value(output["Value"]) for name, output in content.get("Outputs", {}).items()}
    return resources, outputs


class Scope:
    """What names mean within a template."""

    def __init__(self, part: str, parameters: dict, conditions: dict, resources: dict, outputs: dict):
        self.part = part
        self.parameters = parameters
        self.conditions = conditions
        self.resources = resources
        self.outputs = outputs

    def value(self, value):
        """Returns a value without intrinsic functions; what only exists once deployed keeps a name of its own."""
        if isinstance(value, list):
            return [item for item in map(self.value, value) if item is not None]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            (name, argument), *_ = value.items()
            intrinsic = getattr(self, "fn_" + name.removeprefix("Fn::").lower(), None)
            if intrinsic and (name == "Ref" or name.startswith("Fn::")):
                return intrinsic(argument)
            if name.startswith("Fn::"):
                raise ValueError(f"{self.part}: {name} is not known here")
        resolved = {key: self.value(item) for key, item in value.items()}
        return {key: item for key, item in resolved.items() if item is not None}

    def holds(self, name: str | None) -> bool:
        return name is None or self.condition(self.conditions[name])

    def condition(self, condition: dict) -> bool:
        (name, argument), *_ = condition.items()
        if name == "Condition":
            return self.holds(argument)
        if name == "Fn::Equals":
            return str(self.value(argument[0])) == str(self.value(argument[1]))
        if name == "Fn::Not":
            return not self.condition(argument[0])
        if name in ("Fn::And", "Fn::Or"):
            return (all if name == "Fn::And" else any)(map(self.condition, argument))
        raise ValueError(f"{self.part}: condition {name} is not known here")

    def fn_if(self, argument):
        return self.value(argument[1] if self.holds(argument[0]) else argument[2])

    def fn_ref(self, name: str):
        if name in PSEUDO:
            return PSEUDO[name]
        if name in self.parameters:
            return self.parameters[name]
        names = {
            "AWS::SQS::Queue": "QueueName",
            "AWS::Lambda::Function": "FunctionName",
            "AWS::DynamoDB::Table": "TableName",
            "AWS::Logs::LogGroup": "LogGroupName",
        }
        resource = self.resources[name]
        if resource["Type"] in names and names[resource["Type"]] in resource["Properties"]:
            return self.value(resource["Properties"][names[resource["Type"]]])
        return f"{self.part}/{name}"

    def fn_getatt(self, argument):
        name, attribute = argument.split(".", 1) if isinstance(argument, str) else (argument[0], ".".join(argument[1:]))
        if attribute.startswith("Outputs."):
            return self.outputs[name][attribute.removeprefix("Outputs.")]
        kind, physical = self.resources[name]["Type"], self.fn_ref(name)
        services = {
            ("AWS::SQS::Queue", "Arn"): f"arn:aws:sqs:{REGION}:{ACCOUNT}:{physical}",
            ("AWS::SQS::Queue", "QueueName"): physical,
            ("AWS::Lambda::Function", "Arn"): f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{physical}",
            ("AWS::DynamoDB::Table", "Arn"): f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{physical}",
            ("AWS::DynamoDB::Table", "StreamArn"): f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{physical}/stream/label",
            ("AWS::Logs::LogGroup", "Arn"): f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{physical}:*",
        }
        return services.get((kind, attribute), f"{self.part}/{name}.{attribute}")

    def fn_sub(self, argument):
        text, own = (argument, {}) if isinstance(argument, str) else argument
        result, rest = "", text
        while "${" in rest:
            before, _, behind = rest.partition("${")
            name, _, rest = behind.partition("}")
            result += before
            if name.startswith("!"):
                result += "${" + name[1:] + "}"
            elif name in own:
                result += str(self.value(own[name]))
            else:
                result += str(self.fn_getatt(name) if "." in name else self.fn_ref(name))
        return result + rest

    def fn_join(self, argument):
        return argument[0].join(map(str, self.value(argument[1])))

    def fn_select(self, argument):
        return self.value(argument[1])[int(argument[0])]

    def fn_split(self, argument):
        return self.value(argument[1]).split(argument[0])

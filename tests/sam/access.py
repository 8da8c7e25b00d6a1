"""Compares who may call the HTTP API's routes, as SAM makes it of a template, with access.txt, with which the local stack's reader
of templates is compared as well."""

import os
import sys
from pathlib import Path

from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

import aws

EXPECTED = Path(__file__).parent / "access.txt"


def main(template: Path) -> None:
    found = sorted(access(transformed(template)))
    expected = sorted(EXPECTED.read_text().splitlines())
    if found != expected:
        sys.exit("\n".join(["SAM and access.txt differ in", *sorted(set(found) ^ set(expected))]))
    print(f"{len(found)} routes are guarded as access.txt says")


def transformed(template: Path) -> dict:
    """Returns the definition of the API, as CloudFormation gets it."""
    content = yaml_parse(template.read_text())
    for resource in content["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = "s3://bucket/key"
    os.environ.setdefault("AWS_DEFAULT_REGION", aws.REGION)
    parameters = {"JwtIssuer": "https://issuer.test"}
    resources = Translator({}, Parser()).translate(content, parameters)["Resources"].values()
    [api] = [resource for resource in resources if resource["Type"] == "AWS::ApiGatewayV2::Api"]
    return api["Properties"]["Body"]


def access(body: dict):
    """Yields a line a route."""
    for name, scheme in body["components"]["securitySchemes"].items():
        if scheme["x-amazon-apigateway-authorizer"]["type"] != "jwt":
            sys.exit(f"{name} is no JWT authorizer")
    for path, methods in body["paths"].items():
        for method, operation in methods.items():
            [(authorizer, scopes)] = operation["security"][0].items()
            who = "anyone" if authorizer == "NONE" else " ".join(scopes) or "token"
            yield f"{method.upper()} {path}: {who}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))

# Runs generated programs with a recorder in the place of Pulumi, and prints what each declares. It reads a list of texts from
# standard input as JSON.
import ast
import json
import sys
import types


class Resource:
    def __init__(self, of):
        self.id = {"id": of}


class Recorder(types.ModuleType):
    def __init__(self, resources):
        super().__init__("pulumi_machines")
        self.resources = resources

    def __getattr__(self, type_name):
        def declare(name, /, opts=None, **properties):
            self.resources.append(
                {"type": type_name, "name": name, "properties": properties, "ignoreChanges": opts or []}
            )
            return Resource(f"{type_name} {name}")

        return declare


class Config:
    def get(self, key):
        return None

    def require(self, key):
        return {"setting": key}

    require_secret = require


def read(text):
    resources = []
    pulumi = types.ModuleType("pulumi")
    pulumi.Config = Config
    pulumi.ResourceOptions = lambda ignore_changes=(), depends_on=(): list(ignore_changes)
    sys.modules["pulumi"] = pulumi
    sys.modules["pulumi_machines"] = Recorder(resources)
    exec(compile(ast.parse(text.encode()), "__main__.py", "exec"), {})
    return resources


def answer(text):
    try:
        return {"resources": read(text)}
    except Exception as error:
        return {"resources": [], "error": f"{type(error).__name__}: {error}"}


def literal(text):
    return ast.literal_eval(ast.parse(text.encode(), mode="eval").body)


texts = json.load(sys.stdin)
json.dump([literal(text) if sys.argv[1] == "literals" else answer(text) for text in texts], sys.stdout)

"""How long a file and a function may be, in each language of the tree."""
import ast
import re

from tidy_rules.cpp import Function
from tidy_rules.tree import rule

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60


def python_functions(text):
    try:
        module = ast.parse(text)
    except SyntaxError:
        return []  # its tests say so
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [Function(node.name, node.lineno, node.end_lineno) for node in ast.walk(module) if isinstance(node, kinds)]


def shell_functions(text):
    """`name() {` to the brace that closes it, which stands at the same indentation."""
    found = []
    for match in re.finditer(r"^([ \t]*)([\w-]+)\(\)[ \t]*\{[ \t]*(?:#[^\n]*)?\n(?:.*\n)*?\1\}", text, re.M):
        first = text.count("\n", 0, match.start()) + 1
        found.append(Function(match.group(2), first, first + match.group(0).count("\n")))
    return found


def sql_functions(text):
    """The body, which $$ or $word$ encloses; the parameters do not count, as in C++."""
    found = []
    create = r"^CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE) (\w+)[^$]*(\$\w*\$)"
    for match in re.finditer(create, text, re.M):
        end = text.find(match.group(2), match.end())
        if end >= 0:
            found.append(Function(match.group(1), text.count("\n", 0, match.end()) + 1, text.count("\n", 0, end) + 1))
    return found


def functions_of(file):
    """The functions of a file; None: not a file of code."""
    if file.is_cpp:
        return file.functions
    if file.path.endswith(".py"):
        return python_functions(file.text)
    if file.path.endswith(".sql"):
        return sql_functions(file.text)
    if file.path.endswith(".sh") or re.match(r"#!/bin/(?:ba)?sh\b", file.text):
        return shell_functions(file.text)
    return [] if file.path.endswith((".ts", ".tsx")) else None


@rule("size", "a file is read in one sitting, a function on one screen")
def size(file):
    functions = functions_of(file)
    if functions is None:
        return
    lines = file.text.count("\n")
    if lines > FILE_LINES_MAX:
        yield FILE_LINES_MAX, f"{lines} lines; at most {FILE_LINES_MAX}"
    for function in functions:
        length = function.last - function.first + 1
        if length > FUNCTION_LINES_MAX:
            yield function.first, f"{function.name} has {length} lines; at most {FUNCTION_LINES_MAX}"

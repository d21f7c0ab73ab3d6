"""Reads C++ as text: without comments and strings, its functions, the bodies of its lambdas."""
import dataclasses
import re


def blank(text):
    """As many characters and lines, all of them spaces."""
    return re.sub(r"[^\n]", " ", text)


TOKENS = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)")
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<separator>(?<=[0-9a-fA-F])'(?=[0-9a-fA-F]))
      | (?P<character>'(?:\\.|[^'\\\n])+')""",
    re.S | re.X,
)


def without(text, comments=True, strings=True):
    """The C++ text with comments and the insides of strings blanked; positions stay the same."""

    def replace(match):
        whole = match.group(0)
        if match.group("comment"):
            return blank(whole) if comments else whole
        if match.group("separator"):
            return whole
        return whole[0] + blank(whole[1:-1]) + whole[-1] if strings else whole

    return TOKENS.sub(replace, text)


@dataclasses.dataclass
class Function:
    name: str
    first: int  # line of the opening brace
    last: int


CONTAINER = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b(?![^;{]*\)\s*(?:const|noexcept|override)?\s*$)")
TAIL = re.compile(r"\s*(?:(?:const|noexcept|override|final|mutable|try)\b\s*|&&?\s*)*(?:->[^;{]*|requires\b[^;{]*)?$")
NAME = re.compile(r"([~\w]+)\s*\(")


def opens_body(before):
    """Whether a brace after this text opens the body of a function: a parameter list, then only what may follow one."""
    close = before.rfind(")")
    return close >= 0 and TAIL.match(before, close + 1) is not None


def functions(code):
    """The outermost functions (a lambda belongs to the one around it), by counting braces."""
    found, stack, head = [], [], 0
    line = 1
    for position, character in enumerate(code):
        if character == "\n":
            line += 1
        elif character == "{":
            if stack and stack[-1][0] in ("function", "inner"):
                stack.append(("inner", None))
                continue
            before = code[head:position].strip()
            in_initializers = re.search(r"\)\s*(?:noexcept\s*)?:[^:]", before)
            if in_initializers and re.search(r"[\w>]$", before) and not opens_body(before):
                stack.append(("value", None))  # `: member_{1}` of a constructor
            elif opens_body(before) or (in_initializers and before.endswith(("}", ")"))):
                declarator = before[: in_initializers.start() + 1] if in_initializers else before
                names = NAME.findall(re.sub(r"<[^<>()]*>", "", declarator))
                stack.append(("function", Function(names[0] if names else "?", line, line)))
            elif CONTAINER.search(before):
                stack.append(("container", None))
                head = position + 1
            else:
                stack.append(("value", None))
        elif character == "}" and stack:
            kind, function = stack.pop()
            if kind == "function":
                function.last = line
                found.append(function)
            if kind in ("function", "container"):
                head = position + 1
        elif character == ";" and not (stack and stack[-1][0] in ("function", "inner", "value")):
            head = position + 1
    return found


CONTROL = {"if", "for", "while", "switch", "catch", "constexpr"}


def word_before_parameters(before):
    """The word before the last parameter list of this text; empty before a lambda's; None: it has no whole list."""
    depth = 0
    for position in range(before.rfind(")"), -1, -1):
        depth += {")": 1, "(": -1}.get(before[position], 0)
        if depth == 0:
            return re.search(r"\w*$", before[:position].rstrip()).group(0)
    return None


def bodies(code):
    """(begin, end) of the bodies of all functions and lambdas, nested ones too; an inner body comes before its outer."""
    found, stack, head = [], [], 0
    for position, character in enumerate(code):
        if character == "{":
            before = code[head:position].rstrip()
            word = word_before_parameters(before) if opens_body(before) else None
            stack.append(position if before.endswith("]") or (word is not None and word not in CONTROL) else None)
        elif character == "}" and stack:
            begin = stack.pop()
            if begin is not None:
                found.append((begin, position))
        if character in ";{}":
            head = position + 1
    return found

"""The words in a file: names of coroutines, notes of missing work, language."""
from tidy_rules.tree import rule


@rule("names", "a coroutine is named by the verb alone: what it returns already says that it is one")
def names(file):
    if not file.is_cpp:
        return
    for line, match in file.matches(r"\bTask<[^;{}()=]*>\s+(?:\w+::)*(async_\w+|co_\w+|\w+_(?:async|coro))\s*\("):
        yield line, f"{match.group(1)}: name the coroutine by its verb alone"


@rule("todo", "what is not built is an issue, not a note in the code")
def todo(file):
    if file.path.startswith("tools/tidy"):
        return
    if file.is_cpp or file.path.endswith((".py", ".cmake", ".txt", ".ts", ".tsx")) or file.path == "dev":
        for line, match in file.matches(r"\b(TODO|FIXME|XXX)\b", file.text):
            yield line, f"{match.group(1)}: do it, or open an issue"


# Also inside identifiers, such as the names of tests.
OLD_REGISTER = r"(?i)(?<![a-z])(whoever|whomever|somebody|nobody|anybody|everybody|in[ _]vain|lets?[ _]go[ _]of)(?![a-z])"


@rule("language", "plain technical English: the subject of a sentence is the thing that acts, not an unnamed person")
def language(file):
    if file.path.startswith(("tools/tidy", "tests/streams/")) or not (file.is_cpp or file.path.endswith((".md", ".py", ".txt", ".sql", ".sh", ".json"))):
        return
    for line, match in file.matches(OLD_REGISTER, file.text):
        yield line, f"{match.group(1)}: name what acts (the waiter, the caller, the thread), or say that there is none"

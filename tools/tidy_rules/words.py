"""One word per idea: docs/glossary.md names the words that have another one in their place."""
import re

from tidy_rules.tree import rule

GLOSSARY = "docs/glossary.md"
KINDS = (".cpp", ".hpp", ".sql", ".json", ".md", ".py", ".txt", ".sh")
QUOTED = ("tools/tidy", "tests/streams/", "CHANGELOG.md", GLOSSARY)  # they name the words, or were written by others


def rows(text, columns):
    """The cells of the tables with so many columns, without their heads."""
    for line in text.split("\n"):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == columns and not set(cells[0]) <= set("-: "):
            yield cells


def refused(text):
    """(folders or files, word, what to write instead); without folders it holds everywhere."""
    for word, _, others in rows(text, 3):
        for other in filter(None, re.split(r",\s*", others)):
            if word != "word":
                yield (), other, word
    for places, others, word, _ in rows(text, 4):
        for other in re.split(r",\s*", others):
            if places != "where":
                yield tuple(re.findall(r"`([^`]+)`", places)), other, word


def anywhere(word):
    """As a word of its own, or as a part of an identifier in snake_case or PascalCase."""
    return rf"(?<![A-Za-z]){word}(?![a-z])|{word.capitalize()}(?![a-z])"


@rule("words", "one word per idea: a reader who greps for a thing finds all of it")
def words(file):
    if not file.path.endswith(KINDS) or file.path.startswith(QUOTED):
        return
    for places, word, instead in refused(file.tree.texts.get(GLOSSARY, "")):
        if places and not file.path.startswith(places):
            continue
        for line, match in file.matches(anywhere(word), file.text):
            yield line, f"{match.group(0)}: the glossary calls it {instead}"

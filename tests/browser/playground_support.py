"""What the tests of the playground page share: the events that a page shows, and those that a daemon gives."""
ROWS = "[...document.querySelectorAll('[data-event]')].map((row) => row.dataset.event)"


def row(event):
    """An event of the API as the page writes it beside its row."""
    return "|".join(str(event.get(name, "")) for name in ("n", "step", "at_ms", "kind", "task", "resource", "units", "detail"))


def played(d, **body):
    """A sandbox that the daemon plays to its end, without a page."""
    status, sandbox, _ = d.ask("POST", "/v1/playground", body)
    assert status == 201, sandbox
    status, end, _ = d.ask("POST", f"/v1/playground/{sandbox['id']}/play")
    assert status == 200 and end["done"], end
    return end

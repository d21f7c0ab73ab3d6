"""Runs that a test writes down and imports: histories that take long, or need an agent that uses tools."""
import json


def span(kind, name, at, ms, **more):
    """The end of a call, at a moment that follows the run's begin; `output_at`: how much output came before."""
    return {"cause": "span", "at_ms": at, "fence": 1, "node": 1, "state": "running", "data": {"kind": kind, "name": name, "ms": ms, "output_at": 0} | more}


def note(cause, at, text, output_at=0):
    return {"cause": cause, "at_ms": at, "fence": 1, "node": 1, "state": "running", "data": {"text": text, "output_at": output_at}}


def write_export(path, run, begun, events, agent="quick", output="", text="hi", usage=None):
    """An export with one run that succeeded. Moments of `events` are counted from `begun`, in milliseconds of the wall clock."""
    told = [{**event, "at_ms": begun + event["at_ms"], "data": json.dumps(event["data"])} for event in events]
    end = told[-1]["at_ms"] + 5
    told = [{"cause": "enqueued", "at_ms": begun, "state": "queued"}, {"cause": "claimed", "at_ms": begun, "fence": 1, "node": 1, "state": "running"},
            *told, {"cause": "succeeded", "at_ms": end, "fence": 1, "node": 1, "state": "succeeded"}]
    whole = {"id": run, "agent": agent, "state": "succeeded", "on_crash": "doubt", "created_ms": begun, "rank_ms": begun, "input": '{"args":{}}',
             "result": json.dumps({"outcome": "succeeded", "text": text} | ({"usage": usage} if usage else {})), "attempt": 1, "fence": 1, "started_ms": begun, "finished_ms": end,
             "output_bytes": len(output.encode()), "head": output, "events": told}
    known = {"name": agent, "limits": [{"name": f"agent:{agent}", "weight": 1}], "queued_max": 200, "attempts_max": 3, "lost_max": 3}
    lines = [{"stint_export": 1}, {"agent": known}, {"limit": {"name": f"agent:{agent}"}}, {"run": whole},
             {"end": {"agents": 1, "limits": 1, "runs": 1, "events": len(told)}}]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)

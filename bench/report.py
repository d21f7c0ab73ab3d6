"""Turns the results of a suite into tables, a list of targets and a JSON document."""
import datetime

NOISY_CORES = 0.3  # more than this many cores busy with other work: medians are inflated, look at `best`


def number(value):
    if value is None:
        return "—"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def table(head, rows):
    """A Markdown table that also reads well in a terminal: the first column to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in [head] + rows) for i in range(len(head))]

    def line(cells):
        padded = [cells[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:])]
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "-" * (widths[0] + 2) + "|" + "|".join("-" * (width + 1) + ":" for width in widths[1:]) + "|"
    return [line(head), rule] + [line(row) for row in rows]


def times_ours(results, group, figure, bench, row):
    """How many times worse than ours; below 1 the row is ahead."""
    ours = group.rows[0].label
    if row.label == ours:
        return 1.0
    pair = (ours, row.label) if figure.higher_is_better else (row.label, ours)
    return results.ratio(group.name, bench, *pair)


def figure_rows(results, group, bench, figure):
    """What is known of each row, best first; those without a value last."""
    out = []
    for row in group.rows:
        values = results.values(group.name, row.label, bench)
        best, worst = (max, min) if figure.higher_is_better else (min, max)
        out.append({
            "group": group.name, "bench": bench, "label": row.label, "program": row.program, "args": row.args,
            "unit": figure.unit, "thread_safe": row.thread_safe, "bound": row.bound, "ours": row.ours,
            "median": results.median(group.name, row.label, bench),
            "best": best(values) if values else None, "worst": worst(values) if values else None,
            "times_ours": times_ours(results, group, figure, bench, row),
            "other_cores": results.other_cores(group.name, row.label),
            "processes": len(values),
            "missing": missing(results, group, row),
        })
    sign = -1 if figure.higher_is_better else 1
    return sorted(out, key=lambda row: (row["median"] is None, sign * (row["median"] or 0)))


def missing(results, group, row):
    """Why a row has no value, or only some: skipped, or an error of its program."""
    why = results.skipped.get((group.name, row.label))
    errors = results.errors(group.name, row.label)
    return why or (f"failed: {errors[0]}" if errors else "")


def figure_table(results, group, bench, figure):
    better = "higher is better" if figure.higher_is_better else "lower is better"
    lines = ["", f"### {figure.title} ({figure.unit}, {better})", ""]
    cells = []
    for row in figure_rows(results, group, bench, figure):
        if row["median"] is None:
            continue  # tables() says why
        ratio = row["times_ours"]
        cells.append([f"**{row['label']}**" if row["ours"] else row["label"], number(row["median"]),
                      number(row["best"]), number(row["worst"]), f"{ratio:.2f}" if ratio else "—",
                      f"{row['other_cores']:.2f}", "" if row["thread_safe"] else "one thread"])
    lines += table(["", "median", "best", "worst", "× ours", "others", "safe for"], cells)
    if figure.floor:
        lines += ["", f"Floor of the prototypes, {figure.unit}: {figure.floor}."]
    return lines


def tables(results, groups):
    lines = []
    for group in groups:
        lines += ["", f"## {group.name}", "", group.note]
        for bench, figure in group.figures.items():
            lines += figure_table(results, group, bench, figure)
        reasons = {}
        for row in group.rows:
            why = missing(results, group, row)
            if why:
                reasons.setdefault(why, []).append(row.label)
        lines += [""] * bool(reasons)
        lines += [f"- Not here: {', '.join(labels)}; {why}." for why, labels in reasons.items()]
    return lines


def judged(results, targets, quick):
    """Each target as a dict; `reached` is None where it could not be judged."""
    out = []
    for target in targets:
        result = target.judge(results)
        if result is None:
            out.append({"target": target.text, "seen": "not measured", "reached": None, "gap": ""})
            continue
        gap = "" if result.reached else result.gap
        out.append({"target": target.text, "seen": result.seen, "reached": None if quick else result.reached,
                    "gap": gap})
    return out


def target_lines(judgements, quick):
    def word(result):
        if result["seen"] == "not measured":
            return "not measured"
        if quick:
            return "not judged"
        return "reached" if result["reached"] else f"MISSED: {result['gap']}"

    if not judgements:
        return []  # a partial run without any of them
    lines = ["", "## Targets", ""]
    if quick:
        lines += ["Too small or too few rounds to judge by.", ""]
    return lines + table(["target", "seen", "result"], [[v["target"], v["seen"], word(v)] for v in judgements])


def noise_line(results):
    cores = sorted(run.other_cores for runs in results.runs.values() for run in runs)
    if not cores:
        return "Nothing was run."
    noisy = sum(value > NOISY_CORES for value in cores)
    return (f"Other work kept {cores[len(cores) // 2]:.2f} cores busy (median; at most {cores[-1]:.2f}); "
            f"{noisy} of {len(cores)} processes ran beside more than {NOISY_CORES} cores of it.")


def head_lines(facts, results):
    lines = [f"# Benchmarks: {facts['suite']}", "",
             f"{facts['date']}, commit {facts['commit']}, {facts['rounds']} rounds"
             + (", quick" if facts["quick"] else ""),
             "", f"- machine: {facts['machine']['cpu']}, {facts['machine']['cores']} cores, "
             f"{facts['machine']['mem_gib']} GiB, {facts['machine']['os']}, kernel {facts['machine']['kernel']}"]
    lines += [f"- {name}: {version}" for name, version in facts["versions"].items() if version]
    lines += [f"- noise: {noise_line(results)}"]
    for name, skip in facts["skipped"].items():
        lines += [f"- SKIPPED {name}: {skip['why']}. To have it: {skip['remedy']}"]
    lines += ["", "Medians over fresh processes, run in turns. `× ours`: how many times worse than ours, by the "
              "medians of the rounds; below 1 it is ahead. `others`: cores kept busy by other work meanwhile; above "
              f"{NOISY_CORES} trust `best` more. A bound is no peer: it does less, and shows what the machine can do."]
    return lines


def markdown(facts, results, groups, targets):
    judgements = judged(results, targets, facts["quick"])
    lines = head_lines(facts, results) + tables(results, groups) + target_lines(judgements, facts["quick"])
    return "\n".join(lines) + "\n"


def document(facts, results, groups, targets):
    figures = []
    for group in groups:
        for bench, figure in group.figures.items():
            for row in figure_rows(results, group, bench, figure):
                runs = results.runs.get((group.name, row["label"]), [])
                row["samples"] = [{"values": run.samples.get(bench, []), "other_cores": run.other_cores,
                                   "wall_s": run.wall_s} | ({"error": run.error} if run.error else {}) for run in runs]
                row["floor"] = figure.floor
                figures.append(row)
    return dict(facts, figures=figures, targets=judged(results, targets, facts["quick"]))


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")

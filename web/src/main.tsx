// Begins the dashboard: takes the token out of the address, draws the page that the address names, and starts reading.
import { render } from "preact";
import type { JSX } from "preact";
import "./keys.ts";
import { start } from "./live.ts";
import { AgentsPage } from "./pages/agents.tsx";
import { FleetPage } from "./pages/fleet.tsx";
import { LimitsPage } from "./pages/limits.tsx";
import { PlaygroundPage } from "./pages/playground.tsx";
import { RunPage } from "./pages/run.tsx";
import { RunsPage } from "./pages/runs.tsx";
import { Empty } from "./parts/states.tsx";
import { Shell } from "./parts/shell.tsx";
import { route } from "./route.ts";
import { applyTheme } from "./theme.ts";

function Page(): JSX.Element {
  const { page, name } = route.value;
  switch (page) {
    case "fleet": return <FleetPage />;
    case "runs": return <RunsPage />;
    case "run": return <RunPage key={name} id={name} />;
    case "limits": return <LimitsPage chosen={name} />;
    case "agents": return <AgentsPage chosen={name} />;
    case "playground": return <PlaygroundPage />;
    default: return <><h1>No such page</h1><Empty title={`There is no page '${page}'.`}><a href="#/">Go to the fleet</a></Empty></>;
  }
}

applyTheme();
const place = document.getElementById("app");
if (place) render(<Shell><Page /></Shell>, place);
start();

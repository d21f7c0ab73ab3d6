// Learn semaphores on the real library: lessons that ask for a prediction, play in virtual time, and can be stepped, taken back and changed.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { some } from "../format.ts";
import { bindKeys } from "../keys.ts";
import { asks, back, begin, finished, forward, kOwn, kSkipped, lessons, pause, place, play, playing, preset, readLessons, readPlace, remade, retry, sandbox, speed, trouble, visit } from "../playground_model.ts";
import { ByHand, Seed, Transport } from "../parts/play_controls.tsx";
import { PlayDiagram } from "../parts/play_diagram.tsx";
import { PlayGarage, useDriving } from "../parts/play_garage.tsx";
import { Code, EventTable, JustNow, TokenMeter } from "../parts/play_texts.tsx";
import { Empty, Loading, Show } from "../parts/states.tsx";
import { route } from "../route.ts";
import type { Preset, Presets, Sandbox } from "../types.ts";

function Lessons({ presets }: { presets: Preset[] }): JSX.Element {
  const here = place.value?.name;
  return (
    <nav class="lessons" aria-label="Lessons">
      <ol>
        {presets.map((each, at) => (
          <li key={each.name}>
            <a href={`#/playground/${each.name}`} aria-current={each.name === here ? "true" : undefined}>
              <span class="n" aria-hidden="true">{finished.value.includes(each.name) ? "✓" : at + 1}</span>
              <span class="title">{each.title}{finished.value.includes(each.name) && <span class="hidden">, finished</span>}</span>
            </a>
          </li>
        ))}
        <li><a href={`#/playground/${kOwn}`} aria-current={here === kOwn ? "true" : undefined}><span class="n" aria-hidden="true">+</span><span class="title">Your own garage</span></a></li>
      </ol>
    </nav>
  );
}

/** The buttons go: the focus goes on to what comes next. */
function predict(guess: number): void {
  begin({ guess });
  requestAnimationFrame(() => document.querySelector<HTMLElement>(".transport .play")?.focus());
}

/** Asks before it plays, and compares at the end. */
function Prediction({ lesson, isOver }: { lesson: Preset; isOver: boolean }): JSX.Element | null {
  const guess = place.value?.guess ?? null;
  const answer = lesson.choices[lesson.answer] ?? "";
  if (asks.value) {
    return (
      <fieldset class="prediction">
        <legend>Predict first</legend>
        <p>{lesson.question}</p>
        <div class="choices">
          {lesson.choices.map((choice, at) => <button key={choice} type="button" onClick={() => predict(at)}>{choice}</button>)}
          <button type="button" class="quiet" onClick={() => predict(kSkipped)}>Just show me</button>
        </div>
      </fieldset>
    );
  }
  const said = guess === null || guess === kSkipped ? null : (lesson.choices[guess] ?? null);
  if (!isOver) {
    return (
      <div class="prediction asked">
        <p>{lesson.question}</p>
        <p>{said === null ? <span class="muted">No prediction: watch what happens.</span> : <>You predict: <b>{said}</b>. Play it and see.</>}</p>
      </div>
    );
  }
  const isRight = guess === lesson.answer;
  return (
    <div class={`prediction over${said === null ? "" : isRight ? " right" : " wrong"}`} role="status">
      <p>{lesson.question}</p>
      <p class="verdict">{said === null ? <>It is: <b>{answer}</b>.</> : isRight ? <>✓ As you predicted: <b>{answer}</b>.</> : <>You predicted <b>{said}</b>. It is: <b>{answer}</b>.</>}</p>
      <p>{lesson.why}</p>
    </div>
  );
}

function Notices(): JSX.Element {
  return (
    <div aria-live="polite">
      {trouble.value && <p class="trouble">{trouble.value}</p>}
      {remade.value && <p class="note">The daemon no longer had this sandbox. It was made again from its seed and actions: nothing is lost.</p>}
    </div>
  );
}

function Stage({ shown }: { shown: Sandbox }): JSX.Element {
  const lots = useRef<HTMLDivElement>(null);
  useDriving(lots, shown.step, playing.value ? speed.value : 1);
  return (
    <section class="card stage" aria-label="Stage">
      <Transport sandbox={shown} />
      <JustNow sandbox={shown} />
      <Notices />
      <div class={`lots n${shown.resources.length}`} ref={lots}>
        {shown.resources.map((resource) => <PlayGarage key={resource.name} sandbox={shown} resource={resource} />)}
        <TokenMeter sandbox={shown} />
      </div>
    </section>
  );
}

function Diagram({ shown }: { shown: Sandbox }): JSX.Element {
  return (
    <section class="card" aria-label="Diagram">
      <h2>Who waits, who holds</h2>
      {shown.tasks.length === 0 ? <p class="muted">A lane for each task appears here, from left to right in virtual time.</p> : (
        <>
          <p class="legend muted" aria-hidden="true">
            {shown.resources.length > 0 && <><span class="key wait" /> waits <span class="key hold" /> holds <span class="key">↓</span> a unit is handed over <span class="key">✕</span> gives up, or is refused</>}
            {shown.resources.length === 0 && <><span class="key dot read">●</span> a token that is read <span class="key dot leaked">○</span> a token that leaks</>}
          </p>
          <PlayDiagram sandbox={shown} />
        </>
      )}
      <details class="table">
        <summary>The same as a table of {some(shown.events.length, "event")}</summary>
        <div class="scroll" tabIndex={0} role="region" aria-label="Events"><EventTable sandbox={shown} /></div>
      </details>
    </section>
  );
}

function Lesson({ lesson, shown }: { lesson: Preset; shown: Sandbox }): JSX.Element {
  return (
    <div class="board">
      <section class="card lesson" aria-label="Lesson">
        <h2>{lesson.title}</h2>
        <p class="sentences">{lesson.sentences.join(" ")}</p>
        <Prediction lesson={lesson} isOver={shown.done && shown.step > 0} />
      </section>
      <Stage shown={shown} />
      <Diagram shown={shown} />
      <div class="side">
        <section class="card" aria-label="Code">
          <h2>The C++ that does it</h2>
          <p class="muted">Compiled, and run by a test that sees the same events. The line at work is marked.</p>
          <Code text={lesson.code} sandbox={shown} />
        </section>
        <section class="card" aria-label="By hand">
          <details><summary><h2>Change it by hand</h2></summary><ByHand sandbox={shown} /></details>
          <Seed />
        </section>
      </div>
    </div>
  );
}

function Own({ shown }: { shown: Sandbox }): JSX.Element {
  return (
    <div class="board">
      <section class="card lesson" aria-label="Lesson">
        <h2>Your own garage</h2>
        <p class="sentences">Let tasks arrive, leave and give up. Nothing happens by itself: the clock stands still until you advance it, and every step can be taken back.</p>
      </section>
      <Stage shown={shown} />
      <Diagram shown={shown} />
      <section class="card side" aria-label="By hand">
        <h2>Do something</h2>
        <ByHand sandbox={shown} />
        <Seed />
      </section>
    </div>
  );
}

function Body({ presets }: Presets): JSX.Element {
  const name = place.value?.name;
  return (
    <div class="playground">
      <Lessons presets={presets} />
      <div>
        {name !== kOwn && name !== undefined && !preset.value ? <Empty title={`There is no lesson '${name}'.`}><a href="#/playground">Go to the first</a></Empty> : (
          <Show of={sandbox.value} what="the sandbox" retry={retry}>{(shown) => (preset.value ? <Lesson key={preset.value.name} lesson={preset.value} shown={shown} /> : <Own shown={shown} />)}</Show>
        )}
      </div>
    </div>
  );
}

export function PlaygroundPage(): JSX.Element {
  const { name, query } = route.value;
  useEffect(() => {
    if (lessons.value.kind !== "ok") void readLessons();
    return pause;
  }, []);
  useEffect(() => visit(readPlace(name, query)), [name, query.toString()]);
  useEffect(() => bindKeys({ n: () => void (asks.value || forward()), b: () => void back(), p: () => (playing.value ? pause() : void play()) }), []);
  return (
    <>
      <h1>Playground</h1>
      <p class="muted">A semaphore is a garage with a fixed number of spaces: a car that finds none waits in line. Here tasks of the real library are the cars, in a time of their own that you step, play and take back.</p>
      {place.value === null ? <Loading what="the lessons" /> : <Show of={lessons.value} what="the lessons" retry={() => void readLessons()}>{(value) => <Body {...value} />}</Show>}
    </>
  );
}

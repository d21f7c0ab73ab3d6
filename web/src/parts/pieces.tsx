// Small parts that several pages use.
import type { JSX } from "preact";
import { ageText, clockText, lengthText, momentText } from "../format.ts";
import { serverNow } from "../live.ts";
import type { Piece } from "../reason.ts";
import { limitAddress, runAddress } from "../route.ts";

export function RunLink({ id }: { id: string }): JSX.Element {
  return <a class="id" href={runAddress(id)}>{id}</a>;
}

/** A sentence whose runs and limits are links. */
export function Sentence({ pieces }: { pieces: (string | Piece)[] }): JSX.Element {
  return (
    <>
      {pieces.map((piece, at) => {
        if (typeof piece === "string") return piece;
        if (piece.run) return <RunLink key={at} id={piece.run} />;
        if (piece.limit) return <a key={at} href={limitAddress(piece.limit)}>{piece.text}</a>;
        return piece.code ? <code key={at}>{piece.text}</code> : piece.text;
      })}
    </>
  );
}

/** How long ago, with the absolute time. */
export function Ago({ at }: { at: number }): JSX.Element {
  return <time dateTime={new Date(at).toISOString()} title={momentText(at)}>{ageText(serverNow() - at)} ago</time>;
}

export function Since({ at }: { at: number }): JSX.Element {
  return <time dateTime={new Date(at).toISOString()} title={`since ${momentText(at)}`}>{lengthText(serverNow() - at)}</time>;
}

export function Clock({ at }: { at: number }): JSX.Element {
  return <time dateTime={new Date(at).toISOString()} title={momentText(at)}>{clockText(at)}</time>;
}

/** Commands that do the same as the page. */
export function Commands({ lines }: { lines: [string, string][] }): JSX.Element {
  return (
    <dl class="commands">
      {lines.map(([command, what]) => (
        <div key={command}>
          <dt><code>{command}</code></dt>
          <dd>{what}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A share of a whole, as a bar; the numbers are beside it. */
export function Bar({ part, whole, label, kind = "" }: { part: number; whole: number; label: string; kind?: string }): JSX.Element {
  const percent = whole > 0 ? Math.min(100, (100 * part) / whole) : 0;
  return (
    <span class={`bar ${kind}`} role="img" aria-label={label}>
      <span style={{ width: `${percent}%` }} />
    </span>
  );
}

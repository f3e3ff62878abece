/** Times of a recording, in milliseconds since the creation of the pod. */
import type { Case, EventJson, Snapshot } from "./cases.ts";
import { holds, type Observation } from "./conditions.ts";

/** The last change of the status, event or log line. */
export function lastChangeMs(one: Case): number {
  const all = [...one.snapshots, ...one.events] as unknown as { atMs: number; seenMs?: readonly number[] }[];
  const lines = Object.values(one.logs).flatMap((runs) => runs.flatMap((run) => run.lines.map(([at]) => at)));
  return Math.max(0, ...all.flatMap(({ atMs, seenMs = [] }) => [atMs, ...seenMs]), ...lines);
}

/** When the final condition of the recording became true. */
export function heldMs(one: Case): number {
  const snapshots = one.snapshots as unknown as (Snapshot & { readonly atMs: number })[];
  const events = one.events as unknown as (EventJson & {
    readonly atMs: number;
    readonly seenMs?: readonly number[];
  })[];
  const lines = Object.entries(one.logs).flatMap(([container, runs]) =>
    runs.flatMap((run) => run.lines.map(([at, , text]) => ({ container, at, text }))),
  );
  const seenAt = (now: number): Observation => {
    const last = snapshots.findLast(({ atMs }) => atMs <= now);
    const gone = last?.gone === true;
    return {
      exists: last !== undefined && !gone,
      gone,
      status: last?.status ?? {},
      events: events
        .filter(({ atMs }) => atMs <= now)
        .map((event) => ({ ...event, count: event.seenMs?.filter((at) => at <= now).length ?? 1 })),
      logOf: (name) =>
        lines
          .filter(({ container, at }) => container === name && at <= now)
          .map(({ text }) => text)
          .join("\n"),
      seconds: now / 1000,
    };
  };
  const moments = [
    ...snapshots.map(({ atMs }) => atMs),
    ...events.flatMap(({ atMs, seenMs = [] }) => [atMs, ...seenMs]),
  ];
  const held = moments.sort((a, b) => a - b).find((now) => holds(one.until, seenAt(now)));
  return held ?? lastChangeMs(one);
}

/** When things happened while a case was recorded; milliseconds since the pod was made. */
import type { Case, EventJson, Snapshot } from "./cases.ts";
import { holds, type Seen } from "./conditions.ts";

/** The last change that was seen, or line that was written. */
export function lastChangeMs(one: Case): number {
  const all = [...one.snapshots, ...one.events] as unknown as { atMs: number; seenMs?: readonly number[] }[];
  const lines = Object.values(one.logs).flatMap((runs) => runs.flatMap((run) => run.lines.map(([at]) => at)));
  return Math.max(0, ...all.flatMap(({ atMs, seenMs = [] }) => [atMs, ...seenMs]), ...lines);
}

/** When the condition held that the recording ended with. */
export function heldMs(one: Case): number {
  const snapshots = one.snapshots as unknown as (Snapshot & { readonly atMs: number })[];
  const events = one.events as unknown as (EventJson & {
    readonly atMs: number;
    readonly seenMs?: readonly number[];
  })[];
  const lines = Object.entries(one.logs).flatMap(([container, runs]) =>
    runs.flatMap((run) => run.lines.map(([at, , text]) => ({ container, at, text }))),
  );
  const seenAt = (now: number): Seen => {
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

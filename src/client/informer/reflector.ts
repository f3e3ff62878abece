import type { ApiObject, Kind } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import { sharedSlice } from "../../std/async/time-slice.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import { Backoff } from "../../std/time/backoff.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { Client, ListQuery } from "../client.ts";

export type ReflectorEvent<T> =
  | { readonly type: "replace"; readonly items: readonly T[]; readonly resourceVersion: string }
  | { readonly type: "put" | "delete"; readonly object: T };

export interface ReflectorOptions<T extends ApiObject> {
  readonly client: Client;
  readonly kind: Kind<T>;
  readonly query?: Pick<ListQuery, "namespace" | "labelSelector" | "fieldSelector"> | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Called in order, one at a time; must not throw. */
  readonly onEvent: (event: ReflectorEvent<T>) => void;
}

/** As client-go's reflector. */
const BACKOFF = { initialMs: 800, maxMs: 30_000, jitter: 1 };
/** The timeout of a watch is a random time between this and twice this, which spreads the load of servers. */
const WATCH_SECONDS_MIN = 300;
/** A watch that ends sooner than this without an event counts as a failure. */
const WATCH_SHORT_MS = 1000;

/**
 * Lists a kind and watches it from there, with back-off after failures. A broken watch resumes at its last revision;
 * when the server no longer has that revision (410), everything is listed again. A client that streams lists gets the
 * objects with the watch; if that fails, as with a server that does not support it, they are listed. Resolves when
 * `signal` aborts.
 */
export async function reflect<T extends ApiObject>(options: ReflectorOptions<T>, signal: AbortSignal): Promise<void> {
  const backoff = new Backoff(BACKOFF, options.random);
  // "0": any state, so that the server's cache serves many clients that start at the same time.
  let listFrom = "0";
  let streams = options.client.streamsLists === true;
  while (!signal.aborted) {
    try {
      let revision = streams ? undefined : await list(options, listFrom, signal);
      for (;;) {
        const watched = await watch(options, revision, signal);
        if (signal.aborted) return;
        revision = watched.revision;
        if (revision === undefined) {
          streams &&= !isRefused(watched.error);
          reportFallback(options, watched.error);
          revision = await list(options, listFrom, signal);
          continue;
        }
        listFrom = "0";
        if (watched.healthy) backoff.reset();
        if (watched.error !== undefined) throwIfUnusable(watched.error);
        if (!watched.healthy || watched.error !== undefined) {
          if (watched.error !== undefined) report(options, "Watch failed; resuming", watched.error);
          await options.clock.sleep(backoff.next(), signal);
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      // The server's cache lacks the revision too: request the latest state.
      if (isGone(error)) listFrom = "";
      else report(options, "Failed to list; retrying", error);
      await options.clock.sleep(backoff.next(), signal).catch(() => {});
    }
  }
}

async function list<T extends ApiObject>(
  { client, kind, query, onEvent }: ReflectorOptions<T>,
  resourceVersion: string,
  signal: AbortSignal,
): Promise<string> {
  const first = await client.list(kind, { ...query, resourceVersion }, signal);
  const items = [...first.items];
  let next = first.continue;
  while (next !== undefined && next !== "") {
    const page = await client.list(kind, { ...query, continue: next }, signal);
    items.push(...page.items);
    next = page.continue;
  }
  signal.throwIfAborted();
  onEvent({ type: "replace", items, resourceVersion: first.resourceVersion });
  return first.resourceVersion;
}

interface WatchResult {
  /** The last revision; undefined: the watch ended before it had sent the objects. */
  readonly revision: string | undefined;
  readonly healthy: boolean;
  readonly error?: unknown;
}

async function watch<T extends ApiObject>(
  { client, kind, query, clock, random, onEvent }: ReflectorOptions<T>,
  from: string | undefined,
  signal: AbortSignal,
): Promise<WatchResult> {
  const start = clock.monotonic();
  /** The objects that the watch begins with, until it has sent them all. */
  let initial = from === undefined ? new Map<string, T>() : undefined;
  let revision = from;
  let received = false;
  try {
    const timeoutSeconds = Math.floor(WATCH_SECONDS_MIN * (1 + random.fraction()));
    const begin = from === undefined ? INITIAL_EVENTS : { resourceVersion: from };
    const watchQuery = { ...query, ...begin, allowWatchBookmarks: true, timeoutSeconds };
    for await (const event of client.watch(kind, watchQuery, signal)) {
      if (signal.aborted) break;
      received = true;
      if (initial !== undefined) {
        if (event.type === "DELETED") initial.delete(nameOf(event.object));
        else if (event.type !== "BOOKMARK") initial.set(nameOf(event.object), event.object);
        else if (event.initialEventsEnd === true) {
          revision = event.resourceVersion;
          onEvent({ type: "replace", items: [...initial.values()], resourceVersion: revision });
          initial = undefined;
        }
      } else if (event.type === "BOOKMARK") revision = event.resourceVersion;
      else {
        onEvent({ type: event.type === "DELETED" ? "delete" : "put", object: event.object });
        revision = event.object.metadata?.resourceVersion ?? revision;
        // The handlers of all informers run in the turn in which their events come.
        const turn = sharedSlice.yield(clock);
        if (turn !== undefined) await turn;
      }
    }
    return { revision, healthy: received || clock.monotonic() - start >= WATCH_SHORT_MS };
  } catch (error) {
    return { revision, healthy: received, error };
  }
}

const INITIAL_EVENTS = { sendInitialEvents: true, resourceVersionMatch: "NotOlderThan" } as const;

function nameOf({ metadata }: ApiObject): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}

/** Whether the server does not support streamed lists. */
function isRefused(error: unknown): boolean {
  return error instanceof StatusError && (error.status.code === 422 || error.status.code === 400);
}

function reportFallback<T extends ApiObject>({ log, kind }: ReflectorOptions<T>, error: unknown): void {
  const reason = error instanceof Error ? error.message : "the watch ended";
  const message = "The watchlist request ended with an error, falling back to the standard LIST/WATCH semantics";
  log.v(4)?.info(message, { resource: kind.plural, error: reason });
}

/** Throws errors that resuming does not fix: the kind must be listed again. */
function throwIfUnusable(error: unknown): void {
  if (error instanceof StatusError && error.status.code !== 429 && error.status.code < 500) throw error;
}

function isGone(error: unknown): boolean {
  return error instanceof StatusError && error.status.code === 410;
}

function report<T extends ApiObject>({ log, kind }: ReflectorOptions<T>, message: string, error: unknown): void {
  log.warn(message, { resource: kind.plural, error: error instanceof Error ? error.message : String(error) });
}

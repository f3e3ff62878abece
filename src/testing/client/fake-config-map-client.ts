/** A small API server of ConfigMaps behind the `Client` interface. Tests see its requests and make them fail. */
import type { ConfigMap } from "../../api/core/config-map/schema.ts";
import { StatusError } from "../../api/status.ts";
import type { Client, ClientWatchEvent, ListQuery, WatchQuery } from "../../client/client.ts";

type Event = ClientWatchEvent<ConfigMap>;

interface Watcher {
  readonly queue: Event[];
  end: "closed" | { readonly error: unknown } | undefined;
  wake: () => void;
}

export class FakeConfigMapClient {
  /** `list <resourceVersion>`, `watch <resourceVersion>` */
  readonly requests: string[] = [];
  /** Every call throws it while it is set. */
  failing: unknown;
  #revision = 0;
  readonly #objects = new Map<string, ConfigMap>();
  readonly #history: { readonly revision: number; readonly event: Event }[] = [];
  readonly #watchers = new Set<Watcher>();

  /** Whether watches can begin with the present objects; undefined: the client does not request it. */
  streamsLists: boolean | undefined;

  get client(): Client {
    const client: Partial<Client> = {
      ...(this.streamsLists === undefined ? {} : { streamsLists: true }),
      list: async (_kind: unknown, query: ListQuery = {}) => {
        this.requests.push(`list ${query.resourceVersion ?? ""}`);
        if (this.failing !== undefined) throw this.failing;
        return { items: [...this.#objects.values()] as never[], resourceVersion: String(this.#revision) };
      },
      watch: (_kind: unknown, query: WatchQuery, signal: AbortSignal) => this.#watch(query, signal) as never,
    };
    return client as Client;
  }

  put(object: ConfigMap): void {
    const name = object.metadata?.name ?? "";
    const exists = this.#objects.has(name);
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(++this.#revision) } };
    this.#objects.set(name, stored);
    this.#publish({ type: exists ? "MODIFIED" : "ADDED", object: stored });
  }

  delete(name: string): void {
    const object = this.#objects.get(name);
    if (object === undefined) return;
    this.#objects.delete(name);
    const metadata = { ...object.metadata, resourceVersion: String(++this.#revision) };
    this.#publish({ type: "DELETED", object: { ...object, metadata } });
  }

  bookmark(resourceVersion: string): void {
    this.#send({ type: "BOOKMARK", resourceVersion });
  }

  breakWatches(error: unknown): void {
    this.#end({ error });
  }

  endWatches(): void {
    this.#end("closed");
  }

  #publish(event: Event): void {
    this.#history.push({ revision: this.#revision, event });
    this.#send(event);
  }

  #send(event: Event): void {
    for (const watcher of this.#watchers) {
      watcher.queue.push(event);
      watcher.wake();
    }
  }

  #end(end: Watcher["end"]): void {
    for (const watcher of this.#watchers) {
      watcher.end = end;
      watcher.wake();
    }
    this.#watchers.clear();
  }

  #begin(query: WatchQuery): Event[] {
    if (query.sendInitialEvents === true) {
      if (this.streamsLists !== true) throw new StatusError(422, "Invalid", "sendInitialEvents is forbidden for watch");
      const objects = [...this.#objects.values()].map((object): Event => ({ type: "ADDED", object }));
      return [...objects, { type: "BOOKMARK", resourceVersion: String(this.#revision), initialEventsEnd: true }];
    }
    const from = Number(query.resourceVersion);
    return this.#history.filter(({ revision }) => revision > from).map(({ event }) => event);
  }

  async *#watch(query: WatchQuery, signal: AbortSignal): AsyncGenerator<Event> {
    this.requests.push(`watch ${query.resourceVersion ?? query.resourceVersionMatch}`);
    if (this.failing !== undefined) throw this.failing;
    const queue = this.#begin(query);
    const watcher: Watcher = { queue, end: undefined, wake: () => {} };
    this.#watchers.add(watcher);
    signal.addEventListener("abort", () => watcher.wake());
    for (;;) {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) yield next;
      if (signal.aborted) throw signal.reason;
      if (watcher.end === "closed") return;
      if (watcher.end !== undefined) throw watcher.end.error;
      await new Promise<void>((resolve) => {
        watcher.wake = resolve;
      });
    }
  }
}

export function mapOf(name: string): ConfigMap {
  return { metadata: { name, namespace: "ns" } };
}

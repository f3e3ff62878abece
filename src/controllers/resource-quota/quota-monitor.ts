/** Watches the kinds that quotas count, and reports decreases of their usage. */
import { resourcesText } from "../../api/core/resources/quantities.ts";
import type { ApiObject } from "../../api/kind.ts";
import { type ReflectorEvent, reflect } from "../../client/informer/reflector.ts";
import type { ControllerDeps } from "../controller.ts";
import type { CountedKind } from "./counted-kinds.ts";

interface Watch {
  readonly stop: AbortController;
  readonly running: Promise<void>;
}

type Deps = Pick<ControllerDeps, "observer" | "clock" | "random" | "log">;

export class QuotaMonitor implements AsyncDisposable {
  readonly #deps: Deps;
  readonly #onChange: (namespace: string, counted: CountedKind) => void;
  readonly #watches = new Map<string, Watch>();

  /** `onChange` is called for deleted objects and changed usage; namespace "" means all. */
  constructor(deps: Deps, onChange: (namespace: string, counted: CountedKind) => void) {
    this.#deps = deps;
    this.#onChange = onChange;
  }

  /** Starts and stops watches, so that exactly these kinds are watched. */
  async setKinds(kinds: readonly CountedKind[]): Promise<void> {
    const requested = new Map(kinds.map((counted) => [watchKey(counted), counted]));
    const ended = [...this.#watches].filter(([name]) => !requested.has(name));
    for (const [name] of ended) this.#watches.delete(name);
    for (const [name, counted] of requested)
      if (!this.#watches.has(name)) this.#watches.set(name, this.#start(counted));
    await stopAll(ended.map(([, watch]) => watch));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const all = [...this.#watches.values()];
    this.#watches.clear();
    await stopAll(all);
  }

  #start(counted: CountedKind): Watch {
    const stop = new AbortController();
    const { observer: client, clock, random, log } = this.#deps;
    const changes = new UsageTracker(counted);
    const onEvent = (event: ReflectorEvent<ApiObject>): void => {
      const namespace = changes.handle(event);
      if (namespace !== undefined) this.#onChange(namespace, counted);
    };
    const running = reflect({ client, clock, random, log, kind: counted.kind, onEvent }, stop.signal);
    return { stop, running };
  }
}

/** Includes the version, since the served version may change. */
function watchKey({ kind }: CountedKind): string {
  return `${kind.storageName} ${kind.version}`;
}

async function stopAll(watches: readonly Watch[]): Promise<void> {
  for (const { stop } of watches) stop.abort(new DOMException("The watch is closed", "AbortError"));
  await Promise.all(watches.map(({ running }) => running));
}

/** Keeps the usage of each object, to detect changes. */
class UsageTracker {
  readonly #counted: CountedKind;
  readonly #usage = new Map<string, string>();
  #isFirst = true;

  constructor(counted: CountedKind) {
    this.#counted = counted;
  }

  /** The namespace to recalculate. New objects were charged on creation. */
  handle(event: ReflectorEvent<ApiObject>): string | undefined {
    switch (event.type) {
      case "delete":
        this.#usage.delete(keyOf(event.object));
        return event.object.metadata?.namespace ?? "";
      case "put":
        return this.#put(event.object);
      case "replace": {
        // Events may have been missed.
        const wasFirst = this.#isFirst;
        this.#isFirst = false;
        this.#usage.clear();
        for (const item of event.items) this.#put(item);
        return wasFirst ? undefined : "";
      }
    }
  }

  #put(object: ApiObject): string | undefined {
    const { evaluator } = this.#counted;
    if (evaluator.isUniform) return undefined;
    const key = keyOf(object);
    const before = this.#usage.get(key);
    const now = resourcesText(evaluator.usage(object));
    this.#usage.set(key, now);
    return before === undefined || before === now ? undefined : (object.metadata?.namespace ?? "");
  }
}

function keyOf({ metadata }: ApiObject): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}

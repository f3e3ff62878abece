/** Tells when something is freed that a quota counts: one watch for each kind that quotas name. */
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

export class UsageWatches implements AsyncDisposable {
  readonly #deps: Deps;
  readonly #onChange: (namespace: string, counted: CountedKind) => void;
  readonly #watches = new Map<string, Watch>();

  /** `onChange` hears of objects that went, or use something else than before; "" stands for all namespaces. */
  constructor(deps: Deps, onChange: (namespace: string, counted: CountedKind) => void) {
    this.#deps = deps;
    this.#onChange = onChange;
  }

  /** Watches just these kinds from now on. */
  async follow(kinds: readonly CountedKind[]): Promise<void> {
    const wanted = new Map(kinds.map((counted) => [nameOf(counted), counted]));
    const ended = [...this.#watches].filter(([name]) => !wanted.has(name));
    for (const [name] of ended) this.#watches.delete(name);
    for (const [name, counted] of wanted) if (!this.#watches.has(name)) this.#watches.set(name, this.#start(counted));
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
    const changes = new UsageChanges(counted);
    const onEvent = (event: ReflectorEvent<ApiObject>): void => {
      const namespace = changes.take(event);
      if (namespace !== undefined) this.#onChange(namespace, counted);
    };
    const running = reflect({ client, clock, random, log, kind: counted.kind, onEvent }, stop.signal);
    return { stop, running };
  }
}

/** The version belongs to it: another may be served tomorrow. */
function nameOf({ kind }: CountedKind): string {
  return `${kind.storageName} ${kind.version}`;
}

async function stopAll(watches: readonly Watch[]): Promise<void> {
  for (const { stop } of watches) stop.abort(new DOMException("The watch is closed", "AbortError"));
  await Promise.all(watches.map(({ running }) => running));
}

/** What is remembered of the objects is as much as tells whether they use something else. */
class UsageChanges {
  readonly #counted: CountedKind;
  readonly #known = new Map<string, string>();
  #isFirst = true;

  constructor(counted: CountedKind) {
    this.#counted = counted;
  }

  /** The namespace where there is reason to count anew; what is new was charged when it was made. */
  take(event: ReflectorEvent<ApiObject>): string | undefined {
    switch (event.type) {
      case "delete":
        this.#known.delete(keyOf(event.object));
        return event.object.metadata?.namespace ?? "";
      case "put":
        return this.#put(event.object);
      case "replace": {
        // A watch that broke may have missed something.
        const wasFirst = this.#isFirst;
        this.#isFirst = false;
        this.#known.clear();
        for (const item of event.items) this.#put(item);
        return wasFirst ? undefined : "";
      }
    }
  }

  #put(object: ApiObject): string | undefined {
    const { evaluator } = this.#counted;
    if (evaluator.isUniform) return undefined;
    const key = keyOf(object);
    const before = this.#known.get(key);
    const now = resourcesText(evaluator.usage(object));
    this.#known.set(key, now);
    return before === undefined || before === now ? undefined : (object.metadata?.namespace ?? "");
  }
}

function keyOf({ metadata }: ApiObject): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}

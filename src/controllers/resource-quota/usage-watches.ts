/** Tells when something is freed that a quota counts: one watch for each kind that a namespace's quotas name. */
import { amountsText } from "../../api/core/amounts.ts";
import type { ApiObject } from "../../api/kind.ts";
import { type ReflectorEvent, reflect } from "../../client/reflector.ts";
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
  /** By namespace, then by kind. */
  readonly #watches = new Map<string, Map<string, Watch>>();

  /** `onChange` hears of objects that went, or use something else than before. */
  constructor(deps: Deps, onChange: (namespace: string, counted: CountedKind) => void) {
    this.#deps = deps;
    this.#onChange = onChange;
  }

  /** Watches just these kinds in the namespace from now on. */
  async follow(namespace: string, kinds: readonly CountedKind[]): Promise<void> {
    const present = this.#watches.get(namespace) ?? new Map<string, Watch>();
    const wanted = new Map(kinds.map((counted) => [nameOf(counted), counted]));
    const ended = [...present].filter(([name]) => !wanted.has(name));
    for (const [name] of ended) present.delete(name);
    for (const [name, counted] of wanted) if (!present.has(name)) present.set(name, this.#start(namespace, counted));
    if (present.size === 0) this.#watches.delete(namespace);
    else this.#watches.set(namespace, present);
    await stopAll(ended.map(([, watch]) => watch));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const all = [...this.#watches.values()].flatMap((watches) => [...watches.values()]);
    this.#watches.clear();
    await stopAll(all);
  }

  #start(namespace: string, counted: CountedKind): Watch {
    const stop = new AbortController();
    const { observer: client, ...shared } = this.#deps;
    const changes = new UsageChanges(counted);
    const onEvent = (event: ReflectorEvent<ApiObject>): void => {
      if (changes.take(event)) this.#onChange(namespace, counted);
    };
    const running = reflect({ ...shared, client, kind: counted.kind, query: { namespace }, onEvent }, stop.signal);
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

  /** Whether there is reason to count anew. What is new was charged when it was made. */
  take(event: ReflectorEvent<ApiObject>): boolean {
    switch (event.type) {
      case "delete":
        this.#known.delete(event.object.metadata?.name ?? "");
        return true;
      case "put":
        return this.#put(event.object);
      case "replace": {
        // A watch that broke may have missed something.
        const wasFirst = this.#isFirst;
        this.#isFirst = false;
        this.#known.clear();
        for (const item of event.items) this.#put(item);
        return !wasFirst;
      }
    }
  }

  #put(object: ApiObject): boolean {
    const { evaluator } = this.#counted;
    if (evaluator.isUniform) return false;
    const name = object.metadata?.name ?? "";
    const before = this.#known.get(name);
    const now = amountsText(evaluator.usage(object));
    this.#known.set(name, now);
    return before !== undefined && before !== now;
  }
}

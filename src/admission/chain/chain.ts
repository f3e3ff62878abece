/** The plugins in their order: all change an object, then all check it. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { UserInfo } from "../../auth/user.ts";
import type { Clock } from "../../std/time/clock.ts";
import { andThen, type Soon } from "../../std/async/maybe-promise.ts";
import { askAll, Laps, noted } from "./stopwatch.ts";
import { type AdmissionMetrics, type Note, type StepType, unnoted } from "./metrics.ts";
import type { AdmissionPlugin, AdmissionRequest, ObjectKind, Operation, Place, Reinvocation } from "./plugin.ts";

/** What is the same for all that one request does. */
export interface About {
  readonly kind: Kind;
  readonly group: string;
  readonly subresource: string;
  readonly objectKind: ObjectKind;
  readonly namespace: string;
  /** Empty where the object has it, or is to be given one. */
  readonly name: string;
  readonly dryRun: boolean;
  readonly user: UserInfo;
  readonly signal: AbortSignal;
  readonly warn: (text: string) => void;
  readonly annotate: (key: string, value: string) => void;
  optionsFor(operation: Operation): ApiObject | undefined;
}

/** Who has a say at a place. */
interface Chosen {
  readonly mutators: readonly Step<"mutate">[];
  readonly validators: readonly Step<"validate">[];
  readonly mutating: Note;
  readonly validating: Note;
}

interface Step<M extends "mutate" | "validate"> {
  readonly plugin: AdmissionPlugin & Required<Pick<AdmissionPlugin, M>>;
  readonly note: Note;
}

export class AdmissionChain {
  readonly #plugins: readonly AdmissionPlugin[];
  readonly #guards: readonly AdmissionPlugin[];
  readonly #metrics: AdmissionMetrics | undefined;
  readonly #clock: Pick<Clock, "monotonic">;
  /** By kind, group and operation, then by subresource: a key of all would be made for each request. */
  readonly #chosen = new WeakMap<Kind, Map<string, Map<Operation, Map<string, Chosen>>>>();

  /** Asks the guards, then the plugins, in the order given. Guards are no plugins to those who look at metrics. */
  constructor(
    plugins: readonly AdmissionPlugin[],
    metrics?: AdmissionMetrics,
    guards: readonly AdmissionPlugin[] = [],
  ) {
    this.#plugins = plugins;
    this.#metrics = metrics;
    this.#clock = metrics?.clock ?? { monotonic: () => 0 };
    this.#guards = guards;
  }

  /** The same with one that is asked before all others. */
  behind(guard: AdmissionPlugin): AdmissionChain {
    return new AdmissionChain(this.#plugins, this.#metrics, [guard, ...this.#guards]);
  }

  /**
   * What the plugins make of the object; of the object of a DELETE nothing can be made. All are asked once more where
   * one of them wants it. Throws, or rejects with, what the first one throws that forbids it.
   */
  mutate<T extends ApiObject>(about: About, operation: Operation, object: T, previous?: T): Soon<T>;
  mutate(about: About, operation: "DELETE", object: undefined, previous: ApiObject): Soon<undefined>;
  mutate(
    about: About,
    operation: Operation,
    object: ApiObject | undefined,
    previous?: ApiObject,
  ): Soon<ApiObject | undefined> {
    const { mutators, mutating } = this.#at(about, operation);
    if (mutators.length === 0) return object;
    const request = new Request(about, operation, object, previous);
    const ask = ({ plugin }: Step<"mutate">): Soon<void> =>
      andThen(plugin.mutate(request), (next) => request.take(next));
    return noted(mutating, new Laps(this.#clock), (laps) => {
      const once = askAll(mutators, 0, laps, ask);
      return andThen(once, () => {
        if (!request.reinvocation.begin()) return request.object;
        return andThen(askAll(mutators, 0, laps, ask), () => request.object);
      });
    });
  }

  /** Throws, or rejects with, what the first plugin throws that forbids it. */
  validate(about: About, operation: Operation, object: ApiObject | undefined, previous?: ApiObject): Soon<void> {
    const { validators, validating } = this.#at(about, operation);
    if (validators.length === 0) return;
    const request = new Request(about, operation, object, previous);
    const ask = ({ plugin }: Step<"validate">): Soon<void> => plugin.validate(request);
    return noted(validating, new Laps(this.#clock), (laps) => askAll(validators, 0, laps, ask));
  }

  #at(about: About, operation: Operation): Chosen {
    const { kind, group, subresource } = about;
    const groups = this.#chosen.get(kind) ?? remembered(this.#chosen, kind, new Map());
    const operations = groups.get(group) ?? remembered(groups, group, new Map());
    const places = operations.get(operation) ?? remembered(operations, operation, new Map());
    const chosen = places.get(subresource);
    if (chosen !== undefined) return chosen;
    const { objectKind } = about;
    return remembered(places, subresource, this.#choose({ operation, kind, group, subresource, objectKind }));
  }

  #choose(place: Place): Chosen {
    const asked = [...this.#guards, ...this.#plugins].filter((plugin) => plugin.handles(place));
    const { operation } = place;
    const metrics = this.#metrics;
    const noteOf = (plugin: AdmissionPlugin, type: StepType): Note => {
      if (this.#guards.includes(plugin)) return unnoted;
      return metrics?.plugin(plugin.name, type, operation) ?? unnoted;
    };
    return {
      mutators: asked.filter(isMutator).map((plugin) => ({ plugin, note: noteOf(plugin, "admit") })),
      validators: asked.filter(isValidator).map((plugin) => ({ plugin, note: noteOf(plugin, "validate") })),
      mutating: metrics?.step("admit", operation) ?? unnoted,
      validating: metrics?.step("validate", operation) ?? unnoted,
    };
  }
}

function remembered<K, V>(map: { set(key: K, value: V): unknown }, key: K, value: V): V {
  map.set(key, value);
  return value;
}

function isMutator(plugin: AdmissionPlugin): plugin is Step<"mutate">["plugin"] {
  return plugin.mutate !== undefined;
}

function isValidator(plugin: AdmissionPlugin): plugin is Step<"validate">["plugin"] {
  return plugin.validate !== undefined;
}

class Request implements AdmissionRequest {
  readonly #about: About;
  readonly operation: Operation;
  readonly previous: ApiObject | undefined;
  readonly reinvocation = new Again();
  /** As the plugins before have left it. */
  object: ApiObject | undefined;

  constructor(about: About, operation: Operation, object: ApiObject | undefined, previous: ApiObject | undefined) {
    this.#about = about;
    this.operation = operation;
    this.object = object;
    this.previous = previous;
  }

  /** What a plugin has made of the object, if anything. */
  take(next: ApiObject | undefined): void {
    if (next !== undefined && this.operation !== "DELETE") this.object = next;
  }

  get kind(): Kind {
    return this.#about.kind;
  }

  get group(): string {
    return this.#about.group;
  }

  get subresource(): string {
    return this.#about.subresource;
  }

  get objectKind(): ObjectKind {
    return this.#about.objectKind;
  }

  get namespace(): string {
    const { kind, namespace } = this.#about;
    return kind.plural === "namespaces" && kind.group === "" ? this.name : namespace;
  }

  get name(): string {
    return this.#about.name || (this.operation === "CREATE" ? (this.object?.metadata?.name ?? "") : "");
  }

  get options(): ApiObject | undefined {
    return this.#about.optionsFor(this.operation);
  }

  get dryRun(): boolean {
    return this.#about.dryRun;
  }

  get user(): UserInfo {
    return this.#about.user;
  }

  get signal(): AbortSignal {
    return this.#about.signal;
  }

  warn(text: string): void {
    this.#about.warn(text);
  }

  annotate(key: string, value: string): void {
    this.#about.annotate(key, value);
  }
}

class Again implements Reinvocation {
  again = false;
  #memory: Map<string, unknown> | undefined;
  isWanted = false;

  get memory(): Map<string, unknown> {
    this.#memory ??= new Map();
    return this.#memory;
  }

  request(): void {
    this.isWanted = true;
  }

  /** Whether there is to be a second time, which this begins. */
  begin(): boolean {
    this.again = this.isWanted;
    return this.again;
  }
}

/** The admission chain: all plugins mutate an object in order, then all validate it. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { UserInfo } from "../../auth/user.ts";
import { andThen, type MaybePromise } from "../../std/async/maybe-promise.ts";
import { type Logger, silentLogger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type {
  AdmissionAttributes,
  AdmissionRequest,
  ObjectKind,
  Operation,
  ReinvocationContext,
} from "./attributes.ts";
import { logDecisions, thenLogAdmitted } from "./log-decisions.ts";
import { type AdmissionMetrics, type DurationObserver, noopObserver, type StepType } from "./metrics.ts";
import type { AdmissionPlugin } from "./plugin.ts";
import { observe, runSteps, Stopwatch } from "./stopwatch.ts";

/** What all admission calls of one request have in common. */
export interface AdmissionContext {
  readonly kind: Kind;
  readonly group: string;
  readonly subresource: string;
  readonly objectKind: ObjectKind;
  readonly namespace: string;
  /** Empty on CREATE, where the name comes from the object. */
  readonly name: string;
  readonly dryRun: boolean;
  readonly user: UserInfo;
  readonly signal: AbortSignal;
  readonly warn: (text: string) => void;
  readonly annotate: (key: string, value: string) => void;
  optionsFor(operation: Operation): ApiObject | undefined;
}

/** The plugins that handle an operation on a resource. */
interface HandlingPlugins {
  readonly mutators: readonly Step<"mutate">[];
  readonly validators: readonly Step<"validate">[];
  readonly mutatingObserver: DurationObserver;
  readonly validatingObserver: DurationObserver;
}

interface Step<M extends "mutate" | "validate"> {
  readonly plugin: AdmissionPlugin & Required<Pick<AdmissionPlugin, M>>;
  readonly observer: DurationObserver;
}

export class AdmissionChain {
  readonly #plugins: readonly AdmissionPlugin[];
  readonly #guards: readonly AdmissionPlugin[];
  readonly #metrics: AdmissionMetrics | undefined;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #log: Logger;
  /** By kind, group and operation, then by subresource: one combined key would have to be built for each request. */
  readonly #selected = new WeakMap<Kind, Map<string, Map<Operation, Map<string, HandlingPlugins>>>>();

  /** Guards run before the plugins, in the order given, and are not reported in the metrics of plugins. */
  constructor(
    plugins: readonly AdmissionPlugin[],
    metrics?: AdmissionMetrics,
    guards: readonly AdmissionPlugin[] = [],
    log: Logger = silentLogger,
  ) {
    this.#plugins = plugins;
    this.#metrics = metrics;
    this.#clock = metrics?.clock ?? { monotonic: () => 0 };
    this.#guards = guards;
    this.#log = log;
  }

  /** A copy of the chain in which `guard` runs before all others. */
  withGuard(guard: AdmissionPlugin): AdmissionChain {
    return new AdmissionChain(this.#plugins, this.#metrics, [guard, ...this.#guards], this.#log);
  }

  /**
   * Runs the mutating plugins and returns the object they leave; a DELETE has no object to mutate. When a plugin
   * requests reinvocation, all run once more. Throws or rejects with the error of the first plugin that rejects the
   * request.
   */
  mutate<T extends ApiObject>(
    context: AdmissionContext,
    operation: Operation,
    object: T,
    oldObject?: T,
  ): MaybePromise<T>;
  mutate(
    context: AdmissionContext,
    operation: "DELETE",
    object: undefined,
    oldObject: ApiObject,
  ): MaybePromise<undefined>;
  mutate(
    context: AdmissionContext,
    operation: Operation,
    object: ApiObject | undefined,
    oldObject?: ApiObject,
  ): MaybePromise<ApiObject | undefined> {
    const { mutators, mutatingObserver } = this.#pluginsFor(context, operation);
    if (mutators.length === 0) return object;
    const request = new Request(context, operation, object, oldObject);
    const run = logDecisions(this.#log, "mutate", request, ({ plugin }: Step<"mutate">) =>
      andThen(plugin.mutate(request), (next) => request.replaceObject(next)),
    );
    return observe(mutatingObserver, new Stopwatch(this.#clock), (stopwatch) => {
      const firstRun = runSteps(mutators, 0, stopwatch, run);
      return andThen(firstRun, () => {
        if (!request.reinvocation.begin()) return request.object;
        return andThen(runSteps(mutators, 0, stopwatch, run), () => request.object);
      });
    });
  }

  /** Runs the validating plugins. Throws or rejects with the error of the first plugin that rejects the request. */
  validate(
    context: AdmissionContext,
    operation: Operation,
    object: ApiObject | undefined,
    oldObject?: ApiObject,
  ): MaybePromise<void> {
    const { validators, validatingObserver } = this.#pluginsFor(context, operation);
    if (validators.length === 0) return;
    const request = new Request(context, operation, object, oldObject);
    const run = logDecisions(this.#log, "validate", request, ({ plugin }: Step<"validate">) =>
      plugin.validate(request),
    );
    const steps = observe(validatingObserver, new Stopwatch(this.#clock), (stopwatch) =>
      runSteps(validators, 0, stopwatch, run),
    );
    return thenLogAdmitted(this.#log, "validate", request, steps);
  }

  #pluginsFor(context: AdmissionContext, operation: Operation): HandlingPlugins {
    const { kind, group, subresource } = context;
    const groups = this.#selected.get(kind) ?? setAndReturn(this.#selected, kind, new Map());
    const operations = groups.get(group) ?? setAndReturn(groups, group, new Map());
    const subresources = operations.get(operation) ?? setAndReturn(operations, operation, new Map());
    const selected = subresources.get(subresource);
    if (selected !== undefined) return selected;
    const { objectKind } = context;
    return setAndReturn(
      subresources,
      subresource,
      this.#selectPlugins({ operation, kind, group, subresource, objectKind }),
    );
  }

  #selectPlugins(attributes: AdmissionAttributes): HandlingPlugins {
    const handling = [...this.#guards, ...this.#plugins].filter((plugin) => plugin.handles(attributes));
    const { operation } = attributes;
    const metrics = this.#metrics;
    const observerOf = (plugin: AdmissionPlugin, type: StepType): DurationObserver => {
      if (this.#guards.includes(plugin)) return noopObserver;
      return metrics?.plugin(plugin.name, type, operation) ?? noopObserver;
    };
    return {
      mutators: handling.filter(isMutator).map((plugin) => ({ plugin, observer: observerOf(plugin, "admit") })),
      validators: handling.filter(isValidator).map((plugin) => ({ plugin, observer: observerOf(plugin, "validate") })),
      mutatingObserver: metrics?.step("admit", operation) ?? noopObserver,
      validatingObserver: metrics?.step("validate", operation) ?? noopObserver,
    };
  }
}

function setAndReturn<K, V>(map: { set(key: K, value: V): unknown }, key: K, value: V): V {
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
  readonly #context: AdmissionContext;
  readonly operation: Operation;
  readonly oldObject: ApiObject | undefined;
  readonly reinvocation = new ReinvocationState();
  /** As the previous plugin left it. */
  object: ApiObject | undefined;

  constructor(
    context: AdmissionContext,
    operation: Operation,
    object: ApiObject | undefined,
    oldObject: ApiObject | undefined,
  ) {
    this.#context = context;
    this.operation = operation;
    this.object = object;
    this.oldObject = oldObject;
  }

  /** Replaces the object, where the plugin returned one. */
  replaceObject(next: ApiObject | undefined): void {
    if (next !== undefined && this.operation !== "DELETE") this.object = next;
  }

  get kind(): Kind {
    return this.#context.kind;
  }

  get group(): string {
    return this.#context.group;
  }

  get subresource(): string {
    return this.#context.subresource;
  }

  get objectKind(): ObjectKind {
    return this.#context.objectKind;
  }

  get namespace(): string {
    const { kind, namespace } = this.#context;
    return kind.plural === "namespaces" && kind.group === "" ? this.name : namespace;
  }

  get name(): string {
    return this.#context.name || (this.operation === "CREATE" ? (this.object?.metadata?.name ?? "") : "");
  }

  get options(): ApiObject | undefined {
    return this.#context.optionsFor(this.operation);
  }

  get dryRun(): boolean {
    return this.#context.dryRun;
  }

  get user(): UserInfo {
    return this.#context.user;
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }

  warn(text: string): void {
    this.#context.warn(text);
  }

  annotate(key: string, value: string): void {
    this.#context.annotate(key, value);
  }
}

class ReinvocationState implements ReinvocationContext {
  isReinvocation = false;
  #pluginState: Map<string, unknown> | undefined;
  isRequested = false;

  get pluginState(): Map<string, unknown> {
    this.#pluginState ??= new Map();
    return this.#pluginState;
  }

  request(): void {
    this.isRequested = true;
  }

  /** Starts the second run. Returns whether a plugin requested it. */
  begin(): boolean {
    this.isReinvocation = this.isRequested;
    return this.isReinvocation;
  }
}

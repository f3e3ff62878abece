/** The resource slices by node, with the taints that rules add to their devices. */
import type { DeviceTaintRule } from "../../../api/resource/device-taint-rule/schema.ts";
import { betaSliceToStorage } from "../../../api/resource/flat-versions/conversion.ts";
import type { BetaResourceSlice } from "../../../api/resource/flat-versions/schemas.ts";
import type { Device, DeviceClass, ResourceSlice } from "../../../api/resource/schemas.ts";
import type { Informer } from "../../../client/informer/informer.ts";
import type { Logger } from "../../../std/log/logger.ts";
import { SearchBudget, SearchBudgetExceeded } from "./search-budget.ts";
import type { SelectorCache } from "./selector-cache.ts";

export interface SliceTrackerOptions {
  readonly slices: Informer<BetaResourceSlice>;
  /** Undefined: no rules add taints. */
  readonly rules: Informer<DeviceTaintRule> | undefined;
  readonly classes: Informer<DeviceClass>;
  readonly selectors: SelectorCache;
  readonly log: Logger;
}

export class SliceTracker implements Disposable {
  readonly #options: SliceTrackerOptions;
  /** By node, then by name; under the empty name those that several nodes can use. */
  readonly #slices = new Map<string, Map<string, ResourceSlice>>();
  readonly #stack = new DisposableStack();
  /** Slices with the taints of rules; made anew when a rule or class changes. */
  #tainted = new WeakMap<ResourceSlice, ResourceSlice>();

  constructor(options: SliceTrackerOptions) {
    this.#options = options;
    const { slices, rules, classes } = options;
    this.#stack.defer(
      slices.subscribe({
        put: (slice, before) => {
          if (before !== undefined) this.#delete(before);
          this.#put(slice);
        },
        delete: (slice) => this.#delete(slice),
      }),
    );
    if (rules === undefined) return;
    const forget = (): void => {
      this.#tainted = new WeakMap();
    };
    for (const informer of [rules, classes]) this.#stack.defer(informer.subscribe({ put: forget, delete: forget }));
  }

  *listFor(node: string): Generator<ResourceSlice> {
    for (const slices of [this.#slices.get(node), this.#slices.get("")]) {
      for (const slice of slices?.values() ?? []) yield this.#addTaints(slice);
    }
  }

  *listAll(): Generator<ResourceSlice> {
    for (const slices of this.#slices.values()) for (const slice of slices.values()) yield this.#addTaints(slice);
  }

  [Symbol.dispose](): void {
    this.#stack.dispose();
  }

  #put(stored: BetaResourceSlice): void {
    const node = stored.spec.nodeName ?? "";
    const slices = this.#slices.get(node) ?? new Map<string, ResourceSlice>();
    this.#slices.set(node, slices.set(stored.metadata?.name ?? "", betaSliceToStorage(stored)));
  }

  #delete({ metadata, spec }: BetaResourceSlice): void {
    const node = spec.nodeName ?? "";
    const slices = this.#slices.get(node);
    slices?.delete(metadata?.name ?? "");
    if (slices?.size === 0) this.#slices.delete(node);
  }

  #addTaints(slice: ResourceSlice): ResourceSlice {
    const { rules } = this.#options;
    if (rules === undefined || rules.size === 0) return slice;
    const known = this.#tainted.get(slice);
    if (known !== undefined) return known;
    const budget = new SearchBudget();
    const devices = (slice.spec.devices ?? []).map((device) => {
      const added = [...rules.list()].filter((rule) => this.#selects(rule, slice, device, budget));
      if (added.length === 0) return device;
      return { ...device, taints: [...(device.taints ?? []), ...added.flatMap(({ spec }) => spec.taint ?? [])] };
    });
    const tainted = { ...slice, spec: { ...slice.spec, devices } };
    this.#tainted.set(slice, tainted);
    return tainted;
  }

  /** A rule with a wrong expression selects nothing. */
  #selects({ metadata, spec }: DeviceTaintRule, slice: ResourceSlice, device: Device, budget: SearchBudget): boolean {
    const { deviceSelector } = spec;
    if (deviceSelector === undefined) return false;
    const { deviceClassName, driver, pool, device: name, selectors = [] } = deviceSelector;
    if (driver !== undefined && driver !== slice.spec.driver) return false;
    if (pool !== undefined && pool !== slice.spec.pool.name) return false;
    if (name !== undefined && name !== device.name) return false;
    const deviceClass = deviceClassName === undefined ? undefined : this.#options.classes.get(deviceClassName);
    if (deviceClassName !== undefined && deviceClass === undefined) return false;
    const all = [...(deviceClass?.spec.selectors ?? []), ...selectors];
    const matches = (expression: string): boolean => {
      const result = this.#options.selectors.selects(expression, slice.spec.driver, device, budget);
      if (typeof result === "boolean") return result;
      this.#options.log.warn("Cannot evaluate a device taint rule", { rule: metadata?.name, error: result });
      return false;
    };
    try {
      return all.every(({ cel }) => cel !== undefined && matches(cel.expression));
    } catch (error) {
      if (!(error instanceof SearchBudgetExceeded)) throw error;
      this.#options.log.warn("Device taint rules are too expensive", { slice: slice.metadata?.name });
      return false;
    }
  }
}

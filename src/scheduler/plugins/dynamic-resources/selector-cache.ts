/** Compiled selectors, and which devices they select. */

import {
  compileSelector,
  type SelectedDevice,
  selectDevice,
  toSelectedDevice,
} from "../../../api/resource/device-selector.ts";
import type { Device } from "../../../api/resource/schemas.ts";
import type { Program } from "../../../cel/cel.ts";
import type { SearchBudget } from "./search-budget.ts";

interface EvaluatedDevice {
  readonly selected: SelectedDevice;
  /** By expression: a boolean, or the error. */
  readonly results: Map<string, boolean | string>;
}

/** Further expressions drop the oldest. */
const PROGRAMS_MAX = 128;
const RESULTS_MAX = 64;

/** Devices of a slice do not change: a slice that changed has new ones. */
export class SelectorCache {
  readonly #programs = new Map<string, Program | string>();
  readonly #devices = new WeakMap<Device, EvaluatedDevice>();

  /** Whether the expression selects the device; a text for an error. */
  selects(expression: string, driver: string, device: Device, budget: SearchBudget): boolean | string {
    const program = this.#compile(expression);
    if (typeof program === "string") return `CEL compile error: ${program}`;
    const evaluated = this.#evaluated(driver, device);
    const known = evaluated.results.get(expression);
    if (known !== undefined) return known;
    const { result, cost } = selectDevice(program, evaluated.selected);
    const outcome = typeof result === "string" ? `CEL runtime error: ${result}` : result;
    if (evaluated.results.size >= RESULTS_MAX) evaluated.results.clear();
    evaluated.results.set(expression, outcome);
    budget.spendCost(cost);
    return outcome;
  }

  #compile(expression: string): Program | string {
    const known = this.#programs.get(expression);
    if (known !== undefined) return known;
    const compiled = compileSelector(expression);
    const [oldest] = this.#programs.keys();
    if (this.#programs.size >= PROGRAMS_MAX && oldest !== undefined) this.#programs.delete(oldest);
    this.#programs.set(expression, compiled);
    return compiled;
  }

  #evaluated(driver: string, device: Device): EvaluatedDevice {
    const known = this.#devices.get(device);
    if (known !== undefined) return known;
    const evaluated = { selected: toSelectedDevice(driver, device), results: new Map<string, boolean | string>() };
    this.#devices.set(device, evaluated);
    return evaluated;
  }
}

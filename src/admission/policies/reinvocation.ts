/** Which mutating policies run again in the second run of the admission plugins of a request. */
import type { ApiObject } from "../../api/kind.ts";
import { semanticEqual } from "../../schema/semantic-equal.ts";
import type { AdmissionRequest, ReinvocationContext } from "../chain/attributes.ts";

export class PolicyReinvocation {
  readonly #context: ReinvocationContext;
  /** The object that the policies left in the first run. */
  #lastOutput: ApiObject | undefined;
  /** Policies that ran since the last change, and would run again after another one. */
  #reinvocable = new Set<string>();
  readonly #due = new Set<string>();

  private constructor(context: ReinvocationContext) {
    this.#context = context;
  }

  /** The state of the request, from its first run on. */
  static of({ reinvocation }: AdmissionRequest, plugin: string): PolicyReinvocation {
    let state = reinvocation.pluginState.get(plugin);
    if (!(state instanceof PolicyReinvocation)) {
      state = new PolicyReinvocation(reinvocation);
      reinvocation.pluginState.set(plugin, state);
    }
    return state as PolicyReinvocation;
  }

  begin({ object, objectKind }: AdmissionRequest): void {
    if (!this.#context.isReinvocation) return;
    if (!semanticEqual(objectKind.schema, this.#lastOutput, object)) this.#requireReinvocation();
  }

  /** Whether the policy with this binding and parameter runs. */
  isDue(key: string): boolean {
    return !this.#context.isReinvocation || this.#due.has(key);
  }

  /** The object has changed: policies that ran before run again. */
  recordChange(): void {
    this.#requireReinvocation();
    this.#context.request();
  }

  recordInvocation(key: string): void {
    this.#reinvocable.add(key);
  }

  end(object: ApiObject | undefined): void {
    this.#lastOutput = object;
  }

  #requireReinvocation(): void {
    for (const key of this.#reinvocable) this.#due.add(key);
    this.#reinvocable = new Set();
  }
}

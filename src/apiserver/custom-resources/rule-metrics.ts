/** Kubernetes' metrics of the validation rules of custom resources. */
import type { RuleObserver } from "../../api/apiextensions/custom-resource/rule-evaluation.ts";
import type { Steps } from "../../std/async/steps.ts";
import type { Histogram, MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export class RuleMetrics implements RuleObserver {
  readonly #clock: Clock;
  readonly #compilation: Histogram;
  readonly #evaluation: Histogram;

  constructor(registry: MetricRegistry, clock: Clock) {
    const family = (name: string, help: string): Histogram =>
      registry.histogram({ name: `apiserver_cel_${name}_duration_seconds`, help, stability: "BETA" }, SECONDS).with();
    this.#clock = clock;
    this.#compilation = family("compilation", "CEL compilation time in seconds.");
    this.#evaluation = family("evaluation", "CEL evaluation time in seconds.");
  }

  measureCompilation<T>(compile: () => T): T {
    const began = this.#clock.monotonic();
    try {
      return compile();
    } finally {
      this.#observe(this.#compilation, began);
    }
  }

  *measureEvaluation<T>(evaluation: Steps<T>): Steps<T> {
    const began = this.#clock.monotonic();
    try {
      return yield* evaluation;
    } finally {
      this.#observe(this.#evaluation, began);
    }
  }

  #observe(seconds: Histogram, began: number): void {
    seconds.observe((this.#clock.monotonic() - began) / 1000);
  }
}

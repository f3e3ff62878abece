import type { Admit } from "../../registry/create.ts";
import type { Clock } from "../../std/clock.ts";
import type { HistogramFamily, MetricRegistry } from "../../std/metrics.ts";

const SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 2.5];

/** How long it takes to decide whether an object may be created: each plugin by itself, and all of them together. */
export class AdmissionMetrics {
  readonly #clock: Clock;
  readonly #step: HistogramFamily;
  readonly #plugins: HistogramFamily;

  constructor(registry: MetricRegistry, clock: Clock) {
    this.#clock = clock;
    const stability = "STABLE" as const;
    this.#step = registry.histogram(
      {
        name: "apiserver_admission_step_admission_duration_seconds",
        help: "How long all admission plugins together took, in seconds, by whether they refused.",
        stability,
        labels: ["type", "operation", "rejected"],
      },
      SECONDS,
    );
    this.#plugins = registry.histogram(
      {
        name: "apiserver_admission_controller_admission_duration_seconds",
        help: "How long each admission plugin took, in seconds, by whether it refused.",
        stability,
        labels: ["name", "type", "operation", "rejected"],
      },
      SECONDS,
    );
  }

  /** All that has a say. */
  step(admit: Admit): Admit {
    return this.#measured(admit, (rejected) => this.#step.with("admit", "CREATE", rejected));
  }

  plugin(name: string, admit: Admit): Admit {
    return this.#measured(admit, (rejected) => this.#plugins.with(name, "admit", "CREATE", rejected));
  }

  #measured(admit: Admit, seriesOf: (rejected: string) => { observe(seconds: number): void }): Admit {
    const passed = seriesOf("false");
    return async (scope, object) => {
      const began = this.#clock.monotonic();
      let series = passed;
      try {
        return await admit(scope, object);
      } catch (error) {
        series = seriesOf("true");
        throw error;
      } finally {
        series.observe((this.#clock.monotonic() - began) / 1000);
      }
    };
  }
}

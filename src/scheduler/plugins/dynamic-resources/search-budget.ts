/** Bounds the search for devices: it tries all combinations, whose number can be exponential. */

/** One step tries one device; a million take about a second. */
const STEPS_MAX = 500_000;
/** Costs of expressions that count as one step. */
const COST_PER_STEP = 50;

export class SearchBudgetExceeded extends Error {
  constructor() {
    super("timed out trying to allocate devices");
  }
}

/** For one attempt to schedule a pod, on all nodes together. */
export class SearchBudget {
  #steps: number;

  constructor(steps = STEPS_MAX) {
    this.#steps = steps;
  }

  spend(steps: number): void {
    this.#steps -= steps;
    if (this.#steps < 0) throw new SearchBudgetExceeded();
  }

  spendCost(cost: number): void {
    this.spend(cost / COST_PER_STEP);
  }
}

/** The metrics of the resource claim controller, with Kubernetes' names. */
import type { FlatResourceClaim } from "../../api/resource/flat-versions/schemas.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";

const PREFIX = "resourceclaim_controller";

export class ClaimMetrics {
  readonly #attempts;
  readonly #failures;
  readonly #claims;
  readonly #allocated;
  #count = 0;
  #allocatedCount = 0;

  constructor(registry: MetricRegistry | undefined) {
    const counter = (name: string, help: string) =>
      registry?.counter({ name: `${PREFIX}_${name}`, help, stability: "ALPHA" }).with();
    const gauge = (name: string, help: string) =>
      registry?.gauge({ name: `${PREFIX}_${name}`, help, stability: "ALPHA" }).with();
    this.#attempts = counter("create_attempts_total", "Number of ResourceClaims creation requests");
    this.#failures = counter("create_failures_total", "Number of ResourceClaims creation request failures");
    this.#claims = gauge("resource_claims", "Number of ResourceClaims");
    this.#allocated = gauge("allocated_resource_claims", "Number of allocated ResourceClaims");
  }

  recordCreationAttempt(): void {
    this.#attempts?.inc();
  }

  recordCreationFailure(): void {
    this.#failures?.inc();
  }

  recordClaimChange(before: FlatResourceClaim | undefined, after: FlatResourceClaim | undefined): void {
    const isAllocated = (claim: FlatResourceClaim | undefined): number =>
      claim?.status?.allocation === undefined ? 0 : 1;
    this.#count += (after === undefined ? 0 : 1) - (before === undefined ? 0 : 1);
    this.#allocatedCount += isAllocated(after) - isAllocated(before);
    this.#claims?.set(this.#count);
    this.#allocated?.set(this.#allocatedCount);
  }
}

/** Metrics of the reviews that the agent's server requests, with the names of Kubernetes' server library. */

import { StatusError } from "../../api/status.ts";
import { createCertificateObserver, createTokenCacheObserver } from "../../auth/authn/authentication-metrics.ts";
import type { TokenCacheObserver } from "../../auth/authn/token/token-cache.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";

/** Calls a review and measures it. */
type MeasureReview = <T>(review: () => Promise<T>) => Promise<T>;

export interface ReviewMetrics {
  /** TokenReviews and SubjectAccessReviews. */
  readonly measureTokenReview: MeasureReview;
  readonly measureAccessReview: MeasureReview;
  readonly tokenCache: TokenCacheObserver;
  /** Records the remaining validity of a client certificate. */
  readonly observeCertificate: (milliseconds: number) => void;
}

const REVIEW_SECONDS = [0.25, 0.5, 0.7, 1, 1.5, 3, 5, 10];

export function createReviewMetrics(registry: MetricRegistry, clock: Clock): ReviewMetrics {
  return {
    measureTokenReview: createReviewMeasure(registry, clock, "authn"),
    measureAccessReview: createReviewMeasure(registry, clock, "authz"),
    tokenCache: createTokenCacheObserver(registry),
    observeCertificate: createCertificateObserver(registry),
  };
}

function createReviewMeasure(registry: MetricRegistry, clock: Clock, kind: "authn" | "authz"): MeasureReview {
  const prefix = `apiserver_delegated_${kind}_request`;
  const labels = ["code"];
  const stability = "ALPHA";
  const count = registry.counter({
    name: `${prefix}_total`,
    help: "Number of HTTP requests partitioned by status code.",
    stability,
    labels,
  });
  const seconds = registry.histogram(
    {
      name: `${prefix}_duration_seconds`,
      help: "Request latency in seconds. Broken down by status code.",
      stability,
      labels,
    },
    REVIEW_SECONDS,
  );
  return async (review) => {
    const began = clock.monotonic();
    const record = (code: string): void => {
      count.with(code).inc();
      seconds.with(code).observe((clock.monotonic() - began) / 1000);
    };
    try {
      const result = await review();
      record("201");
      return result;
    } catch (error) {
      record(error instanceof StatusError ? String(error.status.code) : "<error>");
      throw error;
    }
  };
}

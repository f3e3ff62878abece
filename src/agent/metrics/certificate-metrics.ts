/** Metrics of the agent's certificates, with the names of kubelet's. */
import { X509Certificate } from "node:crypto";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { RotationObserver } from "../certificates/rotation.ts";

const HOUR = 3600;
const DAY = 24 * HOUR;
/** Kubernetes' buckets: the lifetime of a certificate until it is replaced. */
const ROTATION_SECONDS = [60, HOUR, 4 * HOUR, DAY, 7 * DAY, 30 * DAY, 90 * DAY, 180 * DAY, 360 * DAY, 1440 * DAY];

/** Registers the metrics of the certificate that the agent rotates. */
export function observeRotation(registry: MetricRegistry, clock: Clock, role: "client" | "server"): RotationObserver {
  const stability = "ALPHA";
  const prefix = `kubelet_certificate_manager_${role}`;
  const noun = role === "client" ? "client" : "serving";
  const ttl = registry.gauge({
    name: `${prefix}_ttl_seconds`,
    help:
      `Gauge of the TTL (time-to-live) of the Kubelet's ${noun} certificate. The value is in seconds until ` +
      "certificate expiry (negative if already expired).",
    stability,
  });
  const errors = registry.counter({
    name: role === "client" ? `${prefix}_expiration_renew_errors` : "kubelet_server_expiration_renew_errors",
    help: "Counter of certificate renewal errors.",
    stability,
  });
  const rotations =
    role === "client"
      ? undefined
      : registry.histogram(
          {
            name: `${prefix}_rotation_seconds`,
            help: "Histogram of the number of seconds the previous certificate lived before being rotated.",
            stability,
          },
          ROTATION_SECONDS,
        );
  errors.with();
  let current: X509Certificate | undefined;
  registry.onCollect(() => {
    // Infinite while there is none, as in Kubernetes.
    const left = current === undefined ? Number.POSITIVE_INFINITY : current.validToDate.getTime() - clock.now();
    ttl.with().set(Math.trunc(left / 1000));
  });
  return {
    onCertificate(pair) {
      if (current !== undefined) rotations?.with().observe((clock.now() - current.validFromDate.getTime()) / 1000);
      current = new X509Certificate(pair.cert);
    },
    onError: () => errors.with().inc(),
  };
}

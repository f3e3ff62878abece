/** Metrics of tokens and client certificates. */
import { createCertificateObserver, createTokenCacheObserver } from "../../auth/authn/authentication-metrics.ts";
import type { TokenUse } from "../../auth/service-account/authenticator.ts";
import type { SignerObserver } from "../../auth/service-account/external-signer.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { TokenAuthenticatorsObserver } from "../authentication/token-authenticators.ts";
import { hashOf, serverIdHash } from "./server-id.ts";

export interface AuthenticationObserver extends TokenAuthenticatorsObserver {
  used(use: TokenUse): void;
  /** The remaining validity of a client certificate; negative for an expired one. */
  certificateLasts(milliseconds: number): void;
  readonly signer: SignerObserver;
}

const LATENCY_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SIGNER_SECONDS = [...LATENCY_SECONDS, 30, 60];

export function createAuthenticationObserver(registry: MetricRegistry, clock: Clock): AuthenticationObserver {
  return {
    cache: createTokenCacheObserver(registry),
    used: createTokenUseCounter(registry),
    certificateLasts: createCertificateObserver(registry),
    signer: createSignerObserver(registry, clock),
    ...createIssuerObserver(registry, clock),
  };
}

function createSignerObserver(registry: MetricRegistry, clock: Clock): SignerObserver {
  const family = (name: string, help: string, ...labels: readonly string[]) =>
    ({ name: `apiserver_externaljwt_${name}`, help, stability: "ALPHA", labels }) as const;
  const seconds = registry.histogram(
    family("request_duration_seconds", "Request duration and time for calls to external-jwt-signer", "method", "code"),
    SIGNER_SECONDS,
  );
  const signed = registry.counter(family("sign_request_total", "Total attempts at signing JWT", "code"));
  const fetched = registry.counter(
    family("fetch_keys_request_total", "Total attempts at syncing supported JWKs", "code"),
  );
  const fetchedAt = registry.gauge(
    family("fetch_keys_success_timestamp", "Unix Timestamp in seconds of the last successful FetchKeys request"),
  );
  const dataAt = registry.gauge(
    family(
      "fetch_keys_data_timestamp",
      "Unix Timestamp in seconds of the last successful FetchKeys data_timestamp value returned " +
        "by the external signer",
    ),
  );
  return {
    called(method, code, milliseconds) {
      seconds.with(method, code).observe(milliseconds / 1000);
      if (method.endsWith("/Sign")) signed.with(code).inc();
      if (method.endsWith("/FetchKeys")) fetched.with(code).inc();
    },
    keysFetched(dataSeconds) {
      fetchedAt.with().set(clock.now() / 1000);
      dataAt.with().set(dataSeconds);
    },
  };
}

function createTokenUseCounter(registry: MetricRegistry): (use: TokenUse) => void {
  const counter = (name: string, help: string) =>
    registry.counter({ name: `serviceaccount_${name}_total`, help, stability: "ALPHA" }).with();
  const valid = counter("valid_tokens", "Cumulative valid projected service account tokens used");
  const stale = counter("stale_tokens", "Cumulative stale projected service account tokens used");
  const legacy = counter("legacy_tokens", "Cumulative legacy service account tokens used");
  const auto = counter("legacy_auto_token_uses", "Cumulative auto-generated legacy tokens used");
  const manual = counter("legacy_manual_token_uses", "Cumulative manually created legacy tokens used");
  const invalid = counter("invalid_legacy_auto_token_uses", "Cumulative invalid auto-generated legacy tokens used");
  const counters: Readonly<Record<TokenUse, { inc(): void }>> = {
    valid,
    stale,
    legacy,
    "auto-legacy": auto,
    "manual-legacy": manual,
    "invalid-auto-legacy": invalid,
  };
  return (use) => counters[use].inc();
}

function createIssuerObserver(
  registry: MetricRegistry,
  clock: Clock,
): Pick<TokenAuthenticatorsObserver, "tokenVerified" | "configurationLoaded"> {
  const prefix = "apiserver_authentication_";
  const latency = registry.histogram(
    {
      name: `${prefix}jwt_authenticator_latency_seconds`,
      help:
        "Latency of jwt authentication operations in seconds. This is the time spent " +
        "authenticating a token for cache miss only (i.e. when the token is not found in the " +
        "cache).",
      stability: "ALPHA",
      labels: ["jwt_issuer_hash", "result"],
    },
    LATENCY_SECONDS,
  );
  const reloads = registry.counter({
    name: `${prefix}config_controller_automatic_reloads_total`,
    help:
      "Total number of automatic reloads of authentication configuration split by status and " + "apiserver identity.",
    stability: "ALPHA",
    labels: ["apiserver_id_hash", "status"],
  });
  const last = registry.gauge({
    name: `${prefix}config_controller_automatic_reload_last_timestamp_seconds`,
    help:
      "Timestamp of the last automatic reload of authentication configuration split by status " +
      "and apiserver identity.",
    stability: "ALPHA",
    labels: ["apiserver_id_hash", "status"],
  });
  const info = registry.gauge({
    name: `${prefix}config_controller_last_config_info`,
    help: "Hash of the authentication configuration in use.",
    stability: "ALPHA",
    labels: ["apiserver_id_hash", "hash"],
  });
  const server = serverIdHash();
  return {
    tokenVerified: (url, result, milliseconds) => latency.with(hashOf(url), result).observe(milliseconds / 1000),
    configurationLoaded(worked, content, again) {
      const status = worked ? "success" : "failure";
      if (again) reloads.with(server, status).inc();
      if (again) last.with(server, status).set(clock.now() / 1000);
      if (!worked) return;
      info.clear();
      info.with(server, hashOf(content)).set(1);
    },
  };
}

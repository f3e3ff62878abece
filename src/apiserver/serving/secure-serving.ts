/** The listener of --secure-port with TLS, the filters of requests over the network, and the shutdown. */

import type { Filter, Handler } from "../../http/message.ts";
import { explainAddressInUse } from "../../http/server/address-in-use.ts";
import type { Listener } from "../../http/server/listener.ts";
import { listen } from "../../http/server/server.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ClientAuthorities } from "../authentication/authenticators.ts";
import type { ApiServerConfig } from "../config/config.ts";
import type { Readiness } from "../health/readiness.ts";
import { applyFilters } from "../request/request-context.ts";
import { withProbabilisticGoaway } from "./filters/goaway.ts";
import { RetryAfterOnShutdown } from "./filters/retry-after.ts";
import { withStartupRejection } from "./filters/startup.ts";
import { withThrottle } from "./filters/throttle.ts";
import { WatchTermination } from "./filters/watch-termination.ts";
import { shutDown } from "./graceful-shutdown.ts";
import { servingCertificates } from "./serving-certificates.ts";

export interface SecureServingDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: RandomSource;
}

export interface SecureServingParts {
  readonly handler: Handler;
  readonly readiness: Readiness;
  /** The CAs that the TLS handshake names, by which clients select a certificate. */
  readonly clientAuthorities: ClientAuthorities;
  readonly onHandshakeFailure: () => void;
}

export interface SecureServing extends AsyncDisposable {
  readonly address: { readonly host: string; readonly port: number };
  /**
   * Shuts down gracefully, as SIGTERM does; resolves when no connection is left. `othersDrained` waits for other
   * threads that listen on the port. Disposing closes at once.
   */
  close(othersDrained?: () => Promise<void>): Promise<void>;
}

/** Rejects with one sentence for an operator. */
export async function startSecureServing(
  config: ApiServerConfig,
  deps: SecureServingDeps,
  parts: SecureServingParts,
): Promise<SecureServing> {
  const { clock, log, random } = deps;
  const { bindAddress, serving, limits } = config;
  const { readiness } = parts;
  const certificates = await servingCertificates(config, clock, log);
  const watchTermination = new WatchTermination(clock);
  const retryAfter = new RetryAfterOnShutdown();
  const externalFilters: readonly Filter[] = [
    ...(config.shutdown.sendRetryAfter ? [retryAfter.filter] : []),
    withStartupRejection(() => readiness.hasStarted, readiness.endpoints(), log.child("health")),
    withProbabilisticGoaway(serving.goawayChance, random),
    withThrottle(serving.bytesPerSecond, clock),
    watchTermination.filter,
  ];
  const { clientAuthorities: authorities } = parts;
  const tls = () => ({
    requestCert: true,
    ca:
      [authorities.clientCa(), authorities.requestHeader()?.ca].filter((ca) => ca !== undefined).join("\n") ||
      undefined,
    ...certificates.current,
    minVersion: serving.minVersion,
    ciphers: serving.ciphers,
  });
  const starting = listen({
    upgrades: true,
    handler: applyFilters(externalFilters, parts.handler),
    log: log.child("http"),
    clock,
    ...(isUnspecifiedAddress(bindAddress) ? {} : { host: bindAddress }),
    port: config.securePort,
    tls: tls(),
    limits: serving.streamsPerConnection > 0 ? { streamsPerConnection: serving.streamsPerConnection } : {},
    http2: !serving.disableHttp2,
    sharePort: serving.sharePort,
    onHandshakeFailure: parts.onHandshakeFailure,
  });
  const listener: Listener = await explainAddressInUse("--secure-port", starting);
  certificates.follow((next) => listener.reloadTls({ ...tls(), ...next }));
  authorities.onChange(() => listener.reloadTls(tls()));
  return {
    address: { host: listener.address, port: listener.port },
    async close(othersDrained) {
      await shutDown(config.shutdown, {
        clock,
        log,
        listener,
        watchTermination,
        retryAfter,
        notReady: () => readiness.markStopping(),
        requestTimeoutMs: limits.requestTimeoutMs,
        othersDrained,
      });
      certificates[Symbol.dispose]();
    },
    async [Symbol.asyncDispose]() {
      certificates[Symbol.dispose]();
      await listener.close();
    },
  };
}

/** Whether the address binds all interfaces. */
export function isUnspecifiedAddress(address: string): boolean {
  return address === "" || address === "0.0.0.0" || address === "::";
}

/** The API server of a worker thread. */
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { readHostAddress } from "../../std/net/host-addresses.ts";
import type { ApiServerDeps } from "../assembly/server-base.ts";
import type { ApiServerConfig } from "../config/config.ts";
import { createApiServer, externalAddress } from "../server.ts";
import { isUnspecifiedAddress, type SecureServing, startSecureServing } from "../serving/secure-serving.ts";
import type { PoolLink } from "./pool-link.ts";

export interface WorkerServer {
  /** Drops what caches can create again. */
  releaseMemory(): void;
  /** Stops as SIGTERM would. */
  close(): Promise<void>;
}

/** Resolves when the worker serves. */
export async function startWorkerServer(
  config: ApiServerConfig,
  deps: ApiServerDeps,
  link: PoolLink,
): Promise<WorkerServer> {
  const { clock, log, random = systemRandom } = deps;
  const own = workerConfig(config);
  const hostIp = isUnspecifiedAddress(config.bindAddress) ? await readHostAddress() : undefined;
  const address = { host: config.bindAddress, port: config.securePort };
  const externalHostPort = (): string =>
    externalAddress(config.serving.advertisedHost ?? hostIp ?? address.host, address.port);
  let secureServing: SecureServing | undefined;
  const { server, readiness, memory, registries } = await createApiServer(
    own,
    deps,
    externalHostPort,
    async (parts) => {
      link.reportStep("prepared");
      const securePort = await link.listenPort;
      secureServing = await startSecureServing({ ...own, securePort }, { clock, log, random }, parts);
      Object.assign(address, secureServing.address);
      link.reportStep("listening");
    },
  ).catch(async (error: unknown) => {
    await secureServing?.[Symbol.asyncDispose]();
    throw error;
  });
  await link.mainIsReady;
  // The caches have the objects that the main thread has created.
  await registries.of(namespaceKind).freshCache({ signal: new AbortController().signal });
  readiness.waitForThreads();
  readiness.markStarted();
  link.reportStep("serving");
  void link.allServe.then(() => readiness.markThreadsServing());
  return {
    releaseMemory: () => registries.releaseMemory(),
    async close() {
      memory.beginStop();
      await secureServing?.close(() => link.drained());
      await server[Symbol.asyncDispose]();
    },
  };
}

/** The configuration without what the main thread runs. */
function workerConfig(config: ApiServerConfig): ApiServerConfig {
  return { ...config, observability: { ...config.observability, debugSocket: undefined } };
}

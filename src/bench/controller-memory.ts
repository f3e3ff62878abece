/**
 * What each controller adds to the live memory of a process, alone and with its informers, in a cluster of 300 pods;
 * and what all of them add together, since they share their informers. Code is not included.
 */

import { deploymentKind } from "../api/apps/deployment/kind.ts";
import { builtinScheme } from "../api/builtin.ts";
import { podKind } from "../api/core/pod/kind.ts";
import { serviceKind } from "../api/core/service/kind.ts";
import { defaultConfig } from "../apiserver/config/default-config.ts";
import { type ApiServer, createApiServer } from "../apiserver/server.ts";
import { createClient } from "../client/api-client.ts";
import type { Client } from "../client/client.ts";
import { controllerNames, startControllers } from "../controllers/controller-manager.ts";
import { systemRandom } from "../std/crypto/random.ts";
import { silentLogger } from "../std/log/logger.ts";
import { systemClock } from "../std/time/clock.ts";
import { liveBytes } from "../testing/std/heap-growth.ts";
import type { Figures } from "./figures.ts";

const DEPLOYMENTS = 30;
const PODS = 300;
/** Until informers have their objects and queues are empty. */
const SETTLE_MS = 1_500;

export async function measureControllerMemory(figures: Figures): Promise<void> {
  const config = { ...defaultConfig, authorizationModes: ["Node", "RBAC"], embeddedControllers: [] };
  const { server } = await createApiServer(config, { clock: systemClock, log: silentLogger }, () => "");
  try {
    const admin = server.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} });
    await createObjects(createClient({ transport: server.handler, headers: { authorization: `Bearer ${admin}` } }));
    // The first run loads the code.
    for (const name of ["*", ...controllerNames]) await measure(server, name);
    for (const name of controllerNames) figures.add(`Live memory of ${name}`, await measure(server, name), "KiB");
    figures.add("Live memory of all controllers", await measure(server, "*"), "KiB");
  } finally {
    await server[Symbol.asyncDispose]();
  }
}

async function measure(server: ApiServer, name: string): Promise<number> {
  const before = await liveBytes();
  await using _running = startControllers([name], {
    clientFor: (user) =>
      createClient({ transport: server.handler, headers: { authorization: `Bearer ${server.loopbackToken(user)}` } }),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    kinds: builtinScheme().kinds(),
  });
  await systemClock.sleep(SETTLE_MS);
  return ((await liveBytes()) - before) / 1024;
}

async function createObjects(client: Client): Promise<void> {
  const namespace = "default";
  for (let i = 0; i < DEPLOYMENTS; i++) {
    const labels = { app: `app-${i}` };
    const metadata = { name: `app-${i}`, namespace };
    const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "img:1" }] } };
    await client.create(deploymentKind, {
      metadata,
      spec: { replicas: 0, selector: { matchLabels: labels }, template },
    });
    await client.create(serviceKind, { metadata, spec: { selector: labels, ports: [{ port: 80 }] } });
  }
  for (let i = 0; i < PODS; i++) {
    const metadata = { name: `pod-${i}`, namespace, labels: { app: `app-${i % DEPLOYMENTS}` } };
    await client.create(podKind, { metadata, spec: { nodeName: "n", containers: [{ name: "c", image: "img:1" }] } });
  }
}

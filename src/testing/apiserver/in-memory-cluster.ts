/** Whole API servers in memory with controllers, for tests. */
import type { Test } from "tap";
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { ApiServerConfig } from "../../apiserver/config/config.ts";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { createApiServer } from "../../apiserver/server.ts";
import { createClient } from "../../client/api-client.ts";
import type { Client } from "../../client/client.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { type Clock, systemClock } from "../../std/time/clock.ts";

/** Starts a server with all controllers by default and the authorization modes of `svc up`; returns an admin client. */
export async function startInMemoryCluster(
  t: Pick<Test, "teardown">,
  config: Partial<ApiServerConfig> = {},
  clock: Clock = systemClock,
): Promise<Client> {
  const whole = { ...defaultConfig, authorizationModes: ["Node", "RBAC"], embeddedControllers: ["*"], ...config };
  const { server } = await createApiServer(whole, { clock, log: silentLogger }, () => "");
  t.teardown(() => server[Symbol.asyncDispose]());
  const token = server.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} });
  return createClient({ transport: server.handler, headers: { authorization: `Bearer ${token}` } });
}

/** Watches the object until `isWanted` is true; its argument is `undefined` when the object does not exist. */
export async function waitForObject<T extends ApiObject>(
  client: Client,
  kind: Kind<T>,
  name: string,
  namespace: string | undefined,
  isWanted: (object: T | undefined) => boolean,
): Promise<T | undefined> {
  const stop = new AbortController();
  const query = { namespace, fieldSelector: `metadata.name=${name}` };
  const { items, resourceVersion } = await client.list(kind, query);
  if (isWanted(items[0])) return items[0];
  try {
    for await (const event of client.watch(kind, { ...query, resourceVersion }, stop.signal)) {
      if (event.type === "BOOKMARK") continue;
      const object = event.type === "DELETED" ? undefined : event.object;
      if (isWanted(object)) return object;
    }
  } finally {
    stop.abort();
  }
  throw new Error(`The watch of ${kind.plural}/${name} ended`);
}

/** The effect of gates on what the API server publishes and on how it answers. */
import { makeRequest } from "../../../http/request.ts";
import { type Store, StoreError } from "../../../storage/store.ts";
import { type Gates, withGates } from "./gate-settings.ts";
import { countStoreReads, type Effect, PODS, startServer } from "./support.ts";

type Server = Awaited<ReturnType<typeof startServer>>;

/** `read` returns `whenOn` while the gate is on, which is its default unless `normal` is false. */
function serves(
  gate: string,
  normal: boolean,
  read: (server: Server) => Promise<unknown>,
  whenOn: unknown,
  whenOff: unknown,
): Effect {
  return async (t) => {
    for (const value of [true, false]) {
      await using server = await startServer(withGates(value === normal ? {} : { [gate]: value }));
      t.same(await read(server), value ? whenOn : whenOff, `${gate}=${value}`);
    }
  };
}

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

async function identityLeases(server: Server): Promise<number> {
  const { json } = await server.send("GET /apis/coordination.k8s.io/v1/namespaces/kube-system/leases");
  return json.items.length;
}

async function healthCheck(server: Server, name: string): Promise<boolean> {
  const { json: text } = await server.send("GET /readyz?verbose");
  return String(text).includes(`poststarthook/${name} ok`);
}

/** Whether the server closes the HTTP/2 connection of a client without credentials. */
async function closesAnonymous(server: Server): Promise<boolean> {
  const peer = { address: "127.0.0.1", port: 1, encrypted: true, certificates: [], protocol: "h2" } as const;
  const { headers } = await server.running.handler(makeRequest({ path: "/version", peer }));
  return headers.connection === "close";
}

export const discoveryGateEffects: Readonly<Record<string, Effect>> = {
  APIResponseCompression: serves(
    "APIResponseCompression",
    true,
    async (server) => {
      const { headers } = await server.send("GET /openapi/v2", undefined, {
        ...server.admin,
        "accept-encoding": "gzip",
      });
      return headers["content-encoding"];
    },
    "gzip",
    undefined,
  ),
  APIServerIdentity: serves("APIServerIdentity", true, identityLeases, 1, 0),
  AggregatedDiscoveryRemoveBetaType: serves(
    "AggregatedDiscoveryRemoveBetaType",
    true,
    async (server) => (await server.send("GET /apis", undefined, { ...server.admin, accept: AGGREGATED })).status,
    406,
    200,
  ),
  ConsistentListFromCache: async (t) => {
    const reads = (gates: Gates) => countStoreReads(withGates(gates), PODS);
    t.equal(await reads({}), 0);
    t.ok((await reads({ ConsistentListFromCache: false })) > 0);
  },
  OpenAPIEnums: serves(
    "OpenAPIEnums",
    true,
    async (server) => {
      const { json } = await server.send("GET /openapi/v3/api/v1");
      return json.components.schemas["io.k8s.api.core.v1.Container"].properties.imagePullPolicy.enum !== undefined;
    },
    true,
    false,
  ),
  StorageVersionHash: serves(
    "StorageVersionHash",
    true,
    async (server) => {
      const { json } = await server.send("GET /api/v1");
      return json.resources.some((resource: { storageVersionHash?: string }) => resource.storageVersionHash);
    },
    true,
    false,
  ),
  ResilientWatchCacheInitialization: async (t) => {
    const undecryptable = () => new StoreError("undecryptable", "there is no key");
    const unreadable: Partial<Store> = {
      list: () => Promise.reject(undecryptable()),
      scan: () => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(undecryptable()) }) }),
    };
    for (const value of [true, false]) {
      const store: Partial<Store> = {};
      await using server = await startServer(withGates({ ResilientWatchCacheInitialization: value }), store);
      Object.assign(store, unreadable);
      let status = 0;
      void server.send("GET /apis/policy/v1/poddisruptionbudgets").then((response) => {
        status = response.status;
      });
      await server.until("the response", () => status !== 0);
      t.equal(status, value ? 429 : 500);
    }
  },
  UnauthenticatedHTTP2DOSMitigation: async (t) => {
    for (const value of [true, false]) {
      await using server = await startServer(withGates({ UnauthenticatedHTTP2DOSMitigation: value }));
      t.equal(await closesAnonymous(server), value);
    }
  },
  WatchCacheInitializationPostStartHook: serves(
    "WatchCacheInitializationPostStartHook",
    false,
    (server) => healthCheck(server, "storage-readiness"),
    true,
    false,
  ),
};

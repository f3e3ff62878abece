/**
 * Run by `make bench`: prints the cost that authentication and authorization add to a GET, one JSON line for each
 * authenticator. Compares an in-memory server with AlwaysAllow to one with all authenticators, Node and RBAC with 1,000
 * roles and bindings. Authenticators alternate, so that other load affects all of them; the best round counts.
 */

import { benchCredentials, copiesOf } from "../../bench/credentials.ts";
import type { Peer } from "../../http/message.ts";
import { makeRequest } from "../../http/request.ts";
import { silentLogger as log } from "../../std/log/logger.ts";
import { systemClock as clock } from "../../std/time/clock.ts";
import { createMemoryStore } from "../../storage/memory.ts";
import { readResponse } from "../../testing/apiserver/server-fixture.ts";
import type { ApiServerConfig } from "../config/config.ts";
import { defaultConfig } from "../config/default-config.ts";
import { type ApiServer, createApiServer } from "../server.ts";

const CALLS = 4000;
const ROUNDS = 12;
const COUNT = 1000;
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const GROUP = "rbac.authorization.k8s.io";
const SHOP = "/api/v1/namespaces/shop";
const PATH = `${SHOP}/configmaps/sample`;

interface Way {
  readonly server: ApiServer;
  /** Used in turn. */
  readonly headers: readonly Readonly<Record<string, string>>[];
  readonly certificates: readonly Uint8Array[];
}

await using known = await benchCredentials();
await using open = await server({ authorizationModes: ["AlwaysAllow"] });
await using closed = await server({ authorizationModes: ["Node", "RBAC"], authentication: known.settings });
for (const each of [open, closed]) await fill(each);
await grant(closed);

const none = { headers: [{}], certificates: [] };
const certificate = (certificates: readonly Uint8Array[]) => ({ ...none, certificates });
const bearer = (token: string) => ({
  ...none,
  headers: copiesOf(`Bearer ${token}`).map((authorization) => ({ authorization })),
});
const component = closed.loopbackToken({ name: "jo", uid: "", groups: [], extra: {} });
const ways: Readonly<Record<string, Way>> = {
  "always allow": { server: open, ...none },
  "client certificate": { server: closed, ...certificate(known.certificates.jo) },
  "client certificate of a node": { server: closed, ...certificate(known.certificates.node) },
  "request headers": { server: closed, ...certificate(known.certificates.jo), headers: [known.headers] },
  "token of a file": { server: closed, ...bearer(known.tokens.file) },
  "token of a component": { server: closed, ...bearer(component) },
  "token of a pod": { server: closed, ...bearer(await podToken(closed)) },
  "ID token": { server: closed, ...bearer(known.tokens.idToken) },
  anonymous: { server: closed, ...none },
};

const best = new Map<string, number>();
for (let round = 0; round < ROUNDS; round++) {
  for (const [title, way] of Object.entries(ways)) {
    const us = await cpuUs(way);
    if (round > 1) best.set(title, Math.min(best.get(title) ?? Number.POSITIVE_INFINITY, us));
  }
}
const base = best.get("always allow") ?? Number.NaN;
for (const [title, us] of best) {
  const figures = { get: title, us: rounded(us), added: rounded(us - base), ratio: rounded(us / base) };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
}

function rounded(value: number): number {
  return Number(value.toFixed(2));
}

async function cpuUs({ server, headers, certificates }: Way): Promise<number> {
  const peer: Peer = { address: "192.0.2.1", port: 1, encrypted: true, certificates, protocol: "h2" };
  const before = process.cpuUsage();
  for (let call = 0; call < CALLS; call++) {
    const request = makeRequest({ path: PATH, headers: headers[call % headers.length], peer });
    const { status } = await server.handler(request);
    if (status !== 200) throw new Error(`Expected 200, got ${status}`);
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

async function server(config: Partial<ApiServerConfig>): Promise<ApiServer> {
  const store = createMemoryStore({ clock });
  const { server, readiness } = await createApiServer(
    { ...defaultConfig, ...config },
    { clock, log, store },
    () => "192.0.2.1",
  );
  readiness.markStarted();
  return server;
}

async function make(server: ApiServer, path: string, body: object): Promise<unknown> {
  const master = server.loopbackToken({ name: "m", uid: "", groups: ["system:masters"], extra: {} });
  const headers = { authorization: `Bearer ${master}`, "content-type": "application/json" };
  const request = makeRequest({ method: "POST", path, headers, body: JSON.stringify(body) });
  const { status, text } = await readResponse(await server.handler(request));
  if (status !== 201) throw new Error(text);
  return JSON.parse(text);
}

async function fill(server: ApiServer): Promise<void> {
  await make(server, "/api/v1/namespaces", { metadata: { name: "shop" } });
  await make(server, `${SHOP}/configmaps`, { metadata: { name: "sample" }, data: { text: "x".repeat(500) } });
}

/** Creates a role and a binding for each benchmark user, and many others. */
async function grant(server: ApiServer): Promise<void> {
  const rules = [{ verbs: ["get", "list"], apiGroups: [""], resources: ["configmaps", "services"] }];
  const user = (name: string) => ({ kind: "User", apiGroup: GROUP, name });
  const bind = async (name: string, subject: object): Promise<void> => {
    await make(server, `${RBAC}/namespaces/shop/roles`, { metadata: { name }, rules });
    const roleRef = { apiGroup: GROUP, kind: "Role", name };
    await make(server, `${RBAC}/namespaces/shop/rolebindings`, { metadata: { name }, subjects: [subject], roleRef });
  };
  for (let count = 0; count < COUNT; count++) await bind(`r${count}`, user(`user-${count}`));
  const users = { jo: user("jo"), anonymous: user("system:anonymous"), node: user("system:node:n1") };
  for (const [name, subject] of Object.entries(users)) await bind(name, subject);
  await bind("till", { kind: "ServiceAccount", namespace: "shop", name: "till" });
}

async function podToken(server: ApiServer): Promise<string> {
  await make(server, `${SHOP}/serviceaccounts`, { metadata: { name: "till" } });
  const volumes = [{ name: "v", configMap: { name: "sample" } }];
  const spec = { nodeName: "n1", serviceAccountName: "till", containers: [{ name: "c", image: "i" }], volumes };
  await make(server, `${SHOP}/pods`, { metadata: { name: "web" }, spec });
  const bound = { kind: "Pod", apiVersion: "v1", name: "web" };
  const answer = await make(server, `${SHOP}/serviceaccounts/till/token`, { spec: { boundObjectRef: bound } });
  return (answer as { readonly status: { readonly token: string } }).status.token;
}

/** The API server: connection, trust, credentials, rights of the node, and its version. */

import { TUNNEL_CONDITION } from "../../api/core/node/tunnel.ts";
import { type ClusterAccess, loadKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import { readAll } from "../../client/response.ts";
import { networkTransport } from "../../client/transport/transport.ts";
import { makeRequest } from "../../http/request.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type Finding, finding, findingOf } from "./finding.ts";

export interface ApiServerFacts {
  /** Why the connection file cannot be used. */
  readonly configProblem: string | undefined;
  readonly server: string;
  /** Why there is no connection. */
  readonly connectProblem: { readonly kind: "network" | "tls"; readonly text: string } | undefined;
  /** `v1.33.0`; undefined: the server does not report it to this client. */
  readonly version: string | undefined;
  /** The name that the server has for the client; undefined: unknown. */
  readonly user: string | undefined;
  readonly groups: readonly string[];
  /** The status of a GET of the node's object; 404 before it registers. */
  readonly nodeStatus: number | undefined;
  /** The machine id in the node's object. */
  readonly machineId: string | undefined;
  /** The node's condition about its tunnel. */
  readonly tunnel: { readonly status: string; readonly message: string } | undefined;
  readonly offsetMs: number | undefined;
}

export interface ApiServerSettings {
  readonly nodeName: string;
  /** `--tunnel` */
  readonly tunnel: boolean;
  /** The version of the agent. */
  readonly version: string;
}

const NODE_USER = "system:node:";
const NODE_GROUP = "system:nodes";
const SKEW_MAX = 3;

export function checkApiServer(facts: ApiServerFacts, settings: ApiServerSettings): readonly Finding[] {
  const { configProblem, connectProblem, server } = facts;
  if (configProblem !== undefined) return [finding("api-server-config", "error", configProblem)];
  if (connectProblem?.kind === "tls") {
    return [
      finding("api-server-reachable", "ok", server),
      finding("api-server-tls", "error", `${server}: ${connectProblem.text}`),
    ];
  }
  if (connectProblem !== undefined) {
    return [finding("api-server-reachable", "error", `${server}: ${connectProblem.text}`)];
  }
  return [
    finding("api-server-reachable", "ok", server),
    finding("api-server-tls", "ok", "the certificate of the API server is valid"),
    ...checkUser(facts, settings),
    ...checkVersion(facts, settings),
    ...checkTunnel(facts, settings),
  ];
}

function checkTunnel({ nodeStatus, tunnel }: ApiServerFacts, settings: ApiServerSettings): Finding[] {
  // Before the node registers, no agent has opened a tunnel.
  if (!settings.tunnel || nodeStatus !== 200) return [];
  const found = tunnel?.message ?? `the node has no condition ${TUNNEL_CONDITION}`;
  return [findingOf("api-server-tunnel", found, tunnel?.status === "True" ? undefined : found, "warning")];
}

function checkUser({ user, groups, nodeStatus }: ApiServerFacts, { nodeName }: ApiServerSettings): Finding[] {
  if (user === undefined && nodeStatus === undefined) return [];
  if (nodeStatus === 401 || user === "system:anonymous") {
    return [finding("api-server-credentials", "error", "401 Unauthorized: the API server does not know the client")];
  }
  const credentials = finding("api-server-credentials", "ok", user ?? "accepted");
  const id = "api-server-node-access";
  if (nodeStatus !== 200 && nodeStatus !== 404) {
    return [credentials, finding(id, "error", `GET of the node ${nodeName} as ${user ?? "this user"}: ${nodeStatus}`)];
  }
  const expected = `${NODE_USER}${nodeName}`;
  const isNode = user === undefined || (user === expected && groups.includes(NODE_GROUP));
  const registered = nodeStatus === 200 ? "is registered" : "is not registered yet";
  const problem = `the user is ${user}${user === expected ? `, without the group ${NODE_GROUP}` : `, not ${expected}`}`;
  return [credentials, findingOf(id, `${nodeName} ${registered}`, isNode ? undefined : problem, "warning")];
}

function checkVersion({ version }: ApiServerFacts, { version: own }: ApiServerSettings): Finding[] {
  if (version === undefined) return [];
  const [server, agent] = [minorOf(version), minorOf(own)];
  const found = `API server ${version}, agent ${own}`;
  const isSupported = server === undefined || agent === undefined || (agent <= server && server - agent <= SKEW_MAX);
  return [findingOf("api-server-version", found, isSupported ? undefined : found, "warning")];
}

function minorOf(version: string): number | undefined {
  const minor = /^v?1\.(\d+)/.exec(version)?.[1];
  return minor === undefined ? undefined : Number(minor);
}

const noFacts: ApiServerFacts = {
  configProblem: undefined,
  server: "",
  connectProblem: undefined,
  version: undefined,
  user: undefined,
  groups: [],
  nodeStatus: undefined,
  machineId: undefined,
  tunnel: undefined,
  offsetMs: undefined,
};

/** With a file that does not exist, only the connection to `join` is checked. */
export async function readApiServerFacts(
  svcconfig: string,
  join: string,
  nodeName: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<ApiServerFacts> {
  let access: ClusterAccess;
  try {
    access = await loadKubeconfig(svcconfig);
  } catch (error) {
    if (join === "") return { ...noFacts, configProblem: (error as Error).message };
    return await readConnection(
      { server: join, insecure: true, namespace: "", context: "", user: "", cluster: "" },
      undefined,
      clock,
      signal,
    );
  }
  return await readConnection(access, nodeName, clock, signal);
}

/** `nodeName` is undefined for a machine that has no credentials yet. */
async function readConnection(
  access: ClusterAccess,
  nodeName: string | undefined,
  clock: Clock,
  signal: AbortSignal,
): Promise<ApiServerFacts> {
  const { server } = access;
  await using transport = networkTransport({ ...access, clock });
  const send = async (method: string, path: string, body?: unknown) => {
    const headers = { accept: "application/json", "content-type": "application/json" };
    const text = body === undefined ? undefined : JSON.stringify(body);
    const response = await transport(makeRequest({ method, path, headers, body: text, signal }));
    const bytes = await readAll(response.body, BODY_BYTES_MAX);
    return { status: response.status, headers: response.headers, body: parseJson(bytes.toString("utf8")) };
  };
  try {
    const sent = clock.monotonic();
    const versions = await send("GET", "/version");
    // The header has the second in which it was written: half of one is added.
    const date = Date.parse(String(versions.headers.date ?? "")) + 500;
    const received = clock.now() - (clock.monotonic() - sent) / 2;
    const offset = Number.isNaN(date) ? {} : { offsetMs: date - received };
    const version = text(versions.body.gitVersion);
    if (nodeName === undefined) return { ...noFacts, server, version, ...offset };
    const [review, node] = await Promise.all([
      send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", selfSubjectReview),
      send("GET", `/api/v1/nodes/${encodeURIComponent(nodeName)}`),
    ]);
    const info = object(object(review.body.status).userInfo);
    const machine = object(object(node.body.status).nodeInfo);
    return {
      ...noFacts,
      server,
      version,
      ...offset,
      user: text(info.username),
      groups: Array.isArray(info.groups) ? info.groups.map(String) : [],
      nodeStatus: node.status,
      machineId: node.status === 200 ? text(machine.machineID) : undefined,
      tunnel: readTunnelCondition(object(node.body.status).conditions),
    };
  } catch (error) {
    return { ...noFacts, server, connectProblem: describe(error, signal) };
  }
}

const BODY_BYTES_MAX = 2 ** 20;
/** Is answered from the request, and not stored. */
const selfSubjectReview = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };

const tlsError =
  /^(?:ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_(?:GET_ISSUER|VERIFY)|EPROTO|HOSTNAME_MISMATCH)/;

function describe(error: unknown, signal: AbortSignal): ApiServerFacts["connectProblem"] {
  if (signal.aborted) return { kind: "network", text: "no answer in time" };
  for (let each = error; each instanceof Error; each = each.cause) {
    const code = String((each as NodeJS.ErrnoException).code ?? "");
    if (tlsError.test(code)) return { kind: "tls", text: each.message };
  }
  return { kind: "network", text: error instanceof Error && error.message !== "" ? error.message : String(error) };
}

type Json = Readonly<Record<string, unknown>>;

function readTunnelCondition(conditions: unknown): ApiServerFacts["tunnel"] {
  const all = Array.isArray(conditions) ? conditions.map(object) : [];
  const found = all.find(({ type }) => type === TUNNEL_CONDITION);
  return found === undefined ? undefined : { status: String(found.status), message: String(found.message) };
}

function object(value: unknown): Json {
  return typeof value === "object" && value !== null ? (value as Json) : {};
}

function parseJson(json: string): Json {
  try {
    return object(JSON.parse(json));
  } catch {
    return {};
  }
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

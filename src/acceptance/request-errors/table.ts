/** Sends requests to a server in memory and shows the answers in one line, for tables of requests and answers. */
import { startTestServer, type TestResponse, type TestServer } from "../../testing/apiserver/server-fixture.ts";

export interface Row {
  readonly body?: unknown;
  readonly type?: string;
  readonly accept?: string;
}

export const NAMESPACE = "/api/v1/namespaces/default";

/** A server with the ConfigMap `a` in the namespace `default`. */
export async function startTableServer(): Promise<TestServer> {
  const server = await startTestServer({ authorizationModes: ["Node", "RBAC"] });
  await createConfigMap(server, "a");
  return server;
}

export async function createConfigMap(server: TestServer, name: string): Promise<void> {
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { a: "1" } };
  await server.send(`POST ${NAMESPACE}/configmaps`, { body });
}

/**
 * `200`, or `400 BadRequest: MESSAGE`; warnings follow after ` | `. Without those about kinds on which nothing acts,
 * which Kubernetes does not have.
 */
export async function answerTo(
  server: TestServer,
  line: string,
  { body, type = "application/json", accept = "application/json" }: Row = {},
): Promise<string> {
  const headers = { "content-type": type, accept, "user-agent": "table/1.0" };
  const {
    status,
    text,
    headers: found,
  } = await sendAndWait(server, line, { headers, ...(body === undefined ? {} : { body }) });
  const lines = [found.warning ?? []].flat().map((line) => String(line).replace(/^299 - /, ""));
  const warnings = lines.filter((text) => !text.includes(" is not enforced: "));
  const shown = status < 300 ? String(status) : showStatus(status, text);
  return [shown, ...warnings].join(" | ");
}

/** Sends a request that may end with the clock. */
export async function sendAndWait(
  server: TestServer,
  line: string,
  options?: Parameters<TestServer["send"]>[1],
): Promise<TestResponse> {
  let settled = false;
  const response = server.send(line, options);
  const settle = (): void => {
    settled = true;
  };
  response.then(settle, settle);
  // A watch and a wait for a future resourceVersion end with the clock.
  for (let turn = 0; turn < 50 && !settled; turn++) await nextTurn();
  for (let second = 0; second < 20 && !settled; second++) {
    await server.clock.advance(1000);
    for (let turn = 0; turn < 20; turn++) await nextTurn();
  }
  return await response;
}

function showStatus(status: number, text: string): string {
  try {
    const { reason = "", message = "" } = JSON.parse(text) as { readonly reason?: string; readonly message?: string };
    return `${status} ${reason}: ${message}`;
  } catch {
    return `${status} ${text}`;
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

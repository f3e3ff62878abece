/** What the server keeps in memory of definitions and objects that were deleted. */
import t from "tap";
import { CRDS, createDefinition, crontabs, v1, waitForResponse } from "../../testing/apiserver/extensions-fixture.ts";
import { readLines, startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";
import { bytesLeftPerCall, LEAK_ROUNDS } from "../../testing/std/heap-growth.ts";

/** A definition takes time to be served and deleted: fewer of them outside of `make leaks`. */
const ROUNDS = LEAK_ROUNDS < 1000 ? Math.ceil(LEAK_ROUNDS / 5) : LEAK_ROUNDS;

/** A definition that is served, read and watched in all ways, and deleted. */
async function useDefinition(server: TestServer, call: number): Promise<void> {
  const group = `g${call}.retired.example.com`;
  const names = { plural: "crontabs", kind: "CronTab" };
  const definition = {
    ...crontabs(),
    metadata: { name: `crontabs.${group}` },
    spec: { group, scope: "Namespaced", names, versions: [v1] },
  };
  await createDefinition(server, definition);
  const path = `/apis/${group}/v1/namespaces/default/crontabs`;
  const leaving = new AbortController();
  const watch = await server.open(`GET ${path}?watch=1&resourceVersion=0`, { signal: leaving.signal });
  const apiVersion = `${group}/v1`;
  for (const name of ["a", "b"]) {
    const body = {
      apiVersion,
      kind: "CronTab",
      metadata: { name },
      spec: { cronSpec: "* * * * *", image: "x".repeat(2000) },
    };
    const created = await server.send(`POST ${path}`, { body });
    if (created.status !== 201) throw new Error(created.text);
  }
  await readLines(watch, 2);
  await server.send(`GET ${path}`);
  await server.send(`GET ${path}`, { headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" } });
  await server.send(`GET /openapi/v3/apis/${group}/v1`);
  await server.send(`GET /apis/${group}`);
  await server.send("GET /metrics");
  leaving.abort();
  await server.send(`DELETE ${CRDS}/crontabs.${group}`);
  await waitForResponse(server, `GET ${CRDS}/crontabs.${group}`, ({ status }) => status === 404);
  const last = await server.send(`GET ${CRDS}`);
  const { resourceVersion } = (last.json as { readonly metadata: { readonly resourceVersion: string } }).metadata;
  await server.compact(Number(resourceVersion));
}

t.test("a definition that was used and deleted leaves no metrics, documents or caches", async (t) => {
  await using server = await startTestServer();
  const left = await bytesLeftPerCall((call) => useDefinition(server, call), { calls: ROUNDS });
  // The history of definitions and API services, which is bounded.
  t.ok(left < 160 * 1024, `${left} bytes for each definition`);
  const { text } = await server.send("GET /metrics");
  t.notMatch(text, /retired\.example\.com/);
});

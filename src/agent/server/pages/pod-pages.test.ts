import t from "tap";
import type { Runtime } from "../../runtime/runtime.ts";
import { RuntimeError } from "../../runtime/runtime.ts";
import { serveRunningPods } from "./pod-pages.ts";

const { signal } = new AbortController();

function runtimeWith(part: Partial<Runtime>): Runtime {
  return part as Runtime;
}

t.test("/runningpods/ has pods with a ready sandbox or a running container, newest first", async (t) => {
  const sandbox = (uid: string, createdAt: bigint) => ({
    metadata: { uid, name: `p-${uid}`, namespace: "ns" },
    createdAt,
  });
  const container = (uid: string, name: string) => ({
    metadata: { name },
    image: { image: `sha256:${name}`, userSpecifiedImage: "busybox:1" },
    labels: {
      "io.kubernetes.pod.uid": uid,
      "io.kubernetes.pod.name": `p-${uid}`,
      "io.kubernetes.pod.namespace": "ns",
    },
  });
  const filters: unknown[] = [];
  const runtime = runtimeWith({
    listPodSandbox: async ({ filter }) => {
      filters.push(filter);
      return { items: [sandbox("old", 1n), sandbox("empty", 3n), sandbox("new", 2n)] };
    },
    listContainers: async ({ filter }) => {
      filters.push(filter);
      return {
        containers: [container("old", "a"), container("new", "b"), container("old", "c"), container("gone", "d")],
      };
    },
  });
  const { body, headers } = await serveRunningPods(runtime, signal);
  t.same(filters, [{ state: { state: "SANDBOX_READY" } }, { state: { state: "CONTAINER_RUNNING" } }]);
  t.equal(headers["content-type"], "application/json");
  const pod = (uid: string, containers: string): string =>
    `{"metadata":{"name":"p-${uid}","namespace":"ns","uid":"${uid}","creationTimestamp":null},` +
    `"spec":{"containers":${containers}},"status":{}}`;
  const item = (name: string): string => `{"name":"${name}","image":"sha256:${name}","resources":{}}`;
  const items = [
    pod("empty", "null"),
    pod("new", `[${item("b")}]`),
    pod("old", `[${item("a")},${item("c")}]`),
    pod("gone", `[${item("d")}]`),
  ];
  t.equal(String(body), `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[${items.join(",")}]}\n`);
});

t.test("/runningpods/ has the error of a runtime that does not answer", async (t) => {
  const fail = (): Promise<never> => Promise.reject(new RuntimeError("UNAVAILABLE", "away"));
  const { status, body } = await serveRunningPods(runtimeWith({ listPodSandbox: fail, listContainers: fail }), signal);
  t.equal(`${status} ${body}`, "500 rpc error: code = Unavailable desc = away");
});

t.test("without pods the list is null, as Go encodes it", async (t) => {
  const none = runtimeWith({ listPodSandbox: async () => ({}), listContainers: async () => ({}) });
  const { body } = await serveRunningPods(none, signal);
  t.equal(String(body), '{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}\n');
});

import t from "tap";
import type { Transport } from "../../client/client.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { NodeInfo } from "../cache/node-info.ts";
import { PodInfo } from "../cache/pod-info.ts";
import { createExtenders } from "./create-extenders.ts";
import { createHttpExtender, type ExtenderConfig } from "./http-extender.ts";

const pod = new PodInfo({
  metadata: { name: "p", namespace: "ns", uid: "u" },
  spec: { containers: [{ name: "c", image: "i", resources: { limits: { "example.com/gpu": "1" } } }] },
});

const nodes = ["a", "b", "c"].map((name) => {
  const info = new NodeInfo(name);
  info.setNode({ metadata: { name } });
  return info;
});

/** Answers with the values by path, and records the requests. */
function createServer(answers: Readonly<Record<string, unknown>>) {
  const requests: { readonly path: string; readonly body: Readonly<Record<string, unknown>> }[] = [];
  const transport: Transport = async ({ path, body, signal }) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of body) chunks.push(chunk);
    requests.push({ path, body: JSON.parse(Buffer.concat(chunks).toString()) });
    const answer = answers[path];
    if (answer === undefined) {
      return await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    }
    return { status: 200, headers: {}, body: Buffer.from(JSON.stringify(answer)) };
  };
  return { requests, transport };
}

const signal = new AbortController().signal;
const config: ExtenderConfig = {
  urlPrefix: "http://extender.test",
  filterVerb: "filter",
  prioritizeVerb: "prioritize",
  preemptVerb: "preempt",
  bindVerb: "bind",
  weight: 2,
  timeoutMs: 1000,
};

t.test("filter() sends nodes or their names, and reads both, with reasons", async (t) => {
  const answer = {
    NodeNames: ["a"],
    FailedNodes: { b: "too old" },
    FailedAndUnresolvableNodes: { c: "too small" },
  };
  const { requests, transport } = createServer({ "/filter": answer });
  const cached = createHttpExtender({ ...config, nodeCacheCapable: true }, transport, new FakeClock());
  const { nodes: left, rejections } = await cached.filter!(pod, nodes, signal);
  t.same(
    left.map(({ name }) => name),
    ["a"],
  );
  t.match(Object.fromEntries(rejections), {
    b: { code: "Unschedulable", reasons: ["too old"] },
    c: { code: "UnschedulableAndUnresolvable", reasons: ["too small"] },
  });
  t.match(requests[0]?.body, { Pod: { metadata: { name: "p" } }, Nodes: null, NodeNames: ["a", "b", "c"] });
  const whole = createServer({ "/filter": { nodes: { items: [{ metadata: { name: "b" } }] } } });
  const other = await createHttpExtender(config, whole.transport, new FakeClock()).filter!(pod, nodes, signal);
  t.same(
    other.nodes.map(({ name }) => name),
    ["b"],
  );
  t.match(whole.requests[0]?.body, { Nodes: { items: [{ metadata: { name: "a" } }, {}, {}] }, NodeNames: null });
});

t.test("prioritize() weights scores; bind() throws the error of the extender", async (t) => {
  const { requests, transport } = createServer({
    "/prioritize": [
      { Host: "a", Score: 10 },
      { Host: "b", Score: 1 },
    ],
    "/bind": { Error: "no" },
  });
  const extender = createHttpExtender(config, transport, new FakeClock());
  t.same(
    [...(await extender.prioritize!(pod, nodes, signal))],
    [
      ["a", 200],
      ["b", 20],
    ],
  );
  await t.rejects(extender.bind!(pod, "a", signal), { message: "no" });
  t.same(requests.at(-1)?.body, { PodName: "p", PodNamespace: "ns", PodUID: "u", Node: "a" });
});

t.test("preempt() keeps the candidates that the extender accepts, with its victims", async (t) => {
  const victim = new PodInfo({ metadata: { name: "v", uid: "v" }, spec: { containers: [] } });
  const other = new PodInfo({ metadata: { name: "w", uid: "w" }, spec: { containers: [] } });
  const [a, b] = [nodes[0]!.clone(), nodes[1]!.clone()];
  a.addPod(victim);
  a.addPod(other);
  const answer = { NodeNameToMetaVictims: { a: { Pods: [{ UID: "v" }], NumPDBViolations: 1 } } };
  const { transport } = createServer({ "/preempt": answer });
  const candidates = [
    { node: a, pods: [victim, other], violations: 0 },
    { node: b, pods: [], violations: 0 },
  ];
  const left = await createHttpExtender(config, transport, new FakeClock()).preempt!(pod, candidates);
  t.equal(left.length, 1);
  t.match(left[0], { violations: 1, pods: [{ uid: "v" }] });
  t.equal(left[0]?.pods.length, 1);
});

t.test("an extender may manage resources only, and must answer in time", async (t) => {
  const clock = new FakeClock();
  const { transport } = createServer({});
  const only = (name: string) =>
    createHttpExtender({ ...config, managedResources: [{ name }] }, transport, clock).isInterested(pod);
  t.same([only("example.com/gpu"), only("example.com/fpga")], [true, false]);
  const extender = createHttpExtender(config, transport, clock);
  const filtered = extender.filter!(pod, nodes, signal);
  const [, result] = await Promise.all([clock.advance(1000), filtered.catch((error: Error) => error.message)]);
  t.match(result, /did not answer in 1000 ms/);
});

t.test("createExtenders() connects to each extender", async (t) => {
  const { transport } = createServer({ "/filter": { NodeNames: [] } });
  const urls: string[] = [];
  await using extenders = await createExtenders(
    [{ urlPrefix: "http://one.test", filterVerb: "filter", httpTimeoutMs: 1000 }],
    {
      clock: new FakeClock(),
      extenderTransport: (urlPrefix) => {
        urls.push(urlPrefix);
        return transport;
      },
    },
  );
  t.same(urls, ["http://one.test"]);
  t.equal(extenders.list.length, 1);
});

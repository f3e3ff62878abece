/** What the scheduler does when requests fail, others interfere, or it stops in the middle of its work. */
import t from "tap";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { type ScenarioCluster, startScenarioCluster } from "./recorded/cluster.ts";

const PODS = "/api/v1/namespaces/default/pods";
const amounts = { cpu: "8", memory: "8Gi", pods: "110" };

async function createNode(cluster: ScenarioCluster, name: string): Promise<void> {
  const status = { capacity: amounts, allocatable: amounts };
  await cluster.send("POST", "/api/v1/nodes", {
    metadata: { name, labels: { "kubernetes.io/hostname": name } },
    status,
  });
}

async function createPod(cluster: ScenarioCluster, name: string, spec: object = {}): Promise<void> {
  const containers = [{ name: "c", image: "i", resources: { requests: { cpu: "1" } } }];
  await cluster.send("POST", PODS, { metadata: { name }, spec: { containers, ...spec } });
}

async function getPod(cluster: ScenarioCluster, name: string): Promise<Pod> {
  return await cluster.client.get(podKind, { name, namespace: "default" });
}

async function nodeOf(cluster: ScenarioCluster, name: string): Promise<string | undefined> {
  return (await getPod(cluster, name)).spec?.nodeName;
}

const condition = ({ status }: Pod) => status?.conditions?.find(({ type }) => type === "PodScheduled");

/** Calls `before` before each binding; its errors are those of the request. */
function interceptBindings(before: (name: string) => Promise<void>): (client: Client) => Client {
  return (client) =>
    new Proxy(client, {
      get(target, member) {
        if (member !== "createSubresource") {
          const value: unknown = Reflect.get(target, member);
          return typeof value === "function" ? value.bind(target) : value;
        }
        const bind: Client["createSubresource"] = async (kind, name, subresource, body, signal) => {
          if (subresource === "binding") await before(name.name);
          return await target.createSubresource(kind, name, subresource, body, signal);
        };
        return bind;
      },
    });
}

t.test("a binding that fails is tried again after the back-off, and what it used is free until then", async (t) => {
  let failures = 2;
  const failing = interceptBindings(async (name) => {
    if (name === "a" && failures-- > 0) throw new StatusError(500, "InternalError", "no disk");
  });
  await using cluster = await startScenarioCluster({}, failing);
  await cluster.advance(200);
  await createNode(cluster, "n");
  const whole = { containers: [{ name: "c", image: "i", resources: { requests: { cpu: "8" } } }] };
  await createPod(cluster, "a", whole);
  await cluster.advance(300);
  const waiting = await getPod(cluster, "a");
  t.match(condition(waiting), { status: "False", reason: "SchedulerError" });
  t.match(condition(waiting)?.message, /running Bind plugin "DefaultBinder": no disk/);
  await cluster.advance(1000);
  t.equal(await nodeOf(cluster, "a"), undefined, "the second attempt fails as well");
  await cluster.advance(2000);
  t.equal(await nodeOf(cluster, "a"), "n");
});

t.test("a pod that another scheduler binds first stays there", async (t) => {
  let interfere = async (): Promise<void> => {};
  await using cluster = await startScenarioCluster(
    {},
    interceptBindings(() => interfere()),
  );
  interfere = async () => {
    interfere = async () => {};
    const target = { kind: "Node", name: "elsewhere" };
    await cluster.send("POST", `${PODS}/a/binding`, { metadata: { name: "a" }, target });
  };
  await cluster.advance(200);
  await createNode(cluster, "n");
  await createPod(cluster, "a");
  await cluster.advance(5000);
  t.equal(await nodeOf(cluster, "a"), "elsewhere");
  const whole = { containers: [{ name: "c", image: "i", resources: { requests: { cpu: "8" } } }] };
  await createPod(cluster, "b", whole);
  await cluster.advance(1000);
  t.equal(await nodeOf(cluster, "b"), "n", "nothing is counted on the other node");
});

t.test("a pod that is deleted while it is being bound leaves nothing behind", async (t) => {
  let held: (() => void) | undefined;
  const hold = interceptBindings(async (name) => {
    if (name !== "a") return;
    await new Promise<void>((resolve) => {
      held = resolve;
    });
  });
  await using cluster = await startScenarioCluster({}, hold);
  await cluster.advance(200);
  await createNode(cluster, "n");
  const whole = { containers: [{ name: "c", image: "i", resources: { requests: { cpu: "8" } } }] };
  await createPod(cluster, "a", whole);
  await createPod(cluster, "b", whole);
  await cluster.advance(300);
  t.match(condition(await getPod(cluster, "b")), { reason: "Unschedulable" });
  await cluster.send("DELETE", `${PODS}/a`, { gracePeriodSeconds: 0 });
  await cluster.advance(100);
  held?.();
  await cluster.advance(3000);
  t.equal(await nodeOf(cluster, "b"), "n");
});

t.test("a scheduler that starts again continues where the last one stopped", async (t) => {
  let isStopping = false;
  const hold = interceptBindings(async () => {
    if (isStopping) throw new Error("connection refused");
  });
  await using cluster = await startScenarioCluster({}, hold);
  await cluster.advance(200);
  await createNode(cluster, "n");
  isStopping = true;
  for (let count = 0; count < 8; count++) await createPod(cluster, `p${count}`);
  await cluster.advance(100);
  isStopping = false;
  await cluster.restart();
  await cluster.advance(1000);
  for (let count = 0; count < 8; count++) t.equal(await nodeOf(cluster, `p${count}`), "n");
});

t.test("two schedulers at once bind each pod once", async (t) => {
  await using cluster = await startScenarioCluster({});
  await cluster.advance(200);
  for (const name of ["a", "b", "c"]) await createNode(cluster, name);
  await using _second = cluster.startScheduler();
  await cluster.advance(200);
  for (let count = 0; count < 20; count++) await createPod(cluster, `p${count}`);
  await cluster.advance(5000);
  for (let count = 0; count < 20; count++) t.match(await nodeOf(cluster, `p${count}`), /^[abc]$/);
});

t.test("a claim whose provisioning fails lets the pod try another node", async (t) => {
  await using cluster = await startScenarioCluster({});
  await cluster.advance(200);
  for (const name of ["a", "b"]) await createNode(cluster, name);
  const classes = "/apis/storage.k8s.io/v1/storageclasses";
  const volumeBindingMode = "WaitForFirstConsumer";
  await cluster.send("POST", classes, { metadata: { name: "w" }, provisioner: "csi.example.com", volumeBindingMode });
  const claims = "/api/v1/namespaces/default/persistentvolumeclaims";
  const resources = { requests: { storage: "1Gi" } };
  const claim = { storageClassName: "w", accessModes: ["ReadWriteOnce"], resources };
  await cluster.send("POST", claims, { metadata: { name: "c" }, spec: claim });
  await createPod(cluster, "p", { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }] });
  await cluster.advance(500);
  const selected = async (): Promise<string | undefined> => {
    const { metadata } = (await cluster.send("GET", `${claims}/c`)) as {
      readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
    };
    return metadata.annotations?.["volume.kubernetes.io/selected-node"];
  };
  const first = await selected();
  t.match(first, /^[ab]$/);
  await cluster.send("PATCH", `/api/v1/nodes/${first}`, { spec: { unschedulable: true } });
  await cluster.send("PATCH", `${claims}/c`, {
    metadata: { annotations: { "volume.kubernetes.io/selected-node": null, other: "x" } },
  });
  await cluster.advance(300);
  t.match(condition(await getPod(cluster, "p")), {
    reason: "SchedulerError",
    message: 'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "c"',
  });
  await cluster.advance(2000);
  t.equal(await selected(), first === "a" ? "b" : "a");
  t.equal(await nodeOf(cluster, "p"), undefined, "its volume is not there yet");
  await cluster.advance(600_000);
  t.match(condition(await getPod(cluster, "p"))?.message, /binding volumes: context deadline exceeded/);
});

t.test("pods that cannot be scheduled while the API server is away are scheduled afterwards", async (t) => {
  let isAway = false;
  const away = interceptBindings(async () => {
    if (isAway) throw new Error("connect ECONNREFUSED");
  });
  await using cluster = await startScenarioCluster({}, away);
  await cluster.advance(200);
  await createNode(cluster, "n");
  isAway = true;
  await createPod(cluster, "a");
  await cluster.advance(20_000);
  t.equal(await nodeOf(cluster, "a"), undefined);
  isAway = false;
  await cluster.advance(10_000);
  t.equal(await nodeOf(cluster, "a"), "n", "within the longest back-off");
});

t.test("a preemption whose victims cannot be deleted is tried again later", async (t) => {
  let attempts = 0;
  let isAway = true;
  const away = (client: Client): Client => {
    const remove: Client["delete"] = async (...args) => {
      attempts++;
      if (isAway) throw new Error("connect ECONNREFUSED");
      await client.delete(...args);
    };
    return new Proxy(client, {
      get(target, member) {
        if (member === "delete") return remove;
        const value: unknown = Reflect.get(target, member);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
  await using cluster = await startScenarioCluster({}, away);
  await cluster.advance(200);
  await cluster.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", { metadata: { name: "high" }, value: 10 });
  await createNode(cluster, "n");
  const containers = [{ name: "c", image: "i", resources: { requests: { cpu: "8" } } }];
  await createPod(cluster, "victim", { containers, terminationGracePeriodSeconds: 0 });
  await cluster.advance(300);
  await createPod(cluster, "p", { containers, priorityClassName: "high" });
  await cluster.advance(10_000);
  t.ok(attempts >= 2 && attempts <= 6, `${attempts} attempts in ten seconds`);
  isAway = false;
  await cluster.advance(20_000);
  t.equal(await nodeOf(cluster, "p"), "n");
});
